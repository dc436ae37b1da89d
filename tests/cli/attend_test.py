#!/usr/bin/env python3
"""Tests of `vkformer attend` and `vkformer inspect --attention` with all kinds of models.

    attend_test.py PROGRAM REPOSITORY [unittest arguments]

Models are those of tests/tasks/golden, tests/golden and models/g2p-en."""
import json
import math
import os
import struct
import sys
import tempfile
import unittest

import cli_support
from cli_support import NO_DRIVER, read_tensors, run, run_on_device, write_tensors

ROOT = ""  # the repository


def task(name):
    return os.path.join(ROOT, "tests/tasks/golden", name)


def golden(name):
    return os.path.join(ROOT, "tests/golden", name, "model")


def g2p():
    return os.path.join(ROOT, "models/g2p-en")


def picture_size(path):
    """Width and height of a PNG file."""
    with open(path, "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n", path
    return struct.unpack(">II", head[16:24])


def identity(size):
    return [[float(i == j) for j in range(size)] for i in range(size)]


def rollout(matrices):
    """Abnar and Zuidema (2020), of the means over heads, lowest layer first."""
    size = len(matrices[0])
    flow = identity(size)
    for matrix in matrices:
        mixed = [[0.5 * a + 0.5 * i for a, i in zip(*rows)]
                 for rows in zip(matrix, identity(size))]
        mixed = [[value / sum(row) for value in row] for row in mixed]
        flow = [[sum(row[k] * flow[k][j] for k in range(size)) for j in range(size)]
                for row in mixed]
    return flow


class AttendCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def ok(self, *arguments):
        result = run_on_device(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def answer(self, *arguments):
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, code, *arguments, words=()):
        result = run_on_device(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def check_matrix(self, answer, rows=None, columns=None):
        matrix = answer["matrix"]
        self.assertEqual(len(matrix), len(answer["rows"]))
        if rows is not None:
            self.assertEqual((len(matrix), len(matrix[0])), (rows, columns))
        for row in matrix:
            self.assertEqual(len(row), len(answer["columns"]))
            self.assertAlmostEqual(sum(row), 1, places=4)


    def golden_item(self, name):
        """A file with the first item of a golden case's inputs."""
        path = self.path(name + ".safetensors")
        with open(os.path.join(ROOT, "tests/golden", name, "inputs.safetensors"), "rb") as file:
            blob = file.read()
        size = struct.unpack("<Q", blob[:8])[0]
        header, kept = json.loads(blob[8:8 + size]), b""
        header.pop("__metadata__", None)
        for entry in header.values():
            begin, end = entry["data_offsets"]
            item = blob[8 + size + begin:8 + size + end][:(end - begin) // entry["shape"][0]]
            entry["shape"][0] = 1
            entry["data_offsets"] = [len(kept), len(kept) + len(item)]
            kept += item
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + kept)
        return path

    def golden_maps(self, name, inputs):
        """The maps that the session hands out of these inputs, name -> (shape, values)."""
        out = self.path("maps.safetensors")
        self.ok("run", golden(name), "--inputs", inputs, "--attentions", "--outputs", out)
        return {key: tensor[1:] for key, tensor in read_tensors(out).items() if "attentions." in key}

    def check_map(self, answer, tensor, item=-1, head=None):
        """Against one item of a map (B, H, T, S): one head, or the mean over heads."""
        (items, heads, rows, columns), values = tensor
        first = item % items * heads * rows * columns
        chosen = range(heads) if head is None else [head]
        self.check_matrix(answer, rows, columns)
        for t in range(rows):
            for s in range(columns):
                parts = [values[first + (h * rows + t) * columns + s] for h in chosen]
                self.assertAlmostEqual(answer["matrix"][t][s], sum(parts) / len(parts), places=5)


class KindsOfModelsTest(AttendCase):
    def test_encoder(self):
        answer = self.answer("attend", task("embed"), "the cat")
        self.check_matrix(answer)
        self.assertEqual((answer["kind"], answer["layer"], answer["head"]), ("self", 1, "all"))
        self.assertEqual(answer["rows"], answer["columns"])
        self.assertEqual(answer["rows"][0], "[CLS]")
        again = self.answer("attend", task("embed"), "the cat", "--kind", "encoder")
        self.assertEqual(again["matrix"], answer["matrix"])

    def test_decoder(self):
        prompt = self.answer("attend", task("texts"), "the cat", "--no-generate")
        self.check_matrix(prompt)
        self.assertEqual(prompt["text"], "")
        for r, row in enumerate(prompt["matrix"]):
            self.assertEqual(row[r + 1:], [0] * (len(row) - r - 1))
        longer = self.answer("attend", task("texts"), "the cat", "--max-new-tokens", "4")
        tokens = len(prompt["rows"])
        self.assertEqual(longer["rows"][:tokens], prompt["rows"])
        self.assertGreater(len(longer["rows"]), tokens)
        self.assertLessEqual(len(longer["rows"]), tokens + 3)
        self.assertTrue(longer["text"])
        for got, wanted in zip(longer["matrix"], prompt["matrix"]):
            for a, b in zip(got, wanted):
                self.assertAlmostEqual(a, b, places=5)
        forced = self.answer("attend", task("texts"), "the", "--target", " cat")
        self.assertEqual(forced["rows"], prompt["rows"])

    def test_encoder_decoder(self):
        answer = self.answer("attend", g2p(), "attention", "--layer", "0", "--head", "2")
        self.check_matrix(answer, 8, 10)
        self.assertEqual((answer["kind"], answer["head"]), ("cross", 2))
        self.check_matrix(self.answer("attend", g2p(), "cat", "--kind", "encoder"))

    def test_teacher_forcing(self):
        answer = self.answer("attend", g2p(), "cat", "--target", "abc")
        self.assertEqual(answer["rows"], ["a", "b", "c", "</s>"])
        self.check_matrix(answer, 4, 4)
        self.fails(1, "attend", g2p(), "cat", "--no-generate", words=["--target"])
        self.fails(1, "attend", task("embed"), "cat", "--target", "x", words=["--target"])

    def test_pictures(self):
        answer = self.answer("attend", task("picture-labels"), task("picture-1.png"))
        self.check_matrix(answer)
        self.assertEqual(answer["columns"][:3], ["[CLS]", "0,0", "0,1"])

    def test_captions(self):
        answer = self.answer("attend", task("captions"), task("picture-0.png"),
                             "--max-new-tokens", "5")
        self.check_matrix(answer)
        self.assertEqual(answer["kind"], "cross")
        self.assertEqual(answer["columns"][:2], ["[CLS]", "0,0"])

    def test_sounds(self):
        answer = self.answer("attend", task("speech"), task("sound-0.wav"), "--max-new-tokens",
                             "5", "--kind", "cross")
        self.check_matrix(answer)
        self.assertEqual(answer["columns"][0], "0.00s")

    def test_token_ids_and_tensors(self):
        ids = self.answer("attend", golden("bert-base"), "--ids", "3,4,5")
        self.check_matrix(ids, 3, 3)
        self.assertEqual(ids["rows"], ["#3", "#4", "#5"])
        write_tensors(self.path("in.safetensors"), {"input_ids": ("I64", [1, 3], [3, 4, 5])})
        tensors = self.answer("attend", golden("bert-base"), self.path("in.safetensors"))
        self.assertEqual(tensors["matrix"], ids["matrix"])
        write_tensors(self.path("two.safetensors"), {"input_ids": ("I64", [2, 1], [3, 4])})
        self.fails(1, "attend", golden("bert-base"), self.path("two.safetensors"),
                   words=["(2, ", "--item 0 to 1"])
        last = self.answer("attend", golden("bert-base"), self.path("two.safetensors"), "--item", "1")
        self.check_matrix(last, 1, 1)
        self.fails(1, "attend", golden("bert-base"), "--ids", "3", "--item", "1", words=["item 1"])

    def test_windows_are_refused(self):
        self.fails(3, "attend", golden("swin-base"), "x.png", words=["swin", "windows"])

    def test_stages(self):
        model, inputs = golden("cvt-bare"), self.golden_item("cvt-bare")
        maps = self.golden_maps("cvt-bare", inputs)
        self.assertEqual(len(maps), 6)
        last = self.answer("attend", model, inputs)
        self.assertEqual((last["kind"], last["layer"]), ("self", 5))
        self.check_map(last, maps["attentions.5"])
        self.check_map(self.answer("attend", model, inputs, "--layer", "0"), maps["attentions.0"])
        self.fails(1, "attend", model, inputs, "--layer", "6", words=["0 to 5"])
        self.fails(3, "attend", model, inputs, "--rollout", words=["one layer at a time"])
        self.ok("attend", model, inputs, "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            page = file.read()
        # A choice for each size of maps, that of the last layer first.
        shown = [page.find('"kind":"self (%s)"' % size) for size in ("5 x 2", "9 x 4", "36 x 9")]
        self.assertTrue(0 < shown[0] < shown[1] < shown[2])

    def test_segmenters(self):
        model, inputs = golden("sam-points"), self.golden_item("sam-points")
        maps = self.golden_maps("sam-points", inputs)
        self.assertEqual(len(maps), 9)
        for name, tensor in maps.items():
            kind, layer = name.split("_attentions.")
            several = ("--item", str(tensor[0][0] - 1)) if tensor[0][0] > 1 else ()
            answer = self.answer("attend", model, inputs, "--kind", kind, "--layer", layer, *several)
            self.assertEqual((answer["kind"], answer["layer"]), (kind, int(layer)))
            self.check_map(answer, tensor)
        # The last of those that tell most, of the first prompt.
        usual = self.answer("attend", model, inputs, "--item", "0")
        self.assertEqual((usual["kind"], usual["layer"]), ("cross", 4))
        one = self.answer("attend", model, inputs, "--kind", "encoder", "--layer", "1", "--head", "1")
        self.check_map(one, maps["encoder_attentions.1"], head=1)
        self.fails(1, "attend", model, inputs, words=["cross_attentions.4", "--item 0 to"])
        self.fails(1, "attend", model, inputs, "--kind", "cross", "--layer", "5", "--item", "0",
                   words=["0 to 4"])
        self.fails(1, "attend", model, inputs, "--item", "99", words=["item 99"])
        self.fails(2, "attend", model, inputs, "--kind", "self", words=["cross, encoder and decoder"])
        self.ok("attend", model, inputs, "--item", "0", "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            page = file.read()
        for kind in ("cross (10 x 25)", "cross (25 x 10)", "decoder", "encoder (9 x 9)"):
            self.assertTrue('"kind":"%s"' % kind in page, kind)

    def test_pictures_of_segmenters(self):
        model, picture, overlay = task("segments"), task("picture-1.png"), self.path("overlay.png")
        answer = self.answer("attend", model, picture)
        self.assertEqual((answer["kind"], answer["layer"]), ("cross", 4))
        # Without prompts these are the model's own tokens, of the score and of masks.
        self.assertEqual((len(answer["rows"]), answer["columns"][:5]),
                         (5, ["0,0", "0,1", "0,2", "0,3", "1,0"]))
        back = self.answer("attend", model, picture, "--layer", "3")
        self.assertEqual((back["rows"], back["columns"]), (answer["columns"], answer["rows"]))
        for more in ((), ("--query", "2"), ("--kind", "encoder")):
            self.ok("attend", model, picture, "--overlay", overlay, *more)
            self.assertEqual(picture_size(overlay), picture_size(picture))
        self.fails(3, "attend", model, picture, "--overlay", overlay, "--layer", "3",
                   words=["patches"])

    def test_detectors(self):
        for name, kinds in (("detr-bare", ("cross", "encoder", "decoder")),
                            ("rt_detr-bare", ("encoder", "decoder"))):
            model, inputs = golden(name), self.golden_item(name)
            maps = self.golden_maps(name, inputs)
            for kind in kinds:
                answer = self.answer("attend", model, inputs, "--kind", kind)
                self.assertEqual(answer["kind"], kind)
                self.check_map(answer, maps["%s_attentions.%d" % (kind, answer["layer"])])
            self.assertEqual(self.answer("attend", model, inputs)["kind"], kinds[0])
        self.fails(2, "attend", model, inputs, "--kind", "cross", words=["encoder and decoder"])


    def test_kinds_that_are_not_there(self):
        self.fails(1, "attend", task("embed"), "a", "--kind", "cross", words=["cross_attentions"])


class RolloutTest(AttendCase):
    def test_product_over_layers(self):
        layers = [self.answer("attend", task("embed"), "a fox", "--layer", str(layer))["matrix"]
                  for layer in range(2)]
        answer = self.answer("attend", task("embed"), "a fox", "--rollout")
        self.assertEqual(answer["kind"], "rollout")
        for got, wanted in zip(answer["matrix"], rollout(layers)):
            for a, b in zip(got, wanted):
                self.assertAlmostEqual(a, b, places=5)

    def test_of_an_encoder_decoder_it_is_the_encoder(self):
        self.check_matrix(self.answer("attend", g2p(), "cat", "--rollout"), 4, 4)

    def test_what_it_does_not_go_with(self):
        for more in (("--layer", "1"), ("--head", "1"), ("--kind", "cross"),
                     ("--grid", self.path("a.png"))):
            self.fails(2, "attend", g2p(), "cat", "--rollout", *more, words=["--rollout"])


class TemperatureTest(AttendCase):
    def test_hot_is_even_and_cold_is_sharp(self):
        hot = self.answer("attend", task("embed"), "the cat", "--temperature", "1e8")
        for row in hot["matrix"]:
            for value in row:
                self.assertAlmostEqual(value, 1 / len(row), places=4)
        cold = self.answer("attend", task("embed"), "the cat", "--temperature", "1e-8", "--head",
                           "0")
        for row in cold["matrix"]:
            self.assertGreater(max(row), 0.49)
        self.fails(1, "attend", task("embed"), "the cat", "--temperature", "0",
                   words=["temperature"])


class FilesTest(AttendCase):
    def test_grid(self):
        self.ok("attend", g2p(), "cat", "--grid", self.path("all.png"))
        self.ok("attend", g2p(), "cat", "--grid", self.path("one.png"), "--layer", "1")
        self.assertGreater(picture_size(self.path("all.png"))[0],
                           picture_size(self.path("one.png"))[0])

    def test_overlay_has_the_size_of_the_picture(self):
        for number in range(3):
            picture = task("picture-%d.png" % number)
            overlay = self.path("overlay.png")
            for more in ((), ("--rollout",), ("--query", "3", "--head", "1")):
                self.ok("attend", task("picture-labels"), picture, "--overlay", overlay, *more)
                self.assertEqual(picture_size(overlay), picture_size(picture))
        self.ok("attend", task("captions"), task("picture-0.png"), "--overlay", overlay,
                "--query", "1", "--max-new-tokens", "4")
        self.ok("attend", task("captions"), task("picture-0.png"), "--overlay", overlay,
                "--kind", "encoder", "--rollout", "--max-new-tokens", "4")

    def test_overlay_needs_patches(self):
        overlay = self.path("overlay.png")
        self.fails(3, "attend", task("embed"), "the cat", "--overlay", overlay,
                   words=["--overlay", "patches"])
        self.fails(3, "attend", task("captions"), task("picture-0.png"), "--kind", "decoder",
                   "--overlay", overlay, words=["patches"])
        self.fails(1, "attend", task("picture-labels"), task("picture-0.png"), "--query", "999",
                   "--overlay", overlay, words=["--query", "999"])

    def test_page(self):
        self.ok("attend", g2p(), "a<b>&</script>", "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("a&#60;b&#62;&#38;&#60;/script&#62;", page)
        self.assertEqual(page.count("</script>"), 2)
        for kind in ("cross", "encoder", "decoder"):
            self.assertIn('"kind":"%s"' % kind, page)
        self.ok("attend", g2p(), "cat", "--html", self.path("one.html"), "--kind", "cross",
                "--layer", "1", "--head", "3")
        self.assertLess(os.path.getsize(self.path("one.html")), len(page))

    def test_several_at_once(self):
        names = [self.path(name) for name in ("a.png", "b.png", "c.html")]
        self.ok("attend", task("embed"), "the cat", "--png", names[0], "--grid", names[1],
                "--html", names[2])
        for name in names:
            self.assertGreater(os.path.getsize(name), 500)

    def test_what_cannot_be_written(self):
        for option in ("--png", "--grid", "--html"):
            self.fails(1, "attend", g2p(), "cat", option, self.path("no/file"), words=["no/file"])


class CommandLineTest(AttendCase):
    def test_wrong_command_lines(self):
        for arguments in (("attend", g2p()), ("attend", g2p(), "a", "--ids", "1"),
                          ("attend", g2p(), "a", "--kind", "self"),
                          ("attend", task("embed"), "a", "--kind", "decoder"),
                          ("inspect", g2p(), "a text")):
            result = run(*arguments, environment=NO_DRIVER)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr)

    def test_layers_and_heads_that_are_not_there(self):
        self.fails(1, "attend", task("embed"), "a", "--layer", "2", words=["0 to 1"])
        self.fails(1, "attend", task("embed"), "a", "--layer=-1", words=["from 0"])
        self.fails(1, "attend", task("embed"), "a", "--head", "4", words=["0 to 3"])
        self.fails(1, "attend", g2p(), "a", "--kind", "encoder", "--layer", "4", words=["0 to 3"])


class InspectTest(AttendCase):
    def heads(self, *arguments):
        return self.answer("inspect", *arguments, "--attention")["heads"]

    def test_entropy_is_that_of_the_maps(self):
        heads = self.heads(task("texts"), "the quick fox")
        for entry in heads:
            answer = self.answer("attend", task("texts"), "the quick fox", "--no-generate",
                                 "--layer", str(entry["layer"]), "--head", str(entry["head"]))
            matrix = answer["matrix"]
            entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in matrix[1:]]
            most = [math.log(keys) for keys in range(2, len(matrix) + 1)]
            self.assertEqual(entry["rows"], len(matrix) - 1)
            self.assertAlmostEqual(entry["entropy"], sum(entropies) / len(entropies), places=3)
            self.assertAlmostEqual(entry["most_entropy"], sum(most) / len(most), places=5)
            self.assertAlmostEqual(entry["share"], sum(entropies) / sum(most), places=3)
            self.assertAlmostEqual(entry["predicted_entropy"],
                                   entry["most_entropy"] - entry["score_variance"] / 2, places=4)

    def test_high_temperatures_are_predicted_well_and_called_collapsed(self):
        for entry in self.heads(task("embed"), "the quick fox", "--temperature", "30"):
            self.assertAlmostEqual(entry["entropy"], entry["predicted_entropy"], places=3)
            self.assertEqual(entry["state"], "collapsed")
            self.assertAlmostEqual(entry["predicted_entropy"],
                                   entry["most_entropy"] - entry["score_variance"] / 1800,
                                   places=4)

    def test_low_temperatures_are_called_saturated(self):
        for entry in self.heads(task("embed"), "the quick fox", "--temperature", "1e-6"):
            self.assertEqual(entry["state"], "saturated")

    def test_something_is_built_in_for_every_kind_of_model(self):
        for model, kinds in ((task("embed"), {"self"}), (golden("bert-base"), {"self"}),
                             (golden("llama-gqa"), {"self"}), (golden("vit-base"), {"self"}),
                             (task("speech"), {"cross", "encoder", "decoder"})):
            heads = self.heads(model)
            self.assertEqual({entry["kind"] for entry in heads}, kinds, model)
            self.assertTrue(all(math.isfinite(entry["entropy"]) for entry in heads))

    def test_windows_prompts_and_stages(self):
        for name, rows in (("sam-points", {("encoder", 0): 2 * 4 * 9, ("encoder", 1): 2 * 25,
                                           ("decoder", 0): 4 * 10, ("cross", 1): 4 * 25}),
                           ("cvt-bare", {("self", 0): 2 * 36, ("self", 1): 2 * 9, ("self", 5): 2 * 5})):
            inputs = os.path.join(ROOT, "tests/golden", name, "inputs.safetensors")
            heads = self.heads(golden(name), inputs)
            order = [(entry["kind"], entry["layer"], entry["head"]) for entry in heads]
            self.assertEqual(len(set(order)), len(order))
            for (kind, layer), count in rows.items():
                entry = heads[order.index((kind, layer, 0))]
                self.assertEqual(entry["rows"], count, (name, kind, layer))
                self.assertTrue(0 < entry["share"] <= 1.000001, entry)

    def test_inputs(self):
        picture = self.heads(task("picture-labels"), "--picture", task("picture-1.png"))
        self.assertEqual(picture, self.heads(task("picture-labels"), task("picture-1.png")))
        one, two = self.heads(task("embed"), "the cat"), self.heads(task("embed"), "a fox ran")
        both = self.heads(task("embed"), "the cat", "a fox ran")
        for a, b, together in zip(one, two, both):
            self.assertEqual(together["rows"], a["rows"] + b["rows"])
            self.assertAlmostEqual(together["entropy"], (a["entropy"] * a["rows"] + b["entropy"] *
                                                         b["rows"]) / together["rows"], places=6)
        self.assertEqual(len(self.heads(g2p(), "cat", "--kind", "decoder")), 8)

    def test_table(self):
        lines = self.ok("inspect", task("embed"), "--attention").splitlines()
        self.assertEqual(len(lines), 1 + 2 * 4)
        self.assertEqual(lines[0].split(), ["kind", "layer", "head", "entropy", "share",
                                            "variance", "predicted", "state"])

    def test_failures(self):
        self.fails(1, "inspect", task("embed"), "--attention", "--collapsed", "0.1",
                   "--saturated", "0.5", words=["saturated"])
        self.fails(3, "inspect", golden("swin-base"), "--attention", words=["swin"])


if __name__ == "__main__":
    cli_support.PROGRAM, ROOT = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
