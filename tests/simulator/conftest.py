"""What tests of the simulator share: the runs that the tests of engines and of loops draw."""

import importlib.util
from pathlib import Path

import pytest
from hypothesis import strategies as st


@pytest.fixture(scope="session")
def drawn_runs():
    """Strategy of (program, topology, node_of, parameters): all kinds of calls, and loops."""
    strategies = []
    for name in ("test_engines_agree", "programs/test_unrolling"):
        file = Path(__file__).parent / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"drawn_by_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        strategies.append(module.runs())
    return st.one_of(strategies)
