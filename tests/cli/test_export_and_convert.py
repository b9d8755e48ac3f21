"""Mappings for launchers, traces for other simulators, and the header for MPI programs."""

import re

from support.commands import LU, as_json, failed, hopmap, invoke, noted


def test_the_header_for_mpi_programs_is_printed_or_written(tmp_path):
    out = tmp_path / "hopmap_cart.h"
    assert hopmap("header", "--out", out) == f"written: {out}\n"
    assert "int hopmap_cart_create(" in out.read_text()
    assert hopmap("header") == out.read_text()
    assert as_json("header") == {"text": out.read_text()}
    assert as_json("header", "--out", out) == {"out": str(out)}
    assert '#include "' not in out.read_text()  # it needs no other file


def test_the_sources_for_mpi_programs_are_written_into_a_folder(tmp_path):
    folder = tmp_path / "hopmap"
    names = ["hopmap_cart.h", "hopmap_coordinates.h", "hopmapcart.c", "stencil_bench.c"]
    names += ["hopmapcart.pc", "CMakeLists.txt"]
    assert hopmap("header", "--dir", folder) == "".join(f"written: {folder / n}\n" for n in names)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert as_json("header", "--dir", folder) == {"dir": str(folder), "files": names}
    (version,) = re.findall(r"HOPMAP_CART_VERSION (\d+)", (folder / names[0]).read_text())
    said = f"{int(version) // 100}.{int(version) % 100}"
    assert f"\nVersion: {said}\n" in (folder / "hopmapcart.pc").read_text()
    assert f"hopmapcart VERSION {said} " in (folder / "CMakeLists.txt").read_text()
    refused = invoke(["header", "--dir", str(folder), "--out", str(folder / "h")])
    assert refused.exit_code == 2


def test_export_knows_the_topology_from_the_file(mapping, tmp_path):
    assert "rank 2=node3 slot=0" in hopmap("export", mapping, "--to", "openmpi").splitlines()
    out = tmp_path / "rankfile"
    said = hopmap("export", mapping, "--to", "openmpi", "--out", out)
    assert f"mpirun --map-by rankfile:file={out}" in said
    assert out.read_text().count("\nrank ") == 4
    (tmp_path / "hosts").write_text("a\nb\nc\nd\n")
    words = ["export", mapping, "--to", "slurm", "--hosts", tmp_path / "hosts"]
    assert as_json(*words)["text"].endswith("\na\nb\nd\nc\n")


def test_nodes_of_the_machine_and_of_the_job_are_two_options_in_all_commands(tmp_path):
    """--names is of the machine; --nodelist and --hosts are of the job; --out keeps the names."""
    machine, job = ["--names", "nid[10-13]"], ["--nodelist", "nid[11-12]"]
    pairs = tmp_path / "pair.csv"
    pairs.write_text("src,dst,messages,bytes\n0,1,10,4096\n")
    out, hostfile = tmp_path / "m.csv", tmp_path / "hosts"
    said = hopmap("map", pairs, "-t", "torus:4", "-m", "identity", *machine, *job, "--out", out)
    assert "2 ranks on 2 of the 4 nodes of torus:4" in said
    slurm = ["--to", "slurm", "--json"]
    assert as_json("export", out, *slurm)["text"].endswith("\nnid11\nnid12\n")
    assert as_json("export", out, *slurm, *job)["text"].endswith("\nnid11\nnid12\n")
    assert "rank 1 on node 2: expected 0 at most" in failed(
        "export", out, "--to", "slurm", "--nodelist", "nid[10-11]"
    )
    words = ["advise", pairs, "-t", "torus:4", "-m", "identity", *machine, *job]
    hopmap(*words, "--to", "slurm", "--out", hostfile)
    assert hostfile.read_text().endswith("\nnid11\nnid12\n")


def test_any_job_of_a_torus_goes_from_its_list_to_its_launcher(tmp_path):
    """Names that no network knows, as many as it has nodes."""
    out = tmp_path / "m.csv"
    hopmap(
        "map", LU, "-t", "torus:2x2", "-m", "scan", "--nodelist", "gpu[7-8],cn[1-2]", "--out", out
    )
    text = as_json("export", out, "--to", "slurm")["text"]
    assert text.endswith("\ngpu7\ngpu8\ncn2\ncn1\n")


def test_any_command_takes_the_file_of_a_launcher_for_a_mapping(mapping, tmp_path):
    """With names of its own: the comments say which node each stands for."""
    rankfile = tmp_path / "rankfile"
    names = ["--nodelist", "node[08-10],gpu7"]
    hopmap("export", mapping, "--to", "openmpi", *names, "--out", rankfile)
    machine = ["--topology", "mesh:2x2"]
    for command in ("evaluate", "simulate"):
        by_csv, by_rankfile = (as_json(command, LU, m, *machine) for m in (mapping, rankfile))
        clocks = dict.fromkeys(["wall_seconds", "compile_seconds"])
        assert by_csv | clocks == by_rankfile | clocks
    kept = "# nodes: node[08-10],gpu7\nrank,node"
    expected = mapping.read_text().replace("rank,node", kept)
    assert hopmap("export", rankfile, "--to", "csv") == expected


def test_a_mapping_that_is_taken_to_another_network_is_noted_once(mapping, tmp_path):
    """With the result, not with an error; slots and options make no other network."""
    said = (
        f"hopmap: {mapping}: mapping for mesh:2x2, used on mesh:4: "
        "node numbers may mean other nodes"
    )
    bound = ["map", LU, "-m", "bokhari(jumps=0)", "--initial", mapping]
    convert = ["convert", LU, "--to", "simgrid", "--out", tmp_path / "sg", "--mapping", mapping]
    for words in (
        ["export", mapping, "--to", "openmpi"],
        ["export", mapping, "--to", "csv", "--json"],
        ["evaluate", LU, mapping],
        ["simulate", LU, mapping, "--engine", "compiled"],
        ["explain", LU, mapping, "--no-sensitivity"],
        bound,
        convert,
    ):
        assert noted(*words, "-t", "mesh:4") == [said]
        assert noted(*words, "-t", "mesh:2x2*2") == []
    words = map(str, ["simulate", LU, mapping, "-t", "mesh:4", "--engine", "x"])
    assert "mapping on" not in invoke(words).stderr


