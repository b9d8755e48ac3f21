"""A scenario: which traces, topologies, mappers and seeds a sweep crosses, and how it runs."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StrictBool,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from hopmap.api.job import jobs_digest
from hopmap.errors import choice
from hopmap.plugins import add_plugin, load_named
from hopmap.simulator.parameters.keys import names_algorithm
from hopmap.simulator.parameters.settings import Settings, check_settings, known_keys
from hopmap.simulator.uncertainty import RELEVANCE
from hopmap.topologies import Topology, topology_from_spec
from hopmap.traces.sources import Source, open_source

from . import ScenarioError
from .scenario_tables import (
    TABLE,
    Context,
    Exclude,
    Include,
    Jobs,
    Mappers,
    Parameter,
    Published,
    Replay,
    Seeds,
    Text,
    Topologies,
    Traces,
    Validated,
    Vary,
    in_place,
    prefix_errors,
    unique,
)

MOST_RUNS = 1_000_000
"""Whose plan still fits into memory."""


def studies(module: str) -> Any:
    """Load a module of the wing of studies, which only the keys suites and published ask for."""
    return load_named("hopmap.scenarios.studies", module)


def _suites(texts: list[str]) -> list[str]:
    for text in texts:
        studies("suites").suite_cases(text)
    return unique(texts)


def _plugin(plugin: str, context: Context) -> str:
    add_plugin(str(context.path.parent / plugin) if plugin.endswith(".py") else plugin)
    return plugin


def _others(file: str, context: Context) -> str:
    file = file and context.absolute(file)
    jobs_digest(file)
    return file


class Scenario(BaseModel):
    """A sweep: every trace on every topology with every mapper and seed.

    Files are relative to the scenario file. With suites or jobs, traces and topologies may be
    left out.
    """

    model_config = TABLE

    # Before anything asks for the names of plugins.
    plugins: list[Annotated[Text, in_place(_plugin)]] = []
    """Files, or modules, with mappers and topologies of your own."""
    name: Text = Field(default="", validate_default=False)
    """Title of the report; by default the name of the file."""
    description: StrictStr = ""
    """Text below the title of the report."""
    traces: Traces = Field(default=[], validate_default=False)
    """OTF2 archives, traffic files, benchmarks ("lu.C.64"), stencils or collectives."""
    topologies: Topologies = Field(default=[], validate_default=False)
    """Networks, like "torus:4x4x4"."""
    suites: Annotated[list[Text], AfterValidator(_suites)] = []
    """Suites of a thesis on Cartesian grids, as pairs of a stencil and a cluster: "partitions"."""
    mappers: Mappers
    """Pipelines ("minmd | bokhari") and files of mappings ("file:today.csv"); "applicable": all
    mappers that need no mapping to start from."""
    seeds: Seeds = [0]
    """Seeds of mappers that draw random numbers; others run once."""
    relevance: Annotated[float, Field(ge=0, lt=1)] = RELEVANCE
    """Smaller differences between runtimes make no practical difference; 0.01 is 1 %."""
    replay: Replay = Replay()
    """How runs are replayed: the table [replay]."""
    parameters: dict[str, Parameter] = {}
    """Parameters of the model, like "link.bandwidth" = "10 GB/s"; see `hopmap list parameters`."""
    prices: dict[str, Annotated[float, Field(ge=0)]] = {}
    """Prices of a "node", a "switch", a "link" in both directions, or one kind's, "link.KIND"; in
    any currency. The report compares networks of equal cost."""
    validated: Validated | None = None
    """Measurements that the parameters were compared with; reports name them."""
    collectives: Literal["auto", "ignore", "expand"] = "auto"
    """Whether mappers and metrics count what collectives send; "auto": where that is more than the
    messages of a trace, and no algorithms vary."""
    balanced: StrictBool = False
    """Whether all nodes get the same number of ranks, one more at most."""
    published: Published | None = None
    """Numbers of a paper to compare with."""
    include: list[Include] = []
    """More runs."""
    exclude: list[Exclude] = []
    """Runs to leave out."""
    vary: list[Vary] = []
    """Parameters that take several values."""
    jobs: list[Jobs] = []
    """Runs on the nodes of real jobs."""
    folder: StrictStr = ""
    """Folder of the files of jobs and of their machines; by default the scenario's."""
    hosts: Text | None = None
    """Nodes of a job, on every topology: a file of hosts."""
    nodelist: Text | None = None
    """Nodes of a job, on every topology: Slurm's list, like "node[01-16]"."""
    co_running_jobs: Annotated[StrictStr, in_place(_others)] = ""
    """Other jobs and background traffic, placed first: a file of `hopmap simulate --jobs`."""

    @cached_property
    def groups(self) -> list[Include]:
        """What is crossed: the scenario itself, then what it includes, then its suites."""
        cases = [case for text in self.suites for case in studies("suites").suite_cases(text)]
        first, *others = [
            Include.model_construct(traces=traces, topologies=topologies)
            for traces, topologies in (
                (self.traces, self.topologies),
                *(([case.trace], [case.topology]) for case in cases),
            )
        ]
        return [
            each.model_copy(
                update={"mappers": each.mappers or self.mappers, "seeds": each.seeds or self.seeds}
            )
            for each in (first, *self.include, *others)
        ]

    @cached_property
    def crossed(self) -> dict[str, dict[str, None]]:
        """All traces, topologies and mappers that are crossed, each once."""
        return {
            key: dict.fromkeys(text for group in self.groups for text in getattr(group, key))
            for key in ("traces", "topologies", "mappers")
        }

    @cached_property
    def networks(self) -> dict[str, Topology]:
        """The topologies by their specs."""
        return {spec: topology_from_spec(spec) for spec in self.crossed["topologies"]}

    def sources(self, folder: Path) -> dict[str, Source]:
        """Find the traces; `folder` is where the scenario file lies."""
        return {trace: open_source(trace, folder) for trace in self.crossed["traces"]}

    def variants(self, network: Topology) -> list[tuple[str, Settings]]:
        """Cross what varies on a network, the first table slowest; it wins over `parameters`.

        A point has a label, empty where nothing varies, and all its parameters.
        """
        choices = [points for each in self.vary if (points := each.points(network))]
        return [
            (
                ", ".join(label for label, _ in point),
                tuple(sorted({**self.parameters, **dict(s for _, p in point for s in p)}.items())),
            )
            for point in product(*choices)
        ]

    @property
    def varies_algorithms(self) -> bool:
        """Whether algorithms of collectives vary."""
        return any(names_algorithm(key) for vary in self.vary for key in vary.parameters)

    def _check_prices(self) -> None:
        """Refuse a price of nothing that a network has."""
        kinds = {kind.name for network in self.networks.values() for kind in network.kinds}
        known = ["node", "switch", "link", *(f"link.{kind}" for kind in sorted(kinds))]
        for key in self.prices:
            if key not in known:
                raise ScenarioError(f"prices: {choice('unknown key', key, known)}")

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Scenario:
        context: Context | None = info.context
        if context is None or self.jobs:  # checked when they are written out
            return self
        scenario = self if context.before is None else self._without_keys_of(context.before)
        names = scenario._check_names(context.path.parent)
        known = [scenario] if context.before is None else [scenario, context.before]
        for place, rule in enumerate(scenario.exclude):
            for what in rule.find_unused(known):
                raise ScenarioError(
                    f"exclude[{place}]{what}: expected something that the scenario runs"
                )
        scenario._check_parameters()
        scenario._check_prices()
        if scenario.replay.repeat and scenario.replay.models:
            raise ScenarioError("replay.repeat and replay.models are mutually exclusive")
        if scenario.replay.tolerance is not None and not scenario.replay.extrapolate:
            raise ScenarioError("replay.tolerance requires replay.extrapolate = true")
        for key in (
            ("repeat", "models", "messages", "tolerance") if scenario.co_running_jobs else ()
        ):
            if getattr(scenario.replay, key):
                raise ScenarioError(f"replay.{key} and co_running_jobs are mutually exclusive")
        if scenario.published:
            file = context.path.parent / scenario.published.file
            with prefix_errors("published.file"):
                studies("published").check_published(file, names, scenario.networks)
        return scenario

    def _without_keys_of(self, before: Scenario) -> Scenario:
        """Leave out what the file gives of parameters of topologies that were set away."""
        gone = set(known_keys(before.networks.values())) - {*known_keys(self.networks.values())}
        kept = {
            key: value
            for key, value in self.parameters.items()
            if key not in gone or before.parameters.get(key) != value
        }
        return self.model_copy(update={"parameters": kept})

    def _check_names(self, folder: Path) -> list[str]:
        """Return the names of the traces, which tell them apart."""
        sources: dict[str, Source] = {}
        for place, group in enumerate(self.groups):
            here: list[Source] = []
            for trace in group.traces:
                source = open_source(trace, folder)
                if source in here or sources.setdefault(source.name, source) != source:
                    at = f"include[{place - 1}]." if place else ""
                    raise ScenarioError(
                        f"{at}traces: two are called {source.name!r}: expected different names"
                    )
                here.append(source)
        return list(sources)

    def _check_parameters(self) -> None:
        """Check parameters and what varies of them, and the number of runs that this makes."""
        networks = list(self.networks.values())
        with prefix_errors("parameters"):
            check_settings(self.parameters, networks)
        with prefix_errors("vary"):
            keys = [key for each in self.vary for key in each.parameters]
            for key in keys:
                if keys.count(key) > 1:
                    raise ScenarioError(f"{key}: varied twice: expected once")
                if self.collectives == "expand" and names_algorithm(key):
                    raise ScenarioError(
                        f"{key}: expected no algorithms to vary where collectives are expanded, "
                        "since they change the traffic that is mapped"
                    )
            points = {
                network.spec: prod(len(each.points(network)) or 1 for each in self.vary)
                for network in networks
            }
            for each in self.vary:
                for point in each.values:
                    varied = dict(zip(each.parameters, point, strict=True))
                    check_settings(self.parameters | varied, networks)
        runs = sum(
            len(group.traces) * len(group.mappers or ()) * len(group.seeds or ()) * points[spec]
            for group in self.groups
            for spec in group.topologies
        )
        if runs > MOST_RUNS:
            raise ScenarioError(f"{runs:,} runs: expected at most {MOST_RUNS:,}")
