"""The first step of the command `hopmap`: Ctrl-C while it loads ends it with 130 and no traceback.

It imports nothing that takes time, so that it begins before anything that does.
"""

import os
import signal

_INTERRUPTED = 130  # as in console.py, which is not loaded yet


def main() -> None:
    """Load the command line and run it."""
    # At once and not by an exception: libraries catch some while they load, and print others.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from .app import main as run

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:  # before the command has begun, which answers it by itself
        os._exit(_INTERRUPTED)
