#!/usr/bin/env python3
"""Tests of --shared: one job over the lines of a file by several processes.

    shared_test.py PROGRAM TASK_MODELS [unittest arguments]

TASK_MODELS is tests/tasks/golden. tests/clusters has the long versions."""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cli_support

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clusters"))
import data_jobs  # noqa: E402


def model(name):
    return os.path.join(cli_support.MODEL, name)


class SharedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def job(self, name="job", **options):
        options.setdefault("arguments", cli_support.device_arguments())
        return data_jobs.DataJob(cli_support.PROGRAM, model("embed"),
                                 os.path.join(self.folder, name), **options)

    def wait_for(self, process, condition):
        while not condition():
            self.assertIsNone(process.poll(), "the process ended too early")
            time.sleep(0.01)

    def refused(self, result, *words, code=1):
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_processes_that_are_killed(self):
        job = self.job(lines=60)
        wrong, _ = data_jobs.kill_at_random(job, processes=2, kills=3, seed=1, longest=1.0)
        self.assertIsNone(wrong)
        # A late process finds nothing to do, and loads no model for it.
        start = time.monotonic()
        self.assertEqual(job.run("--resume").returncode, 0)
        self.assertLess(time.monotonic() - start, 20)
        self.assertIsNone(job.wrong())

    def test_a_window_of_a_process_that_hangs_is_taken_once_it_ends(self):
        job = self.job(lines=24)
        first = job.start()
        # It holds the lock of a window from here on.
        self.wait_for(first, lambda: os.path.exists(job.output))
        first.send_signal(signal.SIGSTOP)
        second = job.start()
        with self.assertRaises(subprocess.TimeoutExpired):
            second.wait(timeout=3)
        first.kill()
        first.communicate()
        _, errors = second.communicate(timeout=300)
        self.assertEqual(second.returncode, 0, errors)
        self.assertIsNone(job.wrong())

    def test_a_bad_line_is_named_by_its_number(self):
        job = self.job(lines=30)
        job.lines[21] = "no JSON"
        job.write_input(["", *job.lines])  # the empty line counts as a line, not as an input
        job.arguments += ["--format", "json"]
        self.refused(job.run(), "in.jsonl, line 23", "JSON object")
        self.refused(job.run(), "in.jsonl, line 23")
        with open(job.output, encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["id"] for line in file], list(range(20)))
        going = self.job("going", lines=30)
        going.lines[21] = "no JSON"
        going.write_input(going.lines)
        result = going.run("--keep-going")
        self.refused(result, "1 inputs failed")
        lines = [json.loads(line) for line in going.written().splitlines()]
        self.assertEqual([line.get("id", 21) for line in lines], list(range(30)))
        self.assertIn("line 22", lines[21]["error"])

    def test_unequal_processes_are_refused_by_name(self):
        job = self.job(lines=8)
        self.assertEqual(job.run().returncode, 0)
        self.refused(job.run("--pooling", "first"), "[--pooling]", "first", "model")
        self.refused(job.run("--keep-going"), "[--keep-going]")
        other = os.path.join(self.folder, "other")
        shutil.copytree(job.model, other)
        job.model, same = other, job.model
        self.assertEqual(job.run().returncode, 0)  # another path, the same content
        with open(os.path.join(other, "model.safetensors"), "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\0\0\0\x3f")
        self.refused(job.run(), "[MODEL, model.safetensors]")
        shutil.copy(os.path.join(same, "model.safetensors"), other)
        os.remove(os.path.join(other, "config.json"))
        self.refused(job.run(), "[MODEL, config.json]", "missing")
        job.model = same
        job.write_input([*job.lines[:-1], json.dumps({"text": "other words", "id": 7})])
        self.refused(job.run(), "[--input]")
        self.refused(subprocess.run(job.command(), capture_output=True, encoding="utf-8"),
                     "--shared", code=2)

    def test_inputs_that_change_while_the_job_runs(self):
        job = self.job(lines=400)
        first = job.start()
        self.wait_for(first, lambda: os.path.exists(job.output))
        with open(job.input, "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"8")
        _, errors = first.communicate(timeout=600)
        self.assertEqual(first.returncode, 1)
        self.assertIn("in.jsonl", errors)
        self.assertIn("line 397", errors)

    def test_damaged_folders(self):
        job = self.job(lines=8)
        self.assertEqual(job.run().returncode, 0)
        folder = job.output + ".job"
        with open(folder + "/job.json", encoding="utf-8") as file:
            good = json.load(file)
        bad = []
        for change in ({"windows": None}, {"windows": {"format": "x", "list": []}}, {"identity": 5}):
            bad.append({**good, **change})
        for window in ([], [1], [0, 1, 1, ""], [1 << 62, 1, 1, ""], [5, -1, 1, ""],
                       [5, 1, 6, ""], [5, 1, 1, 0], ["5", 1, 1, ""]):
            bad.append({**good, "windows": {"format": "json", "list": [window]}})
        for text in ["", "[]", "{", *map(json.dumps, bad)]:
            with open(folder + "/job.json", "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(job.run(), "job.json")
        with open(folder + "/job.json", "w", encoding="utf-8") as file:
            json.dump(good, file)
        for text in ('{"windows":9,"bytes":1}', '{"windows":-1,"bytes":1}', '{"windows":1.5}', "x",
                     '{"windows":1,"bytes":99999999}'):
            with open(folder + "/written.json", "w", encoding="utf-8") as file:
                file.write(text)
            result = job.run()
            self.assertEqual(result.returncode, 1, text)
            self.assertRegex(result.stderr, r"written\.json|out\.jsonl")

    def test_outputs_that_cannot_be_written(self):
        job = self.job(lines=40)
        self.refused(subprocess.run(job.shared(output="/proc/out.jsonl"),
                                    capture_output=True, encoding="utf-8"), "/proc/out.jsonl.job")
        with open(job.output, "w", encoding="utf-8") as file:
            file.write("mine\n")
        self.refused(job.run(), "out.jsonl", "remove it")
        os.remove(job.output)

        def shrink():  # as a full disk: no file may grow beyond that
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (12000, 12000))
        full = subprocess.run(job.shared(), capture_output=True, encoding="utf-8",
                              preexec_fn=shrink, timeout=300)
        self.refused(full, "could not be written")
        self.assertEqual(job.run().returncode, 0)
        self.assertIsNone(job.wrong())

    def test_two_processes_that_do_not_share(self):
        job = self.job(lines=4000)
        first = subprocess.Popen(job.command())
        self.wait_for(first, lambda: os.path.exists(job.output) and os.path.getsize(job.output))
        second = subprocess.run(job.command(), capture_output=True, encoding="utf-8", timeout=300)
        first.kill()
        first.wait()
        self.refused(second, "written by another process", "--shared")

    def test_wrong_command_lines(self):
        for arguments in (("a",), ("--input", "-", "--output", "x"), ("--input", "x"), ()):
            result = cli_support.run("embed", model("embed"), "--shared", *arguments)
            self.refused(result, "embed", code=2)
        result = cli_support.run("embed", model("embed"), "a", "--shared-window", "5")
        self.refused(result, "--shared", code=2)

    def test_every_command_shares(self):
        runs = (("classify", "labels", "a fine day"), ("generate", "texts", "hello"),
                ("transcribe", "speech", json.dumps({"sound": self.sound()})))
        for command, name, line in runs:
            source, shared, alone = (os.path.join(self.folder, command + end)
                                     for end in (".in", ".out", ".alone"))
            with open(source, "w", encoding="utf-8") as file:
                file.write((line + "\n") * 5)
            more = ["--max-new-tokens", "4"] if command != "classify" else []
            base = [command, model(name), "--input", source, "--batch", "1", *more]
            for arguments in (["--output", alone], ["--output", shared, "--shared"]):
                result = cli_support.run_on_device(*base, *arguments)
                self.assertEqual(result.returncode, 0, result.stderr)
            with open(shared, encoding="utf-8") as one, open(alone, encoding="utf-8") as other:
                self.assertEqual(one.read(), other.read())

    def test_an_empty_input(self):
        job = self.job(lines=0)
        self.assertEqual(job.run().returncode, 0)
        self.assertEqual(job.written(), "")
        self.assertEqual(job.leftovers(), [])

    def sound(self):
        with open(model("speech/expected.json"), encoding="utf-8") as file:
            return model(json.load(file)["sounds"][0])


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
