#!/usr/bin/env python3
"""Makes golden cases of GLiNER: small random models, inputs, and the scores of all spans in
float64. The encoder is transformers' DebertaV2Model; what follows it is written down here, by the
formulas of runtime/model/gliner_form.h.

    python3 tools/golden/gliner_golden.py FOLDER             the cases listed below
    python3 tools/golden/gliner_golden.py FOLDER NAME ...    some of them

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders.
"""
import copy
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

import model_golden as base

VOCABULARY, LABEL, TEXT = 40, 38, 39  # ids of the markers of labels and of the text
FIRST, END = 1, 2                     # [CLS] and [SEP]
GLINER = dict(model_type="gliner", span_mode="markerV0", hidden_size=16, max_width=4,
              num_rnn_layers=1, embed_ent_token=True, class_token_index=LABEL,
              vocab_size=VOCABULARY,
              subtoken_pooling="first", words_splitter_type="whitespace", max_len=384,
              ent_token="<<ENT>>", sep_token="<<SEP>>", model_name="tiny")


class Gliner(torch.nn.Module):
    """The library's module names, so that the file has its tensors."""

    def __init__(self, config, encoder):
        super().__init__()
        h, linear = config["hidden_size"], torch.nn.Linear
        layers = torch.nn.Module
        self.token_rep_layer, self.token_rep_layer.bert_layer = layers(), layers()
        self.token_rep_layer.bert_layer.model = encoder
        if h != encoder.config.hidden_size:
            self.token_rep_layer.projection = linear(encoder.config.hidden_size, h)
        if config["num_rnn_layers"] > 0:
            self.rnn = layers()
            self.rnn.lstm = torch.nn.LSTM(h, h // 2, config["num_rnn_layers"], batch_first=True,
                                          bidirectional=True)

        def mlp(width, inner, out):
            return torch.nn.Sequential(linear(width, inner), torch.nn.ReLU(), torch.nn.Dropout(),
                                       linear(inner, out)).eval()

        span = layers()
        newer = config["span_mode"] == "markerV0"
        span.project_start = mlp(h, (4 if newer else 2) * h, h)
        span.project_end = mlp(h, (4 if newer else 2) * h, h)
        span.out_project = mlp(2 * h, 4 * h, h) if newer else linear(2 * h, h)
        self.span_rep_layer = layers()
        self.span_rep_layer.span_rep_layer = span
        self.prompt_rep_layer = mlp(h, 4 * h, h)
        self.config = config

    def row(self, states, ids, words_mask, length):
        """Of one row without padding: its words (length, H) and its labels (C, H)."""
        if hasattr(self.token_rep_layer, "projection"):
            states = self.token_rep_layer.projection(states)
        words = torch.zeros(length, states.shape[1], dtype=states.dtype)
        for token, number in enumerate(words_mask.tolist()):
            if number > 0:
                words[number - 1] = states[token]
        if hasattr(self, "rnn") and length > 0:
            words = self.rnn.lstm(words[None])[0][0]
        after = 0 if self.config["embed_ent_token"] else 1
        marker = self.config["class_token_index"]
        labels = [states[t + after] for t, token in enumerate(ids.tolist()) if token == marker]
        return words, torch.stack(labels)

    def forward(self, inputs):
        encoder = self.token_rep_layer.bert_layer.model
        out = encoder(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"],
                      output_hidden_states=True, output_attentions=True)
        states = out.last_hidden_state
        lengths = inputs["text_lengths"].flatten().tolist()
        widths, most = self.config["max_width"], max(1, *lengths)
        if "span_mask" in inputs:
            most = inputs["span_mask"].shape[1]
        rows = []
        for r, length in enumerate(lengths):
            kept = int(inputs["attention_mask"][r].sum())
            rows.append(self.row(states[r, :kept], inputs["input_ids"][r, :kept],
                                 inputs["words_mask"][r, :kept], length))
        count = max(len(labels) for _, labels in rows)
        layer = self.span_rep_layer.span_rep_layer
        scores = torch.zeros(len(rows), most, widths, count, dtype=states.dtype)
        for r, (words, labels) in enumerate(rows):
            words = torch.nn.functional.pad(words, (0, 0, 0, most - len(words)))
            labels = torch.nn.functional.pad(labels, (0, 0, 0, count - len(labels)))
            starts, ends = layer.project_start(words), layer.project_end(words)
            prompts = self.prompt_rep_layer(labels)
            for s in range(most):
                for k in range(widths):
                    asked = s + k < lengths[r]
                    if "span_mask" in inputs:
                        asked = bool(inputs["span_mask"][r, s, k])
                    first, last = (s, s + k) if asked else (0, 0)
                    span = layer.out_project(torch.cat([starts[first], ends[last]]).relu())
                    scores[r, s, k] = prompts @ span
        outputs = dict(last_hidden_state=states, logits=scores)
        outputs |= {f"attentions.{i}": a for i, a in enumerate(out.attentions)}
        return outputs | {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states[:-1])}


