#!/usr/bin/env python3
"""Sampled tokens against their exact probabilities: Pearson's chi-square test.

  draws_test.py VKFORMER MODEL [DRAWS]

Samples the token after a prompt DRAWS times (2,000) with each of some settings, by different seeds and
sequences. What they should be is computed here, in double precision, from the logits that `vkformer
run` gives. MODEL is models/shakespeare, whose tokens are bytes."""
import json
import math
import os
import sys
import tempfile

import cli_support
from cli_support import read_tensors, run_on_device, write_tensors

PROMPT = "A"
MOST_SEQUENCES = 2000  # of a call

# Options of `vkformer generate`, by which the probabilities are computed too.
SETTINGS = [
    {"temperature": 1.0},
    {"temperature": 0.6},
    {"temperature": 2.5, "top-k": 9},
    {"top-p": 0.85},
    {"min-p": 0.04},
    {"typical-p": 0.7},
    {"temperature": 1.4, "top-k": 30, "top-p": 0.95, "min-p": 0.01, "typical-p": 0.9,
     "repetition-penalty": 1.3, "logit-bias": "n=-1.5", "bad-word": "s"},
]


def exact_logits():
    with tempfile.TemporaryDirectory() as directory:
        inputs, outputs = (os.path.join(directory, name) for name in ("in", "out"))
        write_tensors(inputs, {"input_ids": ("I64", [1, len(PROMPT)], list(PROMPT.encode()))})
        result = run_on_device("run", cli_support.MODEL, "--inputs", inputs, "--outputs", outputs)
        if result.returncode != 0:
            sys.exit(f"draws: {result.stderr}")
        logits = read_tensors(outputs)["logits"][2]
    return logits[-(len(logits) // len(PROMPT)):]


def normalized(probabilities):
    total = math.fsum(probabilities.values())
    return {token: p / total for token, p in probabilities.items()}


def fewest(probabilities, order, share):
    """The first tokens of the order whose probabilities reach the share."""
    kept, total = {}, 0.0
    for token in order:
        kept[token] = probabilities[token]
        total += probabilities[token]
        if total >= share:
            break
    return normalized(kept)


def exact_probabilities(logits, setting):
    scores = list(logits)
    if "logit-bias" in setting:
        text, bias = setting["logit-bias"].split("=")
        scores[ord(text)] += float(bias)
    if "repetition-penalty" in setting:
        penalty = setting["repetition-penalty"]
        for token in set(PROMPT.encode()):
            scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    if "bad-word" in setting:
        scores[ord(setting["bad-word"])] = -math.inf
    scores = [score / setting.get("temperature", 1.0) for score in scores]
    if "top-k" in setting:
        least = sorted(scores, reverse=True)[setting["top-k"] - 1]
        scores = [score if score >= least else -math.inf for score in scores]
    most = max(scores)
    p = normalized({t: math.exp(s - most) for t, s in enumerate(scores) if s > -math.inf})
    if "top-p" in setting:
        p = fewest(p, sorted(p, key=lambda t: -p[t]), setting["top-p"])
    if "min-p" in setting:
        bound = setting["min-p"] * max(p.values())
        p = normalized({t: value for t, value in p.items() if value >= bound})
    if "typical-p" in setting:
        entropy = -math.fsum(value * math.log(value) for value in p.values() if value > 0)
        surprise = {t: abs(-math.log(value) - entropy) for t, value in p.items() if value > 0}
        p = fewest(p, sorted(surprise, key=surprise.get), setting["typical-p"])
    return p


def draw(setting, count):
    """How often each token came."""
    counts = {}
    options = [word for name, value in setting.items() for word in (f"--{name}", str(value))]
    if "top-k" not in setting:
        options += ["--top-k", "0"]
    seed = 1000 * SETTINGS.index(setting)
    while count > 0:
        sequences = max(2, min(count, MOST_SEQUENCES))
        result = run_on_device("generate", cli_support.MODEL, PROMPT, "--max-new-tokens", "1",
                               "--seed", str(seed), "--num-sequences", str(sequences), "--json",
                               *options)
        if result.returncode != 0:
            sys.exit(f"draws: {setting} failed: {result.stderr}")
        for sequence in json.loads(result.stdout)["sequences"]:
            token = sequence["ids"][0]
            counts[token] = counts.get(token, 0) + 1
        count -= sequences
        seed += 1
    return counts


def chi_square(counts, probabilities):
    """Statistic, degrees of freedom; cells that expect fewer than five draws are one."""
    total = sum(counts.values())
    statistic, cells, rest_wanted, rest_found = 0.0, 0, 0.0, 0
    for token, p in probabilities.items():
        wanted, found = p * total, counts.get(token, 0)
        if wanted < 5:
            rest_wanted, rest_found = rest_wanted + wanted, rest_found + found
        else:
            statistic, cells = statistic + (found - wanted) ** 2 / wanted, cells + 1
    if rest_wanted >= 5:
        statistic, cells = statistic + (rest_found - rest_wanted) ** 2 / rest_wanted, cells + 1
    return statistic, cells - 1


def exceeded(statistic, freedom):
    """The probability of a larger statistic (Wilson and Hilferty 1931)."""
    a = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - (1 - a)) / math.sqrt(a)
    return math.erfc(z / math.sqrt(2)) / 2


def main():
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    logits = exact_logits()
    for setting in SETTINGS:
        probabilities = exact_probabilities(logits, setting)
        counts = draw(setting, count)
        never = sorted(set(counts) - set(probabilities))
        if never:
            sys.exit(f"draws: {setting} gave tokens {never}, which it leaves out")
        statistic, freedom = chi_square(counts, probabilities)
        chance = exceeded(statistic, freedom)
        words = " ".join(f"{name} {value}" for name, value in setting.items())
        print(f"draws: {sum(counts.values())} with {words}: chi-square {statistic:.1f} of "
              f"{freedom} degrees of freedom, p = {chance:.3f}", flush=True)
        if chance < 1e-6:
            sys.exit("draws: that is no accident")


if __name__ == "__main__":
    main()
