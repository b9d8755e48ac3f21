"""What engines write down while they run, if asked to: times of messages and of operations."""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """What to write down.

    Attributes
    ----------
    messages, operations : bool
        Times of messages (`MessageTimestamps`), and of operations (`OperationTimestamps`).
    bins : int
        In how many bins at most to keep the use of links over time, see `link_use.py`; 0: not.
    """

    messages: bool = False
    operations: bool = False
    bins: int = 0


NOTHING = Record()


class MessageTimestamps(NamedTuple):
    """Times of each message, shape (messages,) if they are kept; NaN of what did not happen.

    Attributes
    ----------
    sent : ndarray(float64)
        The sender posted it.
    requested, granted : ndarray(float64)
        Its request reached the target's node, and its grant the source's; NaN of eager ones.
    departed : ndarray(float64)
        Its data were handed to the first server.
    delivered : ndarray(float64)
        Its last byte reached the target's node.
    """

    sent: Any
    requested: Any
    granted: Any
    departed: Any
    delivered: Any


class OperationTimestamps(NamedTuple):
    """Times of each operation, strand after strand in the order in which they ran, loops unrolled.

    Attributes
    ----------
    ready : ndarray(float64)
        The computation before it was over.
    woken : ndarray(float64)
        What it had to wait for was complete; NaN where it had not to wait.
    ended : ndarray(float64)
        The strand went on; the next operation begins then.
    """

    ready: Any
    woken: Any
    ended: Any
