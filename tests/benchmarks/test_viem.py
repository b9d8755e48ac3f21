"""VieM's tables and figures at their smallest sizes, on smaller graphs of the same kinds."""

import pytest
from viem import NAMES, gains, main, neighbourhoods
from viem_figures import figures


def test_table_2_sparse_and_dense_gains_make_the_same_mappings(compiled, capsys):
    assert gains(largest=256) == [True] * 3
    assert capsys.readouterr().out.count("True") == 3


def test_the_command_of_table_2_ends_where_it_is_told_to(compiled, capsys):
    main(["gains", "--largest", "64"])
    assert capsys.readouterr().out.count("True") == 1


@pytest.mark.slow
def test_table_3_larger_neighbourhoods_gain_more(compiled, capsys):
    """Over all sizes the paper has 3.9, 9.5, 19.1 and 19.7 %, and N_p as N_2."""
    overall = neighbourhoods(largest=128, exponent=11)
    assert tuple(overall) == NAMES
    assert 2 < overall["1"] < overall["2"] < overall["10"] < 25
    assert overall["10"] == pytest.approx(overall["N2"], abs=1.5)
    assert overall["2"] < overall["Np"] <= overall["N2"]
    assert "Figure 2" in capsys.readouterr().out


@pytest.mark.slow
def test_figures_3_and_4_the_machine_in_the_model_is_worth_as_much_as_a_mapper(compiled, capsys):
    """Identity on multisection, or topdown on bisection; and a construction without links."""
    overall = figures([3], 10)
    assert overall["RB Random"] < -30
    assert overall["RB GreedyAllC"] == 0
    assert overall["RB Identity"] + 10 < overall["RMS Identity"]
    assert overall["RB Top-Down"] <= overall["RB Top-Down + N10"]
    assert overall["RMS Identity"] <= overall["RMS Identity + N10"]
    assert capsys.readouterr().out.count("model by") == 3
