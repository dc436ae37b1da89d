#!/usr/bin/env python3
"""Makes the cases of tests/golden in which a decoder classifies texts, from cases of the same
decoders.

    python3 tools/golden/decoder_classes_golden.py tests/golden [NAME ...]

A case of a decoder has last_hidden_state, which transformers computed in float64. What a
*ForSequenceClassification adds to it is one product with the states of one token of each row
(GenericForSequenceClassification of transformers.modeling_layers). That is the last one that is not
pad_token_id. This program computes that in float64. It needs numpy and safetensors.
"""
import json
import os
import shutil
import sys

import numpy
from safetensors.numpy import load_file, save_file

# The new case, the case with the decoder, the class, the prefix that its files put before the
# decoder's tensors, and pad_token_id. That is a token, None for none, or "last" for the last token of the first row,
# which the head then skips.
CASES = [
    ("bloom-classes", "bloom-bare", "BloomForSequenceClassification", "transformer.", 0),
    ("deepseek_v3-classes", "deepseek_v3-bare", "DeepseekV3ForSequenceClassification", "model.", 0),
    ("falcon-classes", "falcon-bare", "FalconForSequenceClassification", "transformer.", 0),
    ("gemma-classes", "gemma-base", "GemmaForSequenceClassification", "model.", 0),
    ("gemma2-classes", "gemma2-windows", "Gemma2ForSequenceClassification", "model.", 0),
    ("gemma3-classes", "gemma3-scaled", "Gemma3TextForSequenceClassification", "model.", 0),
    ("gemma3-classes-both", "gemma3-both", "Gemma3TextForSequenceClassification", "model.", "last"),
    ("gpt2-classes", "gpt2-bare", "GPT2ForSequenceClassification", "transformer.", None),
    ("gpt_neo-classes", "gpt_neo-bare", "GPTNeoForSequenceClassification", "transformer.", "last"),
    ("gptneox-classes", "gptneox-bare", "GPTNeoXForSequenceClassification", "gpt_neox.", 0),
    ("gpt_oss-classes", "gpt_oss-bare", "GptOssForSequenceClassification", "model.", 0),
    ("llama-classes", "llama-bare", "LlamaForSequenceClassification", "model.", 0),
    ("llama-classes-ending", "llama-bare", "LlamaForSequenceClassification", "model.", "last"),
    ("mistral-classes", "mistral-bare", "MistralForSequenceClassification", "model.", 0),
    ("mixtral-classes", "mixtral-bare", "MixtralForSequenceClassification", "model.", 0),
    ("modernbert_decoder-classes", "modernbert_decoder-bare",
     "ModernBertDecoderForSequenceClassification", "model.", 0),
    ("mpt-classes", "mpt-bare", "MptForSequenceClassification", "transformer.", 0),
    ("opt-classes", "opt-bare", "OPTForSequenceClassification", "model.", 0),
    ("opt-classes-projected", "opt-projected-bare", "OPTForSequenceClassification", "model.", 0),
    ("phi3-classes", "phi3-bare", "Phi3ForSequenceClassification", "model.", 0),
    ("qwen2-classes", "qwen2-bare", "Qwen2ForSequenceClassification", "model.", 0),
    ("qwen3-classes", "qwen3-bare", "Qwen3ForSequenceClassification", "model.", "last"),
    ("qwen3_5-classes", "qwen3_5-bare", "Qwen3_5ForSequenceClassification", "model.", 0),
    ("qwen3_moe-classes", "qwen3_moe-bare", "Qwen3MoeForSequenceClassification", "model.", 0),
    ("qwen3_next-classes", "qwen3_next-bare", "Qwen3NextForSequenceClassification", "model.", 0),
    ("smollm3-classes", "smollm3-bare", "SmolLM3ForSequenceClassification", "model.", 0),
    ("stablelm-classes", "stablelm-bare", "StableLmForSequenceClassification", "model.", 0),
    ("starcoder2-classes", "starcoder2-bare", "Starcoder2ForSequenceClassification", "model.", 0),
]
CLASSES = 3


