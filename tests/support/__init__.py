"""What tests share without asking pytest for it: where things lie, and which case has failed."""

from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


@contextmanager
def about(*case):
    """Say of an error in one of many cases which it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the case: {', '.join(map(str, case))}")
        raise
