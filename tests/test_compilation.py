"""What is compiled is kept in one folder, and no longer than its sources stay as they are."""

import ast
import os
import subprocess
import sys
import time
from threading import Event, Thread

import numba
import pytest
from numba.core import config

from hopmap.compilation import UNUSED_DAYS, _caching_in
from hopmap.source_files import PACKAGE, sources_of
from support import ROOT

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

RUN = """
from hopmap.outer_kernels import outer
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


def test_two_threads_that_decorate_leave_numbas_setting_as_it_was(tmp_path):
    """The other one comes in while this one is in, and goes out behind it."""
    before, inside, leave = config.CACHE_DIR, Event(), Event()

    def decorate():
        with _caching_in(tmp_path / "other"):
            inside.set()
            leave.wait(10)

    other = Thread(target=decorate)
    with _caching_in(tmp_path):
        other.start()
        inside.wait(0.2)
    leave.set()
    other.join()
    assert inside.is_set()
    assert before == config.CACHE_DIR


@pytest.fixture
def package(tmp_path):
    """Make a package of that name with our decorator and three modules, which returns a runner."""
    folder = tmp_path / "hopmap"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("compilation.py", "source_files.py"):
        (folder / name).write_bytes((ROOT / "hopmap" / name).read_bytes())
    (folder / "constants.py").write_text("STEP = 1\n")
    (folder / "inner_kernels.py").write_text(
        "from hopmap.compilation import njit\nfrom hopmap.constants import STEP\n\n\n"
        "@njit\ndef inner(x):\n    return x + STEP\n"
    )
    (folder / "outer_kernels.py").write_text(
        "from hopmap.compilation import njit\n\nfrom .inner_kernels import inner\n\n\n"
        "@njit\ndef outer(x):\n    return 10 * inner(x)\n"
    )

    def run():
        done = subprocess.run(
            [sys.executable, "-B", "-c", RUN],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        return tuple(map(int, done.stdout.split()))

    run.folder, run.cache = folder, tmp_path / "cache" / "hopmap"
    return run


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("constants", "= 1", "= 2"),
        pytest.param("inner_kernels", "x + STEP", "x + 2", marks=pytest.mark.slow),
    ],
)
def test_a_kernel_is_kept_until_a_module_it_is_made_of_changes(package, file, old, new):
    """In one folder, not beside the sources; what no version has used for long is removed."""
    sources = sorted(package.folder.rglob("*"))
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    for name, when in (("old", long_ago), ("new", time.time())):
        folder = package.cache / f"outer_kernels-{name}"
        folder.mkdir(parents=True)
        os.utime(folder, (when, when))
    assert package() == (20, 0)
    assert sorted(package.folder.rglob("*")) == sources
    kept = {folder.name for folder in package.cache.glob("outer_kernels-*")}
    assert len(kept - {"outer_kernels-new"}) == 1
    assert {"outer_kernels-new", "outer_kernels-old"} & kept == {"outer_kernels-new"}
    assert package() == (20, 1)  # from the cache
    changed = package.folder / f"{file}.py"
    changed.write_text(changed.read_text().replace(old, new))
    assert package() == (30, 0)


KERNELS = [
    file
    for part in ("traces", "topologies", "mappers", "simulator")
    for file in sorted((PACKAGE / part).rglob("*.py"))
    if "import njit" in file.read_text(encoding="utf-8")
]


def test_compiled_modules_import_from_where_things_are_defined():
    """From a package that hands names on, a change would not be seen."""
    assert len(KERNELS) > 30
    for file in KERNELS:
        known = sources_of(file)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hopmap."):
                path = PACKAGE.parent.joinpath(*node.module.split("."))
                for alias in node.names:
                    there = {path.with_suffix(".py"), path / f"{alias.name}.py"}
                    assert there.intersection(known), (file, node.module, alias.name)


COMPILED = {"njit", "subroutine", "register_jitable", "cfunc", "overload", "intrinsic"}
CALLBACK = "states"  # what takes it is called by libotf2, or in one go: `cfunc` compiles it
MAKERS = {
    "task_machine": "compiles the functions that it is given into an engine's loop",
    "_sifting": "compiles the function that it is given into a heap's moves",
}


def decorators(function):
    """Names of what decorates a function, and their first arguments."""
    for each in function.decorator_list:
        made = each if isinstance(each, ast.Call) else ast.Call(each, [], [])
        yield getattr(made.func, "id", ""), getattr(next(iter(made.args), None), "id", "")


class Names(ast.NodeVisitor):
    """What a module names outside compiled functions, and which of its functions are subroutines.

    What an overload stands for runs where nothing is compiled, and may name what the overload does.
    """

    def __init__(self, module, tree):
        self.inner, self.used, self.origin, self.module = set(), [], {}, module
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        self.inner |= {f.name for f in functions if "subroutine" in dict(decorators(f))}
        overloads = [f for f in functions if "overload" in dict(decorators(f))]
        self.apart = {dict(decorators(f))["overload"] for f in overloads} | {
            node.value.id
            for f in overloads
            for node in ast.walk(f)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
        }
        self.apart |= {
            given.id
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "by_columns"
            for given in call.args
            if isinstance(given, ast.Name)
        }
        self.visit(tree)

    def visit_FunctionDef(self, node):
        compiled = COMPILED.intersection(dict(decorators(node)))
        taken = {argument.arg for argument in node.args.args}
        if node.name not in self.apart and not compiled and CALLBACK not in taken:
            self.generic_visit(node)

    def visit_Assign(self, node):
        if getattr(getattr(node.value, "func", None), "id", "") == "subroutine":
            self.inner |= {target.id for target in node.targets}
        self.generic_visit(node)

    def visit_Call(self, node):
        given = () if getattr(node.func, "id", "") in MAKERS else node.args
        for part in (node.func, *given, *node.keywords):
            self.visit(part)

    def visit_ImportFrom(self, node):
        base = self.module.split(".")[: -node.level] if node.level else []
        for alias in node.names:
            place = ".".join([*base, *filter(None, [node.module]), alias.name])
            self.origin[alias.asname or alias.name] = place

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.used.append((node.id, node.lineno))

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name):
            self.used.append((f"{node.value.id}.{node.attr}", node.lineno))
        self.generic_visit(node)

    def full(self, name):
        head, dot, rest = name.partition(".")
        return self.origin.get(head, f"{self.module}.{head}") + dot + rest


def test_only_compiled_code_calls_subroutines():
    """From Python it would run as Python, hundreds of times slower, and say nothing of it."""
    files = [
        file
        for part in ("traces", "topologies", "mappers", "simulator", "scenarios")
        for file in sorted((PACKAGE / part).rglob("*.py"))
        if "kernels" in file.read_text(encoding="utf-8") or "kernels" in file.name
    ]
    modules = [
        Names(
            ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts),
            ast.parse(file.read_text(encoding="utf-8")),
        )
        for file in files
    ]
    inner = {f"{names.module}.{name}" for names in modules for name in names.inner}
    assert len(inner) > 200
    assert [
        f"{names.module}, line {line}: {name}"
        for names in modules
        if "traces.otf2" not in names.module  # callbacks: `callback` compiles plain functions
        for name, line in names.used
        if names.full(name) in inner
    ] == []