def test_a_file_that_does_not_show_its_format_or_names_is_told_them(mapping, tmp_path):
    order = tmp_path / "MPICH_RANK_ORDER"
    order.write_text("0,1,3,2\n")
    told = ["--topology", "mesh:2x2", "--to", "csv"]
    assert hopmap("export", order, "--from", "cray", *told) == mapping.read_text()
    hosts = tmp_path / "hosts"
    hosts.write_text("a\nb\nd\nc\n")
    kept = mapping.read_text().replace("rank,node", "# nodes: a,b,c,d\nrank,node")
    assert hopmap("export", hosts, "--nodelist", "a,b,c,d", *told) == kept


def test_export_writes_what_belongs_beside_the_file(mapping, tmp_path):
    said = hopmap("export", mapping, "--to", "simgrid", "--out", tmp_path / "hosts.txt")
    assert f"-platform {tmp_path}/hosts_platform.xml" in said
    assert 'host id="node3"' in (tmp_path / "hosts_platform.xml").read_text()
    facts = as_json("export", mapping, "--to", "json", "--out", tmp_path / "plan.json")
    assert facts["extra_files"] == [str(tmp_path / "plan_mpi4py.py")]
    assert "with_name('plan.json')" in (tmp_path / "plan_mpi4py.py").read_text()


def test_a_text_without_comments_has_its_command_beside_it(mapping, tmp_path):
    """And what --out writes beside the file; text that has comments says it all itself."""
    box = tmp_path / "box.csv"
    hopmap("map", LU, "-t", "mesh:2x2x1", "-m", "sweep", "--out", box)
    use = "hopmap: use it: "
    more = "hopmap: --out FILE also writes FILE_{}, which the launcher needs"
    for to, said in {
        "fugaku": [f"{use}mpiexec -n 4 --vcoordfile FILE ./a.out"],
        "bluegene": [f"{use}runjob --np 4 --ranks-per-node 1 --mapping FILE : ./a.out"],
        "simgrid": [
            more.format("platform.xml"),
            f"{use}smpirun -hostfile FILE -platform FILE_platform.xml ./a.out",
        ],
        "openmpi": [],
        "csv": [],
    }.items():
        assert noted("export", box, "--to", to) == said
        assert noted("export", box, "--to", to, "--json") == said[:-1]
        assert noted("export", box, "--to", to, "--out", tmp_path / "written") == []
    beside, command = noted("export", box, "--to", "json")
    assert beside == more.format("mpi4py.py")
    assert command.startswith(f"{use}from FILE_mpi4py import comm ")


def test_convert_writes_a_schedule_of_goal(tmp_path):
    out = tmp_path / "lu.goal"
    said = hopmap("convert", LU, "--to", "goal", "--out", out, "--set", "gap_per_byte=2ns/B")
    assert "LogGOPSim -f" in said
    assert "--LogGOPS_L=400 --LogGOPS_o=200 --LogGOPS_g=0 --LogGOPS_G=2" in " ".join(said.split())
    assert out.read_text().startswith("num_ranks 4\n")


def test_convert_writes_what_smpirun_needs(mapping, tmp_path):
    out = tmp_path / "simgrid"
    said = hopmap("convert", LU, "--to", "simgrid", "--out", out, "--mapping", mapping)
    assert "smpirun -replay traces.txt -platform platform.xml -hostfile hosts.txt" in said
    names = [f"rank{rank}.tit" for rank in range(4)]
    assert {file.name for file in out.iterdir()} == {
        *("traces.txt", "platform.xml", "hosts.txt"),
        *names,
    }
    assert (out / "traces.txt").read_text().split() == names
    # The traffic of the trace, and the messages of its collectives.
    sends = [
        line
        for name in names
        for line in (out / name).read_text().splitlines()
        if line.split()[1] in ("send", "isend")
    ]
    assert len(sends) >= as_json("info", LU)["messages"]
    assert (out / "hosts.txt").read_text().split() == ["node0", "node1", "node3", "node2"]
    # Again, and with a parameter of the model: replaced as a whole.
    facts = as_json(
        *("convert", "lu.S.4", "--steps", 2, "--to", "simgrid", "--out", out),
        *("--set", "eager_limit=1kB", "--set", "compute.scale=0"),
    )
    assert "--cfg=smpi/async-small-thresh:1000" in facts["command"].split()
    assert {file.name for file in out.iterdir()} == {"traces.txt", *names}
    assert "compute" not in (out / names[0]).read_text()


def test_convert_places_ranks_on_hosts_of_its_platform_whatever_their_names(tmp_path):
    network, mapping, out = tmp_path / "t.conf", tmp_path / "mapping.csv", tmp_path / "simgrid"
    network.write_text("SwitchName=s Nodes=größe[7-9],login\n", encoding="utf-8")
    mapping.write_text("rank,node\n0,3\n1,0\n2,1\n3,2\n")
    words = ("--mapping", mapping, "--topology", f"file:{network}", "--out", out)
    hopmap("convert", LU, "--to", "simgrid", *words)
    platform = re.findall(r'<host id="(.*?)"', (out / "platform.xml").read_text())
    assert (out / "hosts.txt").read_text().split() == [platform[node] for node in (3, 0, 1, 2)]
