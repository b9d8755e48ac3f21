"""Compare hopmap with SimGrid: ``python benchmarks/replay/simgrid.py``.

Needs smpirun (Debian: libsimgrid-dev).

Both replay the same messages, collectives included, on tori with the same links, in the same run of
this program: first small cases where the models coincide, then single experiments in which they
differ, then recorded traces under three mappings, then the order of twenty mappings.

* sg: SimGrid on its own TORUS zone, with its own lazy updates; as it is used.
* sg full: ``network/optim:Full`` on hopmap's routes; SimGrid's model, worked out at every event.
* flow: the flow engine, flows sharing by round trip as SimGrid's do; packet: the compiled engine.

Messages are eager (except in the experiments), ranks have no overheads, nodes no injection or
ejection links, and hopmap's messages are 16 bytes longer, which is what SimGrid's MPI adds to each.

Seconds are processor time, children included, the best of three. SimGrid's include reading its
traces and its start, which the script prints; hopmap's are the time of `simulate`, compiled before.
"""

from __future__ import annotations

import re
import resource
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from hopmap.mappers import map_ranks
from hopmap.simulator import Op, Parameters, Program, lower, program_of, simulate
from hopmap.simulator.export.simgrid import (
    ENVELOPE,
    INDEX,
    platform_xml,
    smpirun_options,
    write,
)
from hopmap.simulator.run_plan import absorb
from hopmap.topologies import Topology, topology_from_spec, torus
from hopmap.traces import read_trace

NAS = Path(__file__).parents[3] / "shared" / "nas"
TRACES = (("lu.W.16", "torus:4x4"), ("cg.S.16", "torus:4x4"), ("lu.W-it20.64", "torus:4x4x4"))
ORDERED = (("lu.S.16", "torus:4x4"), ("cg.S.16", "torus:4x4"), ("mg.S.16", "torus:4x4"))
MAPPERS = ("sweep", "bokhari", "random")
FULL = "--cfg=network/optim:Full"
SIMGRID_MODEL = Parameters(
    overhead_send=0,
    overhead_recv=0,
    injection_bandwidth=1e15,
    injection_latency=0,
    ejection_bandwidth=1e15,
    ejection_latency=0,
    eager_limit=2**30,
    flow_sharing="round_trip",
)
MB = 10**6


class Case(NamedTuple):
    """What both simulators replay."""

    program: Program
    topology: Topology
    node_of: Any
    parameters: Parameters = SIMGRID_MODEL


@contextmanager
def exported(case: Case) -> Iterator[Path]:
    """Yield a folder with the traces and the platforms of a case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "simgrid"
        write(folder, absorb(case.program, case.parameters), case.parameters, None)
        for zone in ("routes", "torus"):
            text = "".join(platform_xml(case.topology, case.parameters, zone))
            (folder / f"{zone}.xml").write_text(text)
        yield folder


def simgrid(folder: Path, case: Case, zone: str, *options: str) -> float:
    """Makespan by smpirun."""
    (folder / "hosts.txt").write_text("".join(f"node{node}\n" for node in case.node_of))
    files = {"-replay": INDEX, "-platform": f"{zone}.xml", "-hostfile": "hosts.txt"}
    options = (*smpirun_options(case.parameters), *options, "--log=root.fmt:%.15r%e%m%n")
    done = subprocess.run(
        ["smpirun", *chain(*files.items()), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(re.findall(r"^([\d.]+) Simulation time", done.stderr + done.stdout, re.M)[-1])


def enveloped(case: Case, **changes: Any) -> Case:
    """Return a case with messages in SimGrid's envelopes, and with other parameters."""
    program, limit = case.program, case.parameters.eager_limit + ENVELOPE
    messages = (program.kind >= Op.SEND) & (program.kind <= Op.IRECV)
    return case._replace(
        program=replace(program, size=program.size + ENVELOPE * messages),
        parameters=replace(case.parameters, eager_limit=limit, **changes),
    )


def hopmap(case: Case, engine: str) -> float:
    """Makespan by an engine of ours."""
    program, topology, node_of, parameters = case
    return simulate(program, topology, node_of, parameters=parameters, engine=engine).makespan


