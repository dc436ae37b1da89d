#!/usr/bin/env python3
"""Makes the Reformer and Nystroemformer cases of tests/golden: small random models and what
transformers computes of them in float64.

    python3 tools/golden/landmark_golden.py OUTPUT_FOLDER [NAME ...]

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders. Expected buckets and rotations are those that the library's own layers used.
"""
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers
from transformers.models.nystromformer import modeling_nystromformer
from transformers.models.reformer import modeling_reformer

from encoder_golden import randomize

NYSTROM = dict(
    vocab_size=31, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
)
NYSTROM |= dict(max_position_embeddings=24, segment_means_seq_len=24, conv_kernel_size=5)
REFORMER = dict(vocab_size=31, hidden_size=12, num_attention_heads=2, attention_head_size=4)
REFORMER |= dict(feed_forward_size=16, max_position_embeddings=48, hash_seed=7)
REFORMER |= dict(local_attn_chunk_length=4, lsh_attn_chunk_length=4)
HEADS = ("last_hidden_state", "logits", "start_logits", "end_logits")

# Rotations are float32 numbers of the library, whatever a model computes in.
plain_randn = torch.randn


def float32_randn(*args, dtype=None, **kwargs):
    values = plain_randn(*args, dtype=torch.float32, **kwargs)
    return values if dtype is None else values.to(dtype)


def key_mask(config, inputs_embeds, attention_mask, **_):
    """The library's own mask has a row for every token, which landmarks are not."""
    return (1 - attention_mask[:, None, None, :].to(inputs_embeds.dtype)) * -1e30


modeling_nystromformer.create_bidirectional_mask = key_mask


def row_masks(expected, mask):
    masks = {}
    for name, tensor in expected.items():
        rows = mask.reshape(*mask.shape, *[1] * (tensor.dim() - 2))
        if name.startswith("attentions"):
            rows = mask[:, None, :, None]
        elif tensor.shape[:2] != mask.shape:
            continue
        masks["mask." + name] = rows.to(torch.uint8).contiguous()
    return masks


def save(folder, model, seed, inputs, expected):
    mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))
    expected = {name: tensor.contiguous() for name, tensor in expected.items()}
    expected |= row_masks({n: t for n, t in expected.items() if t.is_floating_point()}, mask)
    safetensors.torch.save_file(inputs, folder + "/inputs.safetensors")
    safetensors.torch.save_file(expected, folder + "/expected.safetensors")
    facts = dict(format=1, name=os.path.basename(folder), family=model.config.model_type, seed=seed)
    facts |= dict(head=type(model).__name__, tolerance=dict(abs=1e-4, rel=1e-4))
    facts |= dict(optional=["hidden_states.*"], computed_in="float64, stored as float32")
    facts |= dict(transformers_version=transformers.__version__, torch_version=torch.__version__)
    with open(folder + "/case.json", "w") as file:
        json.dump(facts, file, indent=1)


def token_inputs(config, generator, tokens, masked):
    ids = torch.randint(4, config.vocab_size, (2, tokens), generator=generator)
    if not masked:
        return {"input_ids": ids}
    mask = torch.ones_like(ids)
    mask[1, tokens - 3 :] = 0
    mask[0, 2] = 0
    ids[1, tokens - 3 :] = config.pad_token_id
    return {"input_ids": ids, "attention_mask": mask}


def new_model(folder, seed, family, config):
    generator = torch.Generator().manual_seed(seed)
    model = family(config).eval()
    randomize(model, generator)
    for name, parameter in model.named_parameters():
        if "position_embeddings" in name or name.endswith("conv.weight"):
            parameter.data = plain_randn(parameter.shape, generator=generator)
    model.tie_weights()
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder + "/model")
    return model, generator


def nystromformer(folder, seed, head, tokens=24, exact=False, **settings):
    """With fewer tokens than are segmented, the library gets padded rows, the case short ones."""
    config = transformers.NystromformerConfig(**NYSTROM | settings)
    config._attn_implementation = "eager"
    family = getattr(transformers, "Nystromformer" + head)
    model, generator = new_model(folder, seed, family, config)
    if exact:  # the library's own way to ask for it fails
        path = folder + "/model/config.json"
        with open(path) as file:
            spelled = json.load(file)
        spelled["inv_coeff_init_option"] = True
        with open(path, "w") as file:
            json.dump(spelled, file, indent=2)
        for module in model.modules():
            if isinstance(module, modeling_nystromformer.NystromformerSelfAttention):
                module.init_option = "exact"
    inputs = token_inputs(config, generator, tokens, True)
    inputs["token_type_ids"] = torch.randint(0, 2, inputs["input_ids"].shape, generator=generator)
    full = inputs
    segmented = config.segment_means_seq_len
    if tokens < segmented != config.num_landmarks:
        missing = (0, segmented - tokens)
        pads = dict(input_ids=config.pad_token_id, attention_mask=0, token_type_ids=0)
        full = {n: torch.nn.functional.pad(t, missing, value=pads[n]) for n, t in inputs.items()}
    with torch.no_grad():
        out = model.double()(**full, output_attentions=True, output_hidden_states=True)
    expected = {name: out[name] for name in HEADS if name in out}
    for i, states in enumerate(out.hidden_states[: len(out.attentions)]):
        expected[f"hidden_states.{i}"] = states
        expected[f"attentions.{i}"] = out.attentions[i]
    for name, tensor in expected.items():
        axis = 2 if name.startswith("attentions") else 1
        if tensor.dim() > axis and tensor.shape[axis] == full["input_ids"].shape[1] != tokens:
            expected[name] = tensor.narrow(axis, 0, tokens)
    save(folder, model, seed, inputs, {n: t.float() for n, t in expected.items()})


