#!/usr/bin/env python3
"""Makes the golden case of a GPT-OSS whose experts are in MXFP4, as published. It has random blocks and exponents, of
which the reference computes in float64 with what they stand for.

    python3 tools/golden/mxfp4_golden.py FOLDER

Needs what model_golden.py needs.
"""
import os
import sys

import safetensors.torch
import torch

import model_golden

# Open Compute Project, 2023, "OCP microscaling formats": E2M1.
VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
NAME, SEED = "gpt_oss-mxfp4", 640
CONFIG = dict(hidden_size=64, intermediate_size=32, num_local_experts=3, num_experts_per_tok=2,
              head_dim=8, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=2,
              sliding_window=4)
plain_randomize = model_golden.randomize
packed = {}


def randomize(model, generator):
    plain_randomize(model, generator)
    packed.clear()
    for name, parameter in model.named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        experts, inputs, outputs = parameter.shape
        shape = (experts, outputs, inputs // 32)
        blocks = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
        scales = torch.randint(121, 125, shape, generator=generator, dtype=torch.uint8)
        pairs = torch.stack((VALUES[(blocks & 15).long()], VALUES[(blocks >> 4).long()]), -1)
        weights = pairs.reshape(*shape, 32) * torch.exp2(scales.float() - 127)[..., None]
        parameter.data = weights.reshape(experts, outputs, inputs).transpose(1, 2).contiguous()
        packed[name] = blocks, scales


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model_golden.randomize = randomize
    model_golden.make_case(sys.argv[1], NAME, "GptOssForCausalLM", SEED, CONFIG, True)
    path = os.path.join(sys.argv[1], NAME, "model", "model.safetensors")
    tensors = safetensors.torch.load_file(path)
    for name, (blocks, scales) in packed.items():
        del tensors[name]
        tensors[name + "_blocks"], tensors[name + "_scales"] = blocks, scales
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
