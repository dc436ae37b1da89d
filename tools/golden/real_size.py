#!/usr/bin/env python3
"""Makes cases of real sizes: random models of the published configurations, their inputs, and what
transformers computes of them in float64. Some have fewer layers than published. Not for tests/golden: a case has up to
1.8 GB.

    python3 tools/golden/real_size.py OUTPUT_FOLDER [NAME ...]

For every NAME two folders. They are NAME and NAME-half, which shares its model and expects what its matrices give once
they are rounded to half precision (for --weights f16). Needs torch, transformers and safetensors (their versions go
into case.json), and up to 8 GB of memory. tests/golden/README.md describes the folders, docs/real_sizes.md says what
came out.
"""
import contextlib
import copy
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

TOKENS, SHORTER, TARGETS = 96, 61, 48  # of the first row, of the second one, of a decoder
PROMPT, PADDING, NEW_TOKENS = 24, 9, 12
# Smallest distance between the two best tokens of the greedy path: rounding shall not flip them.
LEAST_GAP = 5e-3
# The tolerance is this often the deviation of torch in float32 from float64.
MULTIPLE = 10

# Name: configuration, its settings, class, kind of model, seed.
SMOLLM = dict(
    vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
    num_attention_heads=9, num_key_value_heads=3, tie_word_embeddings=True,
)
CASES = {
    "bert-base": ("BertConfig", {}, "BertForMaskedLM", "encoder", 1),
    "distilbert-base": ("DistilBertConfig", {}, "DistilBertModel", "encoder", 2),
    "modernbert-base": ("ModernBertConfig", {}, "ModernBertModel", "encoder", 3),
    "gpt2-small": ("GPT2Config", {}, "GPT2LMHeadModel", "decoder", 4),
    "llama-135m": ("LlamaConfig", SMOLLM, "LlamaForCausalLM", "decoder", 5),
    "t5-base": (
        "T5Config", dict(d_model=768, d_ff=3072, num_layers=12, num_heads=12),
        "T5ForConditionalGeneration", "seq2seq", 6,
    ),
    "bart-base": (
        "BartConfig",
        dict(
            d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12,
            decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
        ),
        "BartForConditionalGeneration", "seq2seq", 7,
    ),
    "whisper-tiny": ("WhisperConfig", {}, "WhisperForConditionalGeneration", "sound", 8),
    "vit-base": ("ViTConfig", dict(num_labels=1000), "ViTForImageClassification", "picture", 9),
    "swin-tiny": ("SwinConfig", dict(num_labels=1000), "SwinForImageClassification", "picture", 10),
    "all-mpnet-base": ("MPNetConfig", {}, "MPNetModel", "encoder", 11),
    "deberta-v3-base": (
        "DebertaV2Config",
        dict(
            hidden_size=768, intermediate_size=3072, num_hidden_layers=4, num_attention_heads=12,
            relative_attention=True, position_buckets=256, max_relative_positions=-1, share_att_key=True,
            norm_rel_ebd="layer_norm", pos_att_type=["p2c", "c2p"], position_biased_input=False,
        ),
        "DebertaV2Model", "encoder", 12,
    ),
    "qwen3-0.6b": (
        "Qwen3Config",
        dict(
            hidden_size=1024, intermediate_size=3072, num_hidden_layers=4, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, max_position_embeddings=40960, tie_word_embeddings=True,
            rope_parameters=dict(rope_type="default", rope_theta=1e6),
        ),
        "Qwen3ForCausalLM", "decoder", 113,
    ),
    "gemma-3-1b": (
        "Gemma3TextConfig",
        dict(
            vocab_size=262144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=1, head_dim=256, sliding_window=512,
            query_pre_attn_scalar=256, max_position_embeddings=32768,
            layer_types=["sliding_attention", "full_attention"],
        ),
        "Gemma3ForCausalLM", "decoder", 14,
    ),
    "phi-3-mini": ("Phi3Config", dict(num_hidden_layers=2, sliding_window=2047), "Phi3ForCausalLM", "decoder", 15),
    "smollm3-3b": (
        "SmolLM3Config",
        dict(num_hidden_layers=2, no_rope_layers=[1, 0], rope_parameters=dict(rope_type="default", rope_theta=5e6)),
        "SmolLM3ForCausalLM", "decoder", 16,
    ),
    "clip-vit-base-patch32": ("CLIPConfig", dict(text_config=dict(eos_token_id=2)), "CLIPModel", "pair", 17),
    "siglip-base": ("SiglipConfig", {}, "SiglipModel", "pair", 18),
    "dinov2-base": ("Dinov2Config", dict(image_size=518, num_hidden_layers=4), "Dinov2Model", "picture", 19),
    "wav2vec2-base": ("Wav2Vec2Config", {}, "Wav2Vec2ForCTC", "waves", 20),
    "moonshine-tiny": ("MoonshineConfig", dict(pad_token_id=2), "MoonshineForConditionalGeneration", "spoken", 21),
    "smolvlm-256m": (
        "SmolVLMConfig",
        dict(
            image_token_id=49190, pad_token_id=2, scale_factor=4,
            text_config=dict(SMOLLM, model_type="llama", vocab_size=49280, num_hidden_layers=4,
                             tie_word_embeddings=False, max_position_embeddings=8192, pad_token_id=2,
                             rope_parameters=dict(rope_type="default", rope_theta=1e5)),
            vision_config=dict(model_type="smolvlm_vision", hidden_size=768, intermediate_size=3072,
                               num_hidden_layers=4, num_attention_heads=12, image_size=512, patch_size=16),
        ),
        "SmolVLMForConditionalGeneration", "pictured", 22,
    ),
}
# Kinds that generate, and of these the ones with an encoder.
SEARCHED, WITH_ENCODER = ("decoder", "pictured", "seq2seq", "sound", "spoken"), ("seq2seq", "sound", "spoken")
SAMPLES = 32000  # of a wave, 2 s

