#!/usr/bin/env python3
"""Scores phonemes that a g2p model wrote: word error rate with and without stress marks, and
phoneme error rate.

    vkformer generate models/g2p-en --file words.txt --json | tools/train/score.py -
    tools/train/score.py models/g2p-en/reference_greedy.json
    tools/train/score.py --make-gold cmudict.dict models/g2p-en/test_gold.json
    tools/train/score.py --list-words models/g2p-en/split.json > words.txt

The input is either JSON lines with "input" and "text", or one JSON object word -> phonemes.
The standard library is enough to run it.
"""
import argparse
import json
import sys
from pathlib import Path

import g2p_data

MODEL_DIR = Path(__file__).resolve().parents[2] / "models" / "g2p-en"


def make_gold(cmudict, target):
    """Writes word -> listed pronunciations for the test words, one word a line."""
    words = g2p_data.read_cmudict(cmudict)
    lines = [json.dumps(word) + ":" + json.dumps([" ".join(v) for v in words[word]],
                                                 separators=(",", ":"))
             for word in g2p_data.split_words(words)["test"]]
    Path(target).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{target}: {len(lines)} words")


def read_outputs(text):
    """Word -> phonemes, from JSON lines or from one JSON object."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError:
        whole = None
    if isinstance(whole, dict) and "input" not in whole:
        pairs = whole.items()
    else:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        pairs = [(row["input"], row["text"]) for row in rows]
    return {word: tuple(phonemes.split()) for word, phonemes in pairs}


def read_gold(path):
    gold = json.loads(Path(path).read_text(encoding="utf-8"))
    return {word: [tuple(v.split()) for v in variants] for word, variants in gold.items()}


def score(arguments):
    source = sys.stdin if arguments.outputs == "-" else open(arguments.outputs, encoding="utf-8")
    with source:
        outputs = read_outputs(source.read())
    gold = read_gold(arguments.gold)
    if arguments.first:
        gold = dict(list(gold.items())[:arguments.first])
        outputs = {word: value for word, value in outputs.items() if word in gold}
    unknown = [word for word in outputs if word not in gold]
    if unknown or not outputs:
        sys.exit(f"score: {len(unknown)} of {len(outputs)} words are not in {arguments.gold}"
                 + (f", the first is [{unknown[0]}]." if unknown else "; nothing to score."))
    missing = len(gold) - len(outputs)
    if missing and not arguments.partial:
        sys.exit(f"score: {missing} of {len(gold)} test words have no output; pass --partial to "
                 "score the others alone.")
    rates = g2p_data.error_rates(outputs, gold)
    if arguments.json:
        print(json.dumps(rates))
    else:
        print(f"words                              {rates['words']}")
        for name in ("word_error_rate", "word_error_rate_without_stress", "phoneme_error_rate",
                     "phoneme_error_rate_without_stress"):
            print(f"{name.replace('_', ' '):<35}{100 * rates[name]:.2f}%")
    expected, found = arguments.expect, 100 * rates["word_error_rate"]
    if expected is not None and abs(found - expected) > arguments.tolerance:
        sys.exit(f"score: the word error rate {found:.3f}% is not within {arguments.tolerance:g} "
                 f"points of the expected {expected:g}%.")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outputs", nargs="?", help="file of outputs, or - for stdin")
    parser.add_argument("--gold", default=MODEL_DIR / "test_gold.json", metavar="FILE",
                        help="word -> pronunciations (default: models/g2p-en/test_gold.json)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N test words")
    parser.add_argument("--partial", action="store_true", help="allow test words without output")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--expect", type=float, metavar="PERCENT",
                        help="exit with 1 unless the word error rate with stress is near this")
    parser.add_argument("--tolerance", type=float, default=0.1, metavar="POINTS",
                        help="what near means for --expect, in points (default 0.1)")
    parser.add_argument("--make-gold", nargs=2, metavar=("CMUDICT", "FILE"),
                        help="write the gold file from cmudict.dict and stop")
    parser.add_argument("--list-words", metavar="SPLIT", help="print the test words and stop")
    arguments = parser.parse_args()
    if arguments.make_gold:
        make_gold(*arguments.make_gold)
    elif arguments.list_words:
        split = json.loads(Path(arguments.list_words).read_text(encoding="utf-8"))
        print("\n".join(split["test"]))
    elif arguments.outputs:
        score(arguments)
    else:
        parser.error("name a file of outputs")


if __name__ == "__main__":
    main()
