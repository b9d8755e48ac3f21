"""How much of the tests runs: all values and examples, or those that find most in little time."""

import pytest
from hypothesis import settings

SHARE = {"of": 6}  # of the examples; 1 where slow tests run as well: tests/conftest.py


def slow(*values: object) -> list:
    """Values of a parameter that only the whole suite takes; others cover their kind."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def examples(most: int, least: int = 16) -> settings:
    """Settings of a test that draws at most and at least so many examples, of any duration."""
    return settings(max_examples=max(most // SHARE["of"], min(most, least)), deadline=None)
