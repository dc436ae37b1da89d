#!/usr/bin/env python3
"""Makes the golden cases of models that read arrays. They are Perceiver, wav2vec2 and its kin, and CLIP with SigLIP as
transformers computes them, Gato from its formulas, all in float64.

    python3 tools/golden/array_golden.py FOLDER [NAME ...]           the cases listed below
    python3 tools/golden/array_golden.py FOLDER NAME CLASS SEED CONFIG INPUTS

CONFIG is a JSON object of configuration keys, INPUTS one of sizes. For Perceiver these are `batch` and `tokens` or
`side` (pixels), for wav2vec2-conformer `samples`. For Gato these are `text`, `steps`, `height`, `width`, `continuous`,
`discrete`, `acted` and `actions`. `masked` are the samples or tokens at the end of row 0 that a mask hides.

Needs torch, transformers and safetensors. tests/golden/README.md describes the folders.
"""
import copy
import functools
import json
import math
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file

from model_golden import lists_of, randomize

PERCEIVER = dict(num_latents=5, d_latents=8, d_model=8, num_blocks=2, vocab_size=20,
                 num_self_attends_per_block=2, num_self_attention_heads=2,
                 num_cross_attention_heads=2, max_position_embeddings=14, image_size=6)
SOUND = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
             conv_dim=[6, 8], conv_kernel=[10, 3], conv_stride=[5, 2], num_feat_extract_layers=2,
             conv_depthwise_kernel_size=5, num_conv_pos_embeddings=4, vocab_size=20,
             num_conv_pos_embedding_groups=2, max_source_positions=40, output_hidden_size=12)
GATO = dict(model_type="gato", architectures=["Gato"], text_vocab_size=20, num_bins=16,
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
            image_size=[8, 12], patch_size=4, num_channels=3, patch_position_intervals=8,
            max_observation_tokens=12, max_position_embeddings=64, mu=100.0, M=256.0,
            hidden_act="geglu", layer_norm_eps=1e-5)
CASES = {
    "perceiver-bare": ("PerceiverModel", 621, dict(qk_channels=4, v_channels=8), dict(
        batch=2, tokens=9, masked=4)),
    "perceiver-words": ("PerceiverForMaskedLM", 622, dict(
        cross_attention_widening_factor=2, self_attention_widening_factor=3), dict(
            batch=2, tokens=9, masked=3)),
    "perceiver-classes": ("PerceiverForSequenceClassification", 623, dict(
        num_labels=3, use_query_residual=False, cross_attention_shape_for_attention="q"), dict(
            batch=2, tokens=11, masked=2)),
    "perceiver-pictures": ("PerceiverForImageClassificationFourier", 624, dict(
        num_labels=3, qk_channels=4, v_channels=8, num_blocks=1), dict(batch=2, side=5)),
    "wav2vec2-conformer-relative": ("Wav2Vec2ConformerModel", 631, {}, dict(
        batch=2, samples=130, masked=47)),
    "wav2vec2-conformer-rotary": ("Wav2Vec2ConformerForCTC", 632, dict(
        position_embeddings_type="rotary", feat_extract_norm="layer", conv_bias=True,
        hidden_act="swish"), dict(batch=2, samples=131, masked=40)),
    "wav2vec2-bare": ("Wav2Vec2Model", 633, {}, dict(batch=2, samples=130, masked=47)),
    "wav2vec2-ctc": ("Wav2Vec2ForCTC", 634, dict(
        do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True, hidden_act="swish",
        num_conv_pos_embeddings=5), dict(batch=2, samples=131, masked=40)),
    "hubert-bare": ("HubertModel", 635, dict(feat_proj_layer_norm=False), dict(
        batch=2, samples=130, masked=47)),
    "hubert-ctc": ("HubertForCTC", 636, dict(
        do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True,
        num_conv_pos_embeddings=5), dict(batch=2, samples=131, masked=40)),
    "wavlm-bare": ("WavLMModel", 637, dict(num_buckets=12, max_bucket_distance=9), dict(
        batch=2, samples=130, masked=47)),
    "wavlm-ctc": ("WavLMForCTC", 638, dict(
        do_stable_layer_norm=True, feat_extract_norm="layer", conv_bias=True, num_buckets=8,
        max_bucket_distance=40), dict(batch=2, samples=131, masked=40)),
    "wav2vec2-frames": ("Wav2Vec2ForAudioFrameClassification", 661, dict(num_labels=3), dict(
        batch=1, samples=90)),
    "wavlm-frames": ("WavLMForAudioFrameClassification", 662, dict(
        num_labels=3, num_buckets=12, max_bucket_distance=9), dict(batch=1, samples=90)),
    "wav2vec2-conformer-frames": ("Wav2Vec2ConformerForAudioFrameClassification", 663, dict(
        num_labels=3), dict(batch=1, samples=90)),
    "gato-acts": ("Gato", 641, {}, dict(batch=2, text=3, steps=2, height=8, width=4,
                                        continuous=3, discrete=2, acted=1, actions=3)),
}
# Models of two towers: what both have, and what the texts have.
TOWER = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
             image_size=12, patch_size=4)
