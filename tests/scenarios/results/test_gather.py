"""Gathered tables: the same whatever happened before, and never less than what was found."""

import fcntl
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from fingerprint import fingerprint
from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.results import claims, store, stored_runs
from hopmap.scenarios.results import gather as gather_module
from hopmap.scenarios.results.gather import gather
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.scenarios.results.stored_runs import loose_ids, part_files, read_errors
from hopmap.scenarios.results.tables import TABLES, TIMES, StoreError
from hopmap.topologies import mesh
from support.slow import SHARE, examples

LINE = mesh((3,))


class Killed(BaseException):
    """Stands for kill -9: nobody catches it."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(gather_module, "RUNS_A_PART", 3)


def save(folder, run_id, error=None):
    """Store a run whose figures follow from its id."""
    number = sum(map(ord, run_id))
    if error is None:
        loads = np.arange(LINE.links) + number
        store.save_links(folder, run_id, LINE, loads, loads * 8)
        store.save_ranks(folder, run_id, [number, 0, 1], None)
    row = {"run_id": run_id, "hop_bytes": number, "mapping_seconds": time.perf_counter()}
    store.save_run(folder, row | {"error": error})


def planned(folder, runs):
    save_plan(folder, Plan(runs=list(runs)))


def test_tables_hold_every_run_of_the_plan_in_its_order(tmp_path):
    for name in "edcba":
        save(tmp_path, name)
    planned(tmp_path, "abcde")
    gather(tmp_path)
    assert not loose_ids(tmp_path)
    for table, rows in (("runs", 1), ("ranks", 3), ("links", LINE.links)):
        files = part_files(tmp_path, table)
        assert [path.name[:10] for path in files] == ["part-00000", "part-00001"]
        in_one_line = pd.read_parquet(tmp_path / table)
        assert in_one_line["run_id"].tolist() == [name for name in "abcde" for _ in range(rows)]
    assert store.load_rows(tmp_path, "links", "d")["messages"].tolist() == [100, 101, 102, 103]
    assert store.load_rows(tmp_path, "ranks", "d")["node"].tolist() == [100, 0, 1]
    assert store.load_results(tmp_path)["hop_bytes"].tolist() == [97, 98, 99, 100, 101]


def test_nothing_to_gather_touches_nothing(tmp_path):
    planned(tmp_path, "ab")
    save(tmp_path, "a")
    gather(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    gather(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@examples(40, 8)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([None, "broken"]), st.booleans()),
        max_size=14,
    ),
    plans=st.lists(st.permutations("abcdefgh"), min_size=1, max_size=4),
)
def test_tables_depend_on_what_was_found_and_not_on_its_history(tmp_path_factory, steps, plans):
    """Runs come in any order, some fail first, plans change, tables are gathered in between."""
    folder = tmp_path_factory.mktemp("any")
    well, failed = set(), set()
    for place, (run_id, error, now) in enumerate(steps):
        plan = plans[place % len(plans)][: 3 + place % 6]
        planned(folder, plan)
        if run_id not in well:  # what did well is not done again
            save(folder, run_id, error)
            (failed if error else well).add(run_id)
        if now:
            gather(folder)
    planned(folder, "abcdefgh")
    gather(folder)
    found = read_errors(folder)
    assert {run_id for run_id, error in found.items() if error is None} == well
    straight = tmp_path_factory.mktemp("straight")
    for run_id, error in found.items():
        save(straight, run_id, error)
    planned(straight, "abcdefgh")
    gather(straight)
    assert fingerprint(folder) == fingerprint(straight)


def folder_before(folder):
    """Five gathered runs, of which one failed; then it does well, two more come, one is dropped."""
    folder.mkdir()
    planned(folder, "abcde")
    for name in "abcd":
        save(folder, name)
    save(folder, "e", "broken")
    gather(folder)
    for name in "efg":
        save(folder, name)
    planned(folder, "gfecba")


@pytest.mark.slow
def test_a_gathering_that_is_killed_at_any_step_loses_nothing(tmp_path, monkeypatch):
    reference = tmp_path / "reference"
    folder_before(reference)
    gather(reference)
    kept = read_errors(reference)
    assert kept == dict.fromkeys("abcdefg")
    for step in range(0, 1000, 1 if SHARE["of"] == 1 else 7):
        folder = tmp_path / str(step)
        folder_before(folder)
        with monkeypatch.context() as patch:
            left = [step]

            def counted(real, left=left):
                def call(*arguments, **keywords):
                    if left[0] == 0:
                        raise Killed
                    left[0] -= 1
                    return real(*arguments, **keywords)

                return call

            for name in ("unlink", "replace"):
                patch.setattr(Path, name, counted(getattr(Path, name)))
            try:
                gather(folder)
            except Killed:
                pass
            else:
                break
        assert read_errors(folder) == kept
        runs = store.load_results(folder)
        assert runs["run_id"].tolist() == list("gfecba")
        assert runs["error"].isna().all()
        for run_id in "gfecba":
            assert len(store.load_rows(folder, "links", run_id)) == LINE.links
        gather(folder)
        assert fingerprint(folder) == fingerprint(reference)
        assert not loose_ids(folder)
    assert 10 < step < 999


@pytest.fixture
def no_locks(monkeypatch):
    """A file system without locks, as many parallel ones are."""

    def refuse(*_):
        raise OSError(claims.NO_LOCKS[0], "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)


@pytest.mark.parametrize("step", ["index", "read_plan", "part_files", "read_loose", "read_runs"])
def test_two_that_gather_at_once_without_locks_lose_nothing(tmp_path, monkeypatch, no_locks, step):
    """Whatever one has just looked at, the other then gathers and plans anew."""
    planned(tmp_path, "abc")
    for name in "abc":
        save(tmp_path, name)
    module = stored_runs if step == "read_loose" else gather_module
    real, entered = getattr(module, step), []

    def looked(*given):
        found = real(*given)
        if not entered:
            entered.append(True)
            planned(tmp_path, "cbad")
            save(tmp_path, "d")
            gather(tmp_path)
        return found

    monkeypatch.setattr(module, step, looked)
    gather(tmp_path)
    assert entered
    assert read_errors(tmp_path) == dict.fromkeys("abcd")
    for name in "abcd":
        assert len(store.load_rows(tmp_path, "links", name)) == LINE.links
    gather(tmp_path)
    assert pd.read_parquet(tmp_path / "runs")["run_id"].tolist() == list("cbad")


def test_a_failed_run_that_is_tried_again_while_others_gather_keeps_its_tables(tmp_path):
    planned(tmp_path, "ab")
    save(tmp_path, "a", "broken")
    save(tmp_path, "b")
    store.save_links(tmp_path, "a", LINE, *([np.arange(LINE.links) + 1] * 2))
    store.save_ranks(tmp_path, "a", [0, 1, 2], None)
    gather(tmp_path)  # while the new attempt has not written its row yet
    store.save_run(tmp_path, {"run_id": "a", "hop_bytes": 1})
    gather(tmp_path)
    assert read_errors(tmp_path) == {"a": None, "b": None}
    assert len(store.load_rows(tmp_path, "links", "a")) == LINE.links
    assert len(store.load_rows(tmp_path, "ranks", "a")) == 3


def test_a_dropped_run_is_kept_aside_and_comes_back_when_it_is_wanted_again(tmp_path):
    planned(tmp_path, "ab")
    save(tmp_path, "a")
    save(tmp_path, "b")
    gather(tmp_path)
    planned(tmp_path, "b")
    gather(tmp_path)
    assert pd.read_parquet(tmp_path / "runs")["run_id"].tolist() == ["b"]
    assert read_errors(tmp_path) == {"a": None, "b": None}
    planned(tmp_path, "ab")
    assert store.load_results(tmp_path)["run_id"].tolist() == ["a", "b"]
    gather(tmp_path)
    assert pd.read_parquet(tmp_path / "links")["run_id"].unique().tolist() == ["a", "b"]
    assert not part_files(tmp_path / "earlier", "runs")


def test_what_a_run_is_called_now_is_what_tables_say(tmp_path):
    save(tmp_path, "a")
    called = {"variant_of": ["old"], "topology_of": ["file:/here/net.graphml"]}
    save_plan(tmp_path, Plan(runs=["a"], **called))
    gather(tmp_path)
    called = {"variant_of": ["new"], "topology_of": ["file:/there/net.graphml"]}
    save_plan(tmp_path, Plan(runs=["a"], **called))
    for _ in range(2):
        row = store.load_results(tmp_path).iloc[0]
        assert (row["variant"], row["topology"]) == ("new", "file:/there/net.graphml")
        gather(tmp_path)
    assert pd.read_parquet(tmp_path / "runs")["variant"].tolist() == ["new"]


def test_times_are_no_part_of_a_fingerprint_and_all_else_is(tmp_path):
    planned(tmp_path, "a")
    prints = []
    for seconds, hops in ((1.0, 5), (2.0, 5), (2.0, 6)):
        folder = tmp_path / f"{seconds}-{hops}"
        folder.mkdir()
        store.save_run(folder, {"run_id": "a", "hop_bytes": hops, **dict.fromkeys(TIMES, seconds)})
        planned(folder, "a")
        gather(folder)
        prints.append(fingerprint(folder))
    assert prints[0] == prints[1] != prints[2]


def test_a_damaged_table_is_named(tmp_path):
    planned(tmp_path, "a")
    save(tmp_path, "a")
    gather(tmp_path)
    (file,) = part_files(tmp_path, "runs")
    file.write_bytes(b"PAR1 no more")
    damaged = file.rename(file.with_name("part-00000-0.parquet"))  # not what was read before
    with pytest.raises(StoreError, match=f"{damaged}.* remove part-00000-0.parquet of every table"):
        store.load_results(tmp_path)


def test_tables_have_the_columns_of_their_schemas(tmp_path):
    planned(tmp_path, "a")
    save(tmp_path, "a")
    gather(tmp_path)
    for table, schema in TABLES.items():
        for path in part_files(tmp_path, table):
            assert pq.read_schema(path).equals(schema)
