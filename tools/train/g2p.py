#!/usr/bin/env python3
"""Trains models/g2p-en: English spelling to ARPAbet phonemes, a small Marian encoder-decoder.

    tools/train/g2p.py cmudict.dict build/g2p-en-f32
    tools/train/to_f16.py build/g2p-en-f32 models/g2p-en

Needs PyTorch alone; 80 minutes on two cores with bf16 arithmetic. Stops and goes on: a run that is
started again with the same target continues from its last checkpoint. The network is in
g2p_model.py; everything that needs no PyTorch is in g2p_data.py. Writes a Hugging Face model
directory in f32, with tokenizer.json, split.json and the model's own greedy and beam outputs for the
test words.
"""
import argparse
import random
import time
from pathlib import Path

import torch

import g2p_data
import g2p_model
import optimizers
import to_f16

EPOCHS = 54
DECAY_SHARE = 0.8  # of the epochs, the last ones, in which the rate goes straight to nothing
BATCH_PAIRS = 640
WEIGHT_DECAY = 0.02
MUON_RATE = 3e-3
ADAM_RATE = 2e-3
WARM_UP_STEPS = 400
LABEL_SMOOTHING = 0.1
DROPOUT = 0.2
AVERAGE_DECAY = 0.998
SEED = 7
BEAM_WORDS = 400
MAX_NEW_TOKENS = 32
SCORED_EVERY = 5  # epochs from one error rate of the development words to the next
IGNORED = -100  # the label that the loss ignores


def make_batches(pairs, shuffle):
    """Batches of sources of one length with targets of nearly one length, in random order: little
    padding, no curriculum."""
    keys = [(len(source), len(target) + shuffle.random()) for source, target in pairs]
    order = sorted(range(len(pairs)), key=keys.__getitem__)
    batches, begin = [], 0
    for end in range(1, len(order) + 1):
        if (end == len(order) or end - begin == BATCH_PAIRS
                or keys[order[end]][0] != keys[order[begin]][0]):
            batches.append([pairs[i] for i in order[begin:end]])
            begin = end
    shuffle.shuffle(batches)
    return batches


