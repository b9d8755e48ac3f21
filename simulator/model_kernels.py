"""The rules of `model.py` for compiled code: kernels call the functions that SimPy calls."""

from __future__ import annotations

from hopmap.compilation import subroutine
from hopmap.simulator import model

asks_first = subroutine(model.asks_first)
byte_overhead = subroutine(model.byte_overhead)
completion = subroutine(model.completion)
credit_arrival = subroutine(model.credit_arrival)
hashed = subroutine(model.hashed)
head_arrival = subroutine(model.head_arrival)
in_call = subroutine(model.in_call)
leave_time = subroutine(model.leave_time)
noticed = subroutine(model.noticed)
order_key = subroutine(model.order_key)
packet_bytes = subroutine(model.packet_bytes)
packet_count = subroutine(model.packet_count)
place_free = subroutine(model.place_free)
receive_overhead = subroutine(model.receive_overhead)
service_end = subroutine(model.service_end)
service_start = subroutine(model.service_start)
tail_arrival = subroutine(model.tail_arrival)