class Saved:
    """A model as the library gliner writes it."""

    def __init__(self, model, encoder):
        self.model, self.encoder = model, encoder

    def save_pretrained(self, path, config_name="gliner_config.json"):
        os.makedirs(path, exist_ok=True)
        plain = self.encoder.to_diff_dict() | dict(model_type="deberta-v2")
        plain = {k: v for k, v in plain.items() if not k.startswith("_")}
        config = self.model.config | dict(encoder_config=plain)
        with open(os.path.join(path, config_name), "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        save(dict(self.model.state_dict()), os.path.join(path, "model.safetensors"))


def save(tensors, path):
    tensors = {n: t.clone().contiguous() for n, t in tensors.items()}
    safetensors.torch.save_file(tensors, path)


def make_inputs(rows, generator):
    """Of each row its labels' numbers of tokens, and its words'; a word may have no token."""
    ids, masks, lengths = [], [], []
    for labels, words in rows:
        row, numbers = [FIRST], [0]

        def add(tokens, number):
            some = torch.randint(base.FIRST, LABEL, (tokens,), generator=generator).tolist()
            row.extend(some)
            numbers.extend(([number] + [0] * tokens)[:tokens])

        for tokens in labels:
            row.append(LABEL)
            numbers.append(0)
            add(tokens, 0)
        row.append(TEXT)
        numbers.append(0)
        for number, tokens in enumerate(words):
            add(tokens, number + 1)
        ids.append(row + [END])
        masks.append(numbers + [0])
        lengths.append(len(words))
    longest = max(map(len, ids))
    fill = [[0] * (longest - len(row)) for row in ids]
    inputs = dict(input_ids=[a + b for a, b in zip(ids, fill)],
                  attention_mask=[[1] * len(a) + b for a, b in zip(ids, fill)],
                  words_mask=[a + b for a, b in zip(masks, fill)], text_lengths=lengths)
    return {name: torch.tensor(value) for name, value in inputs.items()}


def make_case(folder, name, seed, given, encoder, rows, spans=0):
    """`spans`: of that many words a span_mask is given, which leaves some spans out."""
    generator = torch.Generator().manual_seed(seed)
    config = GLINER | given
    deberta = base.make_config(transformers.DebertaV2Model,
                               base.DEBERTA_V3 | dict(vocab_size=VOCABULARY) | encoder)
    deberta._attn_implementation = "eager"
    model = Gliner(config, transformers.DebertaV2Model(deberta)).eval()
    base.randomize(model, generator)
    inputs = make_inputs(rows, generator)
    if spans:
        mask = torch.zeros(len(rows), spans, config["max_width"], dtype=torch.int64)
        for r, length in enumerate(inputs["text_lengths"].tolist()):
            for s in range(length):
                for k in range(min(config["max_width"], length - s)):
                    mask[r, s, k] = (s + 2 * k) % 5 != 3
        inputs["span_mask"] = mask
    with torch.no_grad():
        expected = copy.deepcopy(model).double()(inputs)
    expected = {n: t.float().contiguous() for n, t in expected.items()}
    tokens = inputs["attention_mask"].to(torch.uint8)
    for n in list(expected):
        if n != "logits":
            expected["mask." + n] = tokens[:, None, :, None] if "att" in n else tokens[:, :, None]
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    Saved(model, deberta).save_pretrained(os.path.join(path, "model"), "config.json")
    save(inputs, os.path.join(path, "inputs.safetensors"))
    save(expected, os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family="gliner", head="GLiNER", seed=seed,
                 tolerance=dict(abs=base.TOLERANCE, rel=base.TOLERANCE),
                 optional=["hidden_states.*"], computed_in="float64, stored as float32",
                 torch_version=torch.__version__, transformers_version=transformers.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "logits", tuple(expected["logits"].shape), "largest",
          float(expected["logits"].abs().max()))


CASES = {
    # A projection, odd halves of the LSTM, a text of one word, fewer labels in a row.
    "gliner-v0": (700, dict(hidden_size=22, max_width=5), {},
                  [((1, 3, 2), (1, 2, 1, 1, 3, 1, 1)), ((2, 1), (2,)), ((1, 1, 1), (1, 0, 2, 1))]),
    # One matrix after the ends, two layers, labels' own tokens, spans that are asked for.
    "gliner-marker": (701, dict(span_mode="marker", num_rnn_layers=2, embed_ent_token=False,
                                max_width=3), dict(share_att_key=False),
                      [((1, 2), (1, 1, 2, 1, 1)), ((3, 1), (1, 2, 1))], 8),
    # No LSTM, an odd width, spans wider than every text.
    "gliner-plain": (702, dict(hidden_size=7, num_rnn_layers=0, max_width=12), {},
                     [((1,), (1, 1, 1)), ((2,), (2, 1))]),
}


def main():
    folder = sys.argv[1]
    for name in sys.argv[2:] or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
