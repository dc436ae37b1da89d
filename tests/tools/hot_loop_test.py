#!/usr/bin/env python3
"""Tests of tools/hot_loop with short texts in the form of each compiler's.

    hot_loop_test.py SOURCE_DIRECTORY [unittest arguments]"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()

NAK = """\
block 0 L0 [] -> {
      r0        = s2r sr[0x21]                      // delay=2 wr:0
      r4        = mov rZ                            // delay=1
} -> [1]
block 1 L1 [0, 3] -> {
      r8..12    = ld.global.b128 [r2..4+0x10]       // delay=1
      r1        = ld.shared.strong.cta.b32 [r82], pT // delay=1
@!p0              bra pT L3                         // delay=1
} -> [2, 3]
block 2 L2 [1] -> {
      r25       = ffma.ftz r117 r95 r25             // delay=1
      r26       = ffma.ftz r117 r95 r26             // delay=1
      r27       = f2f.f32.f16 r5                    // delay=1
                  bra pT L3                         // delay=1
} -> [3]
block 4 L4 [3] -> {
      r9        = shfl.bfly r1 0x1 0x1f             // delay=1
                  st.global.b32 [r2..4], r9         // delay=1
      r30       = ffma.ftz r117 r95 r25             // delay=1
                  exit                              // delay=1
} -> []
block 3 L3 [1, 2] -> {
                  bar.sync                          // delay=1
@p0               bra pT L1                         // delay=1
} -> [1, 4]
"""
# As it is printed, the last two blocks stand in order.
NAK = NAK.split("block 4")[0] + "block 3" + NAK.split("block 3")[1] + "block 4" + (
    NAK.split("block 4")[1].split("block 3")[0])

ACO = """\
BB0:
\ts_load_b32 s1, s[14:15], 0x28                               ; f4000047 f8000028
\tv_fmac_f32_e32 v1, v2, v3                                   ; 562eb36f
BB1:
\tbuffer_load_b128 v[4:7], v0, s[0:3], 0 offen                ; e05d0000
\tds_load_b64 v[8:9], v1                                      ; d9d80000
\ts_barrier                                                   ; bfbd0000
\tv_fmac_f32_e32 v25, v111, v89                               ; 562eb36f
\tv_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, -1               ; ca100080 040400c1
\tv_max_u32_dpp v46, v46, v46 quad_perm:[1,0,3,2] row_mask:0xf ; 285c5cfa ff04b12e
\tv_cvt_f32_f16_e32 v1, v2                                    ; 7e021702
\tv_pk_fma_f16 v1, v2, v3, v4                                 ; cc0e4001
\ts_cbranch_scc1 BB1                                          ; bfa20000
BB2:
\tscratch_store_b32 off, v40, s32                             ; dc690000
\tbuffer_store_b32 v1, v0, s[0:3], 0 offen                    ; e0690000
\ts_endpgm                                                    ; bfb00000
"""

IR3 = """\
Native code for unnamed CL shader (null) with blake3 00:
; num_ubos:           0
@const(c8.x)\t0x00002000, 0x00002e00, 0x00002c00, 0x00002a00
mov.f32f32 r0.x, c0.x
l12:
(sy)(ss)isam.v.base0 (f32)(xyzw)r1.x, r2.x, s#0, t#0
(rpt3)mad.f32 r20.w, (r)c509.x, (r)r20.w, (r)r3.y
(nop3) mad.f32 r21.w, c509.x, r20.w, r3.y
ldl.u32 r4.x, l[r1.x], 4
cov.f16f32 r3.x, hr2.x
ldp.u32 r5.x, p[r1.x], 1
bar.g
br p0.x, #l12
end
nop
nop
; CL prog 56/1: 12 instr, 3 nops
"""

BRW = """\
(W)     mov (8)                   r37           r0.1<0>
L0:
        send.hdc1 (8)             r9      r7      null    0x00000000  0x02406CFE   {$1}  // wr:1+0, rd:4; untyped_read:xyzw simd8 (8) bti(254)
        send.hdc1 (8)             r5      r7      null    0x00000000  0x02106E03   {$2}  // wr:1+0, rd:1; untyped_read:x simd8 (8) bti(3)
(W)     send.hdc0 (8)             null    r67    r66     0x00000040  0x020A02FD   {$0}  // wr:1h+1, rd:0; oword_block_write:owords2 (8) bti(253)
        mad (8)                   r25:f         r25:f           r9.0<0>:f       r10:f
        mad (8)                   r26:f         r26:f           r9.1<0>:f       r10:f   {Compacted}
        mov (8)                   r7:f          r58<2>:hf                         {$2.dst}
        mov (8)                   r8:f          r59:f
(W)     sync.bar (1)              null
(f0.0)  while (8)                             L0
        send.hdc1 (8)             null    r21    r20     0x00000040  0x020A0202   {$0}  // wr:1+1, rd:0; untyped_write:x simd8 (8) bti(2)
(W)     send.ts (8)               null    r127   null    0x00000000  0x02000000   {EOT,@1}
"""

AGX = """\
block0 {
   10 = mov_imm #0x0
} -> block1

block1 {
   11 = ffma 1, 2, 3
   12 = ffma 1, 2, 3
   jmp_exec_any #0x1
} -> block1 block2  from block0 block1

