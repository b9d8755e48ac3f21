"""Archives that are cut, foreign or inconsistent: one line that names the place, and no harm."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hopmap.traces import TraceError, read_summary, read_trace
from support import ROOT
from support.slow import SHARE, slow

READERS = (read_trace, read_summary)


@pytest.fixture
def archive(data, tmp_path) -> Path:
    """A copy of edge.X.8 to be damaged."""
    return Path(shutil.copytree(data / "edge.X.8", tmp_path / "edge.X.8"))


def complaint(read, path) -> str:
    with pytest.raises(TraceError) as caught:
        read(path)
    text = str(caught.value)
    assert "\n" not in text
    return text


def remove(*names):
    def damage(archive):
        for name in names:
            (archive / name).unlink()

    return damage


def cut(name, size):
    def damage(archive):
        (archive / name).write_bytes((archive / name).read_bytes()[:size])

    return damage


def overwrite(name, content):
    def damage(archive):
        (archive / name).write_bytes(content)

    return damage


def exchange(one, other):
    def damage(archive):
        first, second = (archive / one).read_bytes(), (archive / other).read_bytes()
        (archive / one).write_bytes(second)
        (archive / other).write_bytes(first)

    return damage


def claim_many_properties(archive):
    content = bytearray((archive / "traces.otf2").read_bytes())
    content[63] = 60  # their number is a 32-bit word at 60
    (archive / "traces.otf2").write_bytes(content)


def shift_strings(archive):
    """An older format with its strings where numbers are: libotf2 alone loops for minutes."""
    content = bytearray((archive / "traces.otf2").read_bytes())
    del content[43:50]
    content[7], content[42] = 2, 255
    (archive / "traces.otf2").write_bytes(content)


def claim_large_chunks(archive):
    content = bytearray((archive / "traces.otf2").read_bytes())
    content[19] = 255  # the bytes of a chunk of events are a 64-bit word at 12
    (archive / "traces.otf2").write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (cut("traces/3.evt", 1000), "traces/3.evt: location 3: 1000 bytes without the mark "),
        (cut("traces/3.evt", 10), "traces/3.evt: location 3: 10 bytes cannot hold the 156 events"),
        (cut("traces/3.evt", 0), "traces/3.evt: location 3: 0 bytes cannot hold the 156 events"),
        (remove("traces/3.evt"), "traces/3.evt: location 3: no such file, 156 events are missing"),
        (remove("traces/3.def"), "traces/3.def: no such file, the local definitions are missing"),
        (remove(*(f"traces/{n}.def" for n in range(8))), "communicator 0 is not one of MPI"),
        (cut("traces/3.def", 40), "traces/3.def: 40 bytes without the mark that ends a file"),
        (cut("traces/3.def", 0), "traces/3.def: 0 bytes without the mark that ends a file"),
        (remove("traces.def"), "traces.def: no such file, the global definitions are missing"),
        (cut("traces.def", 3000), "traces.def: 3000 bytes without the mark that ends a file"),
        (cut("traces.def", 0), "traces.def: 0 bytes without the mark that ends a file"),
        (remove("traces.otf2"), "expected one OTF2 anchor file (*.otf2) in it, found none"),
        (overwrite("traces.otf2", b"a text\n"), "traces.otf2: not an anchor file of OTF2"),
        (overwrite("traces.otf2", b""), "traces.otf2: not an anchor file of OTF2"),
        (cut("traces.otf2", 40), "traces.otf2: "),
        (claim_many_properties, "traces.otf2: 1006632965 properties do not fit into 283 bytes"),
        (shift_strings, "traces.otf2: "),
        (claim_large_chunks, "traces.otf2: chunks of "),
        (overwrite("traces/3.evt", b"\n" * 5000), "traces/3.evt: location 3: no events (libotf2: "),
        (exchange("traces/2.evt", "traces/3.evt"), "traces/2.evt: location 2"),
        (cut("traces.otf2", 7), "traces.otf2: "),
    ],
)  # fmt: skip
def test_damage_is_named(archive, damage, expected, capfd, request):
    if damage in (claim_many_properties, shift_strings, claim_large_chunks):  # libotf2 may loop
        request.getfixturevalue("guarded")
    damage(archive)
    for read in READERS:
        assert expected in complaint(read, archive)
    assert capfd.readouterr() == ("", "")  # libotf2 does not print


def test_a_file_with_the_events_of_another_location(data, tmp_path):
    archive = Path(shutil.copytree(data / "mg.S.16", tmp_path / "mg.S.16"))
    exchange("traces/0.evt", "traces/5.evt")(archive)
    for read in READERS:
        assert complaint(read, archive).endswith(
            "traces/0.evt: location 0: goes on after event 3942, its last by the definitions"
        )


def test_paths_that_are_no_archives(tmp_path):
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "empty").mkdir()
    for name in ("one.otf2", "two.otf2"):
        (tmp_path / name).touch()
    for read in READERS:
        assert "no such file or folder" in complaint(read, tmp_path / "absent")
        assert "notes.txt: not an OTF2 anchor file" in complaint(read, tmp_path / "notes.txt")
        assert "found none" in complaint(read, tmp_path / "empty")
        assert "found one.otf2, two.otf2" in complaint(read, tmp_path)


def test_a_trace_without_mpi_is_foreign(write_archive, monkeypatch):
    from otf2.enums import Paradigm

    monkeypatch.setattr(Paradigm, "MPI", Paradigm.PTHREAD)
    folder = write_archive(lambda a: a.events(a.masters[0]).enter(1, a.main))
    for read in READERS:
        assert "0 groups of MPI locations" in complaint(read, folder)


def test_partners_outside_the_communicator(write_archive):
    def fill(a):
        events = a.events(a.masters[1])
        events.enter(1, a.send)
        events.mpi_send(2, 3, a.world, 0, 8)
        events.leave(3, a.send)

    folder = write_archive(fill, ranks=3)
    for read in READERS:
        assert complaint(read, folder).endswith(
            "traces/1.evt: location 1, event 2: partner 3 is outside the communicator"
        )


def test_who_sends_or_receives_on_a_communicator_is_one_of_it(write_archive):
    """Rank 1 of 3 uses the communicator of ranks 0 and 2; in another all are by its flag."""

    def fill(a):
        pair = a.definitions.comm("pair", group=a.group([0, 2]))
        for rank, to in ((0, 1), (1, 0)):
            events = a.events(a.masters[rank])
            events.enter(1, a.send)
            events.mpi_send(2, to, pair, 0, 8)
            events.leave(3, a.send)

    folder = write_archive(fill, ranks=3)
    for read in READERS:
        assert "traces/1.evt: location 1, event 2: communicator" in complaint(read, folder)
        assert complaint(read, folder).endswith("does not have this rank")


def test_calls_entered_and_left_must_match(write_archive):
    def left_only(a):
        a.events(a.masters[0]).enter(1, a.main)
        a.events(a.masters[0]).leave(2, a.send)

    assert "location 0, event 2: leaves region 0, which was not entered" in complaint(
        read_trace, write_archive(left_only)
    )


def test_calls_entered_must_be_left(write_archive):
    folder = write_archive(lambda a: a.events(a.masters[0]).enter(1, a.send))
    assert "0.evt: location 0: MPI_Send is entered and not left" in complaint(read_trace, folder)


def test_phases_of_the_program_may_overlap(write_archive):
    def fill(a):
        other = a.definitions.region("phase")
        events = a.events(a.masters[0])
        events.enter(1, a.main)
        events.enter(2, other)
        events.leave(3, a.main)

    assert read_trace(write_archive(fill)).events == 3


def test_sizes_beyond_63_bits(write_archive):
    def fill(a):
        a.events(a.masters[0]).mpi_send(1, 0, a.world, 0, 2**63)

    folder = write_archive(fill)
    for read in READERS:
        assert f"event 1: a size of {2**63} bytes" in complaint(read, folder)


def test_a_total_beyond_63_bits(write_archive):
    def fill(a):
        for time in range(3):
            a.events(a.masters[0]).mpi_send(time, 2, a.world, 0, 2**62)

    folder = write_archive(fill)
    assert "event 2: the bytes sent to rank 2 do not fit" in complaint(read_summary, folder)


def mutated(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    place = rng.randrange(len(data))
    how = rng.randrange(4)
    if how == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[place : place + 16] = rng.randbytes(16)
    elif how == 2:
        del data[place:]
    else:
        data[place:place] = rng.randbytes(rng.randrange(1, 9))
    return bytes(data)


FUZZ = """
import sys
from pathlib import Path
from random import Random
sys.path[:0] = sys.argv[2].split(":")
from test_bad_input import READERS, TraceError, mutated

archive, rng = Path(sys.argv[1]), Random(int(sys.argv[3]))
originals = {file: file.read_bytes() for file in sorted(archive.rglob("*.*")) if file.is_file()}
refused = 0
for _ in range(int(sys.argv[4])):
    file = rng.choice(list(originals))
    file.write_bytes(mutated(originals[file], rng))
    for read in READERS:
        try:
            read(archive)
        except TraceError as error:
            assert "\\n" not in str(error), error
            refused += 1
    file.write_bytes(originals[file])
print(refused)
"""


@pytest.mark.parametrize("kind", [*slow("recorded"), "hybrid"])
def test_flipped_and_lost_bytes_never_do_harm(kind, archive, hybrid_archive):
    """In a process of its own: a crash of libotf2 would take the test run with it."""
    target = archive if kind == "recorded" else hybrid_archive
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            FUZZ,
            str(target),
            f"{Path(__file__).parent}:{ROOT}/tests",
            "1",
            str(150 if SHARE["of"] == 1 else 15),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > (100 if SHARE["of"] == 1 else 10)
