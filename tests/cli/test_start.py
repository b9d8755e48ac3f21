"""Ctrl-C at any time is 130 and no traceback, also while the command still loads."""

import os
import signal
import subprocess
import sys

import pytest

from hopmap.cli import app, start

WHILE_LOADING = """
import os, signal, sys

class Pressed:
    def find_spec(name, *_):
        if name == "typer":
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
sys.meta_path.insert(0, Pressed)
from hopmap.cli.start import main
main()
"""
AFTER = """
import atexit, signal, sys
atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)  # Python would end by it, without handlers
from hopmap.cli.start import main
signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_PROF, float(sys.argv.pop(1)))
main()
"""


def ran(code, *words):
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_ctrl_c_while_the_command_loads_ends_it_without_a_word():
    assert ran(WHILE_LOADING) == (130, "", "")


def test_the_package_and_the_first_step_are_loaded_before_ctrl_c_can_come():
    """Nothing that takes time stands before the handler."""
    code = "import os, signal, sys; old = {*sys.modules}; import hopmap.cli.start; "
    _, loaded, _ = ran(code + "print(*sorted({*sys.modules} - old))")
    assert loaded.split() == ["hopmap", "hopmap.cli", "hopmap.cli.start"]


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_the_command_runs_with_the_handler_that_was_there(monkeypatch, before):
    """What a shell starts in the background, or nohup, ignores Ctrl-C."""
    seen = []
    monkeypatch.setattr(app, "main", lambda: seen.append(signal.getsignal(signal.SIGINT)))
    usual = signal.signal(signal.SIGINT, before)
    try:
        start.main()
    finally:
        signal.signal(signal.SIGINT, usual)
    assert seen == [before]


def test_ctrl_c_before_the_command_has_begun_is_130(monkeypatch):
    def pressed():
        raise KeyboardInterrupt

    ended = []
    monkeypatch.setattr(app, "main", pressed)
    monkeypatch.setattr(os, "_exit", ended.append)
    start.main()
    assert ended == [130]


@pytest.mark.slow
@pytest.mark.parametrize("words", [["list", "mappers"], ["info", "lu.S.16"]])
def test_ctrl_c_has_no_traceback_after_any_time(words):
    """Of the processor, so that a busy machine is no other case. A shell says 130 for SIGINT, too.

    CPython ends by SIGINT where the exception passed an `exec`, even when it was handled.
    """
    for tick in range(1, 31):
        code, _, said = ran(AFTER, f"{tick / 100}", *words)
        assert code in (0, 130, -signal.SIGINT), (tick, said)
        assert said in ("", "hopmap: interrupted\n"), (tick, said)
