"""The compiled event loop, slots: free ones, linked lists of them, keys of events, and credits.

When a link begins to serve a packet among finite buffers, it is known when its tail will have left
(PASSED), and when the link before will know (CREDIT). Most often no packet waits for either, and
neither is an event then: the next access to a link first processes what has happened there
meanwhile. Only a link that a packet asks for has events, at its next chances.
"""

from __future__ import annotations

from typing import Any

from hopmap.compilation import subroutine
from hopmap.simulator.heap_kernels import push
from hopmap.simulator.model import CREDIT, PASSED
from hopmap.simulator.row_pointers import nth, wide
from hopmap.simulator.task_kernels import order_key

from .state import State


@subroutine
def take(run: State) -> int:
    """Take a free slot; `loop_kernels.RESERVE` sees to it that there is one."""
    slot = run.loop["free"]
    run.loop["free"] = nth(run.packets, slot)["next"]
    run.loop["spare"] -= 1
    return int(slot)


@subroutine
def free(run: State, slot: int) -> None:
    """Give a slot back."""
    nth(run.packets, slot)["next"] = run.loop["free"]
    run.loop["free"] = slot
    run.loop["spare"] += 1


@subroutine
def key_of(run: State, kind: int, number: int, packet: int) -> int:
    """Rank of an event, see `model.order_key`."""
    return int(order_key(kind, number, packet, run.loop["number_bits"], run.loop["packet_bits"]))


@subroutine
def append(owner: Any, items: Any, item: int) -> None:
    """Put an item at the end of a list; its owner knows the first and the last."""
    nth(items, item)["next"] = -1
    if owner["first"] < 0:
        owner["first"] = item
    else:
        nth(items, owner["last"])["next"] = item
    owner["last"] = item


@subroutine
def drop(owner: Any, items: Any) -> None:
    """Take the first item out of a list."""
    owner["first"] = nth(items, owner["first"])["next"]


@subroutine
def settle(run: State, place: int, now: float) -> None:
    """Let count what has happened at a link by now, without an event."""
    link = nth(run.limits.links, place)
    settle_tail(run, place, now)
    while link["credit"] >= 0:
        freed = nth(run.packets, link["credit"])
        if freed["leads"] or not _is_past(run, freed["tail"], CREDIT, freed["buffer"], now):
            break
        return_credit(run, place)


@subroutine(forceinline=True)
def settle_tail(run: State, place: int, now: float) -> None:
    """Likewise of the packet that a link serves."""
    link = nth(run.limits.links, place)
    if link["serves"] >= 0 and not link["due"] and _is_past(run, link["end"], PASSED, place, now):
        nth(run.limits.buffers, link["serves"])["by"] = -1
        link["serves"] = -1


@subroutine
def _is_past(run: State, at: float, kind: int, number: int, now: float) -> bool:
    """Whether what would be an event lies before the one that is being handled.

    At one instant all of a lower key than any that has been handled does, even if it came up later.
    """
    loop = run.loop
    same = at == now and now == loop["handled_at"]
    return at < now or (same and key_of(run, kind, number, 0) < loop["handled"])


@subroutine
def note_event(run: State, kind: int, number: int, now: float) -> None:
    """Note that an event of buffers is handled."""
    loop, key = run.loop, key_of(run, kind, number, 0)
    if now > loop["handled_at"] or key > loop["handled"]:
        loop["handled_at"], loop["handled"] = now, key


@subroutine(forceinline=True)
def return_credit(run: State, place: int) -> None:
    """Add the first credit that is on its way to a link."""
    link = nth(run.limits.links, place)
    slot = wide(link["credit"])
    freed = nth(run.packets, slot)
    link["credit"] = freed["behind"]
    nth(run.limits.buffers, freed["buffer"])["credits"] += 1
    free(run, slot)


@subroutine(forceinline=True)
def send_back(run: State, number: int, at: float) -> int:
    """Let the credit for a place in a buffer come to the link before it; return its slot."""
    link = nth(run.limits.links, nth(run.limits.buffers, number)["link"])
    slot = take(run)
    freed = nth(run.packets, slot)
    freed["tail"] = at
    freed["buffer"] = number
    freed["leads"] = False
    before, behind = -1, wide(link["credit"])
    if behind >= 0 and not _is_sooner(run, at, number, wide(link["last"])):
        before, behind = wide(link["last"]), -1
    while behind >= 0 and not _is_sooner(run, at, number, behind):
        before, behind = behind, wide(nth(run.packets, behind)["behind"])
    freed["behind"] = behind
    if behind < 0:
        link["last"] = slot
    if before < 0:
        link["credit"] = slot
    else:
        nth(run.packets, before)["behind"] = slot
    return slot


@subroutine
def _is_sooner(run: State, at: float, number: int, slot: int) -> bool:
    """Whether a credit comes before another that is on its way."""
    other = nth(run.packets, slot)
    return bool(at < other["tail"] or (at == other["tail"] and number < other["buffer"]))


@subroutine
def schedule_credit(run: State, slot: int) -> None:
    """Let there be an event when a credit comes."""
    freed = nth(run.packets, slot)
    freed["leads"] = True
    push(run.heap, slot, freed["tail"], key_of(run, CREDIT, freed["buffer"], 0))


@subroutine
def schedule_passed(run: State, place: int) -> None:
    """Let there be an event when a packet's tail has left for a link."""
    link = nth(run.limits.links, place)
    if not link["due"]:
        link["due"] = True
        push(run.heap, place, link["end"], key_of(run, PASSED, place, 0))


@subroutine
def watch_out(run: State, place: int) -> None:
    """Let there be an event when a link that somebody asks for is idle or next has more room."""
    link = nth(run.limits.links, place)
    if link["serves"] >= 0:
        schedule_passed(run, place)
    elif link["credit"] >= 0 and not nth(run.packets, link["credit"])["leads"]:
        schedule_credit(run, wide(link["credit"]))
