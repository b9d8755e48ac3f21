"""What is written as TOML is read back the same."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from hopmap.scenarios.results.toml_text import toml_text

texts = st.text(st.characters(exclude_categories=["Cs"]))
plain = texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
values = st.recursive(
    plain, lambda some: st.lists(some, max_size=4) | st.dictionaries(texts, some, max_size=4)
)


@given(st.dictionaries(texts, values, max_size=6))
def test_any_document_comes_back(document):
    assert tomllib.loads(toml_text(document)) == document


def test_none_is_left_out_and_lists_of_tables_have_a_line_for_each():
    document = {"name": "a", "none": None, "many": [{"x": 1, "y": None}, {"x": 2}], "t": {"b": 1}}
    assert toml_text(document) == (
        'name = "a"\nmany = [\n  {x = 1},\n  {x = 2},\n]\n\n[t]\nb = 1\n'
    )