def loss_of(model, batch, dropout, smoothing):
    """The sum over a batch's labels, and their number."""
    sources = torch.tensor([source for source, _ in batch])
    width = max(len(target) for _, target in batch)
    labels = torch.tensor([target + [IGNORED] * (width - len(target)) for _, target in batch])
    # The decoder reads the targets shifted right after its start token, which is <pad>, 0.
    inputs = torch.cat([torch.zeros(len(batch), 1, dtype=torch.int64),
                        labels[:, :-1].clamp(min=0)], dim=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(sources, inputs, dropout)
    loss = torch.nn.functional.cross_entropy(
        scores.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED,
        label_smoothing=smoothing, reduction="sum")
    return loss, int((labels != IGNORED).sum())


def rate_share(epochs_done, epochs):
    return min(1.0, (epochs - epochs_done) / (DECAY_SHARE * epochs))


def is_hidden(name):
    return "layers." in name


@torch.no_grad()
def dev_loss(model, dev_pairs):
    """Nats a token, without dropout and smoothing."""
    parts = [loss_of(model, batch, 0.0, 0.0)
             for batch in make_batches(dev_pairs, random.Random(SEED))]
    return sum(loss.item() for loss, _ in parts) / sum(count for _, count in parts)


def train(model, pairs, target, epochs, report):
    """Gives the averaged weights. An epoch's order depends on its number alone."""
    optimizer = optimizers.Optimizers(model, is_hidden, MUON_RATE, ADAM_RATE, WEIGHT_DECAY)
    average = optimizers.Average(model, AVERAGE_DECAY)
    run = optimizers.Run(target, model, optimizer, average)
    typical = sum(len(label) for _, label in pairs) / len(pairs) * BATCH_PAIRS
    steps = len(make_batches(pairs, random.Random(SEED)))
    step, start = run.resume(), time.time()
    for epoch in range(step // steps, epochs):
        losses = labels = 0
        for batch in make_batches(pairs, random.Random(SEED + epoch)):
            optimizer.set_share(rate_share(step / steps, epochs) * min(1.0, step / WARM_UP_STEPS))
            loss, count = loss_of(model, batch, DROPOUT, LABEL_SMOOTHING)
            # A small batch, the last of its length, has a small gradient.
            (loss / typical).backward()
            optimizer.step()
            step += 1
            average.update(model, step)
            losses += loss.item()
            labels += count
        run.save(step)
        print(f"epoch {epoch + 1}/{epochs}  step {step}  loss {losses / labels:.4f}  "
              f"{report(average.model, epoch)}  {time.time() - start:.0f} s", flush=True)
    return average.model


def pronounce(model, vocabulary, words, beams):
    """Word -> phonemes joined by spaces, by the model's own search in f32."""
    end = vocabulary["</s>"]
    names = {index: token for token, index in vocabulary.items()}
    outputs = {}
    by_length = {}
    for word in words:
        by_length.setdefault(len(word), []).append(word)
    for same in by_length.values():
        for begin in range(0, len(same), BATCH_PAIRS):
            batch = same[begin:begin + BATCH_PAIRS]
            sources = torch.tensor([[vocabulary[letter] for letter in word] + [end]
                                    for word in batch])
            rows = (g2p_model.greedy(model, sources, end, MAX_NEW_TOKENS) if beams == 1
                    else g2p_model.beam_search(model, sources, end, beams, MAX_NEW_TOKENS))
            for word, row in zip(batch, rows):
                outputs[word] = " ".join(names[i] for i in row)
    return {word: outputs[word] for word in words}


def rates_of(outputs, words):
    return g2p_data.error_rates({word: tuple(text.split()) for word, text in outputs.items()},
                                words)


def save(model, vocabulary, target):
    """config.json, generation_config.json and model.safetensors."""
    config = g2p_model.config(vocabulary, DROPOUT)
    g2p_data.write_json(target / "config.json", config, indent=2)
    g2p_data.write_json(target / "generation_config.json",
                        {key: config[key] for key in
                         ("pad_token_id", "eos_token_id", "decoder_start_token_id", "use_cache")},
                        indent=2)
    g2p_data.write_json(target / "tokenizer.json", g2p_data.tokenizer_json(vocabulary), indent=2)
    to_f16.write_safetensors(
        target / "model.safetensors", {"format": "pt"},
        [(name, "F32", list(tensor.shape), tensor.contiguous().numpy().tobytes())
         for name, tensor in sorted(model.state_dict().items())])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cmudict", help="cmudict.dict of the CMU Pronouncing Dictionary")
    parser.add_argument("target", type=Path, help="model directory to write")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help=f"default {EPOCHS}")
    parser.add_argument("--pairs", type=int, help="train on the first N pairs only, as a trial")
    parser.add_argument("--test-words", type=int, default=g2p_data.TEST_WORDS,
                        help=f"score the first N test words (default {g2p_data.TEST_WORDS})")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    arguments = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(arguments.threads)
    words = g2p_data.read_cmudict(arguments.cmudict)
    split = g2p_data.split_words(words)
    vocabulary = g2p_data.build_vocabulary(words)
    pairs = g2p_data.training_pairs(words, split["train"], vocabulary)[:arguments.pairs]
    dev_pairs = g2p_data.training_pairs(words, split["dev"], vocabulary)
    model = g2p_model.G2p(len(vocabulary))
    print(f"{len(pairs)} training pairs, {len(vocabulary)} tokens, "
          f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)

    def report(averaged, epoch):
        text = f"dev loss {dev_loss(averaged, dev_pairs):.4f}"
        if (epoch + 1) % SCORED_EVERY == 0 or epoch + 1 == arguments.epochs:
            rates = rates_of(pronounce(averaged, vocabulary, split["dev"], beams=1), words)
            text += (f"  dev words wrong {100 * rates['word_error_rate']:.2f}%, without stress "
                     f"{100 * rates['word_error_rate_without_stress']:.2f}%")
        return text

    model = train(model, pairs, arguments.target, arguments.epochs, report)
    with torch.no_grad():
        for parameter in model.parameters():
            # As to_f16.py stores them, so that what is measured is what is shipped.
            parameter.copy_(parameter.half())
    save(model, vocabulary, arguments.target)
    g2p_data.write_json(arguments.target / "split.json",
                        {"test": split["test"], "dev": split["dev"]})
    test = split["test"][:arguments.test_words]
    greedy = pronounce(model, vocabulary, test, beams=1)
    g2p_data.write_json(arguments.target / "reference_greedy.json", greedy)
    g2p_data.write_json(arguments.target / "reference_beam4.json",
                        pronounce(model, vocabulary, test[:BEAM_WORDS], beams=4))
    for name, value in rates_of(greedy, words).items():
        print(name, value if name == "words" else f"{100 * value:.2f}%")


if __name__ == "__main__":
    main()
