"""Functions that are compiled into others only: neither optimised, nor machine code, nor wrapped.

numba makes of every function that another one calls all that a call from Python needs, and
optimises it on its own before it does so again within each of its callers: two thirds of the time
that it takes to compile a simulator of hundreds of small functions. Here a function called by
another is typed and lowered; the rest is done once, in what is called from Python.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

PART: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Part(JITCodeLibrary):
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
class _PartLowering(NativeLowering):
    """Lowers a function to such a part."""

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


class PartCompiler(CompilerBase):
    """numba's compiler, but for what `_PartLowering` leaves out."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_PartLowering if each is NativeLowering else each, what)
            for each, what in passes.passes
        ]
        passes._finalized = False
        passes.finalize()
        return [passes]
