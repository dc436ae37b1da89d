#!/usr/bin/env python3
"""Builds, checks and measures vkformer on a GPU beside PyTorch, in one run of under ten minutes.

    bench/gpu_session.py --build                         # configures and builds build/gpu first
    bench/gpu_session.py --program build/release/bin/vkformer --device nvidia
    bench/gpu_session.py --program build/release/bin/vkformer --small    # proves the script: minutes
                                                                         # on a software device

Every row is vkformer's median next to PyTorch's, taken right after each other. Rows are matrix products in f16 and bf16
(cuBLAS), attention (scaled_dot_product_attention), and BERT-base and GPT-2 (compiled where torch.compile works).
Decoding is held against the copy bandwidth, and matrix products against the rate of a register-only shader. Then follow
what `bench models` says of whole models, and the digest of `fingerprint`. That must be the one of every other device.
Where nvidia-smi is, each row has the highest clock of the multiprocessors that was seen meanwhile. Without PyTorch, or
CUDA, its column says so. The report is two files in bench/results/, Markdown and JSON of one name, with driver and
date. What no time is left for is listed as such.
"""
import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SQUARES = [1024, 2048, 4096, 8192]
SKINNY = [(1, 4096, 4096), (8, 4096, 4096), (32, 4096, 4096), (8, 16384, 4096)]  # M, N, K
LENGTHS = [1024, 4096, 16384]  # tokens of attention
MODELS = ["bert-base", "gpt2", "llama-134m", "vit-b32-384", "t5-small", "bart-base", "marian",
          "whisper-tiny"]
SMALL = {"squares": [64, 130], "skinny": [(1, 256, 192), (8, 256, 192)], "lengths": [128]}
HEADS = 16


class Clock:
    """The clock of an NVIDIA GPU's multiprocessors in MHz, five times a second."""

    QUERY = ["nvidia-smi", "--id=0", "--format=csv,noheader,nounits"]

    def __init__(self):
        self.samples = []
        self.most = None
        try:
            done = subprocess.run([*self.QUERY, "--query-gpu=clocks.max.sm"], capture_output=True,
                                  text=True, timeout=20, check=True)
            self.most = int(done.stdout.split()[0])
            self.reader = subprocess.Popen([*self.QUERY, "--query-gpu=clocks.sm", "-lms", "200"],
                                           stdout=subprocess.PIPE, text=True)
        except (OSError, ValueError, IndexError, subprocess.SubprocessError):
            self.reader = None
            return
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.reader.stdout:
            if line.strip().isdigit():
                self.samples.append(int(line))

    def seen(self, first):
        """The highest sample from that one on, or None."""
        return max(self.samples[first:], default=None)

    def text(self):
        if self.reader is None:
            return "not seen: there is no nvidia-smi that answers"
        self.reader.terminate()
        self.reader.wait()
        samples = self.samples or [0]
        return (f"{min(samples)} to {max(samples)} MHz, median {statistics.median(samples):.0f}, "
                f"of at most {self.most}")


