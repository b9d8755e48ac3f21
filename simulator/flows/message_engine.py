"""The engines that move whole messages: analytic, without contention, and flow, max-min fair."""

from __future__ import annotations

import numpy as np

from hopmap.arrays import Ints, equals_before
from hopmap.progress import Progress
from hopmap.simulator.link_use import FINEST, LinkUse
from hopmap.simulator.operations import NOTHING, Record
from hopmap.simulator.programs.program import Op
from hopmap.simulator.result import Outcome, Servers
from hopmap.simulator.row_pointers import first_records
from hopmap.simulator.run_plan import RunPlan, flat
from hopmap.simulator.task_kernels import CROWDED, ENDED
from hopmap.simulator.task_state import check_finished, outcome_of

from .loop_kernels import advance as advance_alone
from .loop_kernels import advance_flows
from .state import begin, enlarge

SHARE = 1 << 18  # events before Python may look at Ctrl-C and the progress


def run_analytic(
    plan: RunPlan, record: Record = NOTHING, progress: Progress | None = None
) -> Outcome:
    """Replay a plan as if every message were alone in the network."""
    return _run(plan, record, progress, flow=False)


def run_flow(plan: RunPlan, record: Record = NOTHING, progress: Progress | None = None) -> Outcome:
    """Replay a plan with messages as flows, which share servers by max-min fairness."""
    return _run(plan, record, progress, flow=True)


def _run(plan: RunPlan, record: Record, progress: Progress | None, *, flow: bool) -> Outcome:
    advance = advance_flows if flow else advance_alone
    plan = flat(plan)
    run = begin(plan, record, flow=flow)
    while (why := advance(first_records(run), SHARE)) != ENDED:
        if why == CROWDED:
            run = run._replace(flows=enlarge(run.flows, len(run.flows.slots)))
        if progress is not None:
            progress(int(run.loop["arrived"][0]), plan.messages)
    check_finished(plan, run, lambda rows: _places(plan)[rows])
    servers = run.flows.servers[: len(plan.bandwidth)]
    messages, size, busy = (servers[name].copy() for name in ("messages", "bytes", "busy"))
    return Outcome(
        **outcome_of(plan, record, run),
        servers=Servers(messages, size, busy, np.zeros(len(servers)), np.zeros(len(servers))),
        events=int(run.loop["events"][0]),
        use=LinkUse(FINEST, np.zeros((plan.links, 0))),
    )


def _places(plan: RunPlan) -> Ints:
    """How many rows of the same side of its channel are before each row."""
    side = plan.channel * 2 + np.isin(plan.program.kind, (Op.SEND, Op.ISEND))
    return equals_before(side)
