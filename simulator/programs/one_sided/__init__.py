"""One-sided operations: what origins do, and what is done at their targets without these.

The memory of a rank is served beside it, by strands that stand for its network interface and whose
rows take nobody's time (`SendMode.HARDWARE`): one for each origin, in the origin's order.

* A put is a message to such a strand, a get one of 0 bytes to it and a message back; an atomic
  operation is like a put, or like both if it brings bytes back.
* An operation is complete at its origin where the trace says so: a put when its data have left, a
  get when they are there. It is complete at its target at the record of that, at a fence, at
  MPI_Win_complete and where its lock is released, whichever comes first: then the origin waits for
  an acknowledgement of 0 bytes from each target, of the last of its puts there.
* MPI_Win_post sends a notice to each rank of its group, which MPI_Win_start waits for;
  MPI_Win_complete sends one, which MPI_Win_wait waits for.
* A lock is asked for and granted. If a rank's memory is ever locked exclusively, locks are granted
  in the order in which they were released in the recorded run, shared ones next to each other at
  once. Who locks all ranks asks nobody.

Fences, and making and freeing windows, are barriers behind all that, like collectives.
"""