plain_softmax = torch.nn.functional.softmax
plain_to = torch.Tensor.to
plain_float = torch.Tensor.float


def to_unless_double(tensor, *args, **named):
    """Tensor.to, but double stays double where a model asks for float32."""
    if tensor.dtype == torch.float64 and (args[:1] == (torch.float32,) or not args):
        named.pop("dtype", None)
        args = args[1:]
        if not args and not named:
            return tensor
    return plain_to(tensor, *args, **named)


@contextlib.contextmanager
def in_double():
    """Some models compute norms, angles and softmax in float32 whatever their weights are."""
    torch.nn.functional.softmax = lambda x, dim=None, dtype=None: plain_softmax(x, dim=dim)
    torch.Tensor.to = to_unless_double
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.nn.functional.softmax = plain_softmax
        torch.Tensor.to, torch.Tensor.float = plain_to, plain_float


def spread(name, shape, config):
    """Standard deviation of a matrix or table, such that scores and logits have a few units."""
    if "relative_attention_bias" in name or "relative_position_bias" in name:
        return 0.8
    if any(part in name for part in ("position", "wpe", "cls_token", "token_type")):
        return 0.2
    if any(part in name for part in ("embed_tokens", "shared", "wte", "word_emb", "tok_emb")):
        return 4.0 / shape[-1] ** 0.5
    conv1d = config.model_type == "gpt2"
    fan_in = shape[0] if conv1d else torch.Size(shape[1:]).numel()
    query = config.model_type == "t5" and name.endswith(".q.weight")
    return 1.2 / fan_in**0.5 * (config.d_kv**-0.5 if query else 1.0)


