"""Results as notebooks show them: a small table, and the network with its links or its ranks."""

from __future__ import annotations

from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING

from hopmap.api.mapping import Placement
from hopmap.figures.mapping import mapping_view
from hopmap.figures.network import link_loads
from hopmap.figures.style import svg_text
from hopmap.simulator import Explanation, Metrics, Result
from hopmap.units import count, data, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[tuple[str, str]]


def html_of(value: object) -> str:
    """Return a table, and below it the picture as SVG if there is one."""
    rows, figure = _display(value)
    cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows)
    picture = "" if figure is None else svg_text(figure).partition("<svg")[2]
    return f"<table>{cells}</table>" + (f"<svg{picture}" if picture else "")


@singledispatch
def _display(value: object) -> tuple[Rows, Figure | None]:
    return [(type(value).__name__, repr(value))], None


@_display.register(Placement)
def _of_placement(value: Placement) -> tuple[Rows, Figure | None]:
    metrics = value.metrics()
    rows = [
        (value.name, f"{len(value)} ranks on {value.topology.spec} by {value.mapper}"),
        ("mean hops of bytes", f"{metrics.bytes.dilation.avg:.4g}"),
        ("busiest link", data(metrics.bytes.congestion.max)),
    ]
    title = f"{value.name} on {value.topology.spec}: {value.mapper}"
    mappings = {"this mapping": value.node_of}
    if value.default_order is not None:
        mappings["default order"] = value.default_order
    shown = ["this mapping"]
    return rows, mapping_view(value.topology, mappings, value.traffic, title=title, shown=shown)


@_display.register(Metrics)
def _of_metrics(value: Metrics) -> tuple[Rows, Figure | None]:
    rows = [
        (f"{value.ranks} ranks, {value.nodes} nodes", f"convention {value.convention}"),
        ("hops x bytes", count(value.bytes.dilation.sum)),
        ("mean hops of bytes", f"{value.bytes.dilation.avg:.4g}"),
        ("busiest link", data(value.bytes.congestion.max)),
        ("off-node bytes", data(value.bytes.off_node.total)),
    ]
    if value.network is None or value.link_bytes is None:
        return rows, None
    return rows, link_loads(value.network, value.link_bytes, title=value.network.spec)


@_display.register(Result)
def _of_result(value: Result) -> tuple[Rows, Figure | None]:
    rows = [
        (value.topology, f"{value.ranks} ranks, engine {value.engine}"),
        ("makespan", duration(value.makespan)),
        *([] if value.ensemble is None else [("repeated", str(value.ensemble))]),
        ("computing, mean over ranks", duration(float(value.compute.mean()))),
        ("communicating", duration(float(value.communicate.mean()))),
        ("waiting", duration(float(value.wait.mean()))),
        ("busiest link", duration(float(value.link_busy.max(initial=0.0)))),
    ]
    if value.network is None:
        return rows, None
    return rows, link_loads(value.network, value.link_bytes, title=value.topology)


@_display.register(Explanation)
def _of_explanation(value: Explanation) -> tuple[Rows, Figure | None]:
    rows, figure = _of_result(value.result)
    whole = value.result.makespan or 1.0
    rows += [
        (f"critical path: {kind}", f"{duration(seconds)}, {100 * seconds / whole:.1f} %")
        for kind, seconds in value.path.seconds.items()
        if seconds
    ]
    return rows, figure
