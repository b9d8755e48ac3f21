"""A scenario: which traces, topologies, mappers and seeds a sweep crosses, and how it runs.

How a file of it is read says `scenario_files.py`, what is checked of it `scenario_checks.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from hopmap.errors import HopmapError
from hopmap.simulator import DEFAULT_ENGINE
from hopmap.simulator.ensembles.intervals import LEAST
from hopmap.traces.sources import Source, open_source

from .suites import suite_cases
from .variants import Axis, axis

Text = Annotated[StrictStr, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Seeds = Annotated[list[Annotated[StrictInt, Field(ge=0, lt=2**63)]], Field(min_length=1)]
Given = StrictStr | StrictInt | StrictFloat


class ScenarioError(HopmapError, ValueError):
    """A scenario file cannot be used; the message names file, key, value and what was expected."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Replay(_Section):
    """How runs are replayed.

    Attributes
    ----------
    engine : str or False
        A name of `hopmap.simulator.ENGINES`; False measures without replaying.
    steps : int, optional
        Time steps to replay of a generated benchmark; all of them when left out.
        Metrics are of the whole run all the same.
    rounds : int, optional
        Rounds in which files of traffic are replayed, 1 for all at once; measured only when left
        out. A stencil is sent in one when left out.
    messages : bool
        Whether to keep when each message was sent and delivered, in the table "messages".
    exact : bool
        Whether to replay all steps of long runs that could be extrapolated.
    repeat : int, optional
        How often to replay every run with noise, with the same seeds for all, so that the report
        says which mappers differ; once without noise when left out.
    """

    engine: Text | Literal[False] = DEFAULT_ENGINE
    steps: Annotated[StrictInt, Field(ge=1)] | None = None
    rounds: Annotated[StrictInt, Field(ge=1)] | None = None
    messages: StrictBool = False
    exact: StrictBool = False
    repeat: Annotated[StrictInt, Field(ge=LEAST)] | None = None


class Published(_Section):
    """Numbers of a paper, to be shown beside ours.

    Attributes
    ----------
    file : str
        CSV with the header ``trace,topology,mapper,ienpc_total,ienpc_avg,ienpc_min,ienpc_max``,
        relative to the scenario file; ``topology`` is a family ("mesh").
    """

    file: Text


class Include(_Section):
    """More runs: these traces on these topologies.

    Attributes
    ----------
    traces, topologies : list of str
        As in `Scenario`.
    mappers : list of str, optional
        The scenario's when left out.
    seeds : list of int, optional
        The scenario's when left out.
    """

    traces: Texts
    topologies: Texts
    mappers: Texts | None = None
    seeds: Seeds | None = None


class Jobs(_Section):
    """Runs on the hosts of jobs; see `jobs.py`.

    Attributes
    ----------
    hosts : str
        A list of hosts, an alloc.csv, or a folder or tar archive of such, one a job.
    topology : str
        The machine.
    traces : list of str
        As in `Scenario`, with fields that the size of a job fills: "lu.C.{power}".
    min_nodes, max_nodes : int, optional
        Sizes of the jobs that count.
    unknown : {"refuse", "skip"}
        What to do with a job that has nodes which the machine does not have.
    mappers, seeds : list, optional
        The scenario's when left out.
    """

    hosts: Text
    topology: Text
    traces: Texts
    min_nodes: Annotated[StrictInt, Field(ge=1)] = 1
    max_nodes: Annotated[StrictInt, Field(ge=1)] | None = None
    unknown: Literal["refuse", "skip"] = "refuse"
    mappers: Texts | None = None
    seeds: Seeds | None = None


class Exclude(_Section):
    """Runs to leave out: those that match every list that is given.

    Attributes
    ----------
    traces, topologies, mappers : list of str, optional
        As they are written elsewhere in the scenario.
    unequal_nodes : bool, optional
        True: only topologies whose nodes have not all the same number of slots.
    """

    traces: Texts | None = None
    topologies: Texts | None = None
    mappers: Texts | None = None
    unequal_nodes: Literal[True] | None = None


