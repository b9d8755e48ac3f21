"""The command `hopmap`."""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    cli_calibrate,
    cli_convert,
    cli_explain,
    cli_mappings,
    cli_scenarios,
    cli_simulate,
    cli_sweep,
    cli_traces,
)
from .cli_errors import OneLineGroup
from .console import say

app = typer.Typer(
    name="hopmap",
    cls=OneLineGroup,
    help="Which rank should sit on which node, and what does that buy?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(cli_sweep.run)
app.command()(cli_sweep.query)
app.command()(cli_scenarios.report)
app.command()(cli_traces.generate)
app.command()(cli_traces.info)
app.command()(cli_traces.matrix)
app.command("map")(cli_mappings.map_)
app.command()(cli_mappings.evaluate)
app.command()(cli_simulate.simulate)
app.command()(cli_explain.explain)
app.command()(cli_mappings.export)
app.command()(cli_mappings.header)
app.command()(cli_convert.convert)
app.command()(cli_calibrate.calibrate)
app.command("list")(cli_scenarios.list_)


@app.callback(invoke_without_command=True)
def _hopmap(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        say(f"hopmap {installed('hopmap')}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def main() -> None:
    """Run the command line."""
    app()
