"""lazy_loader in the version that hopmap needs: functions stay ahead of modules of their name."""

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyLazyLoader(PythonPackage):
    """Load subpackages and functions on demand."""

    homepage = "https://scientific-python.org/specs/spec-0001"
    pypi = "lazy_loader/lazy_loader-0.6.tar.gz"

    license("BSD-3-Clause")

    version("0.6", sha256="2f4b7824d6401958639008a0cae20c776b61dff619accd6890693e2de8260167")

    depends_on("py-setuptools@61.2:", type="build")
    depends_on("py-packaging", type=("build", "run"))
