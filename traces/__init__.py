"""What the application does: traces, programs and traffic."""

from .folded import Folded as Folded
from .formats import FORMATS as FORMATS
from .formats import load_traffic as load_traffic
from .formats import save_traffic as save_traffic
from .memory import OutOfMemoryError as OutOfMemoryError
from .memory import require_memory as require_memory
from .nas import is_nas_name as is_nas_name
from .nas import nas_folded as nas_folded
from .nas import nas_trace as nas_trace
from .nas import nas_traffic as nas_traffic
from .nas_lu import lu_folded as lu_folded
from .nas_lu import lu_trace as lu_trace
from .nas_lu import lu_traffic as lu_traffic
from .otf2_read import read_summary as read_summary
from .otf2_read import read_trace as read_trace
from .otf2_read import read_traffic as read_traffic
from .otf2_write import write_trace as write_trace
from .summary import Summary as Summary
from .summary import summarize as summarize
from .trace import Collective as Collective
from .trace import Kind as Kind
from .trace import Records as Records
from .trace import Trace as Trace
from .trace import TraceError as TraceError
from .traffic import Traffic as Traffic
from .traffic import traffic_of as traffic_of
