"""What is stored comes back, and a folder without results says so."""

import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from hopmap.scenarios.results import store
from hopmap.scenarios.results.gather import gather
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.scenarios.results.stored_runs import error_of, read_errors, write_loose
from hopmap.scenarios.results.tables import METRICS, TABLES, StoreError
from hopmap.topologies import haec, mesh
from support import ROOT
from support.commands import failed


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "traffic").mkdir()
    return tmp_path


def test_rows_come_back_in_the_plans_order_with_nulls_for_what_is_not_known(folder):
    store.save_run(folder, {"run_id": "b", "seed": 1, "node_of": np.array([2, 0, 1])})
    store.save_run(folder, {"run_id": "a", "seed": 2, "hop_bytes": 2**60, "error": "broken"})
    save_plan(folder, Plan(runs=["b", "not there yet", "a"]))
    runs = store.load_results(folder)
    assert runs["run_id"].tolist() == ["b", "a"]
    assert runs["node_of"][0].tolist() == [2, 0, 1]
    assert runs.columns.tolist() == TABLES["runs"].names
    assert read_errors(folder) == {"a": "broken", "b": None}
    assert runs["hop_bytes"][1] == 2**60


def test_a_run_of_another_version_has_nulls_for_what_that_did_not_write(folder):
    for name in "ab":
        old = pa.table({"run_id": [name], "seed": pa.array([3], pa.int32()), "gone": [1.5]})
        write_loose(folder, "runs", name, old)
    save_plan(folder, Plan(runs=["b", "a"]))
    for _ in range(2):
        runs = store.load_results(folder)
        assert runs["seed"].tolist() == [3, 3]
        assert runs["makespan"].isna().all()
        assert runs.columns.tolist() == TABLES["runs"].names
        gather(folder)


def test_links_know_their_ends_and_kinds(folder):
    topology = haec((2, 2, 2))
    loads = np.arange(1, topology.links + 1)
    store.save_links(folder, "a", topology, loads, loads * 8, loads * 9, loads / 4)
    links = store.load_rows(folder, "links", "a")
    replayed = ["replayed_bytes", "busy"]
    assert links.columns.tolist() == ["link", "from", "to", "kind", "messages", "bytes", *replayed]
    assert links["to"].tolist() == topology.link_to.tolist()
    assert set(links["kind"]) == {"optical", "wireless"}
    assert links["bytes"].tolist() == (loads * 8).tolist()
    assert links["replayed_bytes"].tolist() == (loads * 9).tolist()


def test_only_links_that_carry_something_have_a_row(folder):
    network = mesh((4,))
    nothing = np.zeros(network.links, dtype=int)
    one, busy = nothing.copy(), nothing.astype(float)
    one[2] = busy[4] = 1  # a message without bytes; bytes of a collective, which is no message
    store.save_links(folder, "a", network, one, nothing, nothing, busy)
    links = store.load_rows(folder, "links", "a")
    assert links["link"].tolist() == [2, 4]
    assert links["from"].tolist() == network.link_from[[2, 4]].tolist()
    assert links["messages"].tolist() == [1, 0]
    store.save_links(folder, "b", network, nothing, nothing)
    assert store.load_rows(folder, "links", "b").empty


def test_the_same_row_is_the_same_file(folder):
    row = {"run_id": "a", "seed": 1, "node_of": np.arange(5), "makespan": 0.1}
    store.save_run(folder, row)
    first = (folder / "loose/a.runs.arrow").read_bytes()
    store.save_run(folder, row)
    assert (folder / "loose/a.runs.arrow").read_bytes() == first


def test_a_folder_without_results_is_named(folder):
    for load in (
        lambda: store.load_results(folder),
        lambda: store.load_rows(folder, "links", "a"),
        lambda: store.load_traffic(folder, "lu.S.4"),
    ):
        with pytest.raises(StoreError, match=str(folder)):
            load()


def test_a_run_that_was_being_written_when_its_process_died_is_not_finished(folder):
    store.save_run(folder, {"run_id": "a", "seed": 1})
    whole = (folder / "loose/a.runs.arrow").read_bytes()
    (folder / "loose/.partial-xb.runs.arrow").write_bytes(whole[: len(whole) // 2])
    (folder / "loose/.partial-xc.runs.arrow").write_bytes(b"")
    assert read_errors(folder) == {"a": None}


def test_a_run_whose_file_a_power_cut_damaged_is_not_finished(folder):
    for name in "ab":
        store.save_run(folder, {"run_id": name, "seed": 1})
    whole = (folder / "loose/a.runs.arrow").read_bytes()
    (folder / "loose/a.runs.arrow").write_bytes(whole[: len(whole) // 2])
    assert read_errors(folder) == {"b": None}
    with pytest.raises(KeyError):
        error_of(folder, "a")


def test_a_file_that_is_being_written_is_finished_before_sigterm_ends_the_process():
    """Also where the signal comes to another thread than that which writes."""
    program = (
        "import threading, time\n"
        "from hopmap.scenarios.results.stored_runs import deaf_to_sigterm\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "with deaf_to_sigterm():\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(0.5)\n"
        "    print('written', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    process.terminate()
    assert process.communicate(timeout=30)[0] == "written\n"
    assert process.returncode == -signal.SIGTERM


def test_every_column_is_in_the_page_of_results():
    page = (ROOT / "docs" / "reference" / "results.md").read_text("utf-8")
    metrics = {f"{sum_}_{metric}" for sum_ in ("messages", "bytes") for metric in METRICS}
    columns = {name for schema in TABLES.values() for name in schema.names} - metrics
    columns = {name for name in columns if not name.startswith("maplib_")} | set(METRICS)
    assert [name for name in sorted(columns) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("link", "target"),
    [("links", "data"), ("earlier/ranks", "data"), ("scenario.toml", "own.txt"), (".lock", "new")],
)
@pytest.mark.parametrize("command", [["query", "FROM runs"], ["report"]])
def test_a_link_out_of_a_folder_of_results_is_refused(tmp_path, link, target, command):
    """Gathering removes parts of no run; who made the folder must not choose which."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-00000.parquet").write_text("of a year")
    (tmp_path / "own.txt").write_text("private")
    folder = tmp_path / "theirs"
    (folder / "earlier").mkdir(parents=True)
    store.save_run(folder, {"run_id": "a", "hop_bytes": 3})
    save_plan(folder, Plan(runs=["a"]))
    (folder / link).symlink_to(tmp_path / target)
    said = failed(command[0], folder, *command[1:])
    assert f"{folder / link}: a link out of the results: expected them in {folder}" in said
    assert (tmp_path / "data" / "part-00000.parquet").read_text() == "of a year"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "own.txt", "theirs"]


def test_a_link_to_a_folder_of_results_is_that_folder(folder):
    store.save_run(folder, {"run_id": "a", "hop_bytes": 3})
    save_plan(folder, Plan(runs=["a"]))
    (folder / "latest").symlink_to(folder)  # within is within
    assert len(store.load_results(folder / "latest")) == 1


def test_a_run_cannot_be_called_as_a_path(folder):
    """Its id may come from somebody else's table."""
    (folder / "results" / "loose").mkdir(parents=True)
    write_loose(folder, "links", "a", TABLES["links"].empty_table())
    save_plan(folder / "results", Plan(runs=[]))
    with pytest.raises(StoreError, match="expected a finished run's"):
        store.load_rows(folder / "results", "links", "../../loose/a")