class Session:
    """The options, the clock, and what was found so far."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.begin = time.monotonic()
        self.rows = []
        self.skipped = []
        self.facts = {}
        self.torch = self.import_torch()
        self.clock = None  # once everything is built
        self.mhz = None  # the highest clock of the last command

    def import_torch(self):
        try:
            import torch
        except ImportError as error:
            self.facts["pytorch"] = f"absent: {error}"
            return None
        cuda = torch.cuda.is_available() and not self.arguments.cpu
        self.cuda = cuda
        where = f"CUDA {torch.version.cuda}" if cuda else "the processor"
        self.facts["pytorch"] = f"{torch.__version__} on {where}"
        if cuda:
            self.facts["pytorch device"] = torch.cuda.get_device_name(0)
        return torch

    def left(self):
        return self.arguments.budget - (time.monotonic() - self.begin)

    def vkformer(self, *words, seconds=120):
        """JSON of a command of the program, or None with the reason noted."""
        command = [self.arguments.program, *words, "--json"]
        if self.arguments.device:
            command += ["--device", self.arguments.device]
        if self.left() < 1:
            self.skipped.append(f"`{' '.join(words)}`: no time left")
            return None
        before = len(self.clock.samples)
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  timeout=max(1, min(seconds, self.left())), check=False)
        except subprocess.TimeoutExpired:
            self.skipped.append(f"`{' '.join(words)}`: no time left")
            return None
        if done.returncode != 0 and not done.stdout.strip().startswith(("{", "[")):
            self.skipped.append(f"`{' '.join(words)}`: {done.stderr.strip()}")
            return None
        self.mhz = self.clock.seen(before)
        return json.loads(done.stdout)

    def add(self, what, unit, ours, theirs=None, share=None, note=""):
        row = {"what": what, "unit": unit, "vkformer": ours, "pytorch": theirs, "note": note,
               "sm_mhz": self.mhz}
        row["ratio"] = share if share is not None else (theirs / ours if theirs and ours else None)
        self.rows.append(row)
        print(f"{what}: {ours:.4g} {unit}" + (f", PyTorch {theirs:.4g}" if theirs else "")
              + (f", ratio {row['ratio']:.2f}" if row["ratio"] else ""), flush=True)

    def torch_ms(self, function, repeats=9):
        """The median of `repeats` runs, after two that compile and warm up."""
        torch = self.torch
        times = []
        with torch.no_grad():
            for i in range(repeats + 2):
                if self.cuda:
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    begin.record()
                    function()
                    end.record()
                    torch.cuda.synchronize()
                    ms = begin.elapsed_time(end)
                else:
                    start = time.perf_counter()
                    function()
                    ms = 1e3 * (time.perf_counter() - start)
                if i >= 2:
                    times.append(ms)
        return statistics.median(times)

    def tensor(self, *shape, dtype="float16"):
        torch = self.torch
        made = torch.randn(*shape, dtype=torch.float32) / 8
        return made.to(device="cuda" if self.cuda else "cpu", dtype=getattr(torch, dtype))


def build(arguments):
    """A release build in build/gpu, with the kernels for matrix units; returns the program."""
    folder = ROOT / "build/gpu"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DVKFORMER_BUILD_TESTS=OFF", "-DVKFORMER_BUILD_BENCH=OFF",
                    *arguments.cmake], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "vkformer_cli"], check=True)
    return str(folder / "bin/vkformer")


def check(session):
    """Conformance at every tier, quick; failures are named."""
    filters = [word for name in session.arguments.checks for word in ("--filter", name)]
    report = session.vkformer("conformance", "--quick", *filters,
                              seconds=session.arguments.check_seconds)
    if report is None:
        return
    session.facts["conformance"] = ", ".join(f"{n} {what}" for what, n in report["counts"].items())
    tiers = sorted({c["name"].rsplit("/", 1)[-1].split("-")[0] for c in report["checks"]})
    session.facts["conformance tiers"] = ", ".join(tiers)
    for c in report["checks"]:
        if c["outcome"] == "failed":
            session.skipped.append(f"conformance {c['name']}: {c.get('message', '')}")


def roofline(session):
    report = session.vkformer("bench", "roofline")
    rows = {} if report is None else {row["name"]: row["value"] for row in report["rows"]}
    for name, value in rows.items():
        session.facts[f"roofline: {name}"] = f"{value:.4g}"
    return rows


def products(session, sizes, rates):
    shapes = [(n, n, n) for n in sizes["squares"]] + sizes["skinny"]
    for m, n, k in shapes:
        for dtype, name in (("f16", "float16"), ("bf16", "bfloat16")):
            ours = session.vkformer("bench", "gemm", "--m", str(m), "--n", str(n), "--k", str(k),
                                    "--dtype", dtype, "--precision", "f16")
            if ours is None:
                continue
            theirs = None
            if session.torch:
                a, b = session.tensor(m, k, dtype=name), session.tensor(k, n, dtype=name)
                theirs = session.torch_ms(lambda a=a, b=b: a @ b)
            note = ours["kernel"]
            if rates.get("matrix units") and m == n == k:
                note += f"; {ours['gflops'] / rates['matrix units']:.2f} of the units' rate"
            session.add(f"product {m}x{n}x{k} {dtype}", "ms", ours["ms_median"], theirs, note=note)


def attention(session, sizes):
    for tokens in sizes["lengths"]:
        for width in (64, 128):
            for causal in (False, True):
                shape = f"1,{HEADS},{tokens},{width}"
                ours = session.vkformer(
                    "op", "attention", "--repeats", "9", "--precision", "f16", "--attributes",
                    json.dumps({"causal": causal}),
                    *[word for name in "QKV" for word in ("--random", f"{name}={shape}")])
                if ours is None:
                    continue
                theirs = None
                if session.torch:
                    q, k, v = (session.tensor(1, HEADS, tokens, width) for _ in range(3))
                    attend = session.torch.nn.functional.scaled_dot_product_attention
                    theirs = session.torch_ms(
                        lambda q=q, k=k, v=v, c=causal: attend(q, k, v, is_causal=c))
                kind = "causal" if causal else "full"
                session.add(f"attention {kind} {tokens} tokens, width {width}", "ms",
                            ours["milliseconds"], theirs)


def torch_model(session, name, small):
    """A model of that shape with random weights in f16 and its inputs, or None."""
    try:
        import transformers
    except ImportError as error:
        session.skipped.append(f"PyTorch's {name}: {error}")
        return None
    torch = session.torch
    size = {"num_hidden_layers": 2} if small else {}
    if name == "bert-base":
        model = transformers.BertModel(transformers.BertConfig(**size))
        ids = torch.randint(0, 1000, (2, 16) if small else (32, 128))
    else:
        size = {"n_layer": 2} if small else {}
        model = transformers.GPT2Model(transformers.GPT2Config(use_cache=False, **size))
        ids = torch.randint(0, 1000, (1, 16) if small else (1, 128))
    where = "cuda" if session.cuda else "cpu"
    model = model.eval().to(where, dtype=torch.float16 if session.cuda else torch.float32)
    return model, ids.to(where)


def models(session):
    small = session.arguments.small
    for name, batch, tokens in (("bert-base", 32, 128), ("gpt2", 1, 128)):
        if small:
            batch, tokens = (2, 16) if name == "bert-base" else (1, 16)
        report = session.vkformer("bench", "models", name, "--batch", str(batch), "--tokens",
                                  str(tokens), "--new-tokens", "0", "--rounds", "3",
                                  "--weights", "f16", "--precision", "f16")
        passes = [] if report is None else [
            row for row in report["rows"] if row["name"] == f"{name} given sizes"]
        if not passes:
            session.skipped.append(f"{name} {batch}x{tokens}: no row of a full pass")
            continue
        theirs, note = None, ""
        made = torch_model(session, name, small) if session.torch else None
        if made:
            model, ids = made
            if session.cuda and session.left() > 150:  # compiling takes a minute or more
                try:
                    compiled = session.torch.compile(model)
                    theirs, note = session.torch_ms(lambda: compiled(ids)), "compiled"
                except Exception as error:  # torch.compile needs a C compiler and Triton
                    note = f"not compiled: {type(error).__name__}"
            if theirs is None:
                theirs = session.torch_ms(lambda: model(ids), repeats=3)
            if small:
                note = "PyTorch with 2 layers"
        session.add(f"{name} {batch}x{tokens}", "ms", passes[0]["value"], theirs, note=note)


def decoding(session, rates):
    """Milliseconds a token, and the bytes of a step against the bandwidth of a copy."""
    new_tokens = "8" if session.arguments.small else "32"
    for weights in ("f16", "q8"):
        report = session.vkformer("bench", "models", "llama-134m", "--weights", weights, "--tokens",
                                  "16", "--new-tokens", new_tokens, "--rounds", "3")
        rows = [] if report is None else [r for r in report["rows"] if "decoding" in r["name"]]
        if not rows:
            session.skipped.append(f"decoding {weights}: no row")
            continue
        ms = rows[0]["value"]
        share = rows[0]["bytes"] * 1e-6 / ms / rates["copy"] if "copy" in rates else None
        session.add(f"decoding llama-134m {weights}", "ms a token", ms, share=share,
                    note="ratio: of the copy's bandwidth")


def whole_models(session):
    """What `bench models` says of each model at its own sizes, or at small ones."""
    given = ["--tokens", "16", "--new-tokens", "4"] if session.arguments.small else []
    for name in MODELS[1:3] if session.arguments.small else MODELS:
        report = session.vkformer("bench", "models", name, "--in-process", "--rounds", "3", *given,
                                  seconds=60)
        for row in [] if report is None else report["rows"]:
            if row["section"] == "models":
                session.add(row["name"], row["unit"], row["value"], note=row.get("note", ""))


def fingerprint(session):
    filters = ["--filter", "matmul/f32/", "--filter", "attention/"] if session.arguments.small else []
    report = session.vkformer("fingerprint", "--quiet", *filters)
    if report is not None:
        session.facts["fingerprint"] = f"{report['digest']} of {len(report['entries'])} tensors" + (
            ", some of them" if filters else "")


def markdown(session, device):
    lines = [f"# {device['name']}, {session.facts['date']}", "",
             f"`{' '.join(['bench/gpu_session.py', *sys.argv[1:]])}`", ""]
    lines += [f"* {name}: {value}" for name, value in session.facts.items()]
    lines += ["", "Ratios are PyTorch's time over vkformer's: above 1 vkformer is faster.", "",
              "| what | unit | vkformer | PyTorch | ratio | SM MHz | notes |",
              "|---|---|---|---|---|---|---|"]
    for row in session.rows:
        cells = [f"{row[name]:.4g}" if row[name] is not None else "-"
                 for name in ("vkformer", "pytorch", "ratio")]
        cells.append("-" if row["sm_mhz"] is None else str(row["sm_mhz"]))
        lines.append(f"| {row['what']} | {row['unit']} | {' | '.join(cells)} | {row['note']} |")
    if session.skipped:
        lines += ["", "Skipped, or failed:", ""] + [f"* {text}" for text in session.skipped]
    return "\n".join(lines) + "\n"


def write_report(session, device):
    folder = Path(session.arguments.results)
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", device["name"].lower()).strip("-")[:40]
    stem = folder / f"{session.facts['date'][:7]}-gpu-{name}"
    stem.with_suffix(".md").write_text(markdown(session, device), encoding="utf-8")
    stem.with_suffix(".json").write_text(
        json.dumps({"device": device, "facts": session.facts, "rows": session.rows,
                    "skipped": session.skipped}, indent=1) + "\n", encoding="utf-8")
    print(f"{stem}.md\n{stem}.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/vkformer"))
    parser.add_argument("--build", action="store_true", help="build/gpu first, and run that")
    parser.add_argument("--cmake", nargs="*", default=[], help="more for cmake, with --build")
    parser.add_argument("--device", default="", help="as vkformer --device")
    parser.add_argument("--small", action="store_true", help="small sizes, to prove the script")
    parser.add_argument("--cpu", action="store_true", help="PyTorch on the processor")
    parser.add_argument("--checks", nargs="*", default=["matmul/", "attention/"],
                        help="parts of the names of conformance checks; none: all")
    parser.add_argument("--check-seconds", type=float, default=150)
    parser.add_argument("--budget", type=float, default=570, help="seconds of all")
    parser.add_argument("--results", default=str(ROOT / "bench/results"))
    session = Session(parser.parse_args())
    if session.arguments.build:
        session.arguments.program = build(session.arguments)
    session.clock = Clock()
    listed = session.vkformer("devices")
    wanted = session.arguments.device
    devices = [] if listed is None else listed["devices"] if isinstance(listed, dict) else listed
    chosen = [d for d in devices if wanted.lower() in f"{d['name']} {d['driver']}".lower()]
    if not chosen:
        sys.exit(f"gpu_session: no device matches '{wanted}': {session.skipped}")
    device = chosen[0]
    session.facts = {"date": datetime.date.today().isoformat(), "driver": device["driver"],
                     "best tier": device["best_tier"], "host": f"{os.cpu_count()} cores, "
                     f"{platform.machine()}", **session.facts}
    sizes = SMALL if session.arguments.small else {
        "squares": SQUARES, "skinny": SKINNY, "lengths": LENGTHS}
    rates = roofline(session)
    products(session, sizes, rates)
    attention(session, sizes)
    models(session)
    decoding(session, rates)
    fingerprint(session)
    whole_models(session)
    check(session)  # last: what remains of the time is its
    session.facts["SM clock"] = session.clock.text()
    session.facts["seconds"] = f"{time.monotonic() - session.begin:.0f}"
    write_report(session, device)


if __name__ == "__main__":
    main()
