#!/usr/bin/env python3
"""Makes a golden case of any model class of transformers. It has a small random model from a configuration and a seed,
its inputs, and what transformers computes of them in float64.

    python3 tools/golden/model_golden.py FOLDER                      the cases listed below
    python3 tools/golden/model_golden.py FOLDER NAME ...             some of them
    python3 tools/golden/model_golden.py FOLDER NAME CLASS SEED [CONFIG] [--left]

CLASS is a class such as OPTForCausalLM, CONFIG a JSON object of configuration keys; sizes that it
does not give are small ones. --left pads tokens on the left instead of the right. The seed of a
model that generates is raised until its ids survive noise of 5e-4 on every score.

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders.
"""
import copy
import importlib
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

# Sizes, where a configuration has such a key.
SIZES = dict(
    hidden_size=16, d_model=16, n_embd=16, dim=16, embedding_size=12, word_embed_proj_dim=16,
    num_hidden_layers=2, num_layers=2, num_decoder_layers=2, n_layer=2, n_layers=2,
    encoder_layers=2, decoder_layers=2, num_attention_heads=2, num_heads=2, n_head=2, n_heads=2,
    encoder_attention_heads=2, decoder_attention_heads=2, num_key_value_heads=2, d_kv=6,
    intermediate_size=20, ffn_dim=20, d_ff=20, hidden_dim=20, encoder_ffn_dim=20,
    decoder_ffn_dim=20, vocab_size=40, max_position_embeddings=32, n_positions=32,
    image_size=12, patch_size=4, max_source_positions=12, max_target_positions=32, num_mel_bins=6,
    encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=2,
    decoder_num_attention_heads=2, max_text_positions=32, encoder_max_relative_position=4,
    conv_dim=[6, 8], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
    num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
)
TOKENS = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)
SOURCE, TARGET, PROMPT, PADDING, NEW_TOKENS = 9, 6, 7, 2, 12
FIRST = 4  # ids below are special
TOLERANCE, NOISE, TRIALS = 5e-5, 5e-4, 3

# Some models ask for a softmax in float32 whatever they compute in.
plain_softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=None, dtype=None, **_: plain_softmax(x, dim=dim)


def make_config(family, given):
    plain = family.config_class().to_dict()
    keys = {k: v for k, v in (SIZES | TOKENS).items() if k in plain}
    if isinstance(plain.get("num_heads"), list):
        keys.pop("num_heads")
    # Embeddings as wide as the layers, unless the case says otherwise.
    if "word_embed_proj_dim" in keys:
        keys["word_embed_proj_dim"] = given.get("hidden_size", SIZES["hidden_size"])
    return family.config_class(**(keys | TOKENS | given))


