"""The explorer in a browser: pointer, click, slider and keys, by what the page says then."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hopmap as hm
from hopmap.simulator.run_plan import server_name
from hopmap.view.explorer import explore
from hopmap.view.units import levels_of
from support.browser import BINARY, LOOK, Browser

from .conftest import STRANGE

pytestmark = pytest.mark.skipif(BINARY is None, reason="no chromium on this machine")

DRAWN = "new Promise(done => { const look = () => { const at = document.documentElement.dataset"
DRAWN += ".drawn; if (at) done(+at); else setTimeout(look, 20); }; look(); })"
# Move the pointer over a canvas, line by line, and collect where the page says something else.
SCAN = """(() => {
  const canvas = document.querySelector("#links"), box = canvas.getBoundingClientRect();
  const found = {}, say = document.querySelector("#say-network");
  for (let y = 1; y < box.height; y += 3) for (let x = 1; x < box.width; x += 3) {
    canvas.dispatchEvent(new PointerEvent("pointermove",
      { clientX: box.left + x, clientY: box.top + y }));
    (found[say.textContent] ??= []).push([x / box.width, y / box.height]);
  }
  for (const text in found) found[text] = found[text][Math.floor(found[text].length / 2)];
  return found;
})()"""
# Cells of the second matrix that have another colour than its ground, rows and columns.
INKED = """(() => {
  const c = document.querySelector("#matrix-1"), cells = [];
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--low").trim();
  const copy = new OffscreenCanvas(c.width, c.height);
  const g = copy.getContext("2d", { willReadFrequently: true });
  g.drawImage(c, 0, 0);
  const { data } = g.getImageData(0, 0, c.width, c.height);
  for (let r = 0; r < 16; r++) for (let k = 0; k < 16; k++) {
    const at = Math.floor((r + .5) / 16 * c.height) * c.width + Math.floor((k + .5) / 16 * c.width);
    const hex = [...data.slice(4 * at, 4 * at + 3)].map(v => v.toString(16).padStart(2, "0"));
    if (`#${hex.join("")}` !== ground) cells.push([r, k]);
  }
  return cells;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def page(browser, case, tmp_path):
    """The page of a case, opened; the browser, the network, and the run that is shown."""
    _, machine, _, found = case
    found.write(tmp_path / "page.html")
    browser.open(tmp_path / "page.html", 1280)
    browser.value(DRAWN)
    yield browser, machine.network, found.runs[-1]
    assert browser.complaints() == []


def name_of(network, link):
    return server_name(network, link).place.replace("->", "→")


def busiest(run):
    return np.argsort(-run.result.link_busy, kind="stable")


def pairs_over(network, run, link):
    """Rank pairs whose messages cross a link, and their bytes, walked route by route."""
    traffic = run.result.program.traffic()
    found = {}
    for src, dst, size in zip(traffic.src, traffic.dst, traffic.bytes, strict=True):
        _, route = network.routes(run.node_of[src], run.node_of[dst])
        if size and link in route:
            found[int(src), int(dst)] = int(size)
    return found


def number_in(text):
    """Read bytes as the page writes them: three digits."""
    value, unit = re.match(r"([\d.e+]+) (\w+)", text).groups()
    return float(value) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]


def test_the_pointer_on_a_link_says_name_bytes_use_and_pairs(page):
    browser, network, run = page
    found = browser.value(SCAN)
    said = {text.split(" (")[0]: text for text in found}
    link = next(link for link in busiest(run).tolist() if name_of(network, link) in said)
    text = said[name_of(network, link)]
    browser.point("#links", *found[text])  # the mouse, too
    assert browser.text("#say-network") == text
    kind = server_name(network, link).kind
    assert f"({kind}" in text
    load, busy = re.search(r"\): (.+?), busy ([\d.]+) % of the run", text).groups()
    assert number_in(load) == pytest.approx(run.result.link_bytes[link], rel=0.005)
    share = 100 * run.result.link_busy[link] / run.result.makespan
    assert float(busy) == pytest.approx(share, rel=0.06)
    pairs = pairs_over(network, run, link)
    number, heaviest = re.search(r"; (\d+) rank pairs?, heaviest (\d+>\d+)", text).groups()
    assert int(number) == len(pairs)
    assert pairs[tuple(map(int, heaviest.split(">")))] == max(pairs.values())


def test_a_node_of_a_plan_says_its_ranks_and_matrices_say_their_ends(page, case):
    browser, network, run = page
    assert browser.text("#senders-0") == browser.text("#receivers-0").replace("receiv", "send")
    browser.value("document.querySelector('#order').value = 'rank'")
    browser.value("document.querySelector('#order').dispatchEvent(new Event('change'))")
    assert browser.text("#senders-1") == "rank 0sendersrank 15"
    if case[0] == "dragonfly":  # is a matrix
        return
    found = {text for text in browser.value(SCAN) if text.startswith("node ")}
    ranks = dict(zip(run.node_of.tolist(), range(16), strict=True))
    assert found == {f"node {v}: rank {ranks[v]}" for v in range(network.nodes)}


@pytest.mark.slow
def test_every_link_of_a_plan_can_be_pointed_at(page, case):
    browser, network, _ = page
    said = {text.split(" (")[0] for text in browser.value(SCAN)}
    names = {name_of(network, link) for link in range(network.links)}
    if case[0] == "dragonfly":  # cells of groups say their busiest link
        assert len(said & names) >= 33
    else:
        assert len(names - said) <= 0.1 * len(names), names - said


def test_a_click_on_a_link_leaves_its_pairs_in_the_matrix_and_escape_brings_all_back(page):
    browser, network, run = page
    found = {text.split(" (")[0]: at for text, at in browser.value(SCAN).items()}
    link = next(link for link in busiest(run).tolist() if name_of(network, link) in found)
    browser.value("document.querySelector('#order').value = 'rank'")
    browser.value("document.querySelector('#order').dispatchEvent(new Event('change'))")
    traffic = run.result.program.traffic()
    sends = traffic.bytes > 0
    every = set(zip(traffic.src[sends].tolist(), traffic.dst[sends].tolist(), strict=True))
    assert {tuple(cell) for cell in browser.value(INKED)} == every
    browser.click("#links", *found[name_of(network, link)])
    pairs = pairs_over(network, run, link)
    assert {tuple(cell) for cell in browser.value(INKED)} == pairs.keys()
    text = browser.text("#filter")
    assert text.startswith(f"Over {name_of(network, link)}: ")
    number, size = re.search(r"; (\d+) rank pairs?, (.+) by random", text).groups()
    assert int(number) == len(pairs)
    assert number_in(size) == pytest.approx(sum(pairs.values()), rel=0.005)
    browser.press("Escape")
    assert browser.text("#filter") == ""
    assert {tuple(cell) for cell in browser.value(INKED)} == every


def test_the_slider_moves_time_on_links_and_on_the_timeline(page):
    browser, _, run = page
    use = run.result.link_use
    longest = browser.value("document.querySelector('#span').lastChild.textContent")  # of both runs
    assert browser.text("#now") == "whole run"
    browser.focus("#time")
    at = int(np.argmax(use.busy.sum(axis=0))) + 1
    browser.press(*["ArrowRight"] * at)
    assert browser.value("+document.querySelector('#time').value") == at
    first = seconds_in(browser.text("#now").split(" to ")[0])
    assert first == pytest.approx((at - 1) * use.width, rel=1e-3, abs=1e-12)
    # the busiest link of this time is the first of the list, with its share of the time
    share = use.fraction[:, at - 1]
    listed = browser.text("#busiest button")
    assert float(re.search(r": ([\d.]+) %", listed)[1]) == pytest.approx(
        100 * np.ceil(255 * share.max()) / 255, rel=0.06
    )
    # and the timeline is marked from there
    marked = browser.value("""(() => { const c = document.querySelector('#timeline');
        const row = c.getContext('2d').getImageData(0, c.height - 1, c.width, 1).data;
        const at = []; for (let x = 0; x < c.width; x++) {
            const [r, g, b] = row.slice(4 * x, 4 * x + 3);
            if (r === 0 && g === 96 && b === 160) at.push(x / c.width); } return at; })()""")
    assert marked
    assert marked[0] == pytest.approx((at - 1) * use.width / seconds_in(longest), abs=0.004)


def seconds_in(text):
    value, unit = text.split(" ")
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


@pytest.mark.slow
def test_keys_walk_through_links_and_choose_one(page):
    browser, network, run = page
    browser.focus("#links")
    browser.press("ArrowRight")
    names = [name_of(network, link) for link in busiest(run)[:4].tolist()]
    said = browser.text("#say-network")
    assert said.split(" (")[0] in names  # links may be equally busy
    browser.press("Enter")
    assert browser.text("#filter").startswith(f"Over {said.split(' (')[0]}: ")
    browser.press("ArrowRight")
    assert browser.text("#say-network") != said
    browser.click("#clear")
    assert browser.text("#filter") == ""


def test_keys_move_time_and_rank_on_the_timeline(page):
    browser, _, run = page
    browser.focus("#timeline")
    browser.press("ArrowRight", "ArrowRight")
    assert browser.value("+document.querySelector('#time').value") == 2
    first = browser.text("#say-ranks")
    browser.press("ArrowDown")
    second = browser.text("#say-ranks")
    ranks = [int(re.match(r"rank (\d+), node (\d+)", text)[1]) for text in (first, second)]
    assert ranks[0] != ranks[1]
    for text, rank in zip((first, second), ranks, strict=True):
        assert f"node {run.node_of[rank]}," in text
        assert "; critical path at rank " in text
    browser.click("#timeline", 0.5, 0.5)
    time = seconds_in(browser.text("#say-ranks").split(", at ")[1].split(":")[0])
    now = [seconds_in(part) for part in browser.text("#now").split(" to ")]
    assert now[0] <= time * 1.001
    assert time <= now[1] * 1.001


@pytest.mark.slow
def test_what_a_rank_does_is_what_the_replay_says(page):
    browser, _, run = page
    result = run.result
    browser.point("#timeline", 0.3, 0.5)
    text = browser.text("#say-ranks")
    rank = int(re.match(r"rank (\d+)", text)[1])
    time = seconds_in(text.split(", at ")[1].split(":")[0])
    does = text.split(": ")[1].split(";")[0]
    assert does in run.content["states"]
    state = np.asarray(run.content["state"]).reshape(result.ranks, -1)
    at = int(time / result.makespan * state.shape[1])
    near = state[rank, max(0, at - 2) : at + 3]  # the page says four digits of the time
    assert does in [run.content["states"][k] for k in near.tolist()]


@pytest.mark.slow
def test_keys_walk_through_cells_of_the_matrix_and_zoom(page):
    browser, _, run = page
    traffic = run.result.program.traffic()
    browser.value("document.querySelector('#order').value = 'rank'")
    browser.value("document.querySelector('#order').dispatchEvent(new Event('change'))")
    source, target = next(
        (int(s), int(d))
        for s, d, b in zip(traffic.src, traffic.dst, traffic.bytes, strict=True)
        if b and s
    )
    browser.focus("#matrix-1")
    browser.press(*["ArrowDown"] * source, *["ArrowRight"] * target)
    text = browser.text("#say-matrix")
    assert f"rank {source}, node {run.node_of[source]} to rank {target}, node" in text
    here = traffic.bytes[(traffic.src == source) & (traffic.dst == target)]
    assert number_in(text.rsplit(": ", 1)[1]) == pytest.approx(here[0], rel=0.005)
    whole = browser.value("document.querySelector('#matrix-0').toDataURL()")
    browser.press("+")
    assert browser.value("document.querySelector('#matrix-0').toDataURL()") != whole  # both zoom
    browser.press("0")
    assert browser.value("document.querySelector('#matrix-0').toDataURL()") == whole


@pytest.mark.slow
def test_ranks_are_ordered_by_unit_and_the_bytes_that_leave_it_are_named(page):
    browser, network, run = page
    traffic = run.result.program.traffic()
    sends = traffic.bytes > 0
    for level in levels_of(network):
        unit, left = level.name, run.content["leaving"][level.name]
        place = np.argsort(np.lexsort((np.arange(16), level.of_node[run.node_of])))
        browser.value(f"document.querySelector('#order').value = 'by {unit}'")
        browser.value("document.querySelector('#order').dispatchEvent(new Event('change'))")
        text = browser.text("#leaving-1")
        assert number_in(text) == pytest.approx(left, rel=0.005)
        assert f"leave their {unit}: " in text
        cells = place[traffic.src[sends]].tolist(), place[traffic.dst[sends]].tolist()
        assert {tuple(cell) for cell in browser.value(INKED)} == set(zip(*cells, strict=True))


@pytest.mark.slow
def test_one_row_for_a_unit_adds_its_ranks_up(page):
    browser, _, run = page
    unit = list(run.content["leaving"])[-1]
    browser.value(f"document.querySelector('#order').value = '{unit}'")
    browser.value("document.querySelector('#order').dispatchEvent(new Event('change'))")
    browser.point("#matrix-1", 0.01, 0.01)
    text = browser.text("#say-matrix")
    assert re.search(rf"random: {unit} \d+ to {unit} \d+: ", text), text
    browser.point("#timeline", 0.2, 0.01)
    assert browser.text("#say-ranks").startswith(f"{unit} ")


@pytest.mark.slow
def test_the_run_can_be_changed(page):
    browser, _, _ = page
    before = browser.text("#busiest")
    browser.click("input[name=run][value='0']")
    assert browser.text("#busiest") != before


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_overlaps_or_is_too_small(page, width, scheme, tmp_path):
    browser, _, _ = page
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=feature)
    browser.open(tmp_path / "page.html", width)
    browser.value(DRAWN)
    assert browser.value(LOOK) == []
    browser.call("Emulation.setEmulatedMedia", features=[])


