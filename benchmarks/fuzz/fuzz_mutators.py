"""Mutators: what may befall a file or a text on its way to hopmap.

Each takes a `random.Random` and what is to be changed, and returns the changed copy. `of_bytes`
knows nothing of formats; `of_text` keeps to the words and numbers of a text, so that much of what
it makes still gets past the first check of a parser; `of_folder` also exchanges whole files.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

NUMBERS = (
    *("0", "1", "-1", "2", "3", "00", "+1", "1.5", "-0", "0.1", "1e3", "7", "255", "256", "65536"),
    *(str(2**k + d) for k in (31, 32, 53, 62, 63, 64, 128) for d in (-1, 0)),
    *("100000", "1000000", "16777216", "999999999", "1000000000", "-9223372036854775808"),
    *("nan", "inf", "-inf", "1e400", "1e308", "1e-400", "9" * 400, "0x10", "1_000", "²", "٣", "½"),
)
WORDS = (
    *(
        "",
        " ",
        "  ",
        "\t",
        "\0",
        "\x1b[31m",
        "\u202e",
        "\ufeff",
        "ä",
        "日本",
        "😀",
        "\u2028",
        "\x85",
    ),
    *(
        "%s",
        "{0}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "'",
        '"""',
        "#",
        "%",
        "=",
        ":",
        ",",
        "x",
        "*",
        "@",
        "|",
    ),
    *("true", "false", "null", "None", "nan", "..", "/", "/dev/null", "/dev/zero", ".", "~", "-"),
    *("a" * 300, "a" * 70_000, "é" * 200, "[" * 5_000, "1:" * 3_000, "x9" * 2_000),
)
TOKEN = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|\s+|[^\w\s]")


def of_bytes(rng: Random, data: bytes) -> bytes:
    """Flip, overwrite, cut, insert, repeat or remove bytes, in one to four places."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        size = len(changed)
        # Headers are short and decide much: half of all places are near the beginning.
        place = rng.randrange(size) if size else 0
        if size and rng.random() < 0.5:
            place = rng.randrange(min(size, 512))
        length = rng.choice((1, 1, 2, 4, 8, 16, 64))
        how = rng.randrange(9)
        if how <= 1 and size:
            changed[place] ^= 1 << rng.randrange(8)
        elif how == 2 and size:
            changed[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))
        elif how == 3:
            changed[place : place + length] = rng.randbytes(length)
        elif how == 4:
            changed[place : place + length] = rng.choice((b"\0", b"\xff", b"\x80")) * length
        elif how == 5:
            del changed[place:]
        elif how == 6:
            del changed[place : place + length]
        elif how == 7:
            changed[place:place] = rng.randbytes(length)
        else:
            other = rng.randrange(size) if size else 0
            changed[place:place] = changed[other : other + 4 * length]
    return bytes(changed)


def of_text(rng: Random, text: str) -> str:
    """Change, drop, repeat, exchange words, numbers and lines."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        how = rng.randrange(10)
        if how == 9:
            lines = text.splitlines(keepends=True) or [""]
            place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[place : place + 1] = rng.choice(
                ([], [lines[place]] * 2, [lines[other]], [lines[place].rstrip("\n") + lines[other]])
            )
            text = "".join(lines)
            continue
        tokens = TOKEN.findall(text) or [""]
        place = rng.randrange(len(tokens))
        if how <= 3:  # a number, wherever there is one
            numbers = [at for at, token in enumerate(tokens) if token[0:1].isdigit()]
            place = rng.choice(numbers) if numbers else place
            tokens[place] = rng.choice(NUMBERS)
            if how == 3:
                tokens[place] = str(rng.randrange(10 ** rng.randrange(1, 8)))
        elif how == 4:
            del tokens[place]
        elif how == 5:
            tokens.insert(place, rng.choice(WORDS))
        elif how == 6:
            tokens[place] = rng.choice(WORDS)
        elif how == 7:
            tokens.insert(place, tokens[rng.randrange(len(tokens))] * rng.choice((1, 1, 2, 50)))
        else:
            other = rng.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        text = "".join(tokens)
    return text


def encoded(rng: Random, text: str) -> bytes:
    """Write a text as UTF-8, now and then as other programs would."""
    how = rng.randrange(24)
    if how == 0:
        return text.replace("\n", "\r\n").encode(errors="surrogatepass")
    if how == 1:
        return text.encode("utf-8-sig", errors="surrogatepass")
    if how == 2:
        return text.encode("utf-16", errors="surrogatepass")
    if how == 3:
        return text.replace("\n", "\r").encode(errors="surrogatepass")
    return text.encode(errors="surrogatepass")


def of_file(rng: Random, file: Path) -> None:
    """Change a file as text where it is one, else as bytes; text now and then as bytes, too."""
    data = file.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        file.write_bytes(of_bytes(rng, data))
        return
    if rng.random() < 0.2:
        file.write_bytes(of_bytes(rng, data))
    else:
        file.write_bytes(encoded(rng, of_text(rng, text)))


def of_folder(rng: Random, folder: Path) -> None:
    """Change one to three files below a folder; exchange, copy, empty or remove some."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        # Half of all changes hit the few files at the top, which decide what is read below.
        top = [file for file in files if file.parent == folder]
        one = rng.choice(top if top and rng.random() < 0.5 else files)
        other = rng.choice(files)
        how = rng.randrange(20)
        if not one.is_file() or not other.is_file():
            continue
        if how == 0:
            first, second = one.read_bytes(), other.read_bytes()
            one.write_bytes(second)
            other.write_bytes(first)
        elif how == 1:
            one.write_bytes(other.read_bytes())
        elif how == 2:
            one.unlink()
        elif how == 3:
            one.unlink()
            one.mkdir()
        else:
            one.write_bytes(of_bytes(rng, one.read_bytes()))