def spent() -> float:
    """Processor seconds of this process and of its children that ended."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


def best(function: Callable[..., float], *arguments: Any, times: int = 3) -> tuple[float, float]:
    """Least processor seconds of a few calls, and what the last returned."""
    seconds = []
    for _ in range(times):
        begin = spent()
        result = function(*arguments)
        seconds.append(spent() - begin)
    return min(seconds), result


def at_once(messages: Sequence[tuple[int, int, int]], ranks: int = 16) -> Program:
    """Everyone posts all, and waits for all."""
    lists = [
        [("irecv", s, size, k) for k, (s, t, size) in enumerate(messages) if t == r]
        + [("isend", t, size, k) for k, (s, t, size) in enumerate(messages) if s == r]
        for r in range(ranks)
    ]
    waits = [[("wait", k) for k in range(len(posted))] for posted in lists]
    return program_of("at once", [a + b for a, b in zip(lists, waits, strict=True)])


def rounds(times: int, rng: np.random.Generator, ranks: int = 16) -> Program:
    """Everyone sends to another and receives from another, again and again."""
    lists: list[list[Any]] = [[] for _ in range(ranks)]
    for k in range(times):
        target = rng.permutation(ranks)
        for source in np.flatnonzero(target != np.arange(ranks)):
            size = int(rng.integers(1, 10_000))
            lists[source].append(("send", int(target[source]), size, k))
            lists[target[source]].append(("recv", int(source), size, k))
    return program_of("rounds", lists)


def coinciding_cases() -> None:
    print("where the models coincide, on a 4x4 torus, random mapping")
    print(f"{'':<34}{'sg':>15}{'sg full':>15}{'flow':>15}{'flow / full - 1':>17}")
    rng = np.random.default_rng(0)
    node_of = rng.permutation(16)
    cases = {
        "one message, 1 MB": at_once([(0, 1, MB)]),
        "one message, empty": at_once([(0, 1, 0)]),
        "two over one link, 1 MB": at_once([(0, 1, MB), (0, 1, MB)]),
        "15 to 1, 1 MB": at_once([(s, 0, MB) for s in range(1, 16)]),
        "ring shift, 1 MB": at_once([(s, (s + 1) % 16, MB) for s in range(16)]),
    }
    for k in range(3):
        perm = rng.permutation(16).tolist()
        cases[f"permutation {k}, 1 MB"] = at_once([(s, t, MB) for s, t in enumerate(perm)])
    for k in range(3):
        drawn = rng.integers(0, (16, 16, MB), (100, 3)).tolist()
        cases[f"100 random messages {k}, to 1 MB"] = at_once([(s, t, b) for s, t, b in drawn])
    for k in range(3):
        cases[f"30 rounds {k}, to 10 kB"] = rounds(30, rng)
    for name, program in cases.items():
        case = Case(program, torus((4, 4)), node_of)
        with exported(case) as folder:
            lazy, full = simgrid(folder, case, "routes"), simgrid(folder, case, "routes", FULL)
        ours = hopmap(enveloped(case), "flow")
        print(f"{name:<34}{lazy:>15.9f}{full:>15.9f}{ours:>15.9f}{ours / full - 1:>17.1e}")


def experiments() -> None:
    print("\nwhere they differ, us")
    print(f"{'':<52}{'sg':>10}{'sg full':>10}{'flow':>10}{'equal':>10}{'packet':>10}")
    ring, pair = torus((4,)), [[("send", 1, MB)], [("recv", 0, MB)]]
    far = torus((9,))
    behind = [
        [("isend", 1, MB), ("isend", 1, MB), ("recv", 1, MB)],
        [("recv", 0, MB), ("send", 0, MB), ("recv", 0, MB)],
    ]
    chain_of_four = [(0, 3, MB), (2, 6, MB), (5, 9, MB), (8, 9, MB)]
    rows = {
        "rendezvous over 4 hops": Case(
            program_of("", pair), far, [0, 4], replace(SIMGRID_MODEL, eager_limit=0)
        ),
        "the same, eager": Case(program_of("", pair), far, [0, 4]),
        "a chain of flows over 3, 4, 4, 1 hops": Case(
            at_once(chain_of_four, 10), torus((21,)), range(10)
        ),
        "3 > 1 and 3 > 2 on a ring of 4": Case(
            at_once([(0, 1, MB), (0, 2, MB)], 3), ring, [3, 1, 2]
        ),
        "a second message behind the first, a reply to that": Case(
            program_of("", behind), ring, [0, 1]
        ),
    }
    for name, case in rows.items():
        with exported(case) as folder:
            times = [simgrid(folder, case, "torus"), simgrid(folder, case, "routes", FULL)]
        times += [hopmap(*arguments) for arguments in engines_for(case)]
        print(f"{name:<52}" + "".join(f"{t * 1e6:>10.3f}" for t in times))


def engines_for(case: Case) -> list[tuple[Case, str]]:
    """The engines of ours: flow by round trip, flow with equal shares, packet."""
    ours, equal = enveloped(case), enveloped(case, flow_sharing="equal")
    return [(ours, "flow"), (equal, "flow"), (ours, "compiled")]


def program_called(name: str) -> Program:
    packed = NAS / f"{name}.tar.xz"
    if not packed.is_file():
        return lower(read_trace(NAS / name))
    with tempfile.TemporaryDirectory() as folder, tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
        return lower(read_trace(Path(folder) / name))


def mapped(program: Program, topology: Topology, mapper: str, seed: int = 0) -> Any:
    return map_ranks(program.p2p_traffic(), topology, mapper, seed=seed)


def traces() -> None:
    nothing = Case(program_of("", [[]] * 16), torus((4, 4)), range(16))
    with exported(nothing) as folder:
        start, _ = best(simgrid, folder, nothing, "torus")
    print(f"\nrecorded traces; smpirun without anything to do takes {start:.2f} s")
    print(
        f"{'trace, computation, mapper':<31}{'messages':>9}{'sg':>13}{'sg full':>13}{'flow':>13}"
        f"{'packet':>13}{'flow/full':>10}{'pack/full':>10}{'sg s':>7}{'flow s':>8}{'packet s':>9}"
        f"{'sg/flow':>8}{'sg/packet':>10}"
    )
    for name, spec in TRACES:
        program, topology = program_called(name), topology_from_spec(spec)
        for scale in (1, 0):
            found = []
            for mapper in MAPPERS:
                node_of = mapped(program, topology, mapper)
                case = Case(program, topology, node_of, replace(SIMGRID_MODEL, compute_scale=scale))
                with exported(case) as folder:
                    seconds, lazy = best(simgrid, folder, case, "torus")
                    full = simgrid(folder, case, "routes", FULL)
                ours = enveloped(case)
                (a, flow), (b, packet) = best(hopmap, ours, "flow"), best(hopmap, ours, "compiled")
                found.append((lazy, full, flow, packet))
                print(
                    f"{f'{name}, {scale}, {mapper}':<31}{len(program.sends()):>9}"
                    f"{lazy:>13.9f}{full:>13.9f}{flow:>13.9f}{packet:>13.9f}"
                    f"{flow / full - 1:>10.1e}{packet / full - 1:>10.1e}"
                    f"{seconds:>7.2f}{a:>8.3f}{b:>9.3f}{seconds / a:>8.1f}{seconds / b:>10.1f}",
                    flush=True,
                )
            orders = [np.argsort(column).tolist() for column in zip(*found, strict=True)]
            named = [" < ".join(MAPPERS[k] for k in order) for order in orders]
            same = "the same in all" if len(set(named)) == 1 else " | ".join(named)
            print(f"{'':<31}order: {named[0] if len(set(named)) == 1 else ''} ({same})")


def order() -> None:
    print("\nKendall's tau of 20 mappings' makespans, without computation")
    print(f"{'':<12}{'sg, sg full':>14}{'full, flow':>14}{'full, equal':>14}{'full, packet':>14}")
    for name, spec in ORDERED:
        program, topology = program_called(name), topology_from_spec(spec)
        rows = []
        for k in range(20):
            node_of = mapped(program, topology, MAPPERS[min(k, 2)], seed=k)
            case = Case(program, topology, node_of, replace(SIMGRID_MODEL, compute_scale=0))
            with exported(case) as folder:
                times = [simgrid(folder, case, "torus"), simgrid(folder, case, "routes", FULL)]
            rows.append([*times, *(hopmap(*arguments) for arguments in engines_for(case))])
        lazy, full, *others = np.array(rows).T
        taus = [kendalltau(lazy, full), *(kendalltau(full, other) for other in others)]
        print(f"{name:<12}" + "".join(f"{tau.statistic:>14.3f}" for tau in taus), flush=True)


if __name__ == "__main__":
    warm_up = Case(at_once([(0, 1, 1)], 2), torus((4,)), [0, 1])
    hopmap(warm_up, "flow"), hopmap(warm_up, "compiled")
    coinciding_cases()
    experiments()
    traces()
    order()