block2 {
   stop
}  from block1

block0 {
   r0 = mov_imm #0x0
} -> block1

block1 {
   r8...r11 = device_load r0, u0
   r12 = local_load r1, r2
   wait 0
   r1 = ffma r2, r3, r4
   $r5 = ffma r2, r3, r4
   $r46 = xor $r46, $r47
   r54 = xor r54, #128
   jmp_exec_any #0x1
} -> block1 block2  from block0 block1

block2 {
   device_store r1, r0
   stop
}  from block1

block0 {
   uniform_store r0, #0
   stop
}
"""


def load():
    path = str(SOURCE / "tools/hot_loop")
    loader = importlib.machinery.SourceFileLoader("hot_loop", path)
    spec = importlib.util.spec_from_loader("hot_loop", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class HotLoopTest(unittest.TestCase):
    def setUp(self):
        self.tool = load()

    def expect(self, text, name, where, **counts):
        result = self.tool.analyze(text)
        self.assertEqual(result["set"], name)
        found = {kind: count for kind, count in result[where].items() if count}
        self.assertEqual(found, counts)

    def test_nvidia(self):
        self.expect(NAK, "NVIDIA (NAK)", "loop", instructions=9, fma=2, global_load=1, shared_load=1,
                    conversion=1, barrier=1)
        self.expect(NAK, "NVIDIA (NAK)", "block", instructions=4, fma=2, conversion=1)
        self.expect(NAK, "NVIDIA (NAK)", "whole", instructions=15, fma=3, global_load=1,
                    shared_load=1, conversion=1, barrier=1, move=1, shuffle=1, store=1)

    def test_amd(self):
        self.expect(ACO, "AMD (ACO)", "loop", instructions=9, fma=1, packed=1, global_load=1, shared_load=1,
                    barrier=1, move=1, shuffle=1, conversion=1)
        self.expect(ACO, "AMD (ACO)", "whole", instructions=14, fma=2, packed=1, global_load=1, shared_load=1,
                    barrier=1, move=1, shuffle=1, conversion=1, constant_load=1, private=1, store=1)

    def test_adreno(self):
        # Four of a repetition, and the three nops before the next.
        self.expect(IR3, "Adreno (ir3)", "loop", instructions=14, fma=5, global_load=1,
                    shared_load=1, conversion=1, private=1, barrier=1)
        self.expect(IR3, "Adreno (ir3)", "whole", instructions=15, fma=5, global_load=1,
                    shared_load=1, conversion=1, private=1, barrier=1, move=1)

    def test_intel(self):
        self.expect(BRW, "Intel (brw)", "loop", instructions=9, fma=2, global_load=1, shared_load=1,
                    private=1, conversion=1, move=1, barrier=1)
        self.expect(BRW, "Intel (brw)", "whole", instructions=12, fma=2, global_load=1,
                    shared_load=1, private=1, conversion=1, move=2, barrier=1, store=1)

    def test_apple(self):
        # The second print, after the last pass; three xor change places, one with a number does not.
        self.expect(AGX, "Apple (AGX)", "loop", instructions=8, fma=2, global_load=1, shared_load=1,
                    move=1)
        self.expect(AGX, "Apple (AGX)", "whole", instructions=11, fma=2, global_load=1,
                    shared_load=1, move=2, store=1)

    def test_the_innermost_loop_counts(self):
        inner = ACO.replace("BB2:", "\ts_cbranch_scc1 BB0                  ; 00\nBB2:")
        self.expect(inner, "AMD (ACO)", "loop", instructions=9, fma=1, packed=1, global_load=1, shared_load=1,
                    barrier=1, move=1, shuffle=1, conversion=1)

    def test_a_kernel_without_a_loop_has_its_block(self):
        result = self.tool.analyze(ACO.replace("s_cbranch_scc1 BB1", "s_nop 0           "))
        self.assertNotIn("loop", result)
        self.assertEqual((result["block"]["fma"], result["block"]["packed"]), (1, 1))

    def test_other_texts_are_passed_over(self):
        self.assertIsNone(self.tool.analyze("shader: MESA_SHADER_COMPUTE\n32 %1 = ffma %2, %3, %4\n"))
        self.assertIsNone(self.tool.analyze(""))

    def test_files_and_headings(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "texts.txt"
            path.write_text(f"PIPELINE a 64\n{ACO}PIPELINE b 32\n{NAK}", encoding="utf-8")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(self.tool.main(["--json", str(path)]), 0)
            found = json.loads(output.getvalue())
            self.assertEqual({name: one["set"] for name, one in found.items()},
                             {"a 64": "AMD (ACO)", "b 32": "NVIDIA (NAK)"})
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                self.assertEqual(self.tool.main(["--only", "b 32", str(path)]), 0)
            self.assertNotIn("a 64", output.getvalue())
            self.assertIn("22.2 %: 2 multiply-adds", output.getvalue())
            with contextlib.redirect_stderr(io.StringIO()) as complaint:
                self.assertEqual(self.tool.main([str(Path(folder) / "none")]), 1)
            self.assertIn("cannot be read", complaint.getvalue())


if __name__ == "__main__":
    SOURCE = Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
