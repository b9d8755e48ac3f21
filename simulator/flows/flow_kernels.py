"""The event loop of the flow engine: messages are flows that share servers, max-min fair.

Events of tasks and messages are handled as in the analytic engine, see `loop_kernels`.
"""

from __future__ import annotations

from hopmap.compilation import njit, subroutine
from hopmap.simulator.heap_kernels import put, take
from hopmap.simulator.model import ARRIVE, DATA, DELIVER
from hopmap.simulator.row_pointers import nth, wide
from hopmap.simulator.task_kernels import CROWDED, ENDED, MORE, order_key

from .bottleneck_kernels import end_of, first_to_end
from .loop_kernels import deliver, handle, path_of, take_event
from .max_min_kernels import close_flow, open_flow, share
from .state import Run

# Times within this factor are one instant, for which rates are shared once. Sums of the same delays
# in another order differ by as much.
SAME_INSTANT = 1 + 1e-13


@njit
def advance_flows(run: Run, budget: int) -> int:
    """Handle up to `budget` events; say why it stopped."""
    return _advance(run, budget)  # see DECISIONS, few kinds of each kernel


@subroutine
def _advance(run: Run, budget: int) -> int:
    loop, heap, flows = run.loop, run.heap, run.flows
    first = nth(heap.entries, 0)
    groups_from = loop["tasks"] + 2 * loop["messages"]
    while True:
        # Rates are shared once an instant, when all that happens then has happened.
        if flows.counts["noted"] + flows.soiled.count["size"] > 0 and (
            heap.count["size"] == 0 or first["time"] > loop["now"] * SAME_INSTANT
        ):
            _share(run)
        if heap.count["size"] == 0:
            return ENDED
        if flows.counts["spare"] == 0:
            return CROWDED
        if budget == 0:
            return MORE
        budget -= 1
        kind, item, now = take_event(run)
        if kind == ARRIVE:
            _enter(run, item - loop["tasks"], now)
        elif kind == DELIVER and item >= groups_from:
            _end(run, nth(flows.groups, item - groups_from)["next"], now)
        else:
            handle(run, kind, item, now)


@subroutine
def _enter(run: Run, number: int, now: float) -> None:
    """Begin a flow; its latency is over."""
    message = nth(run.messages, number)
    size = message["size"] if message["cargo"] == DATA else run.loop["control_bytes"]
    begin, end, weight = path_of(run, message)
    open_flow(run.flows, begin, end, number, float(size), weight, now)


@subroutine
def _end(run: Run, slot: int, now: float) -> None:
    """End a flow: its message is there."""
    number = wide(nth(run.flows.slots, slot)["item"])
    place = wide(nth(run.flows.slots, slot)["bottleneck"])
    close_flow(run.flows, slot, now)
    _schedule_end(run, place)
    deliver(run, number, now)


@subroutine
def _share(run: Run) -> None:
    """Share the servers again, and move the ends of the flows whose rate that changed."""
    flows = run.flows
    for k in range(share(flows, run.loop["now"])):
        _schedule_end(run, nth(flows.noted, k)["place"])


@subroutine
def _schedule_end(run: Run, place: int) -> None:
    """Make the first end among the flows with one bottleneck due."""
    loop, flows = run.loop, run.flows
    item = loop["tasks"] + 2 * loop["messages"] + place
    first = first_to_end(flows, place)
    if first >= 0:
        nth(flows.groups, place)["next"] = first
        number = wide(nth(flows.slots, first)["item"])
        key = order_key(DELIVER, number, 0, loop["number_bits"], loop["packet_bits"])
        put(run.heap, item, end_of(flows, first), key)
    elif nth(run.heap.places, item)["entry"] > 0:
        take(run.heap, item)
