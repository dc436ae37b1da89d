#!/usr/bin/env python3
"""Makes golden files of prompts with pictures.

    python3 tools/golden/picture_prompts_golden.py images OUTPUT.safetensors
    python3 tools/golden/picture_prompts_golden.py prompts FOLDER [NAME ...]

`images` makes tests/image/golden/prompt_images.safetensors: what the image processors of models that
read images make of small pictures. Tensors, by case n:
  config.<n>, picture.<n>           a preprocessor_config.json, and a picture (H, W, 3)
  values.<n>, grid.<n>, tiles.<n>   pixel_values, image_grid_thw, rows and columns of tiles

`prompts` makes tests/tasks/golden/prompts-NAME: small random models with tokenizers, templates and
image processors. expected.json has prompts, their ids by the family's processor, and the ids that transformers
generates in float64. The seed is raised until no step is close.

Needs torch, transformers, tokenizers and Pillow (their versions go into the files).
"""
import copy
import json
import os
import sys

import numpy as np
import PIL
import safetensors.numpy
import torch
import transformers as T
import transformers.models.paligemma.processing_paligemma as paligemma_module
import transformers.models.smolvlm.processing_smolvlm as smolvlm
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

from model_golden import in_double, randomize

RESIZE = Image.Image.resize
NEW_TOKENS, MARGIN, PICTURES = 8, 2e-3, 3


def columns_first(image, size, *args, **kwargs):
    """Pillow's resize up to version 12; version 13 takes the rows first where that is faster."""
    return RESIZE(RESIZE(image, (size[0], image.height), *args, **kwargs), size, *args, **kwargs)


def picture(width, height, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    ramp = np.stack([x * 200 // max(width, 1), y * 200 // max(height, 1), (x + y) % 256], -1)
    return np.clip(ramp + rng.integers(-60, 60, ramp.shape), 0, 255).astype(np.uint8)


TILES = {"size": {"longest_edge": 24}, "max_image_size": {"longest_edge": 8}}
PATCHES = {"patch_size": 3, "size": {"shortest_edge": 150, "longest_edge": 700}}
IMAGES = [
    (CLIPImageProcessorPil, {"size": {"shortest_edge": 9}, "crop_size": {"height": 9, "width": 9}}, (17, 12)),
    (SiglipImageProcessorPil, {"size": {"height": 8, "width": 8}}, (13, 21)),
    (Gemma3ImageProcessorPil, {"size": {"height": 8, "width": 8}}, (13, 21)),
    (Idefics3ImageProcessorPil, TILES, (50, 30)),
    (Idefics3ImageProcessorPil, TILES, (19, 41)),
    (SmolVLMImageProcessorPil, TILES, (16, 16)),
    (SmolVLMImageProcessorPil, TILES, (90, 2)),
    (Idefics3ImageProcessorPil, TILES | {"size": {"longest_edge": 7}}, (30, 20)),
    (Idefics3ImageProcessorPil, TILES | {"size": {"height": 9, "width": 23}, "resample": 3}, (30, 20)),
    (SmolVLMImageProcessorPil, TILES | {"do_image_splitting": False}, (33, 20)),
    (SmolVLMImageProcessorPil, TILES | {"do_resize": False, "do_normalize": False}, (17, 9)),
    (Qwen2VLImageProcessorPil, PATCHES, (20, 15)),
    (Qwen2VLImageProcessorPil, PATCHES, (5, 4)),
    (Qwen2VLImageProcessorPil, PATCHES, (60, 41)),
    (Qwen2VLImageProcessorPil, PATCHES | {"merge_size": 3, "temporal_patch_size": 1}, (22, 31)),
    (Qwen2VLImageProcessorPil, {"patch_size": 2, "min_pixels": 16, "max_pixels": 256,
                                "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, (10, 6)),
    (Qwen2VLImageProcessorPil, PATCHES | {"do_resize": False, "temporal_patch_size": 3}, (12, 18)),
    (Qwen2VLImageProcessorPil, PATCHES, (300, 2)),
]


def text(value):
    return np.frombuffer(json.dumps(value).encode(), np.uint8).copy()


def make_images(path):
    tensors = {}
    for n, (kind, settings, (width, height)) in enumerate(IMAGES):
        pixels = picture(width, height, n)
        processor = kind(**copy.deepcopy(settings))
        tiled = kind in (Idefics3ImageProcessorPil, SmolVLMImageProcessorPil)
        more = {"return_row_col_info": True} if tiled else {}
        made = processor(Image.fromarray(pixels), return_tensors="np", **more)
        config = settings | {"image_processor_type": kind.__name__.removesuffix("Pil")}
        tensors[f"config.{n}"] = text(config)
        tensors[f"picture.{n}"] = pixels
        tensors[f"values.{n}"] = np.ascontiguousarray(made["pixel_values"], np.float32)
        if "image_grid_thw" in made:
            tensors[f"grid.{n}"] = np.asarray(made["image_grid_thw"], np.int64)
        if tiled:
            tensors[f"tiles.{n}"] = np.array([made["rows"][0][0], made["cols"][0][0]], np.int64)
            assert "pixel_attention_mask" not in made or np.all(made["pixel_attention_mask"] == 1)
    safetensors.numpy.save_file(tensors, path, metadata=versions())


def versions():
    return {"transformers": T.__version__, "torch": torch.__version__, "pillow": PIL.__version__}


# --- Prompts.

TEXT = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, head_dim=8, max_position_embeddings=512, bos_token_id=1,
            eos_token_id=2, pad_token_id=0, tie_word_embeddings=True)
TOWER = dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
             image_size=12, patch_size=4, num_channels=3)
QWEN25 = dict(depth=3, hidden_size=16, num_heads=2, intermediate_size=20, patch_size=2,
              out_hidden_size=16, window_size=8, fullatt_block_indexes=[1])
QWEN3 = dict(depth=3, hidden_size=16, num_heads=2, intermediate_size=20, patch_size=2,
             out_hidden_size=16, num_position_embeddings=9, deepstack_visual_indexes=[0, 2])
MROPE = dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1])
SLIDES = dict(layer_types=["sliding_attention", "full_attention"], sliding_window=16,
              query_pre_attn_scalar=6)
PARTS = ("{% for p in m['content'] %}{% if p['type'] == 'image' %}IMAGE{% else %}{{ p['text'] }}"
         "{% endif %}{% endfor %}")
TALK = ("{% for m in messages %}{{ m['role'] | upper }}: " + PARTS + "\n{% endfor %}"
        "{% if add_generation_prompt %}ASSISTANT:{% endif %}")
START = "{{ bos_token }}"
TURNS = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n" + PARTS + "<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
TAGS = [f"<row_{i}_col_{j}>" for i in (1, 2, 3) for j in (1, 2, 3)]
TILED = ["<pad>", "<|im_start|>", "<end_of_utterance>", "<image>", "<fake_token_around_image>",
         "<global-img>"] + TAGS
QWEN_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
               "<|image_pad|>", "<|video_pad|>"]
