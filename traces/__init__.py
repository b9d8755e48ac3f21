"""What the application does: traces, programs and traffic."""

from .trace import Collective as Collective
from .trace import Kind as Kind
from .trace import Records as Records
from .trace import Trace as Trace
from .trace import TraceError as TraceError
from .traffic import Traffic as Traffic
from .traffic import traffic_of as traffic_of
