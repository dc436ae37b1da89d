#!/usr/bin/env python3
"""Makes the encoder cases of tests/golden that have odd options: small random models and what
transformers computes of them in float64.

    python3 tools/golden/encoder_golden.py OUTPUT_FOLDER [NAME ...]

Needs torch, transformers and safetensors (their versions go into case.json). tests/golden/README.md
describes the folders.
"""
import json
import os
import shutil
import sys

import safetensors.torch
import torch
import transformers

SIZES = dict(
    vocab_size=53, hidden_size=20, num_hidden_layers=2, num_attention_heads=2, intermediate_size=28
)
# Where the attention mask is zero besides the end of the last row.
HOLES = [(0, 2), (0, 5), (1, 1)]

# Some models ask for a softmax in float32 whatever they compute in.
plain_softmax = torch.nn.functional.softmax
torch.nn.functional.softmax = lambda x, dim=None, dtype=None: plain_softmax(x, dim=dim)


def randomize(model, generator):
    """Every bias, gain and embedding row is random, so that a forgotten one shows."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1:
            gain = "norm" in name.lower() and name.endswith("weight")
            values = 1 + 0.3 * values if gain else 0.3 * values
        elif not name.endswith("embeddings.weight"):
            values = 1.5 * values / parameter.shape[-1] ** 0.5
        parameter.data = values


def forward(model, inputs):
    with torch.no_grad():
        out = model(**inputs, output_attentions=True, output_hidden_states=True)
    names = ("last_hidden_state", "pooler_output", "logits", "start_logits", "end_logits")
    expected = {name: out[name] for name in names if name in out}
    layers = len(out.attentions)
    expected |= {f"attentions.{i}": a for i, a in enumerate(out.attentions)}
    expected |= {f"hidden_states.{i}": h for i, h in enumerate(out.hidden_states[:layers])}
    expected = {name: tensor.float().contiguous() for name, tensor in expected.items()}
    mask = inputs["attention_mask"]
    for name, tensor in list(expected.items()):
        rows = mask
        if name.startswith("attentions"):
            rows = mask[:, None, :, None]
        elif tensor.shape[:2] != mask.shape:
            continue
        elif tensor.dim() == 3:
            rows = mask[:, :, None]
        expected["mask." + name] = rows.to(torch.uint8).contiguous()
    return expected


def respell(folder, tensors=None, config=None):
    """Rewrites the files as older versions of the library had them."""
    if tensors:
        path = folder + "/model/model.safetensors"
        safetensors.torch.save_file(tensors(safetensors.torch.load_file(path)), path)
    if config:
        path = folder + "/model/config.json"
        with open(path) as file:
            spelled = json.load(file)
        config(spelled)
        with open(path, "w") as file:
            json.dump(spelled, file, indent=2)


def make(folder, seed, family, settings, tokens=11, types=0, **older):
    generator = torch.Generator().manual_seed(seed)
    settings._attn_implementation = "eager"
    model = family(settings).eval()
    randomize(model, generator)
    model.tie_weights()
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder + "/model")
    respell(folder, **older)
    ids = torch.randint(4, settings.vocab_size, (2, tokens), generator=generator)
    mask = torch.ones_like(ids)
    ids[1, tokens - 3 :] = settings.pad_token_id
    mask[1, tokens - 3 :] = 0
    for row, column in HOLES:
        mask[row, column] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if types:
        inputs["token_type_ids"] = torch.randint(0, types, ids.shape, generator=generator)
    safetensors.torch.save_file(inputs, folder + "/inputs.safetensors")
    expected = forward(model.double(), inputs)
    safetensors.torch.save_file(expected, folder + "/expected.safetensors")
    facts = dict(format=1, name=os.path.basename(folder), family=settings.model_type, seed=seed)
    facts |= dict(head=family.__name__, tolerance=dict(abs=1e-4, rel=1e-4))
    facts |= dict(optional=["hidden_states.*"], computed_in="float64, stored as float32")
    facts |= dict(transformers_version=transformers.__version__, torch_version=torch.__version__)
    with open(folder + "/case.json", "w") as file:
        json.dump(facts, file, indent=1)


def older_bert_tensors(tensors):
    """gamma and beta, a buffer of positions, tied copies, and what another head left."""
    old = {}
    for name, tensor in tensors.items():
        for now, then in (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")):
            name = name.replace(now, then)
        old[name] = tensor
    old["bert.embeddings.position_ids"] = torch.arange(24)[None]
    old["bert.pooler.dense.weight"] = torch.zeros(20, 20)
    old["bert.pooler.dense.bias"] = torch.zeros(20)
    old["cls.seq_relationship.weight"] = torch.zeros(2, 20)
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"].clone()
    return old


def older_bert_config(config):
    config["torch_dtype"] = config.pop("dtype")
    config |= dict(position_embedding_type="absolute", gradient_checkpointing=False)


def older_modernbert_config(config):
    del config["layer_types"], config["rope_parameters"]
    config["torch_dtype"] = config.pop("dtype")
    config |= dict(global_attn_every_n_layers=2, global_rope_theta=5000.0, local_rope_theta=700.0)


def bert_older_names(folder):
    config = transformers.BertConfig(max_position_embeddings=24, type_vocab_size=3, **SIZES)
    older = dict(tensors=older_bert_tensors, config=older_bert_config)
    make(folder, 1, transformers.BertForMaskedLM, config, types=3, **older)


def xlm_roberta_classes(folder):
    """A pad token other than 1, where positions begin later."""
    config = transformers.XLMRobertaConfig(
        max_position_embeddings=24, type_vocab_size=1, pad_token_id=3, num_labels=3, **SIZES
    )
    make(folder, 2, transformers.XLMRobertaForSequenceClassification, config)


def distilbert_answers(folder):
    config = transformers.DistilBertConfig(
        vocab_size=53, dim=20, n_layers=2, n_heads=2, hidden_dim=28, max_position_embeddings=24
    )
    make(folder, 3, transformers.DistilBertForQuestionAnswering, config)


def albert_words(folder):
    config = transformers.AlbertConfig(
        embedding_size=12, num_hidden_groups=2, max_position_embeddings=24, **SIZES
    )
    config.num_hidden_layers = 3
    make(folder, 4, transformers.AlbertForMaskedLM, config, types=2)


def electra_words(folder):
    config = transformers.ElectraConfig(embedding_size=12, max_position_embeddings=24, **SIZES)
    make(folder, 5, transformers.ElectraForMaskedLM, config)


def modernbert_classes(folder):
    """The older spelling; classes of the mean over tokens that the mask keeps."""
    rotary = {"full_attention": 5000.0, "sliding_attention": 700.0}
    config = transformers.ModernBertConfig(
        **SIZES | dict(num_hidden_layers=3),
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        rope_parameters={k: dict(rope_type="default", rope_theta=v) for k, v in rotary.items()},
        local_attention=7,
        classifier_pooling="mean",
        classifier_activation="silu",
        num_labels=3,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    )
    family = transformers.ModernBertForSequenceClassification
    make(folder, 6, family, config, tokens=19, config=older_modernbert_config)


MAKERS = {
    "bert-older-names": bert_older_names,
    "xlm-roberta-classes": xlm_roberta_classes,
    "distilbert-answers": distilbert_answers,
    "albert-words": albert_words,
    "electra-words": electra_words,
    "modernbert-classes": modernbert_classes,
}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[2:] or MAKERS:
        MAKERS[name](os.path.join(sys.argv[1], name))
        print(name)


if __name__ == "__main__":
    main()
