#!/usr/bin/env python3
"""Time and memory of every kind of attention against the length of the sequence.

    bench/attention_lengths.py measure [--program PATH] [--most 32768] [--only NAME ...]
                                       [--output FILE.json] [-- DEVICE OPTIONS]
    bench/attention_lengths.py draw FILE.json --plot docs/attention_lengths.svg [--text FILE.md]

measure runs `vkformer op` for each strategy and length. It measures the median time of three runs (of one where they
take long) and device memory beyond the inputs and outputs. It has the flops of the plan, too. One item, two heads of
width 64, self-attention. draw fits time and memory to a power of the length from 4,096 tokens on. It finds where each
strategy overtakes plain attention, and plots both (needs python3-matplotlib).
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

HEADS = 2
WIDTH = 64  # E, of a head
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768]
FIT_FROM = 4096  # tokens
WINDOW = 256  # keys to each side
FEATURES = 128  # of the performer
PROJECTED = 128  # keys of the linformer
LANDMARKS = 64
GLOBAL = 16  # tokens that see and are seen by all
DOCUMENT = 512  # tokens of each document of a packed row
BLOCK = 64  # tokens of a block, or chunk
ROUNDS = 2  # of hashing
BUCKETS = 64


def heads(*names):
    return lambda length: [f"{name}=1,{HEADS},{length},{WIDTH}" for name in names]


def qkv(*more):
    def inputs(length):
        return heads("Q", "K", "V")(length) + [text.replace("N", str(length)) for text in more]

    return inputs


def global_tokens(length):
    return {"global": ([1, length], [int(i < GLOBAL) for i in range(length)])}


def documents(length):
    return {"documents": ([1, length], [i // DOCUMENT for i in range(length)])}


def block_map(length):
    """BigBird's pattern: neighbors, the first and the last block, three more."""
    blocks = length // BLOCK
    rows = [[0] * blocks for _ in range(blocks)]
    for i, row in enumerate(rows):
        more = [(7 * i + 3) % blocks, (11 * i + 5) % blocks, (13 * i + 1) % blocks]
        for j in [max(0, i - 1), i, min(blocks - 1, i + 1), 0, blocks - 1, *more]:
            row[j] = 1
    return {"block_map": ([1, 1, blocks, blocks], sum(rows, []))}


# Name, operator, attributes, random inputs by length, and given whole numbers by length.
STRATEGIES = [
    ("plain", "attention", {}, qkv()),
    ("causal", "attention", {"causal": True}, qkv()),
    (
        "sliding window",
        "sliding_window_attention",
        {"window_left": WINDOW, "window_right": WINDOW},
        qkv(),
    ),
    (
        "window and global",
        "sliding_window_attention",
        {"window_left": WINDOW, "window_right": WINDOW},
        qkv(),
        global_tokens,
    ),
    ("documents", "attention", {}, qkv(), documents),
    ("block-sparse", "attention", {"block_size": BLOCK}, qkv(), block_map),
    (
        "LSH",
        "lsh_attention",
        {"chunk_length": BLOCK},
        lambda length: heads("QK", "V")(length) + [f"rotations={HEADS},{WIDTH},{ROUNDS},{BUCKETS // 2}"],
    ),
    ("linear", "linear_attention", {"causal": False}, qkv()),
    ("linear, causal", "linear_attention", {"causal": True}, qkv()),
    ("performer", "performer_attention", {"causal": False}, qkv(f"omega={FEATURES},{WIDTH}")),
    (
        "linformer",
        "linformer_attention",
        {},
        qkv(f"E={PROJECTED},N", f"F={PROJECTED},N"),
    ),
    ("nystrom", "nystrom_attention", {"num_landmarks": LANDMARKS}, qkv()),
    (
        "recurrent (GRU)",
        "gru",
        {},
        lambda length: [
            f"X=1,{length},{HEADS * WIDTH}",
            f"weight_ih={3 * HEADS * WIDTH},{HEADS * WIDTH}",
            f"weight_hh={3 * HEADS * WIDTH},{HEADS * WIDTH}",
            f"bias_ih={3 * HEADS * WIDTH}",
            f"bias_hh={3 * HEADS * WIDTH}",
        ],
    ),
]


