#!/usr/bin/env python3
"""Writes the golden adapters in PEFT's layout as GGUF files beside their directories, with the public
gguf library, as llama.cpp's convert_lora_to_gguf.py does.

    python3 tools/golden/gguf_adapters.py CASES

CASES is tests/golden. Adapters that the format cannot say (DoRA, whole tensors other than norms) are omitted. Needs
numpy, safetensors and gguf.
"""
import json
import os
import sys

import gguf
import numpy
import safetensors.numpy

CASES = {"adapter-lora": ("adapter",), "adapter-two": ("first", "second")}
PREFIX = "base_model.model."
NAMES = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}


def by_pairs(rows, heads):
    """The halves of each head's rows by turns, as LLaMA's rotary positions have them in this format."""
    return (rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


def convert(case, folder):
    with open(os.path.join(case, "base", "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    path = os.path.join(case, folder)
    with open(os.path.join(path, "adapter_config.json"), encoding="utf-8") as file:
        settings = json.load(file)
    architecture = config["model_type"]
    writer = gguf.GGUFWriter(path + ".gguf", architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    rank = settings["r"]
    # The format has one alpha and divides it by the rank.
    alpha = settings["lora_alpha"] * (rank**0.5 if settings.get("use_rslora") else 1)
    writer.add_float32("adapter.lora.alpha", alpha)
    names = gguf.get_tensor_name_map(NAMES[architecture], config["num_hidden_layers"])
    tensors = safetensors.numpy.load_file(os.path.join(path, "adapter_model.safetensors"))
    for full, values in sorted(tensors.items()):
        module, part = full.removeprefix(PREFIX).removesuffix(".weight").rsplit(".lora_", 1)
        values = values.astype(numpy.float32)
        if part == "B":
            if architecture == "llama" and module.endswith(("q_proj", "k_proj")):
                kind = "num_attention_heads" if module.endswith("q_proj") else "num_key_value_heads"
                values = by_pairs(values, config[kind])
            own = next((a for name, a in settings.get("alpha_pattern", {}).items()
                        if module.endswith("." + name)), settings["lora_alpha"])
            # A power of two, which rounds nothing.
            values = values * numpy.float32(own / settings["lora_alpha"])
        name = names.get_name(module + ".weight", try_suffixes=(".weight",))
        writer.add_tensor(f"{name}.lora_{part.lower()}", numpy.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    for case, folders in CASES.items():
        for folder in folders:
            convert(os.path.join(sys.argv[1], case), folder)