def decoder_tensors(tensors, prefix):
    """Those of the stack, by the names that a file with a head has."""
    heads = ("lm_head.", "embed_out.", "score.")
    tensors = {name: t for name, t in tensors.items() if not name.startswith(heads)}
    bare = not any(name.startswith(prefix) for name in tensors)
    return {prefix + name if bare else name: t for name, t in tensors.items()}


def pooled_states(states, ids, mask, padding):
    """The states of each row's last token, as transformers finds it by ids; by mask without."""
    kept = mask if padding is None else mask * (ids != padding)
    return states[numpy.arange(len(ids)), (numpy.arange(ids.shape[1]) * kept).argmax(-1)]


def gelu(x):
    erf = numpy.vectorize(__import__("math").erf)
    return x * 0.5 * (1 + erf(x / 2**0.5))


def prediction_head(x, config, tensors, generator):
    """ModernBertDecoderPredictionHead: a dense layer without bias, gelu, a norm without bias."""
    width = x.shape[-1]
    dense = (generator.standard_normal((width, width)) * 1.2 / width**0.5).astype(numpy.float32)
    gain = (1 + 0.3 * generator.standard_normal(width)).astype(numpy.float32)
    tensors |= {"head.dense.weight": dense, "head.norm.weight": gain}
    x = gelu(x @ dense.astype(numpy.float64).T)
    x = x - x.mean(-1, keepdims=True)
    x = x / numpy.sqrt((x * x).mean(-1, keepdims=True) + config.get("norm_eps", 1e-5))
    return x * gain.astype(numpy.float64)


def make(root, number, name, source, architecture, prefix, padding):
    folder, base = os.path.join(root, name), os.path.join(root, source)
    generator = numpy.random.default_rng(7300 + number)
    with open(base + "/model/config.json") as file:
        config = json.load(file)
    inputs = load_file(base + "/inputs.safetensors")
    inputs = {key: inputs[key] for key in ("input_ids", "attention_mask")}
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    if padding == "last":
        padding = int(ids[0][-1])
    elif padding is not None:
        assert not ((ids == padding) & (mask == 1)).any(), f"{name}: {padding} is a token of a text"
        ids[mask == 0] = padding
    config |= dict(architectures=[architecture], pad_token_id=padding)
    config |= dict(id2label={str(i): f"LABEL_{i}" for i in range(CLASSES)})
    tensors = decoder_tensors(load_file(base + "/model/model.safetensors"), prefix)
    states = load_file(base + "/expected.safetensors")["last_hidden_state"]
    pooled = pooled_states(states.astype(numpy.float64), ids, mask, padding)
    head = "score.weight"
    if architecture.startswith("ModernBertDecoder"):
        pooled, head = prediction_head(pooled, config, tensors, generator), "classifier.weight"
    width = pooled.shape[-1]
    weight = (generator.standard_normal((CLASSES, width)) / width**0.5).astype(numpy.float32)
    tensors[head] = weight
    logits = (pooled @ weight.astype(numpy.float64).T).astype(numpy.float32)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/model")
    with open(folder + "/model/config.json", "w") as file:
        json.dump(config, file, indent=2)
    save_file(tensors, folder + "/model/model.safetensors", metadata={"format": "pt"})
    save_file(inputs, folder + "/inputs.safetensors")
    expected = {"last_hidden_state": states, "logits": logits}
    expected["mask.last_hidden_state"] = mask[:, :, None].astype(numpy.uint8)
    save_file(expected, folder + "/expected.safetensors")
    with open(base + "/case.json") as file:
        facts = json.load(file)
    facts = {key: facts[key] for key in ("format", "family", "tolerance", "computed_in",
                                         "torch_version", "transformers_version") if key in facts}
    facts |= dict(name=name, head=architecture, seed=7300 + number, states_of=source)
    facts |= dict(head_computed_by=f"numpy {numpy.__version__}, float64")
    with open(folder + "/case.json", "w") as file:
        json.dump(facts, file, indent=1)


def main():
    root, names = sys.argv[1], sys.argv[2:]
    for number, case in enumerate(CASES):
        if not names or case[0] in names:
            make(root, number, *case)


if __name__ == "__main__":
    main()
