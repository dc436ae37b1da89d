"""Makes the wheel (PEP 517): the package, the description of the C interface, the library and the program.

The library is that of $VKFORMER_BUILD_DIR, or of build/release of this source tree, which is built by
CMake if it is not there. The wheel is for every Python 3 of this machine's system: nothing in it is
compiled against Python. Equal files give equal wheels."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
METADATA = """Metadata-Version: 2.1
Name: vkformer
Version: {version}
Summary: Transformer models on any Vulkan device
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy>=1.23; extra == "numpy"
Provides-Extra: figures
Requires-Dist: numpy>=1.23; extra == "figures"
Requires-Dist: matplotlib>=3.5; extra == "figures"
Description-Content-Type: text/markdown

"""


def version():
    """The project's, from the one place where it is written."""
    return re.search(r"project\(vkformer VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def build_folder():
    """A folder with lib/ and bin/."""
    if "VKFORMER_BUILD_DIR" in os.environ:
        return Path(os.environ["VKFORMER_BUILD_DIR"])
    folder = SOURCE / "build" / "release"
    if not (folder / "lib" / "libvkformer.so.0").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=SOURCE, check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "vkformer", "vkformer_conformance", "vkformer_cli"],
                       check=True)
    return folder


def stripped(file):
    """A program or library without debugging symbols, where binutils are installed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(file.resolve(), folder))
        if shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", copy], check=False)
        return copy.read_bytes()


def contents():
    """(name in the wheel, bytes, permissions) of all files but RECORD."""
    built, info = build_folder(), f"vkformer-{version()}.dist-info"
    for file in sorted((HERE / "vkformer").iterdir()):
        if file.is_file():
            yield f"vkformer/{file.name}", file.read_bytes(), 0o644
    yield "vkformer/c_api.json", (SOURCE / "bindings" / "c_api.json").read_bytes(), 0o644
    libraries = sorted(built.glob("lib/libvkformer.so.[0-9]")) + sorted(built.glob("lib/libvkformer_conformance.so.[0-9]"))
    if not libraries:
        raise FileNotFoundError(f"[{built}] has no lib/libvkformer.so.0. Build vkformer there first.")
    for library in libraries:
        yield f"vkformer/lib/{library.name}", stripped(library), 0o644
    program = built / "bin" / "vkformer"
    if program.exists():
        yield "vkformer/bin/vkformer", stripped(program), 0o755
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    yield f"{info}/METADATA", (METADATA.format(version=version()) + (HERE / "README.md").read_text(encoding="utf-8")).encode(), 0o644
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: vkformer\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode(), 0o644
    yield f"{info}/entry_points.txt", b"[console_scripts]\nvkformer = vkformer.__main__:main\n", 0o644
    yield f"{info}/LICENSE", (SOURCE / "LICENSE").read_bytes(), 0o644


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into a folder and returns its name, as pip asks for it."""
    name = f"vkformer-{version()}-py3-none-{re.sub(r'[-.]', '_', sysconfig.get_platform())}.whl"
    record = []
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content, permissions):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | permissions) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)

        for path, content, permissions in contents():
            add(path, content, permissions)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}\n")
        path = f"vkformer-{version()}.dist-info/RECORD"
        add(path, "".join([*record, f"{path},,\n"]).encode(), 0o644)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("There is no source distribution: the library's sources are the whole source tree. Build a wheel.")
