"""Puts the library and the program into the wheel: from $VKFORMER_BUILD_DIR, or from build/release of
this source tree, which is built by CMake if it is not there."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution
from wheel.bdist_wheel import bdist_wheel

SOURCE = Path(__file__).resolve().parents[2]


def version():
    """The project's, from the one place where it is written."""
    found = re.search(r"project\(vkformer VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"))
    return found[1]


def build_folder():
    """A folder with lib/ and bin/."""
    if "VKFORMER_BUILD_DIR" in os.environ:
        return Path(os.environ["VKFORMER_BUILD_DIR"])
    folder = SOURCE / "build" / "release"
    if not any((folder / "lib").glob("libvkformer.so.*")):
        subprocess.run(["cmake", "--preset", "release"], cwd=SOURCE, check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "vkformer", "vkformer_conformance", "vkformer_cli"],
                       check=True)
    return folder


class BuildWithLibrary(build_py):
    """Copies what is not Python into the package, under the names that the loader asks for."""

    def run(self):
        super().run()
        package = Path(self.build_lib) / "vkformer"
        built = build_folder()
        shutil.copy(SOURCE / "bindings" / "c_api.json", package)
        (package / "lib").mkdir(exist_ok=True)
        (package / "bin").mkdir(exist_ok=True)
        for name in ("vkformer", "vkformer_conformance"):
            for library in built.glob(f"lib/lib{name}.so.[0-9]"):
                shutil.copy(library.resolve(), package / "lib" / library.name)
                self.strip(package / "lib" / library.name)
        if not (package / "lib").iterdir():
            sys.exit(f"setup: [{built}] has no lib/libvkformer.so.0. Build vkformer there first.")
        program = built / "bin" / "vkformer"
        if program.exists():
            shutil.copy(program, package / "bin" / "vkformer")
            self.strip(package / "bin" / "vkformer")

    @staticmethod
    def strip(file):
        """Without debugging symbols, where binutils are installed."""
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", file], check=False)


class WheelOfAnyPython(bdist_wheel):
    """The package is pure Python over a library: one wheel for all versions of Python, for one system."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfAnyPython})