def write_tensors(path, tensors):
    """A safetensors file of 32-bit whole numbers: a header's length, the header, the values."""
    header, values = {}, []
    for name, (shape, numbers) in tensors.items():
        begin = 4 * len(values)
        values += numbers
        header[name] = {"dtype": "I32", "shape": shape, "data_offsets": [begin, 4 * len(values)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(values)}i", *values))


def run(program, device, operator, attributes, inputs, repeats):
    command = [program, "op", operator, "--json", "--repeats", str(repeats)]
    command += ["--attributes", json.dumps(attributes), *device]
    command += inputs
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def device_name(program, device):
    done = subprocess.run([program, "devices", "--json"], capture_output=True, text=True, check=True)
    listed = json.loads(done.stdout)
    rows = listed["devices"] if isinstance(listed, dict) else listed
    return rows[0]["name"] if "--device" not in device else device[device.index("--device") + 1]


def measure(options):
    report = {"device": device_name(options.program, options.device), "rows": []}
    report["settings"] = {"heads": HEADS, "head_width": WIDTH, "window": WINDOW}
    report["settings"] |= {"features": FEATURES, "projected": PROJECTED, "landmarks": LANDMARKS}
    report["settings"] |= {"global": GLOBAL, "document": DOCUMENT, "block": BLOCK}
    report["settings"] |= {"rounds": ROUNDS, "buckets": BUCKETS}
    report["command"] = " ".join(sys.argv)
    given = os.path.join(tempfile.mkdtemp(), "given.safetensors")
    for name, operator, attributes, inputs, *more in STRATEGIES:
        if options.only and name not in options.only:
            continue
        repeats = 3
        for length in [n for n in LENGTHS if n <= options.most]:
            arguments = ["--random", *inputs(length)]
            if more:
                write_tensors(given, more[0](length))
                arguments += ["--inputs", given]
            result = run(options.program, options.device, operator, attributes, arguments, repeats)
            # A run of half a minute is its own median.
            repeats = 1 if result["milliseconds"] > 10_000 else 3
            row = {"strategy": name, "length": length}
            row |= {key: result[key] for key in ("milliseconds", "scratch_bytes", "flops", "bytes")}
            report["rows"].append(row)
            print(name, length, f"{row['milliseconds']:.2f} ms", file=sys.stderr)
    with open(options.output, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def series(report, key):
    lines = {}
    for row in report["rows"]:
        lines.setdefault(row["strategy"], {})[row["length"]] = row[key]
    return lines


def exponent(points):
    """Slope of the least-squares line through (log length, log value)."""
    pairs = [(math.log(n), math.log(v)) for n, v in points.items() if n >= FIT_FROM and v > 0]
    if len(pairs) < 2:
        return None
    x = sum(p[0] for p in pairs) / len(pairs)
    y = sum(p[1] for p in pairs) / len(pairs)
    return sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a, _ in pairs)


def crossover(points, plain):
    """The length from which on `points` lie below `plain`, on straight lines between logarithms."""
    lengths = sorted(set(points) & set(plain))
    gaps = [math.log(points[n] / plain[n]) for n in lengths]
    if gaps[-1] >= 0:
        return None
    for i in range(len(lengths) - 1, 0, -1):
        if gaps[i - 1] < 0:
            continue
        a, b = math.log(lengths[i - 1]), math.log(lengths[i])
        return math.exp(a + (b - a) * gaps[i - 1] / (gaps[i - 1] - gaps[i]))
    return lengths[0]


def table(report):
    times, memory = series(report, "milliseconds"), series(report, "scratch_bytes")
    longest = max(row["length"] for row in report["rows"])
    text = f"| kind | time ~ n^ | memory ~ n^ | ms at {longest:,} | MiB at {longest:,} "
    text += "| faster than plain from |\n|---|---|---|---|---|---|\n"
    for name, points in times.items():
        fit, fit_memory = exponent(points), exponent(memory[name])
        below = crossover(points, times["plain"]) if name != "plain" else None
        cells = [name, "–" if fit is None else f"{fit:.2f}"]
        cells.append("–" if fit_memory is None else f"{fit_memory:.2f}")
        cells += [f"{points[longest]:.0f}", f"{memory[name][longest] / 2**20:.1f}"]
        shortest = f"{min(points):,} tokens or fewer"
        crossing = "" if below is None else f"{round(below, -1):,.0f} tokens"
        cells.append("–" if below is None else shortest if below <= min(points) else crossing)
        text += "| " + " | ".join(cells) + " |\n"
    return text


def draw(options):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vkformer"
    from matplotlib import pyplot

    with open(options.report) as file:
        report = json.load(file)
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.5))
    titles = ("milliseconds", "MiB beyond inputs and outputs")
    for panel, key, title, unit in zip(panels, ("milliseconds", "scratch_bytes"), titles, (1, 2**20)):
        for name, points in series(report, key).items():
            lengths = [n for n in sorted(points) if points[n] > 0]
            values = [points[n] / unit for n in lengths]
            style = dict(linewidth=2.5, color="black") if name == "plain" else {}
            panel.loglog(lengths, values, marker="o", markersize=3, label=name, **style)
        panel.set_xlabel("tokens")
        panel.set_title(title)
        panel.set_xticks(LENGTHS, [str(n) for n in LENGTHS], fontsize=8)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(f"Self-attention, one item, {HEADS} heads of {WIDTH}: {report['device']}", fontsize=10)
    figure.tight_layout()
    figure.savefig(options.plot, metadata={"Date": None})
    text = table(report)
    if options.text:
        with open(options.text, "w") as file:
            file.write(text)
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure")
    command.add_argument("--program", default="build/release/bin/vkformer")
    command.add_argument("--most", type=int, default=LENGTHS[-1])
    command.add_argument("--only", nargs="*")
    command.add_argument("--output", required=True)
    command.add_argument("device", nargs="*", default=[])
    command.set_defaults(call=measure)
    command = commands.add_parser("draw")
    command.add_argument("report")
    command.add_argument("--plot", required=True)
    command.add_argument("--text")
    command.set_defaults(call=draw)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