@pytest.mark.slow
@pytest.mark.parametrize("name", STRANGE)
def test_runs_without_messages_time_or_bytes_are_drawn(browser, name, tmp_path):
    workload, machine, mapping = STRANGE[name]
    explore(workload, machine, np.asarray(mapping)).write(tmp_path / "page.html")
    browser.open(tmp_path / "page.html", 1280)
    browser.value(DRAWN)
    for canvas in ("#links", "#timeline", "#matrix-0"):
        browser.point(canvas, 0.4, 0.4)
        browser.focus(canvas)
        browser.press("ArrowRight", "+", "ArrowDown", "Enter", "0")
    browser.click("#play")
    browser.click("#play")
    assert browser.complaints() == []


def outlined(browser):
    """Count the pixels of the outline around the link that keys have moved to."""
    return browser.value("""(() => {
        const c = document.querySelector('#links'), copy = new OffscreenCanvas(c.width, c.height);
        const g = copy.getContext('2d', { willReadFrequently: true });
        g.drawImage(c, 0, 0);
        const { data } = g.getImageData(0, 0, c.width, c.height);
        let found = 0;
        for (let k = 0; k < data.length; k += 4) {
            if (data[k] < 20 && data[k + 1] > 80 && data[k + 1] < 110 && data[k + 2] > 140) found++;
        }
        return found;
    })()""")


@pytest.mark.slow
def test_a_page_of_4096_ranks_is_small_and_drawn_soon(browser, tmp_path):
    """Measured on two busy cores: 1.9 MB, drawn after 0.8 s."""
    spec, trace = "torus:16x16x16", "stencil:16x16x16,7pt,bytes=20000"
    found = explore(trace, spec, hm.map_ranks(trace, spec, "random"))
    found.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 6e6
    drawn = []
    for _ in range(3):  # others may be busy on this machine
        browser.open(tmp_path / "page.html", 1280)
        drawn.append(browser.value(DRAWN))
    assert min(drawn) < 2000
    browser.focus("#links")
    browser.press("+", "+", "+", "ArrowRight", "Enter")
    assert "rank pair" in browser.text("#say-network")
    ring = outlined(browser)  # the link is moved into sight
    assert ring > 50
    browser.press("0", "Escape")
    assert 0 < outlined(browser) < ring