def randomize(model, generator):
    """Every bias, gain and embedding row is random, so that a forgotten one shows."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 0:
            pass
        elif parameter.dim() == 1:
            gain = "norm" in name.lower() or ".ln_" in name
            values = 0.3 * values + (1 if gain and name.endswith("weight") else 0)
        elif "emb" in name or "wte" in name or "wpe" in name or "shared" in name:
            values = 0.7 * values
        elif parameter.dim() == 3 and ".experts." in name:  # (X, N, K), or (X, K, N)
            transposed = "gpt_oss" in type(model).__module__
            values = 1.5 * values / parameter.shape[1 if transposed else 2] ** 0.5
        elif name.startswith(("neck.", "head.conv")):  # residual convolutions, without norms
            values = 0.6 * values / parameter[0].numel() ** 0.5
        else:
            values = 1.5 * values / parameter[0].numel() ** 0.5
        parameter.data = values
    for name, buffer in model.named_buffers():
        if name.endswith(("normalization.weight", "normalization.bias")):  # frozen
            buffer.normal_(0.4 * name.endswith("weight"), 0.1, generator=generator)
        if name.endswith("running_mean"):
            buffer.normal_(0, 0.5, generator=generator)
        if name.endswith("running_var"):
            buffer.uniform_(0.3, 2, generator=generator)
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0, 0.2, generator=generator)


def token_inputs(config, generator, left):
    ids = torch.randint(FIRST, config.vocab_size, (2, SOURCE), generator=generator)
    mask = torch.ones_like(ids)
    if left:
        mask[1, :PADDING] = 0
    else:
        mask[1, -PADDING:] = 0
    return {"input_ids": ids.masked_fill(mask == 0, config.pad_token_id), "attention_mask": mask}


def wave_inputs(config, sizes, generator):
    """Samples, and a mask of the last ones of row 1 where the sizes say so."""
    samples, masked = sizes
    inputs = {"input_values": torch.randn(2, samples, generator=generator)}
    if masked:
        inputs["attention_mask"] = torch.ones(2, samples, dtype=torch.int64)
        inputs["attention_mask"][1, -masked:] = 0
    if config.is_encoder_decoder:
        ids = torch.randint(FIRST, config.vocab_size, (2, TARGET), generator=generator)
        inputs["decoder_input_ids"] = ids
    return inputs


def make_inputs(model, generator, left, types, picture):
    config = model.config
    if model.main_input_name == "input_values":
        return wave_inputs(config, picture, generator)
    if config.model_type == "sam":
        return prompted_inputs(config, generator)
    if hasattr(config, "num_patches"):
        return patch_inputs(config, generator)
    if hasattr(config, "text_config") and hasattr(config, "vision_config"):
        text = config.text_config
        shape = (3, text.max_position_embeddings)
        ids = torch.randint(FIRST, text.vocab_size, shape, generator=generator)
        return {"input_ids": ids} | patch_inputs(config.vision_config, generator)
    if model.main_input_name == "pixel_values":
        size = getattr(config, "image_size", SIZES["image_size"])
        height, width = picture or (size, size)
        channels = getattr(config, "num_channels", 3)
        inputs = {"pixel_values": torch.randn(2, channels, height, width, generator=generator)}
        if config.model_type == "detr" and config.position_embedding_type == "learned":
            inputs["pixel_mask"] = torch.ones(2, height, width, dtype=torch.int64)
            inputs["pixel_mask"][1, height * 2 // 3:, :] = 0
            inputs["pixel_mask"][1, :, width // 2:] = 0
        return inputs
    if model.main_input_name == "input_features":
        shape = (2, config.num_mel_bins, 2 * config.max_source_positions)
        inputs = {"input_features": torch.randn(shape, generator=generator)}
    else:
        inputs = token_inputs(config, generator, left)
        if types:
            shape = inputs["input_ids"].shape
            inputs["token_type_ids"] = torch.randint(0, types, shape, generator=generator)
        if hasattr(config, "max_2d_position_embeddings"):
            inputs["bbox"] = boxes(config, inputs["input_ids"].shape, generator)
        if hasattr(config, "visual_embed"):
            shape = (2, config.num_channels, config.input_size, config.input_size)
            inputs["pixel_values"] = torch.randn(shape, generator=generator)
    if config.is_encoder_decoder and not type(model).__name__.endswith("EncoderModel"):
        ids = torch.randint(FIRST, config.vocab_size, (2, TARGET), generator=generator)
        inputs["decoder_input_ids"] = ids
    return inputs


def prompted_inputs(config, generator):
    """A picture with points, or with boxes and a mask where the layers have no relative positions."""
    size, prompts = config.vision_config.image_size, 2
    inputs = {"pixel_values": torch.randn(2, 3, size, size, generator=generator)}
    if config.vision_config.use_rel_pos:
        inputs["input_points"] = size * torch.rand(2, prompts, 4, 2, generator=generator)
        inputs["input_labels"] = torch.tensor([[[1, 0, 1, -10], [0, 1, -1, 1]]] * 2)
        return inputs
    side = 4 * config.prompt_encoder_config.image_embedding_size
    inputs["input_points"] = size * torch.rand(2, prompts, 1, 2, generator=generator)
    inputs["input_boxes"] = size * torch.rand(2, prompts, 4, generator=generator)
    inputs["input_masks"] = torch.randn(2, 1, side, side, generator=generator)
    return inputs


def patch_inputs(config, generator):
    """Pictures of two proportions, in patches; the second one is padded."""
    grids = torch.tensor([[2, 5], [4, 2]])
    values = config.num_channels * config.patch_size ** 2
    mask = torch.ones(2, 10, dtype=torch.int64)
    mask[1, 8:] = 0
    pixels = torch.randn(2, 10, values, generator=generator) * mask[:, :, None]
    return {"pixel_values": pixels, "spatial_shapes": grids, "pixel_attention_mask": mask}


def boxes(config, shape, generator):
    """Left, top, right, bottom of every token, none of them inside out."""
    first, last = (torch.randint(0, config.max_2d_position_embeddings, (*shape, 2),
                                 generator=generator) for _ in range(2))
    return torch.cat([torch.minimum(first, last), torch.maximum(first, last)], dim=-1)


def in_double(inputs):
    return {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()}


def lists_of(out, config=None):
    """attentions.l and hidden_states.l, the input of layer l."""
    expected = {}
    for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"):
        layers = out.get(name) or ()
        # Layers that carry states have no map, and no place in the library's list.
        kinds = getattr(config, "layer_types", None) or ()
        attending = [i for i, kind in enumerate(kinds) if "attention" in kind and "linear" not in kind]
        if len(attending) != len(layers):
            attending = range(len(layers))
        expected |= {f"{name}.{i}": a for i, a in zip(attending, layers) if a is not None}
    for name in ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"):
        states = out.get(name) or ()
        expected |= {f"{name}.{i}": h for i, h in enumerate(states[:-1])}
    # RT-DETR's encoder has states of several sizes.
    if getattr(config, "model_type", None) == "rt_detr":
        expected = {name: t.flatten(3) if name.startswith("cross_") else t
                    for name, t in expected.items() if not name.startswith("encoder_hidden")}
    # The decoder of DETR begins with zeros, which no pass of ours computes.
    if getattr(config, "model_type", None) == "detr":
        expected.pop("decoder_hidden_states.0", None)
    return expected


def watch_sam(model):
    """Attention maps of SAM, and the states that its picture encoder's layers begin with, as passes fill them in. The
    library hands out no map of the mask decoder. Cross-attention counts those of all layers in their order: tokens to
    features, features to tokens, and the last one of tokens."""
    seen = {}

    def keep_map(module, name):
        heads = module.num_attention_heads

        def keep(_, __, output):
            maps = output[1]
            seen[name] = maps.reshape(-1, heads, *maps.shape[-2:])
        module.register_forward_hook(keep)

    def keep_states(module, name):
        def keep(_, arguments):
            seen[name] = arguments[0].flatten(1, 2)
        module.register_forward_pre_hook(keep)

    for i, layer in enumerate(model.vision_encoder.layers):
        keep_map(layer.attn, f"encoder_attentions.{i}")
        keep_states(layer, f"encoder_hidden_states.{i}")
    decoder = model.mask_decoder.transformer
    for i, layer in enumerate(decoder.layers):
        keep_map(layer.self_attn, f"decoder_attentions.{i}")
        keep_map(layer.cross_attn_token_to_image, f"cross_attentions.{2 * i}")
        keep_map(layer.cross_attn_image_to_token, f"cross_attentions.{2 * i + 1}")
    keep_map(decoder.final_attn_token_to_image, f"cross_attentions.{2 * len(decoder.layers)}")
    return seen


def watch_cvt(model):
    """Attention maps of CvT, numbered through all stages, as passes fill them in. The library hands out none. They are
    what its dropout gets."""
    seen = {}

    def keep_map(module, name):
        def keep(_, arguments):
            seen[name] = arguments[0]
        module.dropout.register_forward_pre_hook(keep)

    modules = [module for module in model.modules() if type(module).__name__ == "CvtSelfAttention"]
    for i, module in enumerate(modules):
        keep_map(module, f"attentions.{i}")
    return seen


WATCHED = {"sam": watch_sam, "cvt": watch_cvt}


def forward(model, inputs):
    wanted = {"output_hidden_states": True, "output_attentions": True}
    watched = copy.deepcopy(model)
    seen = {}
    if model.config.model_type in WATCHED:
        wanted = {}
        seen = WATCHED[model.config.model_type](watched)
    with torch.no_grad():
        out = watched(**in_double(inputs), **wanted)
    names = ("last_hidden_state", "encoder_last_hidden_state", "pooler_output", "logits",
             "text_embeds", "image_embeds", "logits_per_image", "logits_per_text",
             "start_logits", "end_logits", "pred_boxes", "predicted_depth", "pred_masks", "iou_scores")
    expected = {name: out[name] for name in names if torch.is_tensor(out.get(name))}
    expected |= lists_of(out, model.config) | seen
    if type(model).__name__.endswith("ForCausalLM"):
        with torch.no_grad():
            base = copy.deepcopy(model.base_model)(**in_double(inputs))
        expected["last_hidden_state"] = base.last_hidden_state
    expected = {name: tensor.float().contiguous() for name, tensor in expected.items()}
    return expected | masks_of(model, inputs, expected)


def masks_of(model, inputs, expected):
    """The rows that belong to tokens; those of padding are not compared."""
    if "attention_mask" not in inputs:
        return {}
    tokens = inputs["attention_mask"]
    if "input_values" in inputs:  # the samples that Moonshine's frames begin with
        frames = expected["encoder_last_hidden_state"].shape[1]
        tokens = tokens[:, ::384][:, :frames]
    masks = {}
    for name, tensor in expected.items():
        # LayoutLMv3's patches stand after the tokens.
        rows = tensor.shape[2 if "attentions" in name else 1]
        mask = tokens
        if "bbox" in inputs and rows > mask.shape[1] and name != "pooler_output":
            mask = torch.nn.functional.pad(mask, (0, rows - mask.shape[1]), value=1)
        encoder = not model.config.is_encoder_decoder or name.startswith("encoder_")
        if not encoder and "decoder_input_ids" in inputs:
            continue
        if "attentions" in name:
            masks["mask." + name] = mask[:, None, :, None]
        elif tensor.dim() == 3:
            masks["mask." + name] = mask[:, :, None]
        elif tensor.shape == mask.shape:
            masks["mask." + name] = mask
    return {name: mask.to(torch.uint8).contiguous() for name, mask in masks.items()}


class Noise(transformers.LogitsProcessor):
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, input_ids, scores):
        noise = torch.rand(scores.shape, generator=self.generator, dtype=scores.dtype)
        return scores + NOISE * (2 * noise - 1)


def search(model, inputs, beams, noise):
    settings = dict(num_beams=beams, max_new_tokens=NEW_TOKENS, do_sample=False,
                    return_dict_in_generate=True, output_scores=True)
    settings |= dict(length_penalty=1.0, early_stopping=False, bos_token_id=0, eos_token_id=2)
    settings |= dict(pad_token_id=model.config.pad_token_id)
    if model.config.is_encoder_decoder:
        settings["decoder_start_token_id"] = TOKENS["decoder_start_token_id"]
    # With a cache the library's own beams of these differ from those without.
    if model.config.model_type in ("mamba2", "falcon_h1"):
        settings["use_cache"] = False
    fresh = copy.deepcopy(model)
    fresh.generation_config = transformers.GenerationConfig(**settings)
    processors = [] if noise is None else [Noise(noise)]
    return fresh.generate(**inputs, logits_processor=processors)


def generate_row(model, inputs, beams):
    """One row, without padding; None where noise would change it."""
    out = search(model, inputs, beams, None)
    for noise in range(TRIALS):
        if not torch.equal(search(model, inputs, beams, noise).sequences, out.sequences):
            return None
    return out


def generate(model, sources, pads, width, pad):
    """Greedy and beam search of every row alone; None where noise would change an id."""
    expected = {"beam4_scores": []}
    for name, beams in (("greedy_ids", 1), ("beam4_ids", 4)):
        rows = torch.full((len(sources), width), pad)
        for i, (source, first) in enumerate(zip(sources, pads)):
            out = generate_row(model, source, beams)
            if out is None:
                return None
            rows[i, first : first + out.sequences.shape[1]] = out.sequences[0]
            if beams > 1:
                expected["beam4_scores"].append(float(out.sequences_scores[0]))
        expected[name] = rows
    expected["beam4_scores"] = torch.tensor(expected["beam4_scores"])
    return expected


def sources_of(model, inputs, generator):
    """The rows that generation starts from, what stands before each, and the length of rows."""
    if model.config.is_encoder_decoder:
        keep = {n: t for n, t in in_double(inputs).items() if n != "decoder_input_ids"}
        sources = [{n: t[i : i + 1] for n, t in keep.items()} for i in range(2)]
        if "attention_mask" in keep:
            sources = [{n: t[:, s["attention_mask"][0] > 0] for n, t in s.items()}
                       for s in sources]
        return sources, [0, 0], 1 + NEW_TOKENS
    prompts = torch.randint(FIRST, model.config.vocab_size, (2, PROMPT), generator=generator)
    mask = torch.ones_like(prompts)
    mask[1, :PADDING] = prompts[1, :PADDING] = 0
    prompts[1, :PADDING] = model.config.pad_token_id
    inputs["generate.input_ids"], inputs["generate.attention_mask"] = prompts, mask
    sources = [{"input_ids": prompts[i : i + 1, first:]} for i, first in enumerate((0, PADDING))]
    for source in sources:
        source["attention_mask"] = torch.ones_like(source["input_ids"])
    return sources, [0, PADDING], PROMPT + NEW_TOKENS


def generation_facts(model):
    length = 1 if model.config.is_encoder_decoder else PROMPT
    facts = dict(prompt_length=length, max_new_tokens=NEW_TOKENS, num_beams=4, length_penalty=1.0)
    facts |= dict(early_stopping=False, eos_token_id=2, pad_token_id=model.config.pad_token_id)
    if model.config.is_encoder_decoder:
        facts["decoder_start_token_id"] = TOKENS["decoder_start_token_id"]
    return facts


def attempt(family, config, seed, left, types, picture):
    """A model, its inputs and outputs; None where its ids would not survive noise."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"  # others want no float64
    model = family(config).eval()
    randomize(model, generator)
    model.tie_weights()
    stored = copy.deepcopy(model)
    model = model.double()
    inputs = make_inputs(model, generator, left, types, picture)
    expected = forward(model, inputs)
    if model.can_generate():
        sources, pads, width = sources_of(model, inputs, generator)
        generated = generate(model, sources, pads, width, config.pad_token_id)
        if generated is None:
            return None
        expected |= generated
    return stored, inputs, expected


