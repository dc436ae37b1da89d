#!/usr/bin/env python3
"""Makes the encoder-decoder cases of tests/golden that have odd options: small random models and
what transformers computes of them in float64.

    python3 tools/golden/seq2seq_golden.py OUTPUT_FOLDER [NAME ...]

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders.
"""
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

TOLERANCE = 5e-5
VOCABULARY = 77
END = 2

# Some models ask for a softmax in float32 whatever they compute in.
plain_softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=None, dtype=None: plain_softmax(x, dim=dim)


def mbart():
    return transformers.MBartConfig(
        vocab_size=VOCABULARY, d_model=40, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=5, decoder_attention_heads=2, encoder_ffn_dim=56,
        decoder_ffn_dim=72, max_position_embeddings=24, scale_embedding=True,
        decoder_start_token_id=END,
    )


def m2m():
    return transformers.M2M100Config(
        vocab_size=VOCABULARY, d_model=24, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=3, encoder_ffn_dim=40,
        decoder_ffn_dim=36, max_position_embeddings=24,
    )


def vision():
    encoder = transformers.ViTConfig(
        hidden_size=36, num_hidden_layers=2, num_attention_heads=3, intermediate_size=44,
        image_size=20, patch_size=5,
    )
    decoder = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=32, n_embd=40, n_layer=2, n_head=5, bos_token_id=END,
        eos_token_id=END,
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.pad_token_id = config.eos_token_id = config.decoder_start_token_id = END
    return config


