#!/usr/bin/env python3
"""Makes the golden cases of GGUF files. One is a small random model of each architecture, written with the public gguf
library, and what transformers computes of it in float64. The others are the golden tokenizers in that format, and a
tensor of every type with what the library decodes it to.

    python3 tools/golden/gguf_golden.py FOLDER CASES [NAME ...]

CASES is tests/golden, whose tokenizers are converted. Needs what model_golden.py needs, and gguf.
"""
import base64
import json
import os
import re
import shutil
import sys

import gguf
import numpy
import safetensors.numpy
import torch

import model_golden

Type = gguf.GGMLQuantizationType
LLAMA3 = dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=16)
LONGROPE = dict(rope_type="longrope", rope_theta=500.0, partial_rotary_factor=0.5,
                original_max_position_embeddings=4, short_factor=[1.0, 1.2],
                long_factor=[1.5, 6.0])
YARN = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0,
            truncate=False, original_max_position_embeddings=8)
GEMMA3_ROPE = dict(
    full_attention=dict(rope_type="linear", rope_theta=30000.0, factor=8.0),
    sliding_attention=dict(rope_type="default", rope_theta=10000.0))
# Name: architecture, class, seed, configuration, whether padding stands on the left, types of
# matrices by the ends of their names.
CASES = {
    "gguf-llama": ("llama", "LlamaForCausalLM", 901, dict(
        hidden_size=32, num_attention_heads=4, head_dim=8, rope_parameters=LLAMA3), True, {}),
    "gguf-llama-biased": ("llama", "LlamaForCausalLM", 902, dict(
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True), True, {}),
    "gguf-mixed-types": ("llama", "LlamaForCausalLM", 903, dict(
        hidden_size=32, intermediate_size=64, num_attention_heads=4, head_dim=8), True, {
            "q_proj": Type.Q8_0, "k_proj": Type.Q4_0, "v_proj": Type.Q5_1, "o_proj": Type.Q4_1,
            "gate_proj": Type.Q5_0, "up_proj": Type.F16, "down_proj": Type.Q8_0,
            "lm_head": Type.BF16, "embed_tokens": Type.Q8_0}),
    "gguf-mixtral": ("llama", "MixtralForCausalLM", 904, dict(
        num_local_experts=4, num_experts_per_tok=2, sliding_window=None), True, {}),
    "gguf-qwen2": ("qwen2", "Qwen2ForCausalLM", 905, dict(hidden_size=24), True, {}),
    "gguf-qwen3": ("qwen3", "Qwen3ForCausalLM", 906, dict(
        head_dim=10, tie_word_embeddings=True), True, {}),
    "gguf-qwen3moe": ("qwen3moe", "Qwen3MoeForCausalLM", 907, dict(
        head_dim=6, moe_intermediate_size=7, num_experts=6, num_local_experts=6,
        num_experts_per_tok=2, norm_topk_prob=True), True, {}),
    "gguf-gemma2": ("gemma2", "Gemma2ForCausalLM", 908, dict(
        head_dim=6, query_pre_attn_scalar=6, num_key_value_heads=1, sliding_window=4,
        attn_logit_softcapping=1.5, final_logit_softcapping=20.0), True, {}),
    "gguf-gemma3": ("gemma3", "Gemma3ForCausalLM", 909, dict(
        head_dim=6, query_pre_attn_scalar=6, num_key_value_heads=1, sliding_window=4,
        num_hidden_layers=7, sliding_window_pattern=6, rope_parameters=GEMMA3_ROPE), True, {}),
    "gguf-gemma-embedding": ("gemma-embedding", "Gemma3TextModel", 916, dict(
        head_dim=6, query_pre_attn_scalar=6, num_key_value_heads=1, sliding_window=4,
        num_hidden_layers=7, sliding_window_pattern=6, use_bidirectional_attention=True,
        rope_parameters=GEMMA3_ROPE), False, {}),
    "gguf-phi3": ("phi3", "Phi3ForCausalLM", 910, dict(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, sliding_window=6,
        rope_parameters=LONGROPE, original_max_position_embeddings=4), False, {}),
    "gguf-gpt-oss": ("gpt-oss", "GptOssForCausalLM", 911, dict(
        hidden_size=64, intermediate_size=32, num_local_experts=3, num_experts_per_tok=2,
        head_dim=8, num_key_value_heads=1, sliding_window=4, rope_parameters=YARN), True,
        {"experts": Type.MXFP4}),
    "gguf-bert": ("bert", "BertModel", 912, dict(type_vocab_size=2), False, {}),
    "gguf-bert-rank": ("bert", "XLMRobertaForSequenceClassification", 930, dict(
        type_vocab_size=1, num_labels=1, pad_token_id=1), False, {}),
    "gguf-nomic-bert": ("nomic-bert", "NomicBertModel", 913, dict(type_vocab_size=2), False, {}),
    "gguf-t5": ("t5", "T5ForConditionalGeneration", 914, dict(
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, num_heads=3,
        relative_attention_num_buckets=8), False, {}),
    "gguf-t5-relu": ("t5", "T5ForConditionalGeneration", 915, dict(
        feed_forward_proj="relu", num_decoder_layers=1), False, {}),
    "gguf-smollm3": ("smollm3", "SmolLM3ForCausalLM", 917, dict(
        num_hidden_layers=5, num_attention_heads=4, hidden_size=24, no_rope_layer_interval=4,
        use_sliding_window=False, sliding_window=None, mlp_bias=True), True, {}),
    "gguf-granite": ("granite", "GraniteForCausalLM", 918, dict(
        num_attention_heads=4, hidden_size=24, attention_bias=True, attention_multiplier=0.6,
        embedding_multiplier=3.0, residual_multiplier=0.45, logits_scaling=1.7), True, {}),
    "gguf-olmo2": ("olmo2", "Olmo2ForCausalLM", 919, dict(attention_bias=True), True, {}),
    "gguf-olmoe": ("olmoe", "OlmoeForCausalLM", 920, dict(
        num_experts=5, num_experts_per_tok=2, norm_topk_prob=False), True, {}),
    "gguf-starcoder2": ("starcoder2", "Starcoder2ForCausalLM", 921, dict(
        use_bias=True, sliding_window=None), True, {}),
    "gguf-cohere": ("command-r", "CohereForCausalLM", 922, dict(
        num_key_value_heads=1, use_qk_norm=True, logit_scale=0.7, tie_word_embeddings=True), True,
        {}),
    "gguf-stablelm": ("stablelm", "StableLmForCausalLM", 923, dict(
        hidden_size=32, num_attention_heads=4, use_qkv_bias=True, use_parallel_residual=False,
        rope_parameters=model_golden.PARTIAL_ROPE), True, {}),
    "gguf-stablelm-parallel": ("stablelm", "StableLmForCausalLM", 924, dict(
        hidden_size=32, num_attention_heads=4, use_parallel_residual=True, qk_layernorm=True,
        rope_parameters=model_golden.PARTIAL_ROPE), True, {}),
    "gguf-gptneox": ("gptneox", "GPTNeoXForCausalLM", 925, dict(
        hidden_size=32, num_attention_heads=4, use_parallel_residual=False,
        rope_parameters=model_golden.PARTIAL_ROPE), True, {}),
    "gguf-bloom": ("bloom", "BloomForCausalLM", 926, {}, True, {}),
    "gguf-lfm2": ("lfm2", "Lfm2ForCausalLM", 927, dict(
        num_hidden_layers=4, num_attention_heads=4, conv_L_cache=4, conv_bias=True,
        block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention", "conv", "conv"]),
        False, {}),
    "gguf-mamba2": ("mamba2", "Mamba2ForCausalLM", 928, dict(
        num_heads=4, head_dim=8, state_size=5, n_groups=2, conv_kernel=3, use_bias=True,
        time_step_limit=[0.0, float("inf")]), False, {}),
    "gguf-falcon-h1": ("falcon-h1", "FalconH1ForCausalLM", 929, dict(
        num_attention_heads=4, mamba_n_heads=4, mamba_d_head=9, mamba_d_ssm=36, mamba_d_state=7,
        mamba_n_groups=2, mamba_rms_norm=True, mamba_norm_before_gate=False,
        attention_in_multiplier=1.3, attention_out_multiplier=0.7, key_multiplier=0.6,
        ssm_in_multiplier=0.8, ssm_out_multiplier=1.2, mlp_multipliers=[1.4, 0.9],
        ssm_multipliers=[0.7, 1.1, 0.9, 1.2, 0.8], embedding_multiplier=2.0,
        lm_head_multiplier=0.5), False, {}),
}
# Golden tokenizers that are written in this format: kind, and way of cutting words.
TOKENIZERS = {
    "tok-bpe-gpt2": ("gpt2", "gpt-2"),
    "tok-bpe-qwen2": ("gpt2", "qwen2"),
    "tok-bpe-llama": ("llama", "default"),
    "tok-wordpiece-uncased": ("bert", "default"),
    "tok-wordpiece-cased": ("bert", "default"),
    "tok-unigram-precompiled": ("t5", "default"),
}
READ_TYPES = (Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q2_K, Type.Q3_K, Type.Q4_K,
              Type.Q5_K, Type.Q6_K, Type.IQ4_NL, Type.IQ4_XS, Type.MXFP4, Type.F16, Type.BF16)
NAMES = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}

