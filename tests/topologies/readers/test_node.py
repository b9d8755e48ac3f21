"""What a node has: cores and GPUs of its NUMA domains."""

import re

import pytest

from hopmap.topologies import TopologyError
from hopmap.topologies.readers.node import read_node
from support import about

# As lstopo writes a node of two packages, one and two GPUs at them, and slow memory for both.
HWLOC = """<?xml version="1.0"?><topology version="2.0">
<object type="Machine" cpuset="0x0000000f,,0x0000000f">
 <object type="NUMANode" os_index="4" cpuset="0x0000000f,,0x0000000f"/>
 <object type="Package" cpuset="0x0000000f">
  <object type="NUMANode" os_index="0" cpuset="0x0000000f"/>
  <object type="Core" cpuset="0x00000003"><object type="PU" cpuset="0x1"/></object>
  <object type="Core" cpuset="0x0000000c"/>
  <object type="Bridge"><object type="PCIDev" pci_busid="0000:01:00.0"
   pci_type="0300 [1a03:2000] [1a03:2000] 41"/>
   <object type="PCIDev" pci_busid="0000:e1:00.0" pci_type="0380 [1002:7408] [1002:0b0c] 01"/>
  </object>
 </object>
 <object type="Package" cpuset="0x0000000f,,0x0">
  <object type="NUMANode" os_index="1" cpuset="0x0000000f,,0x0"/>
  <object type="NUMANode" os_index="2" cpuset="0x0000000f,,0x0" subtype="HBM"/>
  <object type="Core" cpuset="0x00000003,,0x0"/><object type="Core" cpuset="0x0000000c,,0x0"/>
  <object type="Bridge">
   <object type="PCIDev" pci_busid="0000:83:00.0" pci_type="0300 [10de:2204] a1">
    <object type="OSDev" name="cuda1" osdev_type="5"/></object>
   <object type="PCIDev" pci_busid="0000:81:00.0" pci_type="0302 [10de:20b0] [10de:1463] a1"/>
   <object type="PCIDev" pci_busid="0000:82:00.0" pci_type="0207 [15b3:101b]"/>
  </object>
 </object>
 <object type="NUMANode" os_index="3" cpuset="0x0"/>
</object></topology>"""


def domains(node):
    return [(domain.cores, domain.gpus) for domain in read_node(node)]


def test_the_short_form_shares_gpus_out_evenly():
    assert domains("numa=2x3") == [((0, 1, 2), ()), ((3, 4, 5), ())]
    assert [gpus for _, gpus in domains("numa=4x1,gpu=4")] == [(0,), (1,), (2,), (3,)]
    assert [gpus for _, gpus in domains("numa=2x1,gpu=4")] == [(0, 1), (2, 3)]
    assert [gpus for _, gpus in domains("numa=4x1,gpu=2")] == [(0,), (), (1,), ()]


def test_hwloc_says_cores_and_gpus_of_the_domains(tmp_path):
    """Memory of two kinds is one domain, memory without cores none, a console's display no GPU."""
    (tmp_path / "node.xml").write_text(HWLOC)
    assert domains(tmp_path / "node.xml") == [((0, 1), (2,)), ((2, 3), (0, 1))]


def test_gpus_as_near_to_several_domains_are_shared_out(tmp_path):
    """And version 1 of hwloc puts cores into the node of their memory."""
    pci = '<object type="PCIDev" pci_busid="0:{}:0" pci_type="0302 [10de:1]"/>'
    core = '<object type="NUMANode" cpuset="{0}"><object type="Core" cpuset="{0}"/></object>'
    (tmp_path / "node.xml").write_text(
        '<topology><object type="Machine" cpuset="0x3">'
        f"{core.format('0x1')}{core.format('0x2')}{pci.format(1)}{pci.format(2)}"
        "</object></topology>"
    )
    assert domains(tmp_path / "node.xml") == [((0,), (0,)), ((1,), (1,))]


def test_a_node_without_numa_is_one_domain(tmp_path):
    (tmp_path / "node.xml").write_text(
        '<topology><object type="Machine" cpuset="0x3"><object type="Core" cpuset="0x1"/>'
        '<object type="Core" cpuset="0x2"/></object></topology>'
    )
    assert domains(tmp_path / "node.xml") == [((0, 1), ())]


def test_what_is_no_node_is_answered_in_one_line(tmp_path):
    form = "expected lstopo's XML file or NCCL's, or numa=DOMAINSxCORES,gpu=GPUS"
    (tmp_path / "graph.xml").write_text("<graphml/>")
    (tmp_path / "empty.xml").write_text("<topology/>")
    (tmp_path / "odd.xml").write_text(
        '<topology><object type="Core" cpuset="many"/><object type="Core" cpuset="1"/></topology>'
    )
    (tmp_path / "text.xml").write_text("numa=4x16")
    for node, message in [
        ("numa=4", f"node numa=4: {form}"),
        ("numa=0x4", f"node numa=0x4: {form}"),
        ("numa=9999x99999", "expected at most 65536 cores"),
        ("no.xml", f"node no.xml: {form}"),
        (tmp_path / "graph.xml", "graph.xml: root element 'graphml': expected topology"),
        (tmp_path / "empty.xml", "empty.xml: no objects of type Core"),
        (tmp_path / "odd.xml", "odd.xml: cpuset 'many': expected a bitmap like 0x0000000f"),
        (tmp_path / "text.xml", "text.xml: cannot be read as XML"),
    ]:
        with about(node), pytest.raises(TopologyError, match=re.escape(message)) as error:
            read_node(node)
        assert "\n" not in str(error.value)


# As NCCL writes a node of two packages, with two GPUs at the first and one at the second.
NCCL = """<system version="1">
  <cpu host_hash="0x5" numaid="1" affinity="ffff0000" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:c7:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="80" rank="2" gdr="1"><nvlink target="0000:a7:00.0" count="4"/></gpu></pci>
  </cpu>
  <cpu host_hash="0x5" numaid="0" affinity="00000001,0000ffff" arch="x86_64">
    <pci busid="0000:00:00.0" class="0x060400">
      <pci busid="0000:07:00.0" class="0x030200"><gpu dev="1" sm="80"/></pci>
      <pci busid="0000:0a:00.0" class="0x030200"><gpu dev="0" sm="80"/></pci>
      <nic><net name="mlx5_0" dev="0" speed="200000" port="1"/></nic></pci>
  </cpu>
</system>"""


def test_nccls_file_has_the_threads_and_gpus_of_domains(tmp_path):
    (tmp_path / "nccl.xml").write_text(NCCL)
    assert domains(tmp_path / "nccl.xml") == [
        ((*range(16), 32), (0, 1)),
        (tuple(range(16, 32)), (2,)),
    ]


def test_damaged_files_of_nccl_are_one_line(tmp_path):
    file = tmp_path / "nccl.xml"
    for old, new, said in (
        ('numaid="0"', 'numaid="1"', "cpu 1: expected each once, with an affinity"),
        ('numaid="0"', 'numaid="-1"', "cpu numaid='-1': expected a whole number"),
        ('affinity="ffff0000"', 'affinity="0"', "cpu 1: expected each once, with an affinity"),
        (
            'affinity="ffff0000"',
            'affinity="0xffff"',
            "cpuset '0xffff': expected a bitmap like 0000000f",
        ),
        ('dev="2"', "", "gpu dev='': expected a whole number"),
        ("cpu", "cup", "no cpu in the system"),
        ("</system>", "", "cannot be read as XML"),
    ):
        file.write_text(NCCL.replace(old, new))
        with about(old, new), pytest.raises(TopologyError, match=re.escape(said)):
            read_node(file)
