#!/usr/bin/env python3
"""How the error of an operator grows with the length that it sums over, as one table.

    bench/error_by_length.py build/release/bin/vkformer
    bench/error_by_length.py build/release/bin/vkformer --lengths 64 4096 --precision f16 -- --tier baseline

Inputs are normal with mean 0.25, rounded to f32. The reference is in double with exact sums
(math.fsum). An error is the largest difference of an output over the largest value of its row. Its unit is 2^-24, the
rounding error of one f32. A length that the device refuses says so on stderr. Standard library only.
"""
import argparse
import array
import json
import math
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH = 16  # columns of a product, width of a head
ROWS = 3


def product_sum(x, y):
    return math.fsum(a * b for a, b in zip(x, y))


def softmax(x):
    largest = max(x)
    weights = [math.exp(v - largest) for v in x]
    total = math.fsum(weights)
    return [w / total for w in weights]


def log_softmax(x):
    largest = max(x)
    total = math.log(math.fsum(math.exp(v - largest) for v in x))
    return [v - largest - total for v in x]


def layer_norm(x, eps=1e-5):
    mean = math.fsum(x) / len(x)
    variance = math.fsum((v - mean) ** 2 for v in x) / len(x)
    return [(v - mean) / math.sqrt(variance + eps) for v in x]


def rms_norm(x, eps=1e-6):
    scale = math.sqrt(product_sum(x, x) / len(x) + eps)
    return [v / scale for v in x]


def columns_of(values, count):
    return [values[i::count] for i in range(count)]


def rows_of(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]


def by_row(function):
    """Cases of operators that map rows of X to rows of Y."""
    def case(length):
        return {"X": [ROWS, length]}, {}, lambda t: [function(x) for x in rows_of(t["X"], length)]
    return case


def gemm(length):
    def wanted(t):
        columns = columns_of(t["B"], WIDTH)
        return [[product_sum(a, b) for b in columns] for a in rows_of(t["A"], length)]
    return {"A": [ROWS, length], "B": [length, WIDTH]}, {}, wanted


def attention(length):
    def wanted(t):
        keys, values = rows_of(t["K"], WIDTH), columns_of(t["V"], WIDTH)
        out = []
        for query in rows_of(t["Q"], WIDTH):
            weights = softmax([product_sum(query, key) / math.sqrt(WIDTH) for key in keys])
            out.append([product_sum(weights, column) for column in values])
        return out
    return {"Q": [1, 1, ROWS, WIDTH], "K": [1, 1, length, WIDTH], "V": [1, 1, length, WIDTH]}, {}, wanted


def linear_attention(length):
    def feature(x):
        return [v + 1 if v > 0 else math.exp(v) for v in x]

    def wanted(t):
        keys = [feature(k) for k in rows_of(t["K"], WIDTH)]
        values = columns_of(t["V"], WIDTH)
        out = []
        for query in rows_of(t["Q"], WIDTH):
            kernel = feature(query)
            weights = [product_sum(kernel, key) for key in keys]
            total = math.fsum(weights) + 1e-6
            out.append([product_sum(weights, column) / total for column in values])
        return out
    return {"Q": [1, 1, ROWS, WIDTH], "K": [1, 1, length, WIDTH], "V": [1, 1, length, WIDTH]}, {}, wanted


def mean_pool(length):
    def wanted(t):
        return [[math.fsum(column) / length for column in columns_of(t["X"], WIDTH)]]
    return {"X": [1, length, WIDTH]}, {}, wanted


CASES = {"softmax": by_row(softmax), "log_softmax": by_row(log_softmax),
         "layer_norm": by_row(layer_norm), "rms_norm": by_row(rms_norm), "gemm": gemm,
         "attention": attention, "linear_attention": linear_attention, "mean_pool": mean_pool}


def write_safetensors(path, shapes, tensors):
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4 * len(tensors[name])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in shapes:
            tensors[name].tofile(file)


def read_safetensors(path):
    data = Path(path).read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    out = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = array.array("f", data[8 + length + begin:8 + length + end])
    return out


def error_of(args, name, length, folder):
    shapes, attributes, wanted = CASES[name](length)
    source = random.Random(length)
    tensors = {key: array.array("f", (source.gauss(0.25, 1) for _ in range(math.prod(shape))))
               for key, shape in shapes.items()}
    write_safetensors(folder / "in.safetensors", shapes, tensors)
    ran = subprocess.run(
        [args.vkformer, "op", name, "--inputs", folder / "in.safetensors", "--outputs",
         folder / "out.safetensors", "--attributes", json.dumps(attributes), "--quiet",
         "--precision", args.precision, *args.rest], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        print(f"error_by_length: {name} of length {length}: {ran.stderr.strip()}", file=sys.stderr)
        return None
    got = next(iter(read_safetensors(folder / "out.safetensors").values()))
    rows = wanted(tensors)
    worst = 0.0
    for row, values in zip(rows, rows_of(got, len(rows[0])), strict=True):
        largest = max(abs(v) for v in row)
        for a, b in zip(row, values, strict=True):
            if not math.isfinite(b):
                sys.exit(f"error_by_length: {name} of length {length} gave [{b}], wanted {a}")
            worst = max(worst, abs(a - b) / largest)
    return worst * 2 ** 24


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vkformer", help="the program")
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 256, 4096, 32768])
    parser.add_argument("--precision", choices=["f32", "f16"], default="f32")
    parser.add_argument("rest", nargs="*", help="options of vkformer op, after --")
    args = parser.parse_args()
    print("| operator | " + " | ".join(f"{n:,}" for n in args.lengths) + " |")
    print("|---|" + "---:|" * len(args.lengths))
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            errors = [error_of(args, name, n, Path(folder)) for n in args.lengths]
            cells = ["refused" if e is None else f"{e:.1f}" for e in errors]
            print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
