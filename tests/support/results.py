"""What two replays have to agree in, to the last bit."""

from dataclasses import fields

import numpy as np

from hopmap.simulator.run_plan import plan_run

OF_THE_ENGINE = {"engine", "wall_seconds", "compile_seconds"}
ASKED = {"program", "parameters", "network", "node_of"}


def bits(result):
    """All that a result says of a run, except who computed it how fast; arrays as their bytes."""
    return {
        field.name: _bits(getattr(result, field.name))
        for field in fields(result)
        if field.name not in OF_THE_ENGINE | ASKED
    }


def _bits(value):
    if isinstance(value, np.ndarray):
        return value.dtype, value.tobytes()
    return [_bits(part) for part in value] if isinstance(value, tuple) else value


def plan_of(result):
    """The plan of what a result is of."""
    return plan_run(result.program, result.network, result.node_of, result.parameters)
