#!/usr/bin/env python3
"""Makes the golden cases of Linformer, Performer and the linear Transformer from their formulas. A case has a small
random model, its inputs, and what the formulas give in float64. Every weight w_ij is written out.

    python3 tools/golden/linear_golden.py FOLDER [NAME ...]          the cases listed below
    python3 tools/golden/linear_golden.py FOLDER NAME SEED CONFIG [SHAPE]

CONFIG is a JSON object of configuration keys, model_type among them; sizes that it does not give
are small ones. SHAPE is [rows, tokens, masked tokens per row, new tokens]. The seed of a model that
generates is raised until its ids survive noise of 5e-4 on every score.

Needs torch and safetensors. tests/golden/README.md describes the folders.
"""
import json
import math
import os
import shutil
import sys

import torch
from safetensors.torch import save_file

SIZES = dict(vocab_size=32, hidden_size=12, num_hidden_layers=2, num_attention_heads=2,
             intermediate_size=16, max_position_embeddings=24, hidden_act="gelu",
             layer_norm_eps=1e-5, pad_token_id=0, norm_first=False, lm_head=False)
OWN = {
    "linformer": dict(projection_dim=5, sharing="none"),
    "performer": dict(num_features=12, kernel_eps=1e-4, causal=False),
    "linear_transformer": dict(denominator_eps=1e-6, causal=False),
}
SHAPE = (2, 13, 4, 10)
NOISE, TRIALS, BEAMS, EOS = 5e-4, 3, 4, 2
CASES = {
    "linformer-heads": (601, dict(model_type="linformer", norm_first=True), SHAPE),
    "linformer-pairs": (
        602, dict(model_type="linformer", sharing="key-value", lm_head=True), SHAPE),
    "performer-masked": (603, dict(model_type="performer", norm_first=True), SHAPE),
    "performer-steps": (
        604, dict(model_type="performer", causal=True, lm_head=True, kernel_eps=0.0), SHAPE),
    "performer-stack": (
        605, dict(model_type="performer", causal=True, kernel_eps=1e-3, hidden_act="relu"), SHAPE),
    "linear_transformer-steps": (
        606, dict(model_type="linear_transformer", causal=True, lm_head=True), SHAPE),
    "linear_transformer-stack": (
        607, dict(model_type="linear_transformer", norm_first=True, denominator_eps=1e-2), SHAPE),
}