QWEN_IDS = dict(image_token_id=5, video_token_id=6, vision_start_token_id=3, vision_end_token_id=4)
FRAMED = "<|vision_start|><|image_pad|><|vision_end|>"
SMALL = {"size": {"longest_edge": 24}, "max_image_size": {"longest_edge": 16}}


def tokenizer(special, start=None, **kwargs):
    """Bytes, and the special tokens; `start` is put before every text."""
    vocabulary = special + sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, []))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    if start is not None:
        engine.post_processor = processors.TemplateProcessing(
            single=f"{start} $A", pair=f"{start} $A $B", special_tokens=[(start, special.index(start))])
    return T.PreTrainedTokenizerFast(tokenizer_object=engine, pad_token=special[0], **kwargs)


def bare(kind, image_processor, words, **fields):
    """A processor whose constructor wants packages that are used for videos alone."""
    made = object.__new__(kind)
    made.image_processor, made.tokenizer = image_processor, words
    made.video_processor = made.chat_template = None
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def llava():
    words = tokenizer(["<pad>", "<s>", "</s>", "<image>"], "<s>", bos_token="<s>", eos_token="</s>")
    images = CLIPImageProcessorPil(size={"shortest_edge": 12}, crop_size={"height": 12, "width": 12})
    return T.LlavaProcessor(images, words, patch_size=4, vision_feature_select_strategy="default",
                            num_additional_image_tokens=1)


def paligemma():
    images = SiglipImageProcessorPil(size={"height": 12, "width": 12})
    images.image_seq_length = 9
    paligemma_module.EXTRA_TOKENS = []  # places and segments, which small models do without
    words = tokenizer(["<pad>", "<eos>", "<bos>", "<image>"], bos_token="<bos>", eos_token="<eos>",
                      extra_special_tokens={"image_token": "<image>"})
    return T.PaliGemmaProcessor(images, words)


