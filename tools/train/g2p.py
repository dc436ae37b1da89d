#!/usr/bin/env python3
"""Trains models/g2p-en: English spelling to ARPAbet phonemes, a small Marian encoder-decoder.

    tools/train/g2p.py cmudict.dict build/g2p-en-first
    tools/train/g2p.py cmudict.dict build/g2p-en-f32 --start build/g2p-en-first
    tools/train/to_f16.py build/g2p-en-f32 models/g2p-en

Needs PyTorch and transformers; about an hour on one core with bf16 arithmetic. Stops and goes
on: a run that is started again with the same target continues from its last checkpoint. Everything
that needs neither library is in g2p_data.py. Writes a Hugging Face model directory in f32, with
tokenizer.json, split.json and the model's own greedy and beam outputs for the test words.
"""
import argparse
import math
import random
import time
from pathlib import Path

import torch
from transformers import MarianConfig, MarianMTModel

import g2p_data
import optimizers

EPOCHS = 22
DECAY_EPOCHS = 6  # the last ones, in which the rate goes straight to nothing
BATCH_PAIRS = 320
WEIGHT_DECAY = 0.02
MUON_RATE = 3e-3
ADAM_RATE = 2e-3
WARM_UP_STEPS = 400
LABEL_SMOOTHING = 0.1
DROPOUT = 0.15
AVERAGE_DECAY = 0.998
SEED = 7
BEAM_WORDS = 400
MAX_NEW_TOKENS = 32
IGNORED = -100  # the label that the loss leaves out


def make_model(vocabulary):
    pad, end = vocabulary["<pad>"], vocabulary["</s>"]
    config = MarianConfig(
        vocab_size=len(vocabulary), decoder_vocab_size=len(vocabulary), d_model=192,
        encoder_layers=4, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=768, decoder_ffn_dim=768, activation_function="relu", dropout=DROPOUT,
        attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=64,
        scale_embedding=True, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=pad, bos_token_id=None,
        forced_eos_token_id=None, attn_implementation="eager")
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


def rate_share(epochs_done, epochs):
    return min(1.0, (epochs - epochs_done) / min(DECAY_EPOCHS, epochs))


def is_hidden(name):
    return "layers." in name


@torch.no_grad()
def dev_loss(model, dev_pairs, pad):
    chunks = [dev_pairs[i:i + BATCH_PAIRS] for i in range(0, len(dev_pairs), BATCH_PAIRS)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return sum(loss_of(model, chunk, pad, 0.0).item() for chunk in chunks) / len(chunks)


def train(model, pairs, dev_pairs, pad, target, epochs):
    """Gives the averaged weights. An epoch's order depends on its number alone."""
    optimizer = optimizers.Optimizers(model, is_hidden, MUON_RATE, ADAM_RATE, WEIGHT_DECAY)
    average = optimizers.Average(model, AVERAGE_DECAY)
    run = optimizers.Run(target, model, optimizer, average)
    steps = math.ceil(len(pairs) / BATCH_PAIRS)
    step, start = run.resume(), time.time()
    for epoch in range(step // steps, epochs):
        model.train()
        losses = 0.0
        for batch in make_batches(pairs, random.Random(SEED + epoch)):
            optimizer.set_share(rate_share(step / steps, epochs) * min(1.0, step / WARM_UP_STEPS))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_of(model, [pairs[i] for i in batch], pad, LABEL_SMOOTHING)
            loss.backward()
            optimizer.step()
            step += 1
            average.update(model, step)
            losses += loss.item()
        run.save(step)
        print(f"epoch {epoch + 1}/{epochs}  step {step}  loss {losses / steps:.4f}  "
              f"dev loss {dev_loss(average.model, dev_pairs, pad):.4f}  "
              f"{time.time() - start:.0f} s", flush=True)
    return average.model


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
    parser.add_argument("--start", type=Path, help="model directory whose weights to start from")
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
    if arguments.start:
        model.load_state_dict(MarianMTModel.from_pretrained(arguments.start).float().state_dict())
    print(f"{len(pairs)} training pairs, {len(vocabulary)} tokens, "
          f"{sum(p.numel() for p in model.parameters())} parameters")
    model = train(model, pairs, dev_pairs, vocabulary["<pad>"], arguments.target, arguments.epochs)
    dev = pronounce(model, vocabulary, split["dev"], beams=1)
    rates = g2p_data.error_rates({word: tuple(text.split()) for word, text in dev.items()}, words)
    print(f"development words wrong: {100 * rates['word_error_rate']:.2f}%, without stress "
          f"{100 * rates['word_error_rate_without_stress']:.2f}%")

    arguments.target.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        for parameter in model.parameters():
            # As to_f16.py stores them, so that what is measured is what is shipped.
            parameter.copy_(parameter.half())
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