def randomize(model, generator):
    """Every bias, gain and embedding row is random, so that a forgotten one shows."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            gain = "norm" in name.lower() or ".ln_" in name
            gain = gain and name.endswith("weight")
            # Gemma's gains are the distance from 1.
            one = gain and not model.config.model_type.startswith("gemma")
            values = 1 + 0.3 * values if one else 0.3 * values
            if model.config.model_type == "t5" and name == "decoder.final_layer_norm.weight":
                values *= model.config.d_model**0.5  # the head divides by it
        else:
            values *= spread(name, parameter.shape, model.config)
        parameter.data = values


def round_matrices(model):
    """What f16 storage does: matrices and word embeddings are rounded, positions and types not."""
    kinds = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, transformers.pytorch_utils.Conv1D)
    scaled = {}  # matrices that gains of LayerScale are multiplied into before they are rounded
    for module in model.modules():
        if hasattr(module, "layer_scale1"):
            scaled[module.attention.output.dense] = module.layer_scale1.lambda1.data[:, None]
            scaled[module.mlp.fc2] = module.layer_scale2.lambda1.data[:, None]
    for name, module in model.named_modules():
        words = isinstance(module, torch.nn.Embedding)
        words = words and not any(part in name for part in ("position", "wpe", "type", "rel"))
        if words or isinstance(module, kinds):
            gain = scaled.get(module, 1.0)
            module.weight.data = (module.weight.data * gain).half().to(module.weight.dtype) / gain
        if isinstance(module, torch.nn.MultiheadAttention):  # of pooling
            module.in_proj_weight.data = module.in_proj_weight.data.half().to(module.in_proj_weight.dtype)


def exact_angles(model):
    """Rotary frequencies are buffers, rounded to float32: takes them from the formula again."""
    for name, buffer in model.named_buffers():
        if "inv_freq" not in name:
            continue
        kind = name.rsplit(".", 1)[-1].removesuffix("inv_freq").strip("_")
        rope = model.config.get_text_config().rope_parameters
        rope = rope.get(kind.removesuffix("_original"), rope)
        steps = torch.arange(buffer.numel(), dtype=torch.float64) / buffer.numel()
        exact = rope["rope_theta"] ** -steps
        assert torch.allclose(exact, buffer.double(), rtol=1e-5), name
        buffer.data = exact


def make_inputs(config, kind, generator):
    if kind == "picture":
        size = config.image_size
        return {"pixel_values": torch.randn(1, 3, size, size, generator=generator)}
    if kind == "sound":
        frames = 2 * config.max_source_positions
        features = torch.randn(1, config.num_mel_bins, frames, generator=generator)
        ids = torch.randint(4, config.vocab_size, (1, TARGETS), generator=generator)
        return {"input_features": features, "decoder_input_ids": ids}
    if kind == "waves":
        return {"input_values": torch.randn(1, SAMPLES, generator=generator)}
    if kind == "spoken":
        ids = torch.randint(4, config.vocab_size, (1, TARGETS), generator=generator)
        waves = torch.randn(1, SAMPLES, generator=generator)
        return {"input_values": waves, "decoder_input_ids": ids}
    if kind == "pair":
        text, size = config.text_config, config.vision_config.image_size
        ids = torch.randint(4, text.vocab_size, (2, text.max_position_embeddings), generator=generator)
        return {"input_ids": ids, "pixel_values": torch.randn(1, 3, size, size, generator=generator)}
    if kind == "pictured":
        return pictured_inputs(config, generator)
    ids = torch.randint(4, config.vocab_size, (2, TOKENS), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, SHORTER:] = 0
    ids[1, SHORTER:] = config.pad_token_id or 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if getattr(config, "type_vocab_size", 0):
        types = torch.randint(0, config.type_vocab_size, ids.shape, generator=generator)
        inputs["token_type_ids"] = types
    if kind == "seq2seq":
        size = (2, TARGETS)
        inputs["decoder_input_ids"] = torch.randint(4, config.vocab_size, size, generator=generator)
    if kind == "decoder":
        prompts = torch.randint(4, config.vocab_size, (2, PROMPT), generator=generator)
        prompts[1, :PADDING] = 0
        inputs["generate.input_ids"] = prompts
        inputs["generate.attention_mask"] = (prompts > 0).long()
    return inputs


def pictured_inputs(config, generator):
    """A prompt with one image, and the same with some more tokens."""
    vision = config.vision_config
    images = (vision.image_size // vision.patch_size // config.scale_factor) ** 2
    ids = torch.randint(4, config.image_token_id, (1, images + PROMPT), generator=generator)
    ids[0, 3 : 3 + images] = config.image_token_id
    more = torch.randint(4, config.image_token_id, (1, PADDING), generator=generator)
    size = (1, 1, 3, vision.image_size, vision.image_size)
    both = torch.cat([ids, more], 1)
    return {"input_ids": both, "attention_mask": torch.ones_like(both),
            "pixel_values": torch.randn(size, generator=generator),
            "generate.input_ids": ids, "generate.attention_mask": torch.ones_like(ids)}


def floats_as(inputs, dtype):
    return {n: plain_to(t, dtype) if t.is_floating_point() else t for n, t in inputs.items()}


def forward(model, kind, inputs):
    inputs = {n: t for n, t in inputs.items() if not n.startswith("generate.")}
    with torch.no_grad():
        out = model(
            **floats_as(inputs, model.dtype), output_attentions=True, output_hidden_states=True
        )
    names = ("last_hidden_state", "pooler_output", "logits", "encoder_last_hidden_state", "image_hidden_states",
             "logits_per_image", "logits_per_text", "image_embeds", "text_embeds")
    result = {name: out[name] for name in names if out.get(name) is not None}
    if kind in ("pair", "waves"):
        pass
    elif kind in WITH_ENCODER:
        result["last_hidden_state"] = out.decoder_hidden_states[-1]
    elif kind != "picture":
        result["last_hidden_state"] = out.hidden_states[-1]
    for stack in ("", "encoder_", "decoder_", "cross_"):
        states, maps = out.get(stack + "hidden_states"), out.get(stack + "attentions")
        for i, state in enumerate((states or ())[:-1]):
            result[f"{stack}hidden_states.{i}"] = state
        # Maps of the first and last layer; those of a long encoder are large.
        if maps and maps[0].numel() < 1 << 24:
            for i in (0, len(maps) - 1):
                result[f"{stack}attentions.{i}"] = maps[i]
    return result


def rows_of(name, mask):
    return mask[:, None, :, None] if "attentions" in name else mask[:, :, None]


def add_masks(expected, kind, inputs):
    """Rows of padded tokens are not compared."""
    if "attention_mask" not in inputs:
        return
    mask = inputs["attention_mask"].to(torch.uint8)
    for name in list(expected):
        if name == "image_hidden_states":
            continue
        tokens = name.startswith("encoder_") if kind == "seq2seq" else expected[name].dim() > 2
        if tokens:
            expected["mask." + name] = rows_of(name, mask).clone().contiguous()


def prompts_of(kind, inputs):
    """Inputs of one generation per row: a decoder's prompt alone, without its padding."""
    if kind in WITH_ENCODER:
        return [{n: t for n, t in inputs.items() if n != "decoder_input_ids"}]
    if kind == "pictured":
        prompt = {n: inputs["generate." + n] for n in ("input_ids", "attention_mask")}
        return [prompt | {"pixel_values": inputs["pixel_values"]}]
    prompts = []
    for row in (0, 1):
        ids = inputs["generate.input_ids"][row : row + 1, PADDING * row :]
        prompts.append({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    return prompts


def generate(model, kind, inputs, settings):
    keys = ("max_new_tokens", "length_penalty", "early_stopping", "eos_token_id", "pad_token_id",
            "decoder_start_token_id")
    base = {k: settings[k] for k in keys if k in settings}
    base |= dict(do_sample=False, return_dict_in_generate=True)
    result, gap = {}, 1e9
    for name, beams in (("greedy_ids", 1), ("beam4_ids", 4)):
        rows, scores = [], []
        for row, prompt in enumerate(prompts_of(kind, inputs)):
            model.generation_config = transformers.GenerationConfig(
                num_beams=beams, output_logits=beams == 1, output_scores=beams > 1, **base
            )
            call = super(type(model), model).generate if kind == "sound" else model.generate
            out = call(**floats_as(prompt, model.dtype))
            ids = out.sequences
            if kind == "decoder":
                ids = torch.nn.functional.pad(ids, (PADDING * row, 0))
            rows.append(ids)
            if beams > 1:
                scores.append(out.sequences_scores)
                continue
            best = torch.stack([step.topk(2).values for step in out.logits])
            gap = min(gap, float((best[..., 0] - best[..., 1]).min()))
        result[name] = torch.cat(rows).contiguous()
        if scores:
            result["beam4_scores"] = torch.cat(scores)
    return result, gap


def generation_settings(config, kind, length):
    settings = dict(max_new_tokens=NEW_TOKENS, num_beams=4, length_penalty=1.0)
    settings |= dict(early_stopping=False, eos_token_id=None, pad_token_id=config.pad_token_id or 0)
    if kind == "decoder":
        return settings | dict(prompt_length=PROMPT)
    if kind == "pictured":
        return settings | dict(prompt_length=length)
    start = getattr(config, "decoder_start_token_id", None)
    return settings | dict(prompt_length=1, decoder_start_token_id=start or 0)


def deviation(results, exact):
    """Per kind of output, the largest |x - y| / (1 + |y|): what a tolerance must allow."""
    worst = {}
    for name, tensor in exact.items():
        if not tensor.is_floating_point() or name not in results:
            continue
        off = (results[name].double() - tensor).abs() / (1 + tensor.abs())
        if "mask." + name in exact:
            off = off * exact["mask." + name]
        kind = name.split(".")[0]
        worst[kind] = max(worst.get(kind, 0.0), float(off.max()))
    return worst


def expect(model, kind, inputs, settings):
    """What the model gives in double, how far float32 is from it, and the smallest gap."""
    single = forward(model, kind, inputs)
    plain = copy.deepcopy(model.generation_config) if settings else None
    model.double()  # in place, since some fill half of the memory
    exact_angles(model)
    gap = None
    with in_double():
        exact = forward(model, kind, inputs)
        add_masks(exact, kind, inputs)
        if settings:
            ids, gap = generate(model, kind, inputs, settings)
            exact |= ids
    model.float()
    if settings:
        model.generation_config = plain
    if gap is not None and gap < LEAST_GAP:
        sys.exit(f"the greedy path has a gap of {gap}; take another seed")
    return exact, deviation(single, exact), gap


def write_case(folder, facts, inputs, exact):
    os.makedirs(folder, exist_ok=True)
    stored = {n: t.float() if t.is_floating_point() else t for n, t in exact.items()}
    stored = {n: t.contiguous() for n, t in stored.items()}
    safetensors.torch.save_file(inputs, folder + "/inputs.safetensors")
    safetensors.torch.save_file(stored, folder + "/expected.safetensors")
    with open(folder + "/case.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)


def make_case(output, name):
    config_name, changed, head, kind, seed = CASES[name]
    config = getattr(transformers, config_name)(**changed)
    config._attn_implementation = "eager"
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = getattr(transformers, head)(config).eval()
    randomize(model, generator)
    model.tie_weights()
    inputs = make_inputs(config, kind, generator)
    settings = None
    if kind in SEARCHED:
        length = inputs.get("generate.input_ids", inputs[next(iter(inputs))]).shape[1]
        settings = generation_settings(config.get_text_config(), kind, length)
    folder = os.path.join(output, name)
    for path in (folder, folder + "-half"):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    model.save_pretrained(folder + "/model")
    os.symlink(f"../{name}/model", folder + "-half/model")
    for path in (folder, folder + "-half"):
        if path != folder:
            round_matrices(model)
        exact, worst, gap = expect(model, kind, inputs, settings)
        bound = float(f"{MULTIPLE * max(worst.values()):.1e}")
        facts = dict(format=1, name=os.path.basename(path), family=config.model_type, seed=seed)
        facts |= dict(head=head, tolerance=dict(abs=bound, rel=bound))
        facts |= dict(optional=["*hidden_states.*"], float32_reference_deviation=worst)
        if settings:
            facts |= dict(generation=settings, greedy_min_logit_gap=gap)
        facts |= dict(computed_in="float64, stored as float32")
        facts |= dict(transformers_version=transformers.__version__)
        facts |= dict(torch_version=torch.__version__)
        write_case(path, facts, inputs, exact)
        spreads = {n: round(float(t.std()), 2) for n, t in exact.items() if n == "logits"}
        print(facts["name"], "tolerance", bound, "gap", gap, "spread", spreads, flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or CASES:
        make_case(sys.argv[1], name)


if __name__ == "__main__":
    main()
