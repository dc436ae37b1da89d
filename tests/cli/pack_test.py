#!/usr/bin/env python3
"""`vkformer pack`: a model in one file, what commands make of it, and damaged files.

    pack_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""
import hashlib
import json
import os
import shutil
import struct
import sys
import tempfile
import unittest

import cli_support
from cli_support import run

SOURCE = ""  # set below


class PackTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = os.path.join(SOURCE, "models/g2p-en")
        self.packed = self.path("g2p.vkfpack")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def good(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def refused(self, *arguments, code=1):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertRegex(lines[0], r"^vkformer: .+[.?]$")
        return lines[0]

    def read(self, path=None):
        with open(path or self.packed, "rb") as file:
            return file.read()

    def write(self, blob, path=None):
        with open(path or self.packed, "wb") as file:
            file.write(blob)

    def header(self):
        """The header of the pack, by the format's description in docs/files.md."""
        blob = self.read()
        self.assertEqual(blob[:8], b"VKFPACK1")
        size, = struct.unpack("<Q", blob[8:16])
        text = blob[64:64 + size]
        self.assertEqual(hashlib.sha256(text).digest(), blob[16:48])
        header = json.loads(text)
        self.assertEqual(header["size"], len(blob))
        self.assertEqual((64 + size) % header["alignment"], 0)
        files = {}
        for name, entry in header["files"].items():
            self.assertEqual(entry["offset"] % header["alignment"], 0)
            begin = 64 + size + entry["offset"]
            files[name] = blob[begin:begin + entry["size"]]
            self.assertEqual(hashlib.sha256(files[name]).hexdigest(), entry["sha256"])
        return header, files

    def test_adapters_in_gguf_files(self):
        golden = os.path.join(SOURCE, "tests/golden/adapter-two")
        base, adapter = os.path.join(golden, "base"), os.path.join(golden, "second.gguf")
        self.good("pack", base, self.packed, "--adapter", adapter + "=0.5")
        header, files = self.header()
        self.assertEqual(header["adapters"], {"adapters/0": {"scale": 0.5}})
        self.assertEqual(files["adapters/0/adapter.gguf"], self.read(adapter))
        self.good("inspect", self.packed)
        line = self.refused("pack", self.model, self.packed, "--adapter", adapter)
        self.assertIn("qwen3, but [model_type]", line)
        line = self.refused("inspect", adapter)
        self.assertIn("is an adapter", line)

    def test_gguf_files_are_written(self):
        base = os.path.join(SOURCE, "tests/golden/adapter-two/base")
        small, large = self.path("small.gguf"), self.path("large.gguf")
        self.good("quantize", base, small)
        self.assertIn("tensors in f32", self.good("quantize", base, large, "--weights", "f32"))
        self.assertEqual(self.read(small)[:8], b"GGUF\3\0\0\0")
        self.assertLess(os.path.getsize(small), os.path.getsize(large))
        self.assertIn("qwen3", self.good("inspect", small))
        self.good("quantize", large, self.path("again.gguf"), "--weights", "q4_1",
                  "--adapter", os.path.join(SOURCE, "tests/golden/adapter-two/second.gguf"))
        line = self.refused("quantize", base, small, "--weights", "q8", code=2)
        self.assertIn("q8_0", line)
        line = self.refused("quantize", self.model, small, code=3)
        self.assertIn("[marian], which is not written", line)

    def test_directory(self):
        self.good("pack", self.model, self.packed)
        header, files = self.header()
        used = {name for name in os.listdir(self.model)
                if name.endswith((".json", ".safetensors"))}
        self.assertEqual(set(files), used)
        for name, content in files.items():
            self.assertEqual(content, self.read(os.path.join(self.model, name)))
        for arguments in (["tokenize", "{}", "attention"], ["inspect", "{}", "--tensors"]):
            by_pack, by_folder = (self.good(*[word.replace("{}", path) for word in arguments])
                                  for path in (self.packed, self.model))
            self.assertTrue(by_pack.startswith(by_folder.replace(self.model, self.packed)), by_pack)
        # The same model gives the same bytes.
        again = self.path("again")
        self.good("pack", self.model, again)
        self.assertEqual(self.read(again), self.read())

    def test_inspect(self):
        made = json.loads(self.good("pack", self.model, self.packed, "--json"))
        seen = json.loads(self.good("inspect", self.packed, "--json"))["pack"]
        self.assertEqual(made.pop("path"), self.packed)
        self.assertEqual(made, seen)
        blob = self.read()
        for file in seen["files"]:
            content = blob[file["offset"]:file["offset"] + file["size"]]
            self.assertEqual(hashlib.sha256(content).hexdigest(), file["sha256"])
        text = self.good("inspect", self.packed)
        self.assertIn("SHA-256       " + seen["sha256"], text)
        self.assertIn("verified", text)

    def test_weights(self):
        self.good("pack", self.model, self.packed, "--weights", "q8")
        self.assertEqual(os.listdir(self.folder), ["g2p.vkfpack"])
        quantized = self.path("q8")
        self.good("quantize", self.model, quantized)
        _, files = self.header()
        self.assertEqual(files["model.safetensors"],
                         self.read(os.path.join(quantized, "model.safetensors")))
        self.good("inspect", self.packed)

    def test_adapters(self):
        case = os.path.join(SOURCE, "tests/golden")
        name = next(name for name in sorted(os.listdir(case))
                    if os.path.exists(os.path.join(case, name, "adapter/adapter_config.json")))
        model, adapter = (os.path.join(case, name, part) for part in ("base", "adapter"))
        self.good("pack", model, self.packed, "--adapter", adapter + "=0.5")
        header, files = self.header()
        self.assertEqual(header["adapters"], {"adapters/0": {"scale": 0.5}})
        self.assertIn("adapters/0/adapter_model.safetensors", files)
        self.assertIn("scale 0.5", self.good("inspect", self.packed))
        self.good("pack", model, self.packed, "--adapter", adapter, "--weights", "f16")
        self.assertNotIn("adapters", self.header()[0])
        self.assertIn(self.path("none"),
                      self.refused("pack", model, self.packed, "--adapter", self.path("none")))

    def test_gguf(self):
        case = os.path.join(SOURCE, "tests/golden")
        name = next(name for name in sorted(os.listdir(case))
                    if os.path.exists(os.path.join(case, name, "model/model.gguf")))
        model = os.path.join(case, name, "model/model.gguf")
        self.good("pack", model, self.packed)
        self.assertEqual(set(self.header()[1]), {"model.gguf"})
        self.assertEqual(self.good("inspect", self.packed).split("packed ")[0],
                         self.good("inspect", model))

    def test_refused(self):
        self.assertIn("does not exist", self.refused("pack", self.path("none"), self.packed))
        self.assertIn(self.path("no/where"),
                      self.refused("pack", self.model, self.path("no/where")))
        self.good("pack", self.model, self.packed)
        self.assertIn("packed model already", self.refused("pack", self.packed, self.path("b")))
        self.assertIn("is a packed model", self.refused("quantize", self.packed, self.path("b")))
        shutil.copytree(self.model, self.path("model"))
        os.remove(self.path("model/model.safetensors"))
        self.refused("pack", self.path("model"), self.path("b"))
        self.assertFalse(os.path.exists(self.path("b")))

    def test_damaged(self):
        self.good("pack", self.model, self.packed)
        blob = self.read()
        seen = json.loads(self.good("inspect", self.packed, "--json"))["pack"]
        for file in seen["files"]:
            with self.subTest(file=file["name"]):
                at = file["offset"] + file["size"] // 2
                self.write(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1:])
                text = self.refused("inspect", self.packed)
                self.assertIn(f"[{file['name']}] has the SHA-256", text)
                self.assertIn("copy the file again", text)
        for size in (8, 63, 64, 100, 4096, len(blob) - 1):
            with self.subTest(size=size):
                self.write(blob[:size])
                self.assertIn("is a damaged packed model", self.refused("inspect", self.packed))
                self.refused("tokenize", self.packed, "a")
        self.write(blob[:70] + b"?" + blob[71:])
        self.assertIn("has not the SHA-256", self.refused("inspect", self.packed))
        self.write(b"VKFPACK9" + blob[8:])
        self.assertIn("of the version [9]", self.refused("inspect", self.packed, code=3))
        # Bytes after the pack are not its own.
        self.write(blob + b"more")
        self.good("inspect", self.packed)


if __name__ == "__main__":
    cli_support.PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
