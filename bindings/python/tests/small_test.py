#!/usr/bin/env python3
"""The package without numpy: it knows the whole C interface, and spells words."""
import asyncio
import ctypes
import re
import subprocess
import sys
import unittest
from pathlib import Path

import places

sys.modules.setdefault("numpy", None)  # as if it was not installed, unless a test before this one has it
import vkformer  # noqa: E402
from vkformer import _c  # noqa: E402


class Description(unittest.TestCase):
    def test_it_has_what_the_abi_promises(self):
        promised = (places.SOURCE / "tests/c/abi.txt").read_text(encoding="utf-8").splitlines()
        names = {kind: {line.split()[1] for line in promised if line.startswith(kind + " ")}
                 for kind in ("function", "struct")}
        values = {line.split()[1]: int(line.split()[2]) for line in promised if line.startswith("constant ")}
        self.assertEqual(set(_c.functions), names["function"])
        self.assertEqual(set(_c.structs), names["struct"])
        self.assertLessEqual(values.items(), _c.constants.items())

    def test_the_library_has_every_function(self):
        with places.unrecorded():
            for name in _c.functions:
                self.assertTrue(callable(_c.function(name)), name)
        self.assertEqual(vkformer.api_version(), _c.constants["VKF_API_VERSION"])
        self.assertRegex(vkformer.library_version(), r"^\d+\.\d+\.\d+$")

    def test_structs_have_the_described_layout(self):
        for name, entry in _c.structs.items():
            self.assertEqual(ctypes.sizeof(_c.types[name]), entry["size"], name)
            for field in entry["fields"]:
                self.assertEqual(getattr(_c.types[name], field["name"]).offset, field["offset"], (name, field["name"]))

    def test_functions_by_their_names_in_c(self):
        error, room = _c.function("vkf_error_create")(), ctypes.POINTER(_c.types["vkf_tokenizer"])()
        status = _c.function("vkf_tokenizer_load")(b"absent", ctypes.byref(room), error)
        self.assertEqual(status, _c.constants["VKF_NOT_FOUND"])
        self.assertEqual(_c.function("vkf_error_status")(error), status)
        self.assertIn(b"absent", _c.function("vkf_error_message")(error))
        self.assertFalse(room)
        _c.function("vkf_error_free")(error)

    def test_each_status_has_an_exception(self):
        for name, value in _c.constants.items():
            if any(c["name"] == name and c.get("of") == "vkf_status" for c in _c.description["constants"]) and value:
                kind = vkformer.errors._CLASSES[value]
                self.assertEqual(vkformer.errors.status_name(value), name)
                words = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__.removesuffix("Error")).upper()
                self.assertIn(words, name)


class Words(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.device = vkformer.Device(**places.device_options())
        except vkformer.NotFoundError as error:
            raise unittest.SkipTest(f"no Vulkan device: {error}")
        cls.model = vkformer.load(places.MODELS / "g2p-en", cls.device)

    def test_generate(self):
        self.assertEqual(self.model.generate("attention").text, "AH0 T EH1 N SH AH0 N")
        self.assertEqual([str(t) for t in self.model.generate(["all", "you"])], ["AO1 L", "Y UW1"])

    def test_streams(self):
        with self.model.stream("attention") as stream:
            self.assertEqual("".join(stream), "AH0 T EH1 N SH AH0 N")
        self.assertEqual(stream.result.text, "AH0 T EH1 N SH AH0 N")

        async def read():
            return [piece async for piece in self.model.stream("all")], await self.model.aio.generate("all")

        pieces, whole = asyncio.run(read())
        self.assertEqual("".join(pieces), whole.text)

    def test_arrays_are_memoryviews(self):
        maps = self.model.attention("all")["cross"]
        for values in maps.layers.values():
            self.assertEqual(values.shape[1:], (maps.info.rows, maps.info.columns))
            for row in values.tolist()[0]:
                self.assertAlmostEqual(sum(row), 1, places=4)
        tensors = vkformer.Tensors({"a": [[1, 2], [3, 4]], "b": [0.5], "c": [True], "d": 7})
        self.assertEqual([tensors[name].tolist() for name in "abc"], [[[1, 2], [3, 4]], [0.5], [True]])
        self.assertEqual(memoryview(tensors["d"]).tobytes(), (7).to_bytes(8, sys.byteorder))

    def test_failures_are_exceptions(self):
        with self.assertRaisesRegex(vkformer.NotFoundError, "absent"):
            vkformer.load("absent")
        with self.assertRaisesRegex(TypeError, "nearest is .max_new_tokens"):
            self.model.generate("a", max_new_token=3)
        with self.assertRaises(vkformer.InvalidArgumentError):
            self.model.generate("a", beams=0)


class Program(unittest.TestCase):
    def test_the_module_is_the_program(self):
        done = subprocess.run([sys.executable, "-B", "-m", "vkformer", "--version"], capture_output=True, text=True,
                              check=False, cwd=Path(vkformer.__file__).parents[1])
        if "neither in the package nor in PATH" in done.stderr:
            self.skipTest("the program is not built")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(vkformer.library_version(), done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