class Vary(_Section):
    """Parameters that take several values; see `variants.py`.

    Attributes
    ----------
    name : str, optional
        What reports call it; the keys when left out.
    labels : list of str, optional
        What reports call the values; the values themselves when left out.
    parameters : dict
        Lists of the same length, by key: the first values go together, and so on.
    """

    name: Text | None = None
    labels: Texts | None = None
    parameters: Annotated[
        dict[str, Annotated[list[Given], Field(min_length=1)]], Field(min_length=1)
    ]

    @property
    def axis(self) -> Axis:
        """The same with all names filled in."""
        return axis(self.name, self.labels, self.parameters)


class Validated(_Section):
    """How parameters were held against measured times, as ``hopmap calibrate`` writes it.

    Attributes
    ----------
    topologies : list of str
        Networks on which they were.
    error : float
        Median of the relative errors.
    """

    topologies: Texts
    error: Annotated[float, Field(ge=0)]


class Scenario(_Section):
    """A sweep: every trace on every topology with every mapper and seed.

    Attributes
    ----------
    name, description : str
        Title and introduction of the report.
    traces : list of str
        OTF2 archives or traffic files, relative to the scenario file, or benchmarks ("lu.C.64").
    topologies : list of str
        Specs, like "torus:4x4x4"; files of ``file:`` are relative to the scenario file.
    mappers : list of str
        Pipelines, like "minmd | bokhari", and mappings in files, "file:today.csv"; "applicable" for
        all that hopmap knows but those that need a mapping to start from.
    seeds : list of int
        One run for each.
    replay : Replay
        Engine, and how much of generated benchmarks.
    parameters : dict
        Of the network and the model: "link.bandwidth" = "10 GB/s"; `hopmap list parameters`.
    validated : Validated, optional
        Measurements that the parameters were held against; reports say so.
    collectives : {"auto", "ignore", "expand"}
        Whether mappers and metrics see what the collectives of a trace send, too; "auto": where
        that outweighs its messages, and no algorithms vary.
    spread : bool
        Whether every node takes as many ranks as any other that has room, one more at most.
    published : Published, optional
        Numbers to compare with.
    suites : list of str
        Pairs of a stencil and a cluster to run, as `stencil_suites` names them; with one,
        traces and topologies may be left out.
    include, exclude, vary : list, optional
        More runs, runs to leave out, parameters of several values.
    jobs : list, optional
        Runs on the hosts of jobs; with one, traces and topologies may be left out.
    hosts, nodelist : str, optional
        Nodes that a job has, of every topology: a file of hosts, or Slurm's list of them.
    beside : str
        Other jobs, and traffic of others, beside every run: a file as `hopmap simulate --jobs`
        takes it, relative to the scenario file. They are placed first.
    plugins : list of str
        Files, relative to the scenario file, and modules with mappers or topologies of one's own.
    folder : str
        Where the files of jobs and of their machines lie, relative to the scenario file.
    """

    name: Text
    description: StrictStr = ""
    traces: Texts = Field(default=[], validate_default=False)
    topologies: Texts = Field(default=[], validate_default=False)
    suites: list[Text] = []
    mappers: Texts
    seeds: Seeds = [0]
    replay: Replay = Replay()
    parameters: dict[str, Given] = {}
    validated: Validated | None = None
    collectives: Literal["auto", "ignore", "expand"] = "auto"
    spread: StrictBool = False
    published: Published | None = None
    include: list[Include] = []
    exclude: list[Exclude] = []
    vary: list[Vary] = []
    jobs: list[Jobs] = []
    folder: StrictStr = ""
    hosts: Text | None = None
    nodelist: Text | None = None
    beside: StrictStr = ""
    plugins: list[Text] = []

    def groups(self) -> list[Include]:
        """Return what is crossed: the scenario itself, then what it includes."""
        crossed = (self.traces, self.topologies)
        pairs = [
            ([case.trace], [case.topology]) for text in self.suites for case in suite_cases(text)
        ]
        first, *others = [
            Include.model_construct(traces=traces, topologies=topologies)
            for traces, topologies in (crossed, *pairs)
        ]
        return [
            each.model_copy(
                update={"mappers": each.mappers or self.mappers, "seeds": each.seeds or self.seeds}
            )
            for each in (first, *self.include, *others)
        ]

    def traced(self) -> list[str]:
        """Return the traces, each once."""
        return list(dict.fromkeys(trace for group in self.groups() for trace in group.traces))

    def sources(self, folder: Path) -> list[Source]:
        """Find the traces, each once; `folder` is where the scenario file lies."""
        return [open_source(trace, folder) for trace in self.traced()]
