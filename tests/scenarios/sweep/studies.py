"""A small scenario, and its sweep."""

import json

from hopmap.scenarios.sweep.run import run_scenario
from hopmap.scenarios.sweep.scenario_files import load_scenario
from support import DATA

LU = DATA / "lu.S.4"


def write(folder, mappers=("sweep", "random"), more="", name="study.toml"):
    file = folder / name
    file.write_text(
        f'name = "a study"\ntraces = ["{LU}"]\ntopologies = ["mesh:2x2", "torus:3x2"]\n'
        f"mappers = {json.dumps(list(mappers))}\nseeds = [0, 1]\n{more}"
    )
    return file


def sweep(file, results, **keywords):
    return run_scenario(file, load_scenario(file), results, **keywords)


def files_of(results):
    return {
        str(path.relative_to(results)): path.stat().st_mtime_ns
        for path in results.rglob("*")
        if path.is_file()
    }
