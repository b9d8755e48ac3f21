"""Whether a launch has obeyed a mapping."""

import json
import re
import shutil

import numpy as np
import otf2
import pytest

import hopmap as hm
from hopmap.api.launch_check import check_rank
from hopmap.launchers.observed import RankHere
from hopmap.topologies import MappingError
from hopmap.traces.otf2.hosts import read_hosts
from support import DATA, about
from support.commands import failed, invoke

MACHINE = hm.Machine("mesh:2*4", nodelist="n[1-2]")


def check(tmp_path, hosts, node_of, machine=MACHINE):
    (tmp_path / "log").write_text("".join(f"rank {r} on {h}\n" for r, h in enumerate(hosts)))
    return hm.check_launch(tmp_path / "log", node_of, machine)


def test_a_launch_that_obeys(tmp_path):
    done = check(tmp_path, ["n2", "n1.site", "n2"], [1, 0, 1])
    assert done.obeyed
    assert done.verdict == ["obeyed: 3 ranks ran where the mapping has them"]


def test_ranks_elsewhere_are_named_with_both_hosts(tmp_path):
    done = check(tmp_path, ["n1", "n1", "n1", "n2", "n2"], [0, 1, 1, 0, 1])
    assert [each.rank for each in done.elsewhere] == [1, 2, 3]
    assert done.verdict[:2] == [
        "not obeyed: 3 of 5 ranks ran on other hosts",
        "rank 1 ran on n1: the mapping has it on n2",
    ]


def test_the_order_that_ranks_have_instead_is_named(tmp_path):
    for hosts, node_of, hint in [
        (["n1", "n1", "n2", "n2"], [0, 1, 0, 1], "fill one host after the other"),
        (["n2", "n2", "n1", "n1"], [0, 1, 0, 1], "fill one host after the other"),
        (["n1", "n2", "n1", "n2"], [0, 0, 1, 1], "go to the hosts in turn"),
        (["n2", "n1", "n2", "n1"], [0, 1, 0, 1], "ranks that share a host in the mapping do so"),
        (["n1", "n2"], [1, 0], "fill one host after the other"),
        (["n1", "n2", "n2", "n1"], [1, 1, 0, 1], ""),
        (["n1", "n2", "n1", "n2"], [0, 1, 0, 1], ""),  # obeyed
    ]:
        with about(*hosts):
            done = check(tmp_path, hosts, node_of)
            assert done.hint.startswith(f"ranks {hint}" if hint[:5] in ("fill ", "go to") else hint)
            assert bool(done.hint) == bool(hint)


def test_ranks_that_are_not_seen_or_not_placed_count_as_well(tmp_path):
    done = check(tmp_path, ["n1"], [0, 1, 0, 1, 1])
    assert not done.obeyed
    assert done.verdict == ["not obeyed: not seen: rank 1, 2, 3 and 1 more"]
    done = check(tmp_path, ["n1", "n2"], [0])
    assert done.verdict == ["not obeyed: not in the mapping: rank 1"]


def test_hosts_that_the_mapping_does_not_use_count_in_logs_of_hostname(tmp_path):
    """Hosts of the job, and hosts that hopmap does not know; a program's output does not."""
    machine = hm.Machine("torus:2x2x2*2", nodelist="n[01-08]")
    for text, elsewhere, missing, extra in [
        ("0: n01\n1: n01\n2: n02\n3: n07\n", [], [], [3]),
        ("0: n01\n1: n01\n2: n05\n", [(2, "n02", "n05")], [], []),
        ("0: n01\n1: n01\n2: zz9\n", [(2, "n02", "zz9")], [], []),
        ("0 n01\n1 n01\n2 zz9\n3 zz9\n", [(2, "n02", "zz9")], [], [3]),
        ("".join(f"{r}: n0{1 + r // 2}\n" for r in range(16)), [], [], [*range(3, 16)]),
        ("0: n01\n1: n01\n2: n02\n3: zz9\n", [], [], [3]),
        ("0: n01\n1: n01\n2: done\n", [], [2], []),
        ("0: n01\n2: zz9\n", [(2, "n02", "zz9")], [1], []),
        # output: of a rank that is elsewhere in the log, with a gap before it, of one rank twice
        ("0 n01\n0 step1\n1 n01\n2 n02\n3 step4\n", [], [], []),
        ("0 n01\n1 n01\n2 n02\n12 step5\nresidual 3\n", [], [], []),
        ("0 n01\n1 n01\n2 n02\n3 step5\n3 step6\n", [], [], []),
    ]:
        with about(text):
            (tmp_path / "log").write_text(text)
            done = hm.check_launch(tmp_path / "log", [0, 0, 1], machine)
            assert [*map(tuple, done.elsewhere)] == elsewhere
            assert ([*done.missing], [*done.extra]) == (missing, extra)
            assert done.obeyed == (not (elsewhere or missing or extra))