def rotate_parts(family):
    """Llama's code rotates whole heads whatever partial_rotary_factor says. Frequencies of the part
    are Phi's, and what is not in the part stays, as in Phi, GPT-NeoX and vLLM's Llama."""
    module = sys.modules[family.__module__]
    phi = importlib.import_module("transformers.models.phi.modeling_phi")
    rotary = next(v for n, v in vars(module).items() if n.endswith("RotaryEmbedding"))
    rotary.compute_default_rope_parameters = staticmethod(
        phi.PhiRotaryEmbedding.compute_default_rope_parameters)
    whole = module.apply_rotary_pos_emb

    def rotated(q, k, cos, sin, unsqueeze_dim=1):
        width = cos.shape[-1]
        parts = whole(q[..., :width], k[..., :width], cos, sin, unsqueeze_dim)
        return [torch.cat((part, x[..., width:]), -1) for part, x in zip(parts, (q, k))]
    module.apply_rotary_pos_emb = rotated


def respell(path, key, given):
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config[key] = given[key]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)


def make_case(folder, name, class_name, seed, given, left=False, types=0):
    family = getattr(transformers, class_name)
    config = make_config(family, given)
    if "partial_rotary_factor" in given.get("rope_parameters", {}) and "Moonshine" not in class_name:
        rotate_parts(family)
    made = attempt(family, config, seed, left, types, PICTURES.get(name))
    while made is None:
        seed += 1
        made = attempt(family, config, seed, left, types, PICTURES.get(name))
    model, inputs, expected = made
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    model.save_pretrained(os.path.join(path, "model"))
    if given.get("use_bidirectional_attention"):
        # The class halves the window whenever it reads one, and has saved the half.
        respell(os.path.join(path, "model", "config.json"), "sliding_window", given)
    inputs = {n: t.clone().contiguous() for n, t in inputs.items()}
    expected = {n: t.clone().contiguous() for n, t in expected.items()}
    safetensors.torch.save_file(inputs, os.path.join(path, "inputs.safetensors"))
    safetensors.torch.save_file(expected, os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family=config.model_type, head=class_name, seed=seed)
    facts |= dict(tolerance=dict(abs=TOLERANCE, rel=TOLERANCE))
    facts |= dict(optional=["hidden_states.*", "*_hidden_states.*"])
    if model.can_generate():
        facts["generation"] = generation_facts(model)
    facts |= dict(computed_in="float64, stored as float32")
    facts |= dict(torch_version=torch.__version__, transformers_version=transformers.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "seed", seed)


