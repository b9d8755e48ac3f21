"""The version that is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("hopmap")
except PackageNotFoundError:  # files that somebody has copied
    __version__ = "of unknown version"
