"""Which rank should sit on which node, and what does that buy.

``import hopmap as hm`` is the front door: open a trace, name a topology, `map_ranks`, `evaluate`,
`simulate`, `explain`, `sweep`. All names stand in ``__init__.pyi``, and load when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
