#!/usr/bin/env python3
"""Tests of the `vkformer` program from outside.

    cli_test.py PROGRAM MODEL_DIR [unittest arguments]

VKFORMER_TEST_DEVICE, _TIER and _LIMITS choose what it runs on, as for all GPU tests."""
import json
import math
import os
import sys
import tempfile
import unittest

import cli_support
from cli_support import NO_DRIVER, read_tensors, run, run_on_device, write_tensors

COMMANDS = ("devices", "doctor", "help", "completion", "man", "inspect", "plan", "generate", "attend",
            "run", "tokenize", "bench", "profile", "case", "conformance", "compare")


def reference(name, count):
    with open(os.path.join(cli_support.MODEL, name), encoding="utf-8") as file:
        return dict(list(json.load(file).items())[:count])


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def expect_ok(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def expect_failure(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertFalse(result.stdout)


class ConformanceTest(CliTest):
    def test_reports_are_written_and_compared(self):
        a, b = self.path("a.json"), self.path("b.json")
        page, xml = self.path("page.html"), self.path("junit.xml")
        check = ("conformance", "--quick", "--filter", "combine/normal/7x33", "--repeats", "2")
        table = self.expect_ok(run_on_device(*check, "--json", a, "--html", page, "--junit", xml))
        self.assertIn("combine", table)
        with open(a, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["format"], "vkformer conformance 1")
        self.assertEqual(report["counts"]["failed"], 0)
        self.assertTrue(report["checks"])
        for path, words in ((page, ("<!DOCTYPE html>", report["device"]["uuid"])),
                            (xml, ("<testsuite", report["checks"][0]["name"]))):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for word in words:
                self.assertIn(word, text)
        report["checks"][0]["outcome"] = "failed"
        self.write("b.json", report)
        self.assertIn("0 checks differ", self.expect_ok(run("conformance", "diff", a, a)))
        worse = run("conformance", "diff", a, b)
        self.assertEqual(worse.returncode, 1)
        self.assertIn("passed -> failed", worse.stdout)

    def test_a_device_is_chosen_by_its_uuid(self):
        devices = json.loads(self.expect_ok(run("devices", "--json")))
        uuid = (devices if isinstance(devices, list) else devices["devices"])[0]["uuid"]
        listed = run("conformance", "--quick", "--filter", "combine/normal/1x1", "--repeats", "1",
                     "--device", uuid)
        self.assertIn("0 failed", self.expect_ok(listed))

    def test_names_that_no_check_has_and_damaged_reports_are_errors(self):
        self.expect_failure(run_on_device("conformance", "--filter", "no-such-check"), 1, "--list")
        broken = self.write("broken.json", "{}")
        self.expect_failure(run("conformance", "diff", broken, broken), 1, "no report")
        self.assertIn("softmax/", self.expect_ok(run("conformance", "--list")))


class UsageTest(CliTest):
    def test_help_has_examples_and_exit_codes(self):
        self.assertIn("Exit codes:", self.expect_ok(run("--help")))
        for command in COMMANDS:
            self.assertIn("Examples:", self.expect_ok(run(command, "--help")), command)

    def test_version(self):
        self.assertRegex(self.expect_ok(run("--version")), r"^vkformer \d+\.\d+\.\d+")

    def test_wrong_command_lines(self):
        model = cli_support.MODEL
        for arguments in ((), ("dance",), ("generate",), ("generate", model),
                          ("generate", model, "a", "--file", "-"),
                          ("generate", model, "a", "--batch", "0"),
                          ("generate", model, "a", "--tier", "best-of-all"),
                          ("generate", model, "a", "--limits", "iphone"),
                          ("plan", model, "--tokens", "0"), ("bench",),
                          ("attend", model, "a", "--kind", "self"), ("tokenize", model)):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr, arguments)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = run("tokenize", cli_support.MODEL, "a", stdout=full)
        self.assertEqual(result.returncode, 1)
        self.assertIn("[stdout]", result.stderr)


class WithoutDeviceTest(CliTest):
    def test_commands_that_need_a_device_say_that_there_is_none(self):
        for arguments in (("devices",), ("generate", cli_support.MODEL, "a"),
                          ("plan", cli_support.MODEL, "--tokens", "8"), ("bench", "roofline")):
            result = run(*arguments, environment=NO_DRIVER)
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertTrue(result.stderr)

    def test_inspect(self):
        info = json.loads(self.expect_ok(
            run("inspect", cli_support.MODEL, "--json", "--tensors", environment=NO_DRIVER)))
        self.assertEqual((info["family"], info["width"]), ("marian", 256))
        self.assertEqual((info["encoder_layers"], info["decoder_layers"]), (4, 2))
        self.assertEqual(len(info["tensors"]), info["tensor_count"])
        self.assertIn("marian", self.expect_ok(run("inspect", cli_support.MODEL)))

    def test_inspect_failures(self):
        missing = self.path("nothing")
        self.expect_failure(run("inspect", missing), 1, missing)
        self.write("odd/config.json", {"model_type": "abacus"})
        self.expect_failure(run("inspect", self.path("odd")), 3, "abacus")
        self.write("broken/config.json", "{\"model_type\": ")
        self.expect_failure(run("inspect", self.path("broken")), 1, "config.json")

    def test_tokenize(self):
        output = self.expect_ok(run("tokenize", cli_support.MODEL, "Ab", "", "--json"))
        first, second = map(json.loads, output.splitlines())
        self.assertEqual(first["tokens"][:2], ["a", "b"])
        self.assertEqual(first["offsets"][:2], [[0, 1], [1, 2]])
        self.assertEqual(first["ids"][-1], 1)
        self.assertEqual(len(first["type_ids"]), len(first["ids"]))
        self.assertEqual(second["ids"], [1])
        # CLI11 takes a text in brackets for a list.
        tokenizer = os.path.join(cli_support.MODEL, "../../tests/golden/tok-bpe-gpt2/model",
                                 "tokenizer.json")
        for text in "[1, 2]", "[MASK] and [MASK]", "[]", "[,]", "\x01[a]", "\x01", "[[a],[b]]", "[a":
            lines = self.expect_ok(run("tokenize", tokenizer, text, "--json")).splitlines()
            self.assertEqual([json.loads(line)["input"] for line in lines], [text])
        refused = run("devices", "[a, b]")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("[[a, b]]", refused.stderr)
        plain = self.expect_ok(run("tokenize", cli_support.MODEL, "Ab"))
        self.assertEqual(plain, "Ab\t%s\n" % " ".join(map(str, first["ids"])))


class GenerateTest(CliTest):
    def generate(self, *arguments, **options):
        return run_on_device("generate", cli_support.MODEL, *arguments, **options)

    def lines(self, *arguments, **options):
        return self.expect_ok(self.generate(*arguments, **options)).splitlines()

    def test_words_of_the_reference(self):
        words = reference("reference_greedy.json", 24)
        lines = self.lines(*words)
        self.assertEqual(lines, ["%s\t%s" % pair for pair in words.items()])

    def test_beams_find_no_less_than_greedy(self):
        words = list(reference("reference_beam4.json", 12))
        greedy = [json.loads(line) for line in self.lines(*words, "--json")]
        beams = [json.loads(line) for line in self.lines(*words, "--json", "--beams", "4",
                                                         "--max-new-tokens", "32")]
        for one, best in zip(greedy, beams):
            # Greedy scores are sums, beam scores are divided by the length.
            self.assertGreaterEqual(best["score"] + 1e-5, one["score"] / len(one["ids"]), best)

    def test_beam_score_is_the_mean_log_probability(self):
        for stopping in ("true", "never"):
            self.lines("veba", "--beams", "4", "--early-stopping", stopping)
        answer = json.loads(self.lines("veba", "--beams", "4", "--json")[0])
        source = json.loads(self.expect_ok(run("tokenize", cli_support.MODEL, "veba", "--json")))
        ids, inputs, outputs = answer["ids"], self.path("in"), self.path("out")
        write_tensors(inputs, {"input_ids": ("I64", [1, len(source["ids"])], source["ids"]),
                               "decoder_input_ids": ("I64", [1, len(ids)], [0] + ids[:-1])})
        self.expect_ok(run_on_device("run", cli_support.MODEL, "--inputs", inputs, "--outputs",
                                     outputs))
        _, shape, logits = read_tensors(outputs)["logits"]
        rows = [logits[t * shape[2]:(t + 1) * shape[2]] for t in range(len(ids))]
        total = sum(row[token] - math.log(sum(map(math.exp, row)))
                    for row, token in zip(rows, ids))
        self.assertAlmostEqual(answer["score"], total / len(ids), places=3)

    def test_json_in_order_whatever_the_batch(self):
        words = list(reference("reference_greedy.json", 20))
        file = self.write("words.txt", "\n".join(words) + "\n")
        answers = [[json.loads(line) for line in self.lines("--file", file, "--json", *batch)]
                   for batch in (("--batch", "1"), ("--batch", "7"), ("--batch", "64"))]
        self.assertEqual([answer["input"] for answer in answers[0]], words)
        for answer in answers[0]:
            self.assertEqual(list(answer), ["input", "text", "ids", "score"])
            self.assertNotIn(0, answer["ids"])
            self.assertEqual(answer["ids"][-1], 1)
            self.assertLess(answer["score"], 0)
        for other in answers[1:]:
            self.assertEqual([a["ids"] for a in other], [a["ids"] for a in answers[0]])

    def test_empty_lines_and_stdin(self):
        lines = self.lines("--file", "-", text="\ufeffall\r\n\nneed")
        self.assertEqual(lines, ["all\tAO1 L", "\t", "need\tN IY1 D"])
        empty = json.loads(self.lines("--file", "-", "--json", text="\n")[0])
        self.assertEqual(empty, {"input": "", "text": "", "ids": [], "score": None})
        self.assertEqual(self.lines("--file", "-", text=""), [])

    def test_inputs_named_like_commands(self):
        lines = self.lines("run", "plan")
        self.assertEqual([line.split("\t")[0] for line in lines], ["run", "plan"])

    def test_a_list_takes_one_argument(self):
        # What follows it is an input.
        device = os.environ.get("VKFORMER_TEST_DEVICE", "0")
        arguments = ["generate", cli_support.MODEL, "--devices", f"{device},{device}", "--shares", "1,2", "attention"]
        together = self.expect_ok(run(*arguments, "--quiet"))
        self.assertEqual(together, self.expect_ok(run_on_device("generate", cli_support.MODEL, "attention")))

    def test_divided_layers(self):
        device = os.environ.get("VKFORMER_TEST_DEVICE", "0")
        plays = os.path.join(os.path.dirname(cli_support.MODEL), "shakespeare")
        options = ("To be", "--max-new-tokens", "6", "--temperature", "0", "--quiet")
        together = self.expect_ok(run("generate", plays, *options, "--devices", f"{device},{device}", "--split", "tensors"))
        self.assertEqual(together, self.expect_ok(run_on_device("generate", plays, *options)))
        refused = run("generate", cli_support.MODEL, "all", "--devices", f"{device},{device}", "--split", "tensors")
        self.expect_failure(refused, 3, "not divided among devices", "--split layers")
        self.expect_failure(run_on_device("generate", plays, "all", "--split", "tensors"), 1, "--devices")

    def test_several_sequences(self):
        answer = json.loads(self.lines("read", "--beams", "4", "--return-sequences", "3",
                                       "--json")[0])
        scores = [sequence["score"] for sequence in answer["sequences"]]
        self.assertEqual(len(scores), 3)
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(answer["ids"], answer["sequences"][0]["ids"])
        self.assertEqual(len(self.lines("read", "--beams", "4", "--return-sequences",
                                        "3")[0].split("\t")), 4)

    def test_too_long(self):
        file = self.write("words.txt", "all\n" + "a" * 90 + "\n")
        self.expect_failure(self.generate("--file", file), 1, "line 2", "91", "64")
        self.assertEqual(len(self.lines("--file", file, "--truncate")), 2)

    def test_failures(self):
        self.expect_failure(self.generate("--file", self.path("nothing")), 1, "nothing")
        self.expect_failure(self.generate("a", "--max-new-tokens", "1000"), 1, "1000")
        self.expect_failure(run("generate", cli_support.MODEL, "a", "--device", "abacus"), 4,
                            "abacus")

    def test_quiet(self):
        result = self.generate("all", "--quiet", "--weights", "f32")
        self.expect_ok(result)
        self.assertEqual(result.stderr, "")


class AttendTest(CliTest):
    def attend(self, *arguments):
        return run_on_device("attend", cli_support.MODEL, "attention", *arguments)

    def test_matrix(self):
        for kind, rows, columns in (("cross", 8, 10), ("encoder", 10, 10), ("decoder", 8, 8)):
            answer = json.loads(self.expect_ok(self.attend("--kind", kind, "--layer", "1",
                                                           "--json")))
            self.assertEqual((len(answer["rows"]), len(answer["columns"])), (rows, columns))
            self.assertEqual(answer["layer"], 1)
            for row in answer["matrix"]:
                self.assertAlmostEqual(sum(row), 1, places=4)
            if kind == "decoder":
                self.assertEqual(answer["matrix"][0][1:], [0] * 7)

    def test_mean_over_heads(self):
        heads = [json.loads(self.expect_ok(self.attend("--head", str(head), "--json")))
                 for head in range(4)]
        mean = json.loads(self.expect_ok(self.attend("--json")))
        for r, row in enumerate(mean["matrix"]):
            for c, value in enumerate(row):
                self.assertAlmostEqual(value, sum(h["matrix"][r][c] for h in heads) / 4, places=5)

    def test_labels(self):
        answer = json.loads(self.expect_ok(self.attend("--layer", "1", "--json")))
        self.assertEqual("".join(answer["columns"][:-1]), "attention")
        self.assertEqual(" ".join(answer["rows"][:-1]), "AH0 T EH1 N SH AH0 N")
        self.assertEqual(answer["text"], "AH0 T EH1 N SH AH0 N")

    def test_picture_and_drawing(self):
        png = self.path("attention.png")
        self.expect_ok(self.attend("--layer", "1", "--png", png))
        with open(png, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        drawing = self.expect_ok(self.attend()).splitlines()
        self.assertEqual(len(drawing), 1 + 8)
        self.assertTrue(drawing[1].startswith("AH0"))

    def test_failures(self):
        self.expect_failure(self.attend("--layer", "2"), 1, "--layer", "0 to 1")
        self.expect_failure(self.attend("--head", "4"), 1, "--head", "0 to 3")
        self.expect_failure(self.attend("--head", "x"), 1, "--head")
        self.expect_failure(self.attend("--png", self.path("no/folder.png")), 1, "folder.png")


class RunTest(CliTest):
    def test_forward_pass(self):
        inputs, outputs = self.path("in.safetensors"), self.path("out.safetensors")
        write_tensors(inputs, {"input_ids": ("I64", [1, 4], [5, 6, 7, 1]),
                               "decoder_input_ids": ("I64", [1, 3], [0, 40, 41])})
        listing = json.loads(self.expect_ok(
            run_on_device("run", cli_support.MODEL, "--inputs", inputs, "--outputs", outputs,
                          "--attentions", "--json")))
        tensors = read_tensors(outputs)
        self.assertEqual(set(listing), set(tensors))
        self.assertEqual(tensors["logits"][1], [1, 3, 101])
        self.assertEqual(tensors["cross_attentions.1"][1], [1, 4, 3, 4])
        self.assertAlmostEqual(sum(tensors["cross_attentions.1"][2][:4]), 1, places=4)

    def test_bad_inputs(self):
        inputs, outputs = self.path("in.safetensors"), self.path("out.safetensors")
        arguments = ("run", cli_support.MODEL, "--inputs", inputs, "--outputs", outputs)
        self.expect_failure(run_on_device(*arguments), 1, "in.safetensors")
        write_tensors(inputs, {"input_ids": ("I64", [1, 2], [5, 101]),
                               "decoder_input_ids": ("I64", [1, 1], [0])})
        self.expect_failure(run_on_device(*arguments), 1, "input_ids", "101")
        self.assertFalse(os.path.exists(outputs))

    def test_plan(self):
        arguments = ("plan", cli_support.MODEL, "--tokens", "32")
        self.assertGreater(len(self.expect_ok(run_on_device(*arguments)).splitlines()), 20)
        for kind in ("forward", "prompt", "step"):
            plan = json.loads(self.expect_ok(run_on_device(*arguments, "--pass", kind, "--json")))
            self.assertEqual((plan["pass"], plan["source"]), (kind, 32))
            self.assertTrue(plan["plan"])


class DevicesTest(CliTest):
    def test_json_and_text(self):
        devices = json.loads(self.expect_ok(run("devices", "--json")))
        self.assertEqual([device["index"] for device in devices], list(range(len(devices))))
        self.assertTrue(devices)
        text = self.expect_ok(run("devices"))
        for device in devices:
            self.assertIn(device["name"], text)

    def test_bench_gemm(self):
        answer = json.loads(self.expect_ok(run_on_device(
            "bench", "gemm", "--m", "33", "--n", "65", "--k", "17", "--dtype", "f32", "--json")))
        for key in ("gflops", "ms_median", "roofline_share"):
            self.assertGreater(answer[key], 0, key)
        for key in ("device", "driver", "kernel", "hash"):
            self.assertTrue(answer[key], key)


class CaseTest(CliTest):
    def make_case(self, op, attributes, tensors):
        self.write("case/case.json", {"name": "case", "family": "op"})
        self.write("case/op.json", {"op": op, "attributes": attributes})
        write_tensors(self.path("case/inputs.safetensors"), tensors)
        return run_on_device("case", self.path("case"), "--output", self.path("actual"))

    def test_operator(self):
        self.expect_ok(self.make_case("gemm", {"alpha": 2.0}, {
            "A": ("F32", [2, 3], [1, 2, 3, 4, 5, 6]), "B": ("F32", [3, 1], [1, 10, 100])}))
        self.assertEqual(read_tensors(self.path("actual"))["Y"], ("F32", [2, 1], [642, 1308]))

    def test_unknown_operator(self):
        self.expect_failure(self.make_case("abacus", {}, {}), 3, "abacus")

    def test_misshaped_operator(self):
        self.expect_failure(self.make_case("gemm", {}, {
            "A": ("F32", [2, 3], [0] * 6), "B": ("F32", [2, 2], [0] * 4)}), 1, "K = 3")

    def test_broken_cases(self):
        output = self.path("actual")
        self.expect_failure(run_on_device("case", self.path("none"), "--output", output), 1,
                            "case.json")
        self.write("odd/case.json", {"name": "odd", "family": "abacus"})
        self.write("odd/model/config.json", {"model_type": "abacus"})
        self.expect_failure(run_on_device("case", self.path("odd"), "--output", output), 3,
                            "abacus")
        self.write("text/case.json", {"name": "text", "family": "op"})
        self.write("text/op.json", "[]")
        self.expect_failure(run_on_device("case", self.path("text"), "--output", output), 1,
                            "op.json")


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
