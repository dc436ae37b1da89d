#!/usr/bin/env python3
"""Tests of `vkformer bench` and `vkformer profile`: their structure, never their times.

    bench_test.py PROGRAM MODEL_DIR [unittest arguments]
"""
import csv
import json
import os
import sys
import tempfile
import unittest

import cli_support
from cli_support import NO_DRIVER, run, run_on_device, write_tensors

COLUMNS = ["section", "name", "value", "unit", "flops", "bytes", "gflops", "gbytes", "share",
           "bound", "hash", "kernels", "note"]


def report(rows):
    return {"format": "vkformer-bench-1", "date": "2026-11-01", "device": "made up",
            "rows": [{"section": "operators", "name": name, "value": value, "unit": unit,
                      "hash": hash_} for name, value, unit, hash_ in rows]}


class BenchCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(content, file)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def expect_ok(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def rows(self, made, section):
        return [row for row in made["rows"] if row["section"] == section]


class ReportTest(BenchCase):
    def test_roofline(self):
        made = json.loads(self.expect_ok(run_on_device("bench", "roofline", "--json")))
        self.assertEqual(made["format"], "vkformer-bench-1")
        values = {row["name"]: row["value"] for row in self.rows(made, "roofline")}
        for name in ("multiply-add f32", "multiply-add u32", "copy", "empty dispatch",
                     "submit and wait"):
            self.assertGreater(values[name], 0, name)
        self.assertGreaterEqual(values["barrier"], 0)
        self.assertEqual("multiply-add f16" in values, made["tier"] == "fp16")

    def test_operators_to_files(self):
        names = ("combine", "argmax")
        first = self.expect_ok(run_on_device(
            "bench", "operators", *names, "--rounds", "1", "--json", self.path("a.json"),
            "--csv", self.path("a.csv")))
        self.assertIn("of roofline", first)
        rows = self.rows(self.read("a.json"), "operators")
        self.assertEqual({row["name"].split(",")[0] for row in rows}, set(names))
        for row in rows:
            for key in ("value", "flops", "bytes", "gbytes", "share"):
                self.assertGreater(row[key], 0, key)
            self.assertRegex(row["hash"], "^[0-9a-f]{16}$")
            self.assertIn(row["bound"], ("compute", "bandwidth"))
        with open(self.path("a.csv"), encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(list(lines[0]), COLUMNS)
        self.assertEqual(len(lines), len(self.read("a.json")["rows"]))
        # The same bits again, and a comparison of both.
        self.expect_ok(run_on_device("bench", "operators", *names, "--rounds", "2", "--json",
                                     self.path("b.json")))
        again = self.rows(self.read("b.json"), "operators")
        self.assertEqual([row["hash"] for row in rows], [row["hash"] for row in again])
        compared = json.loads(self.expect_ok(
            run("bench", "compare", self.path("a.json"), self.path("b.json"), "--json",
                environment=NO_DRIVER)))
        self.assertTrue(all(row["same_output"] for row in compared))
        ratios = [row["ratio"] for row in compared]
        self.assertEqual(ratios, sorted(ratios))

    def test_a_model_directory(self):
        made = json.loads(self.expect_ok(run_on_device(
            "bench", "models", cli_support.MODEL, "--tokens", "5", "--new-tokens", "4",
            "--rounds", "1", "--json")))
        rows = {row["name"].removeprefix(cli_support.MODEL + " "): row
                for row in self.rows(made, "models")}
        for name in ("load", "given sizes, first run", "given sizes, 1 token", "device memory"):
            self.assertGreater(rows[name]["value"], 0, name)
        self.assertGreater(rows["decoding"]["flops"], 0)
        self.assertIn("tokens/s", rows["decoding"]["note"])

    def test_estimates_need_no_device(self):
        made = json.loads(self.expect_ok(run("bench", "models", "bert-base", "gpt2", "--estimate", "navi31",
                                             "--json", environment=NO_DRIVER)))
        self.assertEqual((made["device"], made["estimated"]), ("Radeon RX 7900 XTX", True))
        rows = {row["name"]: row for row in self.rows(made, "models")}
        self.assertEqual(list(rows), ["bert-base 1x128", "bert-base 32x128", "gpt2 prefill 512",
                                      "gpt2 decoding"])
        for row in rows.values():
            self.assertTrue(row["note"].startswith("estimated "), row["note"])
            self.assertGreater(row["value"], 0)
            self.assertLess(row["share"], 1)
        self.assertIn("tokens/s", rows["gpt2 decoding"]["note"])
        table = self.expect_ok(run("bench", "--estimate", "m1", environment=NO_DRIVER))
        self.assertIn("Apple M1", table)
        self.assertIn("whisper-tiny decoding", table)
        lines = [line for line in table.splitlines() if " ms " in line]
        self.assertGreater(len(lines), 10)
        for line in lines:
            self.assertIn("estimated ", line)
        unknown = run("bench", "--estimate", "navi99", environment=NO_DRIVER)
        self.assertEqual(unknown.returncode, 1)
        self.assertIn("navi31", unknown.stderr)
        self.assertEqual(run("bench", "--estimate", "m1", "roofline", environment=NO_DRIVER).returncode, 2)
        self.assertEqual(run("bench", environment=NO_DRIVER).returncode, 2)

    def test_a_device_is_estimated_by_its_roofline(self):
        made = json.loads(self.expect_ok(run_on_device("bench", "models", cli_support.MODEL, "--estimate",
                                                       "device", "--json")))
        row, = self.rows(made, "models")
        self.assertGreater(row["value"], 0)
        self.assertNotIn("latency", row["note"])

    def test_wrong_command_lines(self):
        for arguments in (("operators", "abacus"), ("compare", "a.json"),
                          ("models", "--rounds", "0")):
            self.assertEqual(run("bench", *arguments).returncode, 2, arguments)
        result = run_on_device("bench", "models", self.path("nothing"), "--in-process")
        self.assertEqual(result.returncode, 1)
        self.assertIn("bert-base", result.stderr)


class CompareTest(BenchCase):
    def compare(self, *arguments):
        before = self.write("before.json", report([("a", 2.0, "ms", "x"), ("b", 10.0, "GB/s", "y"),
                                                   ("gone", 1.0, "ms", "")]))
        after = self.write("after.json", report([("b", 5.0, "GB/s", "z"), ("a", 1.0, "ms", "x"),
                                                 ("new", 1.0, "ms", "")]))
        return run("bench", "compare", before, after, *arguments, environment=NO_DRIVER)

    def test_ratios_are_of_speed(self):
        rows = json.loads(self.expect_ok(self.compare("--json")))
        self.assertEqual([(row["row"], row["ratio"], row["same_output"]) for row in rows],
                         [("operators/b", 0.5, False), ("operators/a", 2.0, True)])
        self.assertIn("output differs", self.expect_ok(self.compare()))

    def test_fail_below(self):
        self.assertEqual(self.compare("--fail-below", "0.6").returncode, 1)
        self.assertEqual(self.compare("--fail-below", "0.5").returncode, 0)

    def test_other_files(self):
        good = self.write("good.json", report([("a", 1.0, "ms", "")]))
        for content in ([], {"rows": []}, {"format": "vkformer-bench-1", "rows": [1]}):
            other = self.write("other.json", content)
            result = run("bench", "compare", good, other)
            self.assertEqual(result.returncode, 1)
            self.assertIn("other.json", result.stderr)
        apart = self.write("apart.json", report([("b", 1.0, "ms", "")]))
        self.assertIn("no row in common", run("bench", "compare", good, apart).stderr)


class ProfileTest(BenchCase):
    def test_generation_of_a_text(self):
        made = json.loads(self.expect_ok(run_on_device(
            "profile", cli_support.MODEL, "attention", "--new-tokens", "3", "--rounds", "1",
            "--trace", self.path("trace.json"), "--json")))
        # The encoder, and a submit for each step.
        self.assertEqual(made["submits"], 4)
        self.assertEqual(sum(row["count"] for row in made["operators"]), made["dispatches"])
        names = {row["op"] for row in made["operators"]}
        self.assertLessEqual({"matmul", "attention", "layer_norm", "kv_append"}, names)
        trace = self.read("trace.json")
        events = [event for event in trace["traceEvents"] if event.get("cat") == "dispatch"]
        self.assertEqual(len(events), made["dispatches"])
        for event in events:
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
            for key in ("kernel", "shapes", "flops", "bytes"):
                self.assertIn(key, event["args"])
        starts = [event["ts"] for event in events]
        self.assertEqual(starts, sorted(starts))

    def test_statistics(self):
        words = ("profile", cli_support.MODEL, "attention", "--new-tokens", "1", "--rounds", "1",
                 "--statistics")
        made = json.loads(self.expect_ok(run_on_device(*words, "--json")))
        text = self.expect_ok(run_on_device(*words))
        if made["kernels"] is None:
            self.assertIn("VK_KHR_pipeline_executable_properties", made["kernels_error"])
            self.assertIn(made["kernels_error"], text)
            return
        self.assertTrue(made["kernels"])
        for kernel in made["kernels"]:
            self.assertIn(kernel["kernel"], text)
            self.assertTrue(kernel["raw"])

    def test_a_pass_from_a_file(self):
        write_tensors(self.path("in"), {"input_ids": ("I64", [1, 3], [5, 6, 2]),
                                        "decoder_input_ids": ("I64", [1, 2], [0, 7])})
        text = self.expect_ok(run_on_device("profile", cli_support.MODEL, "--inputs",
                                            self.path("in"), "--rounds", "1"))
        self.assertIn("matmul", text)
        self.assertIn("in 1 submits", text)
        self.assertIn("energy:", text)

    def test_failures(self):
        write_tensors(self.path("in"), {"input_ids": ("I64", [1, 3], [5, 6, 2])})
        result = run_on_device("profile", cli_support.MODEL, "--inputs", self.path("in"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("decoder_input_ids", result.stderr)
        self.assertEqual(run("profile", self.path("nothing")).returncode, 1)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
