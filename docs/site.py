"""Fill the pages of reference from the code, and take the evidence into the site.

A hook of mkdocs: ``<!-- generated: NAME -->`` in a page becomes the table of that name.
"""

import ast
import inspect
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File
from typer.main import get_command

from hopmap.cli.app import app
from hopmap.cli.listing import CATALOGUE, show_value
from hopmap.mappers import all_mappers
from hopmap.mappers.mapper import MapperInfo
from hopmap.scenarios.sweep import scenario, scenario_tables

ROOT = Path(__file__).parents[1]
GENERATED = re.compile(r"<!-- generated: (\w+) -->")
EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def table(*rows):
    """Return a table in Markdown; the first row is the head."""
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    cells.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def code(text):
    """Return text as code in Markdown."""
    return f"`{text}`" if text not in ("", None) else ""


def commands():
    """Return a section for every command: what it does, its arguments and options."""
    group = get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield f"## hopmap {name}\n\n{inspect.cleandoc(command.help)}\n"
        rows = [("option", "default", "meaning")]
        for each in command.params:
            name = each.metavar if each.param_type_name == "argument" else ", ".join(each.opts)
            default = "" if callable(each.default) or not each.default else each.default
            rows.append((code(name), code(default), each.help))
        yield table(*rows) + "\n"


def capabilities(info: MapperInfo):
    """Return what a mapper takes, for a row of the table of mappers."""
    names = [parameter.name for parameter in info.parameters]
    return (
        code(info.name),
        info.summary,
        {"ignored": "", "optional": "can", "needed": "must"}[info.initial],
        "yes" if "rng" in info.passed else "",
        "yes" if "seconds" in names else "",
        "yes" if "objective" in names else "",
        ", ".join(code(name) for name in names if name not in ("seconds", "objective")),
        info.source,
    )


def mappers():
    """Return the table of mappers and of what each can."""
    head = ("mapper", "what it does", "starts from a mapping", "seed", "time budget", "objective")
    infos = sorted(all_mappers().values(), key=lambda info: info.name)
    yield table((*head, "parameters", "source"), *map(capabilities, infos))


def descriptions(module):
    """Return what stands below the fields of a module's classes, by class and field."""
    for kind in ast.parse(inspect.getsource(module)).body:
        if isinstance(kind, ast.ClassDef):
            for field, text in zip(kind.body, kind.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    yield (kind.name, field.target.id), text.value.value


def type_of(field, schema):
    """Return what a key of a scenario may be."""
    if "$ref" in field:
        return type_of(schema["$defs"][field["$ref"].rpartition("/")[2]], schema)
    if "anyOf" in field:
        kinds = [type_of(each, schema) for each in field["anyOf"] if each.get("type") != "null"]
        return " or ".join(kinds)
    if "enum" in field:
        return " or ".join(f'"{each}"' for each in field["enum"])
    if field.get("type") == "array":
        return f"list of {type_of(field['items'], schema)}"
    names = {
        "string": "text",
        "integer": "whole number",
        "object": "table",
        "boolean": "true or false",
    }
    return names.get(field.get("type"), field.get("type", "value"))


def plain(value):
    """Return a default that says something: no empty list, no table."""
    return "" if isinstance(value, dict) or value in ([], "") else value


def scenarios():
    """Return a table for every table of a scenario file."""
    said = dict(x for module in (scenario, scenario_tables) for x in descriptions(module))
    schema = scenario.Scenario.model_json_schema()
    heads = {"Replay": "[replay]", "Published": "[published]", "Validated": "[validated]"}
    for name, kind in (("Scenario", schema), *schema["$defs"].items()):
        head = "Keys at the top" if kind is schema else heads.get(name, f"[[{name.lower()}]]")
        yield f"## {head}\n\n{inspect.cleandoc(kind['description']).replace('``', '`')}\n"
        rows = [
            (code(key), type_of(field, schema), code(plain(field.get("default"))), said[name, key])
            for key, field in kind["properties"].items()
        ]
        yield table(("key", "value", "default", "meaning"), *rows) + "\n"


def listed(what):
    """Return the table of what `hopmap list` prints."""
    rows = [("name", "what", "settings", "source")]
    for entry in CATALOGUE[what]():
        settings = []
        for each in entry["parameters"]:
            default = "" if each["default"] is None else show_value(each["default"], each["type"])
            settings.append(
                f"{code(each['name'])}: {each['type']}"
                + f"; default {code(default)}" * bool(default)
            )
        rows.append((code(entry["name"]), entry["summary"], "<br>".join(settings), entry["source"]))
    kept = [place for place in range(4) if any(row[place] for row in rows[1:])]
    yield table(*([row[place] for place in kept] for row in rows))


WRITERS = {"commands": commands, "mappers": mappers, "scenario": scenarios}


def fill(found):
    """Return what stands in a page in place of a mark."""
    name = found[1]
    return "\n".join(WRITERS[name]() if name in WRITERS else listed(name))


def on_files(files, config):
    """Add the evidence pages from the folders of the scripts that produce them."""
    for path in sorted((ROOT / "benchmarks").rglob("*")):
        if path.name == "README.md" or path.suffix in (".svg", ".png"):
            name = str(path.relative_to(ROOT))
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Fill in what is generated; links between docs/ and benchmarks/ lose the folder docs/."""
    if page.file.src_uri.startswith("benchmarks/"):
        markdown = markdown.replace("../docs/", "../")
    else:
        markdown = re.sub(r"\.\./((?:\.\./)*benchmarks/)", r"\1", markdown)
    return GENERATED.sub(fill, markdown)


def on_page_content(html, **_):
    """Render equations as MathML, which browsers show without a script."""

    def render(found):
        display = "block" if found[1] == "div" else "inline"
        return convert(found[2].strip(), display=display)

    return EQUATION.sub(render, html)
