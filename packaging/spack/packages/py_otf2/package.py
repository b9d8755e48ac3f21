"""The Python bindings of OTF2 with the library in them."""

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyOtf2(PythonPackage):
    """Python bindings of the Open Trace Format Version 2, with the library in them."""

    homepage = "https://score-p.org"
    pypi = "otf2/otf2-3.2.tar.gz"

    license("BSD-3-Clause")

    version("3.2", sha256="f5dd5c358d91cc53dd0fa09a6bcfa904607c3004c23548802ea8107f84ad9b81")

    depends_on("c", type="build")
    depends_on("py-setuptools@46.4:", type="build")
    depends_on("py-wheel", type="build")
