"""One step of training a transformer: "training:model=175b,tp=8,pp=8,dp=2,microbatches=16".

Ranks are numbered as Megatron-LM does: tensor-parallel ones side by side, then context-parallel
ones, then data-parallel ones, then the stages of the pipeline: rank = t + tp (c + cp (d + dp
stage)). Context and data-parallel ranks are replicas of the parameters; `ep` neighbouring replicas
share the experts of a layer.

Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM (SC21). Of b sequences of s tokens in a microbatch, h hidden sizes, l layers, V words:

* a layer adds up b s h elements among its tensor-parallel ranks, after attention and after the
  MLP, forward and backward (section 3.2);
* stages pass b s h elements on, each rank to its own number in the next, in the schedule of one
  forward and one backward (sections 2.2.1 and 3.2), without interleaving;
* at the end gradients are added up among the cp dp replicas, gradients of experts among the
  cp dp / ep ranks that have the same, and of the embedding between the first and the last stage;
* 12 l h^2 + 13 l h parameters in layers and h (V + s) in the embedding (equation 2);
  per microbatch 24 b s h^2 + 4 b s^2 h operations forward in a layer and 2 b s h V for the words,
  twice that backward, and forward again where activations are recomputed (equation 3).

With experts the MLP of every layer is `experts` of them, of which each token takes `topk`: two
all-to-alls forward and two backward, of the b s topk h elements of a group's tokens, shared by its
tensor-parallel ranks (GShard, Lepikhin et al. 2020, section 2.2).

With context parallelism a rank has s / cp tokens of a sequence, and s above is that number. Keys
and values go round a ring of the cp ranks while attention to the last ones is computed: cp - 1
exchanges of 2 b s k / tp elements forward, of k elements a key (`kv`, h unless heads share keys),
and backward as many again with as many gradients of them, in cp exchanges. Sources: Liu et al.,
Ring Attention (2023), section 3; NVIDIA, Transformer Engine, attention/context_parallel.py, class
AttnFuncWithCPAndKVP2P. Every rank computes as much, as with its order of the tokens.

Recomputation repeats computations alone, as in section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopmap.arrays import Ints, Ints32, Table
from hopmap.errors import expect_between
from hopmap.traces.calls import Call, calls
from hopmap.traces.folded import Folded, Parts, Repeat, folded_of_parts, trace_of_parts
from hopmap.traces.sources import Source
from hopmap.traces.trace import Trace, TraceError
from hopmap.traces.traffic import MOST_RANKS, Traffic
from hopmap.units import UnitError, parse_quantity

FORWARD, BACKWARD, RING = 0, 1, 2  # tags
MOST_SIZE, MOST_SENT = 10**9, 2**60  # of each number; bytes, with room to add in int64

MODELS = {
    "1.7b": (24, 2304),
    "3.6b": (30, 3072),
    "7.5b": (36, 4096),
    "18.4b": (40, 6144),
    "39.1b": (48, 8192),
    "76.1b": (60, 10240),
    "145.6b": (80, 12288),
    "310.1b": (96, 16384),
    "529.6b": (105, 20480),
    "1008b": (128, 25600),
    "175b": (96, 12288),
}
"""Layers and hidden sizes: table 1 of the source; 175b is GPT-3, of the same section."""


class Training(NamedTuple):
    """A model, and how it is spread over ranks."""

    # Ranks that share a tensor, a sequence; stages; replicas; of these, ranks that share experts
    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    # l, h, elements of a key (h where 0), the whole sequence and V
    layers: int = 24
    hidden: int = 2304
    kv: int = 0
    sequence: int = 2048
    vocabulary: int = 51200
    # Sequences in a microbatch, and microbatches of a replica
    batch: int = 1
    microbatches: int = 8
    # Experts of a layer, none where 0; how many of them a token takes
    experts: int = 0
    topk: int = 2
    # Bytes of an activation and of a gradient
    element: int = 2
    gradient: int = 4
    recompute: int = 1  # 1 where activations are recomputed in the backward pass
    flops: float = 4e14  # operations per second of a rank; 0 is no computation

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def replicas(self) -> int:
        """Ranks that have the same parameters, apart from experts."""
        return self.cp * self.dp

    @property
    def apart(self) -> int:
        """Ranks of a stage, by which the same ranks of the next stage are further."""
        return self.tp * self.replicas

    @property
    def tokens(self) -> int:
        """Tokens of a microbatch that a rank has: b s."""
        return self.batch * self.sequence // self.cp

    @property
    def activations(self) -> int:
        """Bytes of b s h elements."""
        return self.tokens * self.hidden * self.element

    @property
    def keys_and_values(self) -> int:
        """Bytes of the keys and values that go round a ring."""
        return 2 * self.tokens * (self.kv or self.hidden) // self.tp * self.element

    @property
    def attention(self) -> int:
        """Parameters of queries, keys, values and outputs of a layer."""
        return 2 * self.hidden * (self.hidden + (self.kv or self.hidden))

    def parameters(self) -> int:
        """Parameters of the whole model, equation 2; experts counted each."""
        mlp = 8 * max(self.experts, 1) * self.hidden**2
        layer = self.attention + mlp + 13 * self.hidden
        return self.layers * layer + self.hidden * (self.vocabulary + self.sequence)


def parse_training(text: str) -> Training:
    """Read KEY=VALUE, ...: the fields of `Training`, and model=NAME of `MODELS`."""
    options: dict[str, int | float] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if key == "model" and value.lower() in MODELS:
            options["layers"], options["hidden"] = MODELS[value.lower()]
        elif key == "model":
            raise TraceError(f"training {text}: model {value}: expected {', '.join(MODELS)}")
        elif not equals or key not in Training._fields:
            raise TraceError(
                f"training {text}: {part.strip() or 'nothing'}: expected KEY=VALUE with one of "
                f"model, {', '.join(Training._fields)}"
            )
        else:
            options[key] = _number(text, key, value)
    training = Training(**options)  # type: ignore[arg-type]
    _check(text, training)
    return training


def _number(text: str, key: str, value: str) -> int | float:
    try:
        if key == "flops":
            return parse_quantity(value, "flop/s")
        number = int(value)
    except UnitError as error:
        raise TraceError(f"training {text}: {key}={error}") from None
    except ValueError:
        raise TraceError(f"training {text}: {key}={value}: expected a whole number") from None
    least = 0 if key in ("experts", "kv", "recompute") else 1
    expect_between(TraceError, f"training {text}: {key}={value}", number, least, MOST_SIZE)
    return number


def _check(text: str, training: Training) -> None:
    of = training
    if of.ranks > MOST_RANKS:
        raise TraceError(f"training {text}: {of.ranks} ranks: expected at most {MOST_RANKS:,}")
    step = of.activations * of.microbatches * of.layers * of.topk + of.parameters() * of.gradient
    if of.ranks * step > MOST_SENT:
        raise TraceError(
            f"training {text}: {step:,} bytes of activations and gradients in a step: expected at "
            f"most {MOST_SENT // of.ranks:,}"
        )
    for what, whole, name, part in (
        ("layers", of.layers, "pp", of.pp),
        ("hidden", of.hidden, "tp", of.tp),
        ("kv", of.kv, "tp", of.tp),
        ("sequence", of.sequence, "cp", of.cp),
        ("vocabulary", of.vocabulary, "tp", of.tp),
        ("cp x dp", of.replicas, "ep", of.ep),
        ("experts", of.experts, "ep", of.ep),
    ):
        if whole % part:
            raise TraceError(
                f"training {text}: {what} {whole}: expected a multiple of {name} {part}"
            )
    if of.ep > 1 and not of.experts:
        raise TraceError(f"training {text}: ep requires experts=NUMBER")
    if of.experts and of.topk > of.experts:
        raise TraceError(f"training {text}: topk {of.topk}: expected at most {of.experts} experts")


class Groups:
    """Communicators of a training: members, and where each rank finds its own."""

    def __init__(self, of: Training) -> None:
        self.communicators: list[Ints32] = []
        grid = np.arange(of.ranks).reshape(of.pp, of.replicas // of.ep, of.ep, of.tp)
        everyone = grid.reshape(of.pp, of.replicas, of.tp)
        self.tensor = self._communicators(everyone.reshape(-1, of.tp))
        self.data = self._communicators(everyone.transpose(0, 2, 1).reshape(-1, of.replicas))
        self.expert = self._communicators(grid.transpose(0, 1, 3, 2).reshape(-1, of.ep))
        same = grid.transpose(0, 2, 3, 1).reshape(-1, of.replicas // of.ep)
        self.same_experts = self._communicators(same) if of.ep > 1 else self.data
        ends = np.stack((everyone[0].ravel(), everyone[-1].ravel()), axis=1)
        self.embedding = self._communicators(ends if of.pp > 1 else ends[:, :1])

    def _communicators(self, members: Ints) -> dict[int, int]:
        """Return the communicator of each rank, none of groups of one."""
        own: dict[int, int] = {}
        for group in members if members.shape[1] > 1 else ():
            self.communicators.append(group.astype(np.int32))
            own |= dict.fromkeys(group.tolist(), len(self.communicators))
        return own

    def call(
        self, call: Call, of: dict[int, int], rank: int, size: int, before: float = 0.0
    ) -> Parts:
        """Return a collective of the rank's group, after `before` seconds of computation.

        `size` is the buffer of each, which an all-to-all splits.
        """
        if rank not in of:
            return [calls(Call.COMM_RANK, before=before)] if before else []
        number = of[rank]
        members = len(self.communicators[number - 1])
        whole = size if call == Call.ALLTOALL else size * members
        return [calls(call, comm=number, size=whole, received=whole, before=before)]


def _program(of: Training, groups: Groups, rank: int) -> Parts:
    """One rank's calls: warm-up, one forward and one backward in turns, the rest backward."""
    stage, apart = rank // of.apart, of.apart
    last = stage == of.pp - 1
    before, behind = (rank - apart if stage else -1), (-1 if last else rank + apart)
    forward, backward = (_pass(of, groups, rank, last, way) for way in (FORWARD, BACKWARD))
    warm = min(of.pp - 1 - stage, of.microbatches)
    steady = of.microbatches - warm

    def pass_on(to: int, to_way: int, source: int, source_way: int) -> Parts:
        """Send to one and receive from another, or the same; -1 is no rank."""
        size = of.activations
        rows = []
        if to >= 0:
            rows.append(calls(Call.ISEND, peer=to, tag=to_way, size=size))
        if source >= 0:
            rows.append(calls(Call.IRECV, peer=source, tag=source_way, size=size))
        if to >= 0:
            latest = -2 if source >= 0 else -1
            rows.append(calls(Call.WAIT_SENT, peer=to, request=latest))
        if source >= 0:
            rows.append(calls(Call.WAIT, peer=source, tag=source_way, size=size, request=-1))
        return list(rows)

    get = pass_on(-1, 0, before, FORWARD)
    turn = [*forward, *pass_on(behind, FORWARD, behind, BACKWARD), *backward]
    parts: Parts = [calls(Call.INIT, size=0, received=0)]
    if warm:
        parts.append(Repeat(warm, [*get, *forward, *pass_on(behind, FORWARD, -1, 0)]))
    if steady:
        parts += get
        if steady > 1:
            parts.append(Repeat(steady - 1, [*turn, *pass_on(before, BACKWARD, before, FORWARD)]))
        parts += [*turn, *pass_on(before, BACKWARD, -1, 0)]
    if warm:
        back = pass_on(-1, 0, behind, BACKWARD)
        parts.append(Repeat(warm, [*back, *backward, *pass_on(before, BACKWARD, -1, 0)]))
    return [*parts, *_gradients(of, groups, rank, stage), calls(Call.FINALIZE, size=0, received=0)]


