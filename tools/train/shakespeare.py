#!/usr/bin/env python3
"""Trains models/shakespeare: a byte-level decoder (Mistral layout) of Shakespeare's plays.

    tools/train/shakespeare.py input.txt build/shakespeare-f32
    tools/train/to_f16.py build/shakespeare-f32 models/shakespeare

Needs PyTorch and transformers; a quarter of an hour on one core with bf16 arithmetic. Stops and
goes on: a run that is started again with the same target continues from its last checkpoint. The
data part, which needs neither, is shakespeare_data.py.
"""
import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers import MistralConfig, MistralForCausalLM

import optimizers
import shakespeare_data

WIDTH = 192
LAYERS = 6
HEADS = 4
HEAD_WIDTH = WIDTH // HEADS
FEED_FORWARD = 512
VOCABULARY = 256  # bytes
CONTEXT = 256     # bytes of a training row
WINDOW = 128      # keys that a byte attends to in every layer
THETA = 10000.0
EPSILON = 1e-5

STEPS = 1100
DECAY_FROM = 700     # until here the rate goes down slowly, then straight to nothing
COSINE_STEPS = 2000  # of the slow part's cosine
BATCH = 16
MUON_RATE = 4e-3
ADAM_RATE = 4e-3
WEIGHT_DECAY = 0.05
WARM_UP_STEPS = 100
DROPOUT = 0.1     # after the feed-forward only: random numbers cost a CPU as much as a product
GRADIENT_NORM = 1.0
AVERAGE_DECAY = 0.99
SEED = 7
SAVE_STEPS = 100
DEFAULT_NEW_BYTES = 400
PROMPT, SAMPLE_TOKENS, SAMPLE_BYTES = "ROMEO:", 200, 2000


def rotary_table(length):
    """cos and sin (T, 1, E / 2) of the angles position * THETA^(-2i / E)."""
    rates = THETA ** (-torch.arange(0, HEAD_WIDTH, 2).double() / HEAD_WIDTH)
    angles = torch.arange(length).double()[:, None, None] * rates
    return angles.cos().bfloat16(), angles.sin().bfloat16()


class Layer(nn.Module):
    """A Mistral layer with dropout, its projections merged: a CPU likes few, large products."""

    def __init__(self):
        super().__init__()
        self.gain1 = nn.Parameter(torch.ones(WIDTH))
        self.gain2 = nn.Parameter(torch.ones(WIDTH))
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, FEED_FORWARD, bias=False) for _ in range(2))
        self.down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def forward(self, x, rotary, mask):
        x = x + self.attend(x, rotary, mask)
        normal = functional.rms_norm(x, (WIDTH,), self.gain2, EPSILON)
        merged = functional.linear(normal, torch.cat([self.gate.weight, self.up.weight]))
        gate, up = merged.split(FEED_FORWARD, dim=-1)
        fed = self.down(functional.silu(gate) * up)
        return x + functional.dropout(fed, DROPOUT, self.training)

    def attend(self, x, rotary, mask):
        batch, length, _ = x.shape
        normal = functional.rms_norm(x, (WIDTH,), self.gain1, EPSILON)
        merged = functional.linear(
            normal, torch.cat([self.query.weight, self.key.weight, self.value.weight]))
        query, key, value = merged.view(batch, length, 3, HEADS, HEAD_WIDTH).unbind(2)
        query, key = rotate(query, rotary), rotate(key, rotary)
        rows, cells = batch * HEADS, (length, HEAD_WIDTH)
        query, key, value = (t.transpose(1, 2).reshape(rows, *cells) for t in (query, key, value))
        scores = torch.baddbmm(mask, query, key.mT, alpha=HEAD_WIDTH ** -0.5)
        mixed = torch.bmm(functional.softmax(scores, -1, dtype=scores.dtype), value)
        return self.output(mixed.view(batch, HEADS, *cells).transpose(1, 2).flatten(2))


def rotate(x, rotary):
    cosine, sine = rotary
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
            if name.endswith(("output.weight", "down.weight")):
                nn.init.zeros_(parameter)
        distance = torch.arange(CONTEXT)[:, None] - torch.arange(CONTEXT)
        mask = torch.zeros(CONTEXT, CONTEXT)
        mask.masked_fill_((distance < 0) | (distance >= WINDOW), -math.inf)
        self.mask = mask.bfloat16()  # (T, S)
        self.rotary = rotary_table(CONTEXT)

    def forward(self, ids):
        """ids (B, T) -> logits (B, T, V)."""
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.rotary, self.mask)
        return self.head(functional.rms_norm(x, (WIDTH,), self.gain, EPSILON))


def to_transformers(decoder):
    """The same model as transformers knows it, in f32."""
    config = MistralConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, head_dim=HEAD_WIDTH,
        intermediate_size=FEED_FORWARD, sliding_window=WINDOW, rms_norm_eps=EPSILON,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        max_position_embeddings=4096, tie_word_embeddings=False, attn_implementation="eager",
        bos_token_id=None, eos_token_id=None, pad_token_id=None)
    model = MistralForCausalLM(config)
    weights = {"model.embed_tokens.weight": decoder.embedding.weight,
               "model.norm.weight": decoder.gain, "lm_head.weight": decoder.head.weight}
    names = {"self_attn.q_proj": "query", "self_attn.k_proj": "key", "self_attn.v_proj": "value",
             "self_attn.o_proj": "output", "mlp.gate_proj": "gate", "mlp.up_proj": "up",
             "mlp.down_proj": "down"}
    for index, layer in enumerate(decoder.layers):
        prefix = f"model.layers.{index}."
        weights[prefix + "input_layernorm.weight"] = layer.gain1
        weights[prefix + "post_attention_layernorm.weight"] = layer.gain2
        for theirs, ours in names.items():
            weights[f"{prefix}{theirs}.weight"] = getattr(layer, ours).weight
    model.load_state_dict(weights)
    return model.eval()


