#!/usr/bin/env python3
"""Checks the data parts of the digits and shakespeare recipes against the files of models/."""
import gzip
import json
import math
import struct
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import digits_data
import digits_score
import shakespeare_data

MODELS = Path(__file__).resolve().parents[2] / "models"


def read_png(path):
    """(width, height, rows) of a gray PNG that write_png wrote."""
    data = path.read_bytes()
    width, height = struct.unpack_from(">II", data, 16)
    at, packed = 8, b""
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        if data[at + 4:at + 8] == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    plain = zlib.decompress(packed)
    return width, height, [plain[y * (width + 1) + 1:(y + 1) * (width + 1)] for y in range(height)]


class Digits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_idx(self):
        plain = b"\0\0\x08\x02" + struct.pack(">II", 2, 3) + bytes(range(6))
        for name, content in (("plain", plain), ("packed", gzip.compress(plain))):
            (self.folder / name).write_bytes(content)
            self.assertEqual(digits_data.read_idx(self.folder / name), ((2, 3), bytes(range(6))))
        (self.folder / "short").write_bytes(plain[:-1])
        with self.assertRaisesRegex(SystemExit, "holds 5 values, its head says 6"):
            digits_data.read_idx(self.folder / "short")
        (self.folder / "other").write_bytes(b"P5 1 1")
        with self.assertRaisesRegex(SystemExit, "no IDX file"):
            digits_data.read_idx(self.folder / "other")

    def test_png(self):
        rows = [bytes([0, 128, 255]), bytes([9, 8, 7])]
        digits_data.write_png(self.folder / "two.png", rows)
        self.assertEqual(read_png(self.folder / "two.png"), (3, 2, rows))

    def test_sheet(self):
        width, height, rows = read_png(MODELS / "digits" / "test_digits.png")
        side = digits_data.SIDE
        self.assertEqual((width, height), (side * digits_data.SHEET_COLUMNS, side * 10))
        self.assertEqual({row[0] for row in rows}, {0})  # light on dark

    def test_single_digits(self):
        """Those beside the sheet are the first of each line of it."""
        sheet = read_png(MODELS / "digits" / "test_digits.png")[2]
        side = digits_data.SIDE * digits_data.SCALE
        for digit, rows in enumerate(digits_data.single_digits(sheet)):
            self.assertEqual(read_png(MODELS / "digits" / f"{digit}.png"), (side, side, rows))

    def test_sheet_rows(self):
        """Train digits are omitted, and each row of digits is of one kind."""
        area = digits_data.SIDE ** 2
        count = digits_data.TRAIN_PICTURES + digits_data.TEST_PICTURES
        labels = [i % 10 for i in range(count)]
        pictures = [bytes([label if i >= digits_data.TRAIN_PICTURES else 99]) * area
                    for i, label in enumerate(labels)]
        rows = digits_data.sheet_rows(pictures, labels)
        self.assertEqual([set(row) for row in rows[::digits_data.SIDE]], [{i} for i in range(10)])

    def test_picture(self):
        pixels = bytes(range(256)) * 3 + bytes(16)
        digits_score.write_picture(self.folder / "p.pgm", pixels, 2, True)
        head, body = b"P5 56 56 255\n", (self.folder / "p.pgm").read_bytes()
        self.assertEqual(body[:len(head) + 4], head + bytes([255, 255, 254, 254]))
        self.assertEqual(len(body), len(head) + 4 * len(pixels))


class Shakespeare(unittest.TestCase):
    def test_split(self):
        self.assertEqual(shakespeare_data.split_text(b"0123456789abcdefghij"),
                         (b"0123456789abcdefgh", b"ij"))

    def test_tokenizer(self):
        file = MODELS / "shakespeare" / "tokenizer.json"
        self.assertEqual(json.loads(file.read_text(encoding="utf-8")),
                         shakespeare_data.tokenizer_json())
        characters = shakespeare_data.byte_characters()
        self.assertEqual(len(set(characters.values())), 256)
        self.assertEqual((characters[65], characters[32], characters[10]), ("A", "Ġ", "Ċ"))

    def test_ngrams(self):
        """By hand: after "aab" there are 2 a and 1 b, mixed with 2 shares of the uniform."""
        uniform = 1 / 256
        share = {"a": (2 + 2 * uniform) / 5, "b": (1 + 2 * uniform) / 5}
        self.assertAlmostEqual(shakespeare_data.ngram_nats(b"aab", b"aba", 1),
                               -(math.log(share["b"]) + math.log(share["a"])) / 2)
        # After "a" came a and b once each; nothing is known of what follows b.
        after = (1 + 2 * share["b"]) / 4
        self.assertAlmostEqual(shakespeare_data.ngram_nats(b"aab", b"aba", 2),
                               -(math.log(after) + math.log(share["a"])) / 2)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
