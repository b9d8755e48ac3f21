"""Compare MapLib's stored mapping statistics with ours: ``python ...maplib_rows.py FOLDER``.

FOLDER has MapLib's mapping-matters-commMatrices/ and mapping-matters-Mappings/. A row is a stored
mapping of CG or AMG (64 ranks) on a network of 4x4x4 nodes, by messages or bytes, in IeNPC's four
columns, ours by ``--convention maplib``: published, ours, the difference of the totals, the reason.

Source: Korndoerfer, Bielert, Pilla, Ciorba, Mapping Matters, HPCS 2020.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hopmap.launchers.mapping_files import read_mapping
from hopmap.simulator import evaluate
from hopmap.topologies import topology_from_spec
from hopmap.traces import load_traffic

OTHER_RUN = "the stored mapping is of another run than the statistics"


class Row(NamedTuple):
    """A stored mapping: total, average, minimum and maximum, and why they differ."""

    app: str
    quantity: str
    family: str
    mapper: str
    published: list[int]
    ours: list[int]

    @property
    def reason(self) -> str:
        """Empty where nothing differs."""
        if self.published == self.ours:
            return ""
        return OTHER_RUN if (self.app, self.mapper) == ("amg", "bokhari") else "unknown"


def rows(folder: Path) -> Iterator[Row]:
    """All rows that have a stored mapping."""
    for app in ("cg", "amg"):
        for quantity in ("count", "size"):
            matrices = folder / "mapping-matters-commMatrices" / f"{app}CMatrices"
            traffic = load_traffic(matrices / f"comm_matrix.p2p.{quantity}.csv")
            for family in ("mesh", "torus", "haec"):
                stored = folder / "mapping-matters-Mappings" / quantity / f"{app}MAP{family}"
                topology = topology_from_spec(f"{family}:4x4x4")
                for block in next(stored.glob("*Statistics")).read_text().split("Mapping: ")[1:]:
                    mapper = block.split()[0]
                    numbers = re.search(r"IeNPC\s*:\s*\((.*)\)", block)
                    files = list(stored.glob(f"*.csv.{mapper}.*.csv"))
                    if numbers is None or not files:
                        continue
                    node_of = read_mapping(files[0], topology, traffic.ranks)
                    metrics = evaluate(traffic, topology, node_of, "maplib")
                    found = (metrics.messages if quantity == "count" else metrics.bytes).ienpc
                    ours = [found.maplib_total, found.maplib_avg, found.min, found.max]
                    published = [int(number) for number in numbers[1].split(",")]
                    yield Row(app, quantity, family, mapper, published, ours)


def main(folder: Path) -> None:
    """Print every row, then how many are the same."""
    found = list(rows(folder))
    print(f"{'total':<36}{'published':>18}{'ours':>18}{'+-':>8}{'the same':>10}  reason")
    for row in found:
        name = f"{row.app.upper()} {row.quantity} {row.family} {row.mapper}"
        same = sum(a == b for a, b in zip(row.published, row.ours, strict=True))
        change = row.ours[0] / row.published[0] - 1
        print(
            f"{name:<36}{row.published[0]:>18,}{row.ours[0]:>18,}{change:>+8.1%}"
            f"{f'{same} of 4':>10}  {row.reason}"
        )
    same = sum(row.published == row.ours for row in found)
    print(f"{same} of {len(found)} rows are the same in all four columns")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
