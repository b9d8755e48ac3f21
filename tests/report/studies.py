"""A study made by hand, as `hopmap run` leaves it, and its page, read strictly."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic
from hopmap.traces.formats.files import save_traffic

VOID = {"wbr", "meta", "link", "img", "area", "br", "hr", "input"}


def grid_traffic(px: int, py: int, messages: int = 100, size: int = 1000) -> Traffic:
    """Traffic between the neighbours of a px x py grid of ranks."""
    rank = np.arange(px * py).reshape(py, px)
    src = np.concatenate((rank[:, 1:].ravel(), rank[:, :-1].ravel(), rank[1:].ravel()))
    dst = np.concatenate((rank[:, :-1].ravel(), rank[:, 1:].ravel(), rank[:-1].ravel()))
    number = np.full(len(src), messages)
    return Traffic.from_pairs(px * py, src, dst, number, number * size)


def row_of(
    traffic: Traffic, trace: str, spec: str, mapper: str, seed: int, *, replay: bool = True
) -> dict[str, Any]:
    """One run as the store keeps it, measured here by the definitions."""
    topology = topology_from_spec(spec)
    rng = np.random.default_rng(seed)
    node_of = np.arange(traffic.ranks)
    if mapper == "fold":  # a grid of 8 x 4 ranks, folded into 4 x 4 x 2 nodes
        column, line = node_of % 8, node_of // 8
        upper = column > 3
        node_of = np.where(upper, 7 - column, column) + 4 * line + 16 * upper
    elif mapper != "sweep":
        node_of = rng.permutation(topology.nodes)[: traffic.ranks]
    u, v = node_of[traffic.src], node_of[traffic.dst]
    hops = topology.distance(u, v)
    row: dict[str, Any] = {
        "run_id": f"{abs(hash((trace, spec, mapper, seed))):016x}",
        "trace": trace,
        "topology": spec,
        "mapper": mapper,
        "seed": seed,
        "ranks": traffic.ranks,
        "nodes": topology.nodes,
        "mapping_seconds": 0.001 * (1 + seed),
        "node_of": node_of.astype(np.int32),
    }
    for quantity, weight in (("messages", traffic.messages), ("bytes", traffic.bytes)):
        load = topology.loads(u, v, weight)
        used = load[load > 0]
        row |= {
            f"hop_{quantity}": int((hops * weight).sum()),
            f"{quantity}_ienpc_total": int(used.sum()),
            f"{quantity}_ienpc_avg": float(used.mean()),
            f"{quantity}_ienpc_min": int(used.min()),
            f"{quantity}_ienpc_max": int(used.max()),
            f"{quantity}_ieplc_total": int(weight.sum()),
            f"{quantity}_dilation_avg": float((hops * weight).sum() / weight.sum()),
            f"{quantity}_dilation_max": int(hops.max()),
            f"{quantity}_congestion_max": int(used.max()),
        }
        for part in ("total", "avg", "min", "max"):
            row[f"maplib_{quantity}_ienpc_{part}"] = int(row[f"{quantity}_ienpc_{part}"]) + 1
    if replay:
        busy = row["bytes_congestion_max"] / 1e8
        row |= {
            "engine": "simpy",
            "makespan": 0.01 + busy,
            "compute": 0.008,
            "communicate": 0.001,
            "wait": busy / 2,
            "replay_seconds": 1.0,
            "events": 1000,
        }
    return row


def make_study(
    folder: Path,
    *,
    traces: dict[str, Traffic] | None = None,
    topologies: Sequence[str] = ("mesh:4x4x2", "torus:4x4x2", "haec:4x4x2"),
    mappers: Sequence[str] = ("sweep", "fold", "random"),
    seeds: Sequence[int] = (0, 1),
    replay: bool = True,
    failed: Sequence[str] = (),
    name: str = "a small study",
    published: str | None = None,
    links: bool = True,
) -> list[dict[str, Any]]:
    """Fill a folder as `hopmap run` does; `failed` are errors of further runs."""
    for part in ("runs", "links", "traffic"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    rows = []
    for trace, traffic in (traces or {"grid.8x4": grid_traffic(8, 4)}).items():
        save_traffic(store.traffic_path(folder, trace), traffic)
        for spec in topologies:
            topology = topology_from_spec(spec)
            for mapper in mappers:
                for seed in seeds if mapper != "sweep" else seeds[:1]:
                    row = row_of(traffic, trace, spec, mapper, seed, replay=replay)
                    rows.append(row)
                    store.save_run(folder, row)
                    if not links:
                        continue
                    u, v = row["node_of"][traffic.src], row["node_of"][traffic.dst]
                    store.save_links(
                        folder,
                        row["run_id"],
                        topology,
                        topology.loads(u, v, traffic.messages),
                        topology.loads(u, v, traffic.bytes),
                    )
    for place, error in enumerate(failed):
        row = {"run_id": f"bad{place}", "trace": "grid.8x4", "topology": "mesh:4x4x2"}
        row |= {"mapper": "broken", "seed": 3, "error": error}
        rows.append(row)
        store.save_run(folder, row)
    save_plan(folder, Plan(runs=[row["run_id"] for row in rows]))
    text = f'name = "{name}"\ntraces = ["x"]\n[parameters]\n"link.latency" = "50 ns"\n'
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    if published is not None:
        (folder / "published.csv").write_text(published, encoding="utf-8")
    return rows


class Page(HTMLParser):
    """Tags that are open, ids, captions of pictures and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.pictures: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.pictures += [given["aria-label"] or ""] if given.get("role") == "img" else []
        self.links += [given["href"] or ""] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.text += data


def page_of(folder: Path) -> Page:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert len(text) < 5_000_000
    assert "http" not in text
    page = Page(text)
    inside = [link for link in page.links if link.startswith(("#", "data:"))]
    assert all((folder / link).exists() for link in page.links if link not in inside)
    assert {link[1:] for link in inside if link[0] == "#"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    return page
