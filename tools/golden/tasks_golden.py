#!/usr/bin/env python3
"""Makes tests/tasks/golden: small random models with tokenizers, and what Hugging Face's pipelines
answer with them.

    python3 tools/golden/tasks_golden.py OUTPUT_DIRECTORY

Needs torch, transformers, tokenizers and Pillow (their versions go into versions.json). Every folder
is a model directory with expected.json. Answers to questions come from a copy of the rules of the
question-answering pipeline of transformers 4, written with numpy: later versions have none.
"""
import copy
import json
import os
import random
import re
import sys
import wave
from collections import Counter

import numpy as np
import PIL
import tokenizers
import torch
import transformers as T
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil
from transformers.models.dpt.image_processing_pil_dpt import DPTImageProcessorPil
from transformers.models.rt_detr.image_processing_pil_rt_detr import RTDetrImageProcessorPil
from transformers.models.sam.image_processing_pil_sam import SamImageProcessorPil
from transformers.models.yolos.image_processing_pil_yolos import YolosImageProcessorPil

import gliner_golden

SEED = 7
TEXTS = ["The quick brown fox jumps over the lazy dog.",
         "Ångström met Müller in Paris, France!",
         "A small model cannot know what Vulkan is, but it tries.",
         "hello",
         "Barack went to the U.S. in 2009; nobody saw him (or so they say).",
         "Supercalifragilistic words are unaffable."]
QUESTIONS = ["Who met Müller?", "what is it", "Where did Barack go in 2009?"]
LONG = " ".join(TEXTS * 4)
# How Qwen3-Reranker is asked, by its model card, and the first tokens of Qwen's tokenizers.
JUDGE = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query '
         'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
         '<|im_start|>user\n')
ANSWER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
RESIZE = Image.Image.resize


def columns_first(image, size, *args, **kwargs):
    """Pillow's resize up to version 12; version 13 takes the rows first where that is faster."""
    return RESIZE(RESIZE(image, (size[0], image.height), *args, **kwargs), size, *args, **kwargs)


def pieces(texts, count):
    """Characters and the most frequent pieces of words; the trainers of tokenizers break ties
    differently from run to run."""
    words = [word for text in texts for word in text.split()]
    found = Counter(word[start:start + length] for word in words for length in (2, 3, 4)
                    for start in range(len(word) - length + 1))
    frequent = sorted(found, key=lambda piece: (-found[piece] * len(piece), piece))[:count]
    return sorted(set("".join(words))) + frequent


