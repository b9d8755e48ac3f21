"""Where each rank goes: mappers, pipelines of them, and the objectives they work for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
