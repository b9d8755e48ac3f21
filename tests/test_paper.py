"""The paper: its form, its references, and that its figures are what its script and pages say."""

import re
import sys

import pytest

from support import ROOT

PAPER = ROOT / "paper"
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")
_, HEAD, BODY = TEXT.split("---\n", 2)


def test_it_has_the_head_sections_and_length_that_joss_asks_for():
    yaml = pytest.importorskip("yaml", reason="needs the extra slurm")
    head = yaml.safe_load(HEAD)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= head.keys()
    assert {one["affiliation"] for one in head["authors"]} <= {
        one["index"] for one in head["affiliations"]
    }
    sections = re.findall(r"^# (.*)$", BODY, flags=re.MULTILINE)
    assert sections[:3] == ["Summary", "Statement of need", "State of the field"]
    assert sections[-1] == "References"
    assert 750 <= len(BODY.split()) <= 1750


def test_every_reference_is_cited_and_every_citation_there():
    name = re.search(r"^bibliography: (.*)$", HEAD, flags=re.MULTILINE)[1]
    library = (PAPER / name).read_text(encoding="utf-8")
    entries = re.findall(r"^@\w+\{(\w+),", library, flags=re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"\[@(\w+)\]", BODY)) == set(entries)


def test_figures_that_it_quotes_stand_on_the_page_of_evidence():
    """The page has every percentage, ratio and count that the section Evidence has."""
    section = BODY.partition("# Evidence")[2].partition("# Limits")[0]
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    for figure in re.findall(r"\d+(?:\.\d+)?(?= %)|0\.\d{3}|\d+ of \d+|\b\d{3}(?= calls)", section):
        assert figure in page, figure


def test_the_figure_and_its_numbers_are_made_by_the_script(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PAPER))
    monkeypatch.delitem(sys.modules, "figures", raising=False)
    import figures

    found = figures.measure()
    figures.draw(found, tmp_path / "mg.png")
    assert (tmp_path / "mg.png").stat().st_size > 10_000
    assert (PAPER / "mg.png").is_file()
    summary = BODY.partition("# Statement")[0]
    for key, percent in figures.quote(found).items():
        assert f"{percent:.1f} %" in summary, key