def gemma3():
    words = tokenizer(["<pad>", "<eos>", "<bos>", "<start_of_image>", "<end_of_image>",
                       "<image_soft_token>"], "<bos>", bos_token="<bos>", eos_token="<eos>",
                      extra_special_tokens={"image_token": "<image_soft_token>",
                                            "boi_token": "<start_of_image>",
                                            "eoi_token": "<end_of_image>"})
    return T.Gemma3Processor(Gemma3ImageProcessorPil(size={"height": 12, "width": 12}), words,
                             image_seq_length=4)


def idefics3():
    words = tokenizer(TILED, bos_token="<|im_start|>", eos_token="<end_of_utterance>")
    return T.Idefics3Processor(Idefics3ImageProcessorPil(**copy.deepcopy(SMALL)), words, image_seq_len=4)


def smolvlm_processor():
    words = tokenizer(TILED, bos_token="<|im_start|>", eos_token="<end_of_utterance>")
    smolvlm.num2words = str
    return bare(smolvlm.SmolVLMProcessor, SmolVLMImageProcessorPil(**copy.deepcopy(SMALL)), words,
                fake_image_token="<fake_token_around_image>", image_token="<image>",
                image_token_id=TILED.index("<image>"), global_image_token="<global-img>",
                image_seq_len=4, video_token="<video>")


def qwen(kind):
    words = tokenizer(QWEN_TOKENS, eos_token="<|im_end|>")
    images = Qwen2VLImageProcessorPil(patch_size=2, size={"shortest_edge": 64, "longest_edge": 160})
    return bare(kind, images, words, image_token="<|image_pad|>", video_token="<|video_pad|>",
                image_token_id=5, video_token_id=6)


# Class, configuration, processor, placeholder, what a text without placeholders gets before it (for
# each picture), chat template, the file that holds it.
CASES = {
    "llava": ("LlavaForConditionalGeneration", {
        "text_config": dict(TEXT, model_type="llama"), "image_token_index": 3,
        "vision_config": dict(TOWER, model_type="clip_vision_model")},
        llava, "<image>", "<image>", TALK, "chat_template.json"),
    "paligemma": ("PaliGemmaForConditionalGeneration", {
        "text_config": dict(TEXT, model_type="gemma", bos_token_id=2, eos_token_id=1),
        "image_token_index": 3, "projection_dim": 16, "hidden_size": 16, "bos_token_id": 2,
        "eos_token_id": 1,
        "vision_config": dict(TOWER, model_type="siglip_vision_model", vision_use_head=False)},
        paligemma, "<image>", "<image>", None, None),
    "gemma3": ("Gemma3ForConditionalGeneration", {
        "text_config": dict(TEXT, model_type="gemma3_text", **SLIDES), "image_token_index": 5,
        "boi_token_index": 3, "eoi_token_index": 4, "mm_tokens_per_image": 4,
        "vision_config": dict(TOWER, model_type="siglip_vision_model", patch_size=3,
                              vision_use_head=False)},
        gemma3, "<start_of_image>", "<start_of_image>", START + TALK, "chat_template.jinja"),
    "idefics3": ("Idefics3ForConditionalGeneration", {
        "text_config": dict(TEXT, model_type="llama"), "image_token_id": 3, "pad_token_id": 0,
        "vision_config": dict(TOWER, model_type="idefics3_vision", image_size=16)},
        idefics3, "<image>", "<image>", "<|im_start|>" + TALK, "chat_template.json"),
    "smolvlm": ("SmolVLMForConditionalGeneration", {
        "text_config": dict(TEXT, model_type="llama"), "image_token_id": 3, "pad_token_id": 0,
        "vision_config": dict(TOWER, model_type="smolvlm_vision", image_size=16)},
        smolvlm_processor, "<image>", "<image>", "<|im_start|>" + TALK, "chat_template.json"),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", dict(
        text_config=dict(TEXT, model_type="qwen2_5_vl_text", rope_parameters=MROPE),
        vision_config=QWEN25, tie_word_embeddings=True, **QWEN_IDS),
        lambda: qwen(T.Qwen2_5_VLProcessor), "<|image_pad|>", FRAMED, TURNS, "tokenizer_config.json"),
    "qwen3_vl": ("Qwen3VLForConditionalGeneration", dict(
        text_config=dict(TEXT, model_type="qwen3_vl_text",
                         rope_parameters=dict(MROPE, mrope_interleaved=True)),
        vision_config=QWEN3, tie_word_embeddings=True, **QWEN_IDS),
        lambda: qwen(T.Qwen3VLProcessor), "<|image_pad|>", FRAMED, TURNS, "chat_template.json"),
}


