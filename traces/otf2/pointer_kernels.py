"""Reading, writing and calling plain addresses in compiled code.

The C callbacks of libotf2 get one address as user data, and numba has no type for "an array
somewhere"; these few intrinsics say what the pointer arithmetic of C would.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import carray as carray  # type: ignore[attr-defined]
from numba import types
from numba.extending import intrinsic


def _loader(loaded: Any) -> Any:
    @intrinsic
    def load(_typing_context: Any, _address: Any, _index: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, index = arguments
            pointer = builder.inttoptr(address, context.get_value_type(loaded).as_pointer())
            return builder.load(builder.gep(pointer, [index]))

        return loaded(types.uint64, types.int64), generate

    return load


load_int32 = _loader(types.int32)
load_uint32 = _loader(types.uint32)
load_int64 = _loader(types.int64)
load_uint8 = _loader(types.uint8)
load_float64 = _loader(types.float64)


@intrinsic
def store(_typing_context: Any, _address: Any, _index: Any, value: Any) -> Any:
    """Store a value of any scalar type as element `index` of the array at `address`."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, index, stored = arguments
        pointer = builder.inttoptr(address, stored.type.as_pointer())
        builder.store(stored, builder.gep(pointer, [index]))
        return context.get_dummy_value()

    return types.void(types.uint64, types.int64, value), generate


def caller(*argument_types: Any) -> Any:
    """Make an intrinsic that calls the C function at an address; it returns an int32.

    Parameters
    ----------
    *argument_types
        numba types of the arguments, wide enough to need no extension (32 or 64 bits).
    """

    @intrinsic
    def call(_typing_context: Any, _address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            address, packed = values
            converted = [
                context.cast(builder, builder.extract_value(packed, place), given, wanted)
                for place, (given, wanted) in enumerate(
                    zip(signature.args[1].types, argument_types, strict=True)
                )
            ]
            prototype = ir.FunctionType(ir.IntType(32), [value.type for value in converted])
            return builder.call(builder.inttoptr(address, prototype.as_pointer()), converted)

        return types.int32(types.uint64, arguments), generate

    return call
