"""Presets: what they are, and where their figures are from."""

import numpy as np
import pytest

from hopmap.simulator import KEYS
from hopmap.simulator.parameters.settings import configure
from hopmap.topologies import PRESETS, provenance, topology_from_spec

SMALL = [name for name, preset in PRESETS.items() if "24x" not in preset.spec]


@pytest.mark.parametrize("name", SMALL)
def test_a_preset_is_its_topology_with_its_own_speeds(name):
    preset = PRESETS[name]
    topology = topology_from_spec(f"preset:{name}")
    plain = topology_from_spec(preset.spec)
    assert topology.nodes == plain.nodes
    assert topology.link_to.tolist() == plain.link_to.tolist()
    assert topology.kinds == preset.links
    assert set(topology.link_kind.tolist()) == set(range(len(preset.links)))
    assert set(preset.parameters) <= set(KEYS)


def test_every_field_says_where_it_is_from():
    for preset in PRESETS.values():
        for _, _, source in preset.fields():
            assert any(word in source for word in ("assumed", "https://", "thesis", "RIKEN"))


def test_haec_speeds_are_assumed_wherever_they_are_shown():
    for spec, word in (("preset:haec-box-4x4x4", "assumed"), ("haec:4x4x4", "DEFAULT")):
        assert all(word in kind.provenance for kind in topology_from_spec(spec).kinds)


def test_links_of_a_torus_differ_by_dimension():
    torus = topology_from_spec("preset:bgq")
    moved = (torus.coords[torus.link_from] != torus.coords[torus.link_to]).argmax(axis=1)
    assert ((moved == 4) == (torus.link_kind == 1)).all()
    assert np.bincount(torus.link_kind).tolist() == [8 * 512, 512]


def test_a_rack_of_blue_gene_p_has_six_links_a_node_and_four_ranks():
    rack = topology_from_spec("preset:bgp")
    assert rack.dims == (8, 8, 16)
    assert set(rack.slots.tolist()) == {4}
    assert set(np.bincount(rack.link_from).tolist()) == {6}
    _, parameters = configure(rack, ())
    assert parameters.injection_bandwidth == 6 * rack.kinds[0].bandwidth
    assert parameters.eager_limit == 1200


def test_sizes():
    expected = {"fugaku-tofud": 158976, "tpu-v5p": 8960, "summit-fattree": 3564, "nvl72": 72}
    expected |= {"fugaku": 158976, "slingshot11-frontier": 74 * 512, "k-tofu1": 88128}
    for name, nodes in expected.items():
        assert topology_from_spec(f"preset:{name}").nodes == nodes
    assert topology_from_spec("preset:cray-gemini-hopper").slots.sum() == 6528
    assert topology_from_spec("preset:cray-gemini-hopper*48").slots.max() == 48


def test_parameters_of_a_preset_are_defaults_that_settings_override():
    topology = topology_from_spec("preset:generic-torus*4")
    assert topology.parameters["eager_limit"] == 64000
    assert topology_from_spec("torus:4x4").parameters == {}
    _, parameters = configure(topology, (("packet_size", 1024), ("link.bandwidth", "1 GB/s")))
    assert (parameters.eager_limit, parameters.packet_size) == (64000, 1024)
    assert parameters.injection_bandwidth == 24e9


def test_machines_whose_nodes_have_names_and_whose_interfaces_take_turns():
    for name, nodes, first, last in (
        ("lumi-g", 24 * 124, "nid005000", "nid007975"),
        ("marenostrum5", 7 * 5 * 32, "as01r1b01", "as07r5b32"),
    ):
        topology = topology_from_spec(f"preset:{name}")
        assert (topology.nodes, topology.names[0], topology.names[-1]) == (nodes, first, last)
    assert topology_from_spec("preset:leonardo").nodes == 19 * 180
    for name in ("leonardo", "lumi-g", "marenostrum5"):
        topology = topology_from_spec(f"preset:{name}")
        _, parameters = configure(topology, ())
        assert parameters.nic == "round_robin"
        assert parameters.injection_bandwidth == pytest.approx(25e9, rel=0.02)  # 200 Gbit/s


def test_what_was_measured_says_so():
    preset = PRESETS["fugaku"]
    provenances = {key: provenance(source) for key, _, source in preset.fields()}
    assert provenances["link.bandwidth"] == "measured"
    assert provenances["link.latency"] == "assumed"
    assert provenances["injection.bandwidth"] == "sourced"


def test_a_small_message_to_a_neighbour_on_fugaku_takes_what_was_published():
    figures = {key: value for key, value, _ in PRESETS["fugaku"].fields()}
    parts = ("injection.latency", "link.latency", "ejection.latency")
    assert sum(figures[part] for part in parts) == pytest.approx(0.49e-6)
