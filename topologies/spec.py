"""Topology specs as people write them: "torus:4x4x4", "mesh:8x8*2", "fattree:4x4,routing=ecmp".

A spec is ``FAMILY:SHAPE``, then ``*S`` for S slots a node, then ``,KEY=VALUE`` for every option. A
family is a row of `FAMILIES`, which says how its shape is read. A topology's own ``spec`` is
canonical: it names the same topology. Families of one's own are entered by `topology_family` or
an entry point of the group ``hopmap.topologies``; all that is behind their colon is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, TypeVar

from hopmap.errors import choice
from hopmap.errors import did_you_mean as did_you_mean
from hopmap.plugins import load_entry_points, load_plugins, place_of, same_function
from hopmap.topologies.families.grid import TIES, haec, hypercube, mesh, torus
from hopmap.topologies.families.hierarchy import tree
from hopmap.topologies.families.switched import (
    ROUTINGS,
    cluster,
    dragonfly,
    dragonfly_plus,
    fat_tree,
)
from hopmap.topologies.families.tofu import ORDERS, tofu
from hopmap.topologies.readers.files import from_file

from .failures import apply_failures
from .job import job, name_nodes, restrict_to_list, split
from .presets import PRESETS, preset
from .topology import Topology, TopologyError, check_size


@dataclass(frozen=True)
class Family:
    """How the specs of one family are written."""

    build: Callable[..., Topology]  # of what `read` returns, the slots (if `slots`) and the options
    # arguments from the text of the shape; None if it is not understood
    read: Callable[[str], tuple[Any, ...] | None]
    shape: str  # what is expected of the shape
    examples: tuple[str, ...]  # shapes
    # values of every option; an empty tuple stands for a whole number
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    slots: bool = True  # whether *S is understood
    whole: bool = False  # whether all behind the colon is the shape, commas as well

    @property
    def summary(self) -> str:
        """First line of the constructor's documentation."""
        return (self.build.__doc__ or "").strip().partition("\n")[0]


def _sizes(text: str) -> tuple[list[int]] | None:
    if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", text):
        return None
    return ([int(size) for size in text.split("x")],)


def _whole(text: str) -> tuple[int] | None:
    return (int(text),) if re.fullmatch(r"\d{1,9}", text) else None


def _levels(text: str) -> tuple[list[int], ...] | None:
    """Read one to three lists of sizes, with colons between them."""
    lists = [_sizes(part) for part in text.split(":")]
    if len(lists) > 3 or None in lists:
        return None
    return tuple(sizes for part in lists if part for sizes in part)


def _tree(text: str) -> tuple[list[int], list[int] | None] | None:
    """Read S@D, numbers joined by colons."""
    if not re.fullmatch(r"\d{1,9}(:\d{1,9})*(@\d{1,9}(:\d{1,9})*)?", text):
        return None
    sizes, _, costs = text.partition("@")
    read = [int(cost) for cost in costs.split(":")] if costs else None
    return [int(size) for size in sizes.split(":")], read


def _counts(least: int) -> Callable[[str], tuple[int, ...] | None]:
    """Return a reader of so many sizes, or one more."""

    def read(text: str) -> tuple[int, ...] | None:
        sizes = _sizes(text)
        return tuple(sizes[0]) if sizes and least <= len(sizes[0]) <= least + 1 else None

    return read


def _tofu(text: str) -> tuple[list[int], bool] | None:
    """Read groups, or a job behind job=."""
    sizes = _sizes(text.removeprefix("job="))
    return (sizes[0], text.startswith("job=")) if sizes else None


def _cluster(text: str) -> tuple[list[int]] | None:
    if not re.fullmatch(r"\d{1,7}(\*\d{1,7})?(\+\d{1,7}(\*\d{1,7})?)*", text):
        return None
    parts = [part.partition("*") for part in text.split("+")]
    runs = [(int(count), int(slots or 1)) for count, _, slots in parts]
    nodes, total = sum(count for count, _ in runs), sum(count * slots for count, slots in runs)
    check_size("cluster", nodes=nodes, links=2 * nodes, slots=total)  # before they are listed
    return ([slots for count, slots in runs for _ in range(count)],)


