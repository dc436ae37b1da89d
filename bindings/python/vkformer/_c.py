"""The C interface through ctypes, made at import from its description, c_api.json.

Nothing here is written for a single function. A function that is added to the headers of vkformer is in the
description. So it can be called from here. ctypes releases the interpreter's lock while a function of the library runs."""
from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent
_NUMBERS = {
    "char": ctypes.c_char, "int": ctypes.c_int, "float": ctypes.c_float, "double": ctypes.c_double,
    "size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint8_t": ctypes.c_uint8, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64,
}


def _read_description() -> dict[str, Any]:
    """The description lies in the package, or two folders above it in the source tree."""
    for path in (_FOLDER / "c_api.json", _FOLDER.parent.parent / "c_api.json"):
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
    raise ImportError(f"[c_api.json] is missing beside [{_FOLDER}]. Install the package again.")


description = _read_description()
#: Values of the constants by name.
constants: dict[str, int] = {entry["name"]: entry["value"] for entry in description["constants"]}
#: Entries of functions, structs and callbacks by name.
functions: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in description["functions"]}
structs: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in description["structs"]}
callbacks: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in description["callbacks"]}
handles: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in description["handles"]}
aliases: dict[str, str] = {entry["name"]: entry["type"] for entry in description["aliases"]}
_libraries = {entry["name"]: entry["library"] for entry in description["headers"]}

#: ctypes' classes of structs, callbacks and opaque handles by their names in C.
types: dict[str, Any] = {name: type(name, (ctypes.Structure,), {}) for name in (*handles, *structs)}


def base_of(spelling: str) -> str:
    """A type without `const` and asterisks."""
    return next(word for word in spelling.replace("*", " ").split() if word != "const")


def of_c(spelling: str) -> Any:
    """ctypes' type of a type that is written as in the description."""
    base, stars = base_of(spelling), spelling.count("*")
    if base in callbacks:
        return types[base]
    if base == "void":
        kind: Any = ctypes.c_void_p if stars else None
        stars -= 1
    elif base == "char" and stars:
        kind = ctypes.c_char_p
        stars -= 1
    else:
        kind = _NUMBERS.get(aliases.get(base, base)) or types[base]
    for _ in range(stars):
        kind = ctypes.POINTER(kind)
    return kind


for _name, _entry in callbacks.items():
    # A callback gets texts as bytes and fills buffers through addresses.
    types[_name] = ctypes.CFUNCTYPE(of_c(_entry["returns"]), *(of_c(p["type"]) for p in _entry["parameters"]))
for _name, _entry in structs.items():
    types[_name]._fields_ = [
        (f["name"], of_c(f["type"]) * f["array"] if "array" in f else of_c(f["type"])) for f in _entry["fields"]]
    types[_name].__doc__ = _entry["about"]


def _file_names(library: str) -> list[str]:
    if sys.platform == "win32":
        return [f"{library}.dll", f"lib{library}.dll"]
    if sys.platform == "darwin":
        return [f"lib{library}.0.dylib", f"lib{library}.dylib"]
    return [f"lib{library}.so.0", f"lib{library}.so"]


def places() -> list[Path]:
    """Folders where the library may be: that of $VKFORMER_LIBRARY_DIR alone; else the package's
    own, then that of a source tree's build."""
    chosen = os.environ.get("VKFORMER_LIBRARY_DIR")
    if chosen:
        return [Path(chosen)]
    return [_FOLDER / "lib", _FOLDER.parent.parent.parent / "build" / "release" / "lib"]


def _open(library: str) -> ctypes.CDLL:
    names = _file_names(library)
    for folder in places():
        for name in names:
            if (folder / name).exists():
                return ctypes.CDLL(str(folder / name))
    try:
        return ctypes.CDLL(names[0])  # where the system's loader looks
    except OSError as error:
        raise ImportError(
            f"[{names[0]}] is in none of {[str(folder) for folder in places()]} and not known to the "
            f"system's loader ({error}). Build vkformer (tools/demo), or set VKFORMER_LIBRARY_DIR to its folder."
        ) from None


_opened: dict[str, ctypes.CDLL] = {}
_made: dict[str, Any] = {}
_guard = threading.Lock()
#: Names of the functions that were called so far; None: not recorded. Tests use it.
called: set[str] | None = None


def function(name: str) -> Any:
    """A function of the library, with its types; AttributeError if the library has none such."""
    if called is not None:
        called.add(name)
    found = _made.get(name)
    if found is not None:
        return found
    entry = functions.get(name)
    if entry is None:
        raise AttributeError(f"[{name}] is no function of the C interface.")
    with _guard:
        library = _libraries[entry["header"]]
        if library not in _opened:
            _opened[library] = _open(library)
        try:
            made = getattr(_opened[library], name)
        except AttributeError:
            raise AttributeError(f"[{name}] is not in the library, which is older than this package. "
                                 "Install a newer library.") from None
        made.restype = of_c(entry["returns"])
        made.argtypes = [ctypes.POINTER(of_c(p["type"])) if "array" in p else of_c(p["type"])
                         for p in entry["parameters"]]
        _made[name] = made
    return made


def sized(name: str, **fields: Any) -> Any:
    """A struct with its size set, and all else zero."""
    made = types[name](**fields)
    if structs[name]["versioned"]:
        made.struct_size = ctypes.sizeof(made)
    return made
