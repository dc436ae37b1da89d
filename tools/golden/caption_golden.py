#!/usr/bin/env python3
"""Makes golden cases of BLIP: a small random model, pictures with tokens of captions, and what
transformers computes of them in float64.

    python3 tools/golden/caption_golden.py FOLDER            the cases listed below
    python3 tools/golden/caption_golden.py FOLDER NAME ...   some of them
    python3 tools/golden/caption_golden.py FOLDER NAME SEED JSON

JSON has {"text", "vision", "masked"}; the seed is raised until the generated ids survive noise on
every score (model_golden.py).
"""
import copy
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

from model_golden import NOISE, TOLERANCE, TRIALS, Noise, in_double, lists_of, randomize

START, END, PAD, VOCAB, NEW_TOKENS, TARGET = 1, 2, 0, 40, 12, 6
TEXT = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
            num_attention_heads=2, max_position_embeddings=24, bos_token_id=START,
            eos_token_id=END, sep_token_id=END, pad_token_id=PAD)
VISION = dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
              image_size=12, patch_size=4)

CASES = {
    "blip-base": (1, {"masked": 2}),
    # An untied head, stacks of equal width, other activations and epsilons.
    "blip-untied": (2, {
        "text": dict(hidden_size=24, num_attention_heads=4, num_hidden_layers=1,
                     hidden_act="relu", layer_norm_eps=1e-2, tie_word_embeddings=False),
        "vision": dict(hidden_size=24, num_hidden_layers=3, hidden_act="quick_gelu",
                       layer_norm_eps=1e-2, patch_size=5, image_size=20)}),
}


def make_model(seed, given):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    text = TEXT | given.get("text", {})
    tied = text.get("tie_word_embeddings", True)
    config = transformers.BlipConfig(text_config=text, vision_config=VISION | given.get("vision", {}),
                                     tie_word_embeddings=tied)
    config._attn_implementation = "eager"
    model = transformers.BlipForConditionalGeneration(config).eval()
    randomize(model, generator)
    for name in ("class_embedding", "position_embedding"):
        value = getattr(model.vision_model.embeddings, name)
        value.data = 0.7 * torch.randn(value.shape, generator=generator)
    model.tie_weights()
    return model, generator


def make_inputs(model, generator, masked):
    config = model.config
    size = config.vision_config.image_size
    ids = torch.randint(4, config.text_config.vocab_size, (2, TARGET), generator=generator)
    inputs = {"pixel_values": torch.randn(2, 3, size, size, generator=generator), "input_ids": ids}
    if masked:
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][1, -masked:] = 0
    return inputs


def forward(model, inputs):
    with torch.no_grad():
        out = copy.deepcopy(model)(**in_double(inputs), output_hidden_states=True,
                                   output_attentions=True)
    # The lists are those of the picture, the states of its encoder.
    expected = {name: out[name] for name in ("logits", "image_embeds", "last_hidden_state")}
    expected |= lists_of(out)
    made = {name: tensor.float().contiguous().clone() for name, tensor in expected.items()}
    if "attention_mask" in inputs:
        made["mask.logits"] = inputs["attention_mask"][:, :, None].to(torch.uint8).contiguous()
    return made


def search(model, pixels, beams, noise):
    fresh = copy.deepcopy(model)
    return fresh.generate(
        pixels.double(), num_beams=beams, max_new_tokens=NEW_TOKENS, do_sample=False,
        length_penalty=1.0, early_stopping=False, return_dict_in_generate=True, output_scores=True,
        logits_processor=[] if noise is None else [Noise(noise)])


def generate(model, inputs):
    """Each picture alone; None where noise would change an id."""
    expected = {"beam4_scores": []}
    for name, beams in (("greedy_ids", 1), ("beam4_ids", 4)):
        rows = torch.full((2, 1 + NEW_TOKENS), PAD)
        for i in range(2):
            pixels = inputs["pixel_values"][i : i + 1]
            out = search(model, pixels, beams, None)
            for noise in range(TRIALS):
                if not torch.equal(search(model, pixels, beams, noise).sequences, out.sequences):
                    return None
            rows[i, : out.sequences.shape[1]] = out.sequences[0]
            if beams > 1:
                expected["beam4_scores"].append(out.sequences_scores[0].float())
        expected[name] = rows
    expected["beam4_scores"] = torch.stack(expected["beam4_scores"])
    return expected


def make_case(folder, name, seed, given):
    while True:
        model, generator = make_model(seed, given)
        stored = copy.deepcopy(model)
        model = model.double()
        inputs = make_inputs(model, generator, given.get("masked", 0))
        expected = forward(model, inputs)
        generated = generate(model, inputs)
        if generated is not None:
            break
        seed += 1
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    stored.save_pretrained(os.path.join(path, "model"))
    safetensors.torch.save_file({n: t.contiguous() for n, t in inputs.items()},
                                os.path.join(path, "inputs.safetensors"))
    safetensors.torch.save_file(expected | generated, os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family="blip", head="BlipForConditionalGeneration", seed=seed,
                 tolerance=dict(abs=TOLERANCE, rel=TOLERANCE), optional=["hidden_states.*"])
    facts["generation"] = dict(prompt_length=1, max_new_tokens=NEW_TOKENS, num_beams=4,
                               length_penalty=1.0, early_stopping=False, eos_token_id=END,
                               pad_token_id=PAD, decoder_start_token_id=START)
    facts |= dict(computed_in="float64, stored as float32", torch_version=torch.__version__,
                  transformers_version=transformers.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "seed", seed)


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    folder, names = arguments[0], arguments[1:]
    if len(names) == 3 and names[1].isdigit():
        make_case(folder, names[0], int(names[1]), json.loads(names[2]))
        return
    for name in names or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
