#!/usr/bin/env python3
"""The figures of the documents are those of tools/figures, and say what is so.

    figures_test.py SOURCE_DIRECTORY [PROGRAM]

Rooms lie above those that they may include (tools/lint/layout.py). With PROGRAM, the operator softmax of a device attends to the keys
that the figure of masks shows."""
import importlib.machinery
import importlib.util
import json
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

SOURCE, PROGRAM = Path(), None


def load(name):
    loader = importlib.machinery.SourceFileLoader("tool", str(SOURCE / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tool", loader))
    loader.exec_module(module)
    return module


def write_tensors(path, tensors):
    """safetensors of {name: (type, shape, numbers)}; F32 or I64."""
    header, data = {}, b""
    for name, (kind, shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}{'f' if kind == 'F32' else 'q'}", *numbers)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_floats(path, name):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])


class Figures(unittest.TestCase):
    def test_files_are_what_the_script_draws(self):
        done = subprocess.run([SOURCE / "tools" / "figures", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_files_are_svg_for_light_and_dark_pages(self):
        for path in sorted((SOURCE / "docs" / "figures").glob("*.svg")):
            text = path.read_text(encoding="utf-8")
            root = xml.etree.ElementTree.fromstring(text)
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg", path.name)
            self.assertIn("prefers-color-scheme: dark", text, path.name)
            self.assertNotIn("href", text, path.name)
            width = int(root.get("width"))
            for found in re.finditer(r' x="([\d.]+)"', text):
                self.assertLessEqual(float(found[1]), width, path.name)

    def test_rooms_lie_above_what_they_include(self):
        sys.path.insert(0, str(SOURCE / "tools" / "lint"))
        allowed = load("lint/layout.py").ROOMS
        row_of = {name: i for i, row in enumerate(load("figures").ROOM_ROWS) for name, _ in row}
        self.assertEqual(set(row_of), set(allowed) - {"reference"})  # tests alone include that one
        for room, others in allowed.items():
            for other in (others | {"base"}) - {room, "reference"} if room in row_of and room != "base" else ():
                if {room, other} != {"ops", "software"} and room not in ("measure", "tasks", "api", "c_api"):
                    self.assertLess(row_of[room], row_of[other], f"{room} includes {other}")

    def test_masks_are_those_of_the_operator(self):
        if PROGRAM is None:
            self.skipTest("no program is given")
        tool = load("figures")
        side = tool.SIDE
        with tempfile.TemporaryDirectory() as folder:
            inputs, outputs = Path(folder) / "in.safetensors", Path(folder) / "out.safetensors"
            for title, rule, asked in tool.MASKS:
                tensors = {"X": ("F32", [1, 1, side, side], [0.0] * side * side)}
                for name in ("global", "documents", "key_mask"):
                    if name in asked:
                        tensors[name] = ("I64", [1, side], asked[name])
                write_tensors(inputs, tensors)
                attributes = {name: value for name, value in asked.items() if name not in tensors}
                done = subprocess.run([PROGRAM, "op", "softmax", "--inputs", inputs, "--outputs", outputs, "--attributes",
                                       json.dumps(attributes)], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{title}: {done.stderr}")
                weights = read_floats(outputs, "Y")
                for i in range(side):
                    for j in range(side):
                        self.assertEqual(weights[i * side + j] > 0, rule(i, j), f"{title}: query {i}, key {j}")


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_file():
        PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
