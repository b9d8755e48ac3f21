"""What the machine is: nodes, switches, links, distances, routes, and ranks placed on nodes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
