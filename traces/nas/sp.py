"""NAS SP (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with scalar pentadiagonal systems along each axis; see `multipartition` for
the layout. A sweep sends 22 doubles for each point between two cells when it eliminates, 10 when it
substitutes. Checked message for message against recorded runs.

Source: NPB 3.3-MPI, SP: sp.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""

from __future__ import annotations

from .multipartition import Solver, Work
from .multipartition_program import benchmark_of


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

BENCHMARK = benchmark_of(SP, __doc__)
