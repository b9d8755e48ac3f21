"""The mappings that MapLib stores."""

from pathlib import Path

import pytest

from hopmap.launchers.mapping_files import read_mapping
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces import Traffic, load_traffic


@pytest.fixture(params=["amg", "cg"])
def app(request) -> str:
    """Application of MapLib's data."""
    return request.param


@pytest.fixture(params=["mesh", "torus", "haec"])
def family(request) -> str:
    """Network of MapLib's data."""
    return request.param


@pytest.fixture(params=["bytes", "messages"])
def weight(request) -> str:
    """What MapLib's mappers were given."""
    return request.param


@pytest.fixture
def maplib(shared: Path, app: str, family: str, weight: str):
    """Traffic, topology, and a function from a mapper's name to the mapping stored for it."""
    quantity = {"bytes": "size", "messages": "count"}[weight]
    matrix = f"mapping-matters-commMatrices/{app}CMatrices/comm_matrix.p2p.{quantity}.csv"
    folder = shared / f"maplib/mapping-matters-Mappings/{quantity}/{app}MAP{family}"
    traffic: Traffic = load_traffic(shared / "maplib" / matrix)
    topology: Topology = topology_from_spec(f"{family}:4x4x4")

    def stored(mapper: str) -> list[int]:
        name = f"Mapping.p2p.{quantity}.csv.{mapper}.{family}.4x4x4.csv"
        return read_mapping(folder / name, topology, 64).tolist()

    return traffic, topology, stored
