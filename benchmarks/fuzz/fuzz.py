"""Fuzzing: damaged input through the command line, for so many seconds of a processor.

    python benchmarks/fuzz/fuzz.py archives|scenarios|matrices|mappings|topologies|others|foreign|
            goal|goal-binary|liballprof|dumpi|paraver|tit
        [--seconds 600] [--seed N] [--keep FOLDER] [--more ARCHIVE ...] [--repeat FOLDER]

A case may succeed, or be refused in one line with exit code 2. All else is a failure: another
exception, a warning, a crash, more than `SECONDS` of a processor, more than `MEMORY`, a file that
the command line does not name. Cases run in a worker process that is replaced when it dies or
hangs; one in `SHARE` runs as a real `hopmap` process too. A case that compiled something is run
again before it is called slow. Of every kind of failure the first case is made small and kept, with
its number and command line; ``--repeat`` runs a kept one again. What is fuzzed is in
`fuzz_cases.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import fuzz_cases

import hopmap

SECONDS, MEMORY, SHARE = 20, 5 * 2**30, 200
SMALLER = 15  # seconds to make a failing case smaller
HANGS = 3 * SECONDS  # on the clock: other load on the machine counts
STARTS = 600  # on the clock: a worker compiles before its first case
LONGEST = 2000  # characters of "one clear line"
ROOM = 12 * 2**30  # address space beyond what a worker has at first
ALLOWED = {"run": (0, 2, 3)}
OURS = Path(hopmap.__file__).parent


class Verdict(NamedTuple):
    """What is wrong with a case, if anything, in a few words and in detail.

    And its exit code, the seconds of a processor that it took, and whether it compiled something.
    """

    problem: str
    detail: str
    code: int
    seconds: float = HANGS
    compiled: bool = False


COMPILING = "hopmap: compiling for this machine, once\n"


def judge(words: list[str], code: int, stderr: str, before: set[str], after: set[str]) -> str:
    """Say what breaks the rules of the command line."""
    stderr = stderr.replace(COMPILING, "")
    if "a bug in hopmap" in stderr:
        return "a bug, it says"
    if code not in ALLOWED.get(words[0], (0, 2)):
        return f"exit code {code}"
    if code == 2 and (stderr.count("\n") != 1 or not stderr.startswith("hopmap: ")):
        return "not one line"
    if code == 2 and len(stderr) > LONGEST:
        return "a line without end"
    if code == 0 and any(not line.startswith("hopmap: ") for line in stderr.splitlines()):
        return "a warning"  # ours, which are about the result, begin so; Python's do not
    out = words[words.index("--out") + 1] if "--out" in words else ""
    # Files that a launcher's file needs begin with its name: out_mpi4py.py, out_hosts.txt.
    own = (out, f"{out}_mpi4py.py", f"{out}_platform.xml", f"{out}_hosts.txt")
    left = {name for name in after - before if code == 2 or Path(name).parts[0] not in own}
    if left or any(".partial-" in name or ".old-" in name for name in after):
        return "left behind"
    return "gone" if before - after else ""


def listing(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


# In the worker ------------------------------------------------------------------------------------


def work(scratch: Path, answers: int) -> None:
    """Run the cases that arrive on stdin, in a fork that is replaced when it ends."""
    os.environ |= {"TMPDIR": str(scratch / "tmp"), "COLUMNS": "100"}
    from typer.main import get_command

    from hopmap.cli.app import app
    from hopmap.scenarios.sweep import run  # noqa: F401 - imported once, for all forks
    from hopmap.traces.otf2 import read_kernels

    read_kernels.program_callbacks(), read_kernels.time_callbacks()
    read_kernels.counting_callbacks()
    command = get_command(app)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        child = os.fork()
        if not child:
            room = ROOM + 1024 * _status("VmSize")
            resource.setrlimit(resource.RLIMIT_AS, (room, room))
            try:
                while (line := _line()) and not _run(command, json.loads(line), scratch, answers):
                    pass
                os._exit(0 if line else 99)
            finally:
                os._exit(98)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            said = (scratch / "stderr").read_text(errors="replace")[-4000:]
            _answer(answers, f"dies of signal {os.WTERMSIG(status)}", said, -os.WTERMSIG(status))
        elif os.WEXITSTATUS(status):
            return


def _line() -> bytes:
    """Read a line of stdin and no more of it, since another fork may read the next."""
    line = b""
    while not line.endswith(b"\n") and (part := os.read(0, 1 << 24)):
        line += part
    return line


def _run(command: Any, words: list[str], scratch: Path, answers: int) -> bool:
    """Run one case and answer; return whether something stays behind in the process."""
    from hopmap.cli.app import answer

    os.chdir(scratch / "case")
    before = listing(scratch / "case") | listing(scratch / "tmp")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    memory, begin, all_begin = 1024 * _status("VmRSS"), time.process_time(), _processor()
    code, text, problem, detail = 0, "", "", ""
    for stream in (1, 2):
        os.ftruncate(stream, 0)
        os.lseek(stream, 0, os.SEEK_SET)
    # An error of a single run is kept in its row; otherwise tracebacks are wanted.
    os.environ["HOPMAP_DEBUG"] = "" if words[0] == "run" else "1"
    try:
        command.main(words, prog_name="hopmap")
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except Exception as error:
        code, text = answer(error)
        if code != 2:
            problem, detail = _where(error), traceback.format_exc()[-20_000:]
    seconds = time.process_time() - begin
    sys.stdout.flush()
    sys.stderr.flush()
    printed = (scratch / "stderr").read_text(errors="replace")
    after = listing(scratch / "case") | listing(scratch / "tmp")
    stderr = printed + (f"hopmap: {text}\n" if text else "")
    problem = problem or judge(words, code, stderr, before, after)
    detail = detail or stderr[-4000:] + " ".join(sorted(after - before)[:20])
    peak = 1024 * _status("VmHWM") - memory
    if not problem and seconds > SECONDS:
        problem = "too slow"
    if not problem and peak > MEMORY:
        problem = f"{peak / 2**20:.0f} MiB"
    _answer(answers, problem, detail, code, _processor() - all_begin, COMPILING in printed)
    return problem == "a warning"  # which comes once a process


def _processor() -> float:
    """Seconds that this process and its children took, those that guard the reading, too."""
    return sum(os.times()[:4])


def _answer(answers: int, *verdict: object) -> None:
    os.write(answers, json.dumps(verdict).encode() + b"\n")


def _where(error: BaseException) -> str:
    """Name the error and the last line of ours that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(OURS)]
    last = (ours or frames)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


