#!/usr/bin/env python3
"""Makes words.json of the speech task's golden model: when the tokens that it writes are said.

    python3 tools/golden/word_times_golden.py tests/tasks/golden/speech tests/tasks/golden

The arguments are the model's folder and the one with its audio files. Needs numpy and safetensors.
All is computed in float64 from the published formulas. They are Whisper's log-mel features and layers (Radford et al.,
2022). The alignment is as whisper/timing.py does it (find_alignment).
"""
import json
import math
import sys
import wave

import numpy as np
from safetensors.numpy import load_file

# (layer, head) of cross-attention.
ALIGNMENT_HEADS = [[0, 1], [1, 0], [1, 3]]
MEDIAN, NEW_TOKENS = 7, 10
# The path must survive noise of this size on every score of attention.
NOISE = 2e-5


def mel_filters(bands, rate, fft):
    """Triangles on Slaney's scale, each of area 1."""
    def to_hertz(mel):
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * math.log(6.4) / 27))

    top = 15 + 27 * math.log(rate / 2 / 1000) / math.log(6.4)
    corners = to_hertz(np.linspace(0, top, bands + 2))
    bins = np.linspace(0, rate / 2, fft // 2 + 1)
    rows = []
    for left, middle, right in zip(corners, corners[1:], corners[2:]):
        rise, fall = (bins - left) / (middle - left), (right - bins) / (right - middle)
        rows.append(np.maximum(0, np.minimum(rise, fall)) * 2 / (right - left))
    return np.array(rows)


def log_mel(samples, settings):
    fft, hop = settings["n_fft"], settings["hop_length"]
    samples = np.pad(samples[: settings["n_samples"]], (0, max(0, settings["n_samples"] - len(samples))))
    padded = np.pad(samples, fft // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(fft) / fft)
    frames = [padded[i : i + fft] * window for i in range(0, len(padded) - fft + 1, hop)][:-1]
    power = np.abs(np.fft.rfft(frames)) ** 2
    mel = mel_filters(settings["feature_size"], settings["sampling_rate"], fft) @ power.T
    log = np.log10(np.maximum(mel, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


class Whisper:
    def __init__(self, folder):
        with open(folder + "/config.json") as file:
            self.config = json.load(file)
        self.tensors = {k: t.astype(np.float64) for k, t in load_file(folder + "/model.safetensors").items()}

    def get(self, name):
        return self.tensors["model." + name]

    def linear(self, name, x):
        bias = self.tensors.get("model." + name + ".bias", 0.0)
        return x @ self.get(name + ".weight").T + bias

    def norm(self, name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * self.get(name + ".weight") + self.get(name + ".bias")

    def attend(self, name, x, memory, heads, causal):
        """The result and the scaled scores by head."""
        width = x.shape[-1] // heads
        q, k, v = (self.linear(f"{name}.{part}_proj", y).reshape(len(y), heads, width).swapaxes(0, 1)
                   for part, y in (("q", x), ("k", memory), ("v", memory)))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(width)
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return self.linear(name + ".out_proj", (weights @ v).swapaxes(0, 1).reshape(len(x), -1)), scores

    def feed_forward(self, name, x):
        y = gelu(self.linear(name + ".fc1", self.norm(name + ".final_layer_norm", x)))
        return x + self.linear(name + ".fc2", y)

    def convolve(self, name, x, stride):
        weight = self.get(name + ".weight")
        x = np.pad(x, ((0, 0), (1, 1)))
        columns = [np.tensordot(weight, x[:, i : i + 3], ([1, 2], [0, 1]))
                   for i in range(0, x.shape[1] - 2, stride)]
        return gelu(np.array(columns) + self.get(name + ".bias")).T

    def encode(self, features):
        x = self.convolve("encoder.conv2", self.convolve("encoder.conv1", features, 1), 2).T
        x = x + self.get("encoder.embed_positions.weight")[: len(x)]
        for i in range(self.config["encoder_layers"]):
            name = f"encoder.layers.{i}"
            y = self.norm(name + ".self_attn_layer_norm", x)
            x = x + self.attend(name + ".self_attn", y, y, self.config["encoder_attention_heads"], False)[0]
            x = self.feed_forward(name, x)
        return self.norm("encoder.layer_norm", x)

    def decode(self, ids, memory):
        """Logits, and the scaled scores of cross-attention by layer and head."""
        heads = self.config["decoder_attention_heads"]
        words = self.get("decoder.embed_tokens.weight")
        x = words[ids] + self.get("decoder.embed_positions.weight")[: len(ids)]
        scores = []
        for i in range(self.config["decoder_layers"]):
            name = f"decoder.layers.{i}"
            y = self.norm(name + ".self_attn_layer_norm", x)
            x = x + self.attend(name + ".self_attn", y, y, heads, True)[0]
            y = self.norm(name + ".encoder_attn_layer_norm", x)
            y, cross = self.attend(name + ".encoder_attn", y, memory, heads, False)
            scores.append(cross)
            x = self.feed_forward(name, x + y)
        return self.norm("decoder.layer_norm", x) @ words.T, scores


def median_filter(x, width):
    half = width // 2
    if x.shape[-1] <= half:
        return x
    padded = np.pad(x, ((0, 0),) * (x.ndim - 1) + ((half, half),), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, width, axis=-1), axis=-1)


def warp(costs):
    """The cells (token, frame) of the path that is least in sum, in order."""
    tokens, frames = costs.shape
    sums = np.full((tokens + 1, frames + 1), np.inf)
    steps = np.zeros((tokens + 1, frames + 1), int)
    sums[0, 0] = 0
    for t in range(1, tokens + 1):
        for f in range(1, frames + 1):
            both, token, frame = sums[t - 1, f - 1], sums[t - 1, f], sums[t, f - 1]
            if both < token and both < frame:
                least, step = both, (1, 1)
            elif token < both and token < frame:
                least, step = token, (1, 0)
            else:
                least, step = frame, (0, 1)
            sums[t, f], steps[t, f] = costs[t - 1, f - 1] + least, step[0] * 2 + step[1]
    path, t, f = [], tokens, frames
    while t > 0 or f > 0:
        path.append((t - 1, f - 1))
        t, f = t - steps[t, f] // 2, f - steps[t, f] % 2
    return path[::-1]


def token_frames(scores, prompt, frames):
    """The frame at which each token of the text begins, and the end token. scores: of the heads,
    (heads, tokens, all frames)."""
    scores = scores[:, :, :frames]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    weights = (weights - weights.mean(-2, keepdims=True)) / weights.std(-2, keepdims=True)
    matrix = median_filter(weights, MEDIAN).mean(0)[prompt - 1 : -1]
    first = {}
    for token, frame in warp(-matrix):
        first.setdefault(token, frame)
    return [first[t] for t in range(len(matrix))]


def main():
    folder, audio = sys.argv[1:]
    model = Whisper(folder)
    settings, generation, expected = (json.load(open(f"{folder}/{name}.json")) for name in
                                      ("preprocessor_config", "generation_config", "expected"))
    noise = np.random.default_rng(5)
    # English, to be transcribed, without times.
    prompt = [1, 2, generation["task_to_id"]["transcribe"], generation["no_timestamps_token_id"]]
    found = []
    for name in expected["sounds"]:
        with wave.open(f"{audio}/{name}") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
        memory = model.encode(log_mel(samples, settings))
        ids = list(prompt)
        for step in range(NEW_TOKENS):
            logits = model.decode(ids, memory)[0][-1]
            logits[generation["suppress_tokens"] + (generation["begin_suppress_tokens"] if step == 0 else [])] = -np.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == generation["eos_token_id"]:
                break
        text = [i for i in ids[len(prompt) :] if i != generation["eos_token_id"]]
        _, scores = model.decode(prompt + text + [generation["eos_token_id"]], memory)
        chosen = np.array([scores[layer][head] for layer, head in ALIGNMENT_HEADS])
        frames = len(samples) // settings["hop_length"] // 2
        begins = token_frames(chosen, len(prompt), frames)
        for _ in range(20):
            moved = chosen + NOISE * noise.standard_normal(chosen.shape)
            assert token_frames(moved, len(prompt), frames) == begins, f"{name}: rounding moves a token"
        seconds = settings["chunk_length"] / model.config["max_source_positions"]
        found.append({"sound": name, "tokens": text, "begins": [f * seconds for f in begins]})
    with open(folder + "/words.json", "w") as file:
        json.dump({"alignment_heads": ALIGNMENT_HEADS, "language": "en", "max_new_tokens": NEW_TOKENS,
                   "found": found}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
