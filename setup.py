"""What pyproject.toml cannot say: an installation compiles what first calls of commands need.

What cannot be compiled here, or is not wanted (``HOPMAP_CARRIED=0``), is left to those calls.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))
WANTED = os.environ.get("HOPMAP_CARRIED") != "0"


class BuildAndCompile(build_py):
    """Compiles into the package that is built, or that stays where it is (``pip install -e``)."""

    def run(self) -> None:
        """Compile as well."""
        super().run()
        if not WANTED:
            return
        root = Path.cwd() if self.editable_mode else Path(self.build_lib).resolve()
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        words = [sys.executable, "-m", "hopmap", "warm-up", "--carry"]
        done = subprocess.run(
            words,
            cwd=root,
            env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            self.warn(f"first calls will compile, as it cannot be done now: {done.stdout}")
        else:
            self.announce(done.stdout.strip(), level=2)


class TaggedWheel(bdist_wheel):
    """A wheel with machine code is for one platform and one version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return version of Python, its ABI and platform, of what was built."""
        carried = Path(self.bdist_dir, "hopmap", "compiled")
        self.root_is_pure = not any(carried.rglob("*.gz"))
        return super().get_tag()


setup(
    cmdclass={"build_py": BuildAndCompile, "bdist_wheel": TaggedWheel},
    # to compile, hopmap has to run
    setup_requires=PROJECT["project"]["dependencies"] if WANTED else [],
)
