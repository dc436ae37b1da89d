#!/usr/bin/env python3
"""Makes golden cases of VITS: a small random model, texts as tokens, and the waveform that
transformers computes of them in float64.

    python3 tools/golden/speech_golden.py FOLDER            the cases listed below
    python3 tools/golden/speech_golden.py FOLDER NAME ...   some of them
    python3 tools/golden/speech_golden.py FOLDER NAME SEED JSON
    python3 tools/golden/speech_golden.py --task FOLDER     a model with its tokenizer and chance,
                                                            for tests/tasks/golden/speak

JSON has {"config", "rows" (how many texts), "masked" (tokens of the last text), "speaker"}. The seed is raised until
every duration is 1e-3 from a whole number of frames. So rounding cannot change the length.
"""
import copy
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

from model_golden import TOLERANCE, in_double, lists_of

SIZES = dict(vocab_size=20, hidden_size=12, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20,
             flow_size=8, spectrogram_bins=5, upsample_initial_channel=16, upsample_rates=[4, 2],
             upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3, 5],
             resblock_dilation_sizes=[[1, 3], [1, 2]], duration_predictor_filter_channels=10,
             prior_encoder_num_flows=2, prior_encoder_num_wavenet_layers=2,
             posterior_encoder_num_wavenet_layers=1, noise_scale=0.0, noise_scale_duration=0.0,
             speaking_rate=0.3, layerdrop=0.0)
TOKENS, MARGIN = 7, 1e-3

CASES = {
    # Durations by convolutions; two texts, of which one is shorter.
    "vits-convs": (1, {"config": dict(use_stochastic_duration_prediction=False, window_size=2,
                                      wavenet_dilation_rate=2, wavenet_kernel_size=3),
                       "rows": 2, "masked": 3}),
    # Durations by flows, three voices, an odd number of flows, other kernels.
    "vits-flows": (2, {"config": dict(num_speakers=3, speaker_embedding_size=6, hidden_act="gelu",
                                      prior_encoder_num_flows=3, use_bias=False, ffn_kernel_size=4,
                                      upsample_rates=[3, 2], upsample_kernel_sizes=[4, 6],
                                      duration_predictor_num_flows=3,
                                      duration_predictor_flow_bins=6, speaking_rate=0.2),
                       "rows": 1, "masked": 0, "speaker": 2}),
}


def randomize(model, generator):
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if "norm" in name and parameter.dim() == 1:
            values = 0.3 * values + (1 if name.endswith("weight") else 0)
        elif name.endswith("original0"):
            values = 1 + 0.3 * values
        elif parameter.dim() <= 1 or name.endswith(("translate", "log_scale")):
            values = 0.3 * values
        elif "emb" in name:
            values = 0.7 * values
        else:
            values = values / parameter[0].numel() ** 0.5
        parameter.data = values.to(parameter.dtype)


def make_model(seed, given):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    config = transformers.VitsConfig(**(SIZES | given.get("config", {})))
    config._attn_implementation = "eager"
    model = transformers.VitsModel(config).eval()
    randomize(model, generator)
    return model, generator


def make_inputs(model, generator, given):
    shape = (given.get("rows", 1), given.get("tokens", TOKENS))
    ids = torch.randint(1, model.config.vocab_size, shape, generator=generator)
    inputs = {"input_ids": ids}
    if given.get("masked"):
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][-1, -given["masked"]:] = 0
    return inputs


def run(model, inputs, given):
    """The outputs, or None where a duration is too near to a whole number."""
    fresh = copy.deepcopy(model)
    logs = {}
    hook = fresh.duration_predictor.register_forward_hook(
        lambda module, args, out: logs.update(value=out))
    with torch.no_grad():
        out = fresh(**in_double(inputs), output_hidden_states=True, output_attentions=True,
                    **({"speaker_id": given["speaker"]} if "speaker" in given else {}))
    hook.remove()
    mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))[:, None]
    frames = torch.exp(logs["value"]) / model.config.speaking_rate
    near = (frames - frames.round()).abs() < MARGIN * torch.clamp(frames, min=1)
    if (near & (mask > 0)).any() or frames.max() > 40:
        return None
    return out


