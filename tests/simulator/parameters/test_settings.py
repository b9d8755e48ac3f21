"""Parameters by dotted key, on links and model."""

import pytest

from hopmap.simulator.parameters.settings import (
    SettingError,
    check_settings,
    configure,
    known_keys,
    parse_settings,
)
from hopmap.topologies import haec, mesh, topology_from_spec


def speeds(topology):
    return {kind.name: (kind.bandwidth, kind.latency) for kind in topology.kinds}


def test_link_settings_go_to_the_topology_and_the_others_to_the_model():
    settings = parse_settings(["link.bandwidth=2GB/s", "eager_limit = 8 KiB"])
    topology, parameters = configure(mesh((2, 2)), settings)
    assert speeds(topology) == {"link": (2e9, 100e-9)}
    assert parameters.eager_limit == 8192


@pytest.mark.parametrize("turn", [1, -1])
def test_one_kind_of_link_wins_over_all_links_in_any_order(turn):
    settings = parse_settings(["link.optical.bandwidth=5GB/s", "link.bandwidth=1GB/s"][::turn])
    topology, _ = configure(haec((2, 2, 2)), settings)
    assert [bandwidth for bandwidth, _ in speeds(topology).values()] == [5e9, 1e9]


def test_a_kind_that_is_not_there_is_left_out_of_a_sweep_but_refused_alone():
    settings = parse_settings(["link.wireless.bandwidth=1GB/s"])
    topology, _ = configure(mesh((2, 2)), settings)
    assert speeds(topology) == speeds(mesh((2, 2)))
    check_settings(dict(settings), [mesh((2, 2)), haec((2, 2, 2))])
    with pytest.raises(SettingError, match=r"unknown parameter 'link.wireless.bandwidth'"):
        check_settings(dict(settings), [mesh((2, 2))])


def test_energy_is_of_the_model_and_of_kinds_that_are_there():
    words = ["energy.link.wireless.per_byte=5 pJ/bit", "energy.link.static=1 W"]
    settings = parse_settings([*words, "energy.node.compute=0.1 kW"])
    _, parameters = configure(haec((2, 2, 2)), settings)
    assert parameters.energy == {
        "link.wireless.per_byte": pytest.approx(40e-12),
        "link.static": 1.0,
        "node.compute": 100.0,
    }
    _, parameters = configure(mesh((2, 2)), settings)
    assert set(parameters.energy) == {"link.static", "node.compute"}
    with pytest.raises(SettingError, match=r"unknown parameter 'energy.link.wireless.per_byte'"):
        check_settings(dict(settings), [mesh((2, 2))])


def test_words_are_passed_on_as_they_are():
    _, parameters = configure(mesh((2,)), parse_settings(["switching=store_and_forward"]))
    assert parameters.switching == "store_and_forward"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["link.bandwidth"], "expected key=value"),
        (["=3"], "expected key=value"),
        (["link.bandwidth="], "expected key=value"),
        (["eager_limit=1", "eager_limit=2"], "eager_limit: given twice"),
    ],
)
def test_settings_are_key_equals_value(words, message):
    with pytest.raises(SettingError, match=message):
        parse_settings(words)


def test_every_known_key_is_understood():
    for key in known_keys([haec((2, 2, 2))]):
        with pytest.raises(ValueError, match=r"expected") as error:
            configure(haec((2, 2, 2)), ((key, "nonsense"),))
        assert key in str(error.value)


def test_a_file_nested_too_deep_is_one_line(tmp_path):
    file = tmp_path / "fit.toml"
    file.write_text(f"parameters = {'[' * 20_000}")
    with pytest.raises(SettingError, match="cannot be read as TOML"):
        parse_settings([str(file)])


def test_an_interface_of_tofud_is_as_fast_as_a_link_unless_it_is_set():
    network = topology_from_spec("tofud:job=2x2x2")
    for given, injection in (
        ({}, 6.8e9),
        ({"link.bandwidth": 6e9}, 6e9),
        ({"link.bandwidth": 6e9, "injection.bandwidth": 5e9}, 5e9),
    ):
        assert configure(network, tuple(given.items()))[1].injection_bandwidth == injection
