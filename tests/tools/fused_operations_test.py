#!/usr/bin/env python3
"""Tests of tools/fused_operations with short texts in the form of each compiler's.

    fused_operations_test.py SOURCE_DIRECTORY [unittest arguments]"""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()

# Of each instruction set: a text in which {} is an instruction; lines that are fused multiply-adds of
# floats; lines that are not.
NAK = """\
block 0 L0 [] -> {{
      r4        = mov rZ                            // ffma in a remark
{}
                  exit                              // delay=1
}} -> []
"""
NAK_FUSED = (
    "      r25       = ffma.ftz r117 r95 r25             // delay=1",
    "      r25..27   = dfma r2..4 r4..6 r8..10           // delay=1",
    "@p0   r25       = hfma2 r117 r95 r25                // delay=1",
    "      r8..12    = hmma.m16n8k16.f32 r0..4 r4..6 r8..12 // delay=1",
)
NAK_APART = (
    "      r25       = fmul.ftz r117 r95                 // delay=1",
    "      r25       = fadd.ftz r117 r95                 // delay=1",
    "      r25       = imad r117 r95 r25                 // delay=1",
    "      r26..28   = imad.wide.u32 r117 r95 r26..28    // delay=1",
    "      r25       = hadd2 r117 r95                    // delay=1",
    "      r25       = idp4.u8.u8 r1 r2 r3               // delay=1",
)
ACO = """\
BB0:
\ts_load_b32 s1, s[14:15], 0x28                               ; v_fma_f32
{}
\ts_endpgm                                                    ; bfb00000
"""
ACO_FUSED = (
    "\tv_fma_f32 v1, v2, v3, v4                                    ; d613",
    "\tv_fmac_f32_e32 v1, v2, v3                                   ; 562e",
    "\tv_fmaak_f32 v1, v2, v3, 0x3f800000                          ; 5a02",
    "\tv_fmamk_f32 v1, v2, 0x47800001, v3                          ; 5802",
    "\tv_fmac_f32_e32 v7, s35, v6                                  ; 560e",
    "\tv_dual_fmac_f32 v4, 2.0, v5 :: v_dual_fmac_f32 v1, v2, v3   ; c806",
    "\tv_mad_f32 v1, v2, v3, v4                                    ; d1c1",
    "\tv_mac_f32_e32 v1, v2, v3                                    ; 2c02",
    "\tv_mac_legacy_f32_e32 v1, v2, v3                             ; 0c02",
    "\tv_pk_fma_f16 v1, v2, v3, v4                                 ; cc0e",
    "\tv_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]                 ; d3b0",
    "\tv_fma_mix_f32 v1, v2, v3, v4                                ; cc20",
    "\tv_mad_mixlo_f16 v1, v2, v3, v4                              ; d3a1",
    "\tv_dual_mul_f32 v4, 0, v1 :: v_dual_fmac_f32 v5, v1, v2      ; ca10",
    "\tv_dot2_f32_f16 v1, v2, v3, v4                               ; cc13",
    "\tv_div_fmas_f32 v1, v2, v3, v4                               ; d637",
    "\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]   ; cc40",
)
ACO_APART = (
    "\tv_mul_f32_e32 v1, v2, v3                                    ; 1002",
    "\tv_dual_mul_f32 v4, 0, v1 :: v_dual_add_f32 v5, v1, v2       ; c8c8",
    "\tv_mad_u32_u24 v1, v2, v3, v4                                ; d60b",
    "\tv_mad_i32_i24 v1, v2, v3, v4                                ; d60a",
    "\tv_mad_u64_u32 v[0:1], null, v2, v3, v[4:5]                  ; d6fe",
    "\tv_mad_u16 v1, v2, v3, v4                                    ; d641",
    "\tv_pk_mad_u16 v1, v2, v3, v4                                 ; cc09",
    "\tv_dot4_i32_iu8 v1, v2, v3, v4                               ; cc16",
    "\ts_mul_i32 s1, s2, s3                                        ; 9681",
    # Products with powers of two are exact.
    "\tv_fmamk_f32 v2, v2, 0x47800000, v3                          ; 5804",
    "\tv_fma_f32 v14, 0x4f000000, v14, 0.5                         ; d613",
    "\tv_dual_mul_f32 v1, v2, v3 :: v_dual_fmac_f32 v4, -2.0, v5   ; c806",
    "\ts_mov_b32 s34, 0x47800000                                   ; bea2",
    "\tv_fmac_f32_e32 v7, s34, v6                                  ; 560e",
)
IR3 = """\
mov.f32f32 r0.x, c0.x
l12:
{}
end
; CL prog 56/1: 12 instr, 3 nops
"""
IR3_FUSED = ()
IR3_APART = (
    "(rpt3)mad.f32 r20.w, (r)c509.x, (r)r20.w, (r)r3.y",  # rounds its product
    "mul.f r1.x, r2.x, r3.x",
    "(rpt3)add.f r1.x, (r)r2.x, (r)r3.x",
    "mad.u24 r1.x, r2.x, r3.x, r4.x",
    "mad.s24 r1.x, r2.x, r3.x, r4.x",
    "(nop2) madsh.m16 r1.x, r2.x, r3.x, r4.x",
    "mad.u16 r1.x, r2.x, r3.x, r4.x",
)
BRW = """\
(W)     mov (8)                   r37           r0.1<0>
{}
(W)     send.ts (8)               null    r127   null    0x00000000  0x02000000   {{EOT,@1}}
"""
BRW_FUSED = (
    "        mad (8)                   r25:f         r25:f           r9.0<0>:f       r10:f",
    "(W&f0.0) mad.sat (16)             r26:hf        r26:hf          r9.1<0>:hf      r10:hf   {Compacted}",
    "        mac (8)                   r26:f         r26:f           r9.1<0>:f",
    "        lrp (8)                   r26:f         r26:f           r9.1<0>:f      r2:f",
)
BRW_APART = (
    "        mul (8)                   r25:f         r25:f           r9.0<0>:f",
    "        add (8)                   r25:f         r25:f           r9.0<0>:f",
    "        mad (8)                   r25:d         r25:d           r9.0<0>:w       r10:d",
    "        mach (8)                  r25:ud        r25:ud          r9:ud",
    "        add3 (8)                  r25:d         r25:d           r9.0<0>:d       r10:d",
    "        mov (8)                   r7:f          r58<2>:hf                         {$2.dst}  // mad (8) r1:f",
)
AGX = """\
block0 {{
   r0 = mov_imm #0x0
{}
   stop
}} -> block1
"""
AGX_FUSED = ("   r1 = ffma r2, r3, r4", "   11 = ffma 9, 6, 6", "   r1 = ffma r2, r3, 1.0", "   $r5 = ffma.sat r2, r3, r4", "   h5 = hfma r2, r3, r4", "   r5 = fma r1, r2, r3")
AGX_APART = ("   r1 = fmul r2, r3", "   r1 = fadd r2, r3", "   r1 = imad r2, r3, r4, #0", "   h1 = hmul r2, r3",
             # The reciprocal inside a division of integers.
             " 2fa: 8a298082               rcp      $r10, $r0", " 2fe: ba01c04a2930           ffma     $r0, ^r0.neg, $r10, 1.0",
             " 304: ba81c04229940200       ffma     $r0, ^r0, $r10, $r10", "    32      %6 = frcp %5",
             "    32      %9 = ffma %8, %6, %7 (1.000000)", "    32     %10 = ffma %9, %6, %6", "   6 = rcp 5",
             "   9 = ffma 5.neg, 6, #1.000000", "   10 = ffma 9, 6, 6")

