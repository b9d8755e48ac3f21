"""What TAB completes, as a shell asks for it."""

from hopmap.cli import options
from support import about
from support.commands import invoke

COMMAND = "from hopmap.cli.app import main; main()"


def test_names_are_completed():
    for complete, begun, completed in [
        (options.complete_mappers, "recur", ["recursive_bisection"]),
        (options.complete_mappers, "minmd | bokh", ["minmd | bokhari"]),
        (options.complete_topologies, "tor", ["torus:"]),
        (options.complete_topologies, "preset:haec", ["preset:haec-box-4x4x4"]),
        (options.complete_engines, "com", ["compiled"]),
        (options.complete_scenarios, "fir", ["first"]),
        (options.complete_launchers, "sl", ["slurm"]),
        (options.complete_launchers, "cs", ["csv"]),
        (options.complete_launchers, "mapl", ["maplib"]),
    ]:
        with about(complete, begun, completed):
            assert complete(begun) == completed


def test_scenarios_of_any_folder_are_completed_as_they_are_written(tmp_path, monkeypatch):
    """Whatever a shell may have there: a place from the root, brackets, a dot before the name."""
    (tmp_path / "[a]").mkdir()
    for name in ("first_of_mine.toml", "first.csv", "[a]/mine.toml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert options.complete_scenarios("first") == ["first", "first_of_mine.toml"]
    assert options.complete_scenarios("./fir") == ["./first_of_mine.toml"]
    assert options.complete_scenarios("[a]/m") == ["[a]/mine.toml"]
    assert options.complete_scenarios(f"{tmp_path}/f") == [f"{tmp_path}/first_of_mine.toml"]


def test_options_know_what_completes_them():
    for words, completed in [
        ("map lu.S.16 -t torus:4x4 -m recur", "recursive_bisection"),
        ("map lu.S.16 -t hyp", "hypercube:"),
        ("advise lu.S.16 -m recur", "recursive_bisection"),
        ("evaluate lu.S.16 m.csv -t hyp", "hypercube:"),
        ("simulate lu.S.16 m.csv --engine simp", "simpy"),
        ("run stencil_shap", "stencil_shapes"),
        ("export m.csv --to slur", "slurm"),
    ]:
        with about(words, completed):
            asked = {
                "_HOPMAP_COMPLETE": "complete_bash",
                "COMP_WORDS": f"hopmap {words}",
                "COMP_CWORD": str(len(words.split())),
            }
            done = invoke([], env=asked)
            assert done.stdout.split() == [completed]
