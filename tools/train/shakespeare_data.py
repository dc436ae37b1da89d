#!/usr/bin/env python3
"""Data of the shakespeare recipe: split, byte-level tokenizer, and n-gram baselines.

    tools/train/shakespeare_data.py input.txt      prints the scores of the baselines

Standard library only, so that all of it runs where PyTorch is not installed.
"""
import collections
import json
import math
import sys
from pathlib import Path


def split_text(data):
    """The first nine tenths to train on, the last tenth held out."""
    cut = len(data) * 9 // 10
    return data[:cut], data[cut:]


def byte_characters():
    """The printable character that stands for each byte in tokenizer.json (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable},
            **{byte: chr(256 + index) for index, byte in enumerate(others)}}


def tokenizer_json():
    """A byte-level BPE without merges: the id of a byte is its value."""
    characters = byte_characters()
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {characters[byte]: byte for byte in range(256)}, "merges": []}}


def write_tokenizer(target):
    text = json.dumps(tokenizer_json(), ensure_ascii=False, indent=1)
    (Path(target) / "tokenizer.json").write_text(text + "\n", encoding="utf-8")


def ngram_nats(text, held_out, order):
    """Nats per byte of an n-gram model: counts interpolated with shorter ones (Witten and Bell).

    p(b | context) = (count(context, b) + kinds * p(b | shorter)) / (count(context) + kinds). Here kinds is how many
    different bytes followed the context. Below the unigrams all 256 are equal.
    """
    followers = [collections.defaultdict(collections.Counter) for _ in range(order)]
    for length, table in enumerate(followers):
        for i in range(length, len(text)):
            table[text[i - length:i]][text[i]] += 1
    totals = [{context: sum(after.values()) for context, after in table.items()}
              for table in followers]
    nats = 0.0
    for i in range(1, len(held_out)):
        share = 1 / 256
        for length in range(min(order, i + 1)):
            context = held_out[i - length:i]
            after = followers[length].get(context)
            if after is None:
                break
            kinds = len(after)
            share = (after[held_out[i]] + kinds * share) / (totals[length][context] + kinds)
        nats -= math.log(share)
    return nats / (len(held_out) - 1)


def main():
    text, held_out = split_text(Path(sys.argv[1]).read_bytes())
    for order in (1, 2, 3, 4, 5, 6):
        print(f"{order}-gram: {ngram_nats(text, held_out, order):.4f} nats per byte")


if __name__ == "__main__":
    main()
