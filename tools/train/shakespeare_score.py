#!/usr/bin/env python3
"""Nats per byte of models/shakespeare on the held-out tenth, by `vkformer run`.

    tools/train/shakespeare_score.py build/release/bin/vkformer input.txt
    tools/train/shakespeare_score.py build/release/bin/vkformer input.txt --row 1024 --stride 768

Rows of ROW bytes begin every STRIDE bytes. Of each but the first only the last STRIDE predictions count, so that each
is made from at least ROW - STRIDE bytes. Standard library only.
"""
import argparse
import array
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import shakespeare_data
import to_f16

MODEL = Path(__file__).resolve().parents[2] / "models" / "shakespeare"
BYTES = 256


def logits_of(program, model, rows):
    """(rows * bytes * 256) floats."""
    length = len(rows[0])
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "in.safetensors", Path(folder) / "out.safetensors"
        ids = array.array("q", [byte for row in rows for byte in row])
        to_f16.write_safetensors(given, None, [("input_ids", "I64", [len(rows), length],
                                                ids.tobytes())])
        ran = subprocess.run([program, "run", model, "--inputs", given, "--outputs", made, "-q"],
                             capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            sys.exit(ran.stderr)
        _, tensors = to_f16.read_safetensors(made)
        data = next(bytes(data) for name, _, _, data in tensors if name == "logits")
    return array.array("f", data)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="vkformer")
    parser.add_argument("text", type=Path, help="input.txt of tiny Shakespeare")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--row", type=int, default=256)
    parser.add_argument("--stride", type=int, default=64)
    parser.add_argument("--batch", type=int, default=128)
    arguments = parser.parse_args()

    _, text = shakespeare_data.split_text(arguments.text.read_bytes())
    length = arguments.row
    starts = [*range(0, len(text) - 1 - length, arguments.stride), len(text) - 1 - length]
    nats, done = 0.0, 0
    for begin in range(0, len(starts), arguments.batch):
        chosen = starts[begin:begin + arguments.batch]
        logits = logits_of(arguments.program, arguments.model,
                           [text[s:s + length] for s in chosen])
        for index, start in enumerate(chosen):
            for place in range(done, start + length):
                first = (index * length + place - start) * BYTES
                row = logits[first:first + BYTES]
                most = max(row)
                nats += most + math.log(sum(math.exp(x - most) for x in row)) - row[text[place + 1]]
            done = start + length
    print(f"{nats / done:.4f} nats per byte over {done} bytes")


if __name__ == "__main__":
    main()
