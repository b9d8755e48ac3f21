"""hopmap from a source archive in the working folder, as ``python -m build --sdist`` makes it."""

import os

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyHopmap(PythonPackage):
    """Trace-driven simulator for process mapping: which rank should sit on which node?"""

    manual_download = True
    url = f"file://{os.getcwd()}/hopmap-0.1.0.tar.gz"

    license("MIT")

    version("0.1.0")  # without a checksum: spack install --no-checksum

    variant("slurm", default=False, description="read topology.yaml")
    variant("cluster", default=False, description="spread sweeps by Dask")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@80:", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-jinja2@3.1:")
        depends_on("py-lazy-loader@0.6:")
        depends_on("py-matplotlib@3.8:")
        depends_on("py-numba@0.60:0.68")
        depends_on("py-networkx@3.2:")
        depends_on("py-numpy@1.26:")
        depends_on("py-otf2@3.2:")
        depends_on("py-pandas@2.2:")
        depends_on("py-psutil@5.9:")
        depends_on("py-pyarrow@15:")
        depends_on("py-pydantic@2.7:")
        depends_on("py-rich@13.7:")
        depends_on("py-scipy@1.12:")
        depends_on("py-simpy@4.1:")
        depends_on("py-tomli-w@1.0:")
        depends_on("py-typer@0.12:")
        depends_on("py-pyyaml@6:", when="+slurm")
        depends_on("py-distributed@2024.1:", when="+cluster")
