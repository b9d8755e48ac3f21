"""Parameters by dotted key, on links and model."""

import warnings

import pytest

from hopmap.errors import HopmapError, HopmapWarning
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


def test_of_an_unknown_key_the_nearest_is_named_and_where_all_are_listed():
    for key, near in {"network.bufer": " (did you mean network.buffer?)", "colour": ""}.items():
        with pytest.raises(SettingError) as error:
            configure(mesh((2,)), ((key, 1),))
        said = f"unknown parameter {key!r}{near}: see `hopmap list parameters`"
        assert str(error.value) == said


def test_words_are_passed_on_as_they_are():
    _, parameters = configure(mesh((2,)), parse_settings(["switching=store_and_forward"]))
    assert parameters.switching == "store_and_forward"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["link.bandwidth"], "expected key=value"),
        (["=3"], "expected key=value"),
        (["link.bandwidth="], "expected key=value"),
        (["eager_limit=1", "eager_limit=2"], "eager_limit: repeated"),
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


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("link.bandwidth=-1GB/s", "link.bandwidth -1GB/s: expected more than 0"),
        ("link.latency=-2 us", "link.latency -2 us: expected at least 0"),
        ("overhead.send=-3us", "overhead.send -3us: expected at least 0 s"),
        ("injection.bandwidth=0 GB/s", "injection.bandwidth 0 GB/s: expected more than 0"),
    ],
)
def test_what_is_out_of_range_is_answered_in_the_unit_given(word, message):
    with pytest.raises(HopmapError, match=message):
        check_settings(dict(parse_settings([word])), [mesh((2,))])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("link.bandwidth=10", "link.bandwidth=10: expected a unit, like 10GB/s"),
        ("link.latency=2", "link.latency=2: expected a unit, like 1us"),
        ("overhead.send=1e-6", "overhead.send=1e-6: expected a unit, like 1us"),
        ("gap_per_byte=1e-10", "gap_per_byte=1e-10: expected a unit, like 0.1ns/B"),
        ("eager_limit=8192", "eager_limit=8192: expected a unit, like 8KiB"),
        ("energy.node.idle=100", "energy.node.idle=100: expected a unit, like 100W"),
        ("energy.link.per_byte=5", "energy.link.per_byte=5: expected a unit, like 5pJ/bit"),
    ],
)
def test_a_text_of_a_quantity_must_have_a_unit(word, said):
    with pytest.raises(SettingError) as error:
        check_settings(dict(parse_settings([word])), [mesh((2,))])
    assert str(error.value) == said


def test_plain_numbers_and_zero_need_no_unit():
    words = ["compute.scale=2", "network.buffer=4", "noise.seed=7", "gap=0", "link.latency=0.0"]
    _, parameters = configure(mesh((2,)), parse_settings(words))
    assert (parameters.compute_scale, parameters.network_buffer, parameters.gap) == (2, 4, 0)


@pytest.mark.parametrize(
    ("settings", "means"),
    [
        ({"link.bandwidth": 25}, "so 25 B/s: expected one, like 25GB/s"),
        ({"injection.bandwidth": 100}, "so 100 B/s"),
        ({"link.latency": 2}, "link.latency 2: without a unit, so 2 s: expected one, like 1us"),
    ],
)
def test_a_bare_number_that_nobody_means_is_warned_of(settings, means):
    with pytest.warns(HopmapWarning, match=means):
        check_settings(settings, [mesh((2,))])


@pytest.mark.parametrize(
    "settings",
    [
        {"link.bandwidth": 1e9, "link.latency": 1e-6},
        {"link.bandwidth": "1e9 B/s", "link.latency": "0"},
        {"link.bandwidth": "25 B/s", "link.latency": "2 s", "compute.scale": 100},
    ],
)
def test_numbers_in_si_units_and_units_are_taken_without_a_word(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_settings(settings, [mesh((2,))])