@torch.no_grad()
def nats_per_byte(model, data, stride, most_rows=1 << 30):
    """Mean negative log likelihood of every byte but the first; model maps ids to logits.

    Rows of CONTEXT bytes begin every `stride` bytes. Of each but the first only the last `stride` predictions count, so
    that each is made from at least CONTEXT - stride bytes.
    """
    model.eval()
    starts = list(range(0, len(data) - 1 - CONTEXT, stride))[:most_rows]
    if most_rows == 1 << 30:
        starts.append(len(data) - 1 - CONTEXT)
    total, counted, done = 0.0, 0, 0
    for begin in range(0, len(starts), 32):
        chosen = starts[begin:begin + 32]
        rows = torch.stack([data[s:s + CONTEXT + 1] for s in chosen])
        logits = model(rows[:, :-1])
        logits = getattr(logits, "logits", logits)
        losses = functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten(),
                                          reduction="none").view(len(chosen), CONTEXT)
        for start, row in zip(chosen, losses):
            fresh = start + CONTEXT - done
            total += row[CONTEXT - fresh:].sum().item()
            counted, done = counted + fresh, done + fresh
    return total / counted


def rate_share(step, steps):
    if steps <= DECAY_FROM:
        return optimizers.rate_share(step, steps, WARM_UP_STEPS)  # a trial
    slow = optimizers.rate_share(min(step, DECAY_FROM), COSINE_STEPS, WARM_UP_STEPS)
    return slow * min(1.0, (steps - step) / (steps - DECAY_FROM))


def train(model, data, held_out, target, steps):
    optimizer = optimizers.Optimizers(model, lambda name: name.startswith("layers."),
                                      MUON_RATE, ADAM_RATE, WEIGHT_DECAY)
    average = optimizers.Average(model, AVERAGE_DECAY)
    run = optimizers.Run(target, model, optimizer, average)
    step, start, losses = run.resume(), time.time(), 0.0
    model.train()
    while step < steps:
        optimizer.set_share(rate_share(step, steps))
        begins = torch.randint(len(data) - CONTEXT, (BATCH,)).tolist()
        rows = torch.stack([data[b:b + CONTEXT + 1] for b in begins])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(rows[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
        optimizer.step()
        step += 1
        average.update(model, step)
        losses += loss.item()
        if step % SAVE_STEPS == 0:
            run.save(step)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                # A look at a part of the held-out text; nothing is chosen by it.
                seen = nats_per_byte(average.model, held_out, CONTEXT, most_rows=64)
            print(f"step {step}/{steps}  loss {losses / SAVE_STEPS:.4f}  held out {seen:.4f}  "
                  f"{time.time() - start:.0f} s", flush=True)
            losses = 0.0
    return average.model


@torch.no_grad()
def reference_of(model, held_out):
    """What tests compare with: a greedy continuation, and the score of some held-out text."""
    prompt = torch.tensor([list(PROMPT.encode())])
    written = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                             max_new_tokens=SAMPLE_TOKENS)[0, prompt.shape[1]:]
    sample = held_out[:SAMPLE_BYTES]
    losses = functional.cross_entropy(model(sample[None, :-1]).logits[0], sample[1:])
    return {"prompt": PROMPT, "greedy": bytes(written.tolist()).decode(),
            "held_out": bytes(sample.tolist()).decode(), "nats": losses.item()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="input.txt of tiny Shakespeare")
    parser.add_argument("target", type=Path, help="model directory to write")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default {STEPS}")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(arguments.threads)
    text, held_out = shakespeare_data.split_text(arguments.text.read_bytes())
    data, held_out = (torch.frombuffer(bytearray(part), dtype=torch.uint8).long()
                      for part in (text, held_out))
    model = Decoder()
    print(f"{len(data)} bytes to train on, {len(held_out)} held out, "
          f"{sum(p.numel() for p in model.parameters())} parameters")
    decoder = train(model, data, held_out, arguments.target, arguments.steps)

    model = to_transformers(decoder)
    with torch.no_grad():
        for parameter in model.parameters():
            # As to_f16.py stores them, so that what is measured is what is shipped.
            parameter.copy_(parameter.half())
    model.generation_config.max_new_tokens = DEFAULT_NEW_BYTES
    model.save_pretrained(arguments.target)
    shakespeare_data.write_tokenizer(arguments.target)
    reference = reference_of(model.double(), held_out)
    (arguments.target / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")
    print(f"held out: {nats_per_byte(model.float(), held_out, CONTEXT // 4):.4f} nats per byte; "
          f"the first {SAMPLE_BYTES}: {reference['nats']:.4f}")


if __name__ == "__main__":
    main()
