"""Words that readers stop at, in pages, in what the code says and in its names; long sentences.

The numbers of long sentences and lines are maxima: lower them when you remove some.
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
FOLDERS = ("hopmap", "mappers", "scenarios", "simulator", "topologies", "traces", "benchmarks")
WORDS = (  # in pages, docstrings, help and messages
    *("as launched", "made up", "tried, too", "all that there is", "anew", "whoever", "nobody"),
    *("besides", "beside", "that which", "those of", "taken for", "but for", "told", "given"),
    *("alike", "whatever"),
)
PARTS = {  # of names in the code
    *("given", "told", "asked", "beside", "besides", "anew", "whoever", "nobody", "alike"),
    *("whatever", "mistaken", "tried", "sure", "unlike"),
}
LONG_SENTENCES, LONG_LINES = 3, 0  # of pages: above 30 words, above 160 characters
BLOCK = re.compile(r"```.*?```", re.DOTALL)
QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\[[^\]]*\]\([^)]*\)", re.DOTALL)


def prose(page):
    """Return a page without code and links."""
    return QUOTED.sub("X", page.read_text("utf-8"))


def trees():
    """Yield the syntax trees of the product's code, of benchmarks/ and of docs/site.py."""
    files = {f.resolve() for folder in FOLDERS for f in (ROOT / folder).rglob("*.py")}
    assert len(files) > 300
    for file in sorted({*files, ROOT / "docs" / "site.py"}):
        yield ast.parse(file.read_text("utf-8"))


def said_and_named():
    """Return all text in the code, and all names that it defines."""
    texts, names = [], set()
    for node in (node for tree in trees() for node in ast.walk(tree)):
        match node:
            case ast.Constant(value=str(text)):
                texts.append(text)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
    return texts, names


def count(texts):
    plain = " ".join(" ".join(texts).lower().split())
    return {word: len(re.findall(rf"\b{re.escape(word)}\b", plain)) for word in WORDS}


@pytest.fixture(scope="module")
def pages():
    return [prose(page) for page in PAGES]


def test_words_that_readers_stop_at_are_nowhere(pages):
    texts, names = said_and_named()
    for where, found in (("pages", count(pages)), ("code", count(texts))):
        assert not any(found.values()), (where, {word: n for word, n in found.items() if n})
    assert not {name for name in names if PARTS & set(name.lower().split("_"))}


def test_long_sentences_and_lines_become_fewer(pages):
    rows = [line for page in PAGES for line in BLOCK.sub("", page.read_text("utf-8")).splitlines()]
    paragraphs = [part for page in pages for part in re.split(r"\n\s*\n|\n(?=[-*#|\d])", page)]
    sentences = [s for part in paragraphs if "|" not in part for s in re.split(r"[.:;?!]\s", part)]
    long = [s for s in sentences if len(s.split()) > 30]
    wide = [row for row in rows if len(row) > 160 and not row.startswith("|")]
    assert len(long) <= LONG_SENTENCES, "\n".join(long[:5])
    assert len(wide) <= LONG_LINES, "\n".join(wide[:5])
