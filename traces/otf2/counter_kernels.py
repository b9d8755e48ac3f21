"""Callbacks that only count: one for each kind of event, all in one module of machine code.

libotf2 does not say of which kind the event is that it calls a callback for, so every kind has a
callback of its own. numba would compile these 84 one by one, at 34 milliseconds each; together they
take some 30 in every process, less than to load them from numba's cache.
"""

from __future__ import annotations

from functools import cache

from llvmlite import binding, ir

_LONG, _INT = ir.IntType(64), ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()
# Location, time, position, user data, attributes; what follows may be left alone.
_CALLBACK = ir.FunctionType(_INT, [_LONG, _LONG, _LONG, _BYTES, _BYTES])


@cache
def counters(number: int, counts_at: int, first_at: int, latest_at: int) -> tuple[int, ...]:
    """Return the addresses of so many callbacks; the n-th adds 1 to element n of the counts.

    Each keeps the first and the latest time as well.

    Parameters
    ----------
    number : int
    counts_at, first_at, latest_at : int
        Where in the user data, in bytes, the address of the counts (int64) and both times (uint64)
        stand.
    """
    module = ir.Module()
    for n in range(number):
        function = ir.Function(module, _CALLBACK, f"count_{n}")
        build = ir.IRBuilder(function.append_basic_block())
        field = build.gep(function.args[3], [_LONG(counts_at)])
        counts = build.load(build.bitcast(field, _LONG.as_pointer()))
        counter = build.gep(build.inttoptr(counts, _LONG.as_pointer()), [_LONG(n)])
        build.store(build.add(build.load(counter), _LONG(1)), counter)
        for place, order in ((first_at, "<"), (latest_at, ">")):
            field = build.gep(function.args[3], [_LONG(place)])
            field = build.bitcast(field, _LONG.as_pointer())
            known, time = build.load(field), function.args[1]
            beyond = build.icmp_unsigned(order, time, known)
            build.store(build.select(beyond, time, known), field)
        build.ret(_INT(0))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(opt=1)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
    engine.finalize_object()
    _engines.append(engine)
    return tuple(engine.get_function_address(f"count_{n}") for n in range(number))


_engines: list[binding.ExecutionEngine] = []  # the code lives as long as these
