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
from .traces import generate, reading, scale

app = typer.Typer(
    name="hopmap",
    cls=OneLineGroup,
    help="Which rank should sit on which node, and what does that buy?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(context_settings={"allow_interspersed_args": False})(record.record)
app.command()(sweep.run)
app.command()(results.query)
app.command()(report.report)
app.command()(generate.generate)
app.command()(scale.scale)
app.command()(reading.info)
app.command()(reading.matrix)
app.command()(model.model)
app.command()(advise.advise)
app.command()(choose.choose)
app.command("map")(mappings.map_)
app.command()(mappings.evaluate)
app.command()(simulate.simulate)
app.command()(explain.explain)
app.command()(exports.export)
app.command()(header.header)
app.command()(exports.convert)
app.command()(calibrate.calibrate)
app.command()(validate.validate)
app.command("list")(report.list_)
app.command()(precompile.precompile)


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
