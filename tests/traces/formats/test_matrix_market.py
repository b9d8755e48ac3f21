"""MatrixMarket files: read as scipy reads them, and refused where they are damaged."""

import warnings

import numpy as np
import pytest
from scipy import io, sparse

from hopmap.traces import TraceError, load_traffic
from hopmap.traces.formats.matrix_market import read_matrix_market
from support import about

HEAD = "%%MatrixMarket matrix coordinate integer general\n"


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def test_all_kinds_are_read_as_by_scipy(tmp_path):
    for layout in [sparse.coo_array, np.asarray]:
        for kind in [np.int64, np.float64, np.complex128]:
            for symmetry in ["general", "symmetric", "skew-symmetric"]:
                with about(layout, kind, symmetry):
                    values = np.random.default_rng(0).integers(-9, 9, (7, 7)).astype(kind)
                    values *= 1j if kind is np.complex128 else 1
                    mirrored = {"general": 0, "symmetric": values.T, "skew-symmetric": -values.T}
                    file = tmp_path / "a.mtx"
                    io.mmwrite(file, layout(values + mirrored[symmetry]), symmetry=symmetry)
                    found, expected = dense(read_matrix_market(file)), dense(io.mmread(file))
                    assert np.array_equal(found, expected)
                    assert found.dtype == expected.dtype


def test_entries_of_a_pattern_are_ones_and_hermitian_ones_are_conjugated(tmp_path):
    file = tmp_path / "a.mtx"
    file.write_text("%%MatrixMarket matrix coordinate pattern general\n% of one\n\n2 2 1\n2 1\n")
    assert dense(read_matrix_market(file)).tolist() == [[0, 0], [1, 0]]
    file.write_text("%%MatrixMarket MATRIX Coordinate complex Hermitian\n2 2 1\n2 1 3 4\n")
    assert dense(read_matrix_market(file)).tolist() == [[0, 3 - 4j], [3 + 4j, 0]]
    file.write_text("%%MatrixMarket matrix coordinate integer general\n3 3 0\n")
    assert read_matrix_market(file).nnz == 0


def test_numbers_beyond_all_bounds_are_infinite_without_a_word(tmp_path):
    file = tmp_path / "m.mtx"
    file.write_text(f"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 5 {'9' * 400}\n")
    with np.errstate(all="raise"):
        (value,) = read_matrix_market(file).data
    assert (value.real, value.imag) == (5, np.inf)


def test_damage_is_named(tmp_path):
    for text, words in [
        (HEAD + "2 2 1\n1 2", "requires 3 columns but 2 were found"),  # scipy's reader may crash
        (HEAD + "2 2 1\n3 1 7\n", "entry 1: row 3: expected 1..2"),
        (HEAD + "2 2 1\n1 0 7\n", "entry 1: column 0: expected 1..2"),
        (HEAD + "2 2 1\n-9223372036854775808 1 7\n", "entry 1: row -9223372036854775808"),
        (HEAD + "2 2 1\n1 1 1\n1 2 1\n", "2 entries: expected 1"),
        (HEAD + "2 2 0\n1 1 1\n", "1 entries: expected 0"),
        (HEAD + "1 1 1\n", "0 entries: expected 1"),  # numpy would warn of it
        (HEAD + "2 2 1\n1 1 x\n", "could not convert string 'x'"),
        (HEAD + "2 2 1\n1 1 9999999999999999999\n", "could not convert"),
        # scipy's reader takes these for 7, and for an entry without the rest.
        (HEAD + "2 2 1\n1 1 7.9\n", "could not convert string '7.9'"),
        (HEAD + "2 2 1\n1 1 7e3\n", "could not convert string '7e3'"),
        (HEAD + "2 2 1\n1 1 7 8\n", "requires 3 columns but 4 were found"),
        (HEAD.replace("integer", "real") + "2 2 1\n1 1 1.5D3\n", "could not convert string"),
        (HEAD + "9 9 4000000000\n1 1 1\n", "cannot hold the 4000000000 entries"),
        (HEAD + "4000000000 4000000000 1\n1 1 1\n", "4000000000 ranks: expected 0 to 16777216"),
        (HEAD + "2 1\n1 1 1\n", "expected rows, columns, entries"),
        (HEAD + "9" * 30 + " 2 1\n1 1 1\n", "expected rows, columns, entries"),
        (HEAD.replace("general", "symmetric") + "2 3 1\n1 1 1\n", "expected a square matrix"),
        (
            HEAD.replace("integer", "rational") + "2 2 1\n1 1 1\n",
            "'%%matrixmarket matrix coordinate rational general': expected",
        ),
        (HEAD.replace("coordinate", "array") + "100000 100000\n1\n", "cannot hold the 10000000000"),
        ("", "expected %%MatrixMarket matrix, then coordinate|array"),
        ("\x00\n", "expected %%MatrixMarket matrix"),
    ]:
        with about(text, words):
            file = tmp_path / "a.mtx"
            file.write_text(text)
            with pytest.raises(TraceError) as caught, warnings.catch_warnings():
                warnings.simplefilter("error")
                load_traffic(file)
            assert words in str(caught.value)
            assert "a.mtx" in str(caught.value)