packed = {}
types = {}


def type_of(name):
    for part, wanted in types.items():
        if part in name:
            return wanted
    return None


def e2m1(values):
    """MXFP4 blocks of rows: for each 32 weights the exponent, then codes of the nearest values."""
    table = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=numpy.float32)
    rows = values.reshape(-1, 32)
    exponent = numpy.floor(numpy.log2(numpy.maximum(abs(rows).max(-1), 1e-30) / 6)) + 1
    scaled = rows / numpy.exp2(exponent)[:, None]
    code = abs(abs(scaled)[:, :, None] - table).argmin(-1) + numpy.where(scaled < 0, 8, 0)
    codes = (code[:, :16] | code[:, 16:] << 4).astype(numpy.uint8)
    scales = (exponent + 127).astype(numpy.uint8)[:, None]
    return numpy.concatenate([scales, codes], -1).reshape(*values.shape[:-1], -1)


def quantize(values, wanted):
    if wanted == Type.MXFP4:
        return e2m1(values)
    return gguf.quants.quantize(values, wanted)


def randomize_packed(model, generator):
    """The reference computes with what the file's blocks stand for."""
    plain_randomize(model, generator)
    packed.clear()
    for name, parameter in model.named_parameters():
        wanted = type_of(name)
        if wanted is None or parameter.ndim < 2 or name.endswith("_bias"):
            continue
        stacked = parameter.ndim == 3 and "gpt_oss" in model.config.model_type
        values = parameter.data.transpose(1, 2) if stacked else parameter.data
        blocks = quantize(values.contiguous().float().numpy(), wanted)
        packed[name] = blocks, wanted
        back = torch.from_numpy(gguf.quants.dequantize(blocks, wanted).copy()).to(values.dtype)
        parameter.data = (back.transpose(1, 2) if stacked else back).contiguous()


