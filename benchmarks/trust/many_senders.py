"""All-to-all of 4,096 nodes of Fugaku, pairwise: blocks that leave at once, and that ask first.

    python benchmarks/trust/many_senders.py 64x64.csv small.toml

Of the 4,095 rounds 96 are drawn and replayed; a measured call is divided by all of its rounds.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np

from hopmap.simulator.collectives.algorithms import schedule_call
from hopmap.simulator.collectives.schedules import schedule
from hopmap.simulator.measured.files import read_measured
from hopmap.simulator.measured.prediction import nodes_of_ranks
from hopmap.simulator.packets import compiled_engine
from hopmap.simulator.parameters.settings import configure
from hopmap.simulator.programs.from_collectives import program_of_call
from hopmap.simulator.run_plan import plan_run
from hopmap.topologies import topology_from_spec

SPEC, ROUNDS, PACKETS = "tofud:job=64x64,order=YX", 96, 8


def seconds_of_round(block: int, settings: dict[str, object]) -> float:
    """Replay some rounds of an exchange of all ranks; return seconds a round."""
    network, parameters = configure(topology_from_spec(SPEC), tuple(settings.items()))
    node_of = nodes_of_ranks(network, 0, 1, SPEC)
    ranks = len(node_of)
    me, size = np.arange(ranks), np.full(ranks, block)
    shifts = np.random.default_rng(1).choice(np.arange(1, ranks), ROUNDS, replace=False)
    rounds = [(me, (me + k) % ranks, size) for k in np.sort(shifts).tolist()]
    call = schedule_call("allgather", "ring", 2, 0, np.full(2, block), block)
    program = program_of_call(call._replace(schedule=schedule(rounds)), ranks)
    parameters = replace(parameters, packet_size=max(2048, block // PACKETS))
    run = compiled_engine.run(plan_run(program, network, node_of, parameters))
    return float(run.finish.max()) / ROUNDS


def main(measured: str, parameters: str) -> None:
    """Print a row for each block."""
    table = read_measured([measured])
    settings = tomllib.loads(Path(parameters).read_text())["parameters"]
    print("block, bytes  measured, us a round  at once  ask first")
    for k, (name, size) in enumerate(zip(table.algorithm, table.size.tolist(), strict=True)):
        block = size // 4096
        if (table.collective[k], name) != ("alltoall", "default-pairwise") or block > 16384:
            continue
        at_once, ask = (
            1e6 * seconds_of_round(block, {**settings, "eager_peers": peers}) for peers in (0, 64)
        )
        print(f"{block:12}  {1e6 * table.time[k] / 4095:20.2f}  {at_once:7.2f}  {ask:11.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
