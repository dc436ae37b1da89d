#!/usr/bin/env python3
"""shaders/spirv is of the sources beside it, and what is not is found (tools/build_spirv).

    build_spirv_test.py SOURCE
"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1))
KERNEL = "matmul_units__f32_any_f32_matrix"


class BuildSpirv(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for part in ("cmake", "shaders"):
            shutil.copytree(SOURCE / part, self.folder / part)
        self.spirv = self.folder / "shaders" / "spirv"

    def faults(self):
        """What a build of these sources would say of its SPIR-V; empty where all can be used."""
        run = subprocess.run(
            ["cmake", f"-DOUTPUT={self.spirv}", "-DCHECK=ON", "-P",
             self.folder / "cmake" / "build_spirv.cmake"], capture_output=True, text=True)
        self.assertEqual(run.returncode == 0, run.stderr == "")
        return " ".join(run.stderr.split())

    def append(self, file, text):
        path = self.folder / "shaders" / file
        path.write_text(path.read_text() + text)

    def test_the_spirv_of_the_source_is_of_its_shaders(self):
        run = subprocess.run([SOURCE / "tools" / "build_spirv", "--check"], capture_output=True,
                             text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        print(run.stdout)

    def test_another_shader_or_include_is_another_source(self):
        self.append("matmul_units.comp", "const uint kMore = 1u;\n")
        self.assertIn(f"{KERNEL}.spv was made of another source", self.faults())
        self.assertNotIn("attention_units", self.faults())
        self.append("include/online_softmax.glsl", "const uint kMore = 1u;\n")
        self.assertIn("attention_units__f32_f32_f32_matrix.spv was made", self.faults())
        self.assertIn("attention_units_nv__f32_f32_f32_matrix2.spv was made", self.faults())

    def test_comments_and_other_shaders_count_for_nothing(self):
        self.append("matmul_units.comp", "\n// A comment.\n")
        self.append("include/reduce.glsl", "const uint kMore = 1u;\n")
        self.assertEqual(self.faults(), "")

    def test_what_is_damaged_missing_or_too_much_is_found(self):
        spirv = self.spirv / f"{KERNEL}.spv"
        spirv.write_bytes(spirv.read_bytes()[:-4])
        self.assertIn(f"is not the one that {KERNEL}.txt describes", self.faults())
        spirv.unlink()
        self.assertIn(f"{KERNEL}.spv or {KERNEL}.txt is not there", self.faults())
        spirv.with_name("of_nothing.spv").write_bytes(b"")
        self.assertIn("of_nothing.spv is of no kernel", self.faults())


if __name__ == "__main__":
    unittest.main()
