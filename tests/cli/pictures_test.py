#!/usr/bin/env python3
"""Tests of pictures in the prompts of `vkformer generate`, `chat` and `serve`.

    pictures_test.py PROGRAM TASK_MODELS [unittest arguments]

TASK_MODELS is tests/tasks/golden; its models prompts-* answer as transformers does."""
import base64
import json
import os
import shutil
import sys
import tempfile
import unittest

import cli_support
from cli_support import run_on_device

FAMILIES = ("llava", "paligemma", "gemma3", "idefics3", "smolvlm", "qwen2_5_vl", "qwen3_vl")


def model(name):
    return os.path.join(cli_support.MODEL, name)


def prompts(family):
    with open(model(f"prompts-{family}/expected.json"), encoding="utf-8") as file:
        return json.load(file)["prompts"]


class PicturesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def generate(self, directory, text, pictures, *options, code=0):
        named = [part for picture in pictures for part in ("--picture", model(picture))]
        result = run_on_device("generate", directory, text, *named, "--json", "--beams", "1",
                               "--max-new-tokens", "8", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout) if code == 0 else result.stderr

    def chat(self, family, *lines, options=(), code=0):
        result = run_on_device("chat", model(f"prompts-{family}"), "--max-new-tokens", "8", *options,
                               text="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_a_model_answers_as_in_transformers(self):
        for family in FAMILIES:
            directory = model(f"prompts-{family}")
            for entry in prompts(family):
                # Without placeholders a text is what a user says, where there is a template.
                templated = family != "paligemma" and entry["prompt"] is not None
                if templated and not entry["chat"]:
                    continue
                found = self.generate(directory, entry["text"], entry["pictures"])
                self.assertEqual(found["ids"], entry["generated"], (family, entry))

    def test_lines_name_their_own_pictures(self):
        entries = [entry for entry in prompts("paligemma") if entry["prompt"] is not None]
        lines = self.path("in.jsonl")
        with open(lines, "w", encoding="utf-8") as file:
            for entry in entries:
                paths = [model(name) for name in entry["pictures"]]
                paths = paths[0] if len(paths) == 1 else paths
                file.write(json.dumps({"text": entry["text"], "pictures": paths}) + "\n")
        result = run_on_device("generate", model("prompts-paligemma"), "--input", lines, "--json",
                               "--beams", "1", "--max-new-tokens", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([answer["ids"] for answer in answers],
                         [entry["generated"] for entry in entries])
        with open(lines, "w", encoding="utf-8") as file:
            file.write(json.dumps({"text": "a", "pictures": [7]}) + "\n")
        result = run_on_device("generate", model("prompts-paligemma"), "--input", lines)
        self.assertEqual(result.returncode, 1)
        self.assertIn("[pictures]", result.stderr)

    def test_one_text_is_seen_while_it_is_written(self):
        entry = prompts("smolvlm")[3]
        result = run_on_device("generate", model("prompts-smolvlm"), entry["text"], "--picture",
                               model(entry["pictures"][0]), "--stream", "on", "--beams", "1",
                               "--max-new-tokens", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, entry["answer"] + "\n")

    def test_wrong_pictures_are_told(self):
        directory = model("prompts-llava")
        self.assertIn("absent.png", self.generate(directory, "a", ["absent.png"], code=1))
        error = self.generate(directory, "a <image>", ["picture-0.png", "picture-1.png"], code=1)
        self.assertIn("1 placeholders <image>, but 2 pictures", error)
        error = self.generate(model("judge"), "a", ["picture-0.png"], code=3)
        self.assertIn("reads no pictures", error)
        error = self.generate(directory, "a", ["picture-0.png"], "--prompt-lookup", "2", code=2)
        self.assertIn("--picture", error)
        bad = self.path("bad.png")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("no picture")
        error = self.generate(directory, "a", [bad], code=3)
        self.assertIn("bad.png", error)
        # 1,200 tokens of one picture, and 512 positions.
        wide = self.path("wide")
        shutil.copytree(model("prompts-qwen3_vl"), wide)
        settings = os.path.join(wide, "preprocessor_config.json")
        with open(settings, encoding="utf-8") as file:
            content = json.load(file)
        content["size"] = {"shortest_edge": 19200, "longest_edge": 40000}
        with open(settings, "w", encoding="utf-8") as file:
            json.dump(content, file)
        error = self.generate(wide, "a", ["picture-1.png"], code=1)
        self.assertIn("of its pictures, but the model takes at most 512", error)

    def test_a_captioning_model_describes_one_picture(self):
        picture = model("picture-0.png")
        caption = json.loads(run_on_device("caption", model("captions"), picture).stdout)["text"]
        asked = run_on_device("generate", model("captions"), "--picture", picture)
        self.assertEqual(asked.stdout, caption + "\n", asked.stderr)
        begun = json.loads(run_on_device("generate", model("captions"), "ab", "--json",
                                         "--picture", picture).stdout)
        self.assertEqual(begun["input"], "ab")
        self.assertTrue(begun["text"].startswith("ab"), begun)
        prefixed = run_on_device("caption", model("captions"), "--prefix", "ab", picture)
        self.assertEqual(json.loads(prefixed.stdout)["text"], begun["text"])
        both = self.generate(model("captions"), "a", ["picture-0.png", "picture-1.png"], code=1)
        self.assertIn("one picture at a time, but 2 were given", both)
        stream = run_on_device("generate", model("captions"), "a", "--picture", picture,
                               "--stream", "on")
        self.assertIn("this one describes pictures", stream.stderr)

    def test_a_conversation_shows_pictures(self):
        for family in ("llava", "gemma3", "smolvlm", "qwen2_5_vl"):
            entry = prompts(family)[3]
            picture = model(entry["pictures"][0])
            spoken = self.chat(family, "/picture " + picture, entry["text"])
            self.assertEqual(spoken.stdout, entry["answer"] + "\n", family)
            given = self.chat(family, entry["text"], options=["--picture", picture])
            self.assertEqual(given.stdout, spoken.stdout, family)

    def test_a_conversation_keeps_its_pictures(self):
        picture = model("picture-0.png")
        begun, ended = self.path("begun.json"), self.path("ended.json")
        self.chat("smolvlm", "/picture " + picture, "One", "/save " + begun)
        with open(begun, encoding="utf-8") as file:
            said = json.load(file)["messages"]
        self.assertEqual(said[0]["pictures"], [picture])
        self.assertNotIn("pictures", said[1])
        whole = self.chat("smolvlm", "/picture " + picture, "One", "Two", "/save " + ended)
        later = self.chat("smolvlm", "/load " + begun, "Two", "/history")
        self.assertIn("user: [" + picture + "]", later.stdout)
        self.assertTrue(whole.stdout.splitlines()[-1] in later.stdout)

    def test_a_conversation_goes_on_after_a_wrong_picture(self):
        error = self.chat("smolvlm", "/picture " + self.path("absent.png"), code=1).stderr
        self.assertIn("absent.png", error)
        self.assertIn("lacks a file", self.chat("smolvlm", "/picture", code=1).stderr)
        result = run_on_device("chat", model("judge"), text="/picture " + model("picture-0.png"))
        self.assertNotEqual(result.returncode, 0)


def data_url(picture):
    with open(model(picture), "rb") as file:
        return "data:image/png;base64," + base64.b64encode(file.read()).decode()


def said(text, *urls):
    """Messages of one user, in the notation of OpenAI's chat completions."""
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]


class ServePicturesTest(unittest.TestCase):
    def serve(self, family, lines, *options):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = run_on_device("serve", model(f"prompts-{family}"), "--capacity", "256", *options, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def ends(self, family, lines, *options):
        return {e["id"]: e for e in self.serve(family, lines, *options) if e["event"] == "end"}

    def requests(self, family):
        """Requests with pictures, the ids that transformers answers with, and texts between them."""
        lines, expected = [], {}
        for i, entry in enumerate(prompts(family)):
            urls = [data_url(name) for name in entry["pictures"]]
            templated = family != "paligemma" and entry["prompt"] is not None
            if not templated or entry["chat"]:
                expected[f"p{i}"] = entry["generated"]
                lines.append({"id": f"p{i}", "text": entry["text"], "pictures": urls})
            if entry["chat"]:
                expected[f"m{i}"] = entry["generated"]
                lines.append({"id": f"m{i}", "messages": said(entry["text"], *urls)})
            lines.append({"id": f"t{i}", "text": "What of it? " * (i + 1)})
        return [dict(line, max_new_tokens=8) for line in lines], expected

    def test_requests_with_pictures_among_texts_are_those_alone(self):
        for family in FAMILIES:
            lines, expected = self.requests(family)
            self.assertGreater(len(expected), 1)
            for options in (["--slots", "3", "--step-tokens", "5"], ["--slots", "2", "--no-prefix-cache"]):
                ends = self.ends(family, lines, *options)
                self.assertEqual(len(ends), len(lines))
                for name, ids in expected.items():
                    self.assertEqual(ends[name]["ids"], ids, (family, name, options))
            for line in lines:
                if not line["id"].startswith("t"):
                    continue
                result = run_on_device("generate", model(f"prompts-{family}"), line["text"], "--json",
                                       "--beams", "1", "--max-new-tokens", "8")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(ends[line["id"]]["ids"], json.loads(result.stdout)["ids"], (family, line))
                break

    def test_prefixes_are_reused_for_the_same_pictures_alone(self):
        one, other = data_url("picture-0.png"), data_url("picture-1.png")
        lines = [{"id": i, "text": "What is this?", "pictures": [url], "max_new_tokens": 6}
                 for i, url in enumerate([one, one, other, other, one])]
        for family in ("llava", "gemma3", "paligemma"):
            ends = self.ends(family, lines, "--slots", "1")
            anew = self.ends(family, lines, "--slots", "1", "--no-prefix-cache")
            tokens = [end["prompt_tokens"] for _, end in sorted(anew.items())]
            reused = [end["reused_tokens"] for _, end in sorted(ends.items())]
            self.assertEqual(reused, [0, tokens[1] - 1, 0, tokens[3] - 1, 0], family)
            self.assertEqual(tokens[0], tokens[2])  # the same tokens
            for i in range(5):
                self.assertEqual(ends[i]["ids"], anew[i]["ids"], (family, i))
            self.assertNotEqual(ends[1]["score"], ends[3]["score"], family)

    def test_texts_of_pictures_come_as_they_are_written(self):
        entry = prompts("smolvlm")[3]
        line = {"id": 1, "messages": said(entry["text"], *map(data_url, entry["pictures"])), "max_new_tokens": 8}
        events = self.serve("smolvlm", [line])
        pieces = [e for e in events if e["event"] == "text"]
        end = next(e for e in events if e["event"] == "end")
        self.assertEqual(end["text"], entry["answer"])
        self.assertGreater(len(pieces), 2)
        self.assertTrue(end["text"].startswith("".join(e["text"] for e in pieces)))

    def test_what_is_no_picture_is_refused(self):
        url = data_url("picture-0.png")
        png = url.split(",")[1]
        texts = model("picture-0.png")
        cases = [
            ({"messages": said("a", "https://example.org/a.png")}, 400, "never opened"),
            ({"messages": said("a", "file:///etc/passwd")}, 400, "never opened"),
            ({"messages": said("a", texts)}, 400, "never opened"),
            ({"text": "a", "pictures": [texts]}, 400, "[pictures.0] is '"),
            ({"text": "a", "pictures": url}, 400, "a list of data URLs"),
            ({"text": "a", "pictures": [7]}, 400, "must be a text"),
            ({"text": "a", "pictures": ["data:text/plain;base64,AAAA"]}, 400, "no image in Base64"),
            ({"text": "a", "pictures": ["data:image/png," + png]}, 400, "no image in Base64"),
            ({"text": "a", "pictures": ["data:image/png;base64,"]}, 400, "multiple of 4"),
            ({"text": "a", "pictures": ["data:image/png;base64,AAA"]}, 400, "multiple of 4"),
            ({"text": "a", "pictures": ["data:image/png;base64,AA=A"]}, 400, "no digit of it"),
            ({"text": "a", "pictures": ["data:image/png;base64,AAA\n"]}, 400, "no digit of it"),
            ({"text": "a", "pictures": ["data:image/png;base64,AAB="]}, 400, "beyond the last byte"),
            ({"text": "a", "pictures": ["data:image/png;base64,AAAA"]}, 400, "Picture [pictures.0]"),
            ({"text": "a", "pictures": ["data:image/png;base64," + png[:100]]}, 400, "Picture [pictures.0]"),
            ({"text": "a", "pictures": [url, url, url]}, 400, "(--max-pictures)"),
            ({"text": "a <image>", "pictures": [url, url]}, 400, "1 placeholders <image>, but 2 pictures"),
            ({"ids": [1], "pictures": [url]}, 400, "go with [text]"),
            ({"text": "a", "messages": said("a")}, 400, "one of the three"),
            ({"messages": []}, 400, "at least one message"),
            ({"messages": [{"role": "user"}]}, 400, "[messages.0]"),
            ({"messages": [{"role": "user", "content": 3}]}, 400, "[messages.0.content]"),
            ({"messages": [{"role": "user", "content": ["a"]}]}, 400, "[messages.0.content.0]"),
            ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, 400, "[messages.0.content.0]"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": url}]}]}, 400,
             "[image_url], an object"),
            ({"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": url, "detail": "high"}}]}]}, 400, "must be 'auto'"),
            ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "x": 1}]}]}, 400, "'x'"),
        ]
        lines = [dict(fields, id=i, max_new_tokens=2) for i, (fields, _, _) in enumerate(cases)]
        lines.append({"id": "good", "text": "a", "pictures": [url, url], "max_new_tokens": 2})
        events = self.serve("llava", lines, "--max-pictures", "2")
        refused = {e["id"]: e for e in events if e["event"] == "refused"}
        for i, (_, status, part) in enumerate(cases):
            self.assertIn(i, refused, cases[i])
            self.assertEqual(refused[i]["status"], status, refused[i])
            self.assertIn(part, refused[i]["error"])
        self.assertEqual([e["reason"] for e in events if e["event"] == "end"], ["finished"])

    def test_pictures_are_measured_before_they_are_decoded(self):
        small, large = data_url("picture-0.png"), data_url("picture-1.png")  # 500 and 1,024 pixels
        lines = [{"id": i, "text": "a", "pictures": urls, "max_new_tokens": 2}
                 for i, urls in enumerate([[small], [large], [small, small]])]
        events = self.serve("llava", lines, "--max-picture-pixels", "1000")
        refused = [e for e in events if e["event"] == "refused"]
        self.assertEqual([(e["id"], e["status"]) for e in refused], [(1, 400)])
        self.assertIn("1000 in all", refused[0]["error"])
        size = os.path.getsize(model("picture-0.png"))
        events = self.serve("llava", lines, "--max-picture-bytes", str(size))
        refused = {e["id"]: e for e in events if e["event"] == "refused"}
        self.assertEqual({(e["id"], e["status"]) for e in refused.values()}, {(1, 400), (2, 400)})
        self.assertIn("bytes", refused[2]["error"])

    def test_a_line_that_is_too_long_is_refused_alone(self):
        lines = [{"id": 0, "text": "a" * (1 << 24)}, {"id": 1, "text": "a", "max_new_tokens": 2}]
        events = self.serve("llava", lines)
        self.assertEqual((events[0]["event"], events[0]["status"]), ("refused", 400))
        self.assertIn("16777216 bytes", events[0]["error"])
        self.assertEqual([e["reason"] for e in events if e["event"] == "end"], ["finished"])

    def test_models_that_read_no_pictures_say_so(self):
        url = data_url("picture-0.png")
        lines = [{"id": 0, "text": "a", "pictures": [url]}, {"id": 1, "text": "a", "max_new_tokens": 2}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = run_on_device("serve", model("judge"), "--capacity", "64", text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual((events[0]["event"], events[0]["status"]), ("refused", 501))
        self.assertIn("reads no images", events[0]["error"])

    def describe(self, lines, *options, directory=None):
        """Events of requests to a model that describes pictures."""
        text = "".join(json.dumps(line) + "\n" for line in lines)
        result = run_on_device("serve", directory or model("captions"), *options, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_descriptions_of_pictures_are_those_of_caption(self):
        names = [f"picture-{i}.png" for i in range(3)]
        lines, expected = [], {}
        for begins in ("", "ab"):
            prefix = ["--prefix", begins] if begins else []
            captions = run_on_device("caption", model("captions"), *map(model, names), "--beams", "1",
                                     "--max-new-tokens", "9", "--json", *prefix)
            self.assertEqual(captions.returncode, 0, captions.stderr)
            texts = [json.loads(line)["text"] for line in captions.stdout.splitlines()]
            for name, text in zip(names, texts):
                url = data_url(name)
                requests = {"t": {"text": begins, "pictures": [url]}, "m": {"messages": said(begins, url)}}
                if not begins:
                    requests["p"] = {"pictures": [url]}
                    requests["n"] = {"messages": [{"role": "user", "content": [
                        {"type": "image_url", "image_url": {"url": url}}]}]}
                for kind, fields in requests.items():
                    key = kind + begins + name
                    expected[key] = text
                    lines.append(dict(fields, id=key, max_new_tokens=9))
        for options in (["--slots", "3", "--step-tokens", "5"], ["--slots", "2", "--no-prefix-cache"],
                        ["--slots", "1", "--prompt-lookup", "2"]):
            events = self.describe(lines, *options)
            ends = {e["id"]: e for e in events if e["event"] == "end"}
            self.assertEqual({key: end["text"] for key, end in ends.items()}, expected, options)
            for key, text in expected.items():
                pieces = [e["text"] for e in events if e["event"] == "text" and e["id"] == key]
                self.assertTrue(text.startswith("".join(pieces)), (key, pieces))
        self.assertTrue(all(expected[key].startswith("ab") for key in expected if "ab" in key))

    def test_pages_are_served_as_caption_reads_them(self):
        names = [f"picture-{i}.png" for i in range(3)]
        lines = [{"id": i, "pictures": [data_url(name)], "max_new_tokens": 9} for i, name in enumerate(names)]
        with tempfile.TemporaryDirectory() as folder:
            donut = os.path.join(folder, "donut")
            shutil.copytree(model("captions"), donut)
            settings = os.path.join(donut, "preprocessor_config.json")
            with open(settings, encoding="utf-8") as file:
                content = json.load(file)
            content.update(image_processor_type="DonutImageProcessor", do_align_long_axis=True)
            with open(settings, "w", encoding="utf-8") as file:
                json.dump(content, file)
            captions = run_on_device("caption", donut, *map(model, names), "--beams", "1", "--max-new-tokens", "9",
                                     "--json")
            self.assertEqual(captions.returncode, 0, captions.stderr)
            texts = [json.loads(line)["text"] for line in captions.stdout.splitlines()]
            ends = {e["id"]: e["text"] for e in self.describe(lines, directory=donut) if e["event"] == "end"}
            plain = {e["id"]: e["text"] for e in self.describe(lines) if e["event"] == "end"}
        self.assertEqual([ends[i] for i in range(3)], texts)
        self.assertNotEqual(ends, plain)

    def test_what_is_no_picture_to_describe_is_refused(self):
        url, other = data_url("picture-0.png"), data_url("picture-1.png")
        user, assistant = said("a", url)[0], {"role": "assistant", "content": "b"}
        cases = [
            ({"text": "a"}, 400, "[pictures] must be given"),
            ({"ids": [1]}, 400, "[pictures] must be given"),
            ({"ids": [1], "pictures": [url]}, 400, "[pictures] must be given"),
            ({"pictures": [url], "messages": [user]}, 400, "[pictures] must be given"),
            ({"text": "a", "messages": [user]}, 400, "[pictures] must be given"),
            ({"text": 7, "pictures": [url]}, 400, "[text] must be a text"),
            ({"pictures": []}, 400, "holds 0 pictures"),
            ({"pictures": [url, other]}, 400, "holds 2 pictures"),
            ({"messages": said("a")}, 400, "holds 0 pictures"),
            ({"messages": said("a", url, other)}, 400, "holds 2 pictures"),
            ({"messages": [user, assistant]}, 400, "one message with the [role] 'user'"),
            ({"messages": [{"role": "system", "content": user["content"]}]}, 400, "one message with"),
            ({"pictures": [model("picture-0.png")]}, 400, "never opened"),
            ({"pictures": ["file:///etc/passwd"]}, 400, "never opened"),
            ({"messages": said("a", "https://example.org/a.png")}, 400, "never opened"),
            ({"pictures": ["data:image/png;base64,AAAA"]}, 400, "Picture [pictures.0]"),
            ({"text": "a" * 5000, "pictures": [url]}, 400, "tokens"),
        ]
        lines = [dict(fields, id=i, max_new_tokens=2) for i, (fields, _, _) in enumerate(cases)]
        lines.append({"id": "good", "text": "a", "pictures": [url], "max_new_tokens": 2})
        events = self.describe(lines)
        refused = {e["id"]: e for e in events if e["event"] == "refused"}
        for i, (_, status, part) in enumerate(cases):
            self.assertIn(i, refused, cases[i])
            self.assertEqual(refused[i]["status"], status, refused[i])
            self.assertIn(part, refused[i]["error"])
        self.assertEqual([e["reason"] for e in events if e["event"] == "end"], ["finished"])


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
