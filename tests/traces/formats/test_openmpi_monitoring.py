"""Open MPI's monitoring: the lines of its README, in one file and in one a rank."""

import warnings

import numpy as np
import pytest

from hopmap.errors import HopmapWarning
from hopmap.traces import TraceError, load_traffic, save_traffic
from hopmap.traces.formats.openmpi_monitoring import profiles, read_monitoring

# From Open MPI's ompi/mca/common/monitoring/README.md: kind, from, to, bytes, messages.
ROWS = [
    ("I", 2, 3, 104, 26),
    ("E", 2, 0, 22804, 49),
    ("E", 2, 3, 860, 24),
    ("I", 3, 0, 104, 26),
    ("E", 3, 1, 2304, 44),
    ("I", 0, 1, 108, 27),
    ("E", 0, 1, 1012, 30),
    ("E", 0, 2, 23052, 61),
]


def line(kind, source, target, size, messages, histogram=""):
    return f"{kind}\t{source}\t{target}\t{size} bytes\t{messages} msgs sent{histogram}\n"


def table(traffic):
    columns = (traffic.src, traffic.dst, traffic.bytes, traffic.messages)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def external():
    return sorted(row[1:] for row in ROWS if row[0] == "E")


def test_what_the_application_sends_is_counted_by_direction(tmp_path):
    file = tmp_path / "all.prof"
    file.write_text("# POINT TO POINT\n" + "".join(line(*row) for row in ROWS))
    assert table(load_traffic(file)) == external()
    assert read_monitoring(file).ranks == 4


def test_collectives_are_added_where_asked_for(tmp_path):
    file = tmp_path / "all.prof"
    file.write_text("".join(line(*row) for row in ROWS))
    assert (0, 1, 1012 + 108, 57) in table(read_monitoring(file, collectives=True))


def test_the_files_of_all_ranks_belong_together(tmp_path):
    for rank in range(6):
        mine = "".join(line(*row) for row in ROWS if row[1] == rank)
        (tmp_path / f"run.{rank}.prof").write_text("# POINT TO POINT\n" + mine + "# RMA\n")
    (tmp_path / "other.0.prof").write_text(line("E", 0, 5, 1, 1))
    assert len(profiles(tmp_path / "run.3.prof")) == 6
    traffic = load_traffic(tmp_path / "run.3.prof")
    assert (table(traffic), traffic.ranks) == (external(), 6)
    assert table(load_traffic(tmp_path)) == sorted([*external(), (0, 5, 1, 1)])


def test_ranks_whose_file_is_missing_are_warned_of(tmp_path):
    """What they sent is not there; a file with lines of all ranks lacks none."""
    for rank in (0, 2):
        mine = "".join(line(*row) for row in ROWS if row[1] == rank)
        (tmp_path / f"run.{rank}.prof").write_text(mine)
    with pytest.warns(HopmapWarning, match=r"no file of rank 1, 3: of 4 ranks, 2 are missing"):
        assert load_traffic(tmp_path / "run.0.prof").ranks == 4
    (tmp_path / "run.1.prof").write_text(line("E", 1, 0, 4, 1))
    with pytest.warns(HopmapWarning, match=r"no file of rank 3: of 4 ranks, 1 is missing"):
        load_traffic(tmp_path / "run.0.prof")
    (tmp_path / "run.1.prof").unlink()
    (tmp_path / "run.2.prof").unlink()
    every = "".join(line(*row) for row in [*ROWS, ("E", 1, 0, 4, 1)])
    (tmp_path / "run.0.prof").write_text(every)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_traffic(tmp_path / "run.0.prof").ranks == 4


def test_phases_of_a_folder_are_added_up(tmp_path):
    for phase in (1, 2):
        for rank in range(4):
            mine = "".join(line(*row) for row in ROWS if row[1] == rank)
            (tmp_path / f"phase_{phase}_{rank}.prof").write_text(mine)
    assert table(load_traffic(tmp_path)) == [(s, t, 2 * n, 2 * m) for s, t, n, m in external()]
    assert table(load_traffic(tmp_path / "phase_2_0.prof")) == external()


def test_the_letter_with_a_histogram_is_the_applications(tmp_path):
    """Open MPI 3 wrote I for the application and E for collectives."""
    swapped = {"E": "I", "I": "E"}
    text = "".join(
        line(swapped[kind], *row, histogram="\t0,3,4" if kind == "E" else "") for kind, *row in ROWS
    )
    file = tmp_path / "old.prof"
    file.write_text(text)
    assert table(load_traffic(file)) == external()


