"""Progressive adaptive routing: UGAL whose minimal decision is made again in the source group.

A router that is not the first may see the queue of the global link itself. So at every router of
the source group a packet that still goes minimally compares again, as UGAL-L does; once it has
taken the detour, or a global link, it is decided.

Source: Jiang, Kim and Dally, Indirect adaptive routing on large scale interconnection networks,
ISCA 2009 (progressive adaptive routing).
"""

from __future__ import annotations


def decided(minimally: bool, progressive: bool) -> bool:
    """Whether a packet that has compared its ways does not do so again."""
    return not (minimally and progressive)
