"""The table of what mappers take and make: from the registry, and true."""

import pytest

from hopmap.mappers import MAPPERS, all_mappers
from hopmap.mappers.capabilities import capabilities
from hopmap.mappers.mapper import get_mapper, mapper


@pytest.mark.parametrize(
    ("name", "role", "objectives", "needs"),
    [
        ("auto", "both", "cardinality hop_messages hop_bytes max_link_load function", ""),
        ("local_search", "refines", "cardinality hop_messages hop_bytes", ""),
        ("relieve", "refines", "max_link_load", ""),
        ("hilbert", "constructs", "", "the network is a box of nodes"),
        ("stencil_strips", "constructs", "", "the traffic is that of a Cartesian grid"),
    ],
)
def test_a_row_says_what_its_mapper_takes(name, role, objectives, needs):
    row = capabilities(get_mapper(name))
    assert (row.role, row.needs) == (role, needs)
    assert row.objectives == tuple(objectives.split())


def test_every_check_of_a_mapper_is_in_its_row():
    checked = [info for info in all_mappers().values() if info.needs is not None]
    assert len(checked) > 10
    assert all(capabilities(info).needs for info in checked)


def test_costs_are_those_of_the_documentation():
    assert capabilities(get_mapper("annealing")).cost == "O(degree) a proposal"
    assert capabilities(get_mapper("row_major")).cost == "O(d) a rank"
    assert capabilities(get_mapper("minmd")).cost.startswith("O(pairs log pairs)")


def test_a_mapper_of_ones_own_has_a_row():
    @mapper("by_weight", source="a test")
    def by_weight(traffic, topology, *, weight: str = "bytes", seconds: float | None = None):
        """Ranks in no order."""

    try:
        row = capabilities(MAPPERS["by_weight"])
    finally:
        del MAPPERS["by_weight"]
    assert (row.role, row.objectives, row.weights, row.budget) == ("constructs", (), "str", True)
