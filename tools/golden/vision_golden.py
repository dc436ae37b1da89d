#!/usr/bin/env python3
"""Makes the golden cases of picture models that have unusual settings.

    python3 tools/golden/vision_golden.py OUTPUT_FOLDER [NAME ...]

Needs torch, transformers and safetensors. Weights are random with a fixed seed, every bias, gain and position from a
normal distribution. Expected values are computed in float64, softmax included, and stored as float32.
tests/golden/README.md describes the folders.
"""
import json
import os
import shutil
import sys

import torch
import transformers
from model_golden import watch_cvt
from safetensors.torch import save_file
from transformers import (CvtConfig, CvtForImageClassification, DeiTConfig, DeiTModel, SwinConfig,
                          SwinForImageClassification, ViTConfig, ViTModel)

VIT = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
           qkv_bias=False, attn_implementation="eager")


def cases():
    """Name -> (class, configuration, shape of the pictures, seed, notes)."""
    return {
        "vit-odd": (
            ViTModel,
            ViTConfig(**VIT, image_size=[22, 35], patch_size=[4, 8], num_channels=1,
                      hidden_act="gelu_new", layer_norm_eps=1e-3, pooler_output_size=20,
                      pooler_act="relu"),
            (3, 1, 22, 35), 1,
            "patches that are not square and do not fill the picture; a narrow pooler"),
        "deit-odd": (
            DeiTModel,
            DeiTConfig(**VIT, image_size=[21, 19], patch_size=[5, 3], num_channels=2,
                       pooler_act="sigmoid"),
            (1, 2, 21, 19), 2, "two channels, no biases of queries, keys and values"),
        "swin-absolute": (
            SwinForImageClassification,
            SwinConfig(embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=3, patch_size=4,
                       image_size=[24, 44], use_absolute_embeddings=True, num_labels=3,
                       layer_norm_eps=1e-2, attn_implementation="eager"),
            (2, 3, 24, 44), 3,
            "6 x 11 patches with window 3: shifted and padded; absolute positions; an epsilon that "
            "only some norms have"),
        "cvt-tokens": (
            CvtForImageClassification,
            CvtConfig(embed_dim=[12, 12], num_heads=[2, 3], depth=[2, 2], mlp_ratio=[2.0, 2.0],
                      attention_drop_rate=[0.0, 0.0], drop_rate=[0.0, 0.0],
                      drop_path_rate=[0.0, 0.0], qkv_bias=[True, False], cls_token=[True, True],
                      qkv_projection_method=["dw_bn", "dw_bn"], kernel_qkv=[5, 1],
                      padding_q=[2, 0], padding_kv=[1, 0], stride_kv=[3, 1], stride_q=[1, 1],
                      patch_sizes=[4, 2], patch_stride=[3, 2], patch_padding=[0, 1]),
            (2, 3, 40, 31), 4, "a class token in every stage, kernels of 5 and 1, keys of stride 3"),
    }


def exact_softmax(scores, dim=None, **_):
    """Without the cast to float32 that the models ask for."""
    return torch.softmax(scores, dim)


def randomise(model):
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() >= 2 and "token" not in name and "position" not in name:
                value.normal_(0, value[0].numel() ** -0.5)
            elif "norm" in name and name.endswith("weight"):
                value.normal_(1, 0.3)
            else:
                value.normal_(0, 0.5)
        for name, value in model.named_buffers():
            if name.endswith("running_mean"):
                value.normal_(0, 0.5)
            if name.endswith("running_var"):
                value.uniform_(0.3, 2)


def expected_of(model, pictures):
    wanted = {"output_hidden_states": True}
    expected = {}
    if model.config.model_type == "cvt":
        expected = watch_cvt(model)
    else:
        wanted["output_attentions"] = True
    with torch.no_grad():
        outputs = model.double()(pictures.double(), **wanted)
    for name, value in outputs.items():
        if name in ("hidden_states", "attentions"):
            layers = value[:-1] if name == "hidden_states" else value
            expected.update({f"{name}.{i}": layer for i, layer in enumerate(layers)})
        elif name in ("last_hidden_state", "pooler_output", "logits"):
            expected[name] = value
    return {name: value.float().contiguous() for name, value in expected.items()}


def write_case(folder, name, case):
    model_class, config, shape, seed, notes = case
    torch.manual_seed(seed)
    model = model_class(config).eval()
    randomise(model)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    model.save_pretrained(os.path.join(folder, "model"))
    pictures = torch.randn(shape)
    save_file({"pixel_values": pictures}, os.path.join(folder, "inputs.safetensors"))
    save_file(expected_of(model, pictures), os.path.join(folder, "expected.safetensors"))
    facts = {"format": 1, "name": name, "family": config.model_type, "seed": seed,
             "tags": ["vision"], "tolerance": {"abs": 5e-5, "rel": 5e-5},
             "optional": ["hidden_states.*"], "notes": notes,
             "computed_in": "float64, stored as float32", "head": model_class.__name__,
             "transformers_version": transformers.__version__, "torch_version": torch.__version__}
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.nn.functional.softmax = exact_softmax
    for name, case in cases().items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            write_case(os.path.join(sys.argv[1], name), name, case)
            print(name)


if __name__ == "__main__":
    main()
