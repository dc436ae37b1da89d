#!/usr/bin/env python3
"""samples/embed_renderer without a display: pictures, phonemes, moving lips, errors, validation.

    renderer_test.py PROGRAM MODEL
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path
from xml.etree import ElementTree

PROGRAM, MODEL = sys.argv[1:3]
SOURCE = Path(__file__).resolve().parents[2] / "samples" / "embed_renderer"
WIDTH, HEIGHT, FRAMES = 160, 120, 40
# Of the picture with one head: where its mouth is, and a corner where nothing happens.
MOUTH = (0.42, 0.44, 0.58, 0.60)
CORNER = (0.85, 0.02, 0.99, 0.30)


def run(*arguments, **environment):
    return subprocess.run([PROGRAM, MODEL, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, env={**os.environ, **environment})


def read_png(path):
    """(width, height, bytes of RGB) of an 8-bit RGB file."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", f"{path} is no PNG file"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride = zlib.decompress(packed), 3 * width
    rows, before = [], bytearray(stride)
    for y in range(height):
        line = raw[y * (stride + 1):(y + 1) * (stride + 1)]
        before = unfilter(line[0], bytearray(line[1:]), before)
        rows.append(before)
    return width, height, b"".join(rows)


def unfilter(kind, line, above):
    for x, value in enumerate(line):
        a = line[x - 3] if x >= 3 else 0
        b = above[x]
        c = above[x - 3] if x >= 3 else 0
        if kind == 4:
            p = a + b - c
            near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[x] = (value + near) & 255
        else:
            line[x] = (value + (0, a, b, (a + b) // 2)[kind]) & 255
    return line


def unpack_lzw(packed, bits):
    clear, end = 1 << bits, (1 << bits) + 1
    out, hold, held, size, table, last = bytearray(), 0, 0, bits + 1, [], None
    for byte in packed:
        hold |= byte << held
        held += 8
        while held >= size:
            code, hold, held = hold & ((1 << size) - 1), hold >> size, held - size
            if code == clear:
                table, size, last = [bytes([i]) for i in range(clear)] + [b"", b""], bits + 1, None
                continue
            if code == end:
                return bytes(out)
            entry = table[code] if code < len(table) else last + last[:1]
            if last is not None and len(table) < 4096:
                table.append(last + entry[:1])
            out += entry
            last = entry
            if len(table) == 1 << size and size < 12:
                size += 1
    raise AssertionError("the frame's data has no end")


def sub_blocks(data, at):
    """(their bytes joined, where the next thing begins)."""
    joined = b""
    while data[at]:
        joined += data[at + 1:at + 1 + data[at]]
        at += 1 + data[at]
    return joined, at + 1


def read_gif(path):
    """(width, height, hundredths of a second of each frame, RGB of the last picture)."""
    data = path.read_bytes()
    assert data[:6] == b"GIF89a" and data[-1:] == b"\x3b"
    width, height = struct.unpack("<HH", data[6:10])
    palette = data[13:13 + 768]
    canvas, delays, same, at = bytearray(3 * width * height), [], None, 13 + 768
    while data[at] != 0x3B:
        if data[at] == 0x21:
            control = data[at + 1] == 0xF9
            body, at = sub_blocks(data, at + 2)
            if control:
                delays.append(struct.unpack("<H", body[1:3])[0])
                same = body[3]
            continue
        left, top, wide, high = struct.unpack("<HHHH", data[at + 1:at + 9])
        bits = data[at + 10]
        packed, at = sub_blocks(data, at + 11)
        pixels = unpack_lzw(packed, bits)
        assert len(pixels) == wide * high, f"{len(pixels)} pixels of {wide} x {high}"
        for i, index in enumerate(pixels):
            if index != same:
                to = 3 * ((top + i // wide) * width + left + i % wide)
                canvas[to:to + 3] = palette[3 * index:3 * index + 3]
    return width, height, delays, bytes(canvas)


def spread(pictures, box):
    """How many pixels of the box change by more than 24 of 255 over the pictures."""
    count = 0
    for y in range(int(box[1] * HEIGHT), int(box[3] * HEIGHT)):
        for x in range(int(box[0] * WIDTH), int(box[2] * WIDTH)):
            values = [picture[3 * (y * WIDTH + x)] for picture in pictures]
            count += max(values) - min(values) > 24
    return count


class Renderer(unittest.TestCase):
    def test_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            result = run("--text", "Attention is all you need.", "--heads", 1, "--size",
                         f"{WIDTH}x{HEIGHT}", "--frames", FRAMES, "--out", folder / "frames",
                         "--gif", folder / "crowd.gif", "--still", folder / "last.png",
                         "--budget-us", 100000)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_summary(result.stdout)
            files = sorted((folder / "frames").glob("*.png"))
            self.assertEqual([f.name for f in files],
                             [f"frame_{i:05d}.png" for i in range(FRAMES)])
            pictures = []
            for file in files:
                width, height, rgb = read_png(file)
                self.assertEqual((width, height), (WIDTH, HEIGHT))
                pictures.append(rgb)
            self.assertGreater(spread(pictures, MOUTH), 40, "the lips do not move")
            self.assertEqual(spread(pictures, CORNER), 0, "the backdrop moves")
            self.assertEqual((folder / "last.png").read_bytes(), files[-1].read_bytes())
            self.check_gif(folder / "crowd.gif", pictures)

    def check_summary(self, text):
        lines = text.splitlines()
        self.assertIn("attention\tAH0 T EH1 N SH AH0 N", lines)
        self.assertIn("all\tAO1 L", lines)
        self.assertIn("need\tN IY1 D", lines)
        without = int(re.search(r"^rendering alone +(\d+)", text, re.M)[1])
        with_guest = int(re.search(r"^with inference +(\d+)", text, re.M)[1])
        self.assertEqual(without + with_guest, FRAMES)
        self.assertGreater(with_guest, 0)
        self.assertGreater(without, 0)
        self.assertIn(f"{FRAMES} frames of {WIDTH}x{HEIGHT}, 1 heads, 5 words", text)

    def check_gif(self, path, pictures):
        width, height, delays, last = read_gif(path)
        self.assertEqual((width, height, len(delays)), (WIDTH, HEIGHT, FRAMES // 2))
        self.assertEqual(sum(delays), round(100 * FRAMES / 30))
        # Frame 38 is the last of every other one; a palette and what is left undrawn cost a little.
        off = sum(abs(a - b) for a, b in zip(last, pictures[FRAMES - 2])) / len(last)
        self.assertLess(off, 6)

    def test_guests_share_frames(self):
        """Several speaking sessions, a classifier of the picture and a writer in the background."""
        models = Path(MODEL).parent
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            result = run("--text", "Attention is all you need. Hello everybody.", "--heads", 4, "--size",
                         f"{WIDTH}x{HEIGHT}", "--frames", 240, "--sessions", 3, "--watch", models / "digits",
                         "--story", models / "shakespeare", "--report", report, "--budget-us", 20000)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("attention\tAH0 T EH1 N SH AH0 N", result.stdout)
            self.assertRegex(result.stdout, r"the picture was looked at [1-9]\d* times; last it was \"\d\"")
            self.assertRegex(result.stdout, r"\d+ tokens were written in the background")
            numbers = json.loads(report.read_text(encoding="utf-8"))
            self.assertEqual(numbers["sessions"], 3)
            self.assertGreater(numbers["words"]["results"], 3)
            self.assertGreater(numbers["looks"]["results"], 0)
            self.assertGreater(numbers["slice_ms"]["p99"], 0)
            self.assertEqual(numbers["frames"], 240)
            self.assertEqual(len(numbers["times"]), 240)
            self.assertEqual(len(numbers["words"]["frames"]), numbers["words"]["results"])
            picture = Path(folder) / "report.svg"
            script = SOURCE / "plot_report.py"
            subprocess.run([sys.executable, "-B", script, report, picture], check=True)
            drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
            self.assertGreater(sum(1 for bar in drawn.iter() if bar.tag.endswith("rect")), 480)
            refused = run("--frames", 1, "--report", Path(folder) / "no" / "such" / "folder")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("cannot be written", refused.stderr)

    def test_words_without_options(self):
        result = run("hello", "--size", "64x64", "--heads", 2)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("hello\tHH EH1 L OW0\n", result.stdout)

    def test_errors(self):
        cases = [(["--size", "12x"], 2, "[12x]"),
                 (["--size", "64x9000"], 2, "4096"),
                 (["--heads", "0"], 2, "heads"),
                 (["--text", "one", "two"], 2, "--text"),
                 (["--text", "42 -- !"], 1, "[42 -- !]"),
                 (["--text", "pneumonoultramicroscopicsilico"], 1, "24"),
                 (["--device", "no such device"], 1, "[no such device]"),
                 (["hi", "--size", "64x64", "--still", "/nowhere/still.png"], 1, "[/nowhere/still.png]"),
                 (["hi", "--size", "64x64", "--out", "/dev/null/frames"], 1, "[/dev/null/frames]")]
        for arguments, code, part in cases:
            result = run("--frames", 1, *arguments)
            self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
            self.assertIn(part, result.stderr)
        missing = subprocess.run([PROGRAM, "/nowhere", "hi"], capture_output=True, text=True,
                                 timeout=60)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("/nowhere", missing.stderr)

    def test_validation(self):
        """Nothing to report, races included; the layer's own log shows that it was there."""
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "messages.txt"
            (Path(folder) / "vk_layer_settings.txt").write_text(
                "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
                "khronos_validation.report_flags = error,warn\n"
                f"khronos_validation.log_filename = {log}\n"
                "khronos_validation.enables = "
                "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n", encoding="utf-8")
            result = run(
                "hello", "there", "--size", "96x64", "--frames", 20, "--still",
                Path(folder) / "x.png", "--sessions", 2, "--watch", Path(MODEL).parent / "digits",
                "--story", Path(MODEL).parent / "shakespeare", VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation",
                VK_LAYER_ENABLES="VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
                VK_LAYER_SETTINGS_PATH=str(Path(folder) / "vk_layer_settings.txt"))
            self.assertEqual(result.returncode, 0, result.stderr)
            if not log.exists():
                print("Skipped: the Khronos validation layer is not installed.")
                return
            self.assertEqual(log.read_text(encoding="utf-8"), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
