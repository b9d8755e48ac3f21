"""SQL on results, and pandas on the same files."""

import json

import pandas as pd
import pytest

from hopmap.scenarios.results import query as query_module
from hopmap.scenarios.results import store
from hopmap.scenarios.results.plan_file import Plan, save_plan
from hopmap.scenarios.results.query import QueryError, query
from hopmap.scenarios.results.tables import TABLES, StoreError
from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support import DATA
from support.commands import invoke

LU = DATA / "lu.S.4"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("it's a study")
    file = folder / "study.toml"
    file.write_text(
        f'name = "s"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2"]\nmappers = ["sweep", "scan"]\n'
        '[replay]\nengine = "compiled"\nmessages = true\n[parameters]\ngap = "2 us"\n'
    )
    run_scenario(file, load_scenario(file), folder / "out")
    return folder / "out"


def test_runs_can_be_asked_for(results):
    answer = query(results, "SELECT mapper, hop_bytes FROM runs ORDER BY mapper")
    runs = store.load_results(results).sort_values("mapper")
    assert answer.columns == ["mapper", "hop_bytes"]
    assert answer.rows == list(zip(runs["mapper"], runs["hop_bytes"], strict=True))
    parameter = query(results, "SELECT DISTINCT CAST(parameters ->> 'gap' AS DOUBLE) FROM runs")
    assert parameter.rows == [(2e-6,)]


def test_tables_belong_together(results):
    """Ranks finish when the run does; links carry the replayed bytes, messages sum up to them."""
    joined = """
        SELECT makespan, max(finish), count(*) FROM runs JOIN ranks USING (run_id)
        GROUP BY ALL
    """
    for makespan, finish, ranks in query(results, joined).rows:
        assert (makespan, ranks) == (finish, 4)
    busy = query(results, "SELECT run_id, sum(bytes) FROM links GROUP BY ALL ORDER BY ALL").rows
    hops = query(results, "SELECT run_id, hop_bytes FROM runs ORDER BY ALL").rows
    assert busy == hops
    sent = query(results, "SELECT count(*), bool_and(delivered > sent) FROM messages").rows
    assert sent[0][0] > 0
    assert sent[0][1]


@pytest.mark.parametrize("table", ["runs", "ranks", "links", "messages"])
def test_pandas_reads_a_table_in_one_line(results, table):
    frame = pd.read_parquet(results / table)
    ((rows,),) = query(results, f"SELECT count(*) FROM {table}").rows
    assert len(frame) == rows > 0
    assert frame["run_id"].nunique() == 2


def test_a_run_that_is_still_loose_counts(tmp_path):
    tmp_path.joinpath("out").mkdir()
    store.save_run(tmp_path / "out", {"run_id": "a", "hop_bytes": 3})
    save_plan(tmp_path / "out", Plan(runs=["a"]))
    assert query(tmp_path / "out", "SELECT hop_bytes FROM runs").rows == [(3,)]
    assert query(tmp_path / "out", "FROM messages").rows == []


def test_runs_that_are_no_longer_planned_are_not_asked(tmp_path):
    tmp_path.joinpath("out").mkdir()
    for name in "ab":
        store.save_run(tmp_path / "out", {"run_id": name, "hop_bytes": 3})
    save_plan(tmp_path / "out", Plan(runs=["a", "b"]))
    assert len(query(tmp_path / "out", "FROM runs").rows) == 2
    save_plan(tmp_path / "out", Plan(runs=["b"]))
    assert query(tmp_path / "out", "SELECT run_id FROM runs").rows == [("b",)]


def test_parts_that_vanish_while_they_are_read_are_read_again(tmp_path, monkeypatch):
    tmp_path.joinpath("out").mkdir()
    store.save_run(tmp_path / "out", {"run_id": "a", "hop_bytes": 3})
    save_plan(tmp_path / "out", Plan(runs=["a"]))
    real, former = query_module.part_files, tmp_path / "out" / "runs" / "part-former.parquet"
    answers = iter([lambda *_: [former]])
    monkeypatch.setattr(query_module, "part_files", lambda *given: next(answers, real)(*given))
    assert query(tmp_path / "out", "SELECT hop_bytes FROM runs").rows == [(3,)]