SWITCHED_OPT = dict(hidden_size=24, num_attention_heads=3, ffn_dim=30, activation_function="gelu")
PARTIAL_ROPE = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
PAGES = dict(max_2d_position_embeddings=24, type_vocab_size=2)
PAGE_PICTURES = PAGES | dict(hidden_size=16, coordinate_size=2, shape_size=4, input_size=8,
                             rel_pos_bins=8, max_rel_pos=16, rel_2d_pos_bins=8, max_rel_2d_pos=24)
DEBERTA_V3 = dict(relative_attention=True, position_buckets=4, norm_rel_ebd="layer_norm",
                  share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False)
DINOV2 = dict(model_type="dinov2", hidden_size=16, num_attention_heads=2, mlp_ratio=2,
              image_size=12, patch_size=4, reshape_hidden_states=False)
RESNET = dict(model_type="resnet", embedding_size=6)
RESNET_D = dict(model_type="rt_detr_resnet", embedding_size=6)
SAM_VISION = dict(hidden_size=16, num_attention_heads=2, num_hidden_layers=2, patch_size=4,
                  output_channels=16, num_pos_feats=8, mlp_ratio=2.0)
SAM_PROMPTS = dict(hidden_size=16, patch_size=4, mask_input_channels=4)
SAM_MASKS = dict(hidden_size=16, num_attention_heads=2, mlp_dim=20, iou_head_hidden_dim=10)
SIGLIP2 = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20)
# Heights and widths of pictures that are not as large as the configuration says.
PICTURES = {"dinov2-classes": (16, 20), "dinov2-registers-bare": (8, 28),
            "yolos-bare": (12, 16), "yolos-objects": (20, 12), "yolos-plain": (8, 8), "beit-classes": (16, 20),
            "dinov3-bare": (8, 20), "dinov3-gated": (16, 12),
            "detr-objects": (40, 55), "detr-bare": (37, 64),
            "rt_detr-objects": (64, 96), "rt_detr-bare": (64, 32),
            "depth_anything-relative": (16, 20), "depth_anything-metric": (12, 8)}
# Samples of audio, and how many a mask hides. What is padded changes what comes of the rest, so that
# cases that generate have no mask.
PICTURES |= {"moonshine-base": (2300, 0), "moonshine-odd": (1700, 0), "moonshine-bare": (2300, 700),
             "speecht5-base": (130, 0), "speecht5-layer": (141, 0)}
