"""Which rank should sit on which node, and what does that buy.

``import hopmap as hm`` is the front door: open a trace, name a topology, `map_ranks`, `evaluate`,
`simulate`, `explain`, `sweep`. All names stand in ``__init__.pyi``, and load when they are used.
"""


def __getattr__(name):  # type: ignore[no-untyped-def]
    """Read the names when the first is used: the command begins sooner, see `cli/start.py`."""
    import lazy_loader

    attached = lazy_loader.attach_stub(__name__, __file__)
    globals().update(zip(("__getattr__", "__dir__", "__all__"), attached, strict=True))
    return attached[2] if name == "__all__" else attached[0](name)


def __dir__():  # type: ignore[no-untyped-def]
    return __getattr__("__all__")
