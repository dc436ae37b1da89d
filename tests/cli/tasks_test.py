#!/usr/bin/env python3
"""Tests of the commands for tasks: embed, classify, rerank, detect, answer, fill-mask, generate, transcribe, caption, speak.

    tasks_test.py PROGRAM TASK_MODELS [unittest arguments]

TASK_MODELS is tests/tasks/golden. What the models answer is tested there; here it is how inputs
come in and lines go out."""
import json
import math
import os
import shutil
import sys
import tempfile
import unittest
import wave

import cli_support
from cli_support import run, run_on_device


def model(name):
    return os.path.join(cli_support.MODEL, name)


def expected(name):
    with open(model(name + "/expected.json"), encoding="utf-8") as file:
        return json.load(file)


class TaskTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def answer(self, *arguments, **options):
        result = run_on_device(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def fail_with(self, code, *arguments, words=(), **options):
        result = run_on_device(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result


class CommandsTest(TaskTest):
    def test_embed(self):
        wanted = expected("embed")
        lines = self.answer("embed", model("embed"), *wanted["texts"])
        self.assertEqual([line["text"] for line in lines], wanted["texts"])
        for line, vector in zip(lines, wanted["vectors"]):
            for one, other in zip(line["embedding"], vector, strict=True):
                self.assertAlmostEqual(one, other, places=4)
        unit = self.answer("embed", model("embed"), "hello", "--pooling", "first", "--normalize")
        self.assertAlmostEqual(sum(x * x for x in unit[0]["embedding"]), 1, places=5)

    def test_classify_texts_and_pairs(self):
        wanted = expected("labels")
        rows = [{"text": wanted["texts"][0], "id": 7}, wanted["pair"]]
        lines = self.answer("classify", model("labels"), "--input", "-", "--top", "2",
                            text="".join(json.dumps(row) + "\n\n" for row in rows))
        self.assertEqual(list(lines[0]), ["text", "id", "label", "score", "labels"])
        self.assertEqual([line["label"] for line in lines],
                         [wanted["labels"][0][0]["label"], wanted["pair_labels"][0]["label"]])
        self.assertEqual(len(lines[0]["labels"]), 2)

    def test_classify_tokens_and_pictures(self):
        wanted = expected("entities")
        for line, entities in zip(self.answer("classify", model("entities"), *wanted["texts"]),
                                  wanted["entities"], strict=True):
            self.assertEqual([(e["label"], e["begin"], e["end"]) for e in line["entities"]],
                             [(e["entity_group"], e["start"], e["end"]) for e in entities])
            for entity in line["entities"]:
                self.assertEqual(entity["text"], line["text"][entity["begin"]:entity["end"]])
        wanted = expected("picture-labels")
        files = [model(file) for file in wanted["pictures"]]
        lines = self.answer("classify", model("picture-labels"), *files)
        self.assertEqual([line["picture"] for line in lines], files)
        self.assertEqual([line["label"] for line in lines],
                         [labels[0]["label"] for labels in wanted["labels"]])

    def test_classify_finds_named_entities(self):
        wanted = expected("named-entities")
        for run in wanted["runs"]:
            options = [part for label in run["labels"] for part in ("--label", label)]
            options += ["--threshold", str(run["threshold"])] if "threshold" in run else []
            options += ["--nested"] if run.get("nested") else []
            options += ["--multi-label"] if run.get("multi_label") else []
            text = "".join(json.dumps({"text": text}) + "\n" for text in wanted["texts"])
            lines = self.answer("classify", model("named-entities"), "--input", "-", *options, text=text)
            for line, entities in zip(lines, run["entities"], strict=True):
                self.assertEqual([(e["label"], e["begin"], e["end"]) for e in line["entities"]],
                                 [(e["label"], e["begin"], e["end"]) for e in entities])
                for entity in line["entities"]:
                    self.assertEqual(entity["text"], line["text"][entity["begin"]:entity["end"]])
        self.fail_with(2, "classify", model("named-entities"), "a", words=["--label"])
        self.fail_with(2, "classify", model("named-entities"), "a", "--label", "b", "--hypothesis", "{}",
                       words=["--hypothesis"])
        self.fail_with(2, "classify", model("labels"), "a", "--label", "b", "--nested", words=["--nested", "GLiNER"])

    def test_classify_draws_what_it_looked_at(self):
        picture, overlay = model("picture-0.png"), self.path("seen.png")
        line, = self.answer("classify", model("picture-labels"), picture, "--overlay", overlay)
        self.assertEqual(line["label"], expected("picture-labels")["labels"][0][0]["label"])
        with open(overlay, "rb") as drawn, open(picture, "rb") as source:
            self.assertEqual(drawn.read(24), source.read(24))  # a PNG of the same size
        self.fail_with(2, "classify", model("picture-labels"), picture, picture, "--overlay",
                       overlay, words=("[--overlay]", "got 2"))
        self.fail_with(2, "classify", model("labels"), "a", "--overlay", overlay,
                       words=("reads no pictures",))

    def test_classify_by_labels_of_the_caller(self):
        wanted = expected("zero-shot")
        for one in wanted["runs"]:
            labels = [part for label in one["labels"] for part in ("--label", label)]
            more = ["--multi-label"] if one["multi_label"] else []
            lines = self.answer("classify", model("zero-shot"), *wanted["texts"], *labels, *more,
                                "--hypothesis", one["hypothesis"], "--top", "2")
            for line, found in zip(lines, one["found"], strict=True):
                self.assertEqual([label["label"] for label in line["labels"]],
                                 [label["label"] for label in found[:2]])
                self.assertAlmostEqual(line["score"], found[0]["score"], places=4)
        self.fail_with(3, "classify", model("labels"), "a", "--label", "b", words=("entailment",))
        self.fail_with(2, "classify", model("zero-shot"), "a", "--multi-label")
        self.fail_with(2, "classify", model("picture-texts"), model("picture-0.png"),
                       words=("[--label]",))
        for name in ("picture-texts", "picture-texts-sigmoid"):
            wanted = expected(name)["runs"][0]
            labels = [part for label in wanted["labels"] for part in ("--label", label)]
            pictures = [model(f"picture-{i}.png") for i in range(3)]
            lines = self.answer("classify", model(name), *pictures, *labels, "--top", "1")
            for line, found in zip(lines, wanted["found"]):
                self.assertEqual(line["label"], found[0]["label"])
                self.assertAlmostEqual(line["score"], found[0]["score"], places=4)
                self.assertEqual(len(line["labels"]), 1)
        self.fail_with(2, "classify", model("picture-labels"), model("picture-0.png"), "--label",
                       "b", words=("[--label]",))

    def test_speak(self):
        entry = expected("speak")["texts"][0]
        wav = self.path("speech.wav")
        line = self.answer("speak", model("speak"), entry["text"], "--output", wav, "--json",
                           "--seed", str(entry["seed"]))[0]
        with wave.open(wav, "rb") as file:
            self.assertEqual((file.getnchannels(), file.getsampwidth(), file.getframerate()),
                             (1, 2, 16000))
            self.assertEqual(file.getnframes(), line["samples"])
        with open(wav, "rb") as file:
            first = file.read()
        quiet = ("--noise", "0", "--duration-noise", "0", "--quiet")
        self.assertEqual(run_on_device("speak", model("speak"), entry["text"], "--output", wav,
                                       *quiet).stdout, "")
        with open(wav, "rb") as file:
            self.assertNotEqual(file.read(), first)
        slow = self.answer("speak", model("speak"), entry["text"], "--output", wav, "--json",
                           "--rate", "0.25", "--seed", str(entry["seed"]))[0]
        self.assertGreater(slow["samples"], line["samples"])
        self.fail_with(1, "speak", model("speak"), "!?", "--output", wav, words=("has no character",))
        self.fail_with(1, "speak", model("speak"), "a", "--output", wav, "--rate", "0",
                       words=("[speaking_rate]",))
        self.fail_with(1, "speak", model("speak"), "a", "--output", wav, "--speaker", "1",
                       words=("[speaker_id]",))
        self.fail_with(3, "speak", model("labels"), "a", "--output", wav, words=("[speak]",))
        self.fail_with(2, "speak", model("speak"), "a", words=("--output",))
        reads_phonemes = self.path("phonemes")
        shutil.copytree(model("speak"), reads_phonemes)
        settings = os.path.join(reads_phonemes, "tokenizer_config.json")
        with open(settings, encoding="utf-8") as file:
            content = json.load(file)
        content["phonemize"] = True
        with open(settings, "w", encoding="utf-8") as file:
            json.dump(content, file)
        self.fail_with(3, "speak", reads_phonemes, "a", "--output", wav, words=("[phonemize]",))
        self.answer("speak", reads_phonemes, "a", "--output", wav, "--json", "--phonemes")

    def test_detect(self):
        wanted = expected("objects")
        pictures = [model(name) for name in wanted["pictures"]]
        lines = self.answer("detect", model("objects"), *pictures, "--threshold", "0", "--json")
        for line, found in zip(lines, wanted["found"], strict=True):
            self.assertEqual([one["label"] for one in line["objects"]],
                             [one["label"] for one in found])
            for one, right in zip(line["objects"], found):
                self.assertAlmostEqual(one["score"], right["score"], places=4)
                for side, at in zip(one["box"], right["box"]):
                    self.assertAlmostEqual(side, at, places=2)
        drawn = os.path.join(self.folder, "drawn.png")
        best = self.answer("detect", model("objects"), pictures[0], "--threshold", "0", "--top", "1",
                           "--draw", drawn)[0]
        self.assertEqual(len(best["objects"]), 1)
        with open(drawn, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.fail_with(2, "detect", model("objects"), *pictures, "--draw", drawn, words=("[--draw]",))
        self.fail_with(3, "detect", model("picture-labels"), pictures[0], words=("[detect]",))

    def test_depth(self):
        wanted = expected("depth")
        picture = model(wanted["pictures"][1])
        drawn = os.path.join(self.folder, "depth.png")
        values = os.path.join(self.folder, "depth.safetensors")
        line = json.loads(run("depth", model("depth"), picture, "--output", drawn, "--values", values,
                              "--json").stdout)
        self.assertEqual((line["width"], line["height"], line["scale"]), (32, 32, "relative"))
        self.assertAlmostEqual(line["most"], max(wanted["depths"][1]), places=2)
        with open(drawn, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertGreater(os.path.getsize(values), 4 * 32 * 32)
        self.assertIn("32 x 32", run("depth", model("depth"), picture, "--output", drawn).stdout)
        self.fail_with(2, "depth", model("depth"), picture, words=("--output", "--values"))
        self.fail_with(3, "depth", model("objects"), picture, "--output", drawn, words=("[depth]",))

    def test_segment(self):
        picture = model("picture-0.png")
        drawn = os.path.join(self.folder, "masks.png")
        masks = os.path.join(self.folder, "masks.safetensors")
        line = json.loads(run("segment", model("segments"), picture, "--outside", "7,9", "--box",
                              "2,1,14,12.5", "--top", "0", "--output", drawn, "--masks", masks,
                              "--json").stdout)
        scores = [mask["score"] for mask in line["masks"]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertEqual(len(scores), 3)
        self.assertAlmostEqual(scores[0], max(expected("segments")["runs"][1]["scores"][0]), places=3)
        with open(drawn, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        self.assertGreater(os.path.getsize(masks), 3 * 20 * 25)
        self.assertIn("pixels", run("segment", model("segments"), picture, "--point", "4,5.5").stdout)
        self.fail_with(2, "segment", model("segments"), picture, words=("--point", "--box"))
        for wrong in ("4", "4,", "4,5,6", "a,b", "4;5"):
            self.fail_with(2, "segment", model("segments"), picture, "--point", wrong,
                           words=("[--point]", wrong))
        self.fail_with(3, "segment", model("depth"), picture, "--point", "1,1", words=("[segment]",))

    def test_rerank(self):
        wanted = expected("rerank")
        file = self.write("documents.txt", "\n".join(wanted["documents"]))
        queries = [one["query"] for one in wanted["runs"]]
        lines = self.answer("rerank", model("rerank"), *queries, "--documents", file, "--json")
        for line, one in zip(lines, wanted["runs"], strict=True):
            self.assertEqual(line["query"], one["query"])
            self.assertEqual([found["index"] for found in line["ranking"]],
                             [found["index"] for found in one["ranking"]])
            for found, right in zip(line["ranking"], one["ranking"]):
                self.assertEqual(found["document"], wanted["documents"][right["index"]])
                self.assertAlmostEqual(found["score"], right["score"], places=4)
        documents = [part for text in wanted["documents"] for part in ("--document", text)]
        best = self.answer("rerank", model("rerank"), queries[0], *documents, "--top", "1",
                           "--score", "logit")[0]["ranking"]
        self.assertEqual(len(best), 1)
        self.assertAlmostEqual(best[0]["score"], wanted["runs"][0]["ranking"][0]["logit"], places=4)
        row = json.dumps({"query": queries[0], "documents": ["hello", "a fox"], "id": 3})
        own = self.answer("rerank", model("rerank"), "--input", "-", text=row)[0]
        self.assertEqual(list(own), ["query", "id", "ranking"])
        self.assertEqual({found["document"] for found in own["ranking"]}, {"hello", "a fox"})
        self.fail_with(1, "rerank", model("rerank"), "a", words=("[documents]",))
        self.fail_with(3, "rerank", model("labels"), "a", "--document", "b", words=("[rerank]",))
        wanted = expected("judge")
        one = wanted["runs"][1]
        documents = [part for text in wanted["documents"] for part in ("--document", text)]
        asked = self.answer("rerank", model("judge"), one["query"], *documents, "--instruction",
                            one["instruction"])[0]["ranking"]
        self.assertEqual([found["index"] for found in asked],
                         [right["index"] for right in one["ranking"]])
        self.assertAlmostEqual(asked[0]["score"], one["ranking"][0]["score"], places=4)

    def test_answer(self):
        wanted = expected("answers")
        first = wanted["runs"][0]
        context = self.write("context.txt", first["context"])
        rows = "".join(json.dumps({"question": question, "context": first["context"], "id": i}) +
                       "\n" for i, question in enumerate(wanted["questions"]))
        for lines in (self.answer("answer", model("answers"), *wanted["questions"],
                                  "--context-file", context),
                      self.answer("answer", model("answers"), "--input", "-", text=rows)):
            for line, answers in zip(lines, first["answers"], strict=True):
                self.assertEqual((line["answer"], line["begin"], line["end"]),
                                 (answers[0]["answer"], answers[0]["begin"], answers[0]["end"]))
                self.assertNotIn("context", line)
        self.fail_with(1, "answer", model("answers"), "why", words=("[context]", "argument 1"))
        null = self.answer("answer", model("answers"), "why", "--context", "a fox", "--top", "9",
                           "--null-answer")
        self.assertIn("", [one["answer"] for one in null[0]["answers"]])

    def test_fill_mask(self):
        wanted = expected("masks")
        lines = self.answer("fill-mask", model("masks"), *wanted["texts"], "--top", "4")
        for line, masks in zip(lines, wanted["masks"], strict=True):
            self.assertEqual([[one["token"] for one in mask] for mask in line["masks"]],
                             [[one["token"] for one in mask] for mask in masks])

    def test_generate(self):
        wanted = expected("texts")
        run_ = wanted["runs"][0]
        count = ("--max-new-tokens", str(run_["max_new_tokens"]))
        lines = self.answer("generate", model("texts"), *wanted["texts"], *count, "--json")
        self.assertEqual([(line["input"], line["text"], line["ids"]) for line in lines],
                         [(text, found["text"], found["ids"])
                          for text, found in zip(wanted["texts"], run_["found"])])
        wanted = expected("translations")
        result = run_on_device("generate", model("translations"), *wanted["texts"], "--task", "go")
        self.assertEqual(result.stdout, "".join(
            "%s\t%s\n" % pair for pair in zip(wanted["texts"], wanted["found"])))

    def test_nan_check_names_the_operator(self):
        texts = expected("texts")["texts"]
        count = ("--max-new-tokens", "5", "--json")
        self.assertEqual(self.answer("generate", model("texts"), *texts, *count, "--nan-check"),
                         self.answer("generate", model("texts"), *texts, *count))
        broken = self.path("broken")
        shutil.copytree(model("texts"), broken)
        tensors = cli_support.read_tensors(broken + "/model.safetensors")
        tensors["transformer.h.0.mlp.c_proj.weight"][2][3] = math.nan
        cli_support.write_tensors(broken + "/model.safetensors", tensors)
        self.fail_with(1, "generate", broken, texts[0], *count, "--nan-check",
                       words=("wrote the first NaN", "decoder.0.ffn.down"))

    def test_transcribe_and_caption(self):
        wanted = expected("speech")
        for run_ in wanted["runs"]:
            wishes = [word for key in ("language", "task") if run_[key]
                      for word in ("--" + key, run_[key])]
            lines = self.answer("transcribe", model("speech"), *map(model, wanted["sounds"]),
                                "--max-new-tokens", "10", *wishes)
            self.assertEqual([line["text"] for line in lines], run_["texts"])
        wanted = expected("ctc")
        lines = self.answer("transcribe", model("ctc"), *map(model, wanted["sounds"]), "--words")
        for line, found in zip(lines, wanted["found"]):
            self.assertEqual(line["text"], found["text"])
            self.assertEqual([word["word"] for word in line["words"]],
                             [word["word"] for word in found["words"]])
            for word, other in zip(line["words"], found["words"]):
                self.assertAlmostEqual(word["begin"], other["begin"])
                self.assertAlmostEqual(word["end"], other["end"])
        wanted = expected("captions")
        rows = "".join(json.dumps({"picture": model(file)}) + "\n" for file in wanted["pictures"])
        lines = self.answer("caption", model("captions"), "--input", "-", "--max-new-tokens", "8",
                            text=rows)
        self.assertEqual([line["text"] for line in lines], wanted["found"])


class InputsAndOutputsTest(TaskTest):
    def test_wrong_command_lines(self):
        for arguments in ((), ("a", "--input", "-"), ("a", "--resume"), ("a", "--batch", "0"),
                          ("a", "--format", "xml")):
            self.fail_with(2, "embed", model("embed"), *arguments)

    def test_wrong_models(self):
        self.fail_with(3, "answer", model("labels"), "a", "--context", "b",
                       words=("[answer]", "embed, classify"))
        self.fail_with(3, "embed", model("picture-labels"), "a", words=("classify",))
        self.fail_with(1, "classify", self.path("nothing"), "a", words=("nothing",))

    def test_inspect_names_tasks(self):
        for name, tasks in (("answers", ["embed", "answer"]), ("speech", ["transcribe"]),
                            ("ctc", ["transcribe"]),
                            ("picture-labels", ["classify"])):
            result = run("inspect", model(name), "--json", environment=cli_support.NO_DRIVER)
            self.assertEqual(json.loads(result.stdout)["tasks"], tasks)
            self.assertIn(", ".join(tasks), run("inspect", model(name)).stdout)

    def test_plain_lines_and_json_lines(self):
        lines = self.answer("embed", model("embed"), "--input", "-", text="{ no json\n\nhello")
        self.assertEqual([line["text"] for line in lines], ["{ no json", "", "hello"])
        row = json.dumps({"text": "hello"})
        lines = self.answer("embed", model("embed"), "--input", "-", "--format", "text",
                            text=row + "\n")
        self.assertEqual(lines[0]["text"], row)

    def test_lines_that_fail(self):
        rows = ['{"text": "hello", "id": 1}', '{"txt": "hello"}', "hello", '{"text": 5, "id": 4}',
                json.dumps({"text": "hello " * 200, "id": 5}), '{"text": "a fox", "id": 6}']
        file = self.write("in.jsonl", "\n".join(rows) + "\n")
        result = self.fail_with(1, "embed", model("embed"), "--input", file,
                                words=("line 3", "JSON object"))
        self.assertFalse(result.stdout)
        result = self.fail_with(1, "embed", model("embed"), "--input", file, "--keep-going",
                                words=("4 inputs failed",))
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(["error" in line for line in lines],
                         [False, True, True, True, True, False])
        self.assertEqual([line.get("id") for line in lines], [1, None, None, 4, 5, 6])
        for line, words in zip(lines[1:5], (("line 2", "[text]"), ("line 3",), ("not a text",),
                                            ("line 5", "96"))):
            for word in words:
                self.assertIn(word, line["error"])
        self.assertEqual(len(lines[5]["embedding"]), 32)
        cut = run_on_device("embed", model("embed"), "hello " * 200, "--truncate")
        self.assertEqual(cut.returncode, 0, cut.stderr)

    def test_output_and_resume(self):
        texts = ["text number %d" % i for i in range(11)]
        file = self.write("in.txt", "\n".join(texts))
        out = self.path("out.jsonl")
        arguments = ("embed", model("embed"), "--input", file, "--output", out, "--batch", "2")
        self.assertEqual(self.answer(*arguments), [])
        whole = self.read("out.jsonl")
        self.assertEqual([json.loads(line)["text"] for line in whole.splitlines()], texts)
        for kept in (0, 1, 5, len(whole.splitlines())):
            lines = whole.splitlines(keepends=True)[:kept]
            self.write("out.jsonl", "".join(lines) + ('{"text": "half' if kept < 11 else ""))
            self.answer(*arguments, "--resume")
            self.assertEqual(self.read("out.jsonl"), whole, kept)
        os.remove(out)
        self.answer(*arguments, "--resume")
        self.assertEqual(self.read("out.jsonl"), whole)
        self.write("in.txt", "\n".join(["another"] * 11))
        self.fail_with(1, *arguments, "--resume", words=("out.jsonl", "line 11"))
        self.write("in.txt", "too\nfew")
        self.fail_with(1, *arguments, "--resume", words=("out.jsonl", "2 inputs"))
        self.assertEqual(self.read("out.jsonl"), whole)
        self.answer(*arguments)
        self.assertEqual(len(self.read("out.jsonl").splitlines()), 2)

    def test_output_that_cannot_be_written(self):
        self.fail_with(1, "embed", model("embed"), "a", "--output", self.path("no/folder"),
                       words=("no/folder",))
        self.fail_with(1, "embed", model("embed"), "a", "--output", "/dev/full",
                       words=("/dev/full",))

    def test_progress(self):
        result = run_on_device("embed", model("embed"), "a", "b", "--progress")
        self.assertIn("embed: 2 of 2", result.stderr)
        self.assertEqual(run_on_device("embed", model("embed"), "a").stderr, "")

    def test_generate_writes_lines_to_files(self):
        out = self.path("out.jsonl")
        arguments = ("generate", model("texts"), "hello", "a fox", "--max-new-tokens", "3",
                     "--output", out)
        self.answer(*arguments)
        whole = self.read("out.jsonl")
        self.assertEqual([json.loads(line)["input"] for line in whole.splitlines()],
                         ["hello", "a fox"])
        self.write("out.jsonl", whole.splitlines(keepends=True)[0])
        self.answer(*arguments, "--resume")
        self.assertEqual(self.read("out.jsonl"), whole)


class HelpTest(TaskTest):
    def test_help_has_examples(self):
        for command in ("embed", "classify", "rerank", "detect", "depth", "segment", "answer", "fill-mask",
                        "generate", "transcribe", "caption", "speak"):
            self.assertIn("Examples:", run(command, "--help").stdout, command)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