def test_the_gpus_of_a_host_are_that_host(tmp_path):
    names = ",".join(f"{host}-gpu{n}" for host in ("a", "b") for n in (0, 1))
    machine = hm.Machine("mesh:4", names=names)
    assert check(tmp_path, ["b", "a", "b"], [3, 0, 2], machine).obeyed


def test_nodes_without_names_cannot_be_compared(tmp_path):
    with pytest.raises(MappingError, match="mesh:2: its nodes have no names: expected --nodelist"):
        check(tmp_path, ["n1"], [0], hm.Machine("mesh:2"))
    (tmp_path / "log").write_bytes(b"\xff\xfe")
    with pytest.raises(MappingError, match=r"cannot be read as a log \(it is not text\)"):
        hm.check_launch(tmp_path / "log", [0], MACHINE)


def test_an_archive_knows_the_hosts_of_its_ranks(tmp_path):
    """Recordings before hosts had names, and simulated runs, have numbers."""
    trace = hm.read_trace(DATA / "mg.S.16")
    node_of = np.arange(16) % 2
    for nodes, named in ((["n1", "n2"], True), (None, False)):
        hm.write_trace(trace, tmp_path / "run.otf2", node_of=node_of, nodes=nodes)
        assert read_hosts(tmp_path / "run.otf2")[:2] == tuple(nodes or ("node 0", "node 1"))
        machine = hm.Machine("mesh:2*16", nodelist="n[1-2]")
        done = hm.check_launch(tmp_path / "run.otf2", node_of, machine)
        assert done.obeyed and done.named == named
        moved = node_of.copy()
        moved[3] = 0
        done = hm.check_launch(tmp_path / "run.otf2", moved, machine)
        assert [each.rank for each in done.elsewhere] == [3]
        assert ("only which ranks share a host was compared" in done.verdict[-1]) != named
        # Numbers say nothing of which host is which, names do.
        assert hm.check_launch(tmp_path / "run.otf2", 1 - node_of, machine).obeyed != named
        shutil.rmtree(tmp_path / "run.otf2")


def test_a_rank_checks_itself():
    expected = ["n2", "n1"]
    for here, host, obeyed, line in [
        (RankHere(0, 2), "n2.site", True, "rank 0 of 2 on n2.site: as m.csv has it"),
        (RankHere(1, None), "n1", True, "rank 1 on n1: as m.csv has it"),
        (RankHere(1, 2), "n2", False, "rank 1 of 2 on n2: m.csv has it on n1"),
        (RankHere(2, None), "n2", False, "rank 2 on n2: m.csv places 2 ranks"),
        (RankHere(0, 3), "n2", False, "rank 0 of 3 on n2: m.csv places 2 ranks"),
    ]:
        assert check_rank(here, host, expected, "m.csv") == (obeyed, line)


def test_the_command_exits_with_3_where_they_differ(tmp_path, monkeypatch):
    log, mapping = tmp_path / "log", tmp_path / "m.csv"
    log.write_text("0: n2\n1: n1\n")
    mapping.write_text("# hopmap mapping on mesh:2\nrank,node\n0,1\n1,0\n")
    words = ["check", str(log), str(mapping), "--nodelist"]
    assert invoke([*words, "n[1-2]"]).exit_code == 0
    result = invoke([*words, "n2,n1", "--json"])
    assert result.exit_code == 3
    said = json.loads(result.stdout)
    assert said["elsewhere"][0] == {"rank": 0, "expected": "n1", "found": "n2"}
    assert (said["obeyed"], said["missing"], said["named"]) == (False, [], True)

    monkeypatch.setattr("socket.gethostname", lambda: "n2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    result = invoke(["check", "--live", str(mapping), "--nodelist", "n[1-2]"])
    assert result.exit_code == 3
    assert re.fullmatch(r"rank 1 on n2: \S+m\.csv has it on n1\n", result.stdout)
    for words in (["check", str(mapping)], ["check", "--live", str(log), str(mapping)]):
        assert "expected LOG MAPPING, or --live MAPPING under a launcher" in failed(*words)


def test_a_host_is_the_node_of_the_system_tree_however_deep_its_processes_are(tmp_path):
    """As Score-P writes it with a level for sockets; without a node the lowest level counts."""
    with otf2.writer.open(str(tmp_path / "deep"), timer_resolution=10**9) as archive:
        make = archive.definitions
        machine = make.system_tree_node("cluster", class_name="machine")
        places = [make.system_tree_node("rack", class_name="rack", parent=machine)]
        for host in ("n1", "n2"):
            node = make.system_tree_node(host, class_name="node", parent=machine)
            places.append(make.system_tree_node("socket 0", class_name="socket", parent=node))
        locations = []
        for rank, place in enumerate((places[1], places[2], places[0])):
            group = make.location_group(f"rank {rank}", system_tree_parent=place)
            locations.append(make.location("main", group=group))
        make.group(
            "world",
            group_type=otf2.GroupType.COMM_LOCATIONS,
            paradigm=otf2.Paradigm.MPI,
            members=locations,
        )
    assert read_hosts(tmp_path / "deep") == ("n1", "n2", "rack")