plain_randomize = model_golden.randomize
model_golden.randomize = randomize_packed


def by_pairs(rows, heads):
    """The halves of each head's rows by turns, as LLaMA's rotary positions have them in this format."""
    return (rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


# Architectures whose files have rows by pairs.
BY_PAIRS = "llama", "smollm3", "granite"


class File:
    def __init__(self, path, architecture, config):
        self.writer = gguf.GGUFWriter(path, architecture)
        self.architecture = architecture
        self.config = config
        layers = config.get("num_hidden_layers") or config.get("num_layers") or config["n_layer"]
        self.names = gguf.get_tensor_name_map(NAMES[architecture], layers)

    def name_of(self, name):
        endings = ".weight", ".bias"
        found = (self.names.get_name(name, try_suffixes=endings) or
                 self.names.get_name("model." + name, try_suffixes=endings) or
                 self.names.get_name(name.removeprefix("transformer."), try_suffixes=endings))
        if found is None:
            raise KeyError(name)
        return found

    def add(self, name, values, kind=None):
        """A tensor by its name in the format, in f32 or as blocks."""
        if kind is None:
            self.writer.add_tensor(name, numpy.ascontiguousarray(values, dtype=numpy.float32))
        else:
            self.writer.add_tensor(name, numpy.ascontiguousarray(values), raw_dtype=kind)

    def add_state(self, name, values, kind):
        config, architecture = self.config, self.architecture
        if architecture in BY_PAIRS and "q_proj" in name:
            values = by_pairs(values, config["num_attention_heads"])
        if architecture in BY_PAIRS and "k_proj" in name:
            values = by_pairs(values, config["num_key_value_heads"])
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        if name.endswith("experts.gate_up_proj"):
            return self.add_pairs(name, values, kind, ".weight")
        if name.endswith("experts.gate_up_proj_bias"):
            return self.add_pairs(name, values, kind, ".bias")
        if architecture == "gpt-oss" and name.endswith("experts.down_proj"):
            values = values if kind is not None else values.swapaxes(1, 2)
        name = name.replace("sinks", "sinks.weight").replace("down_proj_bias", "down_proj.bias")
        if name.endswith("experts.down_proj"):
            name += ".weight"
        name = self.name_of(name)
        if architecture == "falcon-h1" and name.endswith("ffn_norm.weight"):
            name = name.removesuffix(".weight")
        self.add(name, values, kind)

    def add_pairs(self, name, values, kind, ending):
        """The gate and the up projection: by turns in GPT-OSS, one after the other elsewhere."""
        base = name[:name.index("gate_up_proj")]
        if self.architecture == "gpt-oss":
            if kind is None and ending == ".weight":
                values = values.swapaxes(1, 2)
            halves = values[:, ::2], values[:, 1::2]
        else:
            half = values.shape[1] // 2
            halves = values[:, :half], values[:, half:]
        for part, half in zip(("gate_proj", "up_proj"), halves):
            self.add(self.name_of(base + part + ending), half, kind)

    def close(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def add_rope(file, config):
    writer, rope = file.writer, config.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    elif kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_truncate(rope["truncate"])
    elif kind == "longrope":
        original = rope["original_max_position_embeddings"]
        scale = config["max_position_embeddings"] / original
        writer.add_rope_scaling_attn_factors(
            float(numpy.sqrt(1 + numpy.log(scale) / numpy.log(original))))
        writer.add_rope_scaling_orig_ctx_len(original)
        for name in "long", "short":
            file.add(f"rope_factors_{name}.weight", numpy.array(rope[name + "_factor"]))
    elif kind == "llama3":
        width = config["head_dim"]
        frequencies = rope["rope_theta"] ** (-numpy.arange(0, width, 2) / width)
        turns = rope["original_max_position_embeddings"] * frequencies / (2 * numpy.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        kept = ((turns - low) / (high - low)).clip(0, 1)
        file.add("rope_freqs.weight", 1 / ((1 - kept) / rope["factor"] + kept))


def add_metadata(file, config):
    writer, architecture = file.writer, file.architecture
    writer.add_name("golden")
    layers = config.get("num_hidden_layers") or config.get("num_layers") or config["n_layer"]
    width = config.get("hidden_size") or config.get("d_model")
    heads = config.get("num_attention_heads") or config.get("num_heads") or config["n_head"]
    writer.add_block_count(layers)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(config.get("intermediate_size") or config.get("d_ff") or 4 * width)
    writer.add_head_count(heads)
    writer.add_context_length(config.get("max_position_embeddings") or config.get("n_positions") or 512)
    if "num_key_value_heads" in config and architecture != "lfm2":
        writer.add_head_count_kv(config["num_key_value_heads"])
    head = config.get("head_dim") or config.get("d_kv") or width // heads
    if architecture in ("qwen3", "qwen3moe", "gemma2", "gemma3", "gemma-embedding", "gpt-oss", "t5",
                        "llama", "falcon-h1"):
        writer.add_key_length(head)
        writer.add_value_length(head)
    if architecture == "llama":
        writer.add_rope_dimension_count(head)
    if architecture == "phi3":
        writer.add_rope_dimension_count(int(config["rope_parameters"]["partial_rotary_factor"] * head))
    layer_norms = architecture in ("bert", "nomic-bert", "starcoder2", "command-r", "stablelm",
                                   "gptneox", "bloom")
    for key in "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps":
        if key in config and config[key] is not None:
            (writer.add_layer_norm_eps if layer_norms else writer.add_layer_norm_rms_eps)(config[key])
            break
    add_further(writer, architecture, config, layers, width, heads)
    if architecture != "qwen2" and config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    if config.get("attn_logit_softcapping"):
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
    if config.get("final_logit_softcapping"):
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    experts = config.get("num_local_experts") or config.get("num_experts")
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(
            config.get("moe_intermediate_size") or config["intermediate_size"])
    if architecture == "t5":
        writer.add_decoder_block_count(config["num_decoder_layers"])
        writer.add_relative_attn_buckets_count(config["relative_attention_num_buckets"])
        writer.add_decoder_start_token_id(config["decoder_start_token_id"])
    if "bert" in architecture:
        writer.add_causal_attention(False)
    if "Classification" in config["architectures"][0]:
        writer.add_pooling_type(gguf.PoolingType.RANK)
    writer.add_bos_token_id(config["bos_token_id"] or 0)
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    add_rope(file, config)


def add_further(writer, architecture, config, layers, width, heads):
    """What single architectures have, as llama.cpp's converter writes it."""
    if architecture in ("stablelm", "gptneox"):
        part = config["rope_parameters"]["partial_rotary_factor"]
        writer.add_rope_dimension_count(int(part * (width // heads)))
        writer.add_parallel_residual(config["use_parallel_residual"])
    if architecture == "command-r":
        writer.add_logit_scale(config["logit_scale"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    if architecture == "granite":
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])
    if architecture == "lfm2":
        kinds = config["layer_types"]
        writer.add_head_count_kv([config["num_key_value_heads"] * (k != "conv") for k in kinds])
        writer.add_shortconv_l_cache(config["conv_L_cache"])
    if architecture == "mamba2":
        add_state(writer, config["num_heads"] * config["head_dim"], config["num_heads"],
                  config["state_size"], config["n_groups"], config["conv_kernel"])
    if architecture == "falcon-h1":
        add_state(writer, config["mamba_d_ssm"], config["mamba_n_heads"], config["mamba_d_state"],
                  config["mamba_n_groups"], config["mamba_d_conv"])


def add_state(writer, inner, heads, state, groups, taps):
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_state_size(state)
    writer.add_ssm_group_count(groups)
    writer.add_ssm_conv_kernel(taps)


def apart(rows, heads):
    """A fused projection's rows: all queries, all keys, all values."""
    return (rows.reshape(heads, 3, rows.shape[0] // heads // 3, *rows.shape[1:])
            .swapaxes(0, 1).reshape(rows.shape))


def scaled(name, values, config):
    """Falcon H1's multipliers become part of the weights."""
    into, out = config["attention_in_multiplier"], config["attention_out_multiplier"]
    up, down = config["mlp_multipliers"]
    for part, factor in (
            ("q_proj", into), ("k_proj", into * config["key_multiplier"]), ("v_proj", into),
            ("o_proj", out), ("mamba.out_proj", config["ssm_out_multiplier"]), ("gate_proj", up),
            ("down_proj", down), ("embed_tokens", config["embedding_multiplier"]),
            ("lm_head", config["lm_head_multiplier"])):
        if name.endswith(part + ".weight"):
            return values * numpy.float32(factor)
    if name.endswith("mamba.in_proj.weight"):
        inner, states = config["mamba_d_ssm"], config["mamba_n_groups"] * config["mamba_d_state"]
        sizes = inner, inner, states, states, config["mamba_n_heads"]
        factors = numpy.repeat(config["ssm_multipliers"], sizes) * config["ssm_in_multiplier"]
        return values * factors[:, None].astype(numpy.float32)
    return values


def further_state(architecture, state, config):
    """Tensors in the shapes and the order of rows that llama.cpp's converter writes."""
    out, norms = {}, {}
    for name, values in state.items():
        if "query_key_value" in name:
            heads = config.get("num_attention_heads") or config["n_head"]
            values = apart(values, heads)
        if architecture == "falcon-h1":
            values = scaled(name, values, config)
        if name.endswith(("conv1d.weight", "conv.conv.weight")):
            values = values[:, 0]
        if name.endswith(".A_log"):
            values = -numpy.exp(values.astype(numpy.float64))
        if name.endswith((".A_log", ".D")):
            values = values[:, None]
        if name.endswith((".mixer.norm.weight", ".mamba.norm.weight")):
            groups = config.get("n_groups") or config["mamba_n_groups"]
            values = values.reshape(groups, -1)
        name = name.replace(".dt_bias", ".dt_proj.bias").removeprefix("roberta.")
        if "position_embeddings" in name and config["model_type"] == "xlm-roberta":
            values = values[config["pad_token_id"] + 1:]
        found = re.fullmatch(r"(.*_layernorm)\.norms\.(\d+)\.weight", name)
        if found:
            norms.setdefault(found[1] + ".weight", {})[int(found[2])] = values
        else:
            out[name] = values
    for name, values in norms.items():
        out[name] = numpy.stack([values[i] for i in sorted(values)])
    return out


def stacked_experts(state):
    """Experts that have tensors each, as one tensor of all."""
    out, experts = {}, {}
    for name, values in state.items():
        found = re.fullmatch(r"(.*\.experts)\.(\d+)\.(.*)", name)
        if not found:
            out[name] = values
            continue
        base = found[1].replace("model.layers", "layers").replace(
            "block_sparse_moe", "feed_forward") if "block_sparse_moe" in name else found[1]
        experts.setdefault(f"{base}.{found[3]}", {})[int(found[2])] = values
    for name, values in experts.items():
        out[name] = numpy.stack([values[x] for x in sorted(values)])
    return out


IGNORED = "pooler.", "embeddings.position_ids", "encoder.embed_tokens", "decoder.embed_tokens"


def convert(folder, name, architecture):
    path = os.path.join(folder, name, "model")
    with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    state = safetensors.numpy.load_file(os.path.join(path, "model.safetensors"))
    if config.get("scale_decoder_outputs") is False:
        # The class shares the head all the same, but does not scale what goes into it.
        state.setdefault("lm_head.weight", state["shared.weight"])
    shutil.rmtree(path)
    os.makedirs(path)
    file = File(os.path.join(path, "model.gguf"), architecture, config)
    add_metadata(file, config)
    for tensor, values in stacked_experts(further_state(architecture, state, config)).items():
        if any(part in tensor for part in IGNORED):
            continue
        blocks, kind = packed.get(tensor, (values, None))
        file.add_state(tensor, blocks, kind)
    file.close()


def trim(folder, name):
    """Leaves what tells files apart: the outputs, not every layer's."""
    path = os.path.join(folder, name, "expected.safetensors")
    tensors = safetensors.numpy.load_file(path)
    kept = {n: t for n, t in tensors.items()
            if "hidden_states" not in n and "attentions" not in n or n == "last_hidden_state"}
    kept.pop("pooler_output", None)
    safetensors.numpy.save_file(kept, path)


def make_tokenizer(folder, cases, name):
    """A golden tokenizer as NAME.gguf, which must give what is expected of NAME."""
    model, cut = TOKENIZERS[name]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(cases, name, "model", "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    vocabulary = tokenizer["model"]["vocab"]
    scores = None
    if isinstance(vocabulary, list):
        tokens = {i: piece for i, (piece, _) in enumerate(vocabulary)}
        scores = [score for _, score in vocabulary]
    else:
        tokens = {i: piece for piece, i in vocabulary.items()}
    added = {one["id"]: one for one in tokenizer["added_tokens"]}
    tokens |= {i: one["content"] for i, one in added.items()}
    kinds = {}
    for i, token in tokens.items():
        kinds[i] = gguf.TokenType.NORMAL
        if i in added:
            kinds[i] = gguf.TokenType.CONTROL if added[i]["special"] else gguf.TokenType.USER_DEFINED
        elif model == "llama" and token.startswith("<0x"):
            kinds[i] = gguf.TokenType.BYTE
    if model == "bert":
        tokens = {i: t if kinds[i] == gguf.TokenType.CONTROL else
                  t[2:] if t.startswith("##") else "\u2581" + t for i, t in tokens.items()}
    writer = gguf.GGUFWriter(os.path.join(folder, name + ".gguf"),
                             {"llama": "llama", "gpt2": "qwen2", "bert": "bert", "t5": "t5"}[model])
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(cut)
    writer.add_token_list([tokens[i] for i in range(len(tokens))])
    writer.add_token_types([kinds[i] for i in range(len(tokens))])
    if model == "llama":
        # SentencePiece's scores count merges down.
        ranks = {}
        for rank, (left, right) in enumerate(tokenizer["model"]["merges"]):
            ranks.setdefault(left + right, rank)
        writer.add_token_scores([-float(ranks.get(tokens[i], 1e6)) for i in range(len(tokens))])
    if scores is not None:
        writer.add_token_scores(scores + [0.0] * (len(tokens) - len(scores)))
    if model == "gpt2":
        writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    ids = {token: i for i, token in tokens.items()}
    if model == "bert":
        writer.add_bos_token_id(ids["[CLS]"])
        writer.add_sep_token_id(ids["[SEP]"])
        writer.add_unk_token_id(ids["[UNK]"])
        writer.add_bool("tokenizer.ggml.normalizer.lowercase", "uncased" in name)
    if model == "t5":
        writer.add_eos_token_id(ids["</s>"])
        writer.add_unk_token_id(ids["<unk>"])
        charsmap = tokenizer["normalizer"]["normalizers"][0]["precompiled_charsmap"]
        writer.add_precompiled_charsmap(base64.b64decode(charsmap))
    if model == "llama":
        writer.add_bos_token_id(ids["<s>"])
        writer.add_unk_token_id(ids["<unk>"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_types(folder):
    """A row of 256 weights of every type: random bytes, and what they stand for."""
    path = os.path.join(folder, "gguf-types")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    random = numpy.random.default_rng(900)
    writer = gguf.GGUFWriter(os.path.join(path, "types.gguf"), "llama")
    expected = {}
    for kind in READ_TYPES:
        weights, size = gguf.GGML_QUANT_SIZES[kind]
        while True:
            row = random.integers(0, 256, (1, 256 // weights * size), dtype=numpy.uint8)
            values = gguf.quants.dequantize(row, kind)
            if numpy.isfinite(values).all():
                break
        writer.add_tensor(kind.name, row, raw_dtype=kind)
        expected[kind.name] = numpy.ascontiguousarray(values, dtype=numpy.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    safetensors.numpy.save_file(expected, os.path.join(path, "expected.safetensors"))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, cases, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    for name in wanted or ["gguf-types", "gguf-tokenizers", *CASES]:
        if name == "gguf-types":
            make_types(folder)
            continue
        if name == "gguf-tokenizers":
            for source in TOKENIZERS:
                make_tokenizer(os.path.join(folder, name), cases, source)
            continue
        architecture, class_name, seed, given, left, kinds = CASES[name]
        types.clear()
        types.update(kinds)
        model_golden.make_case(folder, name, class_name, seed, given, left,
                               2 if given.get("type_vocab_size") == 2 else 0)
        convert(folder, name, architecture)
        trim(folder, name)


if __name__ == "__main__":
    main()