# TrOCR's decoder without anything optional.
def trocr():
    encoder = transformers.DeiTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=44,
        image_size=[20, 15], patch_size=5,
    )
    decoder = transformers.TrOCRConfig(
        vocab_size=VOCABULARY, d_model=24, decoder_layers=2, decoder_attention_heads=3,
        decoder_ffn_dim=36, max_position_embeddings=20, scale_embedding=True,
        activation_function="relu", use_learned_position_embeddings=False,
        layernorm_embedding=False, cross_attention_hidden_size=32, pad_token_id=3,
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 3, END, END
    return config


def donut():
    encoder = transformers.DonutSwinConfig(
        embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=3, patch_size=4,
        image_size=[28, 20], mlp_ratio=2.0,
    )
    decoder = transformers.MBartConfig(
        vocab_size=VOCABULARY, d_model=40, decoder_layers=2, decoder_attention_heads=5,
        decoder_ffn_dim=36, max_position_embeddings=20, pad_token_id=1,
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.pad_token_id, config.eos_token_id, config.decoder_start_token_id = 1, END, END
    return config


# Name: configuration, class, seed, settings of the generation.
CASES = {
    "mbart-base": (
        mbart, "MBartForConditionalGeneration", 75,
        dict(max_new_tokens=16, forced_bos_token_id=70, forced_eos_token_id=END,
             early_stopping=True, length_penalty=0.6),
    ),
    # The first token is padding, which has no position.
    "m2m100-pad": (
        m2m, "M2M100ForConditionalGeneration", 44, dict(max_new_tokens=10, forced_bos_token_id=1),
    ),
    "vision-encoder-decoder-projected": (
        vision, "VisionEncoderDecoderModel", 62, dict(max_new_tokens=12),
    ),
    "vision-encoder-decoder-trocr": (
        trocr, "VisionEncoderDecoderModel", 63, dict(max_new_tokens=12),
    ),
    "vision-encoder-decoder-donut": (
        donut, "VisionEncoderDecoderModel", 64, dict(max_new_tokens=12, forced_eos_token_id=END),
    ),
}


# How large outputs of matrices are, where not 2.2. Donut's decoder reads what no norm has bounded.
GAINS = {"vision-encoder-decoder-donut": 1.2}


def randomize(model, generator, gain):
    """Every bias, gain and embedding row is random, so that a forgotten one shows."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if "norm" in name.lower() or ".ln_" in name:
            values = 0.3 * values + (1 if name.endswith("weight") else 0)
        elif parameter.dim() == 1:
            values = 0.3 * values
        elif "position" in name or "wpe" in name:
            values = 0.7 * values
        elif "embed_tokens" in name or "shared" in name or "wte" in name:
            values = 0.4 * values
        else:
            values = gain * values / parameter[0].numel() ** 0.5
        # Files hold float32.
        parameter.data = values.float().double()


def make_inputs(config, generator):
    if config.model_type == "vision-encoder-decoder":
        size = config.encoder.image_size
        height, width = (size, size) if isinstance(size, int) else size
        inputs = {"pixel_values": torch.randn(2, 3, height, width, generator=generator)}
    else:
        ids = torch.randint(4, VOCABULARY, (2, 13), generator=generator)
        mask = torch.ones_like(ids)
        mask[1, 9:] = 0
        inputs = {"input_ids": ids.masked_fill(mask == 0, config.pad_token_id)}
        inputs["attention_mask"] = mask
    inputs["decoder_input_ids"] = torch.randint(4, VOCABULARY, (2, 8), generator=generator)
    return inputs


def in_double(inputs):
    return {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()}


def forward(model, inputs):
    with torch.no_grad():
        out = model(**in_double(inputs), output_attentions=True, output_hidden_states=True)
    expected = {"logits": out.logits, "last_hidden_state": out.decoder_hidden_states[-1]}
    expected["encoder_last_hidden_state"] = out.encoder_last_hidden_state
    for kind in ("encoder_attentions", "decoder_attentions", "cross_attentions"):
        expected |= {f"{kind}.{i}": a for i, a in enumerate(out[kind])}
    for kind in ("encoder_hidden_states", "decoder_hidden_states"):
        expected |= {f"{kind}.{i}": h for i, h in enumerate(out[kind][:-1])}
    expected = {name: tensor.float().contiguous() for name, tensor in expected.items()}
    if "attention_mask" not in inputs:
        return expected
    mask = inputs["attention_mask"].to(torch.uint8)
    for name in [name for name in expected if name.startswith("encoder_")]:
        rows = mask[:, None, :, None] if "attentions" in name else mask[:, :, None]
        expected["mask." + name] = rows.clone().contiguous()
    return expected


def generate(model, inputs, settings):
    source = {n: t for n, t in in_double(inputs).items() if n != "decoder_input_ids"}
    expected = {}
    for name, beams in (("greedy_ids", 1), ("beam4_ids", 4)):
        out = model.generate(
            **source, num_beams=beams, do_sample=False, return_dict_in_generate=True,
            output_scores=True,
            **{k: settings[k] for k in settings if k not in ("num_beams", "prompt_length")},
        )
        expected[name] = out.sequences.contiguous()
        if beams > 1:
            expected["beam4_scores"] = out.sequences_scores.float().contiguous()
    return expected


def make_case(folder, name):
    make_config, head, seed, changed = CASES[name]
    torch.manual_seed(seed)
    config = make_config()
    settings = dict(
        prompt_length=1, num_beams=4, length_penalty=1.0, early_stopping=False, eos_token_id=END,
        pad_token_id=config.pad_token_id, decoder_start_token_id=END,
    ) | changed
    model = getattr(transformers, head)(config).double().eval()
    model.set_attn_implementation("eager")
    generator = torch.Generator().manual_seed(seed)
    randomize(model, generator, GAINS.get(name, 2.2))
    model.tie_weights()
    inputs = make_inputs(config, generator)
    expected = forward(model, inputs) | generate(model, inputs, settings)
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    safetensors.torch.save_file(inputs, os.path.join(path, "inputs.safetensors"))
    safetensors.torch.save_file(expected, os.path.join(path, "expected.safetensors"))
    model.float().save_pretrained(os.path.join(path, "model"))
    facts = {
        "name": name, "family": config.model_type, "head": head, "seed": seed,
        "tolerance": {"abs": TOLERANCE, "rel": TOLERANCE}, "generation": settings,
        "computed_in": "float64, stored as float32",
        "transformers_version": transformers.__version__, "torch_version": torch.__version__,
    }
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, expected["greedy_ids"].tolist())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or CASES:
        make_case(sys.argv[1], name)


if __name__ == "__main__":
    main()
