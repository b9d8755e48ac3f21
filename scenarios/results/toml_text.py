"""Write TOML, which Python only reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Mapping[str, Any]) -> str:
    """Return a document that `tomllib` reads as the same; None is left out.

    Parameters
    ----------
    table : mapping
        Of texts, numbers, truth values, lists and mappings. Mappings at the top are tables, lists
        of mappings there have a line for each; deeper ones are inline.
    """
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"{_key(key)} = {_top(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]"]
            lines += [f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None]
    return "\n".join(lines).lstrip("\n") + "\n"


def _top(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return "[\n" + "".join(f"  {_value(item)},\n" for item in value) + "]"
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """Quote a text; JSON's escapes are TOML's, but that DEL needs one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
