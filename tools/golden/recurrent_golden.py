#!/usr/bin/env python3
"""Makes golden cases of recurrent sequence-to-sequence models (model_type rnn_attention) and of the
operators gru, lstm and additive_attention. They have small random weights and inputs. They have what the formulas of
docs/recurrent_models.md give in float64. These are written down once more here.

    python3 tools/golden/recurrent_golden.py FOLDER              the cases listed below
    python3 tools/golden/recurrent_golden.py FOLDER NAME ...     some of them
    python3 tools/golden/recurrent_golden.py FOLDER NAME SEED '{"cell": "lstm", ...}'

The seed of a model is raised until its generated ids survive noise of 5e-4 on every logit.
Needs torch and safetensors; tests/golden/README.md describes the folders.
"""
import json
import math
import os
import shutil
import sys

import safetensors.torch
import torch

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
NEW_TOKENS, BEAMS, TRIALS, NOISE = 14, 4, 3, 5e-4
BASE = dict(attention="bahdanau", src_vocab_size=24, tgt_vocab_size=22, embedding_size=7,
            encoder_hidden_size=8, decoder_hidden_size=11, bidirectional=True, attention_size=9,
            input_feeding=False, cell="gru", num_layers=1)


def shapes_of(c):
    """Every tensor of the file, by name."""
    gates = 4 if c["cell"] == "lstm" else 3
    e, he, hd = c["embedding_size"], c["encoder_hidden_size"], c["decoder_hidden_size"]
    sides = 2 if c["bidirectional"] else 1
    memory, kind = sides * he, c["attention"]
    shapes = {"src_embed.weight": (c["src_vocab_size"], e),
              "tgt_embed.weight": (c["tgt_vocab_size"], e)}

    def cell(prefix, suffix, fed, width):
        shapes[f"{prefix}.weight_ih{suffix}"] = (gates * width, fed)
        shapes[f"{prefix}.weight_hh{suffix}"] = (gates * width, width)
        shapes[f"{prefix}.bias_ih{suffix}"] = shapes[f"{prefix}.bias_hh{suffix}"] = (gates * width,)

    for layer in range(c["num_layers"]):
        for suffix in ("", "_reverse")[:sides]:
            cell("encoder", f"_l{layer}{suffix}", memory if layer else e, he)
    bridge = he if kind == "bahdanau" else memory
    for name in ("bridge", "bridge_cell")[: 2 if c["cell"] == "lstm" else 1]:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (hd, bridge), (hd,)
    fed = memory if kind == "bahdanau" else hd if c["input_feeding"] else 0
    cell("decoder", "", e + fed, hd)
    a = c.get("attention_size")
    if kind == "bahdanau":
        shapes |= {"W_a.weight": (a, hd), "W_a.bias": (a,), "U_a.weight": (a, memory), "v_a": (a,)}
    elif kind != "none":
        shapes["W_c.weight"] = (hd, memory + hd)
    if kind == "luong_general":
        shapes["W_a.weight"] = (hd, memory)
    if kind == "luong_concat":
        shapes |= {"W_a.weight": (a, hd + memory), "v_a": (a,)}
    if kind == "luong_location":
        shapes["W_a.weight"] = (c["location_size"], hd)
    if c.get("attention_window") == "local-p":
        shapes |= {"W_p.weight": (hd, hd), "v_p.weight": (1, hd)}
    features = hd + memory + e if kind == "bahdanau" else hd
    shapes |= {"out.weight": (c["tgt_vocab_size"], features), "out.bias": (c["tgt_vocab_size"],)}
    return shapes


def draw(shapes, generator):
    weights = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator, dtype=torch.float32)
        if "embed" in name:
            weights[name] = 0.8 * values
        elif len(shape) == 1:
            weights[name] = values * (1.0 if name == "v_a" else 0.4)
        else:
            weights[name] = values * 1.6 / shape[1] ** 0.5
    return weights


