"""Data of the digits recipe: the IDX files of MNIST, and a sheet of test digits.

Standard library only, so that all of it runs where PyTorch is not installed.
"""
import gzip
import struct
import zlib
from pathlib import Path

SIDE = 28
TRAIN_PICTURES = 8000
TEST_PICTURES = 2000
SHEET_COLUMNS, SHEET_STEP = 20, 8
SCALE = 8  # of the single digits


def read_idx(path):
    """Reads an IDX file of bytes, gzipped or not: (sizes, bytes)."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise SystemExit(f"File [{path}] is no IDX file of bytes.")
    sizes = struct.unpack_from(f">{data[3]}I", data, 4)
    start, count = 4 + 4 * data[3], 1
    for size in sizes:
        count *= size
    if len(data) - start != count:
        raise SystemExit(f"File [{path}] holds {len(data) - start} values, its head says {count}.")
    return sizes, data[start:]


def read_digits(folder):
    """(pictures, labels) of the 10,000: a list of 784 bytes each, white on black, and 0 to 9."""
    folder = Path(folder)
    sizes, pixels = read_idx(next(folder.glob("t10k-images*")))
    (count,), labels = read_idx(next(folder.glob("t10k-labels*")))
    if sizes != (count, SIDE, SIDE) or count != TRAIN_PICTURES + TEST_PICTURES:
        raise SystemExit(f"Folder [{folder}] holds pictures of {sizes} and {count} labels; this "
                         f"recipe is for 10000 of {SIDE} by {SIDE}.")
    area = SIDE * SIDE
    return [pixels[i * area:(i + 1) * area] for i in range(count)], list(labels)


def sheet_rows(pictures, labels):
    """Rows of a picture of test digits: SHEET_COLUMNS zeros, below them ones, and so on.

    Every SHEET_STEPth is taken, because a writer's digits follow each other.
    """
    rows = []
    for digit in range(10):
        chosen = [p for p, label in zip(pictures[TRAIN_PICTURES:], labels[TRAIN_PICTURES:])
                  if label == digit][::SHEET_STEP][:SHEET_COLUMNS]
        for y in range(0, SIDE * SIDE, SIDE):
            rows.append(b"".join(pixels[y:y + SIDE] for pixels in chosen))
    return rows


def single_digits(sheet):
    """Rows of a picture for each of 0 to 9, from the rows of the sheet. Each is the first of its line, each pixel as
    SCALE by SCALE."""
    for digit in range(10):
        rows = []
        for row in sheet[digit * SIDE:(digit + 1) * SIDE]:
            rows += [b"".join(bytes([value]) * SCALE for value in row[:SIDE])] * SCALE
        yield rows


def write_png(path, rows):
    """Writes rows of gray bytes."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data)
                           + chunk(b"IEND", b""))
