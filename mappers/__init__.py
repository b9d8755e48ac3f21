"""Where each rank goes: mappers, pipelines of them, and the objectives they work for."""

from .astar import astar as astar
from .bokhari import bokhari as bokhari
from .genetic import genetic as genetic
from .gray import gray as gray
from .hilbert import hilbert as hilbert
from .local_search import local_search as local_search
from .mapper import MAPPERS as MAPPERS
from .mapper import MapperInfo as MapperInfo
from .mapper import Parameter as Parameter
from .mapper import mapper as mapper
from .minmd import minmd as minmd
from .objectives import OBJECTIVES as OBJECTIVES
from .objectives import Objective as Objective
from .objectives import evaluate as evaluate
from .peano import peano as peano
from .pipeline import Stage as Stage
from .pipeline import map_ranks as map_ranks
from .pipeline import parse_pipeline as parse_pipeline
from .random_mapping import random_mapping as random_mapping
from .random_sampling import random_sampling as random_sampling
from .scan import scan as scan
from .search import Interrupted as Interrupted
from .search import Progress as Progress
from .sweep import sweep as sweep