def word_piece():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    plain = [text.lower().replace("å", "a").replace("ö", "o").replace("ü", "u") for text in TEXTS]
    vocabulary = special + [before + piece for piece in pieces(plain, 50) for before in ("", "##")]
    engine = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)},
                                        unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer(lowercase=True)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return T.PreTrainedTokenizerFast(
        tokenizer_object=engine, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def byte_level(special, post_processor, more_texts=(), vocab_size=300, **names):
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.train_from_iterator([*TEXTS, *more_texts], trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    engine.post_processor = post_processor
    return T.PreTrainedTokenizerFast(tokenizer_object=engine,
                                     model_input_names=["input_ids", "attention_mask"], **names)


def roberta_words():
    return byte_level(
        ["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True,
                                     add_prefix_space=False),
        cls_token="<s>", sep_token="</s>", unk_token="<unk>", pad_token="<pad>")


def randomised(model):
    """Weights that make answers differ from input to input."""
    norms = ("LayerNorm.weight", "layer_norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight",
             "ln_cross_attn.weight", "layernorm_before.weight", "layernorm_after.weight",
             "layernorm.weight")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            spread = 0.5 if weight.dim() < 2 else 1.5 / weight.shape[-1] ** 0.5
            weight.copy_(torch.randn_like(weight) * spread + (1.0 if name.endswith(norms) else 0.0))
    return model.float().eval()


def calmed(model):
    """Convolutions that neither swell nor fade."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 4:
                weight *= (weight.shape[-1] / weight[0].numel()) ** 0.5
    return model


def words_of(text):
    return list(re.finditer(r"\w+(?:[-_]\w+)*|\S", text))


def span_scores(model, tokenizer, text, labels):
    """Logits (words, widths, labels) of one text."""
    words, prompt = [found.group() for found in words_of(text)], []
    if not words:
        return torch.zeros(0, model.config["max_width"], len(labels), dtype=torch.float64)
    for label in labels:
        prompt += ["<<ENT>>", label]
    prompt.append("<<SEP>>")
    row = tokenizer([prompt + words], is_split_into_words=True, return_tensors="pt")
    numbers, seen = [], set()
    for place in row.word_ids(0):
        first = place is not None and place >= len(prompt) and place not in seen
        numbers.append(place - len(prompt) + 1 if first else 0)
        seen.add(place)
    inputs = dict(input_ids=row["input_ids"], attention_mask=row["attention_mask"],
                  words_mask=torch.tensor([numbers]), text_lengths=torch.tensor([len(words)]))
    with torch.no_grad():
        return model(inputs)["logits"][0]


def named_spans(text, scores, labels, threshold=0.5, nested=False, multi_label=False):
    """The likeliest spans first, without those that overlap one before; in text order."""
    words, chosen = words_of(text), []
    scores = torch.sigmoid(scores)
    spans = [(float(scores[s, k, c]), s, s + k, c) for s, k, c in
             torch.nonzero(scores > threshold).tolist() if s + k < len(words)]
    for span in sorted(spans, key=lambda span: -span[0]):
        clash = False
        for _, first, last, _ in chosen:
            same = (first, last) == span[1:3]
            apart = span[1] > last or first > span[2]
            inside = (first <= span[1] and span[2] <= last) or (span[1] <= first and last <= span[2])
            clash |= not multi_label if same else not (apart or (nested and inside))
        if not clash:
            chosen.append(span)
    return [{"label": labels[c], "score": score, "begin": words[first].start(),
             "end": words[last].end()}
            for score, first, last, c in sorted(chosen, key=lambda span: span[1])]


def softmax(x):
    x = np.exp(x - x.max())
    return x / x.sum()


class Maker:
    def __init__(self, folder):
        self.folder = folder
        self.words = word_piece()

    def save(self, name, model, parts, expected):
        folder = os.path.join(self.folder, name)
        model.save_pretrained(folder)
        for part in parts:
            part.save_pretrained(folder)
        self.write(name + "/expected.json", expected)

    def write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, default=float, ensure_ascii=False)

    def bert(self, kind, labels=None, **options):
        if labels:
            options["id2label"] = dict(enumerate(labels))
            options["label2id"] = {label: i for i, label in enumerate(labels)}
        return randomised(kind(T.BertConfig(
            vocab_size=len(self.words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=96, pad_token_id=0, **options)))

    def embed(self):
        model = self.bert(T.BertModel)
        vectors = []
        for text in TEXTS:
            with torch.no_grad():
                states = model(**self.words(text, return_tensors="pt")).last_hidden_state
            vectors.append(states[0].mean(0).tolist())
        self.save("embed", model, [self.words], {"texts": TEXTS, "vectors": vectors})

    def classify(self):
        for name, labels, options in (
                ("labels", ["bad", "so so", "good"], {}),
                ("several-labels", ["a", "b", "c", "d"],
                 {"problem_type": "multi_label_classification"})):
            model = self.bert(T.BertForSequenceClassification, labels, **options)
            run = T.pipeline("text-classification", model=model, tokenizer=self.words, device="cpu")
            pair = {"text": TEXTS[0], "text_pair": TEXTS[1]}
            self.save(name, model, [self.words],
                      {"texts": TEXTS, "labels": [run(text, top_k=len(labels)) for text in TEXTS],
                       "pair": pair, "pair_labels": run(pair, top_k=len(labels))})

    def entities(self):
        model = self.bert(T.BertForTokenClassification, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
        run = T.pipeline("token-classification", model=model, tokenizer=self.words, device="cpu",
                         aggregation_strategy="simple")
        self.save("entities", model, [self.words],
                  {"texts": TEXTS, "entities": [run(text) for text in TEXTS]})

    def named_entities(self):
        """A GLiNER, and what the library's predict_entities gives of its scores."""
        vocabulary = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "\u2581"]
        vocabulary += [before + piece for piece in pieces(TEXTS, 60) for before in ("", "\u2581")]
        vocabulary = [(piece, -5.0 + len(piece)) for piece in dict.fromkeys(vocabulary)]
        words = T.DebertaV2Tokenizer(vocab=vocabulary, unk_id=3)
        words.add_tokens(["[FLERT]", "<<ENT>>", "<<SEP>>"])
        marker = words.convert_tokens_to_ids("<<ENT>>")
        assert marker == len(words) - 2
        config = gliner_golden.GLINER | dict(
            hidden_size=18, max_width=4, vocab_size=len(words), class_token_index=marker)
        encoder = T.DebertaV2Config(
            vocab_size=len(words), hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=30, max_position_embeddings=128, relative_attention=True,
            position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True,
            pos_att_type="p2c|c2p", position_biased_input=False, type_vocab_size=0)
        texts = [*TEXTS, " ", "x_y-z caf\u00e9\u2014na\u00efve!"]
        runs = [dict(labels=["person", "city in a country", "so"]),
                dict(labels=["animal"], threshold=0.3),
                dict(labels=["verb", "person"], nested=True, threshold=0.6),
                dict(labels=["person", "city", "animal"], multi_label=True)]
        seed = 0
        while True:
            torch.manual_seed(seed)
            model = gliner_golden.Gliner(config, T.DebertaV2Model(encoder)).eval()
            gliner_golden.base.randomize(model, torch.Generator().manual_seed(seed))
            model.prompt_rep_layer[3].weight.data *= 0.3  # scores near the threshold, too
            scored = [[span_scores(copy.deepcopy(model).double(), words, text, run["labels"])
                       for text in texts] for run in runs]
            found = [[named_spans(text, scores, **run) for text, scores in zip(texts, rows)]
                     for run, rows in zip(runs, scored)]
            firm = all([[(e["label"], e["begin"], e["end"]) for e in named_spans(
                text, scores + 2e-3 * torch.randn(scores.shape, dtype=scores.dtype), **run)]
                == [(e["label"], e["begin"], e["end"]) for e in wanted]
                for run, rows, one in zip(runs, scored, found)
                for text, scores, wanted in zip(texts, rows, one) for _ in range(8)])
            counts = [sum(map(len, one)) for one in found]
            if firm and all(4 <= count <= 60 for count in counts):
                break
            seed += 1
        print("named-entities", "seed", seed, "found", counts)
        self.save("named-entities", gliner_golden.Saved(model, encoder), [words],
                  {"texts": texts, "runs": [run | {"entities": one}
                                            for run, one in zip(runs, found)]})

    def masks(self):
        model = self.bert(T.BertForMaskedLM)
        run = T.pipeline("fill-mask", model=model, tokenizer=self.words, device="cpu")
        texts = ["The quick [MASK] fox.", "[MASK] went to the [MASK]!"]
        filled = [run(text, top_k=4) for text in texts]
        filled[0] = [filled[0]]
        self.save("masks", model, [self.words], {"texts": texts, "masks": filled})

    def answers(self):
        short = TEXTS[1] + " " + TEXTS[4]
        roberta = roberta_words()
        config = T.RobertaConfig(
            vocab_size=len(roberta), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=130, pad_token_id=1, type_vocab_size=1)
        for name, model, tokenizer, limit in (
                ("answers", self.bert(T.BertForQuestionAnswering), self.words, 96),
                ("answers-bytes", randomised(T.RobertaForQuestionAnswering(config)), roberta, 128)):
            runs = []
            for options in ((short, limit, limit // 2, 15, 1, False),
                            (LONG, limit, limit // 2, 15, 1, False),
                            (LONG, limit // 3 * 2, 20, 6, 3, True)):
                names = ("context", "window", "overlap", "longest", "top", "null")
                runs.append(dict(zip(names, options), answers=[
                    best_answers(model, tokenizer, question, options) for question in QUESTIONS]))
            self.save(name, model, [tokenizer], {"questions": QUESTIONS, "runs": runs})

    def pairs(self, kind, tokenizer, labels):
        """A classifier of pairs of the layout of RoBERTa, and its logits in float64."""
        config = kind.config_class(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=130, pad_token_id=1, type_vocab_size=1,
            id2label=dict(enumerate(labels)), label2id={name: i for i, name in enumerate(labels)})
        model = randomised(kind(config))
        double = copy.deepcopy(model).double()

        def logits(first, second):
            with torch.no_grad():
                return double(**tokenizer(first, second, return_tensors="pt")).logits[0].numpy()
        return model, logits

    def rerank(self):
        """Scores of sentence-transformers' CrossEncoder with one label: a sigmoid of the logit."""
        tokenizer = roberta_words()
        model, logits = self.pairs(T.XLMRobertaForSequenceClassification, tokenizer, ["LABEL_0"])
        runs = []
        for query in QUESTIONS:
            scores = [float(logits(query, text)[0]) for text in TEXTS]
            order = sorted(range(len(TEXTS)), key=lambda i: -scores[i])
            runs.append({"query": query, "ranking": [
                {"index": i, "logit": scores[i], "score": 1 / (1 + np.exp(-scores[i]))}
                for i in order]})
        self.save("rerank", model, [tokenizer], {"documents": TEXTS, "runs": runs})

    def qwen3(self, kind, tokenizer):
        """A small Qwen3, and what it gives in float64."""
        torch.manual_seed(SEED)
        model = randomised(kind(T.Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, intermediate_size=48, max_position_embeddings=512,
            tie_word_embeddings=kind is T.Qwen3ForCausalLM, pad_token_id=0, eos_token_id=2)))
        double = copy.deepcopy(model).double()

        def run(ids):
            with torch.no_grad():
                return double(torch.tensor([ids]))
        return model, run

    def judge(self):
        """Qwen3-Reranker: a language model's logit of "yes" less that of "no"."""
        tokenizer = byte_level(QWEN, processors.ByteLevel(trim_offsets=False), pad_token=QWEN[0],
                               more_texts=["yes", "no"] * 20 + [JUDGE, ANSWER, INSTRUCTION],
                               vocab_size=450)
        model, run = self.qwen3(T.Qwen3ForCausalLM, tokenizer)
        before, after = (tokenizer.encode(text, add_special_tokens=False)
                         for text in (JUDGE, ANSWER))
        yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
        runs = []
        for query, instruction in zip(QUESTIONS, (None, "Find what is about animals", None)):
            scores = []
            for text in TEXTS:
                pair = (f"<Instruct>: {instruction or INSTRUCTION}\n<Query>: {query}\n"
                        f"<Document>: {text}")
                logits = run(before + tokenizer.encode(pair, add_special_tokens=False) +
                             after).logits[0, -1]
                scores.append(float(logits[yes] - logits[no]))
            order = sorted(range(len(TEXTS)), key=lambda i: -scores[i])
            runs.append({"query": query, "instruction": instruction or "", "ranking": [
                {"index": i, "logit": scores[i], "score": 1 / (1 + np.exp(-scores[i]))}
                for i in order]})
        self.save("judge", model, [tokenizer], {"documents": TEXTS, "runs": runs})

    def embed_last(self):
        """Qwen3-Embedding: the last token's state, of length 1. The class that its config.json
        names has a head, its file has none."""
        end = QWEN[0]
        template = processors.TemplateProcessing(single=f"$A {end}", pair=f"$A {end} $B {end}",
                                                 special_tokens=[(end, 0)])
        tokenizer = byte_level(QWEN, processors.Sequence(
            [processors.ByteLevel(trim_offsets=False), template]), pad_token=end)
        model, run = self.qwen3(T.Qwen3Model, tokenizer)
        prompt = "Instruct: Find what answers\nQuery:"
        vectors = {}
        for name, text_before in (("", ""), ("query", prompt)):
            vectors[name] = []
            for text in TEXTS:
                state = run(tokenizer.encode(text_before + text)).last_hidden_state[0, -1]
                vectors[name].append((state / state.norm()).tolist())
        self.save("embed-last", model, [tokenizer], {"texts": TEXTS, "vectors": vectors})
        with open(os.path.join(self.folder, "embed-last/config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.write("embed-last/config.json", config | {"architectures": ["Qwen3ForCausalLM"]})
        kinds = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
        self.write("embed-last/modules.json", [
            {"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
            for i, (path, kind) in enumerate(kinds)])
        os.makedirs(os.path.join(self.folder, "embed-last/1_Pooling"), exist_ok=True)
        self.write("embed-last/1_Pooling/config.json", {
            "word_embedding_dimension": 32, "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": False, "pooling_mode_lasttoken": True,
            "include_prompt": True})
        self.write("embed-last/config_sentence_transformers.json", {
            "prompts": {"query": prompt, "document": ""}, "default_prompt_name": None})

    def zero_shot(self):
        """Zero-shot classification of transformers, by its formulas in float64."""
        tokenizer = roberta_words()
        model, logits = self.pairs(T.RobertaForSequenceClassification, tokenizer,
                                   ["Contradiction", "Neutral", "Entailment"])
        pipeline = T.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer,
                              device="cpu")
        labels = ["animals", "a city", "politics", "music"]
        runs = []
        for pattern, multi, names in (("This example is {}.", False, labels),
                                      ("It tells of {}", True, labels),
                                      ("This example is {}.", False, labels[:1])):
            found = []
            for text in TEXTS:
                rows = np.array([logits(text, pattern.format(name)) for name in names])
                if multi or len(names) == 1:
                    scores = [softmax(row[[0, 2]])[1] for row in rows]
                else:
                    scores = softmax(rows[:, 2])
                best = sorted(zip(names, scores), key=lambda pair: -pair[1])
                there = pipeline(text, names, hypothesis_template=pattern, multi_label=multi)
                assert there["labels"] == [name for name, _ in best]
                assert np.allclose(there["scores"], [score for _, score in best], atol=1e-5)
                found.append([{"label": name, "score": score} for name, score in best])
            runs.append({"hypothesis": pattern, "multi_label": multi, "labels": names,
                         "found": found})
        self.save("zero-shot", model, [tokenizer], {"texts": TEXTS, "runs": runs})

    def texts(self):
        end = "<|endoftext|>"
        tokenizer = byte_level([end], processors.ByteLevel(trim_offsets=False), eos_token=end)
        model = randomised(T.GPT2LMHeadModel(T.GPT2Config(
            vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=96,
            bos_token_id=0, eos_token_id=0, pad_token_id=0)))
        runs = []
        for beams, count in ((1, 12), (3, 8)):
            found = []
            for text in TEXTS:
                inputs = tokenizer(text, return_tensors="pt")
                prompt = inputs["input_ids"].shape[1]
                ids = model.generate(**inputs, do_sample=False, num_beams=beams,
                                     max_new_tokens=count)[0].tolist()
                before = tokenizer.decode(ids[:prompt], skip_special_tokens=True)
                found.append({"ids": ids[prompt:],
                              "text": tokenizer.decode(ids,
                                                       skip_special_tokens=True)[len(before):]})
            runs.append({"beams": beams, "max_new_tokens": count, "found": found})
        self.save("texts", model, [tokenizer], {"texts": TEXTS, "runs": runs})

    def translations(self):
        prefix = "translate this: "
        special = ["<pad>", "</s>", "<unk>"]
        known = pieces(["\u2581" + word for word in " ".join(TEXTS + [prefix]).split()], 60)
        engine = Tokenizer(models.Unigram(
            [(token, 0.0) for token in special] +
            [(piece, -9.0 + len(piece) - i / 100) for i, piece in enumerate(known)], unk_id=2))
        engine.add_special_tokens(special)
        engine.pre_tokenizer = pre_tokenizers.Metaspace()
        engine.decoder = decoders.Metaspace()
        engine.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
        tokenizer = T.PreTrainedTokenizerFast(
            tokenizer_object=engine, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
            model_input_names=["input_ids", "attention_mask"])
        model = randomised(T.T5ForConditionalGeneration(T.T5Config(
            vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=48, num_layers=2,
            num_decoder_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0,
            eos_token_id=1)))
        found = []
        for text in TEXTS:
            ids = model.generate(**tokenizer(prefix + text, return_tensors="pt"), do_sample=False,
                                 max_new_tokens=9, num_beams=2)[0]
            found.append(tokenizer.decode(ids, skip_special_tokens=True))
        self.save("translations", model, [tokenizer], {"texts": TEXTS, "found": found})
        path = os.path.join(self.folder, "translations", "config.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["task_specific_params"] = {"go": {"prefix": prefix, "num_beams": 2,
                                                 "max_length": 10}}
        self.write("translations/config.json", config)

    def pictures(self):
        Image.Image.resize = columns_first
        noise = np.random.default_rng(1)
        files, opened = [], []
        for i, (width, height) in enumerate([(20, 25), (32, 32), (45, 16)]):
            files.append(f"picture-{i}.png")
            pixels = (noise.random((height // 4 + 1, width // 4 + 1, 3)) * 255).astype(np.uint8)
            path = os.path.join(self.folder, files[i])
            Image.fromarray(pixels).resize((width, height), Image.BICUBIC).save(path)
            opened.append(Image.open(path).convert("RGB"))
        sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=48, image_size=32, patch_size=8)
        processor = ViTImageProcessorPil(size={"height": 32, "width": 32})
        values = [processor(picture, return_tensors="pt").pixel_values for picture in opened]
        labels = {i: f"thing {i}" for i in range(7)}
        model = randomised(T.ViTForImageClassification(T.ViTConfig(
            **sizes, id2label=labels, label2id={label: i for i, label in labels.items()})))
        expected = []
        for value in values:
            with torch.no_grad():
                scores, places = model(value).logits[0].softmax(-1).topk(5)
            expected.append([{"label": labels[int(place)], "score": float(score)}
                             for score, place in zip(scores, places)])
        self.save("picture-labels", model, [processor], {"pictures": files, "labels": expected})
        self.captions(files, values, processor, T.ViTConfig(**sizes))

    def detections(self, name, model, processor):
        """Object detection of transformers, by its formulas in float64."""
        files = [f"picture-{i}.png" for i in range(3)]
        opened = [Image.open(os.path.join(self.folder, file)).convert("RGB") for file in files]
        Image.Image.resize = columns_first
        double = copy.deepcopy(model).double()
        found = []
        for one in opened:
            values = processor(one, return_tensors="pt", do_pad=False).pixel_values.double()
            with torch.no_grad():
                outputs = double(pixel_values=values)
            result = processor.post_process_object_detection(
                outputs, threshold=0.0, target_sizes=[one.size[::-1]])[0]
            rows = [dict(label=double.config.id2label[int(label)], score=float(score),
                         box=box.tolist())
                    for score, label, box in zip(result["scores"], result["labels"],
                                                 result["boxes"])]
            found.append(sorted(rows, key=lambda row: -row["score"]))
        Image.Image.resize = RESIZE
        self.save(name, model, [processor], {"pictures": files, "found": found})

    def objects(self):
        processor = YolosImageProcessorPil(size={"shortest_edge": 48, "longest_edge": 64})
        model = randomised(T.YolosForObjectDetection(T.YolosConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            image_size=[48, 64], patch_size=8, num_detection_tokens=6,
            id2label={0: "fox", 1: "dog", 2: "city"})))
        self.detections("objects", model, processor)

    def scored_objects(self):
        """The same where each class has a separate score."""
        processor = RTDetrImageProcessorPil(size={"height": 64, "width": 96})
        backbone = dict(model_type="rt_detr_resnet", embedding_size=8, layer_type="basic",
                        hidden_sizes=[8, 8, 12, 16], depths=[1, 1, 1, 1], out_indices=[2, 3, 4])
        model = calmed(randomised(T.RTDetrForObjectDetection(T.RTDetrConfig(
            backbone_config=backbone, d_model=16, encoder_hidden_dim=16, encoder_ffn_dim=24,
            encoder_attention_heads=2, decoder_attention_heads=2, decoder_ffn_dim=24,
            decoder_layers=2, decoder_n_points=2, num_queries=6, encoder_in_channels=[8, 12, 16],
            decoder_in_channels=[16, 16, 16], id2label={0: "fox", 1: "dog", 2: "city"}))))
        self.detections("scored-objects", model, processor)

    def depths(self):
        """Depth estimation of transformers, by its formulas in float64."""
        files = [f"picture-{i}.png" for i in range(3)]
        opened = [Image.open(os.path.join(self.folder, file)).convert("RGB") for file in files]
        Image.Image.resize = columns_first
        processor = DPTImageProcessorPil(size={"height": 24, "width": 24}, keep_aspect_ratio=True,
                                         ensure_multiple_of=4)
        backbone = dict(model_type="dinov2", hidden_size=16, num_attention_heads=2, mlp_ratio=2,
                        image_size=24, patch_size=4, reshape_hidden_states=False,
                        num_hidden_layers=2, out_indices=[1, 2])
        model = calmed(randomised(T.DepthAnythingForDepthEstimation(T.DepthAnythingConfig(
            backbone_config=backbone, patch_size=4, reassemble_hidden_size=16,
            reassemble_factors=[2, 1], neck_hidden_sizes=[6, 8], fusion_hidden_size=6,
            head_hidden_size=5))))
        double = copy.deepcopy(model).double()
        depths = []
        for one in opened:
            values = processor(one, return_tensors="pt").pixel_values.double()
            with torch.no_grad():
                outputs = double(pixel_values=values)
            depth = processor.post_process_depth_estimation(outputs, [one.size[::-1]])[0]
            depths.append([round(value, 5) for value in
                           depth["predicted_depth"].flatten().tolist()])
        Image.Image.resize = RESIZE
        self.save("depth", model, [processor], {"pictures": files, "depths": depths})

    def segments(self):
        """Masks of prompts of transformers, by its formulas in float64."""
        files = [f"picture-{i}.png" for i in range(3)]
        opened = [Image.open(os.path.join(self.folder, file)).convert("RGB") for file in files]
        Image.Image.resize = columns_first
        processor = SamImageProcessorPil(
            size={"longest_edge": 32}, pad_size={"height": 32, "width": 32},
            mask_size={"longest_edge": 16}, mask_pad_size={"height": 16, "width": 16})
        model = calmed(randomised(T.SamModel(T.SamConfig(
            vision_config=dict(hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
                               image_size=32, patch_size=8, output_channels=16, num_pos_feats=8,
                               mlp_ratio=2.0, window_size=3, global_attn_indexes=[1]),
            prompt_encoder_config=dict(hidden_size=16, image_size=32, patch_size=8,
                                       mask_input_channels=4),
            mask_decoder_config=dict(hidden_size=16, num_attention_heads=2, mlp_dim=24,
                                     iou_head_hidden_dim=12)))))
        double = copy.deepcopy(model).double()
        runs = []
        for file, one in zip(files[::2], opened[::2]):
            inputs = processor(one, return_tensors="pt")
            seen = [int(side) for side in inputs["reshaped_input_sizes"][0]]
            scale = np.array([seen[1] / one.size[0], seen[0] / one.size[1]])
            for points, labels, boxes in (
                    ([[[4.0, 5.5]], [[12.0, 3.0], [1.0, 14.0]]], [[1], [1, 0]], None),
                    ([[[7.0, 9.0]]], [[0]], [[2.0, 1.0, 14.0, 12.5]]),
                    (None, None, [[3.0, 4.0, 9.0, 15.0]])):
                given = {}
                if points is not None:
                    most = max(len(one_prompt) for one_prompt in points)
                    rows = [[(np.array(place) * scale).tolist() for place in one_prompt]
                            + [[-10.0, -10.0]] * (most - len(one_prompt)) for one_prompt in points]
                    given["input_points"] = torch.tensor([rows]).double()
                    given["input_labels"] = torch.tensor(
                        [[row + [-10] * (most - len(row)) for row in labels]])
                if boxes is not None:
                    rows = [(np.array(box) * np.tile(scale, 2)).tolist() for box in boxes]
                    given["input_boxes"] = torch.tensor([rows]).double()
                with torch.no_grad():
                    outputs = double(pixel_values=inputs["pixel_values"].double(), **given)
                masks = processor.post_process_masks(
                    outputs.pred_masks, [one.size[::-1]], [seen], binarize=False)[0]
                runs.append(dict(picture=file, points=points, labels=labels, boxes=boxes,
                                 scores=outputs.iou_scores[0].tolist(),
                                 best=[[round(value, 3) for value in
                                        prompt[int(scores.argmax())].flatten().tolist()]
                                       for prompt, scores in zip(masks, outputs.iou_scores[0])]))
        Image.Image.resize = RESIZE
        self.save("segments", model, [processor], {"runs": runs})

    def named_pictures(self):
        """Zero-shot image classification of transformers, by its formulas in float64."""
        files = [f"picture-{i}.png" for i in range(3)]
        opened = [Image.open(os.path.join(self.folder, file)).convert("RGB") for file in files]
        Image.Image.resize = columns_first
        tokenizer = roberta_words()
        tower = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=48, image_size=32, patch_size=8)
        texts = tower | dict(vocab_size=len(tokenizer), max_position_embeddings=40,
                             pad_token_id=tokenizer.pad_token_id, projection_size=32,
                             eos_token_id=tokenizer.sep_token_id)
        labels = ["animals", "a city", "politics", "music"]
        for name, kind, processor in (
                ("picture-texts", T.CLIPModel, CLIPImageProcessorPil(
                    size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32})),
                ("picture-texts-sigmoid", T.SiglipModel, SiglipImageProcessorPil(
                    size={"height": 32, "width": 32}))):
            sigmoid = kind is T.SiglipModel
            model = randomised(kind(kind.config_class(text_config=texts, vision_config=tower)))
            model.logit_scale.data.fill_(3.0)
            double = copy.deepcopy(model).double()
            values = torch.cat([processor(one, return_tensors="pt").pixel_values
                                for one in opened]).double()
            runs = []
            for pattern, names in (("This is a photo of {}.", labels), ("It shows {}", labels[:2])):
                inputs = tokenizer([pattern.format(label) for label in names], return_tensors="pt",
                                   padding="max_length" if sigmoid else True, max_length=40)
                if sigmoid:
                    inputs.pop("attention_mask")
                with torch.no_grad():
                    logits = double(pixel_values=values, **inputs).logits_per_image
                found = []
                for row in logits.sigmoid() if sigmoid else logits.softmax(-1):
                    best = sorted(zip(names, row.tolist()), key=lambda pair: -pair[1])
                    found.append([{"label": label, "score": score} for label, score in best])
                runs.append({"hypothesis": pattern, "labels": names, "found": found})
            self.save(name, model, [processor, tokenizer], {"pictures": files, "runs": runs})

    def captions(self, files, values, processor, encoder):
        end = "<|endoftext|>"
        tokenizer = byte_level([end], processors.ByteLevel(trim_offsets=False), eos_token=end)
        decoder = T.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4,
                               n_positions=64, bos_token_id=0, eos_token_id=0,
                               add_cross_attention=True, is_decoder=True)
        config = T.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
        config.decoder_start_token_id = config.pad_token_id = config.eos_token_id = 0
        model = randomised(T.VisionEncoderDecoderModel(config))
        settings = model.generation_config
        settings.decoder_start_token_id = settings.pad_token_id = settings.eos_token_id = 0
        found = []
        for value in values:
            ids = model.generate(value, do_sample=False, max_new_tokens=8)[0]
            found.append(tokenizer.decode(ids, skip_special_tokens=True))
        self.save("captions", model, [processor, tokenizer], {"pictures": files, "found": found})

    def ctc(self):
        """Audio becomes texts and words with times; the audio is that of speech()."""
        folder = os.path.join(self.folder, "ctc")
        os.makedirs(folder, exist_ok=True)
        vocabulary = ["<pad>", "<s>", "</s>", "<unk>", "|", *"EATON'"]
        with open(os.path.join(folder, "vocab.json"), "w", encoding="utf-8") as file:
            json.dump({token: i for i, token in enumerate(vocabulary)}, file)
        tokenizer = T.Wav2Vec2CTCTokenizer(os.path.join(folder, "vocab.json"))
        extractor = T.Wav2Vec2FeatureExtractor()
        config = T.Wav2Vec2Config(
            vocab_size=len(vocabulary), hidden_size=24, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, conv_dim=[16, 16, 16], conv_kernel=[10, 8, 4],
            conv_stride=[5, 8, 4], num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
            apply_spec_augment=False, mask_time_prob=0.0, pad_token_id=0)
        sounds, values = [], []
        for i in range(3):
            sounds.append(f"sound-{i}.wav")
            with wave.open(os.path.join(self.folder, sounds[-1]), "rb") as file:
                samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            values.append(extractor(samples.astype(np.float32) / 32768, sampling_rate=16000,
                                    return_tensors="pt").input_values)
        seconds = config.inputs_to_logits_ratio / 16000
        seed, found = 0, None
        while found is None:
            torch.manual_seed(seed)
            model = randomised(T.Wav2Vec2ForCTC(config))
            model.lm_head.bias.data[1:3] = -9
            found, seed = self.heard(model, values, tokenizer, seconds), seed + 1
        self.save("ctc", model, [extractor, tokenizer], {"sounds": sounds, "found": found})

    def samples(self):
        """Audio becomes texts by a decoder that reads samples; the audio is that of speech()."""
        tokenizer = byte_level(["<unk>", "<s>", "</s>"], processors.ByteLevel(trim_offsets=False),
                               unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                               pad_token="</s>")
        model = randomised(T.MoonshineForConditionalGeneration(T.MoonshineConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48,
            encoder_num_hidden_layers=1, decoder_num_hidden_layers=2,
            encoder_num_attention_heads=4, decoder_num_attention_heads=4,
            max_position_embeddings=64, pad_token_id=2)))
        settings = model.generation_config
        settings.max_length, settings.pad_token_id, settings.decoder_start_token_id = 12, 2, 1
        extractor = T.Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)
        sounds, texts = [f"sound-{i}.wav" for i in range(3)], []
        for name in sounds:
            with wave.open(os.path.join(self.folder, name), "rb") as file:
                values = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            inputs = extractor(values.astype(np.float32) / 32768, sampling_rate=16000,
                               return_tensors="pt")
            ids = model.generate(**inputs, do_sample=False)[0]
            texts.append(tokenizer.decode(ids, skip_special_tokens=True))
        self.save("samples", model, [extractor, tokenizer], {"sounds": sounds, "texts": texts})

    def heard(self, model, values, tokenizer, seconds):
        """None where rounding might change a class, or where there are hardly any words."""
        found = []
        for sound in values:
            with torch.no_grad():
                logits = model(sound).logits[0]
            best = logits.topk(2).values
            if (best[:, 0] - best[:, 1]).min() < 1e-3:
                return None
            text = tokenizer.decode(logits.argmax(-1), output_word_offsets=True)
            words = [{"word": word["word"], "begin": word["start_offset"] * seconds,
                      "end": word["end_offset"] * seconds} for word in text.word_offsets]
            if len(words) < 3 or len(set(logits.argmax(-1).tolist()) - {0}) < 4:
                return None
            if not (logits.argmax(-1) == 0).any():
                return None
            found.append({"text": text.text, "words": words})
        return found

    def speech(self):
        special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|fr|>",
                   "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
        tokenizer = byte_level(special, processors.ByteLevel(trim_offsets=False),
                               eos_token=special[0], pad_token=special[0])
        end, start, *rest = range(len(special))
        model = randomised(T.WhisperForConditionalGeneration(T.WhisperConfig(
            vocab_size=len(tokenizer), d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
            decoder_ffn_dim=48, num_mel_bins=16, max_source_positions=50, max_target_positions=32,
            pad_token_id=end, bos_token_id=end, eos_token_id=end, decoder_start_token_id=start,
            suppress_tokens=None, begin_suppress_tokens=None)))
        settings = model.generation_config
        settings.lang_to_id = {special[i]: i for i in (2, 3, 4)}
        settings.task_to_id = {"translate": 5, "transcribe": 6}
        settings.no_timestamps_token_id = 7
        settings.is_multilingual = True
        settings.max_length = 32
        settings.begin_suppress_tokens = [40]
        settings.suppress_tokens = [start, *rest]
        settings.decoder_start_token_id = start
        settings.eos_token_id = settings.pad_token_id = end
        extractor = T.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
        noise = np.random.default_rng(2)
        sounds = []
        for i, seconds in enumerate([0.6, 1.0, 0.3]):
            time = np.arange(int(seconds * 16000)) / 16000
            values = 0.4 * np.sin(2 * np.pi * (200 + 90 * i) * time * (1 + 0.3 * time))
            values = values + 0.05 * noise.standard_normal(len(time))
            samples = (np.clip(values, -1, 1) * 32767).astype("<i2")
            with wave.open(os.path.join(self.folder, f"sound-{i}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes(samples.tobytes())
            sounds.append(extractor(samples.astype(np.float32) / 32768, sampling_rate=16000,
                                    return_tensors="pt").input_features)
        runs = []
        for language, task in (("de", ""), ("", "transcribe"), ("fr", "translate")):
            wishes = {key: value for key, value in (("language", language), ("task", task))
                      if value}
            texts = []
            for features in sounds:
                ids = model.generate(features, do_sample=False, max_new_tokens=10, **wishes)[0]
                texts.append(tokenizer.decode(ids, skip_special_tokens=True))
            runs.append({"language": language, "task": task, "texts": texts})
        self.save("speech", model, [extractor, tokenizer],
                  {"sounds": [f"sound-{i}.wav" for i in range(len(sounds))], "runs": runs})


def window_scores(model, row, allowed):
    with torch.no_grad():
        output = model(**{name: torch.tensor([values]) for name, values in row.items()})
    scores = []
    for logits in (output.start_logits, output.end_logits):
        scores.append(softmax(np.where(allowed, logits[0].double().numpy(), -10000.0)))
    return scores


def best_answers(model, tokenizer, question, options):
    context, window, overlap, longest, top, null = options
    full = tokenizer(question, context)
    tokens = full.encodings[0]
    texts = tokens.sequence_ids
    first = texts.index(1)
    count = texts.count(1)
    room = window - (len(texts) - count)
    answers, least = [], 1000000.0
    begin = 0
    while True:
        end = min(count, begin + room)
        keep = [i for i in range(len(texts)) if texts[i] != 1 or begin <= i - first < end]
        row = {"input_ids": [tokens.ids[i] for i in keep]}
        if "token_type_ids" in full:
            row["token_type_ids"] = [tokens.type_ids[i] for i in keep]
        allowed = np.array([texts[i] == 1 or tokens.ids[i] == tokenizer.cls_token_id for i in keep])
        starts, ends = window_scores(model, row, allowed)
        least = min(least, starts[0] * ends[0])
        starts[0] = ends[0] = 0.0
        spans = np.tril(np.triu(starts[:, None] * ends[None, :]), longest - 1).flatten()
        for place in np.argsort(-spans)[:top]:
            start, stop = divmod(int(place), len(starts))
            from_char = tokens.word_to_chars(tokens.token_to_word(keep[start]), 1)[0]
            to_char = tokens.word_to_chars(tokens.token_to_word(keep[stop]), 1)[1]
            answer = {"answer": context[from_char:to_char], "score": spans[place],
                      "begin": from_char, "end": to_char}
            known = [a for a in answers if a["answer"].lower() == answer["answer"].lower()]
            if known:
                known[0]["score"] += answer["score"]
            else:
                answers.append(answer)
        if end == count:
            break
        begin += room - overlap
    if null:
        answers.append({"answer": "", "score": least, "begin": 0, "end": 0})
    return sorted(answers, key=lambda answer: answer["score"], reverse=True)[:top]


def main():
    torch.manual_seed(SEED)
    random.seed(SEED)
    os.makedirs(sys.argv[1], exist_ok=True)
    maker = Maker(sys.argv[1])
    maker.write("versions.json", {"seed": SEED, "torch": torch.__version__,
                                  "transformers": T.__version__,
                                  "tokenizers": tokenizers.__version__, "Pillow": PIL.__version__})
    for make in (maker.embed, maker.classify, maker.entities, maker.masks, maker.answers,
                 maker.texts, maker.translations, maker.pictures, maker.speech, maker.ctc,
                 maker.samples,
                 maker.rerank, maker.zero_shot, maker.judge, maker.embed_last,
                 maker.named_pictures, maker.objects, maker.scored_objects, maker.depths,
                 maker.segments, maker.named_entities):
        make()


if __name__ == "__main__":
    main()
