"""Every command of the README and of docs/ does what the page says it does.

Commands stand in blocks of ``$ `` lines; the blocks of a page share a folder that begins with
tests/ in it, and every block of the page whose first line is ``# NAME.py`` or ``# NAME.toml``. What
is printed below a command has to come out, but for times; ``...`` ends a beginning. A block after
``<!-- not run: REASON -->`` needs what a test does not have.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hopmap.cli.app import COMMANDS
from hopmap.mappers import MAPPERS
from hopmap.scenarios.sweep.scenario import Scenario
from support import ROOT
from support.archives import archives_read_here
from support.commands import invoke

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
]
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```(\w*)\n(.*?)```", flags=re.DOTALL)


def title_of(page):
    """Return the path of a page without its ending, for instance docs/index."""
    return str(page.relative_to(ROOT).with_suffix(""))


def steps(page):
    """Yield (command, what it prints) of a page, joining lines that end in a backslash."""
    for skipped, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if text.startswith("$ ") and language in ("", "console") and not skipped:
            for part in ("\n" + text).split("\n$ ")[1:]:
                command, _, printed = part.replace("\\\n", " ").partition("\n")
                yield command, printed.strip("\n")


def comparable(text):
    """Leave out how long it took this machine, and how wide that made a column."""
    text = re.sub(r"(took|, in|replayed in) +[\d.]+ \w+", r"\1", text)
    return [re.sub(r"[- ]+", " ", line).strip() for line in text.splitlines()]


def output_of(command):
    words = shlex.split(command, comments=True)
    if words[0] != "hopmap" or "|" in words:
        here = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        }
        return subprocess.run(
            ["bash", "-c", command], check=True, capture_output=True, text=True, env=here
        ).stdout
    result = invoke(words[1:])
    assert result.exit_code == 0, f"{command}: {result.stderr}"
    return result.stdout


def test_no_command_of_a_page_stands_where_it_is_not_run():
    """A line of code that begins with hopmap is in a block of ``$ ``, or says why not."""
    missed = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [code for skipped, _, code in BLOCK.findall(text) if not skipped]
        code = "\n".join(block for block in blocks if not block.startswith("$ "))
        missed += re.findall(r"^(?:\$ )?hopmap .*$", code, flags=re.MULTILINE)
        missed += re.findall(r"^ {4,}(?:\$ )?hopmap .*$", BLOCK.sub("", text), flags=re.MULTILINE)
    assert missed == []


@pytest.fixture(scope="module", autouse=True)
def unguarded():
    """Read archives in this process."""
    with archives_read_here():
        yield


WITH_COMMANDS = [page for page in PAGES if any(steps(page))]


def marks_of(page):
    """What the README shows always runs; what docs/ show, which is much, in the whole suite."""
    return () if page == PAGES[0] else pytest.mark.slow


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=title_of(page), marks=marks_of(page)) for page in WITH_COMMANDS]
)
@pytest.mark.usefixtures("forgetting")
def test_the_commands_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for _, _, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if file := re.match(r"# (\w+\.(?:py|toml))\n", text):
            (tmp_path / file[1]).write_text(text, encoding="utf-8")
    for command, printed in steps(page):
        lines = comparable(output_of(command))
        if printed.endswith("..."):
            lines = lines[: len(printed.splitlines()) - 1]
            printed = printed.removesuffix("...")
        if printed:
            assert lines == comparable(printed), command


def test_the_scenarios_of_the_pages_have_known_keys_only():
    found = 0
    for page in PAGES:
        for skipped, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if language == "toml" and "\nmappers = " in text and not skipped:
                Scenario.model_validate(tomllib.loads(text))
                found += 1
    assert found


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


DOOR = "import hopmap as hm"


def python_of(page):
    """Return the scripts of a page, in order: blocks of Python that ask at the front door."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [code for skipped, x, code in blocks if x == "python" and DOOR in code and not skipped]


SCRIPTS = [(page, place) for page in PAGES for place in range(len(python_of(page)))]


@pytest.mark.parametrize(
    ("page", "place"),
    [
        pytest.param(page, place, id=f"{title_of(page)}-{place}", marks=marks_of(page))
        for page, place in SCRIPTS
    ],
)
def test_scripts_of_a_page_run_and_make_its_pictures(page, place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    exec(compile(python_of(page)[place], page.name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out
    made = {file.name for file in tmp_path.glob("*.svg")}
    if "gallery" in page.stem.lower():
        shown = set(re.findall(r"\]\((\w+\.svg)\)", page.read_text(encoding="utf-8")))
        assert made == shown


def test_every_mapper_is_in_the_page_of_mappers():
    page = (ROOT / "docs" / "reference" / "mappers.md").read_text("utf-8")
    assert [name for name in MAPPERS if f"`{name}`" not in page] == []


def test_every_command_is_in_the_readmes_table():
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"`([\w-]+)`", "".join(rows))
    assert sorted(named) == sorted(COMMANDS)


@pytest.mark.slow
def test_the_pages_build(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    asked = re.compile(r"<(?:script|img)\b[^>]*src=\"(?:https?:)?//[^\"]*|\bcdn\w*\.")
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")]
    assert [found for text in texts for found in asked.findall(text)] == []
    built = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("index.html")}
    folders = {title_of(page).removeprefix("docs/") for page in PAGES[1:]}
    assert {re.sub("/?(index|README)$", "", folder) or "." for folder in folders} <= built