def make_weights(c, generator):
    d, f, weights = c["hidden_size"], c["intermediate_size"], {}

    def linear(name, rows, columns):
        draw(name + ".weight", (rows, columns), 1.5 / math.sqrt(columns))
        draw(name + ".bias", (rows,), 0.3)

    def norm(name):
        draw(name + ".weight", (d,), 0.3, 1.0)
        draw(name + ".bias", (d,), 0.3)

    def draw(name, shape, scale, offset=0.0):
        weights[name] = scale * torch.randn(shape, generator=generator) + offset

    draw("word_embeddings.weight", (c["vocab_size"], d), 0.7)
    draw("position_embeddings.weight", (c["max_position_embeddings"], d), 0.7)
    norm("embedding_norm")
    heads, reach = c["num_attention_heads"], c["max_position_embeddings"]
    matrix = (c.get("projection_dim", 1), reach)
    if c.get("sharing") == "layerwise":
        draw("shared_projection", matrix, 1.5 / math.sqrt(reach))
    for i in range(c["num_hidden_layers"]):
        layer = f"layers.{i}."
        for name in ("query", "key", "value", "out"):
            linear(f"{layer}attention.{name}", d, d)
        norm(layer + "attention_norm")
        norm(layer + "ffn_norm")
        linear(layer + "up", f, d)
        linear(layer + "down", d, f)
        if c["model_type"] == "performer":
            draw(layer + "attention.projection", (c["num_features"], d // heads), 1.0)
        if c["model_type"] == "linformer" and c["sharing"] != "layerwise":
            shape = (heads, *matrix) if c["sharing"] == "none" else matrix
            draw(layer + "attention.E", shape, 1.5 / math.sqrt(reach))
            if c["sharing"] != "key-value":
                draw(layer + "attention.F", shape, 1.5 / math.sqrt(reach))
    if c["norm_first"]:
        norm("final_norm")
    if c["lm_head"]:
        linear("lm_head", c["vocab_size"], d)
    return weights


def favor(x, omega, eps, keep, keys):
    """FAVOR+ features of x (B, H, S, E)."""
    x = x * x.shape[-1] ** -0.25
    products = x @ omega.T
    if keys:
        kept = products.masked_fill(~keep[:, None, :, None], -math.inf)
        peak = kept.amax(dim=(-1, -2), keepdim=True)
    else:
        peak = products.amax(dim=-1, keepdim=True)
    return (torch.exp(products - (x * x).sum(-1, keepdim=True) / 2 - peak) + eps) / math.sqrt(
        omega.shape[0])


def elu_plus_one(x):
    return torch.where(x > 0, x + 1, torch.exp(x))


class Model:
    def __init__(self, config, weights):
        self.c, self.w = config, {n: t.double() for n, t in weights.items()}

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.w[name + ".weight"],
                                              self.w[name + ".bias"], self.c["layer_norm_eps"])

    def attend(self, layer, x, keep):
        name = f"layers.{layer}.attention."
        heads = self.c["num_attention_heads"]
        q, k, v = (self.linear(name + part, x).unflatten(-1, (heads, -1)).transpose(1, 2)
                   for part in ("query", "key", "value"))
        if self.c["model_type"] == "linformer":
            weights, v = self.project(name, q, k, v, keep)
        else:
            if self.c["model_type"] == "performer":
                omega, eps = self.w[name + "projection"], self.c["kernel_eps"]
                fq, fk = favor(q, omega, eps, keep, False), favor(k, omega, eps, keep, True)
            else:
                fq, fk = elu_plus_one(q), elu_plus_one(k)
            weights = fq @ fk.transpose(-1, -2) * keep[:, None, None, :]
            if self.c["causal"]:
                weights = weights.tril()
            total = weights.sum(-1, keepdim=True) + self.c.get("denominator_eps", 0)
            weights = weights / total.where(total != 0, torch.ones_like(total))
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.linear(name + "out", mixed), weights

    def project(self, name, q, k, v, keep):
        """The probabilities (B, H, S, P) and the projected values of a Linformer."""
        if self.c["sharing"] == "layerwise":
            e = f = self.w["shared_projection"]
        else:
            e = self.w[name + "E"]
            f = e if self.c["sharing"] == "key-value" else self.w[name + "F"]
        tokens = k.shape[2]
        mask = keep[:, None, :, None]
        k, v = (m[..., :tokens] @ (x * mask) for m, x in ((e, k), (f, v)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return torch.softmax(scores, -1), v

    def act(self, x):
        return {"gelu": torch.nn.functional.gelu, "relu": torch.relu}[self.c["hidden_act"]](x)

    def forward(self, ids, keep):
        places = self.w["position_embeddings.weight"][: ids.shape[1]]
        x = self.norm("embedding_norm", self.w["word_embeddings.weight"][ids] + places)
        out = {}
        for i in range(self.c["num_hidden_layers"]):
            layer = f"layers.{i}."
            out[f"hidden_states.{i}"] = x
            first = self.c["norm_first"]
            h, out[f"attentions.{i}"] = self.attend(
                i, self.norm(layer + "attention_norm", x) if first else x, keep)
            x = x + h if first else self.norm(layer + "attention_norm", x + h)
            h = self.norm(layer + "ffn_norm", x) if first else x
            h = self.linear(layer + "down", self.act(self.linear(layer + "up", h)))
            x = x + h if first else self.norm(layer + "ffn_norm", x + h)
        if self.c["norm_first"]:
            x = self.norm("final_norm", x)
        out["last_hidden_state"] = x
        if self.c["lm_head"]:
            out["logits"] = self.linear("lm_head", x)
        return out

    def next_scores(self, rows, noise):
        ids = torch.tensor(rows)
        logits = self.forward(ids, torch.ones_like(ids, dtype=torch.bool))["logits"][:, -1]
        if noise is not None:
            logits = logits + NOISE * (2 * torch.rand(logits.shape, generator=noise,
                                                      dtype=logits.dtype) - 1)
        return logits


def greedy(model, prompt, new_tokens, noise):
    row = list(prompt)
    for _ in range(new_tokens):
        row.append(int(model.next_scores([row], noise)[0].argmax()))
        if row[-1] == EOS:
            break
    return row, 0.0


def beam(model, prompt, new_tokens, noise):
    """Beam search with a length penalty of 1, without early stopping."""
    start, end = len(prompt), len(prompt) + new_tokens
    running = [(0.0, list(prompt))] + [(-1e9, list(prompt))] * (BEAMS - 1)
    finished = []
    while True:
        rows = [row for _, row in running]
        scores = torch.log_softmax(model.next_scores(rows, noise), -1)
        scores = scores + torch.tensor([s for s, _ in running], dtype=scores.dtype)[:, None]
        best = scores.flatten().topk(2 * BEAMS)
        found = [(float(s), rows[int(i) // scores.shape[1]] + [int(i) % scores.shape[1]])
                 for s, i in zip(best.values, best.indices)]
        done = [row[-1] == EOS or len(row) == end for _, row in found]
        order = sorted(range(len(found)), key=lambda i: -(found[i][0] - 1e9 * done[i]))
        length = len(found[0][1]) - start
        finished += [(s / length, row) for (s, row), d in zip(found[:BEAMS], done) if d]
        finished = sorted(finished, key=lambda f: -f[0])[:BEAMS]
        running = [found[i] for i in order[:BEAMS]]
        full = len(finished) == BEAMS
        if all(done) or full and running[0][0] / length <= finished[-1][0]:
            return finished[0][1], finished[0][0]


def search(model, prompts, pads, new_tokens, pad):
    """Ids of every prompt alone; None where noise would change one."""
    width = len(prompts[0]) + pads[0] + new_tokens
    expected = {}
    for name, method in (("greedy_ids", greedy), ("beam4_ids", beam)):
        rows, best = torch.full((len(prompts), width), pad), []
        for i, (prompt, first) in enumerate(zip(prompts, pads)):
            row, score = method(model, prompt, new_tokens, None)
            for trial in range(TRIALS):
                noise = torch.Generator().manual_seed(trial)
                if method(model, prompt, new_tokens, noise)[0] != row:
                    return None
            rows[i, first: first + len(row)] = torch.tensor(row)
            best.append(score)
        expected[name] = rows
    return expected | {"beam4_scores": torch.tensor(best)}


def attempt(config, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    weights = make_weights(config, generator)
    model = Model(config, weights)
    rows, tokens, masked, new_tokens = shape
    ids = torch.randint(3, config["vocab_size"], (rows, tokens), generator=generator)
    keep = torch.ones_like(ids, dtype=torch.bool)
    for row in range(1, rows):
        keep[row, -masked:] = False
        keep[row, torch.randint(0, tokens, (masked // 2,), generator=generator)] = False
    inputs = {"input_ids": ids.masked_fill(~keep, config["pad_token_id"]),
              "attention_mask": keep.long()}
    expected = model.forward(inputs["input_ids"], keep)
    masks = {"mask." + n: keep[:, None, :, None] if "attentions" in n else keep[:, :, None]
             for n in expected}
    if config["lm_head"] and config.get("causal"):
        length = min(tokens, 7)
        prompts = torch.randint(3, config["vocab_size"], (rows, length), generator=generator)
        pads = [0] + [min(2, length - 1)] * (rows - 1)
        mask = torch.ones_like(prompts)
        for row, pad in enumerate(pads):
            mask[row, :pad] = 0
        inputs["generate.input_ids"] = prompts.masked_fill(mask == 0, config["pad_token_id"])
        inputs["generate.attention_mask"] = mask
        found = search(model, [p[pad:].tolist() for p, pad in zip(prompts, pads)], pads,
                       new_tokens, config["pad_token_id"])
        if found is None:
            return None
        expected |= found
    return weights, inputs, expected | {n: m.to(torch.uint8) for n, m in masks.items()}


def stored(tensors):
    narrow = {n: t.float() if t.dtype == torch.float64 else t for n, t in tensors.items()}
    return {n: t.contiguous().clone() for n, t in narrow.items()}


def make_case(folder, name, seed, given, shape):
    config = SIZES | OWN[given["model_type"]] | given
    config["architectures"] = [given["model_type"].title().replace("_", "")]
    made = attempt(config, shape, seed)
    while made is None:
        seed += 1
        made = attempt(config, shape, seed)
    weights, inputs, expected = made
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(os.path.join(path, "model"))
    with open(os.path.join(path, "model", "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    save_file(stored(weights), os.path.join(path, "model", "model.safetensors"))
    save_file(stored(inputs), os.path.join(path, "inputs.safetensors"))
    save_file(stored(expected), os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family=config["model_type"], head="Model", seed=seed,
                 tolerance=dict(abs=5e-5, rel=5e-5), optional=["hidden_states.*"])
    if "greedy_ids" in expected:
        facts["generation"] = dict(
            prompt_length=min(shape[1], 7), max_new_tokens=shape[3], num_beams=BEAMS,
            length_penalty=1.0, early_stopping=False, eos_token_id=EOS,
            pad_token_id=config["pad_token_id"])
    facts |= dict(computed_in="float64, stored as float32", torch_version=torch.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "seed", seed)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:]
    if len(names) >= 3 and names[1].isdigit():
        shape = tuple(json.loads(names[3])) if len(names) > 3 else SHAPE
        make_case(folder, names[0], int(names[1]), json.loads(names[2]), shape)
        return
    for name in names or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
