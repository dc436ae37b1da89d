#!/usr/bin/env python3
"""What the formats of weights cost the shipped models: bytes, error rates, time, as one table.

    bench/weight_formats.py build/release/bin/vkformer
    bench/weight_formats.py build/release/bin/vkformer --words 12000 --digits mnist-t10k \\
        --shakespeare input.txt --cache q8

Every model is quantized to a separate folder and scored from there by the scripts of tools/train.
Times are those of g2p-en's words in one process each, the load included. Standard library only.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FORMATS = ["stored", "bf16", "q8", "q4m", "q4"]  # stored: in f16


def output_of(*command, text=None):
    ran = subprocess.run([str(part) for part in command], input=text, capture_output=True,
                         text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"weight_formats: {command[0]} failed: {ran.stderr}")
    return ran.stdout


def folder_of(program, name, weights, folder):
    """The model in that format, and the bytes of its file."""
    model = ROOT / "models" / name
    if weights != "stored":
        target = Path(folder) / f"{name}-{weights}"
        output_of(program, "quantize", model, target, "--weights", weights)
        model = target
    return model, (model / "model.safetensors").stat().st_size


def words_row(arguments, model, words):
    begin = time.monotonic()
    lines = output_of(arguments.program, "generate", model, "--file", "-", "--json", "--batch", "64",
                      "--cache", arguments.cache, *arguments.options, text="\n".join(words))
    seconds = time.monotonic() - begin
    rates = json.loads(output_of(sys.executable, ROOT / "tools/train/score.py", "-", "--json",
                                 "--partial", text=lines))
    return rates, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="vkformer")
    parser.add_argument("--words", type=int, default=1000, help="of g2p-en's test words")
    parser.add_argument("--digits", metavar="FOLDER", help="of t10k-images and t10k-labels")
    parser.add_argument("--shakespeare", metavar="FILE", help="input.txt of tiny Shakespeare")
    parser.add_argument("--cache", default="f32", help="of keys and values, for the words")
    parser.add_argument("--formats", nargs="+", default=FORMATS)
    parser.add_argument("--options", nargs="*", default=[], help="more for vkformer generate")
    arguments = parser.parse_args()
    split = json.loads((ROOT / "models/g2p-en/split.json").read_text(encoding="utf-8"))
    words = split["test"][:arguments.words]

    print("| weights | g2p-en MB | words wrong | without stress | phonemes wrong | seconds "
          "| digits right | Shakespeare, nats |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for weights in arguments.formats:
            model, size = folder_of(arguments.program, "g2p-en", weights, folder)
            rates, seconds = words_row(arguments, model, words)
            digits = nats = "-"
            if arguments.digits:
                model, _ = folder_of(arguments.program, "digits", weights, folder)
                digits = re.search(r"[\d.]+%", output_of(
                    sys.executable, ROOT / "tools/train/digits_score.py", arguments.program,
                    arguments.digits, "--model", model)).group()
            if arguments.shakespeare:
                model, _ = folder_of(arguments.program, "shakespeare", weights, folder)
                nats = output_of(
                    sys.executable, ROOT / "tools/train/shakespeare_score.py", arguments.program,
                    arguments.shakespeare, "--model", model).split()[0]
            print(f"| {weights} | {size / 1e6:.2f} | {100 * rates['word_error_rate']:.2f}% "
                  f"| {100 * rates['word_error_rate_without_stress']:.2f}% "
                  f"| {100 * rates['phoneme_error_rate']:.2f}% | {seconds:.1f} | {digits} | {nats} |",
                  flush=True)


if __name__ == "__main__":
    main()
