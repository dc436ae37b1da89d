#!/usr/bin/env python3
"""Makes golden cases of language models that read images. They have a small random model, prompts with image tokens and
one image each. They have what transformers computes of them in float64.

    python3 tools/golden/picture_language_golden.py FOLDER           the cases listed below
    python3 tools/golden/picture_language_golden.py FOLDER NAME ...  some of them
    python3 tools/golden/picture_language_golden.py FOLDER NAME SEED JSON

JSON has {"class", "config", "images"}; `images` lists for each row the images' sizes in pixels. The
seed is raised until the generated ids survive noise on every score (model_golden.py).
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

IMAGE, START, PAD, EOS, VOCAB, NEW_TOKENS = 39, 37, 0, 4, 40, 8
TEXT = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=64,
            bos_token_id=1, eos_token_id=2, pad_token_id=PAD)
TOWER = dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
             image_size=12, patch_size=4, num_channels=3)
QWEN25 = dict(depth=3, hidden_size=16, num_heads=2, intermediate_size=20, patch_size=2,
              out_hidden_size=16, window_size=8, fullatt_block_indexes=[1])
QWEN3 = dict(depth=3, hidden_size=16, num_heads=2, intermediate_size=20, patch_size=2,
             out_hidden_size=16, num_position_embeddings=9, deepstack_visual_indexes=[0, 2])
MROPE = dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1])
SLIDES = dict(layer_types=["sliding_attention", "full_attention"], sliding_window=4,
              query_pre_attn_scalar=6)

CASES = {
    "llava-tiny": ("LlavaForConditionalGeneration", 1, {
        "text_config": dict(TEXT, model_type="llama"), "image_token_index": IMAGE,
        "vision_config": dict(TOWER, model_type="clip_vision_model")}),
    "paligemma-tiny": ("PaliGemmaForConditionalGeneration", 2, {
        "text_config": dict(TEXT, model_type="gemma"), "image_token_index": IMAGE,
        "projection_dim": 16, "hidden_size": 16,
        "vision_config": dict(TOWER, model_type="siglip_vision_model", vision_use_head=False)}),
    "gemma3-tiny": ("Gemma3ForConditionalGeneration", 3, {
        "text_config": dict(TEXT, model_type="gemma3_text", **SLIDES), "image_token_index": IMAGE,
        "mm_tokens_per_image": 4,
        "vision_config": dict(TOWER, model_type="siglip_vision_model", patch_size=3,
                              vision_use_head=False)}),
    "idefics3-tiny": ("Idefics3ForConditionalGeneration", 4, {
        "text_config": dict(TEXT, model_type="llama"), "image_token_id": IMAGE,
        "pad_token_id": PAD, "vision_config": dict(TOWER, model_type="idefics3_vision", image_size=16)}),
    "smolvlm-tiny": ("SmolVLMForConditionalGeneration", 5, {
        "text_config": dict(TEXT, model_type="llama"), "image_token_id": IMAGE,
        "pad_token_id": PAD, "vision_config": dict(TOWER, model_type="smolvlm_vision", image_size=16)}),
    "qwen2_5_vl-tiny": ("Qwen2_5_VLForConditionalGeneration", 6, {
        "text_config": dict(TEXT, model_type="qwen2_5_vl_text", rope_parameters=MROPE),
        "image_token_id": IMAGE, "video_token_id": IMAGE - 1, "vision_start_token_id": START,
        "vision_end_token_id": START - 1, "vision_config": QWEN25}),
    "qwen3_vl-tiny": ("Qwen3VLForConditionalGeneration", 7, {
        "text_config": dict(TEXT, model_type="qwen3_vl_text",
                            rope_parameters=dict(MROPE, mrope_interleaved=True)),
        "image_token_id": IMAGE, "video_token_id": IMAGE - 1, "vision_start_token_id": START,
        "vision_end_token_id": START - 1, "vision_config": QWEN3}),
}


def tokens_of(config, size):
    """Image tokens of one image of that height and width."""
    vision, kind = config.vision_config, config.model_type
    height, width = size
    if kind.startswith("qwen"):
        return height * width // (vision.patch_size * vision.spatial_merge_size) ** 2
    patches = (height // vision.patch_size) * (width // vision.patch_size)
    if kind in ("idefics3", "smolvlm"):
        return patches // config.scale_factor ** 2
    if kind == "gemma3":
        return config.mm_tokens_per_image
    if kind == "llava" and config.vision_feature_select_strategy == "full":
        patches += vision.model_type == "clip_vision_model"
    elif kind == "llava" and vision.model_type != "clip_vision_model":
        patches -= 1
    return patches


def sizes_of(config, images):
    if images is not None:
        return [[tuple(size) for size in row] for row in images]
    if config.model_type.startswith("qwen"):
        return [[(12, 8)], [(8, 4)]]
    size = config.vision_config.image_size
    return [[(size, size)], [(size, size)]]


def pictures(config, rows, generator):
    """Inputs of the tower."""
    flat = [size for row in rows for size in row]
    vision, kind = config.vision_config, config.model_type
    if kind.startswith("qwen"):
        p = vision.patch_size
        grids = torch.tensor([[1, h // p, w // p] for h, w in flat])
        patches = int(grids.prod(-1).sum())
        width = vision.in_channels * vision.temporal_patch_size * p * p
        return {"pixel_values": torch.randn(patches, width, generator=generator),
                "image_grid_thw": grids}
    if kind in ("idefics3", "smolvlm"):
        most = max(len(row) for row in rows)
        values = torch.zeros(len(rows), most, 3, *flat[0])
        for b, row in enumerate(rows):
            values[b, :len(row)] = torch.randn(len(row), 3, *flat[0], generator=generator)
        return {"pixel_values": values}
    return {"pixel_values": torch.randn(len(flat), 3, *flat[0], generator=generator)}


def prompts(config, rows, generator):
    made = []
    for i, row in enumerate(rows):
        ids = torch.randint(5, START - 1, (3 - 2 * i,), generator=generator).tolist()
        for size in row:
            ids += [START] + [IMAGE] * tokens_of(config, size)
            ids += torch.randint(5, START - 1, (2,), generator=generator).tolist()
        made.append(ids + torch.randint(5, START - 1, (2,), generator=generator).tolist())
    return made


def padded(rows, left):
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), PAD)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        at = slice(width - len(row), width) if left else slice(0, len(row))
        ids[i, at] = torch.tensor(row)
        mask[i, at] = 1
    return ids, mask


def with_types(config, inputs):
    kind = config.model_type
    if kind == "paligemma":
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    elif kind == "gemma3":
        inputs["token_type_ids"] = (inputs["input_ids"] == IMAGE).long()
    elif kind.startswith("qwen"):
        inputs["mm_token_type_ids"] = (inputs["input_ids"] == IMAGE).long()
    return inputs


def forward(model, inputs):
    with torch.no_grad():
        out = copy.deepcopy(model)(**in_double(inputs), output_hidden_states=True,
                                   output_attentions=True)
        base = copy.deepcopy(model.model)(**in_double(inputs))
    expected = {"logits": out.logits, "last_hidden_state": base.last_hidden_state}
    if out.get("image_hidden_states") is not None:
        expected["image_hidden_states"] = out.image_hidden_states
    expected |= lists_of(out)
    mask = inputs["attention_mask"]
    for name in list(expected):
        if name == "image_hidden_states":
            continue
        rows = mask[:, None, :, None] if "attentions" in name else mask[:, :, None]
        expected["mask." + name] = rows.to(torch.uint8)
    return {n: (t if t.dtype == torch.uint8 else t.float()).contiguous().clone()
            for n, t in expected.items()}


def search(model, inputs, beams, noise):
    fresh = copy.deepcopy(model)
    fresh.generation_config = transformers.GenerationConfig(
        num_beams=beams, max_new_tokens=NEW_TOKENS, do_sample=False, return_dict_in_generate=True,
        output_scores=True, length_penalty=1.0, early_stopping=False, bos_token_id=1,
        eos_token_id=EOS, pad_token_id=PAD, bad_words_ids=[[IMAGE], [IMAGE - 1]])
    return fresh.generate(**in_double(inputs),
                          logits_processor=[] if noise is None else [Noise(noise)])


def generate(model, config, rows, images, single):
    """Each row alone, without padding; None where noise would change an id."""
    width = max(len(row) for row in rows)
    expected = {"beam4_scores": []}
    for name, beams in (("greedy_ids", 1), ("beam4_ids", 4)):
        made = []
        for row, own in zip(rows, single):
            ids, mask = padded([row], True)
            inputs = with_types(config, {"input_ids": ids, "attention_mask": mask} | own)
            out = search(model, inputs, beams, None)
            for noise in range(TRIALS):
                if not torch.equal(search(model, inputs, beams, noise).sequences, out.sequences):
                    return None
            made.append([PAD] * (width - len(row)) + out.sequences[0].tolist())
            if beams > 1:
                expected["beam4_scores"].append(out.sequences_scores[0].float())
        expected[name] = padded(made, False)[0]
    expected["beam4_scores"] = torch.stack(expected["beam4_scores"])
    return expected


def one_by_one(config, inputs, rows):
    """Tower inputs of each row."""
    parts, image, patch = [], 0, 0
    for b, row in enumerate(rows):
        if "image_grid_thw" in inputs:
            grids = inputs["image_grid_thw"][image:image + len(row)]
            count = int(grids.prod(-1).sum())
            parts.append({"pixel_values": inputs["pixel_values"][patch:patch + count],
                          "image_grid_thw": grids})
            patch += count
        elif config.model_type in ("idefics3", "smolvlm"):
            parts.append({"pixel_values": inputs["pixel_values"][b:b + 1, :len(row)]})
        else:
            parts.append({"pixel_values": inputs["pixel_values"][image:image + len(row)]})
        image += len(row)
    return parts


def attempt(folder, name, family, seed, keys, images):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    config = family.config_class(**copy.deepcopy(keys))
    config._attn_implementation = "eager"
    model = family(config).eval()
    randomize(model, generator)
    model.float()
    sizes = sizes_of(config, images)
    tower = pictures(config, sizes, generator)
    rows = prompts(config, sizes, generator)
    ids, mask = padded([row + [7, 8] for row in rows], False)
    inputs = with_types(config, {"input_ids": ids, "attention_mask": mask} | tower)
    double = copy.deepcopy(model).double()
    expected = forward(double, inputs)
    found = generate(double, config, rows, sizes, one_by_one(config, tower, sizes))
    if found is None:
        return False
    start = with_types(config, dict(zip(("input_ids", "attention_mask"), padded(rows, True))))
    inputs |= {"generate." + n: t for n, t in start.items()}
    out = os.path.join(folder, name)
    shutil.rmtree(out, ignore_errors=True)
    model.generation_config = transformers.GenerationConfig(eos_token_id=EOS, pad_token_id=PAD)
    model.save_pretrained(os.path.join(out, "model"))
    save = safetensors.torch.save_file
    save({n: t.contiguous() for n, t in inputs.items()}, os.path.join(out, "inputs.safetensors"))
    save({n: t.contiguous() for n, t in (expected | found).items()},
         os.path.join(out, "expected.safetensors"))
    facts = {"name": name, "family": config.model_type, "seed": seed,
             "tolerance": {"abs": TOLERANCE, "rel": TOLERANCE},
             "generation": {"prompt_length": max(len(row) for row in rows),
                            "max_new_tokens": NEW_TOKENS, "num_beams": 4, "length_penalty": 1.0,
                            "early_stopping": False, "eos_token_id": EOS, "pad_token_id": PAD,
                            "bad_words_ids": [[IMAGE], [IMAGE - 1]]},
             "transformers_version": transformers.__version__,
             "torch_version": torch.__version__}
    with open(os.path.join(out, "case.json"), "w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")
    return True


def make(folder, name, class_name, seed, keys, images=None):
    family = getattr(transformers, class_name)
    for tried in range(seed, seed + 4000, 100):
        if attempt(folder, name, family, tried, keys, images):
            print(name, "seed", tried)
            return
    sys.exit(f"{name}: no seed survives noise of {NOISE}")


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    if len(names) == 3 and names[2].startswith("{"):
        given = json.loads(names[2])
        make(folder, names[0], given["class"], int(names[1]), given["config"], given.get("images"))
        return
    for name in names or CASES:
        make(folder, name, *CASES[name])





if __name__ == "__main__":
    main()