def cell_step(w, prefix, suffix, x, state):
    """One step of one row: state is (h,) or (h, c)."""
    gi = w[f"{prefix}.weight_ih{suffix}"] @ x + w[f"{prefix}.bias_ih{suffix}"]
    gh = w[f"{prefix}.weight_hh{suffix}"] @ state[0] + w[f"{prefix}.bias_hh{suffix}"]
    if len(state) == 1:
        (ir, iz, inn), (hr, hz, hn) = gi.chunk(3), gh.chunk(3)
        r, z = torch.sigmoid(ir + hr), torch.sigmoid(iz + hz)
        return ((1 - z) * torch.tanh(inn + r * hn) + z * state[0],)
    i, f, g, o = (gi + gh).chunk(4)
    c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def run_layer(w, prefix, suffix, xs, state):
    states = []
    for x in xs:
        state = cell_step(w, prefix, suffix, x, state)
        states.append(state)
    return states


class Row:
    """One source sentence, without padding, encoded; and its decoder."""

    def __init__(self, config, weights, ids):
        self.c, self.w = config, weights
        xs = [weights["src_embed.weight"][i] for i in ids]
        lstm, he = config["cell"] == "lstm", config["encoder_hidden_size"]
        zero = (torch.zeros(he),) * (2 if lstm else 1)
        for layer in range(config["num_layers"]):
            forward = [s[0] for s in run_layer(weights, "encoder", f"_l{layer}", xs, zero)]
            sides = [forward]
            if config["bidirectional"]:
                backward = run_layer(weights, "encoder", f"_l{layer}_reverse", xs[::-1], zero)
                sides.append([s[0] for s in backward][::-1])
            xs = [torch.cat(parts) for parts in zip(*sides)]
        self.h = torch.stack(xs)
        final = [sides[0][-1]] + [side[0] for side in sides[1:]]
        final = final[-1] if config["attention"] == "bahdanau" else torch.cat(final)
        names = ("bridge", "bridge_cell")[: 2 if lstm else 1]
        state = tuple(torch.tanh(weights[f"{n}.weight"] @ final + weights[f"{n}.bias"])
                      for n in names)
        self.start = dict(state=state, fed=torch.zeros(config["decoder_hidden_size"]), t=0)

    def align(self, s, t):
        """Scores over all real tokens, and the weights within the window."""
        kind, w, n = self.c["attention"], self.w, len(self.h)
        if kind == "bahdanau":
            scores = torch.tanh(w["W_a.weight"] @ s + w["W_a.bias"] + self.h @ w["U_a.weight"].T)
            scores = scores @ w["v_a"]
        elif kind == "luong_dot":
            scores = self.h @ s
        elif kind == "luong_general":
            scores = self.h @ w["W_a.weight"].T @ s
        elif kind == "luong_concat":
            joined = torch.cat([s.expand(n, -1), self.h], 1)
            scores = torch.tanh(joined @ w["W_a.weight"].T) @ w["v_a"]
        else:
            scores = torch.full((n,), -math.inf)
            known = (w["W_a.weight"] @ s)[:n]
            scores[: len(known)] = known
        window, reach = self.c.get("attention_window", "global"), self.c.get("window_size")
        places = torch.arange(n, dtype=torch.float64)
        centre = float(t)
        if window == "local-p":
            share = torch.sigmoid(w["v_p.weight"] @ torch.tanh(w["W_p.weight"] @ s))
            centre = float(n * share)
        if window != "global":
            scores = scores.masked_fill((places - centre).abs() > reach, -math.inf)
        weights = torch.zeros(n)
        if scores.max() > -math.inf:
            weights = torch.softmax(scores, 0)
        if window == "local-p":
            weights = weights * torch.exp(-((places - centre) ** 2) / (2 * (reach / 2) ** 2))
        return scores, weights

    def step(self, moment, token):
        """-> the moment after it, with last_hidden_state, logits, scores and weights."""
        kind, w = self.c["attention"], self.w
        e, t = w["tgt_embed.weight"][token], moment["t"]
        new = dict(t=t + 1)
        if kind == "bahdanau":
            new["scores"], new["weights"] = self.align(moment["state"][0], t)
            context = new["weights"] @ self.h
            new["state"] = cell_step(w, "decoder", "", torch.cat([e, context]), moment["state"])
            new["last"] = new["state"][0]
            features = torch.cat([new["last"], context, e])
        else:
            x = torch.cat([e, moment["fed"]]) if self.c["input_feeding"] else e
            new["state"] = cell_step(w, "decoder", "", x, moment["state"])
            features = new["state"][0]
            if kind != "none":
                new["scores"], new["weights"] = self.align(features, t)
                joined = torch.cat([new["weights"] @ self.h, features])
                features = torch.tanh(w["W_c.weight"] @ joined)
            new["last"] = new["fed"] = features
        new["logits"] = w["out.weight"] @ features + w["out.bias"]
        return new


