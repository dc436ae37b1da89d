#!/usr/bin/env python3
"""Makes the cases of tests/golden whose attention is sparse: Longformer, LED and BigBird, small random
models and what transformers computes of them in float64. Attention maps are made dense (B, H, S, S).

    python3 tools/golden/sparse_golden.py FOLDER [NAME ...]                the cases listed below
    python3 tools/golden/sparse_golden.py FOLDER NAME CLASS SEED CONFIG    any other

CONFIG is a JSON object of configuration keys. Besides them it may hold `tokens` (of a row) and `global`, the number of
global tokens; without it no mask is given. With `patterns` (BigBird) random blocks are sampled and given as
rand_blocks.<layer>. With `hole` false there is no padding inside a row, which a model that generates does not bear.

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders.
"""
import copy
import json
import os
import sys

import torch
import transformers
from transformers.models.big_bird import modeling_big_bird

import model_golden as base

SIZES = dict(
    hidden_size=8, d_model=8, num_attention_heads=2, num_hidden_layers=2, intermediate_size=10,
    encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=10, decoder_ffn_dim=12, vocab_size=26, max_position_embeddings=32,
    max_encoder_position_embeddings=32, max_decoder_position_embeddings=24,
)
SEPARATOR = 3
NEW_TOKENS = 8
base.SIZES |= SIZES
base.NEW_TOKENS = NEW_TOKENS
# What of a case is not configuration; set by make().
settings = {}
# Random blocks by layer, where a case has them.
patterns = {}

plain_block_attention = modeling_big_bird.BigBirdBlockSparseAttention.bigbird_block_sparse_attention


def with_patterns(self, *arguments, **named):
    """The library draws random blocks in training only; this puts in the case's own."""
    if self.seed in patterns:
        wanted = patterns[self.seed].numpy()
        self._bigbird_block_rand_mask = lambda *_, **__: None
        self._bigbird_block_rand_mask_with_head = lambda *_, **__: list(wanted)
        self.max_seqlen = -1
        self._get_rand_attn_plan = lambda *_, **__: (None, None)
    return plain_block_attention(self, *arguments, **named)


modeling_big_bird.BigBirdBlockSparseAttention.bigbird_block_sparse_attention = with_patterns