SETS = {"nak": (NAK, NAK_FUSED, NAK_APART), "aco": (ACO, ACO_FUSED, ACO_APART), "ir3": (IR3, IR3_FUSED, IR3_APART),
        "brw": (BRW, BRW_FUSED, BRW_APART), "agx": (AGX, AGX_FUSED, AGX_APART)}


def load():
    path = str(SOURCE / "tools/fused_operations")
    loader = importlib.machinery.SourceFileLoader("fused_operations", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fused_operations", loader))
    loader.exec_module(module)
    return module


class FusedOperationsTest(unittest.TestCase):
    def run_on(self, texts):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            return subprocess.run([sys.executable, "-B", SOURCE / "tools/fused_operations", folder],
                                  capture_output=True, text=True, check=False)

    def test_each_form_of_a_fused_multiply_add_is_found(self):
        tool = load()
        for name, (text, fused, apart) in SETS.items():
            for line in fused:
                with self.subTest(instruction_set=name, line=line):
                    found = tool.fused_lines(text.format("\n".join([*apart, line])))
                    self.assertEqual(found, [line.strip()])

    def test_integers_and_single_operations_are_none(self):
        tool = load()
        for name, (text, _, apart) in SETS.items():
            with self.subTest(instruction_set=name):
                self.assertEqual(tool.fused_lines(text.format("\n".join(apart))), [])

    def test_every_text_is_read_and_others_are_passed_over(self):
        texts = {f"{name}.txt": text.format("\n".join(apart)) for name, (text, _, apart) in SETS.items()}
        texts["nir.txt"] = "32     %5 = ffma %1, %2, %3\n"
        texts["wrong.txt"] = NAK.format(NAK_FUSED[0])
        ran = self.run_on(texts)
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(ran.stdout.count("fused multiply-adds, the first"), 1)
        self.assertIn("6 texts read, 1 with", ran.stdout)

    def test_nothing_to_read_is_a_failure(self):
        ran = self.run_on({"nir.txt": "32     %5 = ffma %1, %2, %3\n"})
        self.assertEqual(ran.returncode, 2)
        self.assertIn("--reproducible --ir", ran.stderr)


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
