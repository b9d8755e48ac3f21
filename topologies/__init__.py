"""What the machine is: nodes, links, distances, routes, and ranks placed on nodes."""

from .grid import haec as haec
from .grid import mesh as mesh
from .grid import torus as torus
from .kernels import Router as Router
from .mapping import Mapping as Mapping
from .mapping import MappingError as MappingError
from .mapping import check_fits as check_fits
from .mapping import check_mapping as check_mapping
from .spec import FAMILIES as FAMILIES
from .spec import topology_from_spec as topology_from_spec
from .topology import LinkKind as LinkKind
from .topology import Topology as Topology
from .topology import TopologyError as TopologyError
