"""Why a run takes as long: bounds, bottlenecks, critical path, sensitivity."""
