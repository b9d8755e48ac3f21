"""What the machine is: nodes, switches, links, distances, routes, and ranks placed on nodes."""

from .graph import from_networkx as from_networkx
from .grid import both_ways as both_ways
from .grid import haec as haec
from .grid import mesh as mesh
from .grid import torus as torus
from .hierarchy import hierarchy as hierarchy
from .hierarchy import tree as tree
from .hypercube import hypercube as hypercube
from .indirect import cluster as cluster
from .indirect import dragonfly as dragonfly
from .indirect import fat_tree as fat_tree
from .kernels import Router as Router
from .mapping import Mapping as Mapping
from .mapping import MappingError as MappingError
from .mapping import check_fits as check_fits
from .mapping import check_mapping as check_mapping
from .presets import PRESETS as PRESETS
from .presets import Preset as Preset
from .presets import preset_parameters as preset_parameters
from .spec import FAMILIES as FAMILIES
from .spec import Family as Family
from .spec import did_you_mean as did_you_mean
from .spec import topology_from_spec as topology_from_spec
from .topology import LinkKind as LinkKind
from .topology import Topology as Topology
from .topology import TopologyError as TopologyError
