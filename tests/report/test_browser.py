"""Pages of small studies in a browser; without Chromium these tests are skipped."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import matplotlib.image as plt
import numpy as np
import pytest

from hopmap.figures import style
from hopmap.report.report import write_report
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario, scenario_path
from support.browser import BINARY, LOOK, Browser
from support.commands import DRAWN

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no chromium on this machine"),
]

MAPPERS = '["sweep", "hilbert", "random", "minmd | bokhari"]'
STUDIES = {
    "recorded": f"""
        name = "A recorded trace"
        traces = ["{(HERE.parent / "data" / "mg.S.16").as_posix()}"]
        topologies = ["mesh:4x2x2", "haec:4x2x2"]
        mappers = {MAPPERS}
        seeds = [0, 1]
        [replay]
        engine = "compiled"
        """,
    "varied": """
        name = "What does latency do? A long name, that a phone has to break into several lines"
        traces = ["stencil:4x4,5pt,bytes=1000"]
        topologies = ["torus:2x2x2*2", "fattree:4x4", "dragonfly:2x4x2"]
        mappers = ["sweep", "random", "annealing(moves=2000)"]
        seeds = [0, 1, 2]
        [replay]
        engine = "compiled"
        [parameters]
        "energy.link.per_byte" = "1 nJ/byte"
        [[vary]]
        name = "latency"
        labels = ["100 ns", "1 us", "10 us"]
        parameters."link.latency" = ["100 ns", "1 us", "10 us"]
        """,
    "stencils": """
        name = "A suite of stencils"
        suites = ["growing,bytes=1000"]
        mappers = ["row_major", "random", "kd_tree", "squarest_strips(carry=narrower)"]
        [replay]
        engine = "compiled"
        [parameters]
        "link.bandwidth" = "100 Gbit/s"
        """,
    "failed": """
        name = "One mapper cannot"
        traces = ["stencil:4x4,5pt,bytes=1000"]
        topologies = ["fattree:4x4"]
        mappers = ["sweep", "bokhari(jumps=side)"]
        """,
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture(scope="module", params=list(STUDIES))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of each study, really run."""
    folder = tmp_path_factory.mktemp(request.param)
    path = folder / f"{request.param}.toml"
    path.write_text(STUDIES[request.param])
    scenario = load_scenario(scenario_path(path))
    outcome = run_scenario(path, scenario, folder / "results")
    assert bool(outcome.failed) == (request.param == "failed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "svg_text", DRAWN)  # elsewhere pictures are empty
        return write_report(folder / "results")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_overlaps_or_is_too_small(
    browser: Browser, page: Path, width: int
) -> None:
    browser.open(page, width)
    assert browser.value("innerWidth") == width
    assert browser.value(LOOK) == []
    assert browser.complaints() == []


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_tables_of_seeds_variants_and_energy_fit_a_desktop(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    # the appendix has up to 16 columns
    tables = "[...document.querySelectorAll('.scroll')].filter(box => !box.closest('#appendix'))"
    assert browser.value(f"{tables}.filter(box => box.scrollWidth > box.clientWidth).length") == 0


def test_a_click_on_a_header_sorts_and_another_turns_the_order(
    browser: Browser, page: Path
) -> None:
    browser.open(page, 390)
    number = browser.value("document.querySelectorAll('table.sortable').length")
    assert number > 0
    for table in range(number):
        browser.value(f"table = document.querySelectorAll('table.sortable')[{table}]")
        columns = browser.value("table.tHead.rows[0].cells.length")
        assert columns > 2
        for column in range(columns):
            browser.value(f"head = table.tHead.rows[0].cells[{column}]")
            figures = (
                f"[...table.tBodies[0].rows].map(row => row.cells[{column}].dataset.sort)"
                ".filter(figure => figure !== undefined).map(Number)"
            )
            before = browser.value(figures)
            for order in ("ascending", "descending"):
                browser.value("head.querySelector('button').click()")
                assert browser.value(figures) == sorted(before, reverse=order == "descending")
                assert browser.value("head.getAttribute('aria-sort')") == order
    assert browser.complaints() == []


def test_a_mapping_in_three_dimensions_can_be_turned(browser: Browser, page: Path) -> None:
    browser.open(page, 390)
    boxes = "4x2x2" in page.read_text(encoding="utf-8") or "2x2x2" in page.read_text()
    assert (browser.value("document.querySelectorAll('[data-turn]').length") > 0) == boxes
    if not boxes:
        return
    browser.value("document.querySelector('figure button').click()")
    drawing = "document.querySelector('[data-turn] svg').getBoundingClientRect()"
    turning = "document.querySelector('canvas.turn').getBoundingClientRect()"
    assert browser.value(f"{turning}.top - {drawing}.top") > 20  # the title stays
    assert browser.value(f"{drawing}.bottom - {turning}.bottom") > 100  # as do legend and bars
    picture = "document.querySelector('canvas.turn').toDataURL()"
    first = browser.value(picture)
    press = "new KeyboardEvent('keydown', {key: 'ArrowLeft'})"
    browser.value(f"document.querySelector('canvas.turn').dispatchEvent({press})")
    assert browser.value(picture) != first
    assert browser.value(LOOK) == []
    browser.value("document.querySelector('figure button').click()")
    assert browser.value("document.querySelector('canvas.turn')") is None
    assert browser.complaints() == []


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_marks_of_all_pictures_have_titles_where_they_are_drawn(
    browser: Browser, page: Path
) -> None:
    browser.open(page, 1280)
    titles = "[...document.querySelectorAll('.tips title')].map(title => title.textContent)"
    for words in ("→ 1: ", "rank 0 on ", "switch 0", "makespan", "compute", "hops", "annealing"):
        assert browser.value(f"{titles}.some(title => title.includes('{words}'))"), words
    silent = """[...document.querySelectorAll('figure svg')]
        .filter(svg => !svg.querySelector('title'))
        .map(svg => svg.parentElement.getAttribute('aria-label'))"""
    assert browser.value(silent) == []
    outside = """[...document.querySelectorAll('figure svg')].filter(svg => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('.tips path')].some(path => {
            const at = path.getBoundingClientRect();
            return at.left < box.left - 7 || at.right > box.right + 7
                || at.top < box.top - 7 || at.bottom > box.bottom + 7;
        });
    }).map(svg => svg.parentElement.getAttribute('aria-label'))"""
    assert browser.value(outside) == []


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_a_tap_writes_below_the_picture_what_a_mark_stands_for(
    browser: Browser, page: Path
) -> None:
    browser.open(page, 390)
    mark = "document.querySelector('.tips path:has(title)')"
    browser.value(f"{mark}.scrollIntoView({{block: 'center'}})")
    x, y = browser.value(
        f"(box => [box.left + box.width / 2, box.top + box.height / 2])"
        f"({mark}.getBoundingClientRect())"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    under = browser.value(f"document.elementFromPoint({x}, {y}).textContent")
    assert under
    assert browser.value(f"{mark}.closest('figure').querySelector('output').textContent") == under


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_tables_that_scroll_say_so_and_others_do_not(browser: Browser, page: Path) -> None:
    said = """[...document.querySelectorAll('.scroll')].map(box =>
        [box.scrollWidth > box.clientWidth + 1,
         getComputedStyle(box, '::before').content.includes('sideways')])"""
    for width in (390, 1280):
        browser.open(page, width)
        found = browser.value(said)
        assert all(scrolls == says for scrolls, says in found)
        assert any(scrolls for scrolls, _ in found) or width > 390


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_dark_pages_keep_the_order_of_the_colour_scale(browser: Browser, page: Path) -> None:
    """What is darker by day is darker by night, and no two of a scale's colours meet."""
    from hopmap.figures.style import sequential

    colours = (sequential()(np.linspace(0, 1, 12))[:, :3] * 255).round().astype(int).tolist()
    boxes = "".join(
        f"<rect x='{20 * k}' width='20' height='20' fill='rgb({r},{g},{b})'/>"
        for k, (r, g, b) in enumerate(colours)
    )
    shown = {}
    for scheme in ("light", "dark"):
        emulated = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=emulated)
        browser.open(page, 1280)
        browser.value(
            "document.querySelector('main').innerHTML = "
            f"`<figure style='padding:0'><svg width='240' height='20'>{boxes}</svg></figure>`;"
            "scrollTo(0, 0)"
        )
        x, y = browser.value(
            "(box => [box.left, box.top])(document.querySelector('figure svg')"
            ".getBoundingClientRect())"
        )
        clip = {"x": x, "y": y, "width": 240, "height": 20, "scale": 1}
        png = browser.call("Page.captureScreenshot", format="png", clip=clip)["data"]
        pixels = plt.imread(io.BytesIO(base64.b64decode(png)))[10, 10::20, :3]
        shown[scheme] = pixels @ [0.2126, 0.7152, 0.0722]
    browser.call("Emulation.setEmulatedMedia", features=[])
    for luminance in shown.values():
        assert (np.diff(luminance) < -0.005).all()
    assert shown["dark"][0] < shown["light"][0]


@pytest.mark.parametrize("page", ["varied"], indirect=True)
def test_best_and_default_order_stand_in_one_row(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    tops = browser.value(
        "[...document.querySelectorAll('.pair .first')].filter(one => one.nextElementSibling)"
        ".map(one =>"
        " [one.getBoundingClientRect().top, one.nextElementSibling.getBoundingClientRect().top])"
    )
    assert len(tops) > 0
    assert all(one == other for one, other in tops)


def test_the_look_finds_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<h2 style='margin-bottom:-50px'>one</h2><h2>two</h2><p style='font-size:9px'>small</p>"
        "<div style='width:3000px'>wide</div><img src='data:,' alt='gone'>"
        "<script>console.error('no'); missing()</script>"
    )
    browser.open(bad, 390)
    found = " ".join(browser.value(LOOK))
    for words in ("over two", "below 11 px", "sticks out", "the page is", "not loaded: gone"):
        assert words in found
    assert len(browser.complaints()) == 2
