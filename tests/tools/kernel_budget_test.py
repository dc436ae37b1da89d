#!/usr/bin/env python3
"""Tests of tools/kernel_budget with statistics made by hand, and with those of a kernel that spills.

    kernel_budget_test.py SOURCE_DIRECTORY [VKFORMER_COMPILE [unittest arguments]]"""
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()
COMPILE = None
TARGET = "radv:navi21"


def executable(**statistics):
    return {"name": "compute", "statistics": dict(
        {"spills": 0, "scratch_bytes": 0, "occupancy": 8, "instructions": 1000}, **statistics)}


def pipeline(kernel="softmax", constants=None, benchmark=True, chosen=True, executables=None, **statistics):
    return {"kernel": kernel, "constants": constants or {"local_size": 64}, "for": "softmax, bert",
            "groups": [1, 1, 1], "uses": 1, "benchmark": benchmark, "chosen": chosen,
            "executables": executables or [executable(**statistics)]}


class BudgetCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.budget = self.folder / "budget.tsv"

    def run_tool(self, command, pipelines, **more):
        report = self.folder / "statistics.json"
        if isinstance(pipelines, list):
            report.write_text(json.dumps(dict({"device": {}, "pipelines": pipelines}, **more)))
        else:
            report = pipelines
        return subprocess.run([SOURCE / "tools/kernel_budget", command, TARGET, report, self.budget],
                              capture_output=True, encoding="utf-8", timeout=120, check=False)

    def write(self, *pipelines):
        result = self.run_tool("write", list(pipelines))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def expect_violation(self, *pipelines, says, **more):
        result = self.run_tool("check", list(pipelines), **more)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(says, result.stdout)
        self.assertIn("1 violations", result.stdout)

    def expect_kept(self, *pipelines, **more):
        result = self.run_tool("check", list(pipelines), **more)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class BudgetTest(BudgetCase):
    def test_what_is_written_is_kept(self):
        self.write(pipeline(), pipeline("matmul"))
        self.expect_kept(pipeline(), pipeline("matmul"))
        self.expect_kept(pipeline(instructions=1050, occupancy=9), pipeline("matmul"))

    def test_each_violation_is_a_sentence(self):
        self.write(pipeline())
        self.expect_violation(pipeline(spills=3), says="softmax (local_size=64) for softmax, bert spills 3 "
                                                       "values; its budget allows 0.")
        self.expect_violation(pipeline(scratch_bytes=64), says="uses 64 bytes of scratch memory")
        self.expect_violation(pipeline(occupancy=7), says="occupancy of 7; its budget wants 8.")
        self.expect_violation(pipeline(instructions=1051), says="has 1051 instructions; its budget is 1000")

    def test_the_worst_executable_counts(self):
        self.write(pipeline(executables=[executable(), executable(occupancy=16)]))
        self.expect_violation(pipeline(executables=[executable(spills=1), executable()]), says="spills 1")
        self.expect_violation(pipeline(executables=[executable(), executable(occupancy=4)]),
                              says="occupancy of 4")

    def test_spills_alone(self):
        def spills(*pipelines, says=None, **more):
            result = self.run_tool("spills", list(pipelines), **more)
            self.assertEqual(result.returncode, 1 if says else 0, result.stdout + result.stderr)
            self.assertIn(says or " 0 violations", result.stdout)

        wild = pipeline("matmul", spills=9, scratch_bytes=64)
        spills(pipeline(), pipeline("matmul", instructions=99999, occupancy=1))
        spills(pipeline(), wild, says="matmul (local_size=64) for softmax, bert spills 9 values; its budget allows 0.")
        spills(pipeline("matmul", scratch_bytes=64), says="uses 64 bytes of scratch memory")
        spills(pipeline("matmul", spills=9, chosen=False))
        head = "target\tkernel\tconstants\tspills\tscratch_bytes\toccupancy\tinstructions\treason\n"
        row = f"{TARGET}\tmatmul\tlocal_size=64\t9\t64\t-\t-\t"
        self.budget.write_text(head + row + "64 registers\n")
        spills(pipeline(), wild)
        spills(pipeline("matmul", spills=10), says="spills 10 values; its budget allows 9.")
        spills(pipeline("matmul"), says="may spill by its row, but does not; remove the row.")
        spills(pipeline(), says="matmul (local_size=64) may spill by a row, but no plan needs it")
        spills(pipeline(), only="softmax")
        self.budget.write_text(head + row + "\n")
        spills(wild, says="gives no reason")

    def test_rows_and_pipelines_belong_together(self):
        self.write(pipeline(), pipeline("matmul"))
        self.expect_violation(pipeline(), says="no plan needs it")
        self.expect_kept(pipeline(), only="softmax")
        self.expect_violation(pipeline(), pipeline("matmul"), pipeline("argmax"), says="has no row")

    def test_pipelines_of_checks_may_not_spill_where_they_are_chosen(self):
        self.write(pipeline())
        check = {"benchmark": False, "spills": 5, "occupancy": 1, "instructions": 9999}
        self.expect_kept(pipeline(), pipeline("forced", chosen=False, **check))
        self.expect_violation(pipeline(), pipeline("chosen", **check), says="spills 5 values")

    def test_spills_are_never_written(self):
        self.write(pipeline(spills=3))
        self.expect_violation(pipeline(spills=3), says="its budget allows 0")

    def test_an_exception_has_a_reason_and_never_grows(self):
        self.write(pipeline())
        text = self.budget.read_text()
        row = f"{TARGET}\tsoftmax\tlocal_size=64\t0\t0\t8\t1000\t"
        self.assertIn(row, text)
        exception = row.replace("\t0\t0\t", "\t5\t0\t")
        self.budget.write_text(text.replace(row, exception))
        self.expect_violation(pipeline(spills=4), says="gives no reason")
        self.budget.write_text(text.replace(row, exception + "registers run out"))
        self.expect_kept(pipeline(spills=4))
        self.write(pipeline(spills=7))
        self.expect_violation(pipeline(spills=7), says="its budget allows 5")
        self.write(pipeline(spills=4))
        self.assertIn("\t4\t0\t8\t1000\tregisters run out", self.budget.read_text())
        self.write(pipeline())
        self.assertEqual(self.budget.read_text(), text)

    def test_other_targets_keep_their_rows(self):
        self.write(pipeline())
        other = "nvk:172\tsoftmax\tlocal_size=64\t0\t0\t8\t1000\t\n"
        self.budget.write_text(self.budget.read_text() + other)
        self.write(pipeline(instructions=500))
        self.assertIn(other, self.budget.read_text())
        self.expect_kept(pipeline(instructions=500))

    def test_what_a_driver_does_not_state_is_not_held(self):
        silent = pipeline(executables=[{"name": "cs", "statistics": {"instructions": 10}}])
        self.write(silent)
        self.assertIn("\t-\t-\t-\t10\t", self.budget.read_text())
        self.expect_kept(silent)

    def test_files_that_are_wrong(self):
        self.assertIn("cannot be read", self.run_tool("check", self.folder / "none").stderr)
        self.assertIn("holds no pipelines", self.run_tool("check", []).stderr)
        self.budget.write_text("nvk:172\ta\n")
        self.assertIn("budget.tsv:1] has 2 columns", self.run_tool("check", [pipeline()]).stderr)
        self.budget.unlink()
        failed = dict(pipeline(), error="out of memory")
        self.assertIn("out of memory", self.run_tool("check", [failed]).stderr)
        self.assertIn("without --only", self.run_tool("write", [pipeline()], only="a").stderr)


