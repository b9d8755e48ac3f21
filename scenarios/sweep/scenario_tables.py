"""The tables and values of a scenario file, and what is checked of each by itself.

Types are checked always; what files, specs and pipelines name only where a `Context` says where the
scenario lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from hopmap.api.named_files import absolute_in, canonical_mapper, change_mapper_path, change_paths
from hopmap.mappers.mapper import all_mappers
from hopmap.simulator import DEFAULT_ENGINE, ENGINES
from hopmap.simulator.parameters.settings import Settings, Value, known_keys
from hopmap.simulator.uncertainty import LEAST
from hopmap.topologies import Topology, did_you_mean, topology_from_spec
from hopmap.traces.sources import open_source

if TYPE_CHECKING:
    from .scenario import Scenario

APPLICABLE = "applicable"
TABLE = ConfigDict(extra="forbid", frozen=True)


class Context(NamedTuple):
    """Where a scenario lies, its file without ``--set``, and whose nodes its topologies have.

    Rules may be about what is there without ``--set``.
    """

    path: Path
    before: Scenario | None = None
    job: str = ""

    @property
    def absolute(self) -> Callable[[str], str]:
        """Make a path absolute that is relative to the file."""
        return absolute_in(self.path.parent)


def in_place(check: Callable[[Any, Context], Any]) -> AfterValidator:
    """Return a validator that is asked of scenarios whose place is known only."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        return value if info.context is None else check(value, info.context)

    return AfterValidator(validate)


def unique(values: list[Any]) -> list[Any]:
    """Refuse a value that is listed twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value!r} is listed twice: expected once")
        seen.add(value)
    return values


def _applicable(value: Any) -> Any:
    """Write all mappers out that need no mapping to start from."""
    if isinstance(value, str) and value != APPLICABLE:
        hint = did_you_mean(value, [APPLICABLE])
        raise ValueError(f'{value!r}{hint}: expected a list, or "{APPLICABLE}"')
    if value not in (APPLICABLE, [APPLICABLE]):
        return value
    return [name for name, info in all_mappers().items() if not info.needs_initial]


def _mappers(texts: list[str], context: Context) -> list[str]:
    return unique([canonical_mapper(change_mapper_path(text, context.absolute)) for text in texts])


def _topologies(texts: list[str], context: Context) -> list[str]:
    specs = (change_paths(context.job + text, context.absolute) for text in texts)
    return unique([topology_from_spec(spec).spec for spec in specs])


def _traces(texts: list[str], context: Context) -> list[str]:
    for text in texts:
        open_source(text, context.path.parent)
    return texts


def _value(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r}: expected a number in SI units, or a text like '10 GB/s'")
    return value


def _engine(engine: Any) -> Any:
    if engine is False or (isinstance(engine, str) and engine in ENGINES):
        return engine
    hint = did_you_mean(engine, ENGINES) if isinstance(engine, str) else ""
    raise ValueError(f"{engine!r}{hint}: expected false or one of {', '.join(ENGINES)}")


Text = Annotated[StrictStr, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**63)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(unique)]
Traces = Annotated[Texts, in_place(_traces)]
Topologies = Annotated[Texts, in_place(_topologies)]
Mappers = Annotated[Texts, BeforeValidator(_applicable), in_place(_mappers)]
Parameter = Annotated[Any, BeforeValidator(_value)]
Values = Annotated[list[Parameter], Field(min_length=1)]


@contextmanager
def prefix_errors(key: str) -> Iterator[None]:
    """Name the key in an error of what is checked."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


class Table(BaseModel):
    """A table of a scenario."""

    model_config = TABLE


class Replay(Table):
    """How runs are replayed."""

    engine: Annotated[Any, BeforeValidator(_engine)] = DEFAULT_ENGINE
    """Engine, see `hopmap list engines`; false measures without a replay."""
    steps: Annotated[StrictInt, Field(ge=1)] | None = None
    """Time steps of a generated benchmark; by default all. Metrics count the whole run."""
    rounds: Annotated[StrictInt, Field(ge=1)] | None = None
    """Rounds in which the messages of a traffic file are sent; by default such files are not
    replayed. A stencil has one round by default."""
    messages: StrictBool = False
    """Whether to keep the times of each message, in the table "messages"."""
    extrapolate: StrictBool = True
    """Whether a long replay may end when its main loop has settled; the rest is extrapolated."""
    tolerance: Annotated[float, Field(ge=0, le=1)] | None = None
    """Error bound, as a share of the makespan, at which a replay of any length may end; recorded
    steps need it unless they repeat exactly."""
    repeat: Annotated[StrictInt, Field(ge=LEAST)] | None = None
    """Replays with noise, with the same seeds for all mappers; the report says which mappers
    differ. By default one replay without noise."""
    models: Annotated[StrictInt, Field(ge=LEAST)] | None = None
    """Models of the network to replay under in place of `repeat`, the same for all mappers: with
    other speeds, latencies, overheads, buffers, routing and noise, drawn as `advise` draws them."""


