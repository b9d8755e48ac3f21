"""Names of nodes, as hostfiles and Slurm's lists say them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.launchers.node_names import compress, expand, node_names, nodes_named
from hopmap.topologies import MappingError, torus

PAIR = torus((2,))


@pytest.mark.parametrize(
    ("nodelist", "names"),
    [
        ("node1", ["node1"]),
        ("node[01-03],gpu7", ["node01", "node02", "node03", "gpu7"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[1,3-4]-ib", ["n1-ib", "n3-ib", "n4-ib"]),
        ("r[0-1]n[2-3]", ["r0n2", "r0n3", "r1n2", "r1n3"]),
        ("[7-8]", ["7", "8"]),
    ],
)
def test_a_list_of_slurm_stands_for_its_names(nodelist, names):
    assert expand(nodelist) == names


@given(
    st.lists(
        st.from_regex(r"[a-z][a-z0-9-]{0,3}(0|00|09|8|9|99)?[0-9]{0,2}[a-z]?", fullmatch=True),
        min_size=1,
    )
)
def test_names_are_written_as_a_list_and_read_back(names):
    assert expand(",".join(compress(names))) == names


def test_a_run_of_numbers_is_one_item():
    names = [f"node{n:02}" for n in range(98)] + ["node98", "node99", "node100", "node7"]
    assert compress(names) == ["node[00-100]", "node7"]


@pytest.mark.parametrize(
    ("nodelist", "message"),
    [
        ("", "expected a list like node[01-04,7],login"),
        ("n[1-2", "expected a list like"),
        ("n1,,n2", "expected a list like"),
        ("n[2-1]", "range '2-1': expected rising numbers"),
        ("n[a]", "expected a list like"),
        ("n[0-999999999]", "expected rising numbers"),
        ("n[0-9999]m[0-9999]", "more than 262,144 names"),
        ("a/b", "expected a list like"),
    ],
)
def test_what_is_no_list_is_refused(nodelist, message):
    with pytest.raises(MappingError, match=re.escape(message)):
        expand(nodelist)


@pytest.mark.parametrize(
    "text",
    [
        *("a\nb\n", "# nodes\na slots=4\n\nb slots=4\n", "a:2\nb:2\n", "a\na\nb\nb\n"),
        "\ufeffa\r\nb\r\n",
    ],
)
def test_hostfiles_of_several_launchers_name_the_same_nodes(tmp_path, text):
    (tmp_path / "hosts").write_bytes(text.encode())
    assert node_names(PAIR, tmp_path / "hosts") == ["a", "b"]


def test_nodes_without_names_are_numbered():
    assert node_names(PAIR) == ["node0", "node1"]


@pytest.mark.parametrize(
    ("text", "nodelist", "message"),
    [
        ("a\n", None, "1 host names: expected one for each of the 2 nodes of torus:2"),
        (None, "a,b,c", "node list a,b,c: 3 host names"),
        (None, "a,a", "host a is named twice"),
        ("a\n!\n", None, "line 2 is '!': expected a host name"),
        ("a\nb\n", "a,b", "not both"),
    ],
)
def test_there_is_one_name_for_every_node(tmp_path, text, nodelist, message):
    file = None if text is None else tmp_path / "hosts"
    if file is not None:
        file.write_text(text)
    with pytest.raises(MappingError, match=re.escape(message)):
        node_names(PAIR, file, nodelist)


def test_a_file_of_hosts_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(MappingError, match="cannot be read as a list of hosts"):
        node_names(PAIR, tmp_path / "absent")


def test_the_nodes_of_a_job_are_found_by_name_in_any_order(tmp_path):
    ring = replace(torus((4,)), names=("login", "n1", "n2", "n3"))
    assert nodes_named(ring, nodelist="n[2-3],login") == [2, 3, 0]
    file = tmp_path / "hosts"
    file.write_text("n3 slots=4\nn1\nn3\n")
    assert nodes_named(ring, file) == [3, 1]
    assert nodes_named(torus((4,)), nodelist="node[1,3]") == [1, 3]


def test_a_host_that_is_not_in_the_network_is_named_with_those_that_are():
    with pytest.raises(MappingError, match=r"node list n7: host n7: expected .* node0 to node1"):
        nodes_named(PAIR, nodelist="n7")
    with pytest.raises(MappingError, match="not both"):
        nodes_named(PAIR, "hosts", "n7")