# What Open MPI 4.1 counts of a communicator's collectives, below its D.
COLLECTIVES = """D\tMPI COMMUNICATOR 3 SPLIT FROM 0\tprocs: 0,2
O2A\t0\t12 bytes\t1 msgs sent
A2O\t0\t12 bytes\t1 msgs sent
A2A\t0\t60 bytes\t5 msgs sent
"""


def test_counts_of_whole_collectives_are_left_out(tmp_path):
    file = tmp_path / "all.prof"
    text = (
        "# COLLECTIVES\n" + line("C", 0, 1, 28, 7) + COLLECTIVES + COLLECTIVES.replace("3", "\xfc")
    )
    file.write_bytes(("".join(line(*row) for row in ROWS) + text).encode("latin-1"))
    assert table(load_traffic(file)) == external()


@pytest.mark.parametrize("letters", ["EI", "IE"])
def test_pairs_of_collectives_alone_have_a_histogram_too(tmp_path, letters):
    """Open MPI 4.1 gives each pair one, behind E if it has that, else behind I."""
    pairs = {row[1:3] for row in ROWS if row[0] == "E"}
    text = "".join(
        line(*row, histogram="\t0,3,4" if row[0] == "E" or row[1:3] not in pairs else "")
        for letter in letters
        for row in ROWS
        if row[0] == letter
    )
    assert text.count("0,3,4") == len(pairs) + 1
    file = tmp_path / "new.prof"
    file.write_text(text)
    assert table(load_traffic(file)) == external()


def test_releases_with_a_part_for_one_sided_messages_keep_collectives_apart(tmp_path):
    """Where an application sends nothing, I is still not its own."""
    text = line("I", 0, 1, 4284, 27, histogram="\t5,22") + "# OSC\n" + line("S", 0, 1, 80, 1)
    file = tmp_path / "one_sided.prof"
    file.write_text("# POINT TO POINT\n" + text)
    assert table(load_traffic(file)) == [(0, 1, 80, 1)]
    assert table(read_monitoring(file, collectives=True)) == [(0, 1, 4364, 28)]
    file.write_text(line("I", 0, 1, 4284, 27, histogram="\t5,22") + "# OSC\n")
    assert (table(load_traffic(file)), load_traffic(file).ranks) == ([], 2)


def test_what_is_one_letter_counts_whole_and_gets_come_from_the_partner(tmp_path):
    file = tmp_path / "one.prof"
    text = line("I", 0, 1, 10, 2) + line("S", 1, 2, 30, 1) + line("R", 1, 2, 70, 3)
    file.write_text(text + "D\tMPI_COMM_WORLD\nC\t0\t1\t9 bytes\t9 msgs sent\n")
    assert table(load_traffic(file)) == [(0, 1, 10, 2), (1, 2, 30, 1), (2, 1, 70, 3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no messages in it"),
        ("E 0 1 many bytes 3 msgs sent", "line 1 is 'E 0 1 many bytes 3 msgs sent': expected"),
        (line("E", 0, 1, 1, 1) + "hello", "line 2 is 'hello'"),
        (line("E", 0, 999_999_999, 1, 1), "rank 999999999 with 1 lines"),
        (line("E", 0, 1, 5, 0), "5 bytes in 0 messages"),
    ],
)
def test_what_is_no_profile_is_refused_by_line(tmp_path, text, message):
    file = tmp_path / "bad.prof"
    file.write_text(text)
    with pytest.raises(TraceError, match=message):
        load_traffic(file)


def test_it_is_only_read(tmp_path):
    file = tmp_path / "all.prof"
    file.write_text(line("E", 0, 1, 1, 1))
    with pytest.raises(TraceError, match="expected a name ending in"):
        save_traffic(tmp_path / "x.prof", load_traffic(file))


def test_changed_files_are_read_or_refused(tmp_path):
    rng, file, refused = np.random.default_rng(0), tmp_path / "x.prof", 0
    content = "".join(line(*row) for row in ROWS).encode()
    for _ in range(200):
        changed = bytearray(content)
        begin = rng.integers(len(changed))
        changed[begin : begin + rng.integers(1, 4)] = rng.bytes(rng.integers(3))
        file.write_bytes(changed)
        try:
            load_traffic(file)
        except TraceError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 50
