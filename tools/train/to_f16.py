#!/usr/bin/env python3
"""Converts a Hugging Face model directory to half precision, with the standard library only.

    tools/train/to_f16.py SOURCE_DIR TARGET_DIR

F32 tensors of model.safetensors become F16 (rounded to nearest, ties to even), other tensors
stay as they are. The dtype of config.json becomes float16. The other model files are copied.
"""
import argparse
import json
import math
import shutil
import struct
import sys
from pathlib import Path

COPIED = ["generation_config.json", "tokenizer.json", "preprocessor_config.json", "split.json",
          "test_digits.png", *(f"{digit}.png" for digit in range(10)), "reference.json",
          "reference_greedy.json", "reference_beam4.json"]
CHUNK = 1 << 16
HALF_MAX = 65504.0


def read_safetensors(path):
    """Returns (metadata, [(name, dtype, shape, bytes)] in file order)."""
    content = path.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + header_bytes])
    metadata = header.pop("__metadata__", None)
    data = memoryview(content)[8 + header_bytes:]
    tensors = []
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        tensors.append((name, entry["dtype"], entry["shape"], data[begin:end]))
    return metadata, tensors


def write_safetensors(path, metadata, tensors):
    header = {} if metadata is None else {"__metadata__": metadata}
    offset = 0
    for name, dtype, shape, data in tensors:
        end = offset + len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, _, _, data in tensors:
            file.write(data)


def to_half(name, data):
    """The bytes of F32 values as F16. A finite value that F16 cannot hold is an error."""
    out = bytearray()
    for begin in range(0, len(data), 4 * CHUNK):
        piece = data[begin:begin + 4 * CHUNK]
        values = struct.unpack(f"<{len(piece) // 4}f", piece)
        try:
            out += struct.pack(f"<{len(values)}e", *values)
        except OverflowError:
            worst = max(abs(v) for v in values if math.isfinite(v))
            sys.exit(f"to_f16: [{name}] holds {worst:g}, over the largest F16 value {HALF_MAX:g}; "
                     "keep this model in F32.")
    return bytes(out)


def convert(source, target):
    target.mkdir(parents=True, exist_ok=True)
    metadata, tensors = read_safetensors(source / "model.safetensors")
    tensors = [(name, "F16", shape, to_half(name, data)) if dtype == "F32"
               else (name, dtype, shape, data) for name, dtype, shape, data in tensors]
    write_safetensors(target / "model.safetensors", metadata, tensors)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["dtype"] = "float16"
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="model directory with f32 weights")
    parser.add_argument("target", type=Path, help="directory to write, made if missing")
    arguments = parser.parse_args()
    convert(arguments.source, arguments.target)


if __name__ == "__main__":
    main()
