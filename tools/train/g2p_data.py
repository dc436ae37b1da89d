"""Data of the g2p-en recipe: dictionary, split, vocabulary, tokenizer.json and error rates.

Standard library only, so that all of it runs, and is tested, where PyTorch is not installed.
"""
import json
import random
import re

MAX_LETTERS = 24
MAX_PHONEMES = 24
TEST_WORDS = 12000
DEV_WORDS = 2000
SPLIT_SEED = 7
SPECIAL_TOKENS = ["<pad>", "</s>", "<unk>"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz'-.")

_WORD = re.compile(r"[a-z'.-]+")
_VARIANT = re.compile(r"\(\d+\)$")


def read_cmudict(path):
    """Reads cmudict.dict: word -> its pronunciations in file order, each a tuple of phonemes.

    `word(2)` is a variant of `word`; what follows ` #` is a comment. Words and pronunciations
    that are too long for the model, or hold other characters, are omitted.
    """
    words = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            fields = line.split(" #")[0].split()
            if len(fields) < 2:
                continue
            word = _VARIANT.sub("", fields[0]).lower()
            phonemes = tuple(fields[1:])
            if len(word) > MAX_LETTERS or not _WORD.fullmatch(word):
                continue
            if len(phonemes) > MAX_PHONEMES:
                continue
            variants = words.setdefault(word, [])
            if phonemes not in variants:
                variants.append(phonemes)
    return words


def split_words(words):
    """Splits the words into test, dev and train lists; the same for everyone."""
    order = sorted(words)
    random.seed(SPLIT_SEED)
    random.shuffle(order)
    dev_end = TEST_WORDS + DEV_WORDS
    return {"test": order[:TEST_WORDS], "dev": order[TEST_WORDS:dev_end], "train": order[dev_end:]}


def build_vocabulary(words):
    """Token -> id: special tokens, letters, then every phoneme of the dictionary in order."""
    phonemes = sorted({p for variants in words.values() for v in variants for p in v})
    return {token: index for index, token in enumerate(SPECIAL_TOKENS + LETTERS + phonemes)}


def _added_token(index, content):
    return {"id": index, "content": content, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True}


def _sequence(name, type_id):
    return {"Sequence": {"id": name, "type_id": type_id}}


def tokenizer_json(vocabulary):
    """The tokenizer of the model as a tokenizer.json: one letter a token, `</s>` at the end."""
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(i, token) for i, token in enumerate(SPECIAL_TOKENS)],
        "normalizer": {"type": "Sequence",
                       "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "."},
                          "behavior": "Isolated", "invert": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_sequence("A", 0), end],
            "pair": [_sequence("A", 0), _sequence("B", 1)],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [vocabulary["</s>"]],
                                        "tokens": ["</s>"]}},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }


def training_pairs(words, chosen, vocabulary):
    """Every listed variant of every chosen word: (source ids, target ids), both with </s>."""
    end = vocabulary["</s>"]
    return [([vocabulary[letter] for letter in word] + [end],
             [vocabulary[p] for p in variant] + [end])
            for word in chosen for variant in words[word]]


def without_stress(phonemes):
    """AH0 -> AH."""
    return tuple(p.rstrip("012") for p in phonemes)


def edit_distance(a, b):
    """Insertions, deletions and substitutions that turn a into b (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
            diagonal, row[j] = row[j], best
    return row[-1]


def _nearest(output, variants):
    """(edits, length) for the listed variant that is nearest to the output."""
    return min((edit_distance(output, v), len(v)) for v in variants)


def error_rates(outputs, gold):
    """Scores outputs (word -> phonemes) against gold (word -> list of pronunciations).

    A word is right if it equals any listed variant. Phoneme errors are counted against the
    nearest variant and divided by that variant's length.
    """
    rates = {"words": len(outputs)}
    for suffix, form in (("", tuple), ("_without_stress", without_stress)):
        wrong = errors = length = 0
        for word, phonemes in outputs.items():
            output = form(phonemes)
            edits, nearest = _nearest(output, [form(v) for v in gold[word]])
            wrong += edits != 0
            errors += edits
            length += nearest
        rates["word_error_rate" + suffix] = wrong / len(outputs)
        rates["phoneme_error_rate" + suffix] = errors / length
    return rates


def write_json(path, value, **options):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, **options)
        file.write("\n")
