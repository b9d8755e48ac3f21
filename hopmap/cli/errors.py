"""Every failure of the command line as one line on stderr and an exit code.

2 for anything a user can put right, 3 for a sweep of which some runs failed, 130 for Ctrl-C,
1 for a mistake of ours: HOPMAP_DEBUG=1 shows its traceback.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from hopmap.errors import HopmapError, HopmapWarning, debugging, one_line, printable

from .console import ClosedPipeError, drop_stdout, flush, hold_notes, note, print_json, warn
from .options import forget, readable

WRONG_INPUT, INTERRUPTED, OURS = 2, 130, 1


class OneLineGroup(TyperGroup):
    """The command group whose errors are one line, and with ``--json`` a JSON object as well."""

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> Any:
        """Run a command and exit."""
        extra["standalone_mode"] = False
        given = list(sys.argv[1:] if args is None else args)
        code: int | str | None = 0
        line = ""
        hold_notes()
        forget()
        try:
            with warnings_as_notes():
                result = super().main(given, prog_name, **extra)
            code = result if isinstance(result, int) else 0
            if code == INTERRUPTED:  # which typer makes of Ctrl-C; who has said it exits by itself
                line = "interrupted"
            flush()
        except ClosedPipeError:
            drop_stdout()
        except SystemExit as stop:
            # That of --help is told to click and rich.
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
            if "--json" in given:
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
        return WRONG_INPUT, line + help_line
    if type(error).__name__ == "Abort":
        return INTERRUPTED, "interrupted"
    named = isinstance(error, OSError) and bool(error.strerror)
    return WRONG_INPUT if named or isinstance(error, HopmapError) else OURS, one_line(error)
