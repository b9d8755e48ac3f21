"""Compiled walks over what tasks do, each message as if it were alone in the network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopmap.arrays import Bools, Floats, Ints, Ints8
from hopmap.compilation import njit

# What a step does. Each row of a program has two: what it does at once, and what it waits for.
NOTHING = 0
SEND = 1  # message `item`
POST = 2  # the receive of message `item`
BEGIN = 3  # task `item`
FINISH = 4
TAKE = 5  # wait for the arrival of message `item`
LEAVE = 6  # wait until message `item` has left its first server
ACKNOWLEDGE = 7  # wait for the acknowledgement of message `item`
JOIN = 8  # wait for the end of task `item`


class Steps(NamedTuple):
    """What tasks do, in an order in which nothing depends on what comes later."""

    action: Ints8
    task: Ints
    item: Ints
    pause: Floats  # seconds that the task is busy: before the step, or behind what it waits for


class Messages(NamedTuple):
    """Messages of `Steps`."""

    # pair, back: places of sender and receiver, and of receiver and sender, in `Pairs`
    pair: Ints
    back: Ints
    size: Floats  # bytes
    asks: Bools  # whether its data wait for a grant
    late: Floats  # seconds from its arrival until its target is told


class Pairs(NamedTuple):
    """Directed rank pairs under a mapping."""

    latency: Floats  # of all servers on the way
    # slowest, first: bandwidths of the slowest and of the first server on the way
    slowest: Floats
    first: Floats
    control: Floats  # seconds that a control message takes


@njit
def dependable_order(
    offsets: Ints, main: Ints, action: Ints8, item: Ints, asks: Bools, order: Ints
) -> int:
    """Write an order of steps, two a row, that can be walked; return how many can be reached.

    Task s has steps ``2 * offsets[s]`` to ``2 * offsets[s + 1] - 1``, and goes on until it waits
    for what has not been walked yet; those of `main` need not be begun.
    """
    tasks, messages = len(offsets) - 1, len(asks)
    at = 2 * offsets[:-1]
    sent, posted = np.zeros(messages, dtype=np.bool_), np.zeros(messages, dtype=np.bool_)
    ended = np.zeros(tasks, dtype=np.bool_)
    taker, sender = np.full(messages, -1), np.full(messages, -1)
    joiner = np.full(tasks, -1)
    stack, top, walked = np.empty(tasks, dtype=np.int64), len(main), 0
    stack[:top] = main
    while top > 0:
        top -= 1
        task = stack[top]
        while True:
            step = at[task]
            what, which = action[step], item[step]
            woken = -1
            if what in (SEND, POST):
                (sent if what == SEND else posted)[which] = True
                if posted[which] or not asks[which]:
                    woken, sender[which] = sender[which], -1
                    if woken >= 0:
                        stack[top] = woken
                        top += 1
                if sent[which] and posted[which]:
                    woken, taker[which] = taker[which], -1
            elif what == BEGIN:
                woken = which
            elif what in (TAKE, LEAVE, ACKNOWLEDGE):
                there = which >= 0 and sent[which]
                if there and (what != LEAVE or asks[which]):
                    there = posted[which]
                if not there:
                    if which >= 0 and what == TAKE:
                        taker[which] = task
                    elif which >= 0:
                        sender[which] = task
                    break
            elif what == JOIN and not ended[which]:
                joiner[which] = task
                break
            elif what == FINISH:
                ended[task] = True
                woken = joiner[task]
            if woken >= 0:
                stack[top] = woken
                top += 1
            order[walked] = step
            walked += 1
            if what == FINISH:
                break
            at[task] += 1
    return walked


@njit
def longest_path(steps: Steps, messages: Messages, pairs: Pairs, tasks: int) -> float:
    """When the last task ends; O(steps)."""
    now = np.zeros(tasks)
    sent, posted = np.zeros(len(messages.size)), np.zeros(len(messages.size))
    for k in range(len(steps.action)):
        action, task, x = steps.action[k], steps.task[k], steps.item[k]
        at, pause = now[task], steps.pause[k]
        if action == SEND:
            at += pause
            sent[x] = at
        elif action == POST:
            at += pause
            posted[x] = at
        elif action == BEGIN:
            at += pause
            now[x] = at
        elif action == JOIN:
            at = max(at, now[x])
        elif action in (TAKE, LEAVE, ACKNOWLEDGE):
            pair, back, size = messages.pair[x], messages.back[x], messages.size[x]
            begun = sent[x]
            if messages.asks[x]:
                begun = max(begun + pairs.control[pair], posted[x]) + pairs.control[back]
            if action == LEAVE:
                at = max(at, begun + size / pairs.first[pair])
            else:
                there = begun + pairs.latency[pair] + size / pairs.slowest[pair]
                if action == TAKE:
                    at = max(at, there + messages.late[x]) + pause
                else:
                    at = max(at, max(there, posted[x]) + pairs.control[back])
        else:
            at += pause
        now[task] = at
    return now.max() if tasks else 0.0
