#!/usr/bin/env python3
"""Makes the golden cases of quantized safetensors. It has a small random model whose linear weights are what codes and
scales stand for in float64. It also has the same codes packed as each library stores them.

    python3 tools/golden/quantized_golden.py FOLDER [NAME ...]

The layouts are those of the published formats: AutoGPTQ, AutoAWQ (gemm), compressed-tensors,
bitsandbytes, FP8 of DeepSeek and OCP MX. Needs what model_golden.py needs.
"""
import json
import os
import sys

import safetensors.torch
import torch

import model_golden

plain_randomize = model_golden.randomize
packed, chosen = {}, {}
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
# Dettmers et al., 2023, "QLoRA": the quantiles of a normal distribution.
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
       0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0]
FP4 = [0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
       0.0, -0.0052083333, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25]
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def stream(numbers, bits):
    """Numbers along the last axis as a stream of bits in 32-bit words, the lowest bits first."""
    places = torch.arange(bits)
    flat = (numbers[..., None] >> places & 1).reshape(*numbers.shape[:-1], -1)
    if flat.shape[-1] % 32:
        flat = torch.nn.functional.pad(flat, (0, 32 - flat.shape[-1] % 32))
    words = (flat.reshape(*flat.shape[:-1], -1, 32).long() << torch.arange(32)).sum(-1)
    return (words - (words >= 2**31).long() * 2**32).to(torch.int32).contiguous()


def scales_for(rows, columns, generator, dtype, size=0.02):
    values = size * (0.5 + torch.rand(rows, columns, generator=generator))
    return values.to(dtype)


