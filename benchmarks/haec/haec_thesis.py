"""Figures of the HAEC thesis outside its tables: ``python benchmarks/haec/haec_thesis.py``.

    python benchmarks/haec/haec_thesis.py [totals] [pairs] [minmd] [seeds] [--seeds N]

- totals: messages of the NAS benchmarks, published and ours.
- pairs: Table A.1 in hops of pairs of ranks, published and by true routes, and section 2.6's
  congestion in pairs, which the thesis has no figures of.
- minmd: the printed Algorithm 2, which the thesis did not run, and the thesis' figures.
- seeds: with how many of N seeds (12) Bokhari's mapper gives the published row of Table A.1, and
  what it gives on 512 ranks.

All by default. Tables A.1 to A.3 are `hopmap run thesis_a1` and so on, 4.1 is thesis_times.py.

Source: Besmer, Process-to-Node Mapping Strategies for the HAEC Box, University of Basel, 2016.
"""

from __future__ import annotations

import csv
import sys
from itertools import pairwise
from typing import NamedTuple

from hopmap import evaluate, map_ranks
from hopmap.scenarios.sweep import SHIPPED
from hopmap.topologies import topology_from_spec
from hopmap.traces import Traffic, nas_traffic

NETWORKS = ("mesh", "torus", "haec")
SEARCHED = ("genetic", "random_sampling")
PER_PAIR = {"C": 80_829, "D": 245_021}  # messages of a pair of LU, one more on borders
TOTALS = {
    "lu.C.64": 9_052_876,
    "lu.D.512": 239_140_588,
    "lu.D.4096": 1_975_849_596,
    "cg.C.64": 1_279_232,
}
OF_512 = {"torus": 1_856, "haec": 1_272}  # pair hops of Bokhari's mapper
ROUND = "wrap-around links that a mesh does not have"


class Row(NamedTuple):
    """A mapper of Table A.1 on a network, hops of pairs: published, ours so counted, truly."""

    network: str
    mapper: str
    published: int
    ours: int
    true: int
    on_a_link: int


def published() -> dict[tuple[str, str], list[int]]:
    """Table A.1: total, average, minimum and maximum by network and mapper."""
    with (SHIPPED["thesis_a1"].parent / "haec_thesis_lu_c_64.csv").open() as stream:
        return {
            (row["topology"], row["mapper"]): [
                int(row[f"ienpc_{part}"]) for part in ("total", "avg", "min", "max")
            ]
            for row in csv.DictReader(stream)
        }


def counted(traffic: Traffic, spec: str, mapper: str, seed: int = 0) -> tuple[list[int], int, int]:
    """Published IeNPC; messages times hops of true routes; most pairs on a link."""
    topology = topology_from_spec(spec)
    node_of = map_ranks(traffic, topology, mapper, seed=seed)
    theirs = evaluate(traffic, topology, node_of, convention="maplib").messages.ienpc
    ours = evaluate(traffic, topology, node_of).messages
    row = [theirs.total, theirs.avg, theirs.min, theirs.max]
    return row, ours.ienpc.total, ours.congestion.pairs


def pair_rows() -> list[Row]:
    """All mappers whose rows are not random."""
    traffic = nas_traffic("lu.C.64")
    rows = []
    for (network, mapper), (total, *_) in published().items():
        if mapper not in SEARCHED:
            found, true, pairs = counted(traffic, f"{network}:4x4x4", f"{mapper}(preset=thesis)")
            hops = [value // PER_PAIR["C"] for value in (total, found[0], true)]
            rows.append(Row(network, mapper, *hops, pairs))
    return rows


def totals() -> None:
    """Print the messages of the benchmarks."""
    print(f"\n{'messages':<12}{'published':>16}{'ours':>16}{'+-':>6}{'to oneself':>12}")
    for name, theirs in TOTALS.items():
        traffic = nas_traffic(name)
        ours = int(traffic.messages.sum())
        itself = int(traffic.messages[traffic.src == traffic.dst].sum())
        print(f"{name:<12}{theirs:>16,}{ours:>16,}{ours - theirs:>6}{itself:>12,}")


def pairs() -> None:
    """Print Table A.1 in hops of pairs."""
    print("\nHops of the 112 pairs of LU.C.64, and the most pairs on a link by true routes")
    print(f"{'':<18}{'published':>10}{'ours':>6}{'+-':>4}{'true':>6}{'+-':>5}{'on a link':>11}")
    for row in pair_rows():
        wrong = row.true - row.published
        print(
            f"{f'{row.network} {row.mapper}':<18}{row.published:>10}{row.ours:>6}"
            f"{row.ours - row.published:>4}{row.true:>6}{wrong:>5}{row.on_a_link:>11}"
            f"  {ROUND if wrong else ''}"
        )


def minmd() -> None:
    """Print MinMD as the authors ran it and as it is printed, messages times hops."""
    traffic, table = nas_traffic("lu.C.64"), published()
    print(f"\n{'MinMD':<8}{'published':>14}{'ours':>14}{'by messages':>14}{'by bytes':>14}")
    for network in NETWORKS:
        spec = f"{network}:4x4x4"
        run = counted(traffic, spec, "minmd(preset=thesis)")[0][0]
        printed = [counted(traffic, spec, f"minmd(weight={w})")[1] for w in ("messages", "bytes")]
        theirs = table[network, "minmd"][0]
        print(f"{network:<8}{theirs:>14,}{run:>14,}" + "".join(f"{v:>14,}" for v in printed))
    print("the last two are the printed Algorithm 2 by true routes: the authors' code does another")


def seeds(number: int = 12) -> dict[str, int]:
    """Print what Bokhari's mapper gives by seed; return how often the published row, by network."""
    traffic, table, hits = nas_traffic("lu.C.64"), published(), {}
    print(f"\nBokhari's mapper with {number} seeds")
    for network in NETWORKS:
        rows = [
            counted(traffic, f"{network}:4x4x4", "bokhari(preset=thesis)", seed)[0]
            for seed in range(number)
        ]
        same = [seed for seed, row in enumerate(rows) if row == table[network, "bokhari"]]
        hits[network] = len(same)
        print(f"lu.C.64 {network}: the published row with {len(same)}: seeds {same}", flush=True)
    large = nas_traffic("lu.D.512")
    for network, theirs in OF_512.items():
        found = [
            counted(large, f"{network}:8x8x8", "bokhari(preset=thesis)", seed)[0][0]
            // PER_PAIR["D"]
            for seed in range(number)
        ]
        print(
            f"lu.D.512 {network}: published {theirs:,}, ours {min(found):,} to {max(found):,}, "
            f"the published one with {found.count(theirs)}"
        )
    return hits


PARTS = {"totals": totals, "pairs": pairs, "minmd": minmd}


def main(words: list[str]) -> None:
    """Run the parts."""
    number = int(dict(pairwise(words)).get("--seeds", 12))
    chosen = [word for word in words if word in PARTS or word == "seeds"] or [*PARTS, "seeds"]
    for part in chosen:
        if part == "seeds":
            seeds(number)
        else:
            PARTS[part]()


if __name__ == "__main__":
    main(sys.argv[1:])
