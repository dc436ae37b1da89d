#!/usr/bin/env python3
"""Makes the golden tokenizers of translation models. These are tokenizer.json files of the structure that transformers
writes for mBART and NLLB, and one of M2M-100's tokens, with small vocabularies. They come with what the tokenizers
library encodes and decodes with them.

    python3 tools/golden/translation_tokenizers_golden.py OUTPUT_DIRECTORY [--strings N]

Needs tokenizers and transformers (their versions go into case.json). With --strings, that many
random strings are added to the written ones. Vocabularies are larger, and mBART-50, older layouts and character maps
come in. This is for comparisons that are not kept.
"""
import argparse
import base64
import json
import random
from pathlib import Path

import tokenizers
import transformers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

SEED = 61
# Of a real file's structure, but small.
CHARACTER_MAP = (Path(__file__).resolve().parents[2] /
                 "tests/golden/tok-unigram-precompiled/model/tokenizer.json")
NLLB_CODES = ["ace_Arab", "deu_Latn", "eng_Latn", "fra_Latn", "ron_Latn", "zho_Hans", "zul_Latn"]
M2M_CODES = ["af", "de", "en", "fr", "ro", "zh", "zu"]

TEXTS = """UN Chief Says There Is No Military Solution in Syria
Şeful ONU declară că nu există o soluţie militară în Siria
The quick brown fox jumps over the lazy dog, and the dog does not mind at all.
Der schnelle braune Fuchs springt über den faulen Hund; die Straße ist naß.
Le cœur a ses raisons que la raison ne connaît point, c'est vrai.
El corazón tiene razones que la razón no entiende: mañana será otro día.
Жизнь прожить - не поле перейти, говорят в Москве.
人生は短く、芸術は長い。 日本語の文
生活就像海洋，只有意志坚强的人才能到达彼岸。
삶이 있는 한 희망은 있다
ज़िंदगी लंबी नहीं, बड़ी होनी चाहिए
الصبر مفتاح الفرج
Where there is a will there is a way, the other one said to the others.
It was the best of times, it was the worst of times, it was the age of wisdom.""".split("\n")

STRINGS = ["", "   ", " a", "a  b ", "Hello, world!", "the dog\nand\tthe fox\r\n", "Şeful declară",
           "Straße über naß", "œuvre ﬁne Ａｂｃ ①", "e\u0301te\u0301", "人生は短く、", "안녕 희망",
           "ज़िंदगी", "👨\u200d👩 🙂🙂", "▁the▁▁dog", "<s> the </s>", "a<mask>b", "a <mask> b",
           "the<unk><pad>dog", "en_XX the</s>", "xen_XXx ro_RO", "eng_Latn the", "eng_Latneng_Latn",
           "__en__ the", "a__fr__b__zz__", "madeupword0 the madeupword12", "wwwwwwwwwwww",
           "\x00\x7f\ufeff\u00a0\u3000x", "don't stop-now 3.14"]
PAIRS = [["the dog", "and the fox"], ["", "a"], ["Straße </s>", "<mask> 人生"]]
BATCH = ["the dog and the fox jump over all the others", "Hund", "人生は短く、芸術は長い。", ""]


def metaspace():
    return pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)


def character_map():
    steps = json.loads(CHARACTER_MAP.read_text())["normalizer"]["normalizers"]
    return base64.b64decode(steps[0]["precompiled_charsmap"])


