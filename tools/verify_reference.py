#!/usr/bin/env python3
"""What transformers computes of a model directory on a fixed input, for `vkformer verify`.

    python3 tools/verify_reference.py DIR OUTPUT.safetensors [--float32]

Needs torch, transformers, tokenizers and safetensors; nothing else of this project. Runs the model's own
class (config.json, "architectures") in float64 with the directory's weights. The input is one text, picture or sound
that depends on nothing but the model's sizes. --float32 runs it in float32 alone, which takes half the memory: then the
rounding of float32 is not measured, and the file states 1e-5.

The file holds
  text             U8 (N)   the text in UTF-8, where there is a tokenizer.json; input.input_ids are its tokens
  input.NAME                inputs by the names that transformers and vkformer share
  expected.NAME    F32      outputs: logits, last_hidden_state, start_logits, ...
  rounding.NAME    F32 (1)  largest |x - y| / (1 + |y|) between float32 (x) and float64 (y)
"""
import argparse
import pathlib

import safetensors.torch
import tokenizers
import torch
import transformers

TEXT = "The quick brown fox jumps over the lazy dog; 42 others followed it in 1969."
OUTPUTS = ("logits", "start_logits", "end_logits", "last_hidden_state", "encoder_last_hidden_state",
           "pooler_output")
STATED_ROUNDING = 1e-5
MOST_TOKENS = 64
DECODER_TOKENS = 8


def wave(*shape):
    """Smooth values between -1 and 1."""
    count = torch.Size(shape).numel()
    return torch.sin(0.37 * torch.arange(count, dtype=torch.float64)).float().reshape(shape)


def text_inputs(config, directory):
    text = config.get_text_config()
    path = directory / "tokenizer.json"
    if path.exists():
        ids = tokenizers.Tokenizer.from_file(str(path)).encode(TEXT).ids[:MOST_TOKENS]
        spelled = torch.tensor(list(TEXT.encode()), dtype=torch.uint8)
        return {"text": spelled}, torch.tensor([ids])
    return {}, (torch.arange(24)[None] * 7 + 3) % text.vocab_size


def inputs_of(model, directory):
    """What goes into the file beside the inputs, and the inputs."""
    config, name = model.config, model.main_input_name
    if name == "pixel_values":
        vision = getattr(config, "encoder", config)
        size = vision.image_size
        height, width = (size, size) if isinstance(size, int) else size
        extra, given = {}, {name: wave(1, getattr(vision, "num_channels", 3), height, width)}
    elif name == "input_features":
        extra, given = {}, {name: wave(1, config.num_mel_bins, 2 * config.max_source_positions)}
    elif name == "input_values":
        extra, given = {}, {name: wave(1, 16000)}
    elif name == "input_ids":
        extra, ids = text_inputs(config, directory)
        given = {name: ids, "attention_mask": torch.ones_like(ids)}
    else:
        raise SystemExit(f"verify_reference: the model reads [{name}], for which there is no fixed input.")
    if config.is_encoder_decoder:
        decoder = getattr(config, "decoder", config)
        named = (getattr(config, name, None) for name in ("decoder_start_token_id", "bos_token_id"))
        start = next((token for token in named if token is not None), 0)
        rest = (torch.arange(DECODER_TOKENS - 1) * 5 + 3) % decoder.vocab_size
        given["decoder_input_ids"] = torch.cat([torch.tensor([start]), rest])[None]
    return extra, given


def run(model, inputs, dtype):
    cast = {name: t.to(dtype) if t.is_floating_point() else t for name, t in inputs.items()}
    with torch.no_grad():
        results = model.to(dtype)(**cast)
    return {name: results[name].to(torch.float64) for name in OUTPUTS
            if isinstance(getattr(results, name, None), torch.Tensor)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--float32", action="store_true")
    options = parser.parse_args()
    config = transformers.AutoConfig.from_pretrained(options.directory)
    architecture = (config.architectures or [""])[0]
    if not hasattr(transformers, architecture):
        raise SystemExit(f"verify_reference: transformers {transformers.__version__} has no class "
                         f"[{architecture}], which config.json names.")
    model = getattr(transformers, architecture).from_pretrained(
        options.directory, dtype=torch.float32, attn_implementation="eager").eval()
    extra, inputs = inputs_of(model, options.directory)
    rounded = run(model, inputs, torch.float32)
    exact = rounded if options.float32 else run(model, inputs, torch.float64)
    tensors = dict(extra)
    tensors |= {f"input.{name}": tensor.contiguous() for name, tensor in inputs.items()}
    for name, y in exact.items():
        deviation = float(((rounded[name] - y).abs() / (1 + y.abs())).max())
        tensors[f"expected.{name}"] = y.float().contiguous()
        tensors[f"rounding.{name}"] = torch.tensor([STATED_ROUNDING if options.float32 else deviation])
    facts = {"architecture": architecture, "transformers": transformers.__version__,
             "torch": torch.__version__, "arithmetic": "float32" if options.float32 else "float64"}
    safetensors.torch.save_file(tensors, options.output, metadata=facts)
    print(f"{options.output}: {architecture}, outputs {', '.join(exact)}")


if __name__ == "__main__":
    main()
