#!/usr/bin/env python3
"""Every task against the answers of Hugging Face's libraries."""
import asyncio
import tempfile
import unittest
from pathlib import Path

import places
from places import TASKS, expected

import vkformer

PICTURES = [str(TASKS / f"picture-{i}.png") for i in range(3)]
SOUNDS = [str(TASKS / f"sound-{i}.wav") for i in range(3)]


def load(name, **options):
    return vkformer.load(TASKS / name, DEVICE, **options)


def setUpModule():
    global DEVICE
    DEVICE = vkformer.Device(**places.device_options())


class Tasks(unittest.TestCase):
    def labels(self, found, wanted):
        self.assertEqual([label.label for label in found], [w["label"] for w in wanted])
        for label, right in zip(found, wanted):
            self.assertAlmostEqual(label.score, right["score"], delta=1e-4)

    def test_embed(self):
        import numpy
        right, model = expected("embed"), load("embed", batch=2)
        found = model.embed(right["texts"])
        self.assertEqual((found.dtype, found.flags.writeable), (numpy.dtype("float32"), False))
        numpy.testing.assert_allclose(found, right["vectors"], atol=2e-5)
        numpy.testing.assert_array_equal(model.embed(right["texts"][0]), found[0])
        unit = model.embed(right["texts"], pooling="mean", unit_length=1)
        numpy.testing.assert_allclose(numpy.linalg.norm(unit, axis=1), 1, atol=1e-5)
        signs = model.embed(right["texts"], dimensions=16, values="binary")
        self.assertEqual(signs.dtype, numpy.dtype("uint8"))
        numpy.testing.assert_array_equal(signs, numpy.packbits(found[:, :16] > 0, axis=1))
        self.assertEqual(model.embed(right["texts"], values="int8").dtype, numpy.dtype("int8"))
        right = expected("embed-last")
        named = load("embed-last")
        for name, vectors in right["vectors"].items():
            numpy.testing.assert_allclose(named.embed(right["texts"], prompt_name=name or None), vectors, atol=2e-5)

    def test_classify(self):
        right, model = expected("labels"), load("labels")
        for found, wanted in zip(model.classify(right["texts"]), right["labels"]):
            self.labels(found, wanted)
        self.labels(model.classify(right["texts"][0], top=1), right["labels"][0][:1])
        pair = right["pair"]["text"], right["pair"]["text_pair"]
        self.labels(model.classify(pair), right["pair_labels"])
        self.assertFalse(model.task("classify").finds_entities)

    def test_zero_shot(self):
        right, model = expected("zero-shot"), load("zero-shot")
        for run in right["runs"]:
            found = model.classify(right["texts"], labels=run["labels"], hypothesis=run["hypothesis"],
                                   multi_label=run["multi_label"])
            for labels, wanted in zip(found, run["found"]):
                self.labels(labels, wanted)

    def test_entities(self):
        right, model = expected("entities"), load("entities")
        self.assertTrue(model.task("classify").finds_entities)
        for found, wanted in zip(model.entities(right["texts"]), right["entities"]):
            self.assertEqual([(e.label, e.begin, e.end) for e in found],
                             [(w["entity_group"], w["start"], w["end"]) for w in wanted])

    def test_named_entities(self):
        right, model = expected("named-entities"), load("named-entities")
        for run in right["runs"]:
            options = {key: run[key] for key in ("threshold", "nested", "multi_label") if key in run}
            found = model.entities(right["texts"], labels=run["labels"], **options)
            for entities, wanted in zip(found, run["entities"]):
                self.assertEqual([(e.label, e.begin, e.end) for e in entities],
                                 [(w["label"], w["begin"], w["end"]) for w in wanted])
        with self.assertRaises(TypeError):
            model.entities("a", nested=True)

    def test_rerank(self):
        right, model = expected("rerank"), load("rerank")
        for run in right["runs"]:
            found = model.rerank(run["query"], right["documents"])
            self.assertEqual([r.index for r in found], [w["index"] for w in run["ranking"]])
            for one, wanted in zip(model.rerank(run["query"], right["documents"], score="logit"), run["ranking"]):
                self.assertAlmostEqual(one.score, wanted["logit"], delta=1e-3)

    def test_answer(self):
        right, model = expected("answers"), load("answers")
        for run in right["runs"]:
            questions = [(q, run["context"]) for q in right["questions"]]
            found = model.task("answer").answer(questions, top=run["top"], window=run["window"], overlap=run["overlap"],
                                                max_answer_tokens=run["longest"], none_possible=run["null"])
            for answers, wanted in zip(found, run["answers"]):
                self.assertEqual([(a.text, a.begin, a.end) for a in answers],
                                 [(w["answer"], w["begin"], w["end"]) for w in wanted])
        self.assertIsInstance(model.answer(right["questions"][0], right["runs"][0]["context"]), vkformer.Answer)

    def test_fill_mask(self):
        right, model = expected("masks"), load("masks")
        self.assertEqual(model.task("fill-mask").mask_token, "[MASK]")
        for found, gaps in zip(model.fill_mask(right["texts"], top=4), right["masks"]):
            wanted = [(g, w["token"], w["token_str"], w["sequence"]) for g, gap in enumerate(gaps) for w in gap]
            self.assertEqual([(f.gap, f.token, f.label, f.text) for f in found], wanted)

    def test_generate(self):
        right, model = expected("texts"), load("texts")
        for run in right["runs"]:
            found = model.generate(right["texts"], beams=run["beams"], max_new_tokens=run["max_new_tokens"])
            self.assertEqual([(f.ids, f.text) for f in found], [(w["ids"], w["text"]) for w in run["found"]])
        right = expected("translations")
        found = load("translations").generate(right["texts"], task="go")
        self.assertEqual([f.text for f in found], right["found"])

    def test_sampling_and_grammars(self):
        model = vkformer.load(places.MODELS / "shakespeare", DEVICE)
        settings = {"max_new_tokens": 24, "sample": True, "temperature": 0.8, "top_p": 0.95, "top_k": 40}
        first = model.generate("ROMEO:", seed=7, **settings)
        self.assertEqual(first, model.generate("ROMEO:", seed=7, **settings))
        self.assertNotEqual(first.text, model.generate("ROMEO:", seed=8, **settings).text)
        written = model.generate("ROMEO:", grammar='root ::= "yes" | "no"')
        self.assertIn(written.text, ("yes", "no"))
        written = model.generate("ROMEO:", grammar={"type": "boolean"})
        self.assertIn(written.text, ("true", "false"))
        stopped = model.generate("ROMEO:", max_new_tokens=60, stop="\n")
        self.assertNotIn("\n", stopped.text)
        self.assertNotIn("e", model.generate("ROMEO:", max_new_tokens=20, bad_words=["e"]).text)

    def test_images(self):
        right, model = expected("picture-labels"), load("picture-labels")
        for found, wanted in zip(model.classify(PICTURES, top=5), right["labels"]):
            self.labels(found, wanted)
        right, model = expected("picture-texts"), load("picture-texts")
        for run in right["runs"]:
            found = model.task("classify").zero_shot_images(PICTURES, run["labels"], hypothesis=run["hypothesis"])
            for labels, wanted in zip(found, run["found"]):
                self.labels(labels, wanted)
        found = load("captions").caption(PICTURES, max_new_tokens=8)
        self.assertEqual(found, expected("captions")["found"])
        right, model = expected("objects"), load("objects")
        for found, wanted in zip(model.detect(PICTURES, 0.0), right["found"]):
            self.assertEqual([d.label for d in found], [w["label"] for w in wanted])
            for detection, one in zip(found, wanted):
                for side, value in zip(detection.box, one["box"]):
                    self.assertAlmostEqual(side, value, delta=1e-2)

    def test_prompts_with_images(self):
        for name in ("prompts-llava", "prompts-gemma3"):
            right, model = expected(name), load(name)
            for prompt in (p for p in right["prompts"] if not p["chat"]):
                found = model.generate(prompt["text"], images=[str(TASKS / p) for p in prompt["pictures"]],
                                       max_new_tokens=len(prompt["generated"]))
                self.assertEqual(found.ids, prompt["generated"])
            self.assertTrue(model.task("generate").image_placeholder)

    def test_transcribe(self):
        right, model = expected("speech"), load("speech")
        for run in right["runs"]:
            found = model.transcribe(SOUNDS, language=run["language"] or None, task=run["task"] or None,
                                     max_new_tokens=10)
            self.assertEqual([t.text for t in found], run["texts"])
        right, model = expected("ctc"), load("ctc")
        for found, wanted in zip(model.transcribe(SOUNDS, words=True), right["found"]):
            self.assertEqual([w.text for w in found.words], [w["word"] for w in wanted["words"]])
            self.assertAlmostEqual(found.words[0].begin, wanted["words"][0]["begin"], delta=0.02)

    def test_depth(self):
        right, model = expected("depth"), load("depth")
        for name, wanted in zip(right["pictures"], right["depths"]):
            found = model.depth(TASKS / name)
            self.assertEqual(found.size, len(wanted))
            worst = max(abs(float(a) - b) for a, b in zip(found.ravel(), wanted))
            self.assertLess(worst, 1e-3)

    def test_segment(self):
        right, model = expected("segments"), load("segments")
        run = right["runs"][0]
        prompts = [{"points": [p for p, label in zip(points, labels) if label],
                    "outside": [p for p, label in zip(points, labels) if not label]}
                   for points, labels in zip(run["points"], run["labels"])]
        found = model.segment(TASKS / run["picture"], prompts)
        for masks, scores in zip(found, run["scores"]):
            self.assertEqual(masks.masks.shape[0], len(masks.scores))
            for score, wanted in zip(masks.scores, sorted(scores, reverse=True)):
                self.assertAlmostEqual(score, wanted, delta=1e-3)
        one = model.segment(TASKS / run["picture"], {"points": [(4, 5.5)], "box": (1, 1, 12, 12)}, top=1)
        self.assertEqual(one.masks.shape[0], 1)
        self.assertLessEqual(int(one.masks.max()), 1)
        for wrong, part in (({"point": [(1, 2)]}, '"points"'), ({"box": (1, 2)}, "four|left, top")):
            with self.assertRaisesRegex(ValueError, part):
                model.segment(TASKS / run["picture"], wrong)
        with self.assertRaises(vkformer.VkformerError):
            model.segment(TASKS / run["picture"], {})

    def test_speak(self):
        right, model = expected("speak"), load("speak")
        text = right["texts"][0]["text"]
        said = model.speak(text, seed=7)
        self.assertGreater(len(said), 100)
        self.assertEqual(list(said.samples), list(model.speak(text, seed=7).samples))
        faster = model.speak(text, seed=7, speaking_rate=2, noise=0, duration_noise=0)
        slower = model.speak(text, seed=7, speaking_rate=0.5, noise=0, duration_noise=0)
        self.assertLess(len(faster), len(slower))
        with tempfile.TemporaryDirectory() as folder:
            said.save(Path(folder) / "said.wav")
            again = vkformer.Audio(Path(folder) / "said.wav")
        self.assertEqual((len(again), again.sampling_rate), (len(said), said.sampling_rate))
        with self.assertRaisesRegex(TypeError, "speaking_rate"):
            model.speak(text, speakng_rate=2)

    def test_chat(self):
        model = load("prompts-llava", truncate=True)
        chat = model.chat(max_new_tokens=4)
        answer = chat.say("What is this?")
        self.assertEqual([m["role"] for m in chat.messages], ["user", "assistant"])
        self.assertEqual(chat.messages[-1]["content"], answer)
        self.assertEqual("".join(chat.stream("And that?", max_new_tokens=3)), chat.messages[-1]["content"])
        with self.assertRaises(vkformer.InvalidArgumentError):
            chat.say("x", beams=-1)
        self.assertEqual(len(chat.messages), 4)

    def test_asyncio(self):
        async def several():
            model = vkformer.load(places.MODELS / "g2p-en", DEVICE)
            texts = await asyncio.gather(*(model.aio.generate(word) for word in ("all", "you", "need")))
            pieces = []
            async for piece in model.stream("attention"):
                pieces.append(piece)
            return [t.text for t in texts], "".join(pieces)

        self.assertEqual(asyncio.run(several()), (["AO1 L", "Y UW1", "N IY1 D"], "AH0 T EH1 N SH AH0 N"))


if __name__ == "__main__":
    unittest.main()
