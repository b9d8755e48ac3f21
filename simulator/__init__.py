"""What a mapping costs: static metrics, and replays over the network."""

from .collectives import ALGORITHMS as ALGORITHMS
from .deadlock import DeadlockError as DeadlockError
from .energy import Energy as Energy
from .lowering import lower as lower
from .metrics import CONVENTIONS as CONVENTIONS
from .metrics import HotLink as HotLink
from .metrics import Metrics as Metrics
from .metrics import MetricsError as MetricsError
from .metrics import evaluate as evaluate
from .metrics import hot_links as hot_links
from .metrics import link_loads as link_loads
from .parameters import KEYS as KEYS
from .parameters import ParameterError as ParameterError
from .parameters import Parameters as Parameters
from .parameters import key_of as key_of
from .parameters import parameters_from as parameters_from
from .program import Op as Op
from .program import Program as Program
from .program import program_of as program_of
from .result import MessageTimes as MessageTimes
from .result import Result as Result
from .result import Servers as Servers
from .simulate import ENGINES as ENGINES
from .simulate import Engine as Engine
from .simulate import simulate as simulate
from .traffic_program import program_of_traffic as program_of_traffic
