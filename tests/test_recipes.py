"""Recipes of other package managers ask for what pyproject.toml asks for."""

import ast
import re
import tomllib

import pytest

from support import ROOT

RECIPES = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = {
    re.split("[<>=]", item)[0].replace("_", "-"): item.partition(">=")[2].partition(",")[0]
    for item in PROJECT["dependencies"]
}
# In EasyBuild's stack of 2025b these are parts of others.
BUNDLES = {
    "Python-bundle-PyPI": ("jinja2", "psutil", "rich", "tomli-w"),
    "SciPy-bundle": ("numpy", "pandas", "scipy"),
    "Arrow": ("pyarrow",),
}


def test_conda_asks_for_the_same_in_the_same_versions():
    yaml = pytest.importorskip("yaml", reason="needs the extra slurm")
    recipe = yaml.safe_load((RECIPES / "conda/hopmap/recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    asked = dict(item.split(" >=") for item in recipe["requirements"]["run"])
    assert asked.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    names = {"matplotlib-base": "matplotlib", "python-otf2": "otf2", "lazy_loader": "lazy-loader"}
    asked = {names.get(name, name): text.partition(",")[0] for name, text in asked.items()}
    assert asked == NEEDED
    entry = f"hopmap = {PROJECT['scripts']['hopmap']}"
    assert recipe["build"]["python"]["entry_points"] == [entry]


def test_spack_asks_for_the_same_in_the_same_versions():
    code = (RECIPES / "spack/packages/py_hopmap/package.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    said = [
        (call.func.id, ast.literal_eval(call.args[0]))
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.args
        and not any(word.arg == "when" for word in call.keywords)
        and call.func.id in ("depends_on", "version")
    ]
    assert [text for name, text in said if name == "version"] == [PROJECT["version"]]
    asked = dict(text.split("@") for name, text in said if name == "depends_on")
    assert asked.pop("python") == PROJECT["requires-python"].removeprefix(">=") + ":"
    assert asked.pop("py-setuptools")
    assert {
        name.removeprefix("py-"): text.partition(":")[0] for name, text in asked.items()
    } == NEEDED


def test_easybuild_has_all_that_is_asked_for():
    (file,) = (RECIPES / "easybuild").glob("*.eb")
    said: dict[str, object] = {}
    exec(compile(file.read_text(encoding="utf-8"), file, "exec"), {}, said)
    assert file.name == f"hopmap-{PROJECT['version']}-foss-{said['toolchain']['version']}.eb"
    names = {name: version for name, version, *_ in [*said["dependencies"], *said["exts_list"]]}
    assert names.pop("hopmap") == PROJECT["version"]
    assert names.pop("Python").split(".") >= PROJECT["requires-python"].removeprefix(">=").split(
        "."
    )
    parts = {part for bundle, parts in BUNDLES.items() if names.pop(bundle) for part in parts}
    assert parts | {name.replace("_", "-") for name in names} == NEEDED.keys()
    for name, version in names.items():
        least = NEEDED[name.replace("_", "-")]
        assert list(map(int, version.split("."))) >= list(map(int, least.split("."))), name
