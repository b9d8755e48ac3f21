"""NAS SP and BT (NPB 3.3-MPI): ADI on an n^3 grid, by the layout of `multipartition`."""

from __future__ import annotations

from .multipartition import Solver, Work
from .multipartition_program import benchmark_of

SP_ABOUT = """NAS SP (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with scalar pentadiagonal systems along each axis; see `multipartition` for
the layout. A sweep sends 22 doubles for each point between two cells when it eliminates, 10 when it
substitutes. Checked message for message against recorded runs.

Source: NPB 3.3-MPI, SP: sp.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""


def sp_operations(n: int) -> float:
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
    operations=sp_operations,
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

SP_BENCHMARK = benchmark_of(SP, SP_ABOUT)

BT_ABOUT = """NAS BT (NPB 3.3-MPI): who sends what to whom, in closed form and as the full program.

ADI on an n^3 grid, with systems of 5x5 blocks along each axis; see `multipartition` for the
layout. A sweep sends a block and a vector for each point between two cells when it eliminates, a
vector when it substitutes, always in buffers for n div p + 1 points an edge. Checked message for
message against recorded runs.

Source: NPB 3.3-MPI, BT: bt.f, setup_mpi.f, make_set.f, adi.f, copy_faces.f, x_solve.f to z_solve.f,
verify.f.
"""


def bt_operations(n: int) -> float:
    """Floating-point operations of a time step, NPB's own count (bt.f, "mflops")."""
    return 3478.8 * n**3 - 17655.7 * n**2 + 28023.7 * n


BT = Solver(
    name="bt",
    classes={
        "S": (12, 60),
        "W": (24, 200),
        "A": (64, 200),
        "B": (102, 200),
        "C": (162, 200),
        "D": (408, 250),
        "E": (1020, 250),
    },
    bcasts=(4, 8, 12, 4, 4, 4),
    eliminate=(5 * 5 + 5) * 8,
    substitute=5 * 8,
    padded=True,
    tagged=True,
    waitall=False,
    operations=bt_operations,
    # Counted in the loops of rhs.f and add.f; x_solve.f and solve_subs.f: 3,565 in all, against
    # 3,479 in the formula.
    work=Work(
        rhs=440 + 5,
        prepare=(0, 0, 0),
        eliminate=(990, 990, 990),
        substitute=(50, 50, 50),
        finish=(0, 0, 0),
    ),
)

BT_BENCHMARK = benchmark_of(BT, BT_ABOUT)
