#!/usr/bin/env python3
"""Trains models/g2p-en: English spelling to ARPAbet phonemes, a small Marian encoder-decoder.

    tools/train/g2p.py cmudict.dict build/g2p-en-f32
    tools/train/to_f16.py build/g2p-en-f32 models/g2p-en

Needs PyTorch and transformers; about an hour on one core. Everything that needs neither is in
g2p_data.py. Writes a Hugging Face model directory in f32, with tokenizer.json, split.json and the
model's own greedy and beam outputs for the test words.
"""
import argparse
import math
import random
import time
from pathlib import Path

import torch
from transformers import MarianConfig, MarianMTModel

import g2p_data

EPOCHS = 14
BATCH_PAIRS = 160
BETAS = (0.9, 0.98)
WEIGHT_DECAY = 0.01
PEAK_RATE = 1.5e-3
WARM_UP_STEPS = 800
FINAL_RATE_SHARE = 0.01
LABEL_SMOOTHING = 0.1
GRADIENT_NORM = 1.0
SEED = 7
BEAM_WORDS = 400
MAX_NEW_TOKENS = 32
IGNORED = -100  # the label that the loss leaves out


def make_model(vocabulary):
    pad, end = vocabulary["<pad>"], vocabulary["</s>"]
    config = MarianConfig(
        vocab_size=len(vocabulary), decoder_vocab_size=len(vocabulary), d_model=192,
        encoder_layers=4, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=768, decoder_ffn_dim=768, activation_function="relu", dropout=0.1,
        attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=64,
        scale_embedding=True, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=pad, bos_token_id=None,
        forced_eos_token_id=None)
    return MarianMTModel(config)


def make_batches(pairs, shuffle):
    """Batches of pairs of similar length, in random order: little padding, no curriculum."""
    keyed = [(len(source), len(target), shuffle.random(), index)
             for index, (source, target) in enumerate(pairs)]
    order = [index for *_, index in sorted(keyed)]
    batches = [order[i:i + BATCH_PAIRS] for i in range(0, len(order), BATCH_PAIRS)]
    shuffle.shuffle(batches)
    return batches


def padded(rows, fill):
    width = max(map(len, rows))
    return torch.tensor([row + [fill] * (width - len(row)) for row in rows])


def learning_rate(step, total):
    """Linear warm-up, then a cosine down to FINAL_RATE_SHARE of the peak."""
    if step < WARM_UP_STEPS:
        return PEAK_RATE * (step + 1) / WARM_UP_STEPS
    progress = (step - WARM_UP_STEPS) / max(1, total - WARM_UP_STEPS)
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return PEAK_RATE * (FINAL_RATE_SHARE + (1 - FINAL_RATE_SHARE) * cosine)


def loss_of(model, pairs, pad, smoothing):
    sources = padded([source for source, _ in pairs], pad)
    labels = padded([target for _, target in pairs], IGNORED)
    # The decoder reads the targets shifted right behind its start token, which is <pad>.
    inputs = torch.cat([torch.full((len(pairs), 1), pad), labels[:, :-1]], dim=1)
    inputs = inputs.masked_fill(inputs == IGNORED, pad)
    logits = model(input_ids=sources, attention_mask=(sources != pad).long(),
                   decoder_input_ids=inputs, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(),
                                             ignore_index=IGNORED, label_smoothing=smoothing)


def train(model, pairs, dev_pairs, pad, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=BETAS,
                                  weight_decay=WEIGHT_DECAY)
    shuffle = random.Random(SEED)
    total = epochs * math.ceil(len(pairs) / BATCH_PAIRS)
    step, start = 0, time.time()
    for epoch in range(epochs):
        model.train()
        losses = []
        for batch in make_batches(pairs, shuffle):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, total)
            loss = loss_of(model, [pairs[i] for i in batch], pad, LABEL_SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        model.eval()
        with torch.no_grad():
            chunks = [dev_pairs[i:i + BATCH_PAIRS] for i in range(0, len(dev_pairs), BATCH_PAIRS)]
            dev = sum(loss_of(model, chunk, pad, 0.0).item() for chunk in chunks) / len(chunks)
        print(f"epoch {epoch + 1}/{epochs}  step {step}  loss {sum(losses) / len(losses):.4f}  "
              f"dev loss {dev:.4f}  {time.time() - start:.0f} s", flush=True)


@torch.no_grad()
def pronounce(model, vocabulary, words, beams):
    """Word -> phonemes joined by spaces, by the model's own generate()."""
    model.eval()
    pad, end = vocabulary["<pad>"], vocabulary["</s>"]
    names = {index: token for token, index in vocabulary.items()}
    outputs = {}
    by_length = sorted(words, key=len)
    for begin in range(0, len(by_length), BATCH_PAIRS):
        batch = by_length[begin:begin + BATCH_PAIRS]
        sources = padded([[vocabulary[letter] for letter in word] + [end] for word in batch], pad)
        rows = model.generate(input_ids=sources, attention_mask=(sources != pad).long(),
                              num_beams=beams, do_sample=False, max_new_tokens=MAX_NEW_TOKENS)
        for word, row in zip(batch, rows.tolist()):
            outputs[word] = " ".join(names[i] for i in row if i not in (pad, end))
    return {word: outputs[word] for word in words}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cmudict", help="cmudict.dict of the CMU Pronouncing Dictionary")
    parser.add_argument("target", type=Path, help="model directory to write")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default {EPOCHS}")
    parser.add_argument("--pairs", type=int, help="train on the first N pairs only, as a trial")
    parser.add_argument("--test-words", type=int, default=g2p_data.TEST_WORDS,
                        help=f"score the first N test words (default {g2p_data.TEST_WORDS})")
    parser.add_argument("--threads", type=int, default=1, help="default 1, fastest at this size")
    arguments = parser.parse_args()

    random.seed(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(arguments.threads)
    words = g2p_data.read_cmudict(arguments.cmudict)
    split = g2p_data.split_words(words)
    vocabulary = g2p_data.build_vocabulary(words)
    pairs = g2p_data.training_pairs(words, split["train"], vocabulary)[:arguments.pairs]
    dev_pairs = g2p_data.training_pairs(words, split["dev"], vocabulary)
    model = make_model(vocabulary)
    print(f"{len(pairs)} training pairs, {len(vocabulary)} tokens, "
          f"{sum(p.numel() for p in model.parameters())} parameters")
    train(model, pairs, dev_pairs, vocabulary["<pad>"], arguments.epochs)

    arguments.target.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(arguments.target)
    g2p_data.write_json(arguments.target / "tokenizer.json",
                        g2p_data.tokenizer_json(vocabulary), indent=2)
    g2p_data.write_json(arguments.target / "split.json",
                        {"test": split["test"], "dev": split["dev"]})
    test = split["test"][:arguments.test_words]
    greedy = pronounce(model, vocabulary, test, beams=1)
    g2p_data.write_json(arguments.target / "reference_greedy.json", greedy)
    beam = pronounce(model, vocabulary, test[:BEAM_WORDS], beams=4)
    g2p_data.write_json(arguments.target / "reference_beam4.json", beam)
    outputs = {word: tuple(text.split()) for word, text in greedy.items()}
    rates = g2p_data.error_rates(outputs, words)
    for name, value in rates.items():
        print(name, value if name == "words" else f"{100 * value:.2f}%")


if __name__ == "__main__":
    main()
