"""`python -m vkformer` is the program `vkformer`: the package's own, the build's, or the one in PATH."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys

from . import _c


def program() -> str:
    """Where the program is; FileNotFoundError if nowhere."""
    name = "vkformer.exe" if sys.platform == "win32" else "vkformer"
    for folder in _c.places():
        path = folder.parent / "bin" / name
        if path.exists():
            return str(path)
    found = shutil.which("vkformer")
    # A script that starts this module would start itself.
    if found and os.path.realpath(found) != os.path.realpath(sys.argv[0]):
        return found
    raise FileNotFoundError("The program vkformer is neither in the package nor in PATH. Build vkformer (tools/demo), "
                            "and install the package again.")


def main() -> int:
    path = program()
    if sys.platform == "win32":
        return subprocess.call([path, *sys.argv[1:]])
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as failure:
        sys.exit(f"vkformer: {failure}")