TEXTS = TOWER | dict(vocab_size=20, max_position_embeddings=9, eos_token_id=7, projection_size=16)
CASES |= {
    "clip-pair": ("CLIPModel", 651, dict(projection_dim=10), dict(texts=3, tokens=8, pictures=2)),
    "siglip-pair": ("SiglipModel", 652, {}, dict(texts=2, tokens=9, pictures=3)),
}
TOLERANCE = 5e-5


def ending(batch, length, masked):
    mask = torch.ones(batch, length, dtype=torch.int64)
    if masked:
        mask[0, -masked:] = 0
    return {"attention_mask": mask} if masked else {}


def perceiver_inputs(config, sizes, generator):
    batch = sizes["batch"]
    if "side" in sizes:
        side = sizes["side"]
        return {"inputs": torch.randn(batch, 3, side, side, generator=generator)}
    tokens = sizes["tokens"]
    mask = ending(batch, tokens, sizes.get("masked", 0))
    if config.architectures == ["PerceiverModel"]:
        return mask | {"inputs": torch.randn(batch, tokens, config.d_model, generator=generator)}
    ids = torch.randint(0, config.vocab_size, (batch, tokens), generator=generator)
    return mask | {"inputs": ids}


def pair_case(class_name, seed, given, sizes):
    family = getattr(transformers, class_name)
    config = family.config_class(text_config=TEXTS, vision_config=TOWER, **given)
    config._attn_implementation = "eager"
    config.architectures = [class_name]
    generator = torch.Generator().manual_seed(seed)
    model = family(config).eval()
    randomize(model, generator)
    stored = copy.deepcopy(model)
    ids = torch.randint(0, TEXTS["vocab_size"], (sizes["texts"], sizes["tokens"]),
                        generator=generator)
    pixels = torch.randn(sizes["pictures"], 3, 12, 12, generator=generator)
    inputs = {"input_ids": ids, "pixel_values": pixels}
    with torch.no_grad():
        out = model.double()(input_ids=ids, pixel_values=pixels.double())
    names = ("text_embeds", "image_embeds", "logits_per_image", "logits_per_text")
    expected = {n: out[n].float().contiguous() for n in names}
    return stored, config.to_dict(), config.model_type, inputs, expected


def keep_heads():
    """WavLM hands out the mean of all heads' attention maps, (B, H, T, T) by repetition. Afterwards it hands out every
    head's as (B, H, H, T, T), by repetition too."""
    functional = torch.nn.functional
    whole = functional.multi_head_attention_forward
    functional.multi_head_attention_forward = functools.partial(whole, average_attn_weights=False)


def library_case(class_name, seed, given, sizes):
    if "pictures" in sizes:
        return pair_case(class_name, seed, given, sizes)
    family = getattr(transformers, class_name)
    perceiver = class_name.startswith("Perceiver")
    config = family.config_class(**((PERCEIVER if perceiver else SOUND) | given))
    config._attn_implementation = "eager"
    config.architectures = [class_name]
    generator = torch.Generator().manual_seed(seed)
    torch.set_default_dtype(torch.float32)
    model = family(config).eval()
    randomize(model, generator)
    stored = {n: t.clone() for n, t in model.state_dict().items()}
    if perceiver:
        inputs = perceiver_inputs(config, sizes, generator)
    else:
        batch, samples = sizes["batch"], sizes["samples"]
        inputs = {"input_values": torch.randn(batch, samples, generator=generator)}
        inputs |= ending(batch, samples, sizes.get("masked", 0))
    torch.set_default_dtype(torch.float64)
    double = family(config).eval().double()
    double.load_state_dict(stored)
    if config.model_type == "wavlm":
        keep_heads()
    with torch.no_grad():
        out = double(**{n: t.double() if t.is_floating_point() else t for n, t in inputs.items()},
                     output_attentions=True, output_hidden_states=True)
    if config.model_type == "wavlm":
        out["attentions"] = tuple(t[:, 0] for t in out.attentions)
    names = ("last_hidden_state", "extract_features", "logits")
    expected = {n: out[n] for n in names if out.get(n) is not None} | lists_of(out)
    torch.set_default_dtype(torch.float32)
    expected = {n: t.float().contiguous() for n, t in expected.items()}
    if not perceiver and "attention_mask" in inputs:
        frames = expected["attentions.0"].shape[-1]
        kept = double._get_feature_vector_attention_mask(frames, inputs["attention_mask"])
        kept = kept.to(torch.uint8)
        for name, tensor in list(expected.items()):
            rows = kept[:, None, :, None] if "attentions" in name else kept[:, :, None]
            if name != "extract_features":
                expected["mask." + name] = rows.contiguous()
    return model, config.to_dict(), config.model_type, inputs, expected


