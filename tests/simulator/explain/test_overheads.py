"""What messages cost their ranks, by their modes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hopmap.simulator import Parameters, program_of
from hopmap.simulator.explain.overheads import overheads
from hopmap.simulator.programs.send_modes import SendMode

GIVEN = Parameters(
    overhead_send=2e-6, overhead_recv=3e-6, overhead_per_byte=1e-9, copy_per_byte=1e-10,
    overhead_put_latency=1e-6, eager_limit=1000,
)  # fmt: skip


def test_every_mode_pays_what_the_engines_count():
    small, large = 100, 1000
    program = program_of(
        "modes",
        [
            [("send", 1, small), ("bsend", 1, small), ("send", 1, small), ("send", 1, small),
             ("isend", 1, large), ("wait", 4)],
            [("recv", 0, small), ("recv", 0, small), ("recv", 0, small), ("recv", 0, small),
             ("irecv", 0, large), ("wait", 4)],
        ],
    )  # fmt: skip
    mode = program.mode.copy()
    mode[[2, 9]], mode[[3, 10]] = SendMode.PUT, SendMode.HARDWARE
    sending, receiving = overheads(replace(program, mode=mode), GIVEN)
    np.testing.assert_allclose(sending[:7], [2.1e-6, 2.11e-6, 2.1e-6, 0, 2e-6, 0, 0])
    np.testing.assert_allclose(receiving[7:], [3.1e-6, 3.1e-6, 2.1e-6, 0, 0, 3e-6, 0])
    assert not sending[7:].any()
    assert not receiving[:7].any()
