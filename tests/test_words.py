"""Words and sentences that may only become fewer: pages, and what the code says.

The numbers are maxima: lower them when you remove some.
"""

import ast
import re

import pytest

from support import ROOT

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
]
FOLDERS = ("hopmap", "mappers", "scenarios", "simulator", "topologies", "traces")
WORDS = {  # how often at most in pages, and in docstrings, help and messages
    "as launched": (0, 0),
    "made up": (0, 0),
    "tried, too": (0, 0),
    "all that there is": (0, 0),
    "anew": (0, 0),
    "whoever": (0, 0),
    "nobody": (0, 0),
    "besides": (0, 0),
    "beside": (0, 0),
    "that which": (0, 0),
    "those of": (0, 0),
    "taken for": (0, 0),
    "but for": (0, 0),
    "told": (0, 0),
    "given": (0, 0),
    "alike": (0, 0),
    "whatever": (0, 0),
}
LONG_SENTENCES, LONG_LINES = 3, 0  # of pages: above 30 words, above 160 characters
BLOCK = re.compile(r"```.*?```", re.DOTALL)
QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\[[^\]]*\]\([^)]*\)", re.DOTALL)


def prose(page):
    """Return a page without code and links."""
    return QUOTED.sub("X", page.read_text("utf-8"))


def said():
    """Return all text in the product's code."""
    files = {f.resolve() for folder in FOLDERS for f in (ROOT / folder).rglob("*.py")}
    assert len(files) > 300
    for file in sorted(files):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def count(texts):
    plain = " ".join(" ".join(texts).lower().split())
    return {word: len(re.findall(rf"\b{re.escape(word)}\b", plain)) for word in WORDS}


@pytest.fixture(scope="module")
def pages():
    return [prose(page) for page in PAGES]


def test_words_that_readers_stop_at_become_fewer(pages):
    in_pages, in_code = count(pages), count(said())
    more = [w for w, most in WORDS.items() if in_pages[w] > most[0] or in_code[w] > most[1]]
    assert not more, {word: (in_pages[word], in_code[word]) for word in more}


def test_long_sentences_and_lines_become_fewer(pages):
    rows = [line for page in PAGES for line in BLOCK.sub("", page.read_text("utf-8")).splitlines()]
    paragraphs = [part for page in pages for part in re.split(r"\n\s*\n|\n(?=[-*#|\d])", page)]
    sentences = [s for part in paragraphs if "|" not in part for s in re.split(r"[.:;?!]\s", part)]
    long = [s for s in sentences if len(s.split()) > 30]
    wide = [row for row in rows if len(row) > 160 and not row.startswith("|")]
    assert len(long) <= LONG_SENTENCES, "\n".join(long[:5])
    assert len(wide) <= LONG_LINES, "\n".join(wide[:5])