def gato_weights(c, generator):
    d, f = c["hidden_size"], c["intermediate_size"]
    vocabulary = c["text_vocab_size"] + c["num_bins"] + 1
    shapes = {"token_embeddings.weight": (vocabulary, d), "lm_head.weight": (vocabulary, d),
              "position_embeddings.weight": (c["max_position_embeddings"], d),
              "observation_embeddings.weight": (c["max_observation_tokens"], d),
              "patch_row_embeddings.weight": (c["patch_position_intervals"], d),
              "patch_col_embeddings.weight": (c["patch_position_intervals"], d),
              "action_embedding": (d,), "final_norm.weight": (d,), "final_norm.bias": (d,),
              "patch_projection.weight": (d, c["num_channels"] * c["patch_size"]**2),
              "patch_projection.bias": (d,)}
    for i in range(c["num_hidden_layers"]):
        at = f"layers.{i}."
        for name in ("attention_norm", "ffn_norm"):
            shapes |= {at + name + ".weight": (d,), at + name + ".bias": (d,)}
        linear = {n: (d, d) for n in ("query", "key", "value", "out")}
        for name, shape in (linear | {"up": (2 * f, d), "down": (d, f)}).items():
            shapes |= {at + name + ".weight": shape, at + name + ".bias": shape[:1]}
    weights = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator)
        scale = 1.5 / shape[-1]**0.5 if len(shape) == 2 and "embeddings" not in name else 0.5
        gain = 1 if name.endswith("norm.weight") else 0
        weights[name] = scale * values + gain
    return weights


def gato_inputs(c, s, generator):
    batch, steps = s["batch"], s["steps"]
    inputs = {
        "text_ids": torch.randint(0, c["text_vocab_size"], (batch, s["text"]), generator=generator),
        "continuous_observations": 40 * torch.randn(
            batch, steps, s["continuous"], generator=generator)**3,
        "discrete_observations": torch.randint(
            0, c["text_vocab_size"], (batch, steps, s["discrete"]), generator=generator),
        "continuous_actions": 0.7 * torch.randn(
            batch, s["acted"], s["actions"], generator=generator)}
    if s["height"]:
        shape = (batch, steps, c["num_channels"], s["height"], s["width"])
        inputs["pixel_values"] = torch.rand(shape, generator=generator)
    return inputs


