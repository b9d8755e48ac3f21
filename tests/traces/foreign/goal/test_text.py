"""What txt2bin takes, and a scanner could miss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopmap.traces.foreign.goal.read import read_goal
from support.slow import examples


def read(folder, text):
    file = folder / "x.goal"
    file.write_text(text)
    return read_goal(file)


def test_tags_count_modulo_2_to_32_as_for_txt2bin(tmp_path):
    # ATLAHS writes tags of 10 digits and more: an index, a channel, a sequence and a communicator.
    lines = [f"recv 1b from 0 tag {tag}" for tag in (2**32 - 1, 2**32, 12_003_004_105, -1)]
    schedule = read(tmp_path, "num_ranks 1\nrank 0 {\n" + "\n".join(lines) + "\n}\n")
    assert schedule.tag.tolist() == [-1, 0, 12_003_004_105 % 2**32, -1]


def test_streams_of_many_channels_have_their_processors(tmp_path):
    schedule = read(tmp_path, "num_ranks 1\nrank 0 {\ncalc 1 cpu 300\nsend 1b to 0 nic 256\n}\n")
    assert (schedule.cpu.tolist(), schedule.nic.tolist()) == ([300, 0], [0, 256])


WORDS = st.from_regex(r"[a-z]{1,2}[0-9]{0,3}[a-z_]?[0-9]{0,2}", fullmatch=True)


@given(st.lists(st.lists(WORDS, unique=True, max_size=30), min_size=1, max_size=4))
@examples(60)
def test_labels_mean_what_they_name(tmp_path_factory, labels):
    # Labels that count up, begin alike, or differ by zeros in front are different ones.
    lines, after, first = [f"num_ranks {len(labels)}"], [], 0
    for rank, names in enumerate(labels):
        names = [f"x{name}" for name in names]
        lines += [f"rank {rank} {{", *(f"{name}: calc {k}" for k, name in enumerate(names))]
        lines += [f"{name} requires {names[k // 2]}" for k, name in enumerate(names)]
        lines.append("}")
        after += [(first + k, first + k // 2) for k in range(len(names))]
        first += len(names)
    schedule = read(tmp_path_factory.mktemp("t"), "\n".join(lines) + "\n")
    assert list(zip(schedule.after.tolist(), schedule.before.tolist(), strict=True)) == after
