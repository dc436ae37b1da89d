#!/usr/bin/env python3
"""Scores what `vkformer classify models/digits` says of the test digits.

    tools/train/digits_score.py build/release/bin/vkformer mnist-t10k
    tools/train/digits_score.py build/release/bin/vkformer mnist-t10k --scale 10 --inverted

--scale N shows every pixel as N by N, --inverted black on white. Standard library only.
"""
import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import digits_data

MODEL = Path(__file__).resolve().parents[2] / "models" / "digits"


def write_picture(path, pixels, scale, inverted):
    """Writes a PGM file."""
    side = digits_data.SIDE
    if inverted:
        pixels = bytes(255 - value for value in pixels)
    rows = [pixels[i:i + side] for i in range(0, len(pixels), side)]
    rows = [bytes(value for value in row for _ in range(scale))
            for row in rows for _ in range(scale)]
    path.write_bytes(b"P5 %d %d 255\n" % (side * scale, side * scale) + b"".join(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="vkformer")
    parser.add_argument("data", type=Path, help="folder of t10k-images and t10k-labels")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--inverted", action="store_true")
    arguments = parser.parse_args()

    pictures, labels = digits_data.read_digits(arguments.data)
    pictures, labels = (part[digits_data.TRAIN_PICTURES:] for part in (pictures, labels))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{index}.pgm" for index in range(len(pictures))]
        for path, pixels in zip(paths, pictures):
            write_picture(path, pixels, arguments.scale, arguments.inverted)
        listed = "".join(f"{path}\n" for path in paths)
        answers = subprocess.run(
            [arguments.program, "classify", arguments.model, "--input", "-", "--batch", "64",
             "--top", "1"], input=listed, capture_output=True, text=True, check=False)
    if answers.returncode != 0:
        sys.exit(answers.stderr)
    found = [json.loads(line)["label"] for line in answers.stdout.splitlines()]
    wrong = [(str(label), answer) for label, answer in zip(labels, found) if str(label) != answer]
    right = len(labels) - len(wrong)
    print(f"{right} of {len(labels)} right, {100 * right / len(labels):.2f}%")
    for (label, answer), count in collections.Counter(wrong).most_common():
        print(f"  {label} taken for {answer}: {count}")


if __name__ == "__main__":
    main()
