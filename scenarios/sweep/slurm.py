"""A job array for Slurm: each task does its share of what is missing, with no more than a shell."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from hopmap.plugins import plugins
from hopmap.traces.safety.atomic_files import replacing

from . import ScenarioError

SCRIPT, LIST = "slurm-array.sh", "slurm-array.txt"
TASKS = 100
"""Tasks of an array at most, unless told."""


def write_slurm_array(
    results: Path,
    run_ids: Sequence[str],
    words: Sequence[str],
    tasks: int | None = None,
    workers: int = 1,
) -> Path:
    """Write the list of runs to do and the script that does them; return the script.

    Parameters
    ----------
    results : Path
        Folder of results, which all nodes see.
    run_ids : sequence of str
        What is missing; dealt out by turns.
    words : sequence of str
        Arguments of ``hopmap run`` that name scenario and folder.
    tasks : int, optional
        Of the array; at most one a run.
    workers : int
        Processes of each task, and processors that it asks for.
    """
    if not run_ids:
        raise ScenarioError(f"{results}: no runs are missing: nothing for a job array to do")
    count = min(tasks or TASKS, len(run_ids))
    loaded = [word for plugin in plugins() for word in ("--plugin", plugin)]
    command = shlex.join([sys.executable, "-m", "hopmap", *loaded, "run", *words])
    each = f" --workers {workers}" if workers > 1 else ""
    script = f"""#!/bin/bash
# {len(run_ids)} runs of {LIST} in {count} tasks, written by hopmap run --slurm-array.
# Add what your site wants (partition, time, account, modules), then: sbatch {SCRIPT}
# Exit code 3 of a task: some of its runs failed, the others are stored.
#SBATCH --job-name=hopmap
#SBATCH --array=0-{count - 1}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={workers}
#SBATCH --output={_quoted(results / "slurm-%a.out")}
exec {command} --share "$SLURM_ARRAY_TASK_ID/{count}"{each} --no-report
"""
    with replacing(results / LIST) as partial:
        partial.write_text("".join(f"{run_id}\n" for run_id in run_ids))
    path = results / SCRIPT
    with replacing(path) as partial:
        partial.write_text(script)
    path.chmod(0o755)
    return path


def share_of(results: Path, share: str) -> list[str]:
    """Return the runs of a share "I/N": every N-th of the list, from the I-th, counted from 0."""
    first, slash, every = share.partition("/")
    if not (slash and first.isdecimal() and every.isdecimal() and int(first) < int(every)):
        raise ScenarioError(f"--share {share}: expected I/N, I from 0 to N - 1, like 0/4")
    try:
        run_ids = (results / LIST).read_text().split()
    except OSError:
        raise ScenarioError(
            f"--share {share}: no {results / LIST}: expected the list of --slurm-array"
        ) from None
    return run_ids[int(first) :: int(every)]


def _quoted(path: Path) -> str:
    """Quote a path for a comment of sbatch, where a shell's quotes count but % is a field."""
    text = str(path.parent).replace("%", "%%") + f"/{path.name}"
    return f'"{text}"' if " " in text else text
