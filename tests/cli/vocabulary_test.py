#!/usr/bin/env python3
"""Tests of chat, serve, generate and run with vocabularies as large as those of published models.

    vocabulary_test.py PROGRAM [unittest arguments]

The models have random weights; their sizes are those of Qwen2's and Gemma's vocabularies."""
import array
import json
import os
import random
import sys
import tempfile
import unittest

import cli_support
from cli_support import (byte_level_tokenizer, byte_names, read_tensors, run_on_device,
                         write_llama, write_tensors)

WIDTH, HEADS, INNER = 16, 2, 24
SIZES = (151936, 262144)
TEMPLATE = ("{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


def make_model(directory, vocab):
    """One layer that ties its embeddings, with bytes, an end token and words that no text holds."""
    rng = random.Random(vocab)
    words = byte_names() + ["\u0120w%d" % i for i in range(vocab - 257)]

    def values(count, is_matrix):
        scale = 0.5 if is_matrix else 1
        some = [rng.gauss(0, scale) for _ in range(min(count, 65521))]
        repeated = array.array("f", some)
        while len(repeated) < count:
            repeated.extend(repeated[:count - len(repeated)])
        return repeated

    config = {"vocab_size": vocab, "hidden_size": WIDTH, "intermediate_size": INNER,
              "num_hidden_layers": 1, "num_attention_heads": HEADS,
              "max_position_embeddings": 1024, "tie_word_embeddings": True,
              "eos_token_id": vocab - 1}
    drawn = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20,
             "repetition_penalty": 1.05, "eos_token_id": vocab - 1}
    write_llama(directory, values, config,
                {"generation_config.json": drawn,
                 "tokenizer_config.json": {"chat_template": TEMPLATE},
                 "tokenizer.json": byte_level_tokenizer(words, [])})


class VocabularyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.models = {}
        for vocab in SIZES:
            cls.models[vocab] = os.path.join(cls.folder, str(vocab))
            os.mkdir(cls.models[vocab])
            make_model(cls.models[vocab], vocab)

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, *arguments, text=None):
        result = run_on_device(*arguments, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def generate(self, vocab, *arguments):
        return json.loads(self.program("generate", self.models[vocab], "a b", "--max-new-tokens",
                                       "4", "--json", *arguments))

    def logits(self, vocab, text):
        inputs, outputs = self.path("in"), self.path("out")
        write_tensors(inputs, {"input_ids": ("I64", [1, len(text)], list(text))})
        self.program("run", self.models[vocab], "--inputs", inputs, "--outputs", outputs)
        return read_tensors(outputs)["logits"][2][-vocab:]

    def test_greedy_penalties_and_sampling_agree_with_the_logits(self):
        names = byte_names()
        prompt = [names.index("a"), names.index("\u0120"), names.index("b")]
        for vocab in SIZES:
            logits = self.logits(vocab, prompt)
            order = sorted(range(vocab), key=lambda t: -logits[t])
            greedy = self.generate(vocab, "--temperature", "0", "--repetition-penalty", "1")
            self.assertEqual(greedy["ids"][0], order[0])
            plain = self.generate(vocab, "--temperature", "0", "--repetition-penalty", "1",
                                  "--beams", "1", "--top-k", "0", "--top-p", "1")
            self.assertEqual(plain["ids"], greedy["ids"])
            beams = self.generate(vocab, "--temperature", "0", "--repetition-penalty", "1",
                                  "--beams", "4")
            self.assertGreaterEqual(beams["score"] + 1e-5, greedy["score"] / 4)
            drawn = self.generate(vocab, "--temperature", "1", "--top-k", "3", "--top-p", "1",
                                  "--repetition-penalty", "1", "--num-sequences", "24",
                                  "--seed", "5")
            first = {s["ids"][0] for s in drawn["sequences"]}
            # Rows 65,521 apart are the same, and top-k keeps what ties with the last.
            self.assertTrue(all(logits[token] >= logits[order[2]] for token in first))
            self.assertGreater(len(first), 1)
            # The best token is in the prompt's way only where a penalty is asked for.
            fined = self.generate(vocab, "--temperature", "0", "--logit-bias",
                                  "%s=-1000" % "a", "--presence-penalty", "5", "--no-repeat-ngram",
                                  "2")
            self.assertEqual(len(fined["ids"]), 4)

    def test_a_published_generation_config_draws(self):
        for vocab in SIZES:
            one, other = (self.generate(vocab, "--seed", "3") for _ in range(2))
            self.assertEqual(one["ids"], other["ids"])
            self.assertEqual(len(one["ids"]), 4)

    def test_a_grammar_holds(self):
        grammar = self.path("yes.gbnf")
        with open(grammar, "w", encoding="utf-8") as file:
            file.write('root ::= "yes" | "no"\n')
        for vocab in SIZES:
            found = self.generate(vocab, "--grammar", grammar, "--seed", "1")
            self.assertIn(found["text"].removeprefix("a b"), ("yes", "no"))

    def test_chat_answers(self):
        model = self.models[SIZES[0]]
        ask = "Hello\n/history\n"
        cold, again = (self.program("chat", model, "--max-new-tokens", "5", "--temperature", "0",
                                    "--seed", seed, text=ask) for seed in ("1", "2"))
        self.assertEqual(cold, again, "no seed plays a part")
        warm = self.program("chat", model, "--max-new-tokens", "5", "--seed", "1", text=ask)
        self.assertIn("user: Hello", warm)
        self.assertIn("assistant: ", warm)

    def test_serve_mixes_requests(self):
        model = self.models[SIZES[0]]
        requests = [{"id": "greedy", "text": "a b", "max_new_tokens": 4, "temperature": 0,
                     "repetition_penalty": 1},
                    {"id": "drawn", "text": "a b", "max_new_tokens": 4, "seed": 3},
                    {"id": "fined", "text": "a b", "max_new_tokens": 4, "temperature": 0,
                     "frequency_penalty": 1.5}]
        for more in ((), ("--prompt-lookup", "3")):
            lines = self.program("serve", model, *more,
                                 text="".join(json.dumps(r) + "\n" for r in requests))
            ends = {e["id"]: e for e in map(json.loads, lines.splitlines()) if e["event"] == "end"}
            self.assertEqual({e["reason"] for e in ends.values()}, {"finished"})
            vocab = SIZES[0]
            greedy = self.generate(vocab, "--temperature", "0", "--repetition-penalty", "1")
            self.assertEqual(ends["greedy"]["ids"], greedy["ids"])
            self.assertEqual(ends["drawn"]["ids"], self.generate(vocab, "--seed", "3")["ids"])

    def test_a_long_continuation_is_scored(self):
        # More tokens than fit into one binding of logits (128 MiB) on software devices.
        text = self.path("long.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write("z" * 300)
        scored = self.program("generate", self.models[SIZES[0]], "a b", "--continuation",
                              "z" * 300, "--json")
        scores = json.loads(scored)["log_probabilities"]
        self.assertEqual(len(scores), 300)
        short = json.loads(self.program("generate", self.models[SIZES[0]], "a b",
                                        "--continuation", "z" * 3, "--json"))
        for long_one, short_one in zip(scores, short["log_probabilities"]):
            self.assertAlmostEqual(long_one, short_one, delta=1e-3)


if __name__ == "__main__":
    cli_support.PROGRAM = sys.argv[1]
    del sys.argv[1]
    unittest.main()
