#!/usr/bin/env python3
"""Texts that models of random weights write under grammars and JSON schemas, read by parsers of their own.

  grammar_test.py VKFORMER [COUNT]

About COUNT texts (240), of models with random weights and vocabularies, by random seeds, with and
without an end token. Some have little room to end in. Every one must be complete."""
import json
import os
import random
import re
import sys
import tempfile

import cli_support
from cli_support import byte_level_tokenizer, byte_names, run_on_device, write_llama

WIDTH, HEADS, LAYERS, INNER = 32, 4, 2, 48


def make_tokenizer(rng):
    """Tokens and merges: bytes, pairs and triples of what JSON and numbers are made of."""
    tokens, merges = byte_names(), []
    usual = '{}[]",:0123456789abetrufnls -.+e'
    while len(merges) < 96:
        left = tokens[256 + rng.randrange(len(merges))] if merges and rng.random() < 0.4 else (
            rng.choice(usual).replace(" ", "\u0120"))
        right = rng.choice(usual).replace(" ", "\u0120")
        if left + right not in tokens:
            tokens.append(left + right)
            merges.append(f"{left} {right}")
    return tokens, merges


def make_model(directory, seed, ends):
    rng = random.Random(seed)
    tokens, merges = make_tokenizer(rng)
    end = len(tokens)

    def values(count, is_matrix):
        # Such that the tokens' probabilities differ by a factor of about a hundred.
        scale = 0.25 if is_matrix else 1
        return [rng.gauss(0, scale) for _ in range(count)]

    config = {"vocab_size": end + 1, "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "max_position_embeddings": 512, "eos_token_id": end if ends else None}
    write_llama(directory, values, config, {"tokenizer.json": byte_level_tokenizer(tokens, merges)})


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


# A schema, the fewest tokens that every text of it fits into with room to spare, and a check.
SCHEMAS = [
    ({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
                                       "age": {"type": "integer", "minimum": 0, "maximum": 130},
                                       "tags": {"type": "array", "items": {"type": "string"},
                                                "maxItems": 3}},
      "required": ["name", "age"], "additionalProperties": False}, 40,
     lambda v: isinstance(v, dict) and set(v) <= {"name", "age", "tags"} and
     isinstance(v["name"], str) and len(v["name"]) <= 12 and is_integer(v["age"]) and
     0 <= v["age"] <= 130 and isinstance(v.get("tags", []), list) and
     len(v.get("tags", [])) <= 3 and all(isinstance(t, str) for t in v.get("tags", []))),
    ({"type": "array", "items": {"enum": ["red", "green", 3, None, {"a": [True]}]}, "minItems": 1},
     24, lambda v: isinstance(v, list) and len(v) >= 1 and
     all(e in ("red", "green", 3, None, {"a": [True]}) for e in v)),
    ({"$defs": {"tree": {"type": "object", "properties": {
        "value": {"type": "number"}, "children": {"type": "array", "items": {
            "$ref": "#/$defs/tree"}}}, "required": ["value", "children"],
        "additionalProperties": False}}, "$ref": "#/$defs/tree"}, 40,
     lambda v: is_tree(v)),
    ({"type": "object", "properties": {"when": {"type": "string", "format": "date"},
                                       "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}},
      "required": ["when", "code"], "additionalProperties": False}, 48,
     lambda v: re.fullmatch(r"\d{4}-\d{2}-\d{2}", v["when"]) is not None and
     re.fullmatch(r"[A-Z]{2}-[0-9]{3}", v["code"]) is not None and len(v) == 2),
    (True, 4, lambda v: True),
]


def is_tree(value):
    return (isinstance(value, dict) and set(value) == {"value", "children"} and
            isinstance(value["value"], (int, float)) and not isinstance(value["value"], bool) and
            isinstance(value["children"], list) and all(is_tree(v) for v in value["children"]))


class Expression:
    """sum := product (("+"|"-") product)*, product := unit ("*" unit)*, unit := number | "(" sum ")"."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def take(self, characters):
        if self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1
            return True
        return False

    def unit(self):
        if self.take("("):
            return self.sum() and self.take(")")
        begin = self.at
        while self.take("0123456789"):
            pass
        number = self.text[begin:self.at]
        return bool(number) and (number == "0" or number[0] != "0")

    def product(self):
        good = self.unit()
        while good and self.take("*"):
            good = self.unit()
        return good

    def sum(self):
        good = self.product()
        while good and self.take("+-"):
            good = self.product()
        return good


def is_expression(text):
    expression = Expression(text)
    return expression.sum() and expression.at == len(text)


def is_balanced(text):
    """Each a has its b, nested: S ::= "" | "a" S "b" S, at least one pair."""
    depth = 0
    for character in text:
        depth += {"a": 1, "b": -1}.get(character, 1000)
        if depth < 0 or depth > 500:
            return False
    return depth == 0 and text != ""


GRAMMARS = [
    ('root ::= sum\nsum ::= product (("+" | "-") product)*\nproduct ::= unit ("*" unit)*\n'
     'unit ::= "0" | [1-9] [0-9]* | "(" sum ")"\n', 8, is_expression),
    ('root ::= pair s\npair ::= "a" s "b"\ns ::= pair s | ""\n', 8, is_balanced),
    ('root ::= "yes" | "no" | "maybe" [!?]{1,3}\n', 8,
     lambda text: re.fullmatch(r"yes|no|maybe[!?]{1,3}", text) is not None),
    # Words of two to five letters of any script, by UTF-8.
    ('root ::= word (" " word){0,4}\nword ::= [a-zà-ÿа-я]{2,5}\n', 24,
     lambda text: re.fullmatch(r"[a-zà-ÿа-я]{2,5}( [a-zà-ÿа-я]{2,5}){0,4}", text) is not None),
]


def reads_as_json(check):
    def read(text):
        try:
            return bool(check(json.loads(text)))
        except (ValueError, KeyError, TypeError):
            return False
    return read


def texts_of(model, option, path, room, seed, sequences):
    answer = run_on_device("generate", model, "Go: ", option, path, "--temperature", "1.5",
                           "--top-k", "0", "--seed", str(seed), "--num-sequences", str(sequences),
                           "--max-new-tokens", str(room), "--json")
    if answer.returncode != 0:
        sys.exit(f"grammar: {option} {path} failed: {answer.stderr}")
    line = json.loads(answer.stdout)
    return [entry["text"] for entry in line.get("sequences", [line])]


def main():
    cli_support.PROGRAM = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 240
    kinds = [("--json-schema", json.dumps(schema), room, reads_as_json(check))
             for schema, room, check in SCHEMAS]
    kinds += [("--grammar", text, room, check) for text, room, check in GRAMMARS]
    sequences = max(4, min(200, count // (2 * len(kinds))))
    checked, distinct, model_seed = 0, set(), 0
    with tempfile.TemporaryDirectory() as directory:
        while checked < count:
            ends = model_seed % 2 == 0
            make_model(directory, model_seed, ends)
            for number, (option, text, room, check) in enumerate(kinds):
                path = os.path.join(directory, f"kind{number}")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                most = room * (1 + model_seed % 3)
                for written in texts_of(directory, option, path, most, model_seed, sequences):
                    checked += 1
                    distinct.add((number, written))
                    if not check(written):
                        sys.exit(f"grammar: model {model_seed}, kind {number}: {written!r} is not "
                                 f"of {text}")
            model_seed += 1
    print(f"grammar: {checked} texts of {model_seed} models, {len(distinct)} different, all complete")


if __name__ == "__main__":
    main()
