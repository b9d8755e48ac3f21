"""The hosts of a job: a list, a hostfile, or an ``alloc.csv``; alone, or in an archive of many.

A list has a host a line. Its slots are counted where it says any: a line for each, as in machine
files of Slurm and PBS, ``node1 slots=4`` of Open MPI, ``node1 np=4`` of Torque, or ``node1:4`` of
MPICH and Intel MPI. A table has a rank and its host a line (``rank,host``, more columns are left
out), as jobs write it of themselves; it counts ranks and no slots. The hosts are taken in their
order, each once. ``FILE#MEMBER`` is a file in a tar archive.

Slurm writes hosts in one line: "node[01-04,7]", "a1,b[2-3]", "rack[0-1]n[0-15]". Source: Slurm,
scontrol(1), "show hostnames", and its src/common/hostlist.c for what is legal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np

from hopmap.topologies.topology import Topology, TopologyError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LARGEST = 2**26  # bytes of all lists
LIMIT = 2**18  # names in Slurm's list, more than any machine has nodes
_LISTED = re.compile(r"(?:[\w.-]|\[[\d,-]+\])+")
_SLOTS = re.compile(r"[^\s:]+(?::|\s(?:.*\s)?(?:slots|np)\s*=\s*)([1-9]\d{0,6})(?:\s.*)?")
_COUNTS = re.compile(r"^[^\s:]+:|\b(np|sl\w+)\s*=")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def hosts_in(text: str, location: str) -> list[str]:
    """Return the hosts of a list or a table, each once, in the order in which they stand."""
    return list(dict.fromkeys(hosts_of_ranks(text, location)))


def hosts_of_ranks(text: str, location: str) -> list[str]:
    """Return the host of every rank of a table, of every line of a list.

    Zero bytes, which a file that many ranks wrote at once has where it has holes, are no text.
    """
    lines = _lines(text)
    table = _is_table(lines)
    header = table and not lines[0][1].partition(",")[0].strip().isdigit()
    named: list[tuple[int, str]] = []
    for number, line in lines[header:]:
        rank, name = "0", line.split()[0].partition(":")[0]
        if table:
            rank, name = ([*map(str.strip, line.split(",")), ""])[:2]
        if not NAME.fullmatch(name) or not re.fullmatch(r"\d{1,9}", rank):
            like = "rank,host" if table else "a host name"
            raise TopologyError(f"{location}: line {number} is {line[:40]!r}: expected {like}")
        named.append((int(rank), name))
    if table and len({rank for rank, _ in named}) < len(named):
        raise TopologyError(f"{location}: a rank is listed twice: expected each once")
    if not named:
        raise TopologyError(f"{location}: no hosts: expected at least one")
    return [name for _, name in sorted(named, key=lambda place: place[0])]


def slots_in(text: str, location: str) -> dict[str, int]:
    """Return the slots of every host of a list, in its order; nothing where it counts none."""
    lines = _lines(text)
    hosts = [] if _is_table(lines) else hosts_of_ranks(text, location)
    slots: dict[str, int] = {}
    for host, (number, line) in zip(hosts, lines, strict=False):
        counted = _SLOTS.fullmatch(line)
        if not counted and _COUNTS.search(line):
            raise TopologyError(
                f"{location}: line {number} is {line[:40]!r}: expected slots like {host} slots=4 "
                f"or {host}:4"
            )
        slots[host] = slots.get(host, 0) + int(counted[1] if counted else 1)
    return slots if max(slots.values(), default=1) > 1 else {}


def _lines(text: str) -> list[tuple[int, str]]:
    """Return the lines that say something, with their numbers."""
    numbered = enumerate(text.replace("\0", "").splitlines(), 1)
    lines = [(number, line.partition("#")[0].strip()) for number, line in numbered]
    return [(number, line) for number, line in lines if line]


def _is_table(lines: list[tuple[int, str]]) -> bool:
    return bool(lines) and "," in lines[0][1]


def restrict(
    topology: Topology, hosts: Sequence[str], slots: Mapping[str, int], location: str
) -> Topology:
    """Return a network with ranks on a job's hosts alone, in as many slots as its list counts.

    Nodes of one slot get the list's; of more they have at least those, else `TopologyError`.
    """
    network = topology.only(nodes_of(topology, hosts, location))
    if not slots:
        return network
    counted = np.zeros_like(network.slots)
    for host, count in slots.items():
        (node,) = nodes_of(topology, [host], location)
        counted[node] += count
        has = int(topology.slots[node])
        if has > 1 and counted[node] > has:
            raise TopologyError(
                f"{location}: host {host} has {counted[node]} slots here, and {has} in "
                f"{topology.spec}: expected at most {has}"
            )
    return replace(network, slots=counted)


def nodes_of(topology: Topology, hosts: Sequence[str], location: str) -> list[int]:
    """Return the numbers of the nodes that the hosts are; node0, node1, ... where they lack names.

    A host is the node of its name, of its name without the domain, or, where the network's names
    are numbers only, of the number that its name ends in.
    """
    names = topology.names or [f"node{n}" for n in range(topology.nodes)]
    number = {name: node for node, name in enumerate(names)}
    numbers_only = all(map(str.isdigit, names))
    found = []
    for host in hosts:
        short = host.partition(".")[0]
        tail = re.sub(r"^.*?(\d*)$", r"\1", short) if numbers_only else short
        node = next((number[name] for name in (host, short, tail) if name in number), None)
        if node is None:
            raise TopologyError(
                f"{location}: host {host}: expected nodes of {topology.spec}, {names[0]} to "
                f"{names[-1]}"
            )
        found.append(node)
    return list(dict.fromkeys(found))


def read_hosts(path: str) -> list[str]:
    """Return the hosts of a file, or of PATH#MEMBER; see `hosts_in`."""
    return hosts_in(text_of(path), path)