# The worker ---------------------------------------------------------------------------------------


class Worker:
    """A process that runs cases."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        for name in ("case", "tmp"):
            (scratch / name).mkdir(exist_ok=True)
        here, there = os.pipe()
        self.answers = here
        with (scratch / "stdout").open("wb") as out, (scratch / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "work", "--scratch", str(scratch), "--fd", str(there)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                pass_fds=(there,),
                start_new_session=True,
            )
        os.close(there)
        if self.run(["--help"], STARTS).problem:
            raise SystemExit(f"no worker in {STARTS} s: {self.said()}")

    def run(self, words: list[str], patience: float = HANGS) -> Verdict:
        """Run a command line in the folder "case"; a worker that hangs is stopped."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(words).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SystemExit(f"the worker has ended: {self.said()}") from None
        answer = b""
        with selectors.DefaultSelector() as wait:
            wait.register(self.answers, selectors.EVENT_READ)
            deadline = time.monotonic() + patience
            while not answer.endswith(b"\n"):
                if not wait.select(deadline - time.monotonic()):
                    self.stop()
                    return Verdict("hangs", "", -9)
                part = os.read(self.answers, 1 << 20)
                if not part:
                    raise SystemExit(f"the worker ends: {self.said()}")
                answer += part
        return Verdict(*json.loads(answer))

    def said(self) -> str:
        """Its last words."""
        return (self.scratch / "stderr").read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """End it, however busy it is."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.answers)


class Fuzzer:
    """One kind of input under fire."""

    def __init__(self, kind: str, scratch: Path, keep: Path, more: list[Path]) -> None:
        self.kind, self.keep, self.seeds, self.scratch = kind, keep, scratch / "seeds", scratch
        self.seeds.mkdir()
        fuzz_cases.KINDS[kind].seeds(self.seeds)
        for path in more:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, self.seeds / path.name)
        (scratch / "run").mkdir()
        self.case = scratch / "run" / "case"
        self.worker: Worker | None = None
        self.failures: dict[str, int] = {}
        self.codes: dict[int, int] = {}
        self.seconds = -_processor()  # of a processor, ours and the worker's

    def run(self, words: list[str], files: Path | None = None) -> Verdict:
        """Run a command line on a copy of some files, or on what is in the folder."""
        if files is not None:
            self._clear(self.case)
            shutil.copytree(files, self.case, dirs_exist_ok=True)
        if self.worker is None:
            self.worker = Worker(self.scratch / "run")
        verdict = self.worker.run(words)
        self.seconds += verdict.seconds
        if verdict.problem:
            if verdict.problem == "hangs":
                self.worker = None
            self._clear(self.scratch / "run" / "tmp")
        return verdict

    def _clear(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)

    def outside(self, words: list[str]) -> Verdict:
        """Run a command line as a user does."""
        hopmap = Path(sys.executable).with_name("hopmap")
        before = listing(self.case)
        try:
            done = subprocess.run(
                [hopmap, *words], cwd=self.case, capture_output=True, timeout=HANGS, check=False
            )
        except subprocess.TimeoutExpired:
            return Verdict("hangs outside", "", -9)
        stderr = done.stderr.decode(errors="replace")
        problem = judge(words, done.returncode, stderr, before, listing(self.case))
        return Verdict(f"outside: {problem}" if problem else "", stderr[-4000:], done.returncode)

    def fuzz(self, seconds: float, first: int) -> int:
        """Run cases until they took so long of a processor; return how many there were."""
        number = first
        while self.seconds + _processor() < seconds:
            self._clear(self.case)
            words = fuzz_cases.build(self.kind, self.seeds, number, self.case)
            verdict = self.run(words)
            if verdict.problem == "too slow" and verdict.compiled:
                self._clear(self.case)
                fuzz_cases.build(self.kind, self.seeds, number, self.case)
                verdict = self.run(words)
            if not verdict.problem and number % SHARE == 0:
                self._clear(self.case)
                fuzz_cases.build(self.kind, self.seeds, number, self.case)
                verdict = self.outside(words)
            self.codes[verdict.code] = self.codes.get(verdict.code, 0) + 1
            if verdict.problem:
                self.failed(number, words, verdict)
            number += 1
        return number - first

    def failed(self, number: int, words: list[str], verdict: Verdict) -> None:
        """Keep the first case of a failure."""
        self.failures[verdict.problem] = self.failures.get(verdict.problem, 0) + 1
        if self.failures[verdict.problem] > 1:
            return
        folder = self.keep / f"{self.kind}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "files").mkdir(parents=True)
        fuzz_cases.build(self.kind, self.seeds, number, folder / "files")
        self.make_smaller(folder / "files", words, verdict.problem)
        facts = {"kind": self.kind, "number": number, "words": words, "problem": verdict.problem}
        (folder / "case.json").write_text(json.dumps(facts | {"detail": verdict.detail}, indent=1))
        print(f"{folder}: {verdict.problem}: hopmap {' '.join(words)[:200]}", flush=True)

    def make_smaller(self, files: Path, words: list[str], problem: str) -> None:
        """Cut pieces off the files that were changed, as long as the case fails the same way."""
        end = time.monotonic() + SMALLER
        for file in sorted(files.rglob("*")):
            original = self.seeds / file.relative_to(files)
            data = file.read_bytes() if file.is_file() else b""
            if original.is_file() and original.read_bytes() == data:
                continue
            step = len(data) // 2
            while step and time.monotonic() < end:
                for begin in range(0, len(data), step):
                    shorter = data[:begin] + data[begin + step :]
                    file.write_bytes(shorter)
                    if time.monotonic() < end and self.run(words, files).problem == problem:
                        data = shorter
                file.write_bytes(data)
                step //= 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=[*fuzz_cases.KINDS, "work"])
    parser.add_argument("--seconds", type=float, default=600, help="of a processor")
    parser.add_argument("--seed", type=int, default=0, help="number of the first case / 10^9")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "hopmap-fuzz")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="more seeds")
    parser.add_argument("--repeat", type=Path, help="a kept case")
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind == "work":
        work(options.scratch, options.fd)
        return
    with tempfile.TemporaryDirectory() as scratch:
        fuzzer = Fuzzer(options.kind, Path(scratch), options.keep, options.more)
        if options.repeat:
            words = json.loads((options.repeat / "case.json").read_text())["words"]
            print(*fuzzer.run(words, options.repeat / "files"), sep="\n")
            if fuzzer.worker:
                fuzzer.worker.stop()
            return
        begin = time.monotonic()
        cases = fuzzer.fuzz(options.seconds, options.seed * 10**9)
        took = time.monotonic() - begin
        if fuzzer.worker:
            fuzzer.worker.stop()
    spent = fuzzer.seconds + _processor()
    print(
        f"{options.kind}: {cases} cases in {spent:.0f} s of a processor, {took:.0f} s on the clock"
    )
    print("exit codes:", ", ".join(f"{n} times {code}" for code, n in sorted(fuzzer.codes.items())))
    for problem, times in sorted(fuzzer.failures.items()):
        print(f"FAILURE, {times} times: {problem}")
    sys.exit(bool(fuzzer.failures))


if __name__ == "__main__":
    main()
