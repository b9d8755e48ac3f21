"""NAS SP (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with scalar pentadiagonal systems along each axis; see `nas_multipartition` for
the layout. A sweep sends 22 doubles for each point between two cells when it eliminates, 10 when it
substitutes. Checked message for message against recorded runs.

Source: NPB 3.3-MPI, SP: sp.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""

from __future__ import annotations

from hopmap.traces.folded import Folded
from hopmap.traces.trace import Trace
from hopmap.traces.traffic import Traffic

from .multipartition import Solver, Work, multipartition_traffic
from .multipartition_program import multipartition_folded, multipartition_trace


def operations(n: int) -> float:
    """Floating-point operations of a time step, NPB's own count (sp.f, "mflops")."""
    return 881.174 * n**3 - 4683.91 * n**2 + 11484.5 * n - 19272.4


SP = Solver(
    name="sp",
    classes={
        "S": (12, 100),
        "W": (36, 400),
        "A": (64, 400),
        "B": (102, 400),
        "C": (162, 400),
        "D": (408, 500),
        "E": (1020, 500),
    },
    bcasts=(4, 8, 12, 4),
    eliminate=22 * 8,
    substitute=10 * 8,
    padded=False,
    tagged=False,
    waitall=True,
    operations=operations,
    # Counted in the loops of rhs.f, txinvr.f and add.f; lhsx.f; x_solve.f; ninvr.f, pinvr.f and
    # tzetar.f: 874 in all, against 881 in the formula.
    work=Work(
        rhs=444 + 27 + 5,
        prepare=(22, 22, 22),
        eliminate=(67, 67, 67),
        substitute=(30, 30, 30),
        finish=(7, 7, 27),
    ),
)


def sp_traffic(nas_class: str, ranks: int, *, steps: int | None = None) -> Traffic:
    """Point-to-point traffic of a whole run; see `nas_multipartition.multipartition_traffic`."""
    return multipartition_traffic(SP, nas_class, ranks, steps)


def sp_trace(nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9) -> Trace:
    """Generate the full program; see `nas_multipartition_calls.multipartition_trace`."""
    return multipartition_trace(SP, nas_class, ranks, steps, flops)


def sp_folded(
    nas_class: str, ranks: int, *, steps: int | None = None, flops: float = 1e9
) -> Folded:
    """Generate the full program with its time steps as a loop; see `sp_trace`."""
    return multipartition_folded(SP, nas_class, ranks, steps, flops)