def ask(processor, pictures, words):
    """Inputs of the model; a start token that the text has is not added again."""
    start = processor.tokenizer.bos_token
    more = {"add_special_tokens": False} if start and words.startswith(start) else {}
    inputs = processor(images=[pictures], text=[words], return_tensors="pt", **more)
    inputs.pop("labels", None)
    return dict(inputs)


def close_call(model, inputs):
    """The smallest distance of a chosen token's score from the next best one."""
    scores = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False,
                            return_dict_in_generate=True, output_logits=True).logits
    return min(float(-torch.diff(torch.topk(step[0], 2).values)) for step in scores)


def answer(model, processor, pictures, words):
    inputs = in_double(ask(processor, pictures, words))
    ids = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False)[0].tolist()
    given = inputs["input_ids"][0].tolist()
    new = ids[len(given):]
    return {"ids": given, "generated": new,
            "answer": processor.tokenizer.decode(new, skip_special_tokens=True)}, \
        close_call(model, inputs)


def prompts_of(case, processor):
    """Text, pictures, what the processor is given for it, whether a chat message."""
    _, _, _, placeholder, before, template, _ = case
    made = [("What is this?", [0], before + "What is this?", False),
            ("Two of them.", [1, 2], before * 2 + "Two of them.", False),
            (f"One {placeholder} and {placeholder} more", [2, 0], None, False)]
    if template is not None:
        content = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
        said = processor.tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], chat_template=template, tokenize=False,
            add_generation_prompt=True)
        made.append(("What is this?", [0], said, True))
    return made


def make_prompts(folder, name, pictures):
    case = CASES[name]
    class_name, config_keys, make_processor, _, before, template, template_file = case
    if template is not None:
        template = template.replace("IMAGE", before)
        case = case[:5] + (template,) + case[6:]
    processor = make_processor()
    kind = getattr(T, class_name)
    for seed in range(1, 200):
        keys = copy.deepcopy(config_keys)
        keys["text_config"]["vocab_size"] = len(processor.tokenizer)
        config = kind.config_class(**keys)
        torch.manual_seed(seed)
        model = kind(config).eval()
        randomize(model, torch.Generator().manual_seed(seed))
        model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
        model = model.double()
        entries, closest = [], 1.0
        for words, numbers, given, chat in prompts_of(case, processor):
            shown = [pictures[i] for i in numbers]
            found, margin = answer(model, processor, shown, words if given is None else given)
            closest = min(closest, margin)
            entries.append({"text": words, "pictures": [f"picture-{i}.png" for i in numbers],
                            "prompt": given, "chat": chat} | found)
        if closest > MARGIN and any(len(entry["generated"]) == NEW_TOKENS for entry in entries):
            break
    else:
        raise SystemExit(f"{name}: every seed has a close call")
    path = os.path.join(folder, "prompts-" + name)
    os.makedirs(path, exist_ok=True)
    model.float().save_pretrained(path)
    processor.tokenizer.save_pretrained(path)
    settings = processor.image_processor.to_dict()
    settings["image_processor_type"] = type(processor.image_processor).__name__.removesuffix("Pil")
    write(path, "preprocessor_config.json", settings)
    if template_file == "chat_template.jinja":
        with open(os.path.join(path, template_file), "w", encoding="utf-8") as file:
            file.write(template)
    elif template is not None:
        content = {}
        if template_file == "tokenizer_config.json":
            with open(os.path.join(path, template_file), encoding="utf-8") as file:
                content = json.load(file)
        write(path, template_file, content | {"chat_template": template})
    write(path, "expected.json", {"prompts": entries, "seed": seed} | versions())


def write(path, name, content):
    with open(os.path.join(path, name), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, ensure_ascii=False, default=lambda v: dict(v))
        file.write("\n")


def main():
    Image.Image.resize = columns_first
    if sys.argv[1] == "images":
        return make_images(sys.argv[2])
    folder = sys.argv[2]
    pictures = [Image.open(os.path.join(folder, f"picture-{i}.png")).convert("RGB")
                for i in range(PICTURES)]
    for name in sys.argv[3:] or CASES:
        make_prompts(folder, name, pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