def _pass(of: Training, groups: Groups, rank: int, last: bool, way: int) -> Parts:
    """One microbatch through a stage's layers, forward or backward."""
    tokens, h = of.tokens, of.hidden
    times = 1.0 if way == FORWARD else 2.0 + of.recompute
    second = times / of.tp / of.flops if of.flops else 0.0
    linear, pairs = 2 * tokens * of.attention, 4 * tokens * of.sequence * h
    mlp = 16 * tokens * h * h * (of.topk if of.experts else 1)
    words = 2 * tokens * h * of.vocabulary / of.tp / of.flops if last and of.flops else 0.0
    if way == BACKWARD:
        words *= 2
    routed = of.activations * of.topk // of.tp // of.ep * of.ep
    among = groups.expert
    inside = [
        *(groups.call(Call.ALLTOALL, among, rank, routed) if of.experts else []),
        *groups.call(Call.ALLREDUCE, groups.tensor, rank, of.activations, mlp * second),
        *(groups.call(Call.ALLTOALL, among, rank, routed) if of.experts else []),
    ]
    ring, chunks = _ring(of, rank, way, pairs * second / of.cp)
    rest = (linear + pairs - pairs * chunks / of.cp) * second
    half = groups.call(Call.ALLREDUCE, groups.tensor, rank, of.activations, rest)
    layer = [*ring, *half, *inside] if way == FORWARD else [*inside, *ring, *half]
    ends: Parts = [calls(Call.COMM_RANK, before=words)] if words else []
    layers: Parts = [Repeat(of.layers // of.pp, layer)] if layer else []
    return [*layers, *ends] if way == FORWARD else [*ends, *layers]


def _ring(of: Training, rank: int, way: int, chunk: float) -> tuple[Parts, int]:
    """Keys, values and their gradients round the ranks of a sequence; chunks computed meanwhile.

    `chunk` is seconds of attention to the tokens of one rank.
    """
    if of.cp == 1:
        return [], 0
    first = rank // of.tp % of.cp
    behind, before = (rank + ((first + step) % of.cp - first) * of.tp for step in (1, of.cp - 1))

    def exchange(times: int) -> list[Table]:
        size = times * of.keys_and_values
        about = {"tag": RING, "size": size}
        return [
            calls(Call.ISEND, peer=behind, **about),
            calls(Call.IRECV, peer=before, **about),
            calls(Call.WAIT_SENT, peer=behind, request=-2, before=chunk),
            calls(Call.WAIT, peer=before, request=-1, **about),
        ]

    if way == FORWARD:
        return [Repeat(of.cp - 1, [*exchange(1)])], of.cp - 1
    both: Parts = [Repeat(of.cp - 2, [*exchange(2)])] if of.cp > 2 else []
    return [*exchange(1), *both, *exchange(1)], of.cp


def _gradients(of: Training, groups: Groups, rank: int, stage: int) -> Iterator[Table]:
    """Gradients are added up among those that have the same parameters."""
    layers = of.layers // of.pp
    mlp = 8 * of.hidden**2
    words = of.hidden * of.vocabulary // of.tp * of.gradient
    ends = stage in (0, of.pp - 1)
    all_have = of.attention + (0 if of.experts else mlp)
    shared = layers * all_have // of.tp * of.gradient + (words if ends else 0)
    parts = groups.call(Call.ALLREDUCE, groups.data, rank, shared)
    if of.experts:
        own = layers * mlp // of.tp * of.gradient * of.experts // of.ep
        parts += groups.call(Call.ALLREDUCE, groups.same_experts, rank, own)
    if ends:
        parts += groups.call(Call.ALLREDUCE, groups.embedding, rank, words)
    yield from parts  # type: ignore[misc]


@dataclass(frozen=True)
class TrainingSource(Source):
    """A step of training a model."""

    kind = "training"
    training: Training

    @property
    def is_short(self) -> bool:
        """Whether its calls can be looked through for any question: they are in loops."""
        return True

    def traffic(self) -> Traffic:
        """Compute what stages of the pipeline pass on and hand back, and what goes round rings."""
        of = self.training
        here = np.arange(of.ranks - of.apart)
        everyone = np.arange(of.ranks if of.cp > 1 else 0)
        place = everyone // of.tp % of.cp
        passes = of.microbatches * (of.layers // of.pp)
        pairs = (
            (here, here + of.apart, of.microbatches, of.activations * of.microbatches),
            (here + of.apart, here, of.microbatches, of.activations * of.microbatches),
            (
                *(everyone, everyone + ((place + 1) % of.cp - place) * of.tp),
                *((2 * of.cp - 1) * passes, 3 * (of.cp - 1) * passes * of.keys_and_values),
            ),
        )
        columns = [np.broadcast_arrays(*map(np.asarray, each)) for each in pairs]
        src, dst, messages, sent = (np.concatenate(column) for column in zip(*columns, strict=True))
        metadata = {"training": {key: getattr(of, key) for key in ("tp", "cp", "pp", "dp", "ep")}}
        return Traffic.from_pairs(of.ranks, src, dst, messages, sent, metadata)

    def calls(self) -> Folded:
        """Compute every call of the step, with microbatches and layers as loops."""
        return folded_of_parts(self.name, self.training.ranks, *self._programs())

    def trace(self) -> Trace:
        """Compute every call of the step, one after the other."""
        return trace_of_parts(self.name, self.training.ranks, *self._programs())

    def _programs(self) -> tuple[Iterator[Parts], list[Ints32]]:
        """Make the calls of each rank, and communicators; a group of one rank calls nothing."""
        groups = Groups(self.training)
        programs = (_program(self.training, groups, rank) for rank in range(self.training.ranks))
        return programs, groups.communicators


def open_training(words: str, _: Path | None) -> TrainingSource:
    """Return the source that "training:WORDS" is."""
    return TrainingSource(f"training:{words}", parse_training(words))