def make_inputs(model, generator, left):
    del left
    config = model.config
    tokens = settings.get("tokens", 13)
    ids = torch.randint(base.FIRST, config.vocab_size, (2, tokens), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, -3:] = 0
    mask[0, 2] = 0 if settings.get("hole", True) else 1
    if type(model).__name__.endswith("ForQuestionAnswering"):
        ends = (4, 5, tokens - 4) if config.model_type == "longformer" else (4,)
        for end in ends:
            ids[0, end] = ids[1, end - 1] = SEPARATOR
    ids = ids.masked_fill(mask == 0, config.pad_token_id)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if settings.get("global") is not None:
        chosen = torch.zeros_like(ids)
        for row, count in enumerate((settings["global"], settings["global"] // 2)):
            chosen[row, torch.randperm(tokens, generator=generator)[:count]] = 1
        inputs["global_attention_mask"] = chosen
    if config.is_encoder_decoder:
        ids = torch.randint(base.FIRST, config.vocab_size, (2, base.TARGET), generator=generator)
        inputs["decoder_input_ids"] = ids
    return inputs


def dense_map(banded, global_rows, is_global, window):
    """Longformer's maps (B, H, S, G + window + 1) and (B, H, S, G) as one (B, H, S, S)."""
    batch, heads, tokens, _ = banded.shape
    dense = banded.new_zeros(batch, heads, tokens, tokens)
    most = 0 if global_rows is None else global_rows.shape[-1]
    half = window // 2
    for b in range(batch):
        chosen = is_global[b].nonzero()[:, 0]
        for i in range(tokens):
            for offset in range(-half, half + 1):
                if 0 <= i + offset < tokens:
                    dense[b, :, i, i + offset] += banded[b, :, i, most + half + offset]
            for g, j in enumerate(chosen):
                dense[b, :, i, j] += banded[b, :, i, g]
        for g, j in enumerate(chosen):
            dense[b, :, j] = global_rows[b, :, :tokens, g]
    return dense


def listed_blocks(config, blocks, layer):
    """How often each block of keys is listed for each block of queries: (H, n, n)."""
    heads, last = config.num_attention_heads, blocks - 1
    counts = torch.zeros(heads, blocks, blocks)
    counts[:, 0] = counts[:, last] = 1
    for i in range(1, last):
        seen = {0, i - 1, i, i + 1, last}
        counts[:, i, sorted(seen)] = 1
        for head in range(heads):
            random = patterns[layer][head, i - 1] if layer in patterns else None
            for n in range(config.num_random_blocks):
                counts[head, i, 0 if random is None else int(random[n])] += 1
    return counts


def sum_of_lists(config, inputs, out):
    """BigBird's maps, in which the library writes a block that is listed twice only once."""
    tokens = inputs["input_ids"].shape[1]
    out = {k: v for k, v in out.items() if v is not None}
    if config.attention_type != "block_sparse" or "attentions" not in out:
        return out
    if tokens <= (5 + 2 * config.num_random_blocks) * config.block_size:
        return out
    blocks = -(-tokens // config.block_size)
    maps = []
    for layer, one in enumerate(out["attentions"]):
        counts = listed_blocks(config, blocks, layer)
        for axis in (1, 2):
            counts = counts.repeat_interleave(config.block_size, axis)
        maps.append(one * counts)
    out["attentions"] = maps
    return out


def make_maps_dense(model, inputs, out):
    config = model.config
    if config.model_type == "big_bird":
        return sum_of_lists(config, inputs, out)
    prefix = "encoder_" if config.is_encoder_decoder else ""
    tokens = inputs["input_ids"].shape[1]
    chosen = settings["used"] * inputs["attention_mask"]
    rows = out.get(prefix + "global_attentions")
    maps = []
    for layer, banded in enumerate(out[prefix + "attentions"]):
        own = None if rows is None else rows[layer]
        window = config.attention_window[layer]
        maps.append(dense_map(banded[:, :, :tokens], own, chosen, window))
    out = dict(out)
    out[prefix + "attentions"] = maps
    return out


def used_globals(model, inputs):
    if "global_attention_mask" in inputs:
        return inputs["global_attention_mask"]
    used = torch.zeros_like(inputs["input_ids"])
    name = type(model).__name__
    if name.endswith("ForSequenceClassification"):
        used[:, 0] = 1
    if name.endswith("ForQuestionAnswering"):
        for row, ids in zip(used, inputs["input_ids"]):
            row[: int((ids == SEPARATOR).nonzero()[0])] = 1
    return used


def forward(model, inputs):
    settings["used"] = used_globals(model, inputs)
    patterns.clear()
    given = dict(inputs)
    for layer in range(model.config.num_hidden_layers):
        blocks = given.pop(f"rand_blocks.{layer}", None)
        if blocks is not None:
            patterns[layer] = blocks
    with torch.no_grad():
        out = copy.deepcopy(model)(
            **base.in_double(given), output_hidden_states=True, output_attentions=True)
    tokens = inputs["input_ids"].shape[1]
    out = make_maps_dense(model, inputs, out)
    names = ("last_hidden_state", "encoder_last_hidden_state", "pooler_output", "logits",
             "start_logits", "end_logits")
    expected = {name: out[name] for name in names if out.get(name) is not None}
    expected |= base.lists_of(out)
    for name, tensor in expected.items():
        if name.startswith("attentions"):
            tensor = tensor[:, :, :tokens, :tokens]
        if name.startswith("hidden_states"):
            tensor = tensor[:, :tokens]
        expected[name] = tensor.float().contiguous()
    # A short BigBird input has ordinary attention, whose maps the library does not give.
    return expected | base.masks_of(model, inputs, expected)


def add_patterns(model, inputs, generator):
    config = model.config
    if not settings.get("patterns"):
        return inputs
    blocks = -(-inputs["input_ids"].shape[1] // config.block_size)
    shape = (config.num_attention_heads, blocks - 2, config.num_random_blocks)
    for layer in range(config.num_hidden_layers):
        inputs[f"rand_blocks.{layer}"] = torch.randint(0, blocks, shape, generator=generator)
    return inputs


def all_inputs(model, generator, left):
    return add_patterns(model, make_inputs(model, generator, left), generator)


base.make_inputs = all_inputs
base.forward = forward
LONG = dict(attention_window=[4, 8], sep_token_id=SEPARATOR)
BIRD = dict(block_size=2, num_random_blocks=1, sep_token_id=SEPARATOR, pad_token_id=0,
            bos_token_id=1, tokens=17)
ONE = dict(num_hidden_layers=1)
# Name: class, seed, configuration and settings.
CASES = {
    "longformer-bare": ("LongformerModel", 601, LONG | {"global": 3}),
    "longformer-masked": ("LongformerForMaskedLM", 602, LONG),
    "longformer-classes": ("LongformerForSequenceClassification", 603, LONG | ONE | dict(
        num_labels=3, attention_window=[6])),
    "longformer-tokens": ("LongformerForTokenClassification", 604, LONG | ONE | {
        "num_labels": 3, "global": 12, "attention_window": [4]}),
    "longformer-answers": ("LongformerForQuestionAnswering", 605, LONG | dict(hole=False)),
    "led-base": ("LEDForConditionalGeneration", 610, LONG | {"global": 2, "hole": False}),
    "led-bare": ("LEDModel", 611, LONG),
    "bigbird-bare": ("BigBirdModel", 620, BIRD | dict(use_bias=False, rescale_embeddings=True)),
    "bigbird-patterns": ("BigBirdForMaskedLM", 621, BIRD | dict(
        patterns=True, num_random_blocks=2, tokens=21)),
    "bigbird-classes": ("BigBirdForSequenceClassification", 622, BIRD | ONE | dict(
        num_labels=3, hidden_act="relu")),
    "bigbird-tokens": ("BigBirdForTokenClassification", 623, BIRD | ONE | dict(
        num_labels=3, attention_type="original_full")),
    "bigbird-answers": ("BigBirdForQuestionAnswering", 624, BIRD | ONE),
}


def make(folder, name, class_name, seed, given):
    settings.clear()
    keys = dict(given)
    for key in ("tokens", "global", "patterns", "hole"):
        if key in keys:
            settings[key] = keys.pop(key)
    base.make_case(folder, name, class_name, seed, keys)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:]
    if len(names) >= 3 and names[2].isdigit():
        make(folder, names[0], names[1], int(names[2]), json.loads(names[3]))
        return
    for name in names or CASES:
        make(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