def read_slots(path: str) -> dict[str, int]:
    """Return the slots of the hosts of a file, or of PATH#MEMBER; see `slots_in`."""
    return slots_in(text_of(path), path)


def text_of(path: str) -> str:
    """Return what is in a file, or in PATH#MEMBER."""
    import tarfile

    file, mark, member = path.partition("#")
    try:
        if not mark or Path(path).exists():
            return Path(path).read_text(encoding="utf-8-sig")
        status = Path(file).stat()
        texts = _members(file, status.st_size, status.st_mtime_ns)
    except (OSError, UnicodeDecodeError, tarfile.TarError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is no text and no whole archive"
        raise TopologyError(f"{path}: cannot be read as a list of hosts ({reason})") from None
    if member not in texts:
        raise TopologyError(f"{path}: no such file in the archive: expected one of {len(texts)}")
    return texts[member]


def lists_in(path: str) -> list[str]:
    """Return the paths of all lists of hosts in a folder or archive; of a file, its own."""
    import tarfile

    try:
        if Path(path).is_dir():
            files = sorted(Path(path).rglob("*"))
            found = [str(file) for file in files if file.suffix in (".txt", ".csv")]
        elif tarfile.is_tarfile(path):
            status = Path(path).stat()
            members = _members(path, status.st_size, status.st_mtime_ns)
            found = [f"{path}#{member}" for member in sorted(members)]
        else:
            found = [path]
    except (OSError, UnicodeDecodeError, tarfile.TarError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is no whole archive of texts"
        raise TopologyError(f"{path}: cannot be read as lists of hosts ({reason})") from None
    if not found:
        raise TopologyError(f"{path}: no .txt or .csv in it: expected lists of hosts")
    return found


@lru_cache(maxsize=4)
def _members(file: str, _size: int, _changed: int) -> dict[str, str]:
    """Texts of an archive, by name; as long as it is the same."""
    import tarfile

    texts, total = {}, 0
    with tarfile.open(file) as archive:
        for member in archive:
            if not member.isfile():
                continue
            total += member.size
            stream = archive.extractfile(member)
            if total > LARGEST or stream is None:
                raise TopologyError(f"{file}: more than {LARGEST >> 20} MiB: expected less")
            texts[member.name] = stream.read().decode("utf-8-sig")
    return texts


def expand(text: str) -> list[str]:
    """Return the hosts of Slurm's list, in its order; leading zeros of a range's begin are kept.

    Examples
    --------
    >>> expand("node[08-10,1],login")
    ['node08', 'node09', 'node10', 'node1', 'login']
    """
    hosts: list[str] = []
    for word in map(str.strip, re.split(r",(?![^\[]*\])", text)):
        if not _LISTED.fullmatch(word):
            raise TopologyError(f"hosts {text[:60]!r}: expected a list like node[01-04,7],login")
        parts = [
            _numbers(part[1:-1], text) if part.startswith("[") else [part]
            for part in re.findall(r"\[[^\]]*\]|[^\[]+", word)
        ]
        if len(hosts) + prod(map(len, parts)) > LIMIT:
            raise TopologyError(f"hosts {text[:60]!r}: more than {LIMIT:,} names: expected fewer")
        hosts += ["".join(chosen) for chosen in product(*parts)]
    return hosts


def _numbers(ranges: str, text: str) -> list[str]:
    """Numbers of "01-04,7" as text."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        low, high = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(low) > int(high) or int(high) - int(low) >= LIMIT:
            raise TopologyError(
                f"hosts {text[:60]!r}: range {part!r}: expected rising numbers, at most {LIMIT}"
            )
        numbers += [str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    return numbers


def expect_distinct(names: Sequence[str], location: str) -> None:
    """Raise `TopologyError` for a host that is listed twice."""
    twice, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise TopologyError(f"{location}: node {twice} twice: expected once")


def compress(names: Sequence[str]) -> list[str]:
    """Return names as items of Slurm's list, in their order: runs of numbers become ranges.

    Examples
    --------
    >>> compress(["node08", "node09", "node10", "gpu7"])
    ['node[08-10]', 'gpu7']
    """
    runs: list[list[str]] = []  # prefix, lowest number, highest number
    for name in names:
        match = re.fullmatch(r"(.*?)(\d{1,9})", name)
        prefix, number = (match[1], match[2]) if match else (name, "")
        if runs and number and runs[-1][2]:
            before, low, high = runs[-1]
            if before == prefix and number == f"{int(high) + 1:0{len(low)}d}":
                runs[-1][2] = number
                continue
        runs.append([prefix, number, number])
    return [p + low if low == high else f"{p}[{low}-{high}]" for p, low, high in runs]
