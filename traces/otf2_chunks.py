"""Whether all records of a file of events or definitions are there: a look at its last chunk.

libotf2 takes a file in chunks of the size that the anchor names, each into memory that it does not
clear, and decodes until a mark ends the chunk or the file. In a file that is cut it goes on with
what that memory held before, an older chunk perhaps, as if it were recorded. So the records of the
last chunk are followed here from length to length, at memory speed, until the mark of the end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .otf2_chunk_kernels import leads_to_the_end


def is_complete(file: Path, chunk_size: int) -> bool:
    """Whether the records in a file of an archive lead to the mark of its end.

    Parameters
    ----------
    file : Path
        Events (``*.evt``) or definitions (``*.def``).
    chunk_size : int
        Bytes; every chunk but the last fills them.
    """
    size = file.stat().st_size
    start = max(size - 1, 0) // chunk_size * chunk_size
    chunk = np.fromfile(file, dtype=np.uint8, offset=start)
    return bool(leads_to_the_end(chunk, file.suffix == ".evt"))
