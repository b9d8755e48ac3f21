"""Mappings for launchers, traces for other simulators, and the header for MPI programs."""

import json
import re

from support import about
from support.commands import LU, as_json, failed, hopmap, invoke, noted


def test_the_header_for_mpi_programs_is_printed_or_written(tmp_path):
    out = tmp_path / "hopmap_cart.h"
    assert hopmap("header", "--out", out) == f"written: {out}\n"
    assert "int hopmap_cart_create(" in out.read_text()
    assert hopmap("header") == out.read_text()
    assert as_json("header") == {"text": out.read_text()}
    assert as_json("header", "--out", out, "--force") == {"out": str(out)}
    assert '#include "' not in out.read_text()  # it needs no other file


def test_the_sources_for_mpi_programs_are_written_into_a_folder(tmp_path):
    folder = tmp_path / "hopmap"
    names = ["hopmap_cart.h", "hopmap_coordinates.h", "hopmapcart.c", "stencil_bench.c"]
    names += ["hopmapcart.pc", "CMakeLists.txt"]
    assert hopmap("header", "--dir", folder) == "".join(f"written: {folder / n}\n" for n in names)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert as_json("header", "--dir", folder, "--force") == {"dir": str(folder), "files": names}
    (version,) = re.findall(r"HOPMAP_CART_VERSION (\d+)", (folder / names[0]).read_text())
    said = f"{int(version) // 100}.{int(version) % 100}"
    assert f"\nVersion: {said}\n" in (folder / "hopmapcart.pc").read_text()
    assert f"hopmapcart VERSION {said} " in (folder / "CMakeLists.txt").read_text()
    refused = invoke(["header", "--dir", str(folder), "--out", str(tmp_path / "h"), "--force"])
    assert refused.exit_code == 2