def unigram_pieces(size):
    """A Unigram vocabulary in SentencePiece's order: <unk>, <s>, </s>, then pieces."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = metaspace()
    trained.train_from_iterator(TEXTS, trainers.UnigramTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>",
        show_progress=False))
    vocab = json.loads(trained.to_str())["model"]["vocab"]
    return [(piece, round(score, 5)) for piece, score in vocab]


def byte_pairs(size, specials):
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = metaspace()
    trained.train_from_iterator(TEXTS, trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def fairseq_pieces(size):
    return [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + unigram_pieces(size)[3:]


def mbart(size):
    tokenizer = transformers.MBartTokenizer(vocab=fairseq_pieces(size), src_lang="en_XX",
                                            tgt_lang="ro_RO")
    return tokenizer._tokenizer


def mbart_mapped(size):
    """As SpmConverter wrote it up to transformers 4."""
    tokenizer = mbart(size)
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(character_map()), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = metaspace()
    return tokenizer


def mbart50(size):
    tokenizer = transformers.MBart50Tokenizer(vocab=unigram_pieces(size), src_lang="fr_XX",
                                              tgt_lang="ro_RO")
    return tokenizer._tokenizer


def nllb(size, charsmap=None, legacy=False):
    vocab, merges = byte_pairs(size, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer = transformers.NllbTokenizer(
        vocab=vocab, merges=merges, src_lang="eng_Latn", tgt_lang="fra_Latn",
        extra_special_tokens=NLLB_CODES, legacy_behaviour=legacy,
        _spm_precompiled_charsmap=charsmap)
    return tokenizer._tokenizer


def m2m_100(size):
    """transformers has no fast M2M-100 tokenizer and so no converter. This is what its own one does, as files made for
    other runtimes have it. They have SentencePiece's pieces by the numbers of vocab.json. Then follow a token per
    language, and words that fill the vocabulary up."""
    tokenizer = Tokenizer(models.Unigram(fairseq_pieces(size), unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.Replace(Regex(r"[\n\r\t]"), " "),
        normalizers.Replace(Regex(r" {2,}"), " "), normalizers.Strip()])
    tokenizer.pre_tokenizer = metaspace()
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True)
                                  for t in ["<s>", "<pad>", "</s>", "<unk>"]])
    tokenizer.add_special_tokens([AddedToken(f"__{code}__", normalized=False, special=True)
                                  for code in M2M_CODES])
    tokenizer.add_tokens([f"madeupword{i}" for i in range(4)])
    ids = {t: tokenizer.token_to_id(t) for t in ["__de__", "</s>"]}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="__de__ $A </s>", pair="__de__ $A $B </s>", special_tokens=list(ids.items()))
    return tokenizer


def random_string(rng):
    pool = STRINGS + TEXTS + NLLB_CODES + ["<mask>", "</s>", "__de__", "de_DE", " ", "\n", "▁", "x"]
    text = "".join(rng.choice(pool)[:rng.randint(1, 30)] for _ in range(rng.randint(1, 6)))
    if rng.random() < 0.3:
        text += "".join(chr(rng.choice([rng.randrange(32, 0x180), rng.randrange(0x300, 0x600),
                                        rng.randrange(0x3040, 0x3100), rng.randrange(0xfb00, 0xffff),
                                        rng.randrange(0x1f300, 0x1f700)])) for _ in range(12))
    return text


def result(tokenizer, *texts):
    encoding = tokenizer.encode(*texts)
    bare = tokenizer.encode(*texts, add_special_tokens=False)
    return {"ids": encoding.ids, "tokens": encoding.tokens, "offsets": encoding.offsets,
            "type_ids": encoding.type_ids, "ids_without_special": bare.ids,
            "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=True),
            "decoded_with_special": tokenizer.decode(encoding.ids, skip_special_tokens=False)}


def write(folder, notes, tokenizer, strings):
    (folder / "model").mkdir(parents=True, exist_ok=True)

    def dump(name, value):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        (folder / name).write_text(text + "\n", encoding="utf-8")

    dump("model/tokenizer.json", json.loads(tokenizer.to_str()))
    limit, pad = 8, tokenizer.token_to_id("<pad>")
    dump("inputs.json", {"strings": strings, "pairs": PAIRS, "batch": {
        "strings": BATCH, "truncation_max_length": limit, "pad_id": pad}})
    expected = {"strings": [result(tokenizer, s) for s in strings],
                "pairs": [result(tokenizer, *pair) for pair in PAIRS]}
    tokenizer.enable_truncation(limit)
    tokenizer.enable_padding(pad_id=pad, pad_token="<pad>")
    rows = tokenizer.encode_batch(BATCH)
    expected["batch"] = {"ids": [row.ids for row in rows],
                         "attention_mask": [row.attention_mask for row in rows]}
    dump("expected.json", expected)
    dump("case.json", {
        "format": 1, "name": folder.name, "family": "tokenizer", "seed": SEED, "notes": notes,
        "tolerance": {"abs": 0, "rel": 0}, "offsets": "Unicode code points, half-open",
        "tokenizers_version": tokenizers.__version__,
        "transformers_version": transformers.__version__})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--strings", type=int, default=0)
    arguments = parser.parse_args()
    size = 1200 if arguments.strings else 200
    cases = {"tok-mbart": (mbart, "MBartTokenizer: language code behind the text."),
             "tok-nllb": (nllb, "NllbTokenizer: BPE without byte fallback, language code in front."),
             "tok-m2m100": (m2m_100, "M2M-100's tokens: __de__ in front, words that fill up.")}
    if arguments.strings:
        cases["tok-mbart50"] = (mbart50, "MBart50Tokenizer: language code in front.")
        cases["tok-mbart-mapped"] = (mbart_mapped, "The older layout of mBART.")
        cases["tok-nllb-mapped"] = (lambda n: nllb(n, character_map()), "With a character map.")
        cases["tok-nllb-legacy"] = (lambda n: nllb(n, legacy=True), "The older layout of NLLB.")
    for name, (make, notes) in cases.items():
        rng = random.Random(SEED)
        strings = STRINGS + [random_string(rng) for _ in range(arguments.strings)]
        write(arguments.output / name, notes, make(size), strings)


if __name__ == "__main__":
    main()