def _preset(text: str) -> tuple[str, Callable[[str], Topology]]:
    if text not in PRESETS:
        raise TopologyError(
            f"unknown preset{did_you_mean(text, PRESETS)}: one of {', '.join(PRESETS)}"
        )
    return text, topology_from_spec


def _over(text: str) -> tuple[str, str, Callable[[str], Topology]] | None:
    parts = split(text)
    return (*parts, topology_from_spec) if parts else None


def _over_family(build: Callable[..., Topology], shape: str, *examples: str) -> Family:
    return Family(
        build, _over, f"{shape}, @ and the machine's spec", examples, slots=False, whole=True
    )


FILE, JOB = "file:", "job:"
READ = (FILE, JOB, "names:")  # of files that may change
_BOX = "whole numbers joined by x, and *S for S slots a node"
_TIES = {"ties": TIES}
FAMILIES: dict[str, Family] = {
    "mesh": Family(mesh, _sizes, _BOX, ("4x4x4", "4x4x4*2")),
    "torus": Family(torus, _sizes, _BOX, ("4x4x4", "4x4x4*2"), _TIES),
    "haec": Family(haec, _sizes, _BOX, ("4x4x4", "4x4x4*2"), _TIES),
    "hypercube": Family(hypercube, _whole, "the number of dimensions", ("8", "8*2")),
    "fattree": Family(
        fat_tree,
        _levels,
        "children of a switch, level by level from the nodes; then, if wanted, a colon and "
        "parents, a colon and parallel links",
        ("4x4x4", "18x18x36", "4x4:1x2", "4x4:1x2:1x2"),
        {"routing": ROUTINGS, "seed": ()},
    ),
    "tree": Family(
        tree,
        _tree,
        "sizes of the levels joined by colons, innermost first, then @ and a distance for each",
        ("4:16:8@1:10:100", "4:16:8@1:10:100*2"),
    ),
    "dragonfly": Family(
        dragonfly,
        _counts(3),
        "nodes a router, routers a group, global links a router and, if wanted, groups",
        ("2x4x2", "16x32x17x74"),
    ),
    "dragonfly+": Family(
        dragonfly_plus,
        _counts(4),
        "nodes a leaf, leaves a group, spines a group, groups and, if wanted, global links a spine",
        ("10x18x18x22", "2x4x4x5x1"),
    ),
    "tofud": Family(
        tofu,
        _tofu,
        "groups of 12 nodes along X, Y and Z, or job= and the sizes of a job's torus",
        ("24x23x24", "job=4x4x4"),
        _TIES | {"order": ORDERS},
    ),
    "cluster": Family(
        cluster, _cluster, "nodes*slots joined by +", ("33*32", "17*9+9*8"), slots=False
    ),
    "preset": Family(preset, _preset, "a name of: hopmap list presets", ("bgq", "bgq*16")),
    "file": Family(
        from_file,
        lambda text: (text,) if text else None,
        "a path",
        ("net.graphml", "topology.yaml#NAME"),
        slots=False,
        whole=True,
    ),
    "job": _over_family(
        job,
        "a file of hosts",
        "alloc.csv@file:topology.txt",
        "jobs.tar.gz#17.txt@file:nodes.txt",
    ),
    "nodes": _over_family(
        restrict_to_list,
        "a job's hosts as Slurm writes them",
        "nid[005000-005063]@names:nid[005000-007975]@dragonfly:4x31x17x24",
    ),
    "names": _over_family(
        name_nodes, "names as Slurm writes them", "nid[0000-2975]@dragonfly:4x31x17x24"
    ),
    "failed": _over_family(
        apply_failures,
        "links and nodes that are down or degraded, or a file of them",
        "link=3-4,node=12@torus:4x4x4",
        "links=3,degraded=2,factor=0.5,seed=0@torus:4x4x4",
    ),
}


F = TypeVar("F", bound=Callable[[str], Topology])


