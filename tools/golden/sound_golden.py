#!/usr/bin/env python3
"""Makes tests/audio/golden/sounds.safetensors: what transformers makes of small WAV files.

    python3 tools/golden/sound_golden.py OUTPUT.safetensors

Needs numpy and transformers (their versions go into the file's metadata). Tensors, for each case n:
  file.<n>                          a WAV file's bytes
  samples.<n>                       its samples, the mean of the channels (N)
  config.<n>                        a preprocessor_config.json, at the file's sampling rate
  features.<n>                      input_features of the samples (1, mel bands, frames)
"""
import json
import struct
import sys

import numpy as np
import transformers
from transformers import WhisperFeatureExtractor

SEED = 21
CASES = (
    # sampling rate, samples, channels, encoding, settings of the extractor
    (16000, 4000, 1, "pcm16", {"chunk_length": 1}),
    (8000, 2500, 2, "float32", {"chunk_length": 1, "feature_size": 20, "n_fft": 390, "hop_length": 77}),
    (8000, 3000, 1, "pcm24", {"chunk_length": 1, "feature_size": 16, "n_fft": 251, "hop_length": 100}),
)


def sound(rate, count, channels, random):
    """A rising tone, clicks and noise that fades, another in each channel."""
    t = np.arange(count)[:, None] / rate
    pitch = 180.0 + 90.0 * np.arange(channels)
    tone = 0.5 * np.sin(2 * np.pi * (pitch + 700.0 * t) * t) * (t % 0.3 < 0.2)
    noise = 0.2 * random.standard_normal((count, channels)) * np.exp(-5.0 * t)
    clicks = 0.4 * (np.arange(count)[:, None] % (rate // 7) == 0)
    return np.clip(tone + noise + clicks, -0.999, 0.999)


def encode(samples, encoding):
    """The bytes of the samples, and what they stand for."""
    if encoding == "float32":
        stored = samples.astype("<f4")
        return 3, 32, stored.tobytes(), stored.astype(np.float64)
    bits = int(encoding[3:])
    stored = np.round(samples * 2.0 ** (bits - 1)).astype("<i4")
    raw = stored.reshape(-1, 1).view(np.uint8)[:, :bits // 8]
    return 1, bits, raw.tobytes(), stored / 2.0 ** (bits - 1)


def wav(rate, channels, kind, bits, data):
    block = channels * bits // 8
    fmt = struct.pack("<HHIIHH", kind, channels, rate, rate * block, block, bits)
    body = b"WAVE"
    for tag, chunk in ((b"fmt ", fmt), (b"LIST", b"INFOodd"), (b"data", data)):
        body += tag + struct.pack("<I", len(chunk)) + chunk + b"\0" * (len(chunk) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def save(path, tensors, metadata):
    names = {np.dtype("uint8"): "U8", np.dtype("float32"): "F32"}
    header, data = {"__metadata__": metadata}, b""
    for name, value in sorted(tensors.items()):
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + data)


def main():
    random = np.random.default_rng(SEED)
    tensors = {}
    for n, (rate, count, channels, encoding, settings) in enumerate(CASES):
        kind, bits, data, stored = encode(sound(rate, count, channels, random), encoding)
        samples = stored.mean(axis=1).astype(np.float32)
        extractor = WhisperFeatureExtractor(sampling_rate=rate, **settings)
        features = extractor(samples, sampling_rate=rate, return_tensors="np").input_features
        tensors[f"file.{n}"] = np.frombuffer(wav(rate, channels, kind, bits, data), np.uint8)
        tensors[f"samples.{n}"] = samples
        tensors[f"config.{n}"] = np.frombuffer(extractor.to_json_string().encode(), np.uint8)
        tensors[f"features.{n}"] = features.astype(np.float32)
    save(sys.argv[1], tensors, {"seed": str(SEED), "numpy": np.__version__,
                                "transformers": transformers.__version__})


if __name__ == "__main__":
    main()
