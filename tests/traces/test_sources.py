"""What the word for a trace means where a benchmark and a file might both be meant."""

import warnings

import pytest

from hopmap.errors import HopmapWarning
from hopmap.traces.sources import open_source


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_that_is_called_like_a_benchmark_is_taken_and_warned_of(here):
    (here / "lu.S.4").mkdir()
    with pytest.warns(HopmapWarning, match=r"lu\.S\.4: what lies here is taken, not the bench"):
        assert open_source("lu.S.4").kind == "archive"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source("./lu.S.4").kind == "archive"
        assert open_source("lu.S.4", here).kind == "archive"  # as a scenario beside it says


@pytest.mark.parametrize("beside", ["lu.S.4.otf2", "lu.S.4.npz", "LU.S.4"])
def test_a_benchmark_that_is_generated_beside_a_file_of_nearly_its_name_is_warned_of(here, beside):
    (here / beside).mkdir()
    with pytest.warns(HopmapWarning, match=rf"lu\.S\.4: generated, .*; {beside} is another"):
        assert open_source("lu.S.4").kind == "benchmark"


def test_a_benchmark_is_generated_without_a_word_where_nothing_is_alike(here):
    (here / "lu.S.40.npz").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source("lu.S.4").kind == "benchmark"