def test_the_command_prints_a_table_or_json(results):
    words = ["query", str(results), "SELECT mapper, seed FROM runs ORDER BY mapper"]
    text = invoke(words)
    assert text.stdout.split() == ["mapper", "seed", "-" * 12, "scan", "0", "sweep", "0"]
    found = json.loads(invoke([*words, "--json"]).stdout)
    assert found == [{"mapper": "scan", "seed": 0}, {"mapper": "sweep", "seed": 0}]


def test_messages_that_were_not_recorded_are_not_counted_as_none_without_a_word(results, tmp_path):
    store.save_run(tmp_path, {"run_id": "a", "hop_bytes": 3})
    save_plan(tmp_path, Plan(runs=["a"]))
    said = "hopmap: messages were not recorded: expected messages = true in [replay]\n"
    for folder, sql, stderr in (
        (tmp_path, "SELECT count(*) FROM messages", said),
        (tmp_path, "FROM runs LEFT\njoin Messages USING (run_id)", said),
        (tmp_path, "SELECT 3 AS messages FROM runs", ""),
        (results, "SELECT count(*) FROM messages", ""),
    ):
        answer = invoke(["query", str(folder), sql])
        assert (answer.exit_code, answer.stderr) == (0, stderr)


@pytest.fixture
def small(tmp_path):
    """Results of one run, in a folder that holds a secret file as well."""
    (tmp_path / "out").mkdir()
    (tmp_path / "secret.csv").write_text("word\nswordfish\n")
    store.save_run(tmp_path / "out", {"run_id": "a", "hop_bytes": 3})
    save_plan(tmp_path / "out", Plan(runs=["a"]))
    return tmp_path


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{}/new.csv'",
        "COPY runs TO '{}/new.csv'",
        "EXPORT DATABASE '{}/new.csv'",
        "ATTACH '{}/new.csv'",
        "FROM read_text('{}/secret.csv')",
        "FROM read_csv('{}/secret.csv')",
        "FROM '{}/secret.csv'",
        "FROM glob('{}/*')",
        "FROM runs; COPY runs TO '{}/new.csv'",
        "INSTALL httpfs",
        "LOAD '{}/secret.csv'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
    ],
)
def test_a_query_sees_and_changes_nothing_but_results(small, sql):
    answer = invoke(["query", str(small / "out"), sql.format(small)])
    assert (answer.exit_code, answer.stdout) == (2, "")
    two = "hopmap: query: 2 statements: expected one"
    alone = "hopmap: query: expected a query of the results alone: "
    assert answer.stderr.startswith(two if ";" in sql else alone)
    assert answer.stderr.count("\n") == 1
    assert sorted(each.name for each in small.iterdir()) == ["out", "secret.csv"]


def test_the_tables_are_those_of_the_results_and_no_variable_of_ours(small):
    assert query(small / "out", "SHOW TABLES").rows == [(name,) for name in sorted(TABLES)]
    for name in ("files", "ds", "invoke"):
        with pytest.raises(QueryError, match="does not exist"):
            query(small / "out", f"FROM {name}")


def test_a_damaged_table_is_one_line_that_names_the_file(small):
    (part := small / "out" / "runs" / "part-1.parquet").parent.mkdir()
    part.write_bytes(b"PAR1, or not")
    answer = invoke(["query", str(small / "out"), "FROM runs"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"hopmap: {part}: cannot be read")


def test_a_mistake_is_one_line(results, tmp_path):
    with pytest.raises(QueryError, match="no SQL: expected a statement"):
        query(results, " ")
    with pytest.raises(QueryError, match="Parser Error"):
        query(results, "SELEC")
    answer = invoke(["query", str(results), "SELECT nothing FROM runs"])
    assert (answer.exit_code, len(answer.stderr.splitlines())) == (2, 1)
    assert '"nothing" not found' in answer.stderr
    assert "LINE" not in answer.stderr
    with pytest.raises(QueryError, match=r'not found.* Candidate bindings: "makespan"'):
        query(results, "SELECT makspan FROM runs")
    with pytest.raises(QueryError, match='run does not exist! Did you mean "runs'):
        query(results, "FROM run")
    with pytest.raises(StoreError, match="no results"):
        query(tmp_path, "FROM runs")
