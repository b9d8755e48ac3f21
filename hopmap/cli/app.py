"""The command `hopmap`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.main import get_command

from hopmap.plugins import Table, add_plugin

from .console import say
from .errors import OneLineGroup
from .options import takes_options

COMMANDS: Table[Any] = Table(
    __package__,
    {
        "record": "mpi.record:record",
        "run": "sweep:run",
        "query": "results:query",
        "report": "results:report",
        "generate": "traces.writing:generate",
        "scale": "traces.writing:scale",
        "info": "traces.reading:info",
        "matrix": "traces.reading:matrix",
        "model": "model:model",
        "advise": "advise:advise",
        "choose": "advise:choose",
        "map": "mappings:map_",
        "evaluate": "mappings:evaluate",
        "simulate": "simulate:simulate",
        "explain": "explain:explain",
        "export": "exports:export",
        "header": "mpi.header:header",
        "convert": "exports:convert",
        "calibrate": "measured:calibrate",
        "validate": "measured:validate",
        "list": "listing:list_",
        "precompile": "precompile:precompile",
    },
)
"""Functions of commands, in the order of the help; only the one that is called is imported."""
SETTINGS = {"record": {"allow_interspersed_args": False}}


class CommandGroup(OneLineGroup):
    """The commands of `COMMANDS`, imported when they are called."""

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
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|MODULE",
            help="Python file or module with mappers or topologies of your own; may be repeated.",
        ),
    ] = None,
) -> None:
    for each in plugin or []:
        add_plugin(each)
    if version:
        from hopmap.version import __version__

        say(f"hopmap {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def main() -> None:
    """Run the command line."""
    app()
