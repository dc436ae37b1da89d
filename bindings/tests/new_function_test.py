#!/usr/bin/env python3
"""A new C function, struct, constant and option reach every language without further ado.

    new_function_test.py SOURCE_DIRECTORY

Copies the headers, adds to them, and makes the description and the bindings of the copy. Where Mono is installed,
what was generated is compiled, too."""
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NEW = """
enum { VKF_COLOR_RED = 1 };
// A color of a tensor.
typedef struct vkf_color_options {
  uint32_t struct_size;
  int32_t red;               // VKF_COLOR_RED
  const char* const* names;  // of colors
  size_t name_count;
} vkf_color_options;
// Paints a tensor. [one]
VKFORMER_API vkf_status vkf_tensors_paint(vkf_tensors* tensors, const vkf_color_options* options,
                                          vkf_bytes** text, vkf_error* error);
"""


def main():
    source = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("include", "bindings"):
            shutil.copytree(source / name, copy / name)
        (copy / "tools").mkdir()
        shutil.copy(source / "tools" / "c_description", copy / "tools")
        header = copy / "include/vkformer/c/tensors.h"
        text = header.read_text(encoding="utf-8")
        end = text.rindex("#ifdef __cplusplus")
        header.write_text(text[:end] + NEW + text[end:], encoding="utf-8")

        stale = subprocess.run([copy / "tools/c_description", "--check"], capture_output=True, text=True, check=False)
        if stale.returncode == 77:
            print(stale.stdout, end="")
            return 77
        assert stale.returncode == 1 and "is not what the headers say" in stale.stderr, stale
        subprocess.run([copy / "tools/c_description"], check=True)
        api = json.loads((copy / "bindings/c_api.json").read_text(encoding="utf-8"))
        entry = next(f for f in api["functions"] if f["name"] == "vkf_tensors_paint")
        assert (entry["about"], entry["threads"], entry["fails"]) == ("Paints a tensor.", "one", True), entry
        struct = next(s for s in api["structs"] if s["name"] == "vkf_color_options")
        assert struct["size"] == 24 and struct["fields"][2]["count"] == "name_count", struct

        # Python: types and keywords. The library of the source does not have it, and says so.
        program = ("from vkformer import _c, _calls; keep = _calls.Keep(); "
                   "made = _calls.fill('vkf_color_options', {'red': 1, 'names': ['a', 'b']}, keep); "
                   "assert made.struct_size == 24 and made.name_count == 2 and made.names[1] == b'b'; "
                   "assert _c.constants['VKF_COLOR_RED'] == 1; _c.function('vkf_tensors_paint')")
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False,
                              cwd=copy / "bindings/python", env={"VKFORMER_LIBRARY_DIR": str(source / "build/release/lib")})
        assert "[vkf_tensors_paint] is not in the library, which is older" in done.stderr, done.stderr

        generated = copy / "generated"
        subprocess.run([copy / "bindings/csharp/generate", generated], check=True)
        assert "vkf_tensors_paint(VkfTensorsHandle tensors, vkf_color_options* options, out VkfBytesHandle text, " \
               "VkfErrorHandle error)" in (generated / "Native.cs").read_text(encoding="utf-8")
        assert "public string[] Names { get; set; }" in (generated / "Options.cs").read_text(encoding="utf-8")
        if shutil.which("mcs"):
            subprocess.run(["mcs", "-langversion:latest", "-unsafe", "-target:library", f"-out:{folder}/Vkformer.dll",
                            "-r:System.Core.dll", *(copy / "bindings/csharp/src").glob("*.cs"), *generated.glob("*.cs")], check=True)
    print("new function: it reaches Python and C#")
    return 0


if __name__ == "__main__":
    sys.exit(main())
