"""BookSim2's router, run at one offered load: its own program.

Jiang and others, A detailed and flexible cycle-accurate network-on-chip simulator, ISPASS 2013.
Routes are looked up a hop ahead; who gets the switch gets a channel in the same cycle
(`piggyback`), the crossbar and the link take one each: a hop takes 3. A place in a buffer is taken
again 5 cycles and `credit_delay` later.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

# Cycles from one switch to the next, from the source to the first, from the last to the target.
HOP, IN, OUT = 3, 2, 2
CREDIT = 2
FIXED = {
    "k": 8,
    "n": 2,
    "use_noc_latency": 0,
    "routing_function": "dim_order",
    "routing_delay": 0,
    "vc_alloc_delay": 1,
    "sw_alloc_delay": 1,
    "st_final_delay": 1,
    "speculative": 1,
    "vc_allocator": "piggyback",
    "vc_busy_when_full": 1,
    "credit_delay": CREDIT,
    "seed": 1,
    "warmup_periods": 1,
    "stopping_thres": 0.0,
    "acc_stopping_thres": 0.0,
    "sim_count": 1,
    "deadlock_warn_timeout": 100000,
}


class Measured(NamedTuple):
    """What came of an offered load.

    Attributes
    ----------
    latency : float
        Mean cycles from a packet's making to its delivery; infinite where BookSim gave up.
    flit_hops : float
        Flits through routers, of 64 sources.
    seconds : float
        That it took.
    """

    latency: float
    flit_hops: float
    seconds: float


def booksim(
    program: Path, options: Mapping[str, object], load: float, window: int, most: float
) -> Measured:
    """Run BookSim2: a window to warm up, two to measure, and until what was measured is there.

    Parameters
    ----------
    program : Path
        BookSim2's executable.
    options : mapping
        Further options than `FIXED`: topology, traffic, num_vcs, vc_buf_size, packet_size, ...
    load : float
        Packets per source and cycle.
    most : float
        Mean latency above which it gives up.
    """
    entries = {
        **FIXED,
        **options,
        "injection_rate": load,
        "sample_period": window,
        "max_samples": 3,
        "latency_thres": float(most),
    }
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "settings"
        settings.write_text("".join(f"{key} = {value};\n" for key, value in entries.items()))
        done = subprocess.run([program, settings], capture_output=True, text=True, check=False)
    output = done.stdout
    if "Overall Traffic Statistics" not in output and "exceeded" not in output:
        raise RuntimeError(f"{program}: {output[-300:]}{done.stderr[-300:]}")
    seconds = (
        float(re.findall(r"Total run time (\S+)", output)[-1]) if "Total run" in output else 0.0
    )
    if "exceeded" in output:
        return Measured(float("inf"), 0.0, seconds)
    end = output[output.index("Overall Traffic Statistics") :]
    latency = float(re.findall(r"Packet latency average = (\S+)", end)[0])
    hops = float(re.findall(r"Hops average = (\S+)", end)[0])
    cycles = int(re.findall(r"Time taken is (\d+) cycles", output)[-1])
    flits = load * int(options["packet_size"]) * cycles * 64  # type: ignore[call-overload]
    return Measured(latency, flits * hops, seconds)
