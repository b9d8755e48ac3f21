"""What the machine is: nodes, switches, links, distances, routes, and ranks placed on nodes."""

from hopmap.topologies.families.graph import from_networkx as from_networkx
from hopmap.topologies.families.grid import both_ways as both_ways
from hopmap.topologies.families.grid import haec as haec
from hopmap.topologies.families.grid import mesh as mesh
from hopmap.topologies.families.grid import torus as torus
from hopmap.topologies.families.hierarchy import hierarchy as hierarchy
from hopmap.topologies.families.hierarchy import tree as tree
from hopmap.topologies.families.hypercube import hypercube as hypercube
from hopmap.topologies.families.partial_cube import PartialCube as PartialCube
from hopmap.topologies.families.partial_cube import partial_cube as partial_cube
from hopmap.topologies.families.routed import from_routes as from_routes
from hopmap.topologies.families.switched import cluster as cluster
from hopmap.topologies.families.switched import dragonfly as dragonfly
from hopmap.topologies.families.switched import fat_tree as fat_tree
from hopmap.topologies.readers.files import NETWORK_FORMATS as NETWORK_FORMATS

from .placement import Mapping as Mapping
from .placement import MappingError as MappingError
from .placement import check_fits as check_fits
from .placement import check_mapping as check_mapping
from .presets import PRESETS as PRESETS
from .presets import Preset as Preset
from .routing import Router as Router
from .spec import FAMILIES as FAMILIES
from .spec import Family as Family
from .spec import all_families as all_families
from .spec import did_you_mean as did_you_mean
from .spec import topology_family as topology_family
from .spec import topology_from_spec as topology_from_spec
from .topology import LinkKind as LinkKind
from .topology import Topology as Topology
from .topology import TopologyError as TopologyError
from .topology import provenance as provenance
