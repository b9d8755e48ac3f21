"""When two folders hold the same results: a hash of every table's files, times apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hopmap.scenarios.results.stored_runs import part_files
from hopmap.scenarios.results.tables import TABLES, TIMES


def fingerprint(folder: Path) -> dict[str, str]:
    """Return a hash of every part of the tables, by table and file name.

    Of ranks, links and messages the files' bytes; of runs the bytes of the file that is written
    from its columns without `TIMES`. Two folders hold the same results if these are equal.
    """
    hashes = {}
    for table in TABLES:
        for path in part_files(folder, table):
            content = path.read_bytes()
            if table == "runs":
                sink = pa.BufferOutputStream()
                timeless = pq.ParquetFile(path).read().drop_columns(list(TIMES))
                pq.write_table(timeless, sink, compression="zstd")
                content = sink.getvalue().to_pybytes()
            hashes[f"{table}/{path.name}"] = hashlib.blake2b(content, digest_size=16).hexdigest()
    return hashes