class RecordingTest(unittest.TestCase):
    """What estimates go by, from texts of a compiler."""

    TEXT = """BB0:
\tv_fmac_f32_e32 v1, v2, v3                                   ; 562eb36f
BB1:
\tbuffer_load_b128 v[4:7], v0, s[0:3], 0 offen                ; e05d0000
\tv_fmac_f32_e32 v25, v111, v89                               ; 562eb36f
\tv_pk_fma_f16 v1, v2, v3, v4                                 ; cc0e4001
\ts_cbranch_scc1 BB1                                          ; bfa20000
BB2:
\ts_endpgm                                                    ; bfb00000
"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        loader = importlib.machinery.SourceFileLoader("kernel_budget", str(SOURCE / "tools/kernel_budget"))
        self.tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("kernel_budget", loader))
        loader.exec_module(self.tool)
        self.tool.ESTIMATES = self.folder
        (self.folder / "a.txt").write_text(self.TEXT)
        named = dict(executable(occupancy=4, instructions=6), subgroup_size=64, ir=["a.txt"])
        self.pipelines = [dict(pipeline("matmul", {"local_size": 64, "block": 8}, executables=[named]),
                               model=True)]
        self.report = {"device": {"caps": {"name": "a GPU"}}, "pipelines": self.pipelines}

    def rows(self):
        return json.loads((self.folder / "radv-navi21.json").read_text())["kernels"]

    def check(self, *more):
        path = self.folder / "statistics.json"
        path.write_text(json.dumps(dict(self.report, pipelines=[*self.pipelines, *more])))
        return list(self.tool.check_recording(TARGET, *self.tool.read_statistics(path)))

    def test_a_row_has_the_hot_loop(self):
        self.assertEqual(self.tool.record(TARGET, self.report, self.folder), (1, 1))
        # Four instructions, of which a packed one does two of three multiply-adds.
        self.assertEqual(self.rows(), [["matmul", [64, 8], 64, 4, 6, 4, 3, 1]])

    def test_texts_under_headings(self):
        printed = self.folder / "printed"
        printed.write_text(f"PIPELINE matmul local_size=64 block=8 (bert)\n{self.TEXT}")
        self.assertEqual(self.tool.record(TARGET, self.report, printed), (1, 1))
        self.assertEqual(self.rows()[0][5:], [4, 3, 1])

    def test_texts_of_nothing_are_an_error(self):
        (self.folder / "a.txt").write_text("nothing")
        with self.assertRaisesRegex(self.tool.BudgetError, "holds no text"):
            self.tool.record(TARGET, self.report, self.folder)

    def test_models_have_their_pipelines_in_it(self):
        self.assertEqual(self.check(), [], "without a recording nothing is held")
        self.tool.record(TARGET, self.report, self.folder)
        self.assertEqual(self.check(), [])
        self.assertEqual(self.check(pipeline("argmax")), [])
        found = self.check(dict(pipeline("argmax"), model=True))
        self.assertEqual(len(found), 1)
        self.assertIn("argmax (local_size=64) for softmax, bert is not in radv-navi21.json", found[0])
        self.report["device"]["caps"]["name"] = "another"
        self.assertIn("could do something else", self.check()[0])


class SpillingKernelTest(BudgetCase):
    """A kernel with tiles that no GPU has the registers for, by the distribution's AMD compiler."""

    def compile(self, *words):
        result = subprocess.run(
            [SOURCE / "tools/drivers", "run", TARGET, COMPILE, "--benchmark", "--only", "matmul_tiled__f32_f32",
             *words], capture_output=True, encoding="utf-8", timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr[-2000:])

    def statistics(self, *words):
        path = self.folder / f"compiled{len(words)}.json"
        self.compile("--statistics", path, *words)
        return path, json.loads(path.read_text())

    def setUp(self):
        super().setUp()
        manifests = list(Path("/usr/share/vulkan/icd.d").glob("radeon_icd*.json"))
        if COMPILE is None or not manifests:
            self.skipTest("needs vkformer_compile and the distribution's AMD driver")
        self.recorded = self.folder / "recorded.json"
        self.compile("--record", self.recorded)

    def test_a_kernel_that_spills_breaks_the_budget(self):
        kept, report = self.statistics("--replay", self.recorded)
        self.assertIn("RADV", report["device"]["name"])
        self.assertEqual(report.pop("only"), "matmul_tiled__f32_f32")
        kept.write_text(json.dumps(report))
        self.assertEqual(self.run_tool("write", kept).returncode, 0)
        self.assertEqual(self.run_tool("check", kept).returncode, 0)
        spilling, _ = self.statistics("--replay", self.recorded, "--set", "block=128", "--set", "tile_m=16",
                                      "--set", "tile_n=16", "--set", "local_size=64")
        result = self.run_tool("check", spilling)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"tile_m=16 .* spills \d+ values; its budget allows 0\.")
        self.assertRegex(result.stdout, r"tile_m=16 .* uses \d+ bytes of scratch memory")

    def test_a_recording_is_compiled_to_the_same(self):
        _, made = self.statistics("--replay", self.recorded)
        _, direct = self.statistics()
        self.assertEqual(made["planned_for"], direct["device"])
        self.assertTrue(direct["pipelines"])
        for one in made["pipelines"] + direct["pipelines"]:
            one.pop("compile_ms")
            one.pop("uses")
            for part in one["executables"]:
                part["raw"] = {name: value for name, value in part["raw"].items() if "hash" not in name.lower()}
        self.assertEqual(made["pipelines"], direct["pipelines"])


if __name__ == "__main__":
    SOURCE = Path(sys.argv[1])
    if len(sys.argv) > 2:
        COMPILE = sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
