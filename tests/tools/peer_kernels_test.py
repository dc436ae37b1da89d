#!/usr/bin/env python3
"""Tests of tools/peer_kernels with kernels made by hand; no driver and no ggml is needed.

    peer_kernels_test.py SOURCE_DIRECTORY [unittest arguments]"""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

SOURCE = Path()


def load():
    loader = importlib.machinery.SourceFileLoader("peer_kernels", str(SOURCE / "tools/peer_kernels"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("peer_kernels", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class Ratios(unittest.TestCase):
    """Instructions a multiply-add."""

    def setUp(self):
        self.tool = load()
        self.hot_loop = self.tool.load_hot_loop()

    def kernel(self, text="", subgroup=32, **loop):
        return self.tool.Kernel("k", {"Number of GPRs": 64, "SLM size": 0}, {"loop": loop}, text, subgroup, [1, 1, 1])

    def ratio(self, kernel, part="loop"):
        return self.tool.a_multiply_add(self.hot_loop, kernel, part)

    def test_packed_halves_count_twice_and_dot_products_of_bytes_four_times(self):
        self.assertEqual(self.ratio(self.kernel(instructions=28, fma=2, packed=2, dot=2)), 2)

    def test_a_matrix_instruction_counts_by_its_shape(self):
        for text, products in (("hmma.m16n8k16.f32 r0 r4", 64), ("v_wmma_f32_16x16x16_f16 v[0:7]", 128)):
            with self.subTest(text):
                self.assertEqual(self.ratio(self.kernel(text, instructions=2 * products, matrix=2)), 1)

    def test_no_multiply_adds_are_no_number(self):
        self.assertIsNone(self.ratio(self.kernel(instructions=9)))
        self.assertIsNone(self.ratio(self.kernel(instructions=9), "whole"))

    def test_a_row_names_statistics_in_the_drivers_words(self):
        row = self.tool.cells(self.hot_loop, self.kernel(instructions=4, fma=2), True)
        self.assertEqual(row, ["`k`", "64", "0", "-", "-", "-", "2", "-"])

    def test_every_work_has_a_name_of_its_own(self):
        self.assertEqual(len({work.name for work in self.tool.WORKS}), len(self.tool.WORKS))
        self.assertEqual(len({work.row for work in self.tool.WORKS}), len(self.tool.WORKS))


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
