"""Blocks up and down Bine trees, and the algorithms of the authors' library for clusters.

Source: HLC-Lab/bine_trees_fugaku, lib/libbine_coll_gather.cc, _scatter.cc, _reduce.cc, _bcast.cc;
what `dims`, `ports` and `puts` mean is in `trees.py`. For clusters (whole messages, ranges, even
numbers): libbine/libbine_OPERATION.c and libbine_utils.h in HLC-Lab/pico, with the partners and
trees of `trees.py` in one dimension. `bine_any_even` takes any even number of members: they have
partners as they are, and which block goes in which step is read off the digits of its distance to
base -2.
"""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints
from hopmap.simulator.collectives.schedules import (
    Done,
    Schedule,
    cut,
    edges,
    equal_blocks,
    one_after_another,
    require,
    rotate,
    schedule,
    work,
)

from .trees import (
    Dims,
    announce_to_all,
    by_port,
    doubling,
    gather_blocks,
    halving,
    order_of_reach,
    post_early,
    scatter_blocks,
    tree_down,
    tree_from,
    ways,
    with_copies,
)


def bine_reduce_then_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Halve, nearest first, then gather along the tree: REDUCE_SCATTER_GATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), equal_blocks(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(halving(way, blocks, puts=puts), gather_blocks(tree, blocks))

    return post_early(by_port(ports, volume[:1], of), puts, announce_to_all(members, ports))


def bine_scatter_then_allgather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Scatter along the tree, then exchange what is held: SCATTER_ALLGATHER."""

    def of(port: int, part: Ints) -> Schedule:
        way, blocks = ways(members, dims, port), equal_blocks(int(part[0]), members)
        tree = tree_from(root, way, nearest_first=True)
        return one_after_another(scatter_blocks(tree, blocks), doubling(way, blocks))

    return post_early(by_port(ports, volume[:1], of), puts, announce_to_all(members, ports))


def bine_gather(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: gather CONT_PERMUTE-DEC."""
    return _gather(members, root, volume, dims, ports, puts, nearest_first=True)


def bine_gather_increasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: gather CONT_PERMUTE-INC."""
    return _gather(members, root, volume, dims, ports, puts, nearest_first=False)


def _gather(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, puts: int, nearest_first: bool
) -> Schedule:
    me = np.arange(members)

    def of(port: int, part: Ints) -> Schedule:
        return gather_blocks(tree_from(root, ways(members, dims, port), nearest_first), part)

    around = post_early(by_port(ports, volume, of), puts)
    return with_copies(
        around,
        [(-1, me, volume), (around.steps, np.array([root]), volume.sum(keepdims=True))],
        [(around.steps, np.array([root]), np.array([members]))],
    )


def bine_scatter(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, nearest first, blocks put into order by the root: scatter CONT_PERMUTE-INC."""
    return _scatter(members, root, volume, dims, ports, puts, nearest_first=True)


def bine_scatter_decreasing(
    members: int, root: int, volume: Ints, /, *, dims: Dims = (), ports: int = 1, puts: int = 0
) -> Schedule:
    """Bine tree, farthest first, blocks put into order by the root: scatter CONT_PERMUTE-DEC."""
    return _scatter(members, root, volume, dims, ports, puts, nearest_first=False)


def _scatter(
    members: int, root: int, volume: Ints, dims: Dims, ports: int, puts: int, nearest_first: bool
) -> Schedule:
    me = np.arange(members)

    def of(port: int, part: Ints) -> Schedule:
        return scatter_blocks(tree_from(root, ways(members, dims, port), nearest_first), part)

    around = post_early(by_port(ports, volume, of), puts)
    return with_copies(
        around,
        [(-1, np.array([root]), volume.sum(keepdims=True)), (around.steps, me, volume)],
        [(-1, np.array([root]), np.array([members]))],
    )


def bine_gather_ranges(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree of one dimension, nearest first, blocks in order all the way: bine_gather_mpi.

    What a member has is a range of blocks; one that passes the last member goes in two messages.
    """
    child, parent, reached, size = _ranges(members, root, volume)
    step = 2 * (reached.max(initial=-1) - reached)
    own = work([(-1, np.arange(members), np.roll(volume, -root))])
    return rotate(_in_two(step, child, parent, size)._replace(work=own), members, root)


def bine_scatter_ranges(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree of one dimension, farthest first, blocks in order all the way: bine_scatter_mpi.

    The other way round than `bine_gather_ranges`; who has no children does not copy its block.
    """
    child, parent, reached, size = _ranges(members, root, volume)
    inner = np.unique(np.append(parent, 0))
    plan = _in_two(2 * reached, parent, child, size)
    own = work([(plan.steps, inner, np.roll(volume, -root)[inner])])
    return rotate(plan._replace(work=own), members, root)


def _ranges(members: int, root: int, volume: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """All members but the root, which is 0, their parents, steps, and bytes of their subtrees.

    Bytes have shape (2, members - 1): of what ends with the last member's block at the latest, and
    of what goes on with the first's, -1 where nothing does.
    """
    tree = tree_from(0, ways(members), nearest_first=False)
    child = order_of_reach(tree)
    parent = tree.parent[child]
    low, high = np.arange(members), np.arange(members)
    for one, above in zip(child[::-1].tolist(), parent[::-1].tolist(), strict=True):
        if above:
            low[above], high[above] = min(low[above], low[one]), max(high[above], high[one])
    before = edges(volume)
    begin = (low[child] + root) % members
    end = begin + high[child] - low[child] + 1
    beyond = np.where(end > members, before[np.maximum(end - members, 0)], -1)
    return (
        child,
        parent,
        tree.reached[child],
        np.stack((before[np.minimum(end, members)] - before[begin], beyond)),
    )


def _in_two(step: Ints, src: Ints, dst: Ints, size: Ints) -> Schedule:
    """Send the first parts in these steps, and where there is a second, that in the next."""
    there = size >= 0
    number = np.stack((step, step + 1))[there]
    src, dst = (np.stack((each, each))[there] for each in (src, dst))
    return Schedule(number, src, dst, size[there], number, number, work())


def bine_bcast_at_once(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree, farthest first, whole to all children at once: bine_lat_reversed, _lat_i_new."""
    return tree_down(tree_from(root, ways(members), nearest_first=False), volume[:1])


def bine_scatter_allgather_once(members: int, root: int, volume: Ints, /) -> Schedule:
    """Scatter along the tree, then exchange what the partner lacks: bcast_bine_bdw_static."""
    return _scatter_and_exchange(members, root, volume, one_by_one=False)


def bine_scatter_allgather_blocking(members: int, root: int, volume: Ints, /) -> Schedule:
    """As above, the scatter to child after child: bcast_bine_bdw_remap."""
    return _scatter_and_exchange(members, root, volume, one_by_one=True)


def _scatter_and_exchange(members: int, root: int, volume: Ints, *, one_by_one: bool) -> Schedule:
    way, blocks = ways(members), cut(int(volume[0]), members)
    tree = tree_from(root, way, nearest_first=True)
    down = scatter_blocks(tree, blocks)
    if one_by_one:
        now = tree.reached[down.dst]
        down = down._replace(round=now, posted=now, taken=now)
    has = 1 << (len(way) - 1 - tree.reached)  # blocks of each member's part
    me = np.arange(members)
    rounds, held = [], blocks
    for k, partner in enumerate(way[::-1]):
        lacks = me[(1 << k) >= has[partner]]
        rounds.append((lacks, partner[lacks], held[lacks]))
        held = held + held[partner]
    return one_after_another(down, schedule(rounds))


def bine_reduce_whole(members: int, root: int, volume: Ints, /) -> Schedule:
    """Bine tree towards the root, nearest first, whole buffers: reduce_bine_lat."""
    tree = tree_from(root, ways(members), nearest_first=False)
    child = order_of_reach(tree)[::-1]
    step, size = tree.reached.max(initial=0) - tree.reached[child], volume[0] + 0 * child
    parent = tree.parent[child]
    adding = work([(-1, np.arange(members), volume[:1])], [(step, parent, size)])
    return Schedule(step, child, parent, size, step, step, adding)


def bine_reduce_scatter_gather_copied(members: int, root: int, volume: Ints, /) -> Schedule:
    """Copy the buffer, halve, nearest first, then gather along the tree: reduce_bine_bdw."""
    plan = bine_reduce_then_gather(members, root, volume)
    return with_copies(plan, [(-1, np.arange(members), volume[:1])])


def bine_allgather_joined(members: int, _root: int, volume: Ints, /) -> Schedule:
    """As by ranges, what wraps packed, in one message: allgather_bine_2_blocks_dtype."""
    me, way = np.arange(members), ways(members)
    before, first, held = edges(volume), me.copy(), volume
    rounds, copied = [], [(-1, me, volume)]
    for k, partner in enumerate(way):
        mask = 1 << k
        wraps = me[first + mask > members]
        rounds.append((me, partner, held))
        copied += [(k - 1, wraps, held[wraps]), (k, partner[wraps], held[wraps])]
        first = np.where(k % 2 == me % 2, first, (first - mask) % members)
        end = first + 2 * mask
        held = before[np.minimum(end, members)] - before[first]
        held = held + before[np.maximum(end - members, 0)]
    return schedule(rounds, copied)


def bine_reduce_scatter_sending(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Halve, nearest first, then send every block to its member: reduce_scatter send_remap."""
    me, way = np.arange(members), ways(members)
    place = tree_from(0, way, nearest_first=True).place
    moves, stays = me[place != me], me[place == me]
    last = schedule([(moves, place[moves], volume[place[moves]])], [(0, stays, volume[stays])])
    both = one_after_another(halving(way, volume[place]), last)
    return with_copies(both, [(-1, me, volume.sum(keepdims=True))])


def bine_allgather_any_even(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Exchange block after block, farthest partner first: block_by_block_any_even."""
    me = np.arange(members)
    rounds = []
    for partner, away in reversed(_by_distance(members)):
        src, block = _blocks(partner, away)  # whose blocks come to a member: its partner's
        rounds.append((src, partner[src], volume[block]))
    return schedule(rounds, [(-1, me, volume)])


def bine_reduce_scatter_any_even(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Send block after block to be added, nearest partner first: block_by_block(_any_even)."""
    rounds: list[tuple[Ints, Ints, Ints]] = []
    reduced: list[Done] = []
    for k, (partner, away) in enumerate(_by_distance(members)):
        dst, block = _blocks(partner, away)  # the way back of the allgather
        rounds.append((partner[dst], dst, volume[block]))
        reduced.append((k, dst, volume[block]))
    copied: list[Done] = [(-1, np.arange(members), volume.sum(keepdims=True))]
    return schedule(rounds, copied, reduced)


def bine_allreduce_any_even(members: int, _root: int, volume: Ints, /) -> Schedule:
    """Reduce-scatter, then allgather, block after block: block_by_block_any_even."""
    blocks = cut(int(volume[0]), members)
    return one_after_another(
        bine_reduce_scatter_any_even(members, 0, blocks),
        bine_allgather_any_even(members, 0, blocks)._replace(work=work()),
    )


def _blocks(partner: Ints, away: Ints) -> tuple[Ints, Ints]:
    """Members, each as often as it has blocks for its partner, and these blocks.

    An even member's partner gets what lies so far behind the partner, an odd one's what lies so far
    before it.
    """
    me = np.arange(len(partner))
    way = np.where(me % 2 == 0, -1, 1)[:, None] * away[None, :]
    return np.repeat(me, len(away)), ((partner[:, None] + way) % len(partner)).ravel()


def _by_distance(members: int) -> list[tuple[Ints, Ints]]:
    """Partners, nearest first, and the distances of the blocks that go with them."""
    require(members % 2 == 0 or members == 1, "bine_any_even", members, "an even number")
    me, steps = np.arange(members), (members - 1).bit_length()
    low = -sum(1 << k for k in range(1, steps, 2))  # least and greatest number of so many digits
    high = sum(1 << k for k in range(0, steps, 2))
    distance = np.arange(1, members)
    nearest = np.full(members - 1, 1 << steps)
    signed = np.where(distance % 2 == 1, distance, -distance)
    for number in (signed, signed - np.sign(signed) * members):
        digits = (0xAAAAAAAA + number) ^ 0xAAAAAAAA
        gray = digits ^ digits >> 1
        mirrored = sum((gray >> k & 1) << (steps - 1 - k) for k in range(steps))
        fits = (low <= number) & (number <= high)
        nearest = np.where(fits, np.minimum(nearest, mirrored), nearest)
    top = np.floor(np.log2(nearest)).astype(np.int64)
    return [
        (
            (me + (1 - (-2) ** (k + 1)) // 3 * (1 - 2 * (me % 2))) % members,
            distance[top == steps - 1 - k],
        )
        for k in range(steps)
    ]
