"""Functions that are compiled into others only: neither optimised, nor machine code, nor wrapped.

numba makes of every function that another one calls all that a call from Python needs, optimises
it on its own before it does so again within each of its callers, and all of that once more for
every size of whole numbers, and for the numbers themselves where they stand in the call: more than
half of the time that a simulator of hundreds of small functions takes. Here a function called by
another is typed and lowered; the rest is done once, in what is called from Python. So it is with
numba's own functions for arrays, which are never called from Python.

The price: a part is not kept, so that another process that needs it in another whole lowers it
again, and this knows the inside of numba's compiler. With a numba that is not `KNOWN` all is
compiled as numba does it: slower, to the same results.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numba
from numba import _dynfunc, types
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import NativeLowering
from numba.core.typing import make_concrete_template
from numba.core.typing.templates import _OverloadFunctionTemplate

KNOWN = numba.__version__.startswith("0.68.")
PART: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class PartDispatcher(CPUDispatcher):
    """Compiles what others call: once for whole numbers of all sizes, and not for their values."""

    def get_call_template(self, args: Any, kws: Any) -> tuple[Any, Any, Any, Any]:
        """Compile for such arguments, of which small whole numbers are cast, and say so."""
        pysig, args = self._compiler.fold_argument_types(args, kws)
        wide = tuple(map(_widened, args))
        self.compile(wide)
        name = self.py_func.__name__
        known = [self.overloads[wide].signature]
        return make_concrete_template(name, key=name, signatures=known), pysig, args, {}

    def compile(self, sig: Any) -> Any:
        """Do what a dispatcher does, but for the cache and timers at every level."""
        args, return_type = normalize_signature(sig)
        with global_compiler_lock, self._compiling_counter:
            if args not in self.overloads:
                data = {"dispatcher": self, "args": args, "return_type": return_type}
                with event.trigger_event("numba:compile", data=data):
                    self.add_overload(self._compiler.compile(args, return_type))
        return self.overloads[args].entry_point


def _widened(kind: types.Type) -> types.Type:
    kind = types.unliteral(kind) if isinstance(kind, types.IntegerLiteral) else kind
    small = isinstance(kind, types.Integer) and kind.signed and kind.bitwidth < 64
    return types.int64 if small else kind


class _Whole(JITCodeLibrary):
    """LLVM's code of a function that is called from outside, and of those that it calls."""

    def add_linking_library(self, library: Any) -> None:
        if not library._finalized and type(library) is JITCodeLibrary:
            library.__class__ = _Part  # what numba makes for one call within another
        super().add_linking_library(library)


class _Part(_Whole):
    """LLVM's code of a function and of those that it calls, as it was lowered."""

    def add_llvm_module(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeLowering(NativeLowering):
    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        if state.library is None:
            state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        fndesc, call_helper, _, env = state["cr"]
        library.finalize()
        known_as = _dynfunc.make_function(
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, env, (library,)
        )  # by which its callers find it; it cannot be called
        state.targetctx.insert_user_function(known_as, fndesc, [library])
        state["cr"] = _LowerResult(fndesc, call_helper, known_as, env)
        return True


class WholeCompiler(CompilerBase):
    """numba's compiler for what is called from outside."""

    lowering: ClassVar[type] = _WholeLowering

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline with another end."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (self.lowering if each is NativeLowering else each, what)
            for each, what in passes.passes
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]


class PartCompiler(WholeCompiler):
    """numba's compiler for what others call."""

    lowering = _PartLowering


WHOLE: dict[str, Any] = {"pipeline_class": WholeCompiler} if KNOWN else {}
"""Options of what is called from outside."""


def part_of(function: Any, options: dict[str, Any]) -> PartDispatcher:
    """Return what compiles a function into others, with the options of `numba.njit`."""
    targets = {name: value for name, value in options.items() if name != "cache"}
    return PartDispatcher(
        function, targetoptions=targets | PART | {"nopython": True}, pipeline_class=PartCompiler
    )


_decorator = _OverloadFunctionTemplate._get_jit_decorator


def _decorator_of_parts(template: Any) -> Any:
    jit = _decorator(template)
    return lambda **options: jit(**({"pipeline_class": PartCompiler} | options | PART))


if KNOWN:
    _OverloadFunctionTemplate._get_jit_decorator = _decorator_of_parts
