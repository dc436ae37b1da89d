#!/usr/bin/env python3
"""Tests of `vkformer serve`: requests as JSON lines in, events as JSON lines out.

    serve_test.py PROGRAM MODEL [unittest arguments]

MODEL is models/shakespeare: a token is a byte."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import cli_support
from cli_support import device_arguments, run, run_on_device


def request(name, text, tokens, **more):
    return {"id": name, "text": text, "max_new_tokens": tokens, **more}


class ServeTest(unittest.TestCase):
    def serve(self, lines, *arguments):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n"
                       for line in lines)
        result = run_on_device("serve", cli_support.MODEL, *arguments, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def ends(self, events):
        return {e["id"]: e for e in events if e["event"] == "end"}

    def test_requests_together_are_those_alone(self):
        requests = [request("a", "ROMEO:", 30), request("b", "First Citizen:\nBefore", 20),
                    request(3, "x", 9), request("d", "ROMEO:\n", 12, client="other")]
        together = self.serve(requests, "--slots", "3")
        ends = self.ends(together)
        for one in requests:
            alone = self.ends(self.serve([one], "--slots", "3"))[one["id"]]
            end = ends[one["id"]]
            self.assertEqual(end["reason"], "finished")
            self.assertEqual([end["ids"], end["text"], end["score"]],
                             [alone["ids"], alone["text"], alone["score"]])
            self.assertEqual(len(end["ids"]), one["max_new_tokens"])
            pieces = [e for e in together if e["event"] == "text" and e["id"] == one["id"]]
            ids = [i for e in pieces for i in e["ids"]]
            self.assertEqual(ids, end["ids"][:len(ids)])
            self.assertTrue(end["text"].startswith("".join(e["text"] for e in pieces)))
        work = together[-1]
        self.assertEqual(work["event"], "work")
        self.assertEqual(work["new_tokens"], 71)
        self.assertLess(work["steps"], 71)

    def test_several_devices_have_the_texts_of_one(self):
        device = os.environ.get("VKFORMER_TEST_DEVICE", "0")
        plays = os.path.join(os.path.dirname(cli_support.MODEL), "shakespeare")
        lines = "".join(json.dumps(request(i, f"to be and to be number {i}", 6)) + "\n" for i in range(5))
        options = ("--slots", "4", "--prompt-lookup", "3")
        found = []
        for devices in ([], ["--devices", f"{device},{device}"]):
            serve = run if devices else run_on_device
            result = serve("serve", plays, *options, *devices, text=lines)
            self.assertEqual(result.returncode, 0, result.stderr)
            ends = self.ends([json.loads(line) for line in result.stdout.splitlines()])
            found.append({name: end["ids"] for name, end in ends.items()})
        self.assertEqual(len(found[0]), 5)
        self.assertEqual(found[0], found[1])

    def test_guesses_save_steps_and_change_no_text(self):
        line = [request("a", "ROMEO:\nWhat say you, my lord? What say you,", 60)]
        plain = self.serve(line)
        for arguments in (["--prompt-lookup", "6"], ["--draft", cli_support.MODEL, "--draft-tokens", "5"]):
            found = self.serve(line, *arguments)
            end, work = self.ends(found)["a"], found[-1]
            self.assertEqual(end["text"], self.ends(plain)["a"]["text"])
            self.assertEqual(end["score"], self.ends(plain)["a"]["score"])
            self.assertGreater(work["accepted_tokens"], 0)
            self.assertEqual(work["steps"] + work["accepted_tokens"], plain[-1]["steps"])

    def test_tokens_are_drawn_by_a_request_s_own_seed(self):
        settings = {"temperature": 0.9, "top_k": 20, "repetition_penalty": 1.1}
        lines = [request(i, "ROMEO:", 25, seed=i % 2, **settings) for i in range(4)]
        ends = self.ends(self.serve(lines, "--prompt-lookup", "4"))
        self.assertEqual(ends[0]["text"], ends[2]["text"])
        self.assertEqual(ends[1]["text"], ends[3]["text"])
        self.assertNotEqual(ends[0]["text"], ends[1]["text"])
        generated = self.generate("ROMEO:", "--max-new-tokens", "25", "--seed", "1",
                                  "--temperature", "0.9", "--top-k", "20",
                                  "--repetition-penalty", "1.1")
        self.assertEqual(generated[0]["text"], ends[1]["text"])

    def generate(self, *arguments):
        result = run_on_device("generate", cli_support.MODEL, *arguments, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_generate_guesses(self):
        texts = ["ROMEO:", "What say you? What say", "To be, or", "A", "B"]
        for choice in ([], ["--temperature", "0.7", "--seed", "5"]):
            arguments = [*texts, "--max-new-tokens", "24", *choice]
            plain = self.generate(*arguments)
            for drafts in (["--prompt-lookup", "5"], ["--draft", cli_support.MODEL]):
                found = self.generate(*arguments, *drafts)
                self.assertEqual([f["text"] for f in found], [p["text"] for p in plain])
                self.assertEqual([f["input"] for f in found], texts)
                self.assertGreater(sum(f.get("accepted_tokens", 0) for f in found), 0)
        for wrong in (["--beams", "2"], ["--contrastive-tokens", "4"], ["--cache", "q8"]):
            result = run_on_device("generate", cli_support.MODEL, "x", "--prompt-lookup", "3", *wrong)
            self.assertEqual(result.returncode, 2)
            self.assertIn("leave these away", result.stderr)
        result = run_on_device("generate", cli_support.MODEL, "x", "--draft-tokens", "3")
        self.assertEqual(result.returncode, 2)
        self.assertIn("settings of --draft and --prompt-lookup", result.stderr)
        old = run_on_device("generate", cli_support.MODEL, "x", "--guesses", "3")
        self.assertEqual(old.returncode, 2)
        self.assertIn("[--guesses] is now --draft-tokens", old.stderr)
        self.assertIn("settings of --draft and --prompt-lookup", old.stderr)
        old = run_on_device("generate", cli_support.MODEL, "x", "--guesses", "65", "--prompt-lookup", "3")
        self.assertEqual(old.returncode, 2)
        self.assertNotIn("--guesses", run("generate", "--help").stdout)

    def test_guesses_go_with_everything_that_chooses_tokens(self):
        texts = ["The king said: the king said:", "What say you? What say"]
        schema = {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 6}, "n": {"type": "integer", "maximum": 77},
            "ok": {"type": "boolean"}}, "required": ["name", "n", "ok"],
            "additionalProperties": False}
        with tempfile.TemporaryDirectory() as directory:
            files = [os.path.join(directory, name) for name in ("lines.gbnf", "schema.json")]
            for path, content in zip(files, (
                    'root ::= line+\nline ::= [A-Z] [a-z ,]{3,20} [.!?] "\\n"\n',
                    json.dumps(schema))):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            cases = [
                ["--grammar", files[0]],
                ["--json-schema", files[1], "--repetition-penalty", "1.2", "--logit-bias", '"=2'],
                ["--logit-bias", "e=-4", "--logit-bias", " th=2", "--logit-bias", "e=1"],
                ["--no-repeat-ngram", "4", "--bad-word", "king", "--presence-penalty", "0.3"],
                ["--temperature", "1.1", "--seed", "6", "--num-sequences", "3", "--grammar",
                 files[0]],
                ["--prefix", "ROMEO: ", "--stop", "th"]]
            for case in cases:
                arguments = [*texts, "--max-new-tokens", "60", "--log-probabilities", *case]
                plain = self.generate(*arguments)
                for drafts in (["--prompt-lookup", "4"],
                                ["--draft", cli_support.MODEL, "--draft-tokens", "3"]):
                    found = self.generate(*arguments, *drafts)
                    self.compare(plain, found)
                    for one in found:
                        self.assertLess(one["steps"], one["new_tokens"] + one["prompt_tokens"])
            value = json.loads(self.generate("X", "--json-schema", files[1], "--prompt-lookup", "3")[0]
                               ["text"])
            self.assertLessEqual(value["n"], 77)

    def compare(self, plain, found):
        self.assertEqual(len(plain), len(found))
        for one, other in zip(plain, found):
            self.assertEqual(len(one.get("sequences", [])), len(other.get("sequences", [])))
            for a, b in zip([one, *one.get("sequences", [])],
                            [other, *other.get("sequences", [])]):
                self.assertEqual([a["text"], a["ids"]], [b["text"], b["ids"]])
                self.assertEqual(len(a["log_probabilities"]), len(b["log_probabilities"]))
                for p, q in zip(a["log_probabilities"], b["log_probabilities"]):
                    self.assertAlmostEqual(p, q, places=4)

    def test_an_error_of_one_text_leaves_the_others(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "input")
            with open(path, "w", encoding="utf-8") as file:
                file.write("First\n" + "x" * 300 + "\nThird\n")
            arguments = ["--max-new-tokens", "9"]
            result = run_on_device("generate", cli_support.MODEL, "--file", path, "--keep-going",
                                   "--json", "--prompt-lookup", "3", "--capacity", "64", *arguments)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertIn("has room for 64", lines[1]["error"])
        plain = self.generate("First", "Third", *arguments)
        self.assertEqual([lines[0]["text"], lines[2]["text"]], [p["text"] for p in plain])

    def test_a_given_continuation_has_the_scores_of_the_same_text_written(self):
        written = self.generate("ROMEO:", "--max-new-tokens", "25", "--log-probabilities")[0]
        for prompt, options in (("ROMEO:", []), ("MEO:", ["--prefix", "RO"])):
            given = self.generate(prompt, "--continuation", written["text"], *options)[0]
            self.assertEqual(given["text"], written["text"])
            self.assertAlmostEqual(given["score"], written["score"], places=3)
            for a, b in zip(given["log_probabilities"], written["log_probabilities"], strict=True):
                self.assertAlmostEqual(a, b, places=4)
        model = os.path.join(os.path.dirname(cli_support.MODEL), "g2p-en")
        for arguments, code, words in (
                ([cli_support.MODEL, "", "--continuation", "x"], 1, "[text 1] has no tokens"),
                ([cli_support.MODEL, "x", "--continuation", "x", "--prompt-lookup", "2"], 2,
                 "generates nothing"),
                ([model, "word", "--continuation", "x"], 3, "[continuation] this model translates")):
            result = run_on_device("generate", *arguments)
            self.assertEqual(result.returncode, code)
            self.assertIn(words, result.stderr)

    def test_guesses_of_a_stream(self):
        arguments = ["ROMEO:\nWhat say you? What", "--max-new-tokens", "30", "--stream", "on"]
        plain = run_on_device("generate", cli_support.MODEL, *arguments)
        found = run_on_device("generate", cli_support.MODEL, *arguments, "--prompt-lookup", "3")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout, plain.stdout)
        self.assertRegex(found.stderr, r"30 tokens in .* tokens/s.* \d+ steps, \d+ of \d+ draft tokens")
        # More than the usual row has room for.
        long = self.generate("x", "--max-new-tokens", "1100", "--prompt-lookup", "2")
        self.assertEqual(len(long[0]["ids"]), 1100)

    def test_a_conversation_is_read_from_where_it_goes_on(self):
        # One row: the second request waits for the first one to end.
        lines = [request("a", "ROMEO:", 8), request("b", "ROMEO:", 16)]
        ends = self.ends(self.serve(lines, "--slots", "1"))
        self.assertEqual(ends["b"]["reused_tokens"], 5)
        self.assertEqual(ends["b"]["prompt_tokens"], 1)
        self.assertTrue(ends["b"]["text"].startswith(ends["a"]["text"]))
        forgot = self.ends(self.serve(lines, "--slots", "1", "--no-prefix-cache"))
        self.assertEqual(forgot["b"]["reused_tokens"], 0)
        self.assertEqual(forgot["b"]["score"], ends["b"]["score"])

    def test_old_names_of_options_work_with_a_note(self):
        ends = run_on_device("serve", cli_support.MODEL, "--rows", "1", "--forget",
                             text=json.dumps(request("a", "ROMEO:", 2)) + "\n")
        self.assertEqual(ends.returncode, 0)
        self.assertIn("[--rows] is now --slots", ends.stderr)
        self.assertIn("[--forget] is now --no-prefix-cache", ends.stderr)
        wrong = run_on_device("serve", cli_support.MODEL, "--waiting", "x")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--max-queue", wrong.stderr)

    def test_words_and_log_probabilities_of_requests(self):
        lines = [request("a", "ROMEO:\n", 20, bad_words="the", logit_bias={"e": -50, " t": 1},
                         log_probabilities=True),
                 request("b", "ROMEO:\n", 5, bad_words=[""]),
                 request("c", "ROMEO:\n", 5, logit_bias=["e"])]
        events = self.serve(lines)
        end = self.ends(events)["a"]
        self.assertNotIn("e", end["text"])
        self.assertAlmostEqual(sum(end["log_probabilities"]), end["score"], places=3)
        generated = self.generate("ROMEO:\n", "--max-new-tokens", "20", "--bad-word", "the",
                                  "--logit-bias", "e=-50", "--logit-bias", " t=1")
        self.assertEqual(generated[0]["text"], end["text"])
        refused = [e["error"] for e in events if e["event"] == "refused"]
        self.assertEqual(len(refused), 2)
        self.assertIn("'' has no tokens", refused[0])
        self.assertIn("an object of texts and numbers", refused[1])

    def test_more_requests_than_the_queue_holds_wait(self):
        lines = [request(i, "x" * (1 + i % 3), 2 + i % 4) for i in range(20)]
        events = self.serve(lines, "--slots", "2", "--max-queue", "1")
        self.assertEqual(sorted(self.ends(events)), list(range(20)))
        self.assertFalse([e for e in events if e["event"] == "refused"])

    def test_a_request_that_never_fits_is_refused_and_blocks_nobody(self):
        """It waited for ever once, at 100 % of a processor, and everything after it."""
        lines = [request("never", "ROMEO:", 4, return_sequences=3, temperature=1, client="one"),
                 request("much", "ROMEO:", 4, return_sequences=9, temperature=1),
                 request("next", "ROMEO:", 3, client="two")]
        events = self.serve(lines, "--slots", "1", "--max-queue", "8", "--max-queue-per-client", "2")
        refused = {e["id"]: e for e in events if e["event"] == "refused"}
        self.assertEqual({name: e["status"] for name, e in refused.items()},
                         {"never": 400, "much": 400})
        self.assertIn("[return_sequences] is 3, but must lie between 1 and 2",
                      refused["never"]["error"])
        self.assertEqual(self.ends(events)["next"]["reason"], "finished")

    def test_a_client_with_a_full_queue_is_refused_and_the_others_are_served(self):
        lines = [request(f"a{i}", "ROMEO:", 6, client="a") for i in range(6)]
        lines += [request(f"b{i}", "ROMEO:", 6, client="b") for i in range(2)]
        events = self.serve(lines, "--slots", "1", "--max-queue-per-client", "2")
        refused = {e["id"]: e for e in events if e["event"] == "refused"}
        self.assertTrue(refused)
        for name, event in refused.items():
            self.assertEqual(name[0], "a")
            self.assertEqual(event["status"], 429)
            self.assertIn("of the client 'a' 2 requests wait", event["error"])
        ends = self.ends(events)
        self.assertEqual(sorted([*ends, *refused]), sorted(line["id"] for line in lines))
        self.assertTrue({"b0", "b1"} <= set(ends))

    def test_what_is_wrong_is_refused_and_the_rest_goes_on(self):
        lines = ["nonsense", {"id": "none"}, {"id": "t", "text": 3}, {"text": "x"},
                 {"id": "f", "text": "x", "colour": 1}, request("m", "x", -1),
                 request("long", "x" * 30, 10), {"id": "i", "ids": [3, 999]},
                 {"cancel": "nobody"}, request("good", "x", 2), ""]
        events = self.serve(lines, "--capacity", "32")
        refused = [e["error"] for e in events if e["event"] == "refused"]
        for words in ("[line] is not a JSON object: nonsense", "[text] or [ids] or [messages] must be given",
                      "[text] must be a text", "[id] must name the request",
                      "[colour] is no field", "[max_new_tokens] must be a whole number",
                      "a row of this batch has room for 32", "[prompt] names the token 999",
                      "no request \"nobody\""):
            self.assertTrue(any(words in error for error in refused), words)
        self.assertEqual(len(refused), 9)
        self.assertEqual([e["status"] for e in events if e["event"] == "refused"].count(404), 1)
        self.assertEqual(self.ends(events)["good"]["reason"], "finished")

    def test_cancelling_what_runs(self):
        command = [cli_support.PROGRAM, "serve", cli_support.MODEL, *device_arguments()]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              encoding="utf-8") as server:
            server.stdin.write(json.dumps(request("a", "ROMEO:", 900)) + "\n")
            server.stdin.flush()
            first = json.loads(server.stdout.readline())
            self.assertEqual(first["event"], "text")
            server.stdin.write('{"cancel": "a"}\n')
            server.stdin.close()
            events = [json.loads(line) for line in server.stdout]
        end = self.ends(events)["a"]
        self.assertEqual(end["reason"], "cancelled")
        self.assertLess(len(end["ids"]), 900)

    def test_stop_strings_grammars_and_sequences(self):
        free = self.ends(self.serve([request("a", "ROMEO:\n", 40)]))["a"]["text"]
        stop = free[20:23]
        stopped = self.serve([request("a", "ROMEO:\n", 40, stop=[stop, "never comes"]),
                              request("b", "ROMEO:\n", 9, stop="")], "--prompt-lookup", "3")
        self.assertEqual(self.ends(stopped)["a"]["text"], free[:free.index(stop)])
        pieces = [e["text"] for e in stopped if e["event"] == "text" and e["id"] == "a"]
        self.assertTrue(free[:free.index(stop)].startswith("".join(pieces)))
        self.assertEqual(self.ends(stopped)["b"]["text"], free[:9])
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99999}},
                  "required": ["n"], "additionalProperties": False}
        events = self.serve(
            [request("g", "ROMEO:\n", 30, grammar='root ::= [a-f]+ "."', temperature=1.5, seed=4,
                     return_sequences=3),
             request("j", "ROMEO:\n", 60, json_schema=schema, temperature=2, seed=5),
             request("k", "ROMEO:\n", 60, json_schema=json.dumps(schema)),
             request("f", "ROMEO:\n", 40)], "--slots", "3")
        ends = [e for e in events if e["event"] == "end"]
        drawn = {e["sequence"]: e["text"] for e in ends if e["id"] == "g"}
        self.assertEqual(sorted(drawn), [0, 1, 2])
        for text in drawn.values():
            self.assertRegex(text, r"\A[a-f]+\.\Z")
        self.assertGreater(len(set(drawn.values())), 1)
        for name in "jk":
            value = json.loads(self.ends(events)[name]["text"])
            self.assertIsInstance(value["n"], int)
        self.assertEqual(self.ends(events)["f"]["text"], free)
        generated = self.generate("ROMEO:\n", "--max-new-tokens", "40", "--stop", stop,
                                  "--prompt-lookup", "3")
        self.assertEqual(generated[0]["text"], free[:free.index(stop)])

    def test_words_of_an_encoder_decoder_run_together(self):
        model = os.path.join(os.path.dirname(cli_support.MODEL), "g2p-en")
        words = ["attention", "is", "all", "you", "need", "transformer", "a", "phoneme"]
        lines = [{"id": w, "text": w} for w in words]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = run_on_device("serve", model, "--slots", "3", "--source-tokens", "32", text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        ends = self.ends([json.loads(line) for line in result.stdout.splitlines()])
        alone = run_on_device("generate", model, *words, "--beams", "1", "--json")
        self.assertEqual(alone.returncode, 0, alone.stderr)
        for line in map(json.loads, alone.stdout.splitlines()):
            end = ends[line["input"]]
            self.assertEqual([end["text"], end["ids"]], [line["text"], line["ids"]])
            self.assertAlmostEqual(end["score"], line["score"], places=4)

    def test_adapters_of_requests(self):
        folder = os.path.join(os.path.dirname(__file__), "..", "golden", "adapter-two")
        choices = [{}, {"one": 0.5}, {"two": -1.25}, {"one": 0.5, "two": -1.25}]
        folders = {"one": os.path.join(folder, "first"), "two": os.path.join(folder, "second")}

        def run(requests, *arguments):
            text = "".join(json.dumps({"ids": [3, 9, 4], "max_new_tokens": 8, **r}) + "\n" for r in requests)
            result = run_on_device("serve", os.path.join(folder, "base"), "--capacity", "32", *arguments,
                                   text=text)
            self.assertEqual(result.returncode, 0, result.stderr)
            return [json.loads(line) for line in result.stdout.splitlines()]

        given = [f for name, path in folders.items() for f in ("--request-adapter", f"{name}={path}")]
        together = self.ends(run([{"id": i, "adapters": c} for i, c in enumerate(choices)], *given))
        for i, choice in enumerate(choices):
            merged = [f for name, scale in choice.items() for f in ("--adapter", f"{folders[name]}={scale}")]
            alone = self.ends(run([{"id": i}], *merged))[i]
            self.assertEqual(together[i]["ids"], alone["ids"])
            self.assertAlmostEqual(together[i]["score"], alone["score"], delta=1e-3)
        self.assertEqual(len({end["score"] for end in together.values()}), 4)
        wrong = [(["one"], "object of names and scales"), ({"one": "x"}, "finite number"),
                 ({"one": 1e300}, "finite number"), ({"three": 1}, "no adapter 'three'")]
        events = run([{"id": i, "adapters": a} for i, (a, _) in enumerate(wrong)], *given)
        refused = [e for e in events if e["event"] == "refused"]
        self.assertEqual(len(refused), len(wrong))
        for event, (_, part) in zip(refused, wrong):
            self.assertIn(part, event["error"])
            self.assertEqual(event["status"], 400)
        for bad in ("one", "=" + folders["one"], "one="):
            result = run_on_device("serve", os.path.join(folder, "base"), "--request-adapter", bad, text="")
            self.assertEqual(result.returncode, 2)
            self.assertIn("NAME=DIR", result.stderr)

    def test_options_that_do_not_fit(self):
        for arguments, words in ((["--slots", "0"], "[rows] is 0"),
                                 (["--slots", "9", "--step-tokens", "8"], "[step_tokens] is 8"),
                                 (["--context", "8", "--sinks", "8"], "[sinks] is 8")):
            result = run_on_device("serve", cli_support.MODEL, *arguments, text="")
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