def noisy(logits, generator):
    if generator is None:
        return logits
    return logits + NOISE * (2 * torch.rand(logits.shape, generator=generator) - 1)


def greedy(row, generator):
    ids, moment = [BOS], row.start
    while len(ids) <= NEW_TOKENS and ids[-1] != EOS:
        moment = row.step(moment, ids[-1])
        ids.append(int(noisy(moment["logits"], generator).argmax()))
    return ids


def beam(row, generator):
    """Beam search of transformers: K = 2n candidates, length-normalized, early_stopping false."""
    running = [(0.0, [BOS], row.start)] + [(-1e9, [BOS], row.start)] * (BEAMS - 1)
    finished, longest = [], 1 + NEW_TOKENS
    while True:
        candidates = []
        for place, (score, ids, moment) in enumerate(running):
            after = row.step(moment, ids[-1])
            scores = score + torch.log_softmax(noisy(after["logits"], generator), 0)
            candidates += [(float(s), place, token, after) for token, s in enumerate(scores)]
        candidates = sorted(candidates, key=lambda c: -c[0])[: 2 * BEAMS]
        length = len(running[0][1])
        done = [token == EOS or length + 1 == longest for _, _, token, _ in candidates]
        grown = [(score, running[place][1] + [token], after)
                 for score, place, token, after in candidates]
        for (score, ids, _), ends in list(zip(grown, done))[:BEAMS]:
            if ends:
                finished.append((score / length, ids))
        finished = sorted(finished, key=lambda f: -f[0])[:BEAMS]
        ranked = sorted(zip(grown, done), key=lambda g: -(g[0][0] - (1e9 if g[1] else 0.0)))
        running = [g for g, _ in ranked[:BEAMS]]
        best = running[0][0] / length
        if all(done) or (len(finished) == BEAMS and best <= finished[-1][0]):
            return finished[0][1], finished[0][0]


def generated(rows):
    greedy_rows = [greedy(row, None) for row in rows]
    beams = [beam(row, None) for row in rows]
    for trial in range(TRIALS):
        noise = torch.Generator().manual_seed(trial)
        if [greedy(row, noise) for row in rows] != greedy_rows:
            return None
        if [beam(row, noise)[0] for row in rows] != [ids for ids, _ in beams]:
            return None

    def padded(lists):
        return torch.tensor([ids + [PAD] * (1 + NEW_TOKENS - len(ids)) for ids in lists])

    return dict(greedy_ids=padded(greedy_rows), beam4_ids=padded([ids for ids, _ in beams]),
                beam4_scores=torch.tensor([score for _, score in beams]))


def spread(values, kept, length, fill=0.0):
    """Rows (or values) of the real tokens, put back among the padded ones."""
    out = torch.full((length,) + values.shape[1:], fill)
    out[kept] = values
    return out


