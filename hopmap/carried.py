"""Compiled code that a package carries, so that first calls of commands need not compile.

An installation compiles, by `hopmap warm-up --carry`, what first calls of commands need into
``hopmap/compiled``, for any processor of a kind. It is looked at after the user's own folder, which
holds what was compiled for the very processor, and only read. As there, a folder has the digest of
the sources in its name; a file holds one kernel for one kind of arguments, packed with a check sum.
``HOPMAP_CARRIED=0`` has none made and none used.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import platform
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from llvmlite.binding import get_host_cpu_features
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from .errors import HopmapWarning
from .source_files import PACKAGE

CARRIED = PACKAGE / "compiled"
VARIABLE = "HOPMAP_CARRIED"
WRITE = "write"

X86_64_V3 = (
    *("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf"),
    *("sse3", "sse4.1", "sse4.2", "ssse3", "xsave"),
)
"""What the psABI of x86-64 asks of microarchitecture level 3, by LLVM's names."""

PORTABLE = {"x86_64": ("x86-64-v3", X86_64_V3), "aarch64": ("generic", ("neon",))}
"""For whom code is made on a machine: LLVM's name of a processor, and the features that it has."""


@cache
def portable_cpu() -> str | None:
    """Return the kind of processor that carried code is for; None where this one is not of it."""
    name, needed = PORTABLE.get(platform.machine(), ("", ()))
    features = get_host_cpu_features()
    return name if name and all(features.get(each) for each in needed) else None


def portable_environment() -> dict[str, str]:
    """Return the environment of a process that compiles what is to be carried.

    numba reads it when it is imported. Its other settings, which change code, are not handed on.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    portable = {"NUMBA_CPU_NAME": portable_cpu() or "", "NUMBA_CPU_FEATURES": ""}
    return kept | portable | {"NUMBA_DISABLE_INTEL_SVML": "1", VARIABLE: WRITE}


class CarriedCache(FunctionCache):
    """numba's cache of a function, and behind it what the package carries."""

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super()._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        file = None if found is not None else self._carried(sig, target_context.codegen())
        if file is None or not file.is_file():
            return found
        try:
            packed = gzip.decompress(file.read_bytes())
            return self._impl.rebuild(target_context, pickle.loads(packed))
        except Exception as error:  # a damaged file may raise anything
            text = f"{file}: carried code cannot be read ({error!r}), and is compiled anew"
            warnings.warn(text, HopmapWarning, stacklevel=2)
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if os.environ.get(VARIABLE) != WRITE:
            super()._save_overload(sig, data)  # type: ignore[no-untyped-call]
        elif (file := self._carried(sig, data.codegen)) and self._impl.check_cachable(data):
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_name(f"{file.name}.{uuid4().hex}")
            packed = dumps(self._impl.reduce(data))  # type: ignore[no-untyped-call]
            part.write_bytes(gzip.compress(packed, 6, mtime=0))
            part.replace(file)

    def _carried(self, sig: Any, codegen: Any) -> Path | None:
        """Return where a kernel's code for some arguments is carried; None where none is."""
        folder = Path(self.cache_path).name
        ours = folder == self._impl.locator.get_source_stamp()
        cpu, asked = portable_cpu(), [getattr(config, f"CPU_{of}") for of in ("NAME", "FEATURES")]
        if os.environ.get(VARIABLE) == "0" or not (ours and cpu):
            return None
        if asked not in ([None, None], [cpu, ""]):  # the user has chosen a processor
            return None
        code = self._index_key(sig, codegen)[-1]  # type: ignore[no-untyped-call]
        digest = hashlib.blake2b(digest_size=8)
        digest.update(repr((str(sig), codegen.magic_tuple()[0], cpu, code)).encode())
        return CARRIED / folder / f"{self._impl.filename_base}-{digest.hexdigest()}.gz"