# Name: class, seed, configuration, whether padding stands on the left, and token types, if any.
CASES = {
    "opt-base": ("OPTForCausalLM", 501, {}, True),
    "opt-post": (
        "OPTForCausalLM", 502, SWITCHED_OPT | dict(do_layer_norm_before=False), False),
    "opt-bare": ("OPTModel", 503, dict(enable_bias=False), True),
    # OPT-350m's layout: embeddings narrower than the layers, norms after them.
    "opt-projected": (
        "OPTForCausalLM", 504,
        SWITCHED_OPT | dict(do_layer_norm_before=False, word_embed_proj_dim=16), True),
    "opt-projected-bare": ("OPTModel", 505, dict(word_embed_proj_dim=20), False),
    "moonshine-base": (
        "MoonshineForConditionalGeneration", 671, dict(
            attention_bias=True, tie_word_embeddings=False, decoder_num_hidden_layers=1,
            rope_parameters=dict(rope_type="default", rope_theta=100.0,
                                 partial_rotary_factor=0.6)), False),
    # An odd number of columns is rotated, in pairs all the same.
    "moonshine-odd": (
        "MoonshineForConditionalGeneration", 672, dict(
            hidden_size=24, encoder_hidden_act="relu", pad_head_dim_to_multiple_of=8,
            encoder_num_attention_heads=3, decoder_num_attention_heads=3), False),
    "moonshine-bare": ("MoonshineModel", 673, {}, False),
    "speecht5-base": ("SpeechT5ForSpeechToText", 674, {}, False),
    "speecht5-layer": (
        "SpeechT5ForSpeechToText", 675, dict(
            feat_extract_norm="layer", conv_bias=True, num_conv_pos_embeddings=5,
            scale_embedding=True, pad_token_id=3, hidden_act="relu", tie_word_embeddings=False,
            decoder_attention_heads=4, encoder_max_relative_position=40), False),
    "distilbert-masked": ("DistilBertForMaskedLM", 510, {}, False),
    "distilbert-tokens": ("DistilBertForTokenClassification", 511, dict(num_labels=3), False),
    "albert-classes": ("AlbertForSequenceClassification", 512, dict(num_labels=3), False),
    "albert-tokens": ("AlbertForTokenClassification", 513, dict(num_labels=5), False),
    "albert-answers": ("AlbertForQuestionAnswering", 514, {}, False),
    "electra-classes": ("ElectraForSequenceClassification", 515, dict(num_labels=3), False),
    "electra-tokens": ("ElectraForTokenClassification", 516, dict(num_labels=3), False),
    "electra-answers": ("ElectraForQuestionAnswering", 517, {}, False),
    "modernbert-tokens": ("ModernBertForTokenClassification", 518, dict(num_labels=3), False),
    "modernbert-answers": ("ModernBertForQuestionAnswering", 519, {}, False),
    "roberta-classes": ("RobertaForSequenceClassification", 520, dict(num_labels=3), False),
    "roberta-tokens": ("RobertaForTokenClassification", 521, dict(num_labels=3), False),
    "roberta-answers": ("RobertaForQuestionAnswering", 522, {}, False),
    "xlm-roberta-bare": ("XLMRobertaModel", 523, {}, False),
    "xlm-roberta-masked": ("XLMRobertaForMaskedLM", 524, {}, False),
    "xlm-roberta-tokens": ("XLMRobertaForTokenClassification", 525, dict(num_labels=3), False),
    "xlm-roberta-answers": ("XLMRobertaForQuestionAnswering", 526, {}, False),
    "camembert-bare": ("CamembertModel", 527, {}, False),
    "camembert-masked": ("CamembertForMaskedLM", 528, {}, False),
    "camembert-classes": ("CamembertForSequenceClassification", 529, dict(num_labels=3), False),
    "mpnet-bare": ("MPNetModel", 560, {}, True),
    "mpnet-masked": ("MPNetForMaskedLM", 561, {}, False),
    "mpnet-classes": ("MPNetForSequenceClassification", 562, dict(num_labels=3), False),
    "mpnet-tokens": ("MPNetForTokenClassification", 563, dict(num_labels=3), False),
    "mpnet-answers": ("MPNetForQuestionAnswering", 564, {}, False),
    # Heads of another width than the layers', and scaled positions.
    "nomic_bert-bare": (
        "NomicBertModel", 565,
        dict(head_dim=6, pad_token_id=0,
             rope_parameters=dict(rope_type="linear", rope_theta=50.0, factor=2.0)), True),
    "nomic_bert-masked": ("NomicBertForMaskedLM", 566, dict(type_vocab_size=3), False, 3),
    "nomic_bert-classes": ("NomicBertForSequenceClassification", 567, dict(num_labels=3), False),
    "nomic_bert-tokens": ("NomicBertForTokenClassification", 568, dict(num_labels=3), False),
    "jina_embeddings_v3-bare": ("JinaEmbeddingsV3Model", 570, dict(type_vocab_size=2), False, 2),
    "jina_embeddings_v3-masked": ("JinaEmbeddingsV3ForMaskedLM", 571, {}, True),
    "jina_embeddings_v3-classes": (
        "JinaEmbeddingsV3ForSequenceClassification", 572, dict(num_labels=3), False),
    "jina_embeddings_v3-tokens": (
        "JinaEmbeddingsV3ForTokenClassification", 573, dict(num_labels=3), False),
    "jina_embeddings_v3-answers": ("JinaEmbeddingsV3ForQuestionAnswering", 574, {}, False),
    "esm-bare": (
        "EsmModel", 580,
        dict(position_embedding_type="rotary", token_dropout=True, mask_token_id=5), True),
    "esm-masked": (
        "EsmForMaskedLM", 581, dict(token_dropout=True, mask_token_id=5, emb_layer_norm_before=True),
        False),
    "esm-classes": ("EsmForSequenceClassification", 582, dict(num_labels=3), False),
    "esm-tokens": (
        "EsmForTokenClassification", 583,
        dict(num_labels=3, position_embedding_type="rotary", emb_layer_norm_before=True), False),
    "eurobert-bare": (
        "EuroBertModel", 590, dict(head_dim=6, num_attention_heads=4, attention_bias=True), True),
    "eurobert-masked": (
        "EuroBertForMaskedLM", 591, dict(tie_word_embeddings=True, mlp_bias=True), False),
    "eurobert-classes": ("EuroBertForSequenceClassification", 592, dict(num_labels=3), False),
    "eurobert-first": (
        "EuroBertForSequenceClassification", 593,
        dict(num_labels=3, classifier_pooling="bos"), False),
    "eurobert-mean": (
        "EuroBertForSequenceClassification", 594,
        dict(num_labels=3, classifier_pooling="mean"), False),
    "eurobert-tokens": ("EuroBertForTokenClassification", 595, dict(num_labels=3), False),
    "layoutlm-bare": ("LayoutLMModel", 640, PAGES, False),
    "layoutlm-masked": ("LayoutLMForMaskedLM", 641, PAGES, False),
    "layoutlm-classes": ("LayoutLMForSequenceClassification", 642, PAGES | dict(num_labels=3), False),
    "layoutlm-tokens": ("LayoutLMForTokenClassification", 643, PAGES | dict(num_labels=3), False),
    "layoutlm-answers": ("LayoutLMForQuestionAnswering", 644, PAGES, False),
    "layoutlmv3-bare": ("LayoutLMv3Model", 650, PAGE_PICTURES, False),
    "layoutlmv3-classes": (
        "LayoutLMv3ForSequenceClassification", 651, PAGE_PICTURES | dict(num_labels=3), False),
    # Boxes whose parts differ in width, biases by order alone.
    "layoutlmv3-tokens": (
        "LayoutLMv3ForTokenClassification", 652,
        PAGE_PICTURES | dict(num_labels=3, coordinate_size=3, shape_size=2,
                             has_spatial_attention_bias=False), False),
    "layoutlmv3-many": (
        "LayoutLMv3ForTokenClassification", 653,
        PAGE_PICTURES | dict(num_labels=11, has_relative_attention_bias=False), False),
    "layoutlmv3-answers": ("LayoutLMv3ForQuestionAnswering", 654, PAGE_PICTURES, False),
    "deberta_v2-bare": ("DebertaV2Model", 600, DEBERTA_V3, True),
    # No buckets, projections of their own, a convolution, types.
    "deberta_v2-masked": (
        "DebertaV2ForMaskedLM", 601,
        dict(relative_attention=True, pos_att_type=["p2c"], max_relative_positions=5,
             conv_kernel_size=3, conv_act="gelu", type_vocab_size=2), True, 2),
    "deberta_v2-newer": (
        "DebertaV2ForMaskedLM", 602,
        DEBERTA_V3 | dict(legacy=False, share_att_key=False, norm_rel_ebd="none"), False),
    "deberta_v2-classes": (
        "DebertaV2ForSequenceClassification", 603,
        DEBERTA_V3 | dict(num_labels=3, pos_att_type=["c2p"], type_vocab_size=3), False, 3),
    "deberta_v2-tokens": (
        "DebertaV2ForTokenClassification", 604, dict(num_labels=3, pos_att_type="c2p"), False),
    "deberta_v2-answers": ("DebertaV2ForQuestionAnswering", 605, DEBERTA_V3, False),
    "modernbert_decoder-bare": (
        "ModernBertDecoderModel", 610,
        dict(num_hidden_layers=4, local_attention=6, attention_bias=True), True),
    "modernbert_decoder-base": (
        "ModernBertDecoderForCausalLM", 611,
        dict(num_hidden_layers=3, local_attention=8, norm_bias=True, mlp_bias=True,
             classifier_bias=True), True),
    "bart-bare": ("BartModel", 530, {}, False),
    "mbart-bare": ("MBartModel", 531, {}, False),
    "pegasus-base": ("PegasusForConditionalGeneration", 536, {}, False),
    "pegasus-bare": ("PegasusModel", 537, dict(scale_embedding=True), False),
    "blenderbot-base": (
        "BlenderbotForConditionalGeneration", 538, dict(scale_embedding=True), False),
    "blenderbot-bare": ("BlenderbotModel", 539, {}, False),
    "m2m100-bare": ("M2M100Model", 532, {}, False),
    "mt5-base": ("MT5ForConditionalGeneration", 533, {}, False),
    "mt5-bare": ("MT5Model", 534, {}, False),
    "whisper-bare": ("WhisperModel", 535, {}, False),
    "bloom-bare": ("BloomModel", 540, {}, False),
    "gpt2-bare": ("GPT2Model", 541, {}, False),
    "gpt_neo-bare": (
        "GPTNeoModel", 542, dict(attention_types=[[["global", "local"], 1]]), False),
    "gptneox-bare": ("GPTNeoXModel", 543, {}, False),
    "llama-bare": ("LlamaModel", 544, {}, False),
    "llama-partial": (
        "LlamaForCausalLM", 547, dict(hidden_size=32, rope_parameters=PARTIAL_ROPE), True),
    "mistral-bare": ("MistralModel", 545, {}, False),
    "qwen2-bare": ("Qwen2Model", 546, {}, False),
    "qwen3-bare": ("Qwen3Model", 561, dict(head_dim=6), False),
    # Without a head, EmbeddingGemma's attention in both directions.
    "gemma3-both": (
        "Gemma3TextModel", 562,
        dict(head_dim=6, use_bidirectional_attention=True, sliding_window=4,
             layer_types=["sliding_attention", "full_attention"]), False),
    "olmo2-bare": ("Olmo2Model", 563, {}, False),
    "smollm3-bare": ("SmolLM3Model", 564, dict(no_rope_layer_interval=2), False),
    "phi3-bare": ("Phi3Model", 565, {}, False),
    "mixtral-base": (
        "MixtralForCausalLM", 620,
        dict(num_local_experts=5, num_experts_per_tok=3, num_attention_heads=4, head_dim=6,
             sliding_window=5), True),
    "mixtral-bare": ("MixtralModel", 621, dict(num_local_experts=3), False),
    "qwen3_moe-base": (
        "Qwen3MoeForCausalLM", 622,
        dict(num_hidden_layers=3, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=7,
             head_dim=6, mlp_only_layers=[1], attention_bias=True, norm_topk_prob=True), True),
    "qwen3_moe-bare": (
        "Qwen3MoeModel", 623,
        dict(num_experts=4, num_experts_per_tok=3, moe_intermediate_size=9, num_hidden_layers=4,
             decoder_sparse_step=2, head_dim=6), False),
    "olmoe-base": (
        "OlmoeForCausalLM", 624, dict(num_experts=5, num_experts_per_tok=2), True),
    "olmoe-bare": (
        "OlmoeModel", 625,
        dict(num_experts=4, num_experts_per_tok=4, norm_topk_prob=True, attention_bias=True),
        False),
    "gpt_oss-base": (
        "GptOssForCausalLM", 630,
        dict(num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=2, head_dim=6,
             num_attention_heads=4, sliding_window=4,
             rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, beta_fast=8.0,
                                  beta_slow=1.0, truncate=False,
                                  original_max_position_embeddings=8)), True),
    "gpt_oss-bare": (
        "GptOssModel", 631,
        dict(num_local_experts=3, num_experts_per_tok=3, head_dim=6, attention_bias=False,
             layer_types=["full_attention", "sliding_attention"]), False),
    "deepseek_v3-base": (
        "DeepseekV3ForCausalLM", 632,
        dict(num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=9,
             kv_lora_rank=10, qk_rope_head_dim=4, qk_nope_head_dim=6, v_head_dim=7,
             n_routed_experts=8, n_group=4, topk_group=2, num_experts_per_tok=3,
             moe_intermediate_size=7, n_shared_experts=2, first_k_dense_replace=1,
             attention_bias=True,
             rope_parameters=dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, mscale=1.0,
                                  mscale_all_dim=0.7, original_max_position_embeddings=8)), True),
    "deepseek_v3-bare": (
        "DeepseekV3Model", 633,
        dict(num_hidden_layers=1, q_lora_rank=None, kv_lora_rank=10, qk_rope_head_dim=4,
             qk_nope_head_dim=6, v_head_dim=12, n_routed_experts=4, n_group=1, topk_group=1,
             num_experts_per_tok=2, moe_intermediate_size=7, first_k_dense_replace=0,
             norm_topk_prob=False, rope_interleave=False), False),
    "lfm2-base": (
        "Lfm2ForCausalLM", 680,
        dict(num_hidden_layers=4, num_attention_heads=4, conv_L_cache=4, conv_bias=True,
             block_auto_adjust_ff_dim=True, block_multiple_of=5, block_ffn_dim_multiplier=1.3,
             layer_types=["conv", "full_attention", "conv", "conv"]), False),
    "lfm2-bare": (
        "Lfm2Model", 681, dict(num_hidden_layers=2, layer_types=["conv", "full_attention"]), False),
    "mamba2-base": (
        "Mamba2ForCausalLM", 682,
        dict(num_heads=4, head_dim=8, state_size=5, n_groups=2, conv_kernel=3, use_bias=True,
             time_step_limit=[0.2, 0.9]), False),
    "mamba2-bare": (
        "Mamba2Model", 683,
        dict(num_heads=2, head_dim=16, state_size=33, n_groups=1, use_conv_bias=False,
             time_step_limit=[0.0, float("inf")]), False),
    "falcon_h1-base": (
        "FalconH1ForCausalLM", 684,
        dict(num_attention_heads=4, mamba_n_heads=4, mamba_d_head=9, mamba_d_ssm=36,
             mamba_d_state=7, mamba_n_groups=2, mamba_rms_norm=True, mamba_norm_before_gate=False,
             mamba_proj_bias=True, projectors_bias=True, attention_bias=True, mlp_bias=True,
             attention_in_multiplier=1.3, attention_out_multiplier=0.7, key_multiplier=0.6,
             ssm_in_multiplier=0.8, ssm_out_multiplier=1.2, mlp_multipliers=[1.4, 0.9],
             ssm_multipliers=[0.7, 1.1, 0.9, 1.2, 0.8], embedding_multiplier=2.0,
             lm_head_multiplier=0.5), False),
    "falcon_h1-bare": (
        "FalconH1Model", 685,
        dict(mamba_n_heads=3, mamba_d_ssm=24, mamba_d_state=5, mamba_rms_norm=True), False),
    "granite_hybrid-base": (
        "GraniteMoeHybridForCausalLM", 686,
        dict(num_hidden_layers=3, layer_types=["mamba", "attention", "mamba"], mamba_n_heads=4,
             mamba_d_state=6, mamba_n_groups=2, num_local_experts=0, shared_intermediate_size=20,
             position_embedding_type="rope", attention_multiplier=0.4, residual_multiplier=0.6,
             embedding_multiplier=3.0, logits_scaling=2.0), True),
    "granite_hybrid-bare": (
        "GraniteMoeHybridModel", 687,
        dict(num_hidden_layers=2, layer_types=["attention", "mamba"], mamba_n_heads=4,
             mamba_d_state=9, num_local_experts=3, num_experts_per_tok=2, intermediate_size=7,
             shared_intermediate_size=11), False),
    "qwen3_next-base": (
        "Qwen3NextForCausalLM", 692,
        dict(num_hidden_layers=3, num_attention_heads=4, head_dim=8, num_experts=5,
             num_experts_per_tok=3, moe_intermediate_size=7, shared_expert_intermediate_size=9,
             mlp_only_layers=[1], linear_num_key_heads=2, linear_num_value_heads=6,
             linear_key_head_dim=5, linear_value_head_dim=7, linear_conv_kernel_dim=3,
             layer_types=["linear_attention", "full_attention", "linear_attention"]), True),
    "qwen3_next-bare": (
        "Qwen3NextModel", 689,
        dict(num_hidden_layers=2, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=6,
             shared_expert_intermediate_size=5, linear_num_key_heads=1, linear_num_value_heads=2,
             linear_key_head_dim=40, linear_value_head_dim=9, head_dim=8,
             layer_types=["linear_attention", "full_attention"]), False),
    "qwen3_5-base": (
        "Qwen3_5ForCausalLM", 690,
        dict(num_hidden_layers=3, num_attention_heads=4, head_dim=8, linear_num_key_heads=3,
             linear_num_value_heads=3, linear_key_head_dim=6, linear_value_head_dim=5,
             layer_types=["full_attention", "linear_attention", "linear_attention"]), True),
    "qwen3_5-bare": (
        "Qwen3_5TextModel", 691,
        dict(num_hidden_layers=2, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4,
             linear_key_head_dim=8, linear_value_head_dim=4,
             layer_types=["linear_attention", "full_attention"]), False),
    "granite-bare": ("GraniteModel", 566, {}, False),
    "cohere-bare": ("CohereModel", 567, {}, False),
    "starcoder2-bare": ("Starcoder2Model", 568, {}, False),
    "stablelm-bare": ("StableLmModel", 569, dict(hidden_size=32), False),
    "falcon-bare": ("FalconModel", 570, dict(ffn_hidden_size=20), False),
    "mpt-bare": ("MptModel", 571, dict(max_seq_len=32), False),
    "xglm-bare": ("XGLMModel", 572, dict(attention_heads=2), False),
    "qwen2-partial": (
        "Qwen2Model", 548, dict(hidden_size=32, rope_parameters=PARTIAL_ROPE), False),
    "beit-bare": (
        "BeitModel", 670,
        dict(use_relative_position_bias=True, use_shared_relative_position_bias=True), False),
    # A picture of another size.
    "beit-classes": (
        "BeitForImageClassification", 671,
        dict(use_relative_position_bias=True, use_absolute_position_embeddings=True,
             num_labels=3), False),
    "beit-plain": (
        "BeitForImageClassification", 672,
        dict(use_mean_pooling=False, layer_scale_init_value=0.0, num_labels=2), False),
    "yolos-bare": (
        "YolosModel", 660, dict(image_size=[12, 16], num_detection_tokens=3), False),
    "yolos-objects": (
        "YolosForObjectDetection", 661,
        dict(image_size=[12, 16], num_detection_tokens=5, num_labels=3, num_hidden_layers=3), False),
    "yolos-plain": (
        "YolosForObjectDetection", 662,
        dict(image_size=[8, 8], num_detection_tokens=2, num_labels=2, qkv_bias=False,
             use_mid_position_embeddings=False), False),
    "dinov2-classes": (
        "Dinov2ForImageClassification", 573, dict(num_labels=3, qkv_bias=False), False),
    "dinov2-bare": ("Dinov2Model", 574, dict(use_swiglu_ffn=True), False),
    "dinov2-registers-bare": (
        "Dinov2WithRegistersModel", 575, dict(num_register_tokens=2), False),
    "dinov2-registers-classes": (
        "Dinov2WithRegistersForImageClassification", 576, dict(num_labels=3), False),
    "dinov3-bare": ("DINOv3ViTModel", 680, dict(num_register_tokens=2), False),
    "dinov3-gated": (
        "DINOv3ViTModel", 681,
        dict(use_gated_mlp=True, hidden_act="silu", query_bias=False, key_bias=True,
             value_bias=False, proj_bias=False, mlp_bias=False, rope_theta=20.0), False),
    "detr-objects": (
        "DetrForObjectDetection", 700,
        dict(backbone_config=RESNET | dict(layer_type="basic", hidden_sizes=[6, 10], depths=[1, 2],
                                           out_features=["stage2"]),
             num_labels=3, num_queries=5), False),
    "depth_anything-relative": (
        "DepthAnythingForDepthEstimation", 712,
        dict(backbone_config=DINOV2 | dict(num_hidden_layers=4, out_indices=[1, 2, 3, 4]),
             reassemble_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5],
             neck_hidden_sizes=[4, 5, 6, 7], fusion_hidden_size=6, head_hidden_size=5), False),
    "depth_anything-metric": (
        "DepthAnythingForDepthEstimation", 711,
        dict(backbone_config=DINOV2 | dict(num_hidden_layers=3, out_indices=[0, 2],
                                           apply_layernorm=False, use_swiglu_ffn=True),
             reassemble_hidden_size=16, reassemble_factors=[3, 1], neck_hidden_sizes=[4, 6],
             fusion_hidden_size=4, head_hidden_size=3, depth_estimation_type="metric",
             max_depth=20), False),
    # A mask of pixels, learned positions, bottlenecks.
    "detr-bare": (
        "DetrModel", 701,
        dict(backbone_config=RESNET | dict(layer_type="bottleneck", hidden_sizes=[8, 12, 16],
                                           depths=[2, 1, 1], downsample_in_bottleneck=True,
                                           downsample_in_first_stage=True, hidden_act="gelu",
                                           out_features=["stage2"]),
             position_embedding_type="learned", num_queries=4, encoder_layers=1,
             activation_function="gelu"), False),
    "rt_detr-objects": (
        "RTDetrForObjectDetection", 720,
        dict(backbone_config=RESNET_D | dict(layer_type="basic", hidden_sizes=[6, 8, 10, 12],
                                             depths=[2, 1, 1, 2], out_indices=[2, 3, 4]),
             num_labels=3, num_queries=7, encoder_hidden_dim=12, decoder_in_channels=[12, 12, 12],
             encoder_in_channels=[8, 10, 12], encode_proj_layers=[1, 2], decoder_n_points=3),
        False),
    # Bottlenecks, two sizes, norms first, anchors of one size, no sine positions.
    "rt_detr-bare": (
        "RTDetrModel", 721,
        dict(backbone_config=RESNET_D | dict(layer_type="bottleneck", hidden_sizes=[8, 12, 16],
                                             depths=[1, 2, 1], downsample_in_bottleneck=True,
                                             out_features=["stage2", "stage3"]),
             num_labels=4, num_queries=5, encoder_hidden_dim=16, decoder_in_channels=[16, 16],
             encoder_in_channels=[12, 16], encode_proj_layers=[1], num_feature_levels=2,
             feat_strides=[8, 16], hidden_expansion=0.5, normalize_before=True, eval_size=64,
             activation_function="gelu", encoder_layers=1,
             anchor_image_size=[64, 32]), False),
    "sam-points": (
        "SamModel", 731,
        dict(vision_config=SAM_VISION | dict(image_size=20, window_size=3, global_attn_indexes=[1]),
             prompt_encoder_config=SAM_PROMPTS | dict(image_size=20),
             mask_decoder_config=SAM_MASKS), False),
    # Boxes and masks in, without positions of patches, other counts of masks and layers.
    "sam-boxes": (
        "SamModel", 732,
        dict(vision_config=SAM_VISION | dict(image_size=24, window_size=4, global_attn_indexes=[0, 2],
                                             use_rel_pos=False, use_abs_pos=False, qkv_bias=False,
                                             num_hidden_layers=3, mlp_dim=24),
             prompt_encoder_config=SAM_PROMPTS | dict(image_size=24, mask_input_channels=8),
             mask_decoder_config=SAM_MASKS | dict(num_multimask_outputs=2, num_hidden_layers=1,
                                                  attention_downsample_rate=1, iou_head_depth=4)),
        False),
    # 2 stands for the token of the highest id.
    "clip-text-highest": ("CLIPTextModelWithProjection", 577, dict(projection_dim=10), False),
    "clip-text-end": ("CLIPTextModel", 578, dict(eos_token_id=9, vocab_size=12), False),
    "clip-vision-projected": ("CLIPVisionModelWithProjection", 579, dict(projection_dim=10), False),
    "siglip-text-projected": ("SiglipTextModel", 580, dict(projection_size=10), False),
    "siglip-vision-bare": ("SiglipVisionModel", 581, dict(num_attention_heads=4), False),
    "siglip2-text": ("Siglip2TextModel", 690, dict(max_position_embeddings=9), False),
    "siglip2-vision": ("Siglip2VisionModel", 691, dict(num_patches=9, num_attention_heads=4), False),
    "siglip2-pair": (
        "Siglip2Model", 692,
        dict(text_config=SIGLIP2 | dict(vocab_size=40, max_position_embeddings=7),
             vision_config=SIGLIP2 | dict(num_patches=16, patch_size=2, num_hidden_layers=1)),
        False),
    "cvt-bare": (
        "CvtModel", 550,
        dict(embed_dim=[8, 12, 16], num_heads=[1, 2, 2], depth=[1, 2, 3], image_size=24), False),
}


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--left"]
    if not arguments:
        sys.exit(__doc__)
    folder, names = arguments[0], arguments[1:]
    if len(names) >= 3 and names[2].isdigit():
        given = json.loads(names[3]) if len(names) > 3 else {}
        make_case(folder, names[0], names[1], int(names[2]), given, "--left" in sys.argv)
        return
    for name in names or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
