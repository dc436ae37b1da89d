#!/usr/bin/env python3
"""Trains models/digits: a small ViT that reads a handwritten digit.

    tools/train/digits.py mnist-t10k build/digits-f32
    tools/train/to_f16.py build/digits-f32 models/digits

Needs PyTorch and transformers. Stops and goes on: a run that is started again with the same target
continues from its last checkpoint (TARGET/run.pt).
"""
import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch.nn import functional
from transformers import ViTConfig, ViTForImageClassification

import digits_data
import optimizers

EPOCHS = 80
BATCH = 160
MUON_RATE = 2e-3
ADAM_RATE = 2e-3
WEIGHT_DECAY = 0.05
WARM_UP_STEPS = 200
LABEL_SMOOTHING = 0.05
AVERAGE_DECAY = 0.998
SEED = 7
SAVE_EPOCHS = 10

# Distortions, sampled again for every picture of every epoch.
ROTATION = math.radians(14)
SHEAR = 0.2
SCALE = 0.15
SHIFT = 2.5 / digits_data.SIDE * 2  # in halves of the picture, as grid_sample counts
WAVE_POINTS = 6                     # control points a side of the elastic distortion
WAVE = 1.3 / digits_data.SIDE * 2
GAMMA = 0.35                        # strokes become bolder or thinner
INVERTED_SHARE = 0.25               # black on white


def make_model():
    return ViTForImageClassification(ViTConfig(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256,
        image_size=digits_data.SIDE, patch_size=4, num_channels=3, hidden_act="gelu",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-6,
        attn_implementation="eager", id2label={i: str(i) for i in range(10)},
        label2id={str(i): i for i in range(10)}))


def distort(pictures):
    """Pictures (B, 1, 28, 28) in 0 to 1, turned, sheared, scaled, shifted and bent at random."""
    count = len(pictures)

    def uniform(*shape):
        return torch.rand(count, *shape) * 2 - 1

    angle, shear = uniform() * ROTATION, uniform() * SHEAR
    wide, high = torch.exp(uniform() * SCALE), torch.exp(uniform() * SCALE)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    matrix = torch.stack([
        torch.stack([cosine * wide, (shear * cosine - sine) * high, uniform() * SHIFT], 1),
        torch.stack([sine * wide, (shear * sine + cosine) * high, uniform() * SHIFT], 1)], 1)
    grid = functional.affine_grid(matrix, pictures.shape, align_corners=False)
    wave = functional.interpolate(uniform(2, WAVE_POINTS, WAVE_POINTS) * WAVE,
                                  size=pictures.shape[-2:], mode="bicubic", align_corners=True)
    bent = functional.grid_sample(pictures, grid + wave.permute(0, 2, 3, 1), align_corners=False)
    bent = bent.clamp(0, 1) ** torch.exp(uniform(1, 1, 1) * GAMMA)
    inverted = torch.rand(count, 1, 1, 1) < INVERTED_SHARE
    return torch.where(inverted, 1 - bent, bent)


def pixel_values(pictures):
    """What preprocessor_config.json describes: -1 to 1, three equal channels."""
    return ((pictures - 0.5) / 0.5).expand(-1, 3, -1, -1)


@torch.no_grad()
def predictions(model, pictures):
    model.eval()
    return torch.cat([model(pixel_values=pixel_values(part)).logits.argmax(1)
                      for part in pictures.split(500)])


def train(model, pictures, labels, target, epochs):
    optimizer = optimizers.Optimizers(model, lambda name: ".layer" in name,
                                      MUON_RATE, ADAM_RATE, WEIGHT_DECAY)
    average = optimizers.Average(model, AVERAGE_DECAY)
    run = optimizers.Run(target, model, optimizer, average)
    steps = math.ceil(len(pictures) / BATCH)
    step, start = run.resume(), time.time()
    for epoch in range(step // steps, epochs):
        model.train()
        losses = 0.0
        for chosen in torch.randperm(len(pictures)).split(BATCH):
            optimizer.set_share(optimizers.rate_share(step, epochs * steps, WARM_UP_STEPS))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(pixel_values=pixel_values(distort(pictures[chosen]))).logits
            loss = functional.cross_entropy(logits.float(), labels[chosen],
                                            label_smoothing=LABEL_SMOOTHING)
            loss.backward()
            optimizer.step()
            step += 1
            average.update(model, step)
            losses += loss.item()
        print(f"epoch {epoch + 1}/{epochs}  loss {losses / steps:.4f}  "
              f"{time.time() - start:.0f} s", flush=True)
        if (epoch + 1) % SAVE_EPOCHS == 0:
            run.save(step)
    return average.model


def write_processor(target):
    settings = {"image_processor_type": "ViTImageProcessor", "do_resize": True,
                "size": {"height": digits_data.SIDE, "width": digits_data.SIDE}, "resample": 2,
                "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (target / "preprocessor_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of t10k-images and t10k-labels")
    parser.add_argument("target", type=Path, help="model directory to write")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default {EPOCHS}")
    parser.add_argument("--trial", action="store_true",
                        help="train on 7000 and score the 1000 behind them: for choosing settings")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(arguments.threads)
    rows, labels = digits_data.read_digits(arguments.data)
    pictures = torch.frombuffer(bytearray(b"".join(rows)), dtype=torch.uint8).float() / 255
    pictures = pictures.view(-1, 1, digits_data.SIDE, digits_data.SIDE)
    labels = torch.tensor(labels)
    cut, end = digits_data.TRAIN_PICTURES, len(pictures)
    if arguments.trial:
        cut, end = cut - 1000, cut
    model = make_model()
    print(f"{cut} pictures, {sum(p.numel() for p in model.parameters())} parameters")
    model = train(model, pictures[:cut], labels[:cut], arguments.target, arguments.epochs)

    with torch.no_grad():
        for parameter in model.parameters():
            # As to_f16.py stores them, so that what is measured is what is shipped.
            parameter.copy_(parameter.half())
    model.save_pretrained(arguments.target)
    sheet = digits_data.sheet_rows(rows, labels.tolist())
    digits_data.write_png(arguments.target / "test_digits.png", sheet)
    for digit, picture in enumerate(digits_data.single_digits(sheet)):
        digits_data.write_png(arguments.target / f"{digit}.png", picture)
    write_processor(arguments.target)
    for name, seen in (("white on black", pictures), ("black on white", 1 - pictures)):
        right = (predictions(model, seen[cut:end]) == labels[cut:end]).sum().item()
        print(f"{name}: {right} of {end - cut} right, {100 * right / (end - cut):.2f}%")


if __name__ == "__main__":
    main()
