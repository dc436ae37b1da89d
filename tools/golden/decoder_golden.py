#!/usr/bin/env python3
"""Makes the decoder-only cases of tests/golden that have odd options: small random models and what
transformers computes of them in float64.

    python3 tools/golden/decoder_golden.py OUTPUT_FOLDER [NAME ...]

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders. Every prompt is generated from alone and without padding; the expected rows
are padded on the left afterwards.
"""
import copy
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

PROMPT, PADDING, NEW_TOKENS = 8, 2, 14
# Smallest distance between the two best tokens of the greedy path: rounding shall not flip them.
LEAST_GAP = 2e-3
SIZES = dict(vocab_size=66, bos_token_id=1, eos_token_id=2)


def randomize(model, generator):
    """Every bias, gain and embedding row is random, so that a forgotten one shows."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            values = 1 + 0.3 * values if name.endswith("weight") else 0.3 * values
        elif any(part in name for part in ("emb", "wte", "wpe")):
            values = 0.8 * values
        else:
            values = 1.2 * values / parameter.shape[-1] ** 0.5
        parameter.data = values


def forward(model, ids, mask):
    with torch.no_grad():
        out = copy.deepcopy(model)(
            input_ids=ids, attention_mask=mask, output_attentions=True, output_hidden_states=True
        )
    expected = {"last_hidden_state": out.hidden_states[-1], "logits": out.logits}
    expected |= {f"attentions.{i}": a for i, a in enumerate(out.attentions)}
    expected |= {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states[:-1])}
    expected = {name: tensor.float().contiguous() for name, tensor in expected.items()}
    for name in list(expected):
        rows = mask[:, None, :, None] if name.startswith("attentions") else mask[:, :, None]
        expected["mask." + name] = rows.to(torch.uint8).contiguous()
    return expected


def padded(row, ids):
    """The row with the padding before its prompt, and filled up after it."""
    new = torch.zeros(PROMPT + NEW_TOKENS, dtype=torch.long)
    first = PADDING if row > 0 else 0
    new[first : first + len(ids)] = ids
    return new


def generate(model, prompts, eos):
    """Greedy and beam search of every row, each by a model without a past."""
    settings = dict(return_dict_in_generate=True, max_new_tokens=NEW_TOKENS, do_sample=False)
    settings |= dict(pad_token_id=0, eos_token_id=eos, bos_token_id=1)
    rows, beam_rows, scores, gap = [], [], [], 1e9
    for row, prompt in enumerate(prompts):
        one = prompt[None, PADDING if row > 0 else 0 :]
        greedy = copy.deepcopy(model)
        greedy.generation_config = transformers.GenerationConfig(output_logits=True, **settings)
        out = greedy.generate(one, attention_mask=torch.ones_like(one))
        best = [step[0].topk(2).values for step in out.logits]
        gap = min([gap] + [float(two[0] - two[1]) for two in best])
        rows.append(padded(row, out.sequences[0]))
        beam = copy.deepcopy(model)
        beam.generation_config = transformers.GenerationConfig(
            num_beams=4, length_penalty=1.0, early_stopping=False, output_scores=True, **settings
        )
        out = beam.generate(one, attention_mask=torch.ones_like(one))
        beam_rows.append(padded(row, out.sequences[0]))
        scores.append(float(out.sequences_scores[0]))
    result = {"greedy_ids": torch.stack(rows), "beam4_ids": torch.stack(beam_rows)}
    return result | {"beam4_scores": torch.tensor(scores)}, gap


def make(folder, seed, family, config, eos=None, rename=None, respell=None):
    generator = torch.Generator().manual_seed(seed)
    config._attn_implementation = "eager"
    model = family(config).eval()
    randomize(model, generator)
    model.tie_weights()
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder + "/model")
    if rename:
        path = folder + "/model/model.safetensors"
        tensors = safetensors.torch.load_file(path)
        safetensors.torch.save_file({rename(name): t for name, t in tensors.items()}, path)
    if respell:
        path = folder + "/model/config.json"
        with open(path) as file:
            spelled = json.load(file)
        respell(spelled)
        with open(path, "w") as file:
            json.dump(spelled, file, indent=2)
    model = model.double()
    ids = torch.randint(3, config.vocab_size, (2, 13), generator=generator)
    mask = torch.ones_like(ids)
    ids[1, 10:] = mask[1, 10:] = 0
    prompts = torch.randint(3, config.vocab_size, (2, PROMPT), generator=generator)
    prompts[1, :PADDING] = 0
    expected = forward(model, ids, mask)
    generated, gap = generate(model, prompts, eos)
    assert gap > LEAST_GAP, f"{folder}: the greedy path has a gap of {gap}; take another seed"
    inputs = {"input_ids": ids, "attention_mask": mask, "generate.input_ids": prompts}
    inputs["generate.attention_mask"] = (prompts > 0).long()
    safetensors.torch.save_file(inputs, folder + "/inputs.safetensors")
    safetensors.torch.save_file(expected | generated, folder + "/expected.safetensors")
    facts = dict(format=1, name=os.path.basename(folder), family=config.model_type, seed=seed)
    facts |= dict(head=family.__name__, tolerance=dict(abs=1e-4, rel=1e-4), optional=["hidden_states.*"])
    facts["generation"] = dict(prompt_length=PROMPT, max_new_tokens=NEW_TOKENS, num_beams=4)
    facts["generation"] |= dict(length_penalty=1.0, early_stopping=False)
    facts["generation"] |= dict(eos_token_id=eos, pad_token_id=0)
    facts |= dict(greedy_min_logit_gap=gap, computed_in="float64, stored as float32")
    facts |= dict(torch_version=torch.__version__, transformers_version=transformers.__version__)
    with open(folder + "/case.json", "w") as file:
        json.dump(facts, file, indent=1)


def before_version_5(config):
    """Rotary parameters as older versions of the library spelled them."""
    rotary = config.pop("rope_parameters")
    config["rope_theta"] = rotary.pop("rope_theta")
    kind = rotary.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else {"type": kind, **rotary}
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)


def neox_before_version_5(config):
    rotary = config.pop("rope_parameters")
    config["rotary_pct"] = rotary["partial_rotary_factor"]
    config["rotary_emb_base"] = rotary["rope_theta"]


def bloom_of_the_hub(config):
    config["n_embed"] = config.pop("hidden_size")
    config["num_attention_heads"] = config.pop("n_head")


def gpt_neo_local():
    types = [[["global", "local"], 1], [["local"], 1]]
    config = transformers.GPTNeoConfig(
        hidden_size=24, num_layers=3, num_heads=3, max_position_embeddings=48, intermediate_size=40,
        attention_types=types, window_size=4, **SIZES,
    )
    derived = lambda c: c.pop("attention_layers", None)
    return dict(family=transformers.GPTNeoForCausalLM, config=config, respell=derived)


def bloom_post():
    config = transformers.BloomConfig(
        hidden_size=24, n_layer=2, n_head=6, apply_residual_connection_post_layernorm=True, **SIZES
    )
    bare = lambda name: name.removeprefix("transformer.")
    return dict(family=transformers.BloomForCausalLM, config=config, eos=6, rename=bare,
                respell=bloom_of_the_hub)


def gptneox_sequential():
    rotary = dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=0.5)
    config = transformers.GPTNeoXConfig(
        hidden_size=36, intermediate_size=50, num_hidden_layers=2, num_attention_heads=3,
        max_position_embeddings=50, use_parallel_residual=False, attention_bias=False,
        rope_parameters=rotary, **SIZES,
    )
    return dict(family=transformers.GPTNeoXForCausalLM, config=config,
                respell=neox_before_version_5)


def llama_longrope():
    rotary = dict(rope_type="longrope", rope_theta=10000.0, factor=5.0)
    # One prompt is longer than this and one shorter, so they have different frequencies.
    rotary |= dict(original_max_position_embeddings=7, short_factor=[1.0, 1.1, 1.2, 1.5])
    rotary |= dict(long_factor=[1.0, 2.0, 3.0, 6.0])
    config = transformers.LlamaConfig(
        hidden_size=20, head_dim=8, intermediate_size=33, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=60,
        rope_parameters=rotary, **SIZES,
    )
    return dict(family=transformers.LlamaForCausalLM, config=config)


def qwen2_old():
    config = transformers.Qwen2Config(
        hidden_size=32, intermediate_size=33, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, use_sliding_window=True,
        sliding_window=4, max_window_layers=1, **SIZES,
    )
    return dict(family=transformers.Qwen2ForCausalLM, config=config, respell=before_version_5)


GEMMA = SIZES | dict(
    vocab_size=20, hidden_size=8, intermediate_size=7, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=6, max_position_embeddings=64,
)


def gemma_base():
    return dict(family=transformers.GemmaForCausalLM, config=transformers.GemmaConfig(**GEMMA))


def gemma2_windows():
    config = transformers.Gemma2Config(
        sliding_window=4, query_pre_attn_scalar=9, attn_logit_softcapping=1.5,
        final_logit_softcapping=20.0, **GEMMA,
    )
    return dict(family=transformers.Gemma2ForCausalLM, config=config)


SMALL = SIZES | dict(
    vocab_size=30, hidden_size=12, intermediate_size=14, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=64,
)


def qwen3_windows():
    config = transformers.Qwen3Config(
        **SMALL | dict(num_hidden_layers=3), head_dim=6, attention_bias=True,
        use_sliding_window=True, sliding_window=4, tie_word_embeddings=True,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
    )
    return dict(family=transformers.Qwen3ForCausalLM, config=config)


def gemma3_scaled():
    rope = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=3e4),
                sliding_attention=dict(rope_type="default", rope_theta=700.0))
    config = transformers.Gemma3TextConfig(
        sliding_window=4, query_pre_attn_scalar=9, final_logit_softcapping=20.0,
        rope_parameters=rope,
        layer_types=["sliding_attention", "full_attention"], **GEMMA,
    )
    return dict(family=transformers.Gemma3ForCausalLM, config=config)


def olmo2_biased():
    config = transformers.Olmo2Config(attention_bias=True, **SMALL | dict(hidden_size=24))
    return dict(family=transformers.Olmo2ForCausalLM, config=config)


def smollm3_windows():
    config = transformers.SmolLM3Config(
        **SMALL | dict(hidden_size=24, num_hidden_layers=3, pad_token_id=0), mlp_bias=True,
        attention_bias=True, no_rope_layers=[1, 0, 0], use_sliding_window=True, sliding_window=4,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
    )
    return dict(family=transformers.SmolLM3ForCausalLM, config=config)


def phi3_windows():
    rotary = dict(rope_type="longrope", rope_theta=500.0, partial_rotary_factor=0.5)
    rotary |= dict(original_max_position_embeddings=5, short_factor=[1.0, 1.2])
    rotary |= dict(long_factor=[1.5, 6.0])
    config = transformers.Phi3Config(
        **SMALL | dict(hidden_size=32, pad_token_id=0), sliding_window=6, rope_parameters=rotary,
        original_max_position_embeddings=5,
    )
    return dict(family=transformers.Phi3ForCausalLM, config=config)


def granite_biased():
    config = transformers.GraniteConfig(
        **SMALL | dict(hidden_size=24), attention_bias=True, mlp_bias=True,
        embedding_multiplier=3.0, logits_scaling=1.7, residual_multiplier=0.45,
        attention_multiplier=0.6, tie_word_embeddings=True,
    )
    return dict(family=transformers.GraniteForCausalLM, config=config)


def cohere_normed():
    config = transformers.CohereConfig(
        **SMALL | dict(hidden_size=24, pad_token_id=0), use_qk_norm=True, attention_bias=True,
        logit_scale=0.7,
    )
    return dict(family=transformers.CohereForCausalLM, config=config)


def starcoder2_window():
    config = transformers.Starcoder2Config(
        **SMALL | dict(hidden_size=24), use_bias=False, sliding_window=4, tie_word_embeddings=False)
    return dict(family=transformers.Starcoder2ForCausalLM, config=config)


def stablelm_parallel():
    config = transformers.StableLmConfig(
        **SMALL | dict(hidden_size=32), qk_layernorm=True, use_parallel_residual=True,
        partial_rotary_factor=0.5,
    )
    return dict(family=transformers.StableLmForCausalLM, config=config)


FALCON = SIZES | dict(vocab_size=30, hidden_size=24, num_hidden_layers=2, num_attention_heads=6,
                      bias=True, ffn_hidden_size=20)


def slopes_once(forward):
    """The library adds slopes twice where it hands out maps: in the mask, and to the scores."""
    def once(self, hidden_states, alibi=None, **rest):
        return forward(self, hidden_states, alibi=alibi if alibi is None else 0 * alibi, **rest)
    return once


def falcon_slopes():
    attention = sys.modules[transformers.FalconForCausalLM.__module__].FalconAttention
    attention.forward = slopes_once(attention.forward)
    config = transformers.FalconConfig(
        alibi=True, multi_query=False, parallel_attn=False, **FALCON | dict(num_attention_heads=3))
    return dict(family=transformers.FalconForCausalLM, config=config)


def falcon_one_norm():
    config = transformers.FalconConfig(
        new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, **FALCON)
    return dict(family=transformers.FalconForCausalLM, config=config)


def mpt_heads():
    config = transformers.MptConfig(
        **SIZES | dict(vocab_size=30), d_model=24, n_layers=2, n_heads=3, max_seq_len=64,
        attn_config=dict(softmax_scale=0.7),
    )
    return dict(family=transformers.MptForCausalLM, config=config)


def xglm_unscaled():
    config = transformers.XGLMConfig(
        **SIZES | dict(vocab_size=30, pad_token_id=1), d_model=24, ffn_dim=20, num_layers=2,
        attention_heads=3, max_position_embeddings=40, scale_embedding=False,
        activation_function="relu",
    )
    return dict(family=transformers.XGLMForCausalLM, config=config)


CASES = {
    "gpt_neo-local": (40, gpt_neo_local),
    "bloom-post": (41, bloom_post),
    "gptneox-sequential": (42, gptneox_sequential),
    "llama-longrope": (43, llama_longrope),
    "qwen2-old": (44, qwen2_old),
    "gemma-base": (45, gemma_base),
    "gemma2-windows": (45, gemma2_windows),
    "qwen3-windows": (46, qwen3_windows),
    "gemma3-scaled": (47, gemma3_scaled),
    "olmo2-biased": (58, olmo2_biased),
    "smollm3-windows": (49, smollm3_windows),
    "phi3-windows": (50, phi3_windows),
    "granite-biased": (51, granite_biased),
    "cohere-normed": (52, cohere_normed),
    "starcoder2-window": (63, starcoder2_window),
    "stablelm-parallel": (54, stablelm_parallel),
    "falcon-slopes": (55, falcon_slopes),
    "falcon-one-norm": (56, falcon_one_norm),
    "mpt-heads": (57, mpt_heads),
    "xglm-unscaled": (59, xglm_unscaled),
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for case, (case_seed, options) in CASES.items():
        if len(sys.argv) == 2 or case in sys.argv[2:]:
            make(os.path.join(sys.argv[1], case), case_seed, **options())
            print(case)