def gptq(n, k, generator, o):
    bits, group = o["bits"], o["group"]
    width = k if group == -1 else group
    groups = -(-k // width)
    codes = torch.randint(0, 2**bits, (n, k), generator=generator)
    zeros = torch.randint(1, 2**bits, (groups, n), generator=generator)
    if o.get("sym"):
        zeros[:] = 2**(bits - 1)
    scales = scales_for(groups, n, generator, o.get("dtype", torch.float16), 0.6 / 2**bits)
    index = torch.arange(k) // width
    if o.get("act_order"):
        index = index[torch.randperm(k, generator=generator)]
    weight = (codes - zeros.T[:, index]).double() * scales.double().T[:, index]
    tensors = {"qweight": stream(codes, bits).T.contiguous(),
               "qzeros": stream(zeros - (0 if o.get("v2") else 1), bits),
               "scales": scales, "g_idx": index.to(torch.int32)}
    if o.get("no_index"):
        del tensors["g_idx"]
    return weight, {"." + name: tensor for name, tensor in tensors.items()}


def awq(n, k, generator, o):
    width = k if o["group"] == -1 else o["group"]
    codes = torch.randint(0, 16, (k, n), generator=generator)
    zeros = torch.randint(0, 16, (k // width, n), generator=generator)
    scales = scales_for(k // width, n, generator, o.get("dtype", torch.float16), 0.04)

    def pack(numbers):
        return stream(numbers.reshape(-1, n // 8, 8)[..., AWQ_ORDER].reshape(-1, n), 4)
    spread = torch.arange(k) // width
    weight = (codes - zeros[spread]).double() * scales[spread].double()
    return weight.T, {".qweight": pack(codes), ".qzeros": pack(zeros), ".scales": scales}


def compressed_ints(n, k, generator, o):
    bits, group = o["bits"], o["group"]
    width = k if group == -1 else group
    groups = -(-k // width)
    half = 2**(bits - 1)
    codes = torch.randint(-half, half, (n, k), generator=generator)
    zeros = torch.randint(-half // 2, half // 2, (n, groups), generator=generator)
    if o.get("sym", True):
        zeros[:] = 0
    scales = scales_for(n, groups, generator, o.get("dtype", torch.bfloat16), 0.6 / 2**bits)
    index = torch.arange(k) // width
    if o.get("act_order"):
        index = index[torch.randperm(k, generator=generator)]
    weight = (codes - zeros[:, index]).double() * scales[:, index].double()
    tensors = {".weight_scale": scales}
    if o["format"] == "pack-quantized":
        tensors[".weight_packed"] = stream(codes + half, bits)
        tensors[".weight_shape"] = torch.tensor([n, k])
        if not o.get("sym", True):
            tensors[".weight_zero_point"] = stream((zeros + half).T, bits).T.contiguous()
        if o.get("act_order"):
            tensors[".weight_g_idx"] = index.to(torch.int32)
    else:
        tensors[".weight"] = codes.to(torch.int8)
        tensors[".input_scale"] = torch.tensor([0.02])
        if not o.get("sym", True):
            tensors[".weight_zero_point"] = zeros.to(torch.int8)
    return weight, tensors


def float8_codes(n, k, generator):
    values = torch.randn(n, k, generator=generator) * 60
    return values.clamp(-448, 448).to(torch.float8_e4m3fn)


def float8(n, k, generator, o):
    codes = float8_codes(n, k, generator)
    if o["scales"] == "block":
        rows, columns = o["block"]
        scales = scales_for(-(-n // rows), -(-k // columns), generator, torch.float32, 0.005)
        if o.get("powers"):
            scales = torch.exp2(torch.randint(-9, -6, scales.shape, generator=generator).float())
        spread = scales.double().repeat_interleave(rows, 0)[:n].repeat_interleave(columns, 1)[:, :k]
    elif o["scales"] == "tensor":
        scales = torch.tensor(0.0043)
        spread = scales.double()
    else:
        scales = scales_for(n, 1, generator, o.get("dtype", torch.float32), 0.005)
        spread = scales.double()
    tensors = {".weight": codes, o["name"]: scales}
    if o.get("static"):
        tensors[o["static"]] = torch.tensor(0.01)
    return codes.double() * spread, tensors


def float4(n, k, generator, o):
    codes = torch.randint(0, 16, (n, k), generator=generator)
    values = E2M1[codes].double()
    tensors = {".weight_packed": (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)}
    if o["format"].startswith("mx"):
        scales = torch.randint(121, 125, (n, k // 32), generator=generator, dtype=torch.uint8)
        weight = values * torch.exp2(scales.double() - 127).repeat_interleave(32, 1)
    else:
        scales = (torch.rand(n, k // 16, generator=generator) * 100 + 20).to(torch.float8_e4m3fn)
        # Weights of the size that real ones have: the bound of a golden is for values about 1.
        divisor = torch.tensor([2753.0])
        weight = values * scales.double().repeat_interleave(16, 1) / divisor.double()
        tensors[".weight_global_scale"] = divisor
        tensors[".input_global_scale"] = torch.tensor([3.0])
    tensors[".weight_scale"] = scales
    return weight, tensors


def bnb8(n, k, generator, o):
    codes = torch.randint(-127, 128, (n, k), generator=generator)
    largest = 0.3 + 0.3 * torch.rand(n, generator=generator)
    return codes.double() * largest.double()[:, None] / 127, {
        ".weight": codes.to(torch.int8), ".SCB": largest,
        ".weight_format": torch.tensor(0, dtype=torch.uint8)}


def bnb4(n, k, generator, o):
    kind, block = o["kind"], 64
    codes = torch.randint(0, 16, (n * k,), generator=generator)
    table = torch.tensor(NF4 if kind == "nf4" else FP4)
    blocks = -(-n * k // block)
    state = dict(quant_type=kind, blocksize=block, dtype="bfloat16", shape=[n, k])
    tensors = {".weight.quant_map": table}
    if o["double"]:
        small = torch.randint(0, 256, (blocks,), generator=generator, dtype=torch.uint8)
        dynamic = torch.sort(torch.randn(256, generator=generator) * 0.4).values
        nested = 0.3 + 0.2 * torch.rand(-(-blocks // 256), generator=generator)
        state |= dict(nested_blocksize=256, nested_dtype="float32", nested_offset=0.4375)
        largest = dynamic.double()[small.long()] * nested.double().repeat_interleave(256)[:blocks]
        largest = largest + 0.4375
        tensors |= {".weight.absmax": small, ".weight.nested_absmax": nested,
                    ".weight.nested_quant_map": dynamic}
    else:
        absmax = 0.3 + 0.3 * torch.rand(blocks, generator=generator)
        largest = absmax.double()
        tensors[".weight.absmax"] = absmax
    weight = table.double()[codes] * largest.repeat_interleave(block)[:n * k]
    pairs = torch.nn.functional.pad(codes, (0, codes.numel() % 2)).reshape(-1, 2)
    tensors[".weight"] = (pairs[:, :1] << 4 | pairs[:, 1:]).to(torch.uint8)
    text = json.dumps(state).encode()
    tensors[f".weight.quant_state.bitsandbytes__{kind}"] = torch.tensor(list(text),
                                                                        dtype=torch.uint8)
    return weight.reshape(n, k), tensors


def compressed(form, weights):
    return dict(quant_method="compressed-tensors", format=form, quantization_status="compressed",
                ignore=["lm_head"], config_groups=dict(group_0=dict(
                    targets=["Linear"], weights=weights, input_activations=None)))


LLAMA = ("LlamaForCausalLM", dict(hidden_size=64, intermediate_size=96, num_attention_heads=4,
                                  num_key_value_heads=2, head_dim=16))
QWEN3 = ("Qwen3ForCausalLM", dict(hidden_size=64, intermediate_size=96, num_attention_heads=4,
                                  num_key_value_heads=2, head_dim=16))
MIXTRAL = ("MixtralForCausalLM", dict(hidden_size=64, intermediate_size=64, num_attention_heads=4,
                                      num_key_value_heads=2, head_dim=16, num_local_experts=3,
                                      num_experts_per_tok=2, sliding_window=None))
BERT = ("BertModel", dict(hidden_size=32, intermediate_size=48, num_attention_heads=2))
INT4 = dict(num_bits=4, type="int", symmetric=True, strategy="group", group_size=32)
# Name: model, packer, its options, quantization_config.
CASES = {
    "quantized-gptq": (LLAMA, gptq, dict(bits=4, group=32), dict(
        quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=False)),
    "quantized-gptq-order": (LLAMA, gptq, dict(bits=4, group=32, act_order=True), dict(
        quant_method="gptq", bits=4, group_size=32, desc_act=True, sym=False,
        checkpoint_format="gptq")),
    "quantized-gptq-v2": (QWEN3, gptq, dict(bits=8, group=-1, v2=True), dict(
        quant_method="gptq", bits=8, group_size=-1, desc_act=False, sym=False,
        checkpoint_format="gptq_v2")),
    "quantized-gptq-3bits": (LLAMA, gptq, dict(bits=3, group=16, sym=True, no_index=True), dict(
        quant_method="gptq", bits=3, group_size=16, desc_act=False, sym=True)),
    "quantized-gptq-2bits": (BERT, gptq, dict(bits=2, group=16), dict(
        quant_method="gptq", bits=2, group_size=16, desc_act=False, sym=False)),
    "quantized-awq": (LLAMA, awq, dict(group=32), dict(
        quant_method="awq", bits=4, group_size=32, version="gemm", zero_point=True)),
    "quantized-awq-experts": (MIXTRAL, awq, dict(group=32, dtype=torch.bfloat16), dict(
        quant_method="awq", bits=4, group_size=32, version="GEMM", zero_point=True)),
    "quantized-ct-int4": (LLAMA, compressed_ints, dict(bits=4, group=32, format="pack-quantized"),
                          compressed("pack-quantized", INT4)),
    "quantized-ct-int4-order": (
        LLAMA, compressed_ints,
        dict(bits=4, group=32, format="pack-quantized", sym=False, act_order=True),
        compressed("pack-quantized", INT4 | dict(symmetric=False, actorder="group"))),
    "quantized-ct-packed8": (
        BERT, compressed_ints, dict(bits=8, group=-1, format="pack-quantized"),
        compressed("pack-quantized", dict(num_bits=8, type="int", symmetric=True,
                                          strategy="channel"))),
    "quantized-ct-int8": (
        LLAMA, compressed_ints, dict(bits=8, group=-1, format="int-quantized"),
        compressed("int-quantized", dict(num_bits=8, type="int", symmetric=True,
                                         strategy="channel"))),
    "quantized-ct-int8-zeros": (
        QWEN3, compressed_ints,
        dict(bits=8, group=-1, format="naive-quantized", sym=False, dtype=torch.float16),
        compressed("naive-quantized", dict(num_bits=8, type="int", symmetric=False,
                                           strategy="channel"))),
    "quantized-ct-fp8": (
        LLAMA, float8, dict(scales="row", name=".weight_scale", dtype=torch.bfloat16),
        compressed("float-quantized", dict(num_bits=8, type="float", symmetric=True,
                                           strategy="channel"))),
    "quantized-ct-nvfp4": (
        LLAMA, float4, dict(format="nvfp4-pack-quantized"),
        compressed("nvfp4-pack-quantized", dict(num_bits=4, type="float", symmetric=True,
                                                strategy="tensor_group", group_size=16))),
    "quantized-ct-mxfp4": (
        LLAMA, float4, dict(format="mxfp4-pack-quantized"),
        compressed("mxfp4-pack-quantized", dict(num_bits=4, type="float", symmetric=True,
                                                strategy="group", group_size=32))),
    "quantized-fp8-block": (
        QWEN3, float8, dict(scales="block", block=(24, 40), name=".weight_scale_inv"),
        dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
             weight_block_size=[24, 40])),
    "quantized-fp8-powers": (
        MIXTRAL, float8, dict(scales="block", block=(32, 32), name=".weight_scale_inv",
                              powers=True),
        dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
             weight_block_size=[32, 32])),
    "quantized-fp8-tensor": (
        LLAMA, float8, dict(scales="tensor", name=".weight_scale_inv", static=".activation_scale"),
        dict(quant_method="fp8", activation_scheme="static", weight_block_size=None)),
    "quantized-bnb-int8": (LLAMA, bnb8, {}, dict(
        quant_method="bitsandbytes", load_in_8bit=True, load_in_4bit=False)),
    "quantized-bnb-nf4": (LLAMA, bnb4, dict(kind="nf4", double=True), dict(
        quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True)),
    "quantized-bnb-fp4": (BERT, bnb4, dict(kind="fp4", double=False), dict(
        quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="fp4",
        bnb_4bit_use_double_quant=False)),
}


def spread_experts(name, parameter):
    """Names and rows of the matrices that a parameter of stacked experts is in files of Mixtral."""
    module = name[:name.index(".experts.")].replace(".mlp", ".block_sparse_moe") + ".experts."
    half = parameter.shape[1] // 2
    for x in range(parameter.shape[0]):
        if name.endswith("gate_up_proj"):
            yield x, slice(0, half), f"{module}{x}.w1"
            yield x, slice(half, 2 * half), f"{module}{x}.w3"
        else:
            yield x, slice(None), f"{module}{x}.w2"


def randomize(model, generator):
    plain_randomize(model, generator)
    packed.clear()
    packer, options = chosen["packer"], chosen["options"]
    for name, parameter in model.named_parameters():
        module = name.removesuffix(".weight")
        if parameter.dim() == 3 and ".experts." in name:
            values = torch.zeros(parameter.shape, dtype=torch.float64)
            for x, rows, one in spread_experts(name, parameter):
                n, k = values[x, rows].shape
                values[x, rows], packed[one] = packer(n, k, generator, options)
            parameter.data = values
            continue
        if parameter.dim() != 2 or "emb" in name or "lm_head" in name or ".gate." in name:
            continue
        weight, packed[module] = packer(*parameter.shape, generator, options)
        parameter.data = weight
    model.double()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    model_golden.randomize = randomize
    for name in sys.argv[2:] or CASES:
        (cls, config), chosen["packer"], chosen["options"], said = CASES[name]
        seed = 1100 + 50 * list(CASES).index(name)
        model_golden.make_case(sys.argv[1], name, cls, seed, config, cls != "BertModel")
        folder = os.path.join(sys.argv[1], name, "model")
        path = os.path.join(folder, "model.safetensors")
        tensors = safetensors.torch.load_file(path)
        for module, parts in packed.items():
            del tensors[module + ".weight"]
            tensors |= {module + part: tensor for part, tensor in parts.items()}
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
        path = os.path.join(folder, "config.json")
        with open(path) as file:
            config = json.load(file)
        config["quantization_config"] = said
        with open(path, "w") as file:
            json.dump(config, file, indent=2)


if __name__ == "__main__":
    main()