class Published(Table):
    """Numbers of a paper to compare with."""

    file: Text
    """CSV with the header `trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max`, with
    `reason` if you like; `topology` is a family ("mesh")."""


class Include(Table):
    """More runs."""

    traces: Traces
    """As at the top."""
    topologies: Topologies
    """As at the top."""
    mappers: Mappers | None = None
    """By default those at the top."""
    seeds: Seeds | None = None
    """By default those at the top."""


class Jobs(Table):
    """Runs on the nodes of real jobs."""

    hosts: Text
    """A list of hosts, an alloc.csv, or a folder or tar archive of them, one file a job."""
    topology: Text
    """The machine, like "file:nodes.txt"."""
    traces: Texts
    """As at the top; the size of a job fills {nodes}, {power}, {square} and {box}."""
    min_nodes: Annotated[StrictInt, Field(ge=1)] = 1
    """Size of the smallest job that is run."""
    max_nodes: Annotated[StrictInt, Field(ge=1)] | None = None
    """Size of the largest job that is run."""
    on_unknown: Literal["error", "skip"] = "error"
    """What to do with a job that has nodes which the machine does not have."""
    mappers: Mappers | None = None
    """By default those at the top."""
    seeds: Seeds | None = None
    """By default those at the top."""


class Exclude(Table):
    """Runs to leave out: the runs that match all keys of a table."""

    traces: Texts | None = None
    """Traces of the runs."""
    topologies: Topologies | None = None
    """Topologies of the runs."""
    mappers: Mappers | None = None
    """Mappers of the runs."""
    unequal_nodes: Literal[True] | None = None
    """Topologies whose nodes differ in their numbers of slots."""

    def find_unused(self, scenarios: Sequence[Scenario]) -> list[str]:
        """Return what of the rule no scenario runs."""
        if self == Exclude():
            return [": empty"]
        return [
            f".{key}: {text!r}"
            for key in ("traces", "topologies", "mappers")
            for text in getattr(self, key) or ()
            if not any(text in each.crossed[key] for each in scenarios)
        ]

    def matches(self, trace: str, network: Topology, mapper: str) -> bool:
        """Whether a run is left out."""
        return (
            (self.traces is None or trace in self.traces)
            and (self.topologies is None or network.spec in self.topologies)
            and (self.mappers is None or mapper in self.mappers)
            and (self.unequal_nodes is None or len(set(network.slots.tolist())) > 1)
        )


class Vary(Table):
    """Parameters that take several values. Tables are crossed.

    A parameter that a topology lacks, like wireless links on a mesh, does not vary on it.
    """

    name: Text | None = None
    """Name in reports; by default the parameters' names."""
    labels: Texts | None = None
    """Names of the values in reports; by default the values."""
    parameters: Annotated[dict[str, Values], Field(min_length=1)]
    """Lists of values, all of the same length: first values go with first values."""

    @property
    def title(self) -> str:
        """What reports call it."""
        return self.name or ", ".join(self.parameters)

    @property
    def values(self) -> list[tuple[Value, ...]]:
        """The values that go together."""
        return list(zip(*self.parameters.values(), strict=True))

    def points(self, network: Topology) -> list[tuple[str, Settings]]:
        """Return label and settings of every point on a network; nothing where it varies nothing.

        Raises `ValueError` where points that differ are the same there.
        """
        known = set(known_keys([network]))
        kept = [key for key in self.parameters if key in known]
        rows = zip(*(self.parameters[key] for key in kept), strict=True)
        points = [tuple(zip(kept, row, strict=True)) for row in rows]
        if kept and len(set(points)) < len(points):
            lacking = ", ".join(key for key in self.parameters if key not in known)
            raise ValueError(
                f"{self.title}: two of its points are one on {network.spec}, which has no "
                f"{lacking}: expected points that differ there, too, or another scenario for it"
            )
        labels = self.labels or [", ".join(map(str, point)) for point in self.values]
        return [
            (f"{self.title} {label}", each) for label, each in zip(labels, points, strict=False)
        ]

    @model_validator(mode="after")
    def _fits(self) -> Vary:
        points, *_ = (len(values) for values in self.parameters.values())
        for key, values in self.parameters.items():
            if len(values) != points:
                raise ValueError(
                    f"{key}: {len(values)} values: expected {points}, as many as the others"
                )
        if self.labels and len(self.labels) != points:
            raise ValueError(
                f"labels: {len(self.labels)} of them: expected {points}, one for each value"
            )
        with prefix_errors(self.title):
            unique(self.labels or [])
            unique(self.values)
        return self


class Validated(Table):
    """How parameters compare with measured times, as `hopmap calibrate` writes it."""

    topologies: Texts
    """Networks on which times were measured."""
    error: Annotated[float, Field(ge=0)]
    """Median of the relative errors."""
