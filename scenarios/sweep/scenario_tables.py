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

    def validated(value: Any, info: ValidationInfo) -> Any:
        return value if info.context is None else check(value, info.context)

    return AfterValidator(validated)


def once(values: list[Any]) -> list[Any]:
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
    return once([canonical_mapper(change_mapper_path(text, context.absolute)) for text in texts])


def _topologies(texts: list[str], context: Context) -> list[str]:
    specs = (change_paths(context.job + text, context.absolute) for text in texts)
    return once([topology_from_spec(spec).spec for spec in specs])


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
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(once)]
Traces = Annotated[Texts, in_place(_traces)]
Topologies = Annotated[Texts, in_place(_topologies)]
Mappers = Annotated[Texts, BeforeValidator(_applicable), in_place(_mappers)]
Parameter = Annotated[Any, BeforeValidator(_value)]
Values = Annotated[list[Parameter], Field(min_length=1)]


@contextmanager
def prefixed(key: str) -> Iterator[None]:
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

    # A name of `hopmap.simulator.ENGINES`; False measures without replaying.
    engine: Annotated[Any, BeforeValidator(_engine)] = DEFAULT_ENGINE
    # Time steps of a generated benchmark, all when left out; metrics are of the whole run.
    steps: Annotated[StrictInt, Field(ge=1)] | None = None
    # Of files of traffic, 1 for all at once; measured only when left out. A stencil has one then.
    rounds: Annotated[StrictInt, Field(ge=1)] | None = None
    # Whether to keep when each message was sent and delivered, in the table "messages".
    messages: StrictBool = False
    # Whether long runs may end once their main loop has settled, the other steps extrapolated.
    extrapolate: StrictBool = True
    # Replays with noise, with the same seeds for all, so that the report says which mappers differ;
    # once without noise when left out.
    repeat: Annotated[StrictInt, Field(ge=LEAST)] | None = None


class Published(Table):
    """Numbers of a paper, to be shown beside ours.

    ``file`` is a CSV with the header ``trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,
    ienpc_max``, relative to the scenario file; ``topology`` is a family ("mesh").
    """

    file: Text


class Include(Table):
    """More runs: traces on topologies; mappers and seeds are the scenario's when left out."""

    traces: Traces
    topologies: Topologies
    mappers: Mappers | None = None
    seeds: Seeds | None = None


class Jobs(Table):
    """Runs on the hosts of jobs; see `scenario_files.write_out_jobs`.

    Mappers and seeds are the scenario's when left out.
    """

    hosts: Text  # A list of hosts, an alloc.csv, or a folder or tar archive of such, one a job.
    topology: Text
    traces: Texts  # As in `Scenario`, with fields that the size of a job fills: "lu.C.{power}".
    min_nodes: Annotated[StrictInt, Field(ge=1)] = 1  # Sizes of the jobs that count.
    max_nodes: Annotated[StrictInt, Field(ge=1)] | None = None
    # What to do with a job that has nodes which the machine does not have.
    on_unknown: Literal["error", "skip"] = "error"
    mappers: Mappers | None = None
    seeds: Seeds | None = None


class Exclude(Table):
    """Runs to leave out: those that match every list that is given.

    ``unequal_nodes`` matches topologies whose nodes have not all the same number of slots.
    """

    traces: Texts | None = None
    topologies: Topologies | None = None
    mappers: Mappers | None = None
    unequal_nodes: Literal[True] | None = None

    def unused(self, scenarios: Sequence[Scenario]) -> list[str]:
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
    """Parameters that take several values: lists of the same length, by key.

    The keys of one table go together, first values with first values; tables are crossed. What a
    topology does not have, such as wireless links on a mesh, is not varied on it. Reports call it
    by ``name``, or by its keys; its values by ``labels``, or as they are.
    """

    name: Text | None = None
    labels: Texts | None = None
    parameters: Annotated[dict[str, Values], Field(min_length=1)]

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
        with prefixed(self.title):
            once(self.labels or [])
            once(self.values)
        return self


class Validated(Table):
    """How parameters were held against measured times, as ``hopmap calibrate`` writes it.

    ``topologies`` are networks on which they were; ``error`` is the median of the relative errors.
    """

    topologies: Texts
    error: Annotated[float, Field(ge=0)]