def expected_of(out, inputs):
    expected = {"waveform": out.waveform} | lists_of(out)
    made = {name: tensor.float().contiguous().clone() for name, tensor in expected.items()}
    made["sequence_lengths"] = out.sequence_lengths.long()
    if "attention_mask" in inputs:
        tokens = inputs["attention_mask"].to(torch.uint8)
        for name in list(made):
            if name.startswith("attentions"):
                made["mask." + name] = tokens[:, None, :, None].clone()
            elif name.startswith("hidden_states"):
                made["mask." + name] = tokens[:, :, None].clone()
    return made


def make_case(folder, name, seed, given):
    while True:
        model, generator = make_model(seed, given)
        inputs = make_inputs(model, generator, given)
        out = run(copy.deepcopy(model).double(), inputs, given)
        if out is not None:
            break
        seed += 1
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    model.save_pretrained(os.path.join(path, "model"))
    stored = dict(inputs)
    if "speaker" in given:
        stored["speaker_id"] = torch.tensor([given["speaker"]])
    safetensors.torch.save_file(stored, os.path.join(path, "inputs.safetensors"))
    safetensors.torch.save_file(expected_of(out, inputs),
                                os.path.join(path, "expected.safetensors"))
    facts = dict(format=1, name=name, family="vits", head="VitsModel", seed=seed,
                 tolerance=dict(abs=TOLERANCE, rel=TOLERANCE), optional=["hidden_states.*"],
                 computed_in="float64, stored as float32", torch_version=torch.__version__,
                 transformers_version=transformers.__version__)
    with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    print(name, "seed", seed, "samples", out.waveform.shape[1])


def make_task(path):
    """Texts by the library's own tokenizer, with noise after manual_seed; in float32, for a double
    takes other random numbers."""
    letters = "kabcdefghijlmnopqrstuvwxyz '-"
    given = {"config": dict(vocab_size=len(letters), noise_scale=0.5, noise_scale_duration=0.3,
                            speaking_rate=0.5)}
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    with open(os.path.join(path, "vocab.json"), "w", encoding="utf-8") as file:
        json.dump({letter: i for i, letter in enumerate(letters)}, file)
    tokenizer = transformers.VitsTokenizer(os.path.join(path, "vocab.json"), pad_token="k",
                                           language="eng", phonemize=False)
    model, _ = make_model(5, given)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    texts, expected = [], {}
    for text in ("Hello, kind world!", "It's a test - k.", "one two three"):
        inputs = tokenizer(text, return_tensors="pt")
        for seed in range(7, 99):
            torch.manual_seed(seed)
            near = []
            hook = model.duration_predictor.register_forward_hook(
                lambda module, args, out: near.append(torch.exp(out) / model.speaking_rate))
            with torch.no_grad():
                waveform = model(**inputs).waveform[0]
            hook.remove()
            if (near[0] - near[0].round()).abs().min() > MARGIN:
                break
        expected[f"waveform.{len(texts)}"] = waveform.contiguous()
        texts.append(dict(text=text, seed=seed, ids=inputs["input_ids"][0].tolist()))
    safetensors.torch.save_file(expected, os.path.join(path, "expected.safetensors"))
    with open(os.path.join(path, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(dict(texts=texts), file, indent=1)
    print(path, [(entry["seed"], len(entry["ids"])) for entry in texts])


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == "--task":
        make_task(arguments[1])
        return
    folder, names = arguments[0], arguments[1:]
    if len(names) == 3 and names[1].isdigit():
        make_case(folder, names[0], int(names[1]), json.loads(names[2]))
        return
    for name in names or CASES:
        make_case(folder, name, *CASES[name])


if __name__ == "__main__":
    main()