def test_export_knows_the_topology_from_the_file(mapping, tmp_path):
    said = invoke(["export", mapping, "--to", "openmpi"])
    assert "rank 2=node3 slot=0" in said.stdout.splitlines()
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
    assert "rank 1 on node 2: this node is down or not the job's" in failed(
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
    convert.append("--force")
    for words in (
        ["export", mapping, "--to", "cray"],
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
        "intel": [],
        "csv": [],
    }.items():
        assert noted("export", box, "--to", to) == said
        assert noted("export", box, "--to", to, "--json") == said[:-1]
        assert noted("export", box, "--to", to, "--out", tmp_path / f"{to}.txt") == []
    beside, command = noted("export", box, "--to", "json")
    assert beside == more.format("mpi4py.py")
    assert command.startswith(f"{use}from FILE_mpi4py import comm ")


def test_slurms_own_words_are_said_where_an_option_gives_the_mapping(tmp_path):
    """With the file and with its text, as JSON; the order of names, empty nodes and threads."""
    box, out = tmp_path / "box.csv", tmp_path / "hosts"
    slurm = ("export", box, "--to", "slurm")
    for nodes, more, expected in [
        (
            "0101",
            [],
            "this is -m cyclic; no hostfile is needed: srun --nodes=2 --ntasks=4 -m cyclic",
        ),
        ("0011", [], "srun --nodes=2 --ntasks=4 --ntasks-per-node=2 -m block ./a.out"),
        ("001101", [], "this is -m plane=2 if nodes have as many CPUs as slots; no hostfile is"),
        ("00110011", [], "srun --nodes=2 --ntasks=8 -m plane=2 ./a.out"),
        ("000011", [], "srun --nodes=2 --ntasks=6 --ntasks-per-node=4 -m block,Pack ./a.out"),
        (
            "00011",
            [],
            "this is -m block,NoPack; no hostfile is needed: srun --nodes=2 --ntasks=5 -m",
        ),
        ("0110", [], "no distribution option gives this; use the hostfile"),
        ("1010", ["--nodelist", "n[10,9]"], "this is -m cyclic; "),
        ("0101", ["--nodelist", "n[10,9]"], "no distribution option gives this"),
        (
            "0011",
            ["--threads", "8"],
            "OMP_NUM_THREADS=8 srun --nodes=2 --ntasks=4 --ntasks-per-node",
        ),
        ("0011", ["--threads", "8"], "--cpus-per-task=8 -m block ./a.out"),
        ("00", [], "srun --nodes=1 --nodelist=node0 --ntasks=2 --ntasks-per-node=2 -m block"),
    ]:
        slots = 3 if nodes == "001101" else 4
        rows = "\n".join(f"{rank},{node}" for rank, node in enumerate(nodes))
        box.write_text(f"# hopmap mapping on mesh:2*{slots}\nrank,node\n{rows}\n")
        with about(nodes, more):
            (said,) = noted(*slurm, *more)
            assert expected in said
            assert f"note:    {said.removeprefix('hopmap: ')}\n" in hopmap(
                *slurm, *more, "--out", out, "--force"
            )
            assert as_json(*slurm, *more)["notes"] == [said.removeprefix("hopmap: ")]


def test_names_that_no_launcher_knows_are_called_placeholders_with_and_without_a_file(tmp_path):
    box = tmp_path / "box.csv"
    box.write_text("# hopmap mapping on mesh:2*2\nrank,node\n0,1\n1,0\n2,1\n")
    line = "nodes node0 to node1 are placeholders: give yours with --nodelist, --hosts or --names"
    for to, in_file in (("slurm", True), ("flux", False)):
        result = invoke(["export", str(box), "--to", to])
        assert (f"hopmap: {line}\n" in result.stderr) != in_file
        assert (f"# {line}\n" in result.stdout) == in_file
        named = invoke(["export", str(box), "--to", to, "--nodelist", "n[1-2]"])
        assert "placeholders" not in named.output


def test_a_rankfile_says_its_cores_and_takes_numa_domains_and_threads(tmp_path):
    box, out = tmp_path / "box.csv", tmp_path / "rankfile"
    box.write_text("# hopmap mapping on mesh:2*4\nrank,node\n0,0\n1,1\n2,0\n3,1\n")
    words = ("export", box, "--to", "openmpi", "--out", out, "--force")
    said = hopmap(*words)
    assert "\nnote:    ranks are bound to cores 0 to 1 in order: give --node FILE.xml " in said
    assert said.endswith(
        "\nnote:    this is --map-by node, if mpirun may choose the cores: "
        "mpirun -n 4 --map-by node ./a.out\n"
        "nodes:   node0 to node1 are placeholders: give yours with --nodelist, --hosts or --names\n"
    )
    said = hopmap(*words, "--threads", 3)
    assert "rank 2=node0 slot=3-5\n" in out.read_text()
    assert f"use it:  mpirun -x OMP_NUM_THREADS=3 --map-by rankfile:file={out} ./a.out " in said
    assert "ranks are bound to cores 0 to 5 in order" in said
    assert "mpirun -x OMP_NUM_THREADS=3 -n 4 --map-by node:PE=3 ./a.out" in said
    said = hopmap(*words, "--threads", 4, "--node", "numa=4x16,gpu=2")
    assert out.read_text().endswith(
        "rank 0=node0 slot=0-3 # NUMA domain 0, GPU 0\n"
        "rank 1=node1 slot=0-3 # NUMA domain 0, GPU 0\n"
        "rank 2=node0 slot=32-35 # NUMA domain 2, GPU 1\n"
        "rank 3=node1 slot=32-35 # NUMA domain 2, GPU 1\n"
    )
    assert "use 2 of 4 NUMA domains; each line names the domain and the nearest GPU\n" in said
    spans = as_json(*words, "--threads", 24, "--node", "numa=4x16")["notes"][0]
    assert spans == "ranks span NUMA domains: the domains have too few cores for their threads"
    assert "slot=24-47\n" in out.read_text()
    assert hopmap("export", out, "--to", "csv") == box.read_text()
    box.write_text("# hopmap mapping on mesh:2*4\nrank,node\n0,1\n1,0\n")
    slurms = as_json("export", box, "--to", "slurm", "--nodelist", "n[10,9]")["notes"]
    assert slurms[0].startswith("this is -m block; ")  # but a file of hosts may have another order
    assert len(as_json(*words, "--nodelist", "n[10,9]")["notes"]) == 1
    box.write_text("# hopmap mapping on mesh:2*4\nrank,node\n0,0\n1,0\n")  # a node is empty
    assert len(as_json(*words)["notes"]) == 1


def test_every_launcher_that_documents_threads_says_them(tmp_path):
    box = tmp_path / "box.csv"
    box.write_text("# hopmap mapping on mesh:2x1x1*2\nrank,node\n0,0\n1,0\n2,1\n3,1\n")
    for to, words in {
        "openmpi": "mpirun -x OMP_NUM_THREADS=4 --map-by rankfile:file=FILE ./a.out",
        "slurm": "OMP_NUM_THREADS=4 SLURM_HOSTFILE=FILE srun --ntasks=4 --cpus-per-task=4 ",
        "cray": "--cpus-per-task=4 --distribution=block ./a.out",
        "pals": "mpiexec -n 4 --ppn 2 --depth 4 --cpu-bind depth --hostfile FILE_hosts.txt ",
        "flux": "flux run --nodes=2 --ntasks=4 --cores-per-task=4 --env=OMP_NUM_THREADS=4 ",
        "jsrun": "OMP_NUM_THREADS=4 jsrun --erf_input FILE ./a.out",
        "prrte": "mpirun -np 4 -x OMP_NUM_THREADS=4 --hostfile FILE --map-by seq --bind-to none ",
        "likwid": "-np 4 -nperdomain N:2 -t 4 ./a.out",
        "intel": "-genv OMP_NUM_THREADS 4 -genv I_MPI_PIN_DOMAIN omp ./a.out   (MPICH: mpiexec -f "
        "FILE -bind-to core:4 ...)",
        "fugaku": "OMP_NUM_THREADS=4 mpiexec -n 4 --vcoordfile FILE ./a.out",
        "bluegene": "runjob --np 4 --ranks-per-node 2 --envs OMP_NUM_THREADS=4 --mapping FILE",
        "torchrun": "OMP_NUM_THREADS=4 torchrun --nnodes=2 --nproc-per-node=2 ",
    }.items():
        result = invoke(["export", str(box), "--to", to, "--threads", "4", "--json"])
        assert words in json.loads(result.stdout)["command"], to
    for to in ("csv", "json", "simgrid", "mpijob"):
        said = failed("export", box, "--to", to, "--threads", 4)
        assert f"threads: {to} starts none: expected one of openmpi, slurm, cray, intel, f" in said
    assert "node: slurm binds no ranks to cores: expected openmpi" in failed(
        "export", box, "--to", "slurm", "--node", "numa=1x4"
    )


def test_advice_for_a_launcher_takes_the_same_options(tmp_path):
    out = tmp_path / "rankfile"
    words = ("advise", LU, "-t", "mesh:2*2", "-m", "identity", "--samples", 6)
    rankfile = ("--to", "openmpi", "--out", out, "--node", "numa=2x4", "--threads", 2)
    said = hopmap(*words, *rankfile)
    assert "note:    ranks of a node use 2 of 2 NUMA domains; each line names" in said
    assert "slot=4-5 # NUMA domain 1\n" in out.read_text()
    assert as_json(*words, "--to", "slurm", "--out", out, "--force")["notes"][0].startswith(
        "this is -m block;"
    )
    assert "--node requires --to" in failed(*words, "--node", "numa=2x4")
    assert "node numa=2: expected lstopo's" in failed(
        *words, "--to", "openmpi", "--out", tmp_path / "new", "--node", "numa=2"
    )


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
        *("convert", "lu.S.4", "--steps", 2, "--to", "simgrid", "--out", out, "--force"),
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