def topology_family(name: str) -> Callable[[F], F]:
    """Enter the decorated function, from the words behind the colon to a topology, in `FAMILIES`.

    Specs begin with the name.
    """

    def register(function: F) -> F:
        @wraps(function)
        def build(words: str) -> Topology:
            try:
                built = function(words)
            except ValueError as error:
                raise TopologyError(str(error)) from error
            if not isinstance(built, Topology):
                raise TopologyError(f"{function.__name__} returns {built!r}: expected a Topology")
            return replace(built, spec=f"{name}:{words}")

        known = FAMILIES.get(name)
        if known is not None and not same_function(known.build, function):
            raise TopologyError(
                f"two families are called {name!r}: {place_of(known.build)} and "
                f"{place_of(function)}: expected a name of its own"
            )
        FAMILIES[name] = Family(
            build, lambda text: (text,), f"words for {name}", ("WORDS",), slots=False, whole=True
        )
        _build_once.cache_clear()
        return function

    return register


def all_families() -> dict[str, Family]:
    """Return `FAMILIES`, with families of plugins and installed packages."""
    load_plugins()
    load_entry_points("hopmap.topologies", _enter)
    return FAMILIES


def _enter(name: str, extension: Any) -> None:
    if callable(extension) and name not in FAMILIES:
        topology_family(name)(extension)


def topology_from_spec(spec: str) -> Topology:
    """Build the topology that a spec names, as the top of this file says, or `TopologyError`."""
    return (_build if spec.strip().startswith(READ) else _build_once)(spec)


def _build(spec: str) -> Topology:
    name, colon, rest = spec.strip().partition(":")
    if name not in FAMILIES and name not in all_families():
        raise TopologyError(
            f"topology {spec!r}: {choice('unknown family', name, FAMILIES)}, like torus:4x4x4"
        )
    family = FAMILIES[name]
    shape, *options = [rest] if family.whole else rest.split(",")
    if options and options[0].partition("*")[0].strip().isdigit():  # sizes that commas join
        shape, options = rest, []
    plain, star, slots = shape.partition("*") if family.slots else (shape, "", "")
    if not colon or (star and not re.fullmatch(r"\d{1,9}", slots)):
        plain = ""
    try:
        arguments = family.read(plain) if plain else None
        if arguments is None:
            examples = " or ".join(f"{name}:{example}" for example in family.examples)
            near = _joined_rightly(rest, family)
            hint = f" (did you mean {name}:{near}?)" if near else ""
            raise TopologyError(f"{shape!r}{hint}: expected {family.shape}, like {examples}")
        keywords: dict[str, Any] = {"slots": int(slots)} if star else {}
        keywords |= _options(options, family)
        return family.build(*arguments, **keywords)
    except TopologyError as error:
        begun = str(error).startswith(FILE)  # readers of files begin with the spec
        raise TopologyError(str(error) if begun else f"topology {spec!r}: {error}") from None


_build_once = lru_cache(maxsize=1)(_build)  # of a sweep's runs, most have the network of the last


def _joined_rightly(shape: str, family: Family) -> str:
    """Return numbers that something else joins as a family joins its own; nothing if it cannot."""
    sizes, star, slots = shape.strip().partition("*")
    for sign in "x:":
        joined = re.sub(r"[\s,;xX:*]+", sign, sizes)
        if family.slots and joined != sizes and family.read(joined) is not None:
            return joined + star + slots
    return ""


def _options(words: list[str], family: Family) -> dict[str, str | int]:
    """Read KEY=VALUE words."""
    forms = [f"{key}={'|'.join(values) or 'NUMBER'}" for key, values in family.options.items()]
    expected = ", ".join(forms) or "no options"
    read: dict[str, str | int] = {}
    for option in words:
        key, _, value = option.partition("=")
        values = family.options.get(key)
        if values is None:
            hint = did_you_mean(key, family.options)
            raise TopologyError(f"option {option!r}{hint}: expected {expected}")
        if key in read or not (value in values if values else re.fullmatch(r"\d{1,10}", value)):
            raise TopologyError(f"option {option!r}: expected {expected}, each once")
        read[key] = value if values else int(value)
    return read
