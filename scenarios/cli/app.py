"""The command `hopmap`."""

from __future__ import annotations

from typing import Annotated

import typer

from hopmap.plugins import add_plugin

from . import (
    advise,
    choose,
    explain,
    exports,
    mappings,
    model,
    precompile,
    report,
    results,
    simulate,
    sweep,
)
from .console import say
from .errors import OneLineGroup
from .measured import calibrate, validate
from .mpi import header, record
from .options import takes_options
from .traces import generate, reading, scale

app = typer.Typer(
    name="hopmap",
    cls=OneLineGroup,
    help="Which rank should sit on which node, and what does that buy?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(sweep.run, results.query, report.report, generate.generate, scale.scale),
    *(reading.info, reading.matrix, model.model, advise.advise, choose.choose, mappings.map_),
    *(mappings.evaluate, simulate.simulate, explain.explain, exports.export, header.header),
    *(exports.convert, calibrate.calibrate, validate.validate, report.list_),
    precompile.precompile,
)
app.command(context_settings={"allow_interspersed_args": False})(record.record)
for each in COMMANDS:
    app.command(each.__name__.rstrip("_"))(takes_options(each))


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