def watch_hashing(expected, rotations):
    """Records what every LSH layer hashes with and into."""
    layers = modeling_reformer.LSHSelfAttention
    plain = layers._hash_vectors

    def hash_vectors(self, vectors, num_hashes, attention_mask, increase_num_buckets=False):
        drawn = []

        def randn(*args, **kwargs):
            drawn.append(float32_randn(*args, **kwargs))
            return drawn[-1]

        torch.randn = randn
        buckets = plain(self, vectors, num_hashes, attention_mask, increase_num_buckets)
        torch.randn = plain_randn
        rotations[f"lsh_rotations.{self.layer_idx}"] = drawn[0].float().contiguous()
        shape = (*vectors.shape[:2], num_hashes, vectors.shape[2])
        expected[f"buckets.{self.layer_idx}"] = buckets.view(shape)
        return buckets

    layers._hash_vectors = hash_vectors
    return lambda: setattr(layers, "_hash_vectors", plain)


def reformer(folder, seed, head, layers, tokens, masked=True, rotations=True, **settings):
    """`rotations` off: the case leaves them to the configuration's hash_seed."""
    config = transformers.ReformerConfig(attn_layers=layers, **REFORMER | settings)
    family = getattr(transformers, "Reformer" + head)
    model, generator = new_model(folder, seed, family, config)
    inputs = token_inputs(config, generator, tokens, masked)
    buckets, drawn = {}, {}
    restore = watch_hashing(buckets, drawn)
    with torch.no_grad():
        out = model.double()(**inputs, output_hidden_states=True)
    restore()
    expected = {name: out[name].float() for name in HEADS if name in out}
    if hasattr(model, "lm_head"):  # versions before 5 add it, later ones keep it and do not
        expected["logits"] = expected["logits"] + model.lm_head.bias.float()
    for i, states in enumerate(out.hidden_states[: len(layers)]):
        expected[f"hidden_states.{i}"] = states[:, :tokens].float()
    if rotations:
        inputs |= drawn
    save(folder, model, seed, inputs, expected | buckets)


AXIAL = dict(axial_pos_shape=(5, 8), axial_pos_embds_dim=(5, 7))
TABLE = dict(axial_pos_embds=False)
CASES = {
    "nystromformer-shared": (nystromformer, 1, "Model", dict(num_landmarks=6)),
    "nystromformer-short": (
        nystromformer, 2, "ForMaskedLM", dict(num_landmarks=8, tokens=19, exact=True)
    ),
    "nystromformer-classes": (
        nystromformer, 3, "ForSequenceClassification", dict(num_landmarks=4, num_labels=3,
                                                            num_hidden_layers=1)
    ),
    "nystromformer-tokens": (
        nystromformer, 4, "ForTokenClassification", dict(num_landmarks=24, tokens=13, num_labels=3,
                                                         num_hidden_layers=1)
    ),
    "nystromformer-spans": (
        nystromformer, 5, "ForQuestionAnswering", dict(num_landmarks=12, conv_kernel_size=1,
                                                       num_hidden_layers=1)
    ),
    "reformer-seeded": (
        reformer, 1, "Model", dict(layers=["lsh", "local"], tokens=32, masked=False,
                                   rotations=False, num_hashes=3, **AXIAL)
    ),
    "reformer-causal": (
        reformer, 2, "ModelWithLMHead", dict(layers=["local", "lsh"], tokens=21, is_decoder=True,
                                             lsh_attn_chunk_length=6, num_buckets=[2, 4],
                                             num_hashes=2, **TABLE)
    ),
    "reformer-words": (
        reformer, 3, "ForMaskedLM", dict(layers=["lsh", "lsh"], tokens=23, num_buckets=6,
                                         lsh_num_chunks_after=1, lsh_num_chunks_before=2, **AXIAL)
    ),
    "reformer-classes": (
        reformer, 4, "ForSequenceClassification", dict(layers=["local", "local"], tokens=18,
                                                       local_num_chunks_after=1, num_labels=3,
                                                       hidden_act="gelu", **TABLE)
    ),
    "reformer-short": (
        reformer, 5, "ForQuestionAnswering", dict(layers=["lsh", "local"], tokens=7,
                                                  lsh_attn_chunk_length=8, **TABLE)
    ),
}


def main():
    for name in sys.argv[2:] or CASES:
        make, seed, head, settings = CASES[name]
        make(os.path.join(sys.argv[1], name), seed, head, **settings)
        print(name)


if __name__ == "__main__":
    main()
