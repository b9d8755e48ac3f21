"""Parameters are checked when they are made, and named by dotted keys."""

from __future__ import annotations

import math

import pytest

from hopmap.simulator import KEYS, ParameterError, Parameters, parameters_from


def test_defaults_are_valid_and_equal():
    assert parameters_from({}) == Parameters()


def test_dotted_keys_reach_their_fields():
    parameters = parameters_from(
        {
            "overhead.send": 1e-6,
            "injection.bandwidth": 5e9,
            "eager_limit": 4096.0,
            "compute.scale": 0,
            "switching": "store_and_forward",
            "collective.bcast": "linear",
        }
    )
    assert parameters.overhead_send == 1e-6
    assert parameters.injection_bandwidth == 5e9
    assert parameters.eager_limit == 4096
    assert isinstance(parameters.eager_limit, int)
    assert parameters.compute_scale == 0
    assert parameters.switching == "store_and_forward"
    assert parameters.algorithms == {"bcast": "linear"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("injection.bandwidth", 0, "injection.bandwidth 0: expected more than 0 bytes/s"),
        ("ejection.bandwidth", -1.0, "ejection.bandwidth -1.0: expected more than 0 bytes/s"),
        ("memory.latency", -1e-9, "memory.latency -1e-09: expected at least 0 s"),
        ("packet_size", 0, "packet_size 0: expected at least 1 bytes"),
        ("packet_size", 8.5, "packet_size 8.5: expected a whole number of bytes"),
        ("eager_limit", -1, "eager_limit -1: expected at least 0 bytes"),
        ("compute.scale", -1, "compute.scale -1: expected at least 0"),
        ("overhead.send", math.nan, "overhead.send nan: expected a finite number (s)"),
        ("overhead.recv", math.inf, "overhead.recv inf: expected a finite number (s)"),
        ("flow.bandwidth_factor", 0, "flow.bandwidth_factor 0: expected more than 0"),
        ("flow.cross_traffic", 0.5, "flow.cross_traffic 0.5: expected at least 1"),
        ("gap_per_byte", -1, "gap_per_byte -1: expected at least 0 s/byte"),
        ("compute.scale", "much", "compute.scale 'much': expected a finite number (1)"),
        ("switching", "wormhole", "switching 'wormhole': expected one of cut_through, store_and_"),
        ("collective.bcast", "ring", "collective.bcast 'ring': expected one of openmpi, binomial"),
        ("noise.compute", 3, "noise.compute 3: expected at most 2"),
        ("noise.start", -1, "noise.start -1: expected at least 0 s"),
        ("noise.seed", 1.5, "noise.seed 1.5: expected a whole number"),
        ("noise.seed", 2**32, "noise.seed 4294967296: expected at most 4294967295"),
        (
            "network.virtual_channels",
            2**15,
            "network.virtual_channels 32768: expected at most 32767",
        ),
        ("network.buffer", 2**31, "network.buffer 2147483648: expected at most 2147483647"),
        ("noise.distribution", "normal", "noise.distribution 'normal' (did you mean lognormal?)"),
        ("packet.size", 1, "unknown parameter 'packet.size' (did you mean packet_size?)"),
        ("link.colour", 1, "unknown parameter 'link.colour': expected one of overhead.send"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(key, value, expected):
    with pytest.raises(ParameterError) as error:
        parameters_from({key: value})
    assert str(error.value).startswith(expected)
    assert "\n" not in str(error.value)


def test_fields_are_checked_too():
    with pytest.raises(ParameterError, match=r"packet_size 0"):
        Parameters(packet_size=0)
    with pytest.raises(ParameterError, match=r"unknown collective 'broadcast'"):
        Parameters(algorithms={"broadcast": "linear"})


def test_every_number_has_a_unit_and_every_word_its_choices():
    for key in KEYS.values():
        assert (key.unit in {"s", "bytes", "bytes/s", "s/byte", "J/byte", "W", "1"}) != bool(
            key.choices
        )
