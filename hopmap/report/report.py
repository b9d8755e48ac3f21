"""The report of a study: one HTML page that needs nothing else, and its figures as SVG files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from hopmap.api.provenance import format_keys
from hopmap.progress import Progress
from hopmap.scenarios.results import store
from hopmap.scenarios.results.ranking import describe_one_replay, networks
from hopmap.scenarios.results.stored_runs import loose_ids, loose_path, part_files
from hopmap.scenarios.results.study import (
    DEFAULTS,
    Study,
    collectives_dominate,
    load_study,
    omissions_by_trace,
)
from hopmap.scenarios.results.tables import TABLES, StoreError
from hopmap.simulator.parameters.keys import ASSUMED
from hopmap.source_files import digest_of, sources_of
from hopmap.traces import Traffic
from hopmap.traces.safety.atomic_files import replacing_folder, write_text
from hopmap.units import count, percent
from hopmap.version import __version__

from .summary import choose_cases, export_commands, summarise_unmoved, summary, write_cases
from .timelines import Timeline, made_timelines, timelines

PAGE_BYTES = 4_000_000  # of figures in the page; others are in the folder only
HEAD = 4096  # bytes of a page that hold its digest
HERE = Path(__file__).parent
INPUTS = ("plan.json", "scenario.toml", "published.csv")
TEMPLATES = ("page.html.j2", "page.css", "page.js")

Sections = dict[str, dict[str, list[dict[str, Any]]]]  # pictures by trace and section


def write_report(folder: str | Path, *, progress: Progress | None = None) -> Path:
    """Write ``report.html``, ``figures/*.svg`` and ``timelines/*.csv`` into a folder of results.

    The page holds its figures, style and script itself; both appear whole or not at all. Nothing is
    drawn again unless results or hopmap have changed since.

    Parameters
    ----------
    folder : str or Path
        What ``hopmap run`` filled, finished or not.
    progress : callable, optional
        ``progress(done, total, text)`` after every figure.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    StoreError
        The folder holds no results.
    """
    folder = Path(folder)
    digest = digest_of_report(folder)
    target = folder / "report.html"
    if is_up_to_date(folder, digest):
        return target
    # matplotlib takes a while to import
    from hopmap.figures.style import svg_text
    from hopmap.figures.tips import panel

    from .figures import OF_STUDY, PICTURED, SECTIONS, count_figures, figures

    whole = load_study(folder)
    study = replace(whole, cases=choose_cases(whole))
    traffic = {trace: _traffic(folder, trace) for trace in whole.traces()}
    total = count_figures(study)
    sections: Sections = {trace: {section: [] for section in SECTIONS} for trace in study.traces()}
    sections[""] = {section: [] for section in OF_STUDY}
    spent = 0
    replayable = {
        trace: list(timelines(study, study.ends_of(trace)[:PICTURED])) for trace in study.traces()
    }
    with replacing_folder(folder / "figures") as drawn:
        for done, picture in enumerate(figures(whole, study, traffic), 1):
            svg = svg_text(picture.figure)
            (drawn / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
            width = round(96 * picture.figure.get_figwidth())
            shown = {"caption": picture.caption, "name": picture.name, "width": width}
            turn = ""
            if picture.turn is not None:
                view = picture.turn | {"box": panel(picture.figure.axes[0])}
                turn = json.dumps(view, separators=(",", ":"))
            image = inline(svg, f"f{done}")
            if spent + len(image) > PAGE_BYTES:
                image = Markup("")
            spent += len(image)
            shown |= {"image": image, "turn": turn, "first": picture.first}
            sections[picture.trace][picture.section].append(shown)
            if progress is not None:
                progress(done, max(done, total), picture.caption)
        _keep_others(folder / "figures", drawn)
        page = _render(whole, study, traffic, sections, replayable, digest)
    write_cases(whole, folder / "cases.csv")
    write_text(target, page)
    return target


def _keep_others(folder: Path, drawn: Path) -> None:
    """Copy what else somebody has put into the folder of figures."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        copy = shutil.copytree if entry.is_dir() else shutil.copy2
        if not (drawn / entry.name).exists():
            copy(entry, drawn / entry.name)


def digest_of_report(folder: Path) -> str:
    """Return the digest of all that a report is made of: results, by their names, and code.

    A part of a table has a digest of its runs in its name, and these that of their inputs.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in (path for name in TABLES for path in part_files(folder, name)):
        digest.update(f"{path.name} {path.stat().st_size}\0".encode())  # damage shows in the size
    for run_id in loose_ids(folder):
        written = loose_path(folder, "runs", run_id).stat().st_mtime_ns
        digest.update(f"{run_id} {written}\0".encode())
    digest.update("\0".join(made_timelines(folder)).encode())
    for file in (folder / name for name in INPUTS):
        digest.update(file.read_bytes() + b"\0" if file.is_file() else b"\0")
    code = sources_of(HERE / "report.py", HERE / "figures.py", full=True)
    return digest_of([*code, *(HERE / name for name in TEMPLATES)], digest.hexdigest())


def is_up_to_date(folder: Path, digest: str) -> bool:
    """Whether the folder has the page of that digest, and the files of the page."""
    if not all((folder / name).exists() for name in ("figures", "cases.csv")):
        return False
    with suppress(OSError), (folder / "report.html").open("rb") as page:
        return f'content="{digest}"'.encode() in page.read(HEAD)
    return False


def _traffic(folder: Path, trace: str) -> Traffic | None:
    with suppress(StoreError):
        return store.load_traffic(folder, trace)
    return None


def image_uri(svg: str) -> Markup:
    """Return a figure as the address of an image, between double quotes; shorter than base64."""
    text = re.sub("<[^>]*>", lambda tag: tag[0].replace("'", "&apos;").replace('"', "'"), svg)
    safe = quote(" ".join(text.split()), safe=" !$'()*+,-./:;<=>?@[]^_{|}~")
    return Markup(f"data:image/svg+xml,{safe}")


def inline(svg: str, name: str) -> Markup:
    """Return a figure as a part of a page, where names of its parts begin with that of the figure.

    Names that nothing refers to are left out.
    """
    text = re.sub(r' xmlns(?::\w+)?="[^"]*"', "", svg[svg.index("<svg") :])
    text = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", text, flags=re.DOTALL)
    used = set(re.findall(r"#([\w-]+)", text))

    def rename(tag: re.Match[str]) -> str:
        kept = re.sub(r'(\s+)id="([^"]*)"', lambda own: own[0] if own[2] in used else "", tag[0])
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", kept)

    return Markup(re.sub("<[^!>]*>", rename, text))


def breakable(text: str) -> Markup:
    """Let a mapper's name be broken after its punctuation."""
    return Markup(re.sub(r"([(_,|=+])", r"\1<wbr>", str(escape(text))))


def render(template: Path, **content: Any) -> str:
    """Return the text of a page, `css` being that of all pages."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["breakable"] = breakable
    css = Markup((HERE / "page.css").read_text(encoding="utf-8"))
    text = template.read_text(encoding="utf-8")
    return environment.from_string(text).render(css=css, **content)


def _render(
    full: Study,
    study: Study,
    traffic: dict[str, Traffic | None],
    sections: Sections,
    replayable: dict[str, list[Timeline]],
    digest: str,
) -> str:
    from . import tables

    return render(
        HERE / "page.html.j2",
        study=study,
        digest=digest,
        default=" or ".join(DEFAULTS),
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),
        facts=_facts(full),
        cases=len(full.cases),
        repeated=full.repeat,
        by_models=full.by_models,
        replayed=any(case.replayed for case in full.cases),
        once=describe_one_replay(study.runs),
        relevance=percent(study.relevance),
        prices=bool(tables.prices_of(study)),
        drawn={sort for name in study.topologies() for sort in _sorts_drawn(study, name)},
        summary=summary(full),
        pictured=sections[""],
        best=tables.best_table(
            [study.cases_of(trace) for trace in study.traces()],
            lambda case: tables.network_parts(study, case),
            tables.prices_of(study),
        ),
        unmoved=summarise_unmoved(full),
        compares=any(networks(study.cases_of(trace)) for trace in study.traces()),
        exports=export_commands(full),
        infeasible=study.plan.infeasible,
        traces=tables.trace_rows({trace: traffic[trace] for trace in study.traces()}),
        omitted=omissions_by_trace(full.runs),
        dominated=collectives_dominate(full.runs, full.rounds, full.plan.expanded),
        links=tables.link_rows(study),
        sections=[
            {
                "trace": trace,
                "id": f"trace-{place}",
                "table": tables.main_table(study.cases_of(trace)),
                "robustness": tables.robustness(study, trace),
                "findings": [
                    found
                    for part in tables.SECTIONS.values()
                    for found in part.findings(study, trace)
                ],
                "thesis": tables.thesis_table(study.cases_of(trace)),
                "timelines": replayable[trace],
                "figures": sections[trace],
            }
            for place, trace in enumerate(study.traces(), 1)
        ],
        failed=tables.list_failed_runs(study),
        **{name: part.content(full, study) for name, part in tables.SECTIONS.items()},
    )


def _sorts_drawn(study: Study, name: str) -> set[str]:
    """Return which explanations of link loads the pictures of a network need."""
    from hopmap.figures.layout import is_haec
    from hopmap.figures.network import is_drawn

    from .tables import topology_of

    topology = topology_of(study, next(c for c in study.cases if c.topology == name))
    if not is_drawn(topology):
        return {"switches" if topology.switches else "cells"}
    if not topology.dims:
        return set()
    sorts = {"box": True, "haec": is_haec(topology), "planes": len(topology.dims) == 3}
    return {sort for sort, there in sorts.items() if there}


def _validation_text(study: Study) -> str:
    """Say on which networks the parameters were held against measured times, on which not."""
    match study.scenario.get("validated"):
        case {"topologies": list(on), "error": float() | int() as error}:
            others = [name for name in study.topologies() if study.spec_of(name) not in on]
            words = f"on {', '.join(map(str, on))}: error {100 * error:.1f} % (median)"
            return words + (f"; not on {', '.join(others)}" if others else "")
    return "by no measurement"


def _expansion_text(study: Study) -> str:
    """Say of which traces mappers and metrics saw what collectives send."""
    with_them = [trace for trace in study.traces() if trace in study.plan.expanded]
    if not with_them:
        return ""
    whose = f" of {', '.join(with_them)}" if len(with_them) < len(study.traces()) else ""
    return f"with what collectives{whose} send"


def _facts(study: Study) -> list[tuple[str, str]]:
    """One line each on what was run."""
    runs = study.runs
    done = len(runs) + len(study.failed)
    engines = sorted({str(engine) for engine in runs["engine"].dropna()})
    replay = ", ".join(engines) or "none: mappings were measured, not replayed"
    if engines and study.steps:
        replay += (
            f"; generated benchmarks for {count(study.steps)} time step{'s' * (study.steps > 1)}"
        )
    errors = runs["replay_error"].dropna()
    if len(errors):
        replay += (
            f"; {count(len(errors))} runs extrapolated from their first steps, estimated error at "
            f"most {100 * errors.max():.2g} %"
        )
    if study.repeat:
        of = "models of the network" if study.by_models else "replays with noise"
        replay += f"; medians of {study.repeat} {of}"
    seeds = sorted({int(seed) for seed in runs["seed"].dropna()})
    shown = ", ".join(map(str, seeds[:12])) + (", …" if len(seeds) > 12 else "")
    planned = len(study.plan.runs)
    words = f"{count(len(runs))} of {count(planned)}"
    if study.failed.shape[0]:
        words += f", {count(len(study.failed))} failed"
    if planned > done:
        words += f", {count(planned - done)} not done yet"
    if study.plan.infeasible:
        words += f", {count(sum(study.plan.infeasible.values()))} infeasible and left out"
    mappers = list(dict.fromkeys(runs["mapper"]))
    facts = [
        ("Runs", words),
        ("Mappers", ", ".join(mappers)),
        ("Seeds of random numbers", shown),
        ("Replay engine", replay),
        ("Traffic", _expansion_text(study)),
    ]
    varied: dict[str, dict[str, None]] = {}  # of what varies all values, and none that never was
    for settings in study.plan.variants.values() or [dict(study.settings)]:
        for key, value in sorted(settings.items()):
            varied.setdefault(key, {})[str(value)] = None
    values_of = "; ".join(f"{key} = {', '.join(values)}" for key, values in sorted(varied.items()))
    facts.append(("Parameters", values_of))
    if engines:
        default = [key for key in ASSUMED if key not in varied]
        facts += [("DEFAULT", format_keys(default)), ("Validated", _validation_text(study))]
    return [*[(k, v) for k, v in facts if v], ("Made by", f"hopmap {__version__}")]
