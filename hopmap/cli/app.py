"""The command `hopmap`: its commands, and every failure as one line on stderr and an exit code.

2 for anything a user can put right, 3 for a sweep of which some runs failed, 130 for Ctrl-C,
1 for a mistake of ours: HOPMAP_DEBUG=1 shows its traceback.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hopmap.errors import HopmapError, HopmapWarning, debugging, one_line, printable
from hopmap.plugins import Table

from .console import (
    INTERRUPTED,
    ClosedPipeError,
    flush,
    hold_notes,
    note,
    print_json,
    say,
    warn,
)
from .options import Plugins, forget, readable, takes_options

COMMANDS: Table[Any] = Table(
    __package__,
    {
        "record": "record:record",
        "run": "sweep:run",
        "query": "results:query",
        "report": "results:report",
        "generate": "traces.writing:generate",
        "scale": "traces.writing:scale",
        "info": "traces.reading:info",
        "matrix": "traces.reading:matrix",
        "coarsen": "coarsen:coarsen",
        "advise": "advise:advise",
        "robust": "advise:robust",
        "map": "mappings:map_",
        "evaluate": "mappings:evaluate",
        "simulate": "simulate:simulate",
        "explain": "explain:explain",
        "view": "view:view",
        "export": "exports:export",
        "check": "exports:check",
        "header": "header:header",
        "convert": "exports:convert",
        "calibrate": "measured:calibrate",
        "validate": "measured:validate",
        "list": "listing:list_",
        "precompile": "listing:precompile",
    },
)
"""Functions of commands, in the order of the help; only the one that is called is imported."""
WRONG_INPUT, OURS = 2, 1  # exit codes, in addition to `INTERRUPTED`
SETTINGS = {"record": {"allow_interspersed_args": False}}


class CommandGroup(TyperGroup):
    """The commands of `COMMANDS`, imported when called; with --json errors are JSON as well."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None for a name that is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            command = takes_options(COMMANDS[cmd_name])
            own = typer.Typer(add_completion=False)
            own.command(cmd_name, context_settings=SETTINGS.get(cmd_name))(command)
            self.commands[cmd_name] = get_command(own)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called; all are known where the error says which is near."""
        if args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> Any:
        """Run a command and exit."""
        extra["standalone_mode"] = False
        words = list(sys.argv[1:] if args is None else args)
        code: int | str | None = 0
        line = ""
        hold_notes()
        forget()
        try:
            with warnings_as_notes():
                result = super().main(words, prog_name, **extra)
            code = result if isinstance(result, int) else 0
            if code == INTERRUPTED:  # which typer makes of Ctrl-C; who has said it exits by itself
                line = "interrupted"
            flush()
        except ClosedPipeError:
            # What still waits goes to nowhere, so that Python's exit is silent.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except SystemExit as stop:
            # click and rich catch the closed pipe of --help and exit.
            code = 0 if isinstance(stop.__context__, BrokenPipeError) else stop.code
        except KeyboardInterrupt:
            code, line = INTERRUPTED, "interrupted"
        except Exception as error:
            if debugging():
                raise
            code, line = answer(error)
        if line:
            hold_notes()
            line = readable(line)
            warn(line)
            if "--json" in words:
                print_json({"error": line})
        sys.exit(code)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Have hopmap's own warnings said with the result, each of them, and others as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", HopmapWarning)
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, HopmapWarning):
                note(str(message))
            else:
                others(message, category, *where, **more)

        warnings.showwarning = show
        yield


def answer(error: Exception) -> tuple[int, str]:
    """Return exit code and line for an error."""
    if hasattr(error, "format_message"):  # a usage error of typer's
        context = getattr(error, "ctx", None)
        help_line = f" (see: {context.command_path} --help)" if context else ""
        line = printable(error.format_message()).replace(": Value error, ", ": ")
        line = line.replace(": Input should be ", ": expected ").partition(", unable to parse")[0]
        found: list[dict[str, object]] = getattr(error.__cause__, "errors", list)()  # pydantic
        if found:
            line += f", not {printable(repr(found[0]['input']))}"
        return WRONG_INPUT, line + help_line
    if type(error).__name__ == "Abort":
        return INTERRUPTED, "interrupted"
    named = isinstance(error, OSError) and bool(error.strerror)
    return WRONG_INPUT if named or isinstance(error, HopmapError) else OURS, one_line(error)


app = typer.Typer(
    name="hopmap",
    cls=CommandGroup,
    help="Which rank should sit on which node, and what does that buy?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _hopmap(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    plugins: Plugins = None,  # noqa: ARG001 entered by its callback
) -> None:
    if version:
        from hopmap.version import __version__

        say(f"hopmap {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def main() -> None:
    """Run the command line."""
    # Looking for garbage, at the end as well, would take a quarter of a short command's time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    app()


# CPython 3.11 and 3.12 map 16 KiB where calls get deeper and unmap them at once where they return
# (gh-142183): compiling for `run first` does that 250,000 times, a tenth of its processor time. The
# first piece holds the first frame, so one large frame spares the others.
main.__code__ = main.__code__.replace(co_stacksize=1 << 15)