def attempt(config, seed, source, target):
    generator = torch.Generator().manual_seed(seed)
    stored = draw(shapes_of(config), generator)
    weights = {name: tensor.double() for name, tensor in stored.items()}
    ids = torch.randint(FIRST, config["src_vocab_size"], (3, source), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, source - 3:] = 0                       # padding after
    mask[2, :2] = mask[2, 4] = mask[2, -1] = 0     # before, inside and after
    ids = ids.masked_fill(mask == 0, PAD)
    decoder = torch.randint(FIRST, config["tgt_vocab_size"], (3, target), generator=generator)
    decoder[:, 0] = BOS
    rows, collected = [], {}
    for i in range(3):
        kept = mask[i].nonzero()[:, 0]
        row = Row(config, weights, [int(x) for x in ids[i][kept]])
        moments, moment = [], row.start
        for token in decoder[i]:
            moment = row.step(moment, int(token))
            moments.append(moment)
        out = dict(encoder_last_hidden_state=spread(row.h, kept, source),
                   last_hidden_state=torch.stack([m["last"] for m in moments]),
                   logits=torch.stack([m["logits"] for m in moments]))
        if config["attention"] != "none":
            out["cross_attentions.0"] = torch.stack(
                [spread(m["weights"], kept, source) for m in moments])[None]
        for name, tensor in out.items():
            collected.setdefault(name, []).append(tensor)
        rows.append(row)
    ids_of = generated(rows)
    if ids_of is None:
        return None
    expected = {name: torch.stack(parts).float() for name, parts in collected.items()} | ids_of
    expected["beam4_scores"] = expected["beam4_scores"].float()
    inputs = dict(input_ids=ids, attention_mask=mask, decoder_input_ids=decoder)
    return stored, inputs, expected


def write(path, inputs, expected, facts):
    def save(tensors, name):
        tensors = {n: t.clone().contiguous() for n, t in tensors.items()}
        safetensors.torch.save_file(tensors, os.path.join(path, name))

    save(inputs, "inputs.safetensors")
    save(expected, "expected.safetensors")
    facts |= dict(format=1, optional=["beam4_scores"], computed_in="float64, stored as float32")
    facts["torch_version"] = torch.__version__
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)


