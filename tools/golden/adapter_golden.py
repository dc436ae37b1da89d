#!/usr/bin/env python3
"""Makes the golden cases of adapters. A case is a small random model, and adapters in PEFT's directory layout. It has
what
transformers computes in float64 of the model with the adapters merged, as PEFT adds them up.

    python3 tools/golden/adapter_golden.py FOLDER [NAME ...]

The model is in base/; case.json lists the adapters' folders and scales in "adapters". Needs what model_golden.py needs.
"""
import json
import os
import sys

import safetensors.torch
import torch

import model_golden

plain_randomize = model_golden.randomize
originals, adapters, chosen = {}, {}, {}

LLAMA = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
             head_dim=8)
# Name: class, configuration, adapters: folder, scale, and its settings. "modules" are parts of the
# names of weights that it changes.
CASES = {
    "adapter-lora": ("LlamaForCausalLM", LLAMA, [
        ("adapter", 1.0, dict(r=4, alpha=6, modules=("q_proj", "v_proj", "down_proj"),
                              alphas={"down_proj": 3}))]),
    "adapter-two": ("Qwen3ForCausalLM", LLAMA, [
        ("first", 0.5, dict(r=4, alpha=8, modules=("q_proj", "k_proj", "o_proj", "up_proj"),
                            rslora=True)),
        ("second", -1.25, dict(r=2, alpha=4, modules=("q_proj", "gate_proj", "up_proj"))),
        ("unused", 0.0, dict(r=2, alpha=4, modules=("o_proj",), dora=True))]),
    "adapter-dora": ("LlamaForCausalLM", LLAMA | dict(attention_bias=True), [
        ("adapter", 0.75, dict(r=4, alpha=8, modules=("q_proj", "o_proj", "up_proj"), dora=True)),
        ("other", 1.0, dict(r=3, alpha=3, modules=("q_proj", "down_proj")))]),
    "adapter-gpt2": ("GPT2LMHeadModel", dict(n_embd=24, n_head=2), [
        ("adapter", 1.0, dict(r=4, alpha=8, modules=("c_attn", "c_fc", "attn.c_proj"),
                              transposed=True)),
        ("lengths", 1.0, dict(r=2, alpha=2, modules=("mlp.c_proj", "attn.c_proj"), transposed=True,
                              dora=True))]),
    "adapter-bert": ("BertForSequenceClassification", dict(hidden_size=24, num_labels=3), [
        ("adapter", 1.0, dict(r=4, alpha=8, modules=("query", "value", "output.dense"),
                              embeddings=("word_embeddings",), saved=("classifier",)))]),
}


def low_rank(name, weight, o, scale, generator):
    """What the adapter adds to a weight in float64, and its tensors."""
    rank = o["r"]
    flat = weight.T if o.get("transposed") else weight
    n, k = flat.shape
    alpha = next((a for part, a in o.get("alphas", {}).items() if name.endswith(part + ".weight")),
                 o["alpha"])
    down = torch.randn(rank, k, generator=generator) / k**0.5
    up = torch.randn(n, rank, generator=generator) * 0.5
    s = scale * alpha / (rank**0.5 if o.get("rslora") else rank)
    delta = s * up.double() @ down.double()
    module = "base_model.model." + name.removesuffix(".weight")
    tensors = {module + ".lora_A.weight": down, module + ".lora_B.weight": up}
    if o.get("dora"):
        lengths = (0.5 + torch.rand(n, generator=generator)) * flat.norm(dim=1).float()
        tensors[module + ".lora_magnitude_vector"] = lengths
        factor = lengths.double() / (flat.double() + delta).norm(dim=1)
        delta = (factor[:, None] - 1) * flat.double() + factor[:, None] * delta
    return (delta.T if o.get("transposed") else delta) if scale else 0, tensors


def randomize(model, generator):
    plain_randomize(model, generator)
    originals.clear()
    adapters.clear()
    model.double()
    for folder, scale, o in chosen["adapters"]:
        tensors = adapters.setdefault(folder, {})
        for name, parameter in model.named_parameters():
            base = originals.get(name, parameter.data)
            if any(name.endswith(part + ".weight") for part in o["modules"]):
                added, parts = low_rank(name, base, o, scale, generator)
            elif any(part in name for part in o.get("embeddings", ())):
                down = torch.randn(o["r"], base.shape[0], generator=generator) * 0.5
                up = torch.randn(base.shape[1], o["r"], generator=generator) * 0.5
                added = scale * o["alpha"] / o["r"] * (up.double() @ down.double()).T
                module = "base_model.model." + name.removesuffix(".weight")
                parts = {module + ".lora_embedding_A": down, module + ".lora_embedding_B": up}
            elif any(name.startswith(part + ".") for part in o.get("saved", ())):
                value = torch.randn(base.shape, generator=generator)
                added, parts = value.double() - base, {"base_model.model." + name: value}
            else:
                continue
            originals.setdefault(name, base.clone())
            parameter.data = parameter.data + added
            tensors |= parts


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    model_golden.randomize = randomize
    for name in sys.argv[2:] or CASES:
        cls, config, chosen["adapters"] = CASES[name]
        seed = 1300 + 50 * list(CASES).index(name)
        model_golden.make_case(sys.argv[1], name, cls, seed, config, "Bert" not in cls)
        folder = os.path.join(sys.argv[1], name)
        os.rename(os.path.join(folder, "model"), os.path.join(folder, "base"))
        path = os.path.join(folder, "base", "model.safetensors")
        tensors = safetensors.torch.load_file(path)
        for tensor, value in originals.items():
            assert tensors[tensor].shape == value.shape, tensor
            tensors[tensor] = value.float().contiguous()
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
        for adapter, _, o in chosen["adapters"]:
            os.makedirs(os.path.join(folder, adapter), exist_ok=True)
            parts = {n: t.contiguous() for n, t in adapters[adapter].items()}
            safetensors.torch.save_file(parts, os.path.join(folder, adapter,
                                                            "adapter_model.safetensors"))
            settings = dict(peft_type="LORA", r=o["r"], lora_alpha=o["alpha"],
                            alpha_pattern=o.get("alphas", {}), use_rslora=o.get("rslora", False),
                            use_dora=o.get("dora", False), target_modules=list(o["modules"]),
                            fan_in_fan_out=o.get("transposed", False),
                            modules_to_save=list(o.get("saved", ())) or None, bias="none")
            with open(os.path.join(folder, adapter, "adapter_config.json"), "w") as file:
                json.dump(settings, file, indent=2)
        path = os.path.join(folder, "case.json")
        with open(path) as file:
            facts = json.load(file)
        facts["adapters"] = [dict(folder=a, scale=s) for a, s, _ in chosen["adapters"]]
        with open(path, "w") as file:
            json.dump(facts, file, indent=2)


if __name__ == "__main__":
    main()