class GatoReference:
    """Sequences as lists of embedded tokens, one after the other."""

    def __init__(self, config, weights):
        self.c, self.w = config, {n: t.double() for n, t in weights.items()}

    def linear(self, name, x):
        bias = self.w.get(name + ".bias", 0)
        return x @ self.w[name + ".weight"].T + bias

    def norm(self, name, x):
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"],
            self.c["layer_norm_eps"])

    def bin(self, value):
        n = self.c["num_bins"]
        clipped = max(-1.0, min(1.0, value))
        return self.c["text_vocab_size"] + min(n - 1, math.floor((clipped + 1) / 2 * n))

    def encode(self, x):
        mu, top = self.c["mu"], self.c["M"]
        return math.copysign(math.log(abs(x) * mu + 1) / math.log(top * mu + 1), x)

    def patches(self, picture):
        size, intervals = self.c["patch_size"], self.c["patch_position_intervals"]
        rows, columns = picture.shape[1] // size, picture.shape[2] // size
        middle = lambda i, n: (intervals * i // n + intervals * (i + 1) // n) // 2
        for r in range(rows):
            for k in range(columns):
                part = picture[:, r * size:(r + 1) * size, k * size:(k + 1) * size].double()
                x = self.linear("patch_projection", (2 * part.reshape(-1) - 1) / size**0.5)
                yield (x + self.w["patch_row_embeddings.weight"][middle(r, rows)] +
                       self.w["patch_col_embeddings.weight"][middle(k, columns)])

    def sequence(self, inputs, row):
        words, seen = self.w["token_embeddings.weight"], self.w["observation_embeddings.weight"]
        ids = inputs["text_ids"][row].tolist()
        x = [words[i] for i in ids]
        last = 0
        for t in range(inputs["discrete_observations"].shape[1]):
            index = 0
            if "pixel_values" in inputs:
                for patch in self.patches(inputs["pixel_values"][row, t]):
                    x.append(patch + seen[index])
                    ids.append(-1)
                    index += 1
            values = inputs["continuous_observations"][row, t].double().tolist()
            observed = [self.bin(self.encode(v)) for v in values]
            for i in observed + inputs["discrete_observations"][row, t].tolist():
                x.append(words[i] + seen[index])
                ids.append(i)
                index += 1
            ids.append(self.c["text_vocab_size"] + self.c["num_bins"])
            x.append(words[ids[-1]])
            last = len(x)
            if t < inputs["continuous_actions"].shape[1]:
                for v in inputs["continuous_actions"][row, t].double().tolist():
                    ids.append(self.bin(v))
                    x.append(words[ids[-1]] + self.w["action_embedding"])
        return ids, x, last

    def run(self, x):
        c, n = self.c, len(x)
        x = torch.stack(x) + self.w["position_embeddings.weight"][:n]
        heads, d = c["num_attention_heads"], c["hidden_size"]
        maps, states = [], []
        for i in range(c["num_hidden_layers"]):
            at = f"layers.{i}."
            states.append(x)
            h = self.norm(at + "attention_norm", x)
            q, k, v = (self.linear(at + m, h).view(n, heads, -1).transpose(0, 1)
                       for m in ("query", "key", "value"))
            scores = q @ k.transpose(1, 2) / (d // heads)**0.5
            hidden = torch.ones(n, n).triu(1).bool()
            maps.append(scores.masked_fill(hidden, -math.inf).softmax(-1))
            x = x + self.linear(at + "out", (maps[-1] @ v).transpose(0, 1).reshape(n, d))
            u, g = self.linear(at + "up", self.norm(at + "ffn_norm", x)).chunk(2, -1)
            x = x + self.linear(at + "down", torch.nn.functional.gelu(u) * g)
        x = self.norm("final_norm", x)
        return x, self.linear("lm_head", x), maps, states

    def act(self, x, count):
        first, ids = self.c["text_vocab_size"], []
        for _ in range(count):
            logits = self.run(x)[1][-1, first:first + self.c["num_bins"]]
            ids.append(first + int(logits.argmax()))
            x = x + [self.w["token_embeddings.weight"][ids[-1]] + self.w["action_embedding"]]
        return ids

    def answer(self, inputs):
        rows = {}
        count = inputs["continuous_actions"].shape[2]
        for row in range(len(inputs["text_ids"])):
            ids, x, last = self.sequence(inputs, row)
            states, logits, maps, layers = self.run(x)
            actions = self.act(x[:last], count)
            n = self.c["num_bins"]
            values = [(i - self.c["text_vocab_size"] + 0.5) / n * 2 - 1 for i in actions]
            one = {"token_ids": torch.tensor(ids), "last_hidden_state": states, "logits": logits,
                   "action_ids": torch.tensor(actions), "actions": torch.tensor(values)}
            one |= {f"attentions.{i}": m for i, m in enumerate(maps)}
            one |= {f"hidden_states.{i}": h for i, h in enumerate(layers)}
            for name, tensor in one.items():
                rows.setdefault(name, []).append(tensor)
        stacked = {n: torch.stack(t) for n, t in rows.items()}
        return {n: t.float() if t.is_floating_point() else t for n, t in stacked.items()}


def gato_case(seed, given, sizes):
    config = GATO | given
    generator = torch.Generator().manual_seed(seed)
    weights = gato_weights(config, generator)
    inputs = gato_inputs(config, sizes, generator)
    return weights, config, "gato", inputs, GatoReference(config, weights).answer(inputs)


def save_model(model, config, folder):
    if isinstance(model, dict):
        os.makedirs(folder)
        save_file({n: t.contiguous() for n, t in model.items()},
                  os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
    else:
        model.save_pretrained(folder)


def make_case(folder, name, class_name, seed, given, sizes):
    made = (gato_case(seed, given, sizes) if class_name == "Gato" else
            library_case(class_name, seed, given, sizes))
    model, config, family, inputs, expected = made
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    save_model(model, config, os.path.join(path, "model"))
    save_file({n: t.contiguous() for n, t in inputs.items()},
              os.path.join(path, "inputs.safetensors"))
    save_file({n: t.clone().contiguous() for n, t in expected.items()},
              os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family=family, head=class_name, seed=seed,
                 tolerance=dict(abs=TOLERANCE, rel=TOLERANCE), optional=["hidden_states.*"],
                 computed_in="float64, stored as float32", torch_version=torch.__version__,
                 transformers_version=transformers.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "seed", seed)


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    folder, names = arguments[0], arguments[1:]
    if len(names) == 5 and names[2].isdigit():
        given, sizes = (json.loads(text) for text in names[3:])
        make_case(folder, names[0], names[1], int(names[2]), given, sizes)
        return
    for name in names or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