def make_model(folder, name, seed, given, source=10, target=6):
    config = BASE | given
    made = attempt(config, seed, source, target)
    while made is None:
        seed += 1
        made = attempt(config, seed, source, target)
    weights, inputs, expected = made
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(os.path.join(path, "model"))
    config = dict(model_type="rnn_attention", architectures=["RnnAttention"]) | config
    config |= dict(pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS)
    with open(os.path.join(path, "model", "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    safetensors.torch.save_file(weights, os.path.join(path, "model", "model.safetensors"))
    facts = dict(name=name, family="rnn_attention", head="RnnAttention", seed=seed)
    facts |= dict(tolerance=dict(abs=5e-5, rel=5e-5))
    facts["generation"] = dict(
        prompt_length=1, max_new_tokens=NEW_TOKENS, num_beams=BEAMS, length_penalty=1.0,
        early_stopping=False, eos_token_id=EOS, pad_token_id=PAD, decoder_start_token_id=BOS)
    write(path, inputs, expected, facts)
    print(name, "seed", seed)


def make_layer(folder, name, seed, op, width, reverse=False):
    """A gru or lstm over rows with holes, from an initial state."""
    generator = torch.Generator().manual_seed(seed)
    gates, parts = (4, ("h0", "c0")) if op == "lstm" else (3, ("h0",))
    batch, tokens, size = 3, 8, 5
    shapes = dict(X=(batch, tokens, size), weight_ih=(gates * width, size),
                  weight_hh=(gates * width, width), bias_ih=(gates * width,),
                  bias_hh=(gates * width,)) | {part: (batch, width) for part in parts}
    inputs = {n: torch.randn(s, generator=generator, dtype=torch.float32)
              for n, s in shapes.items()}
    inputs["weight_hh"] /= width ** 0.5
    mask = torch.ones(batch, tokens, dtype=torch.uint8)
    mask[1, 5:] = mask[2, 0] = mask[2, 3] = 0
    w = {f"x.{n}": t.double() for n, t in inputs.items()}
    outputs = {}
    for i in range(batch):
        kept = mask[i].nonzero()[:, 0]
        order = kept.flip(0) if reverse else kept
        state = tuple(w[f"x.{part}"][i] for part in parts)
        states = run_layer(w, "x", "", [w["x.X"][i, t] for t in order], state)
        y = spread(torch.stack([s[0] for s in states]), order, tokens)
        for part, tensor in zip(("Y", "h", "c"), (y,) + states[-1]):
            outputs.setdefault(part, []).append(tensor.float())
    write_op(folder, name, op, dict(reverse=True) if reverse else {}, inputs | dict(mask=mask),
             {n: torch.stack(t) for n, t in outputs.items()}, seed)


def make_alignment(folder, name, seed, window):
    generator = torch.Generator().manual_seed(seed)
    shapes = dict(Q=(2, 5, 7), K=(2, 37, 7), V=(2, 37, 6), v=(7,))
    inputs = {n: torch.randn(s, generator=generator, dtype=torch.float32)
              for n, s in shapes.items()}
    mask = (torch.rand(2, 37, generator=generator) < 0.7).to(torch.uint8)
    q, k, value, v = (inputs[n].double() for n in shapes)
    scores = torch.tanh(q[:, :, None] + k[:, None]) @ v
    scores = scores.masked_fill(mask[:, None] == 0, -math.inf)
    if window:
        places = mask.long().cumsum(1) - 1
        far = (places[:, None] - torch.arange(5)[:, None]).abs() > window
        scores = scores.masked_fill(far, -math.inf)
    weights = torch.softmax(scores, 2)
    outputs = dict(output=(weights @ value).float(), weights=weights.float())
    write_op(folder, name, "additive_attention", dict(window=window) if window else {},
             inputs | dict(key_mask=mask), outputs, seed)


def write_op(folder, name, op, attributes, inputs, outputs, seed):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with open(os.path.join(path, "op.json"), "w", encoding="utf-8") as file:
        json.dump(dict(op=op, attributes=attributes), file, indent=1)
    write(path, inputs, outputs,
          dict(name=name, family="op", seed=seed, tolerance=dict(abs=2e-5, rel=2e-5)))
    print(name)


LSTM = dict(cell="lstm")
MODELS = {
    "rnn-bahdanau-lstm": (1, LSTM | dict(num_layers=2)),
    "rnn-dot-local-m": (2, dict(attention="luong_dot", bidirectional=False, encoder_hidden_size=11,
                                attention_window="local-m", window_size=2)),
    "rnn-general-local-p": (3, LSTM | dict(attention="luong_general", input_feeding=True,
                                           attention_window="local-p", window_size=3)),
    "rnn-concat-feeding": (4, dict(attention="luong_concat", input_feeding=True)),
    "rnn-location": (5, dict(attention="luong_location", location_size=7)),
    "rnn-none-lstm": (6, LSTM | dict(attention="none", bidirectional=False, num_layers=2)),
}
LAYERS = {
    "op-gru-masked": (11, "gru", 9, True),
    "op-lstm-masked": (12, "lstm", 7, False),
}
ALIGNMENTS = {"op-additive-attention": (13, 0), "op-additive-attention-window": (14, 4)}


def main():
    torch.set_default_dtype(torch.float64)
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = sys.argv[1], sys.argv[2:]
    if len(names) == 3 and names[1].isdigit():
        make_model(folder, names[0], int(names[1]), json.loads(names[2]))
        return
    for name in names or [*MODELS, *LAYERS, *ALIGNMENTS]:
        if name in MODELS:
            make_model(folder, name, *MODELS[name])
        elif name in LAYERS:
            make_layer(folder, name, *LAYERS[name])
        else:
            make_alignment(folder, name, *ALIGNMENTS[name])


if __name__ == "__main__":
    main()
