#!/usr/bin/env python3
"""Every class of the package beneath load()."""
import gc
import json
import math
import tempfile
import unittest
from pathlib import Path

import numpy
import places
from places import GOLDEN, MODELS, TASKS

import vkformer

G2P = MODELS / "g2p-en"
SPEAR = MODELS / "shakespeare"


def setUpModule():
    global DEVICE, MODEL, TOKENIZER
    DEVICE = vkformer.Device(**places.device_options())
    MODEL = vkformer.Model(G2P, DEVICE)
    TOKENIZER = vkformer.Tokenizer(G2P)


class Devices(unittest.TestCase):
    def test_devices(self):
        self.assertIn(DEVICE.info.name, [device.name for device in vkformer.devices()])
        self.assertIn(DEVICE.tier, ("baseline", "subgroup", "fp16", "matrix"))
        self.assertGreater(DEVICE.memory_in_use, 0)
        self.assertGreaterEqual(DEVICE.memory_allocated, DEVICE.memory_in_use)

    def test_messages(self):
        heard = []
        with vkformer.Device(**places.device_options(), log=lambda level, text: heard.append((level, text))):
            pass
        self.assertTrue(any("[device]" in text for _, text in heard), heard)
        with self.assertRaises(vkformer.NotFoundError):
            vkformer.Device("no such device")
        with self.assertRaisesRegex(TypeError, "nearest is .tier"):
            vkformer.Device(teir="baseline")

    def test_profile(self):
        with vkformer.Device(**places.device_options()) as device:
            with device.profile() as profile:
                vkformer.load(G2P, device).generate("all")
                times = profile.take()
            self.assertIn("gemm", " ".join({t.op for t in times}) + " gemm")
            self.assertTrue(times and all(t.kernel for t in times))

    def test_roofline_and_tuner(self):
        self.assertGreater(DEVICE.roofline().fma_gflops, 0)
        with tempfile.TemporaryDirectory() as folder:
            with vkformer.Device(**places.device_options(), cache_directory=folder) as device:
                choices, file = device.tune(quick=1, ms_per_choice=0.05)
            self.assertTrue(choices and choices[0].winner)
            self.assertTrue(Path(file).exists())


class Models(unittest.TestCase):
    def test_descriptions(self):
        info = vkformer.describe(G2P)
        self.assertEqual((info.kind, info.tensor_count), ("encoder-decoder", len(info.tensors)))
        self.assertEqual(sum(math.prod(t.shape) for t in info.tensors), info.parameters)
        self.assertEqual(MODEL.info, info)
        self.assertEqual(vkformer.Task(G2P, "generate", DEVICE).info, info)
        self.assertIn("generate", info.tasks)
        prompts = vkformer.describe(TASKS / "speech").prompt_tokens
        self.assertTrue(any("de" in name for name in prompts), prompts)
        self.assertIn(info.family, [family.family for family in vkformer.families()])
        self.assertIn("dispatch", MODEL.plan(batch=2, pass_="step").lower())

    def test_memory_is_told_before(self):
        needs = vkformer.memory_needs(G2P, DEVICE, batch=2, tokens=8, new_tokens=8)
        self.assertEqual(needs.weights, MODEL.weight_bytes)
        self.assertGreater(needs.total, needs.weights)

    def test_sources(self):
        files = {p.name: p.read_bytes() for p in G2P.iterdir() if p.is_file()}
        asked = []

        class Reader:
            def size(self, name):
                asked.append(name)
                return len(files[name]) if name in files else None

            def read(self, name, offset, count):
                return files[name][offset:offset + count]

        for source in (files, vkformer.Source(G2P), vkformer.Source(Reader(), "reader")):
            model = vkformer.load(source, DEVICE)
            self.assertEqual(model.generate("all").text, "AO1 L")
            self.assertEqual(model.info.family, MODEL.info.family)
        self.assertIn("config.json", asked)

        class Broken(Reader):
            def read(self, name, offset, count):
                raise OSError("the disk is gone")

        with self.assertRaises(vkformer.VkformerError) as caught:
            vkformer.Model(Broken(), DEVICE)
        self.assertIsInstance(caught.exception.__cause__, OSError)

    def test_loading_beside(self):
        seen = []
        with vkformer.Load(G2P, DEVICE, progress=lambda done, whole: seen.append((done, whole)),
                           first_use={"batch": 1, "tokens": 8, "new_tokens": 4}) as load:
            with load.wait() as model:
                self.assertEqual(model.weight_bytes, MODEL.weight_bytes)
            self.assertTrue(load.done)
            self.assertEqual(load.progress[0], load.progress[1])
        self.assertTrue(seen)
        with vkformer.Load(G2P, DEVICE, paced=1) as load:
            while not load.done:
                load.advance(1000)
            self.assertEqual(load.wait().info.family, MODEL.info.family)
        with vkformer.Load(G2P, DEVICE, progress=lambda *_: False) as load:
            load.cancel()
            with self.assertRaises(vkformer.CancelledError):
                load.wait()
        with self.assertRaisesRegex(KeyError, "mine"):
            def fail(*_):
                raise KeyError("mine")
            vkformer.Model(G2P, DEVICE, progress=fail)

    def test_quantize(self):
        with tempfile.TemporaryDirectory() as folder:
            report = vkformer.quantize(SPEAR, Path(folder) / "small", "q8")
            self.assertLess(report.bytes_after, report.bytes_before)
            self.assertTrue(vkformer.load(Path(folder) / "small", DEVICE).generate("ROMEO:", max_new_tokens=4).text)

    def test_pack(self):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "spear.vkfpack"
            report = vkformer.pack(SPEAR, target)
            self.assertEqual(report.size, target.stat().st_size)
            self.assertGreaterEqual(report.files, 3)
            self.assertRegex(report.sha256, "^[0-9a-f]{64}$")
            text = vkformer.load(target, DEVICE).generate("ROMEO:", max_new_tokens=4).text
            self.assertEqual(text, vkformer.load(SPEAR, DEVICE).generate("ROMEO:", max_new_tokens=4).text)
            smaller = vkformer.pack(SPEAR, Path(folder) / "q8.vkfpack", "q8")
            self.assertLess(smaller.size, report.size)
            vkformer.pack(SPEAR, target, device_layout=True)
            self.assertEqual(vkformer.load(target, DEVICE).generate("ROMEO:", max_new_tokens=4).text, text)
            with self.assertRaisesRegex(vkformer.InvalidArgumentError, "q3"):
                vkformer.pack(SPEAR, target, "q3")

    def test_write_gguf(self):
        llama = Path(__file__).resolve().parents[3] / "tests/golden/llama-gqa/model"
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "small.gguf"
            report = vkformer.write_gguf(llama, target, "f32")
            self.assertGreater(report.matrices, 4)
            self.assertEqual(vkformer.describe(target).family, "llama")
            with self.assertRaisesRegex(vkformer.InvalidArgumentError, "q8"):
                vkformer.write_gguf(llama, target, "q8")


class Arrays(unittest.TestCase):
    def test_in_and_out(self):
        base = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
        given = {"c": base, "cut": base[:, ::2], "turned": base.T, "half": base.astype("float16"),
                 "flags": numpy.array([True, False]), "swapped": numpy.arange(3, dtype=">i4"), "one": numpy.float64(2),
                 "buffer": memoryview(bytes(range(6))).cast("B", (2, 3)), "empty": numpy.zeros((0, 3), "int8"),
                 "list": [[1, 2], [3, 4]], "real": [1.5, 2]}
        tensors = vkformer.Tensors(given)
        self.assertEqual(sorted(tensors), sorted(given))
        for name, values in given.items():
            numpy.testing.assert_array_equal(tensors[name], numpy.asarray(values))
        self.assertFalse(tensors["c"].flags.writeable)
        self.assertEqual(tensors.tensor("half").dtype, "F16")
        numpy.testing.assert_array_equal(tensors.floats("half"), base)
        numpy.testing.assert_array_equal(tensors.ints("flags"), [1, 0])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.safetensors"
            tensors.write(file)
            self.assertEqual(list(vkformer.Tensors.read(file)), list(tensors))

    def test_views_outlive_what_they_show(self):
        tensors = vkformer.Tensors({"a": numpy.arange(1000.0)})
        array, view = tensors["a"], tensors.tensor("a").view()
        exchanged = numpy.from_dlpack(tensors.tensor("a"))
        self.assertEqual(exchanged.ctypes.data, array.ctypes.data)
        self.assertEqual(numpy.asarray(tensors.tensor("a")).ctypes.data, array.ctypes.data)
        with self.assertRaisesRegex(ValueError, "cannot be replaced"):
            tensors["a"] = [1]
        life = tensors._life
        tensors.close()
        self.assertGreater(life.uses, 0)
        self.assertEqual((array[999], view[999], exchanged[999]), (999, 999, 999))
        del array, view, exchanged
        self.assertEqual(life.uses, 0)
        unused = vkformer.Tensors({"a": [1.0]}).tensor("a").__dlpack__()  # nobody takes it over
        del unused

    def test_a_session_reads_arrays_in_place(self):
        ids = numpy.array([[5, 6, 7]])
        from vkformer._calls import Keep
        from vkformer.tensors import tensor_struct
        with Keep() as keep:
            self.assertEqual(tensor_struct(ids, "ids", keep).data, ids.ctypes.data)


class Sessions(unittest.TestCase):
    def setUp(self):
        self.session = vkformer.Session(MODEL)
        self.ids = TOKENIZER.encode("attention").ids

    def test_generate(self):
        wanted = "AH0 T EH1 N SH AH0 N"
        tokens = []
        found = self.session.generate([self.ids], on_token=lambda i, s, token, p: tokens.append(token))
        self.assertEqual(TOKENIZER.decode(found[0][0].ids), wanted)
        self.assertEqual(found[0][0].ids[-len(tokens):], tokens)
        self.assertAlmostEqual(sum(found[0][0].log_probabilities), found[0][0].score, places=3)
        self.assertGreater(self.session.counters.steps, 0)
        beams = self.session.generate(numpy.array([self.ids]), beams=4, return_sequences=2)
        self.assertEqual(len(beams[0]), 2)
        given = {"input_ids": [self.ids], "attention_mask": [[1] * len(self.ids)]}
        self.assertEqual(self.session.generate(given), found)
        self.assertEqual(self.session.generation_defaults["beams"], 1)
        with self.assertRaises(ZeroDivisionError):
            self.session.generate([self.ids], on_token=lambda *_: 1 // 0)
        short = self.session.generate([self.ids], on_token=lambda *_: False)
        self.assertLess(len(short[0][0].ids), len(found[0][0].ids))
        banned = found[0][0].ids[1]
        self.assertNotIn(banned, self.session.generate([self.ids], biases={banned: -math.inf})[0][0].ids)
        self.assertNotIn(banned, self.session.generate([self.ids], bad_words=[[banned]])[0][0].ids)
        continuation = found[0][0].ids[1:]
        scores = self.session.score(self.ids, continuation)
        numpy.testing.assert_allclose(scores, found[0][0].log_probabilities, atol=1e-3)

    def test_packs(self):
        with self.assertRaisesRegex(vkformer.VkformerError, "nowhere.vkfpack"):
            vkformer.Model(vkformer.Source.pack("/nowhere.vkfpack", 4096), DEVICE)

    def test_groups(self):
        group = vkformer.DeviceGroup([DEVICE, DEVICE], shares=[2, 1])
        together, alone = vkformer.Model(SPEAR, DEVICE, group=group), vkformer.Model(SPEAR, DEVICE)
        self.assertEqual(len(together.group_plan.splitlines()), 2)
        self.assertEqual(alone.group_plan, "")
        found = [[row[0].ids for row in vkformer.Session(model).generate([[10, 11, 12], [13]], max_new_tokens=8)]
                 for model in (together, alone)]
        self.assertEqual(found[0], found[1])
        with self.assertRaisesRegex(ValueError, "one for each"):
            vkformer.DeviceGroup([DEVICE, DEVICE], shares=[1])
        with self.assertRaisesRegex(vkformer.VkformerError, "must have 2 to 64"):
            vkformer.DeviceGroup([DEVICE])
        divided = vkformer.Model(SPEAR, DEVICE, group=vkformer.DeviceGroup([DEVICE, DEVICE], split="tensors"))
        self.assertIn("part 2 of 2 of every layer", divided.group_plan)
        ids = [row[0].ids for row in vkformer.Session(divided).generate([[10, 11, 12], [13]], max_new_tokens=8)]
        self.assertEqual(ids, found[1])
        with self.assertRaisesRegex(ValueError, "divides every layer evenly"):
            vkformer.DeviceGroup([DEVICE, DEVICE], shares=[1, 1], split="tensors")
        chosen = vkformer.Model(SPEAR, DEVICE, group=vkformer.DeviceGroup([DEVICE, DEVICE], split="fastest"))
        self.assertIn("estimated for a split by", chosen.group_plan)
        with self.assertRaisesRegex(ValueError, 'use "layers", "tensors" or "fastest"'):
            vkformer.DeviceGroup([DEVICE, DEVICE], split="heads")

    def test_constraints(self):
        spear = vkformer.load(SPEAR, DEVICE)
        width, eos = spear.info.target_vocab or spear.info.source_vocab, spear.session.generation_defaults["eos"]
        constraint = vkformer.Grammar('root ::= "yes" | "no"').constraint(spear.tokenizer, width, eos)
        rows = [spear.tokenizer.encode("ROMEO:").ids]
        ids = spear.session.generate(rows, constraint=constraint)[0][0].ids[len(rows[0]):]
        self.assertIn(spear.tokenizer.decode(ids), ("yes", "no"))

    def test_in_slices(self):
        inputs = {"input_ids": [self.ids], "decoder_input_ids": [[1]]}
        whole = self.session.run(inputs)
        self.session.start(inputs)
        self.assertTrue(self.session.pass_buffers())
        while (step := self.session.advance(500)).progress in ("preparing", "running"):
            self.assertLessEqual(step.fraction, 1)
        outputs = self.session.finish()
        for name in whole:
            numpy.testing.assert_array_equal(outputs[name], whole[name])
        self.session.start_generation({"input_ids": [self.ids]})
        while self.session.advance(1e6).progress != "done":
            pass
        self.assertEqual(self.session.finish_generation(), self.session.generate([self.ids]))
        self.session.start(inputs)
        self.session.cancel()
        self.session.forget_buffers()

    def test_frames(self):
        inputs = {"input_ids": [self.ids], "decoder_input_ids": [[1]]}
        session = vkformer.Session(MODEL)
        session.warm_up(inputs=inputs)
        session.finish_warm_up()
        self.assertEqual(session.warmed_up, 1)
        estimate = session.estimate(1000, inputs=inputs)
        self.assertGreater(estimate.frames, 0)
        self.assertGreaterEqual(estimate.frames, estimate.first_frames)
        session.start(inputs)
        frames = vkformer.FrameScheduler()
        with self.assertRaises(ValueError):
            frames.add(session, priority="highest")
        number = frames.add(session, priority="high", deadline_ms=100)
        with self.assertRaises(vkformer.InvalidArgumentError):
            frames.add(session)
        with self.assertRaises(vkformer.VkformerError):
            frames.record(0, 1000)
        while len(frames):
            for progress in frames.advance(1000):
                self.assertEqual(progress.job, number)
                self.assertIsNone(progress.error)
        numpy.testing.assert_array_equal(session.finish()["logits"], self.session.run(inputs)["logits"])
        failing = frames.add(session)
        self.assertIn("nothing was started", frames.advance(1000)[0].error)
        failing = frames.add(session)
        frames.remove(failing)
        self.assertEqual(len(frames), 0)

    def test_adapters_are_scaled_again(self):
        folder = GOLDEN / "adapter-two"
        model = vkformer.Model(folder / "base", DEVICE, adapters={folder / "first": 0.5, folder / "second": -1.25})
        session = vkformer.Session(model)
        settings = {"max_new_tokens": 6}
        before = session.generate([[3, 9, 4]], **settings)[0][0]
        model.set_adapter_scales([0, 0])
        plain = session.generate([[3, 9, 4]], **settings)[0][0]
        base = vkformer.Session(vkformer.Model(folder / "base", DEVICE)).generate([[3, 9, 4]], **settings)[0][0]
        self.assertEqual((plain.ids, plain.score), (base.ids, base.score))
        model.set_adapter_scales([0.5, -1.25])
        again = session.generate([[3, 9, 4]], **settings)[0][0]
        self.assertEqual((again.ids, again.score), (before.ids, before.score))
        with self.assertRaises(vkformer.VkformerError):
            model.set_adapter_scales([1])

    def test_adapters_from_memory_outlive_the_caller(self):
        folder = GOLDEN / "adapter-lora"
        files = {path.name: path.read_bytes() for path in (folder / "base").iterdir()}
        files |= {"style/" + path.name: path.read_bytes() for path in (folder / "adapter").iterdir()}
        on_disk = vkformer.Model(folder / "base", DEVICE, adapters=[folder / "adapter"])
        ids = [[3, 9, 4]]
        expected = vkformer.Session(on_disk).run({"input_ids": ids})["logits"].copy()
        model = vkformer.Model(files, DEVICE, adapters=["style"])
        loaded = vkformer.Load(files, DEVICE, adapters=["style"]).wait()
        del files
        gc.collect()
        for one in (model, loaded):
            one.set_adapter_scales([0])
            self.assertFalse((vkformer.Session(one).run({"input_ids": ids})["logits"] == expected).all())
            one.set_adapter_scales([1])
            self.assertTrue((vkformer.Session(one).run({"input_ids": ids})["logits"] == expected).all())

    def test_adapters_of_requests(self):
        folder = GOLDEN / "adapter-two"
        model = vkformer.Model(folder / "base", DEVICE,
                               request_adapters={"one": folder / "first", "two": str(folder / "second")})
        merged = vkformer.Model(folder / "base", DEVICE, adapters={folder / "first": 0.5, folder / "second": -1.25})
        settings = {"max_new_tokens": 8, "eos": []}
        choice = {"one": 0.5, "two": -1.25}
        expected = vkformer.Session(merged).generate([[3, 9, 4]], **settings)[0][0]
        found = vkformer.Session(model).generate([[3, 9, 4]], adapters=choice, **settings)[0][0]
        self.assertEqual(found.ids, expected.ids)
        self.assertAlmostEqual(found.score, expected.score, delta=1e-3)
        batch = vkformer.Batch(model)
        with_them = batch.submit([3, 9, 4], adapters=choice, **settings)
        without = batch.submit([3, 9, 4], **settings)
        names = batch.submit([3, 9, 4], adapters=["one"], **settings)
        scores = {}
        while not batch.idle:
            scores.update({update.request: update.score for update in batch.step()})
        self.assertAlmostEqual(scores[with_them], expected.score, delta=1e-3)
        self.assertEqual(len({scores[n] for n in (with_them, without, names)}), 3)
        for wrong in ({"three": 1}, {"one": float("nan")}, {"one": float("inf")}):
            with self.assertRaises(vkformer.VkformerError):
                batch.submit([3], adapters=wrong, **settings)
        with self.assertRaises(TypeError):
            vkformer.Model(folder / "base", DEVICE, request_adapters=[folder / "first"])

    def test_batches_with_images(self):
        folder = TASKS / "prompts-smolvlm"
        entry = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["prompts"][0]
        model = vkformer.Model(folder, DEVICE)
        prompts = vkformer.ImagePrompts(model, folder)
        self.assertEqual(prompts.placeholder, "<image>")
        inputs = prompts.read("<image>What is this?", [TASKS / "picture-0.png"])
        self.assertEqual(list(inputs["input_ids"][0]), entry["ids"])
        batch = vkformer.Batch(model, rows=2, capacity=128)
        shown = batch.submit(inputs, max_new_tokens=8)
        text = batch.submit([4, 8, 15], max_new_tokens=4)
        tokens = {shown: [], text: []}
        while not batch.idle:
            for update in batch.step():
                tokens[update.request] += update.tokens
        self.assertEqual(tokens[shown], entry["generated"])
        found = vkformer.Session(model).generate(inputs, beams=1, max_new_tokens=8)[0][0]
        self.assertEqual(found.ids, entry["ids"] + entry["generated"])
        with self.assertRaises(vkformer.VkformerError):
            prompts.read("a <image>", [])

    def test_batches_that_describe_images(self):
        folder = TASKS / "captions"
        model = vkformer.Model(folder, DEVICE)
        prompts = vkformer.ImagePrompts(model, folder)
        self.assertEqual(prompts.placeholder, "")
        batch = vkformer.Batch(model, rows=2)
        tokenizer = vkformer.Tokenizer(folder)
        captioner = vkformer.Task(folder, "caption", DEVICE)
        begun = prompts.read("ab", [TASKS / "picture-0.png"])
        plain = prompts.read("", [TASKS / "picture-1.png"])
        self.assertEqual(sorted(plain), ["pixel_values"])
        numbers = [batch.submit(inputs, max_new_tokens=8) for inputs in (begun, plain)]
        tokens = {number: [] for number in numbers}
        while not batch.idle:
            for update in batch.step():
                tokens[update.request] += update.tokens
        texts = [tokenizer.decode(list(begun["input_ids"][0]) + tokens[numbers[0]]), tokenizer.decode(tokens[numbers[1]])]
        for i, prefix in enumerate(("ab", "")):
            alone = captioner.caption([TASKS / f"picture-{i}.png"], beams=1, max_new_tokens=8, prefix=prefix)
            self.assertEqual(texts[i], alone[0])
        with self.assertRaises(vkformer.VkformerError):
            prompts.read("a", [])

    def test_batches(self):
        spear = vkformer.Model(SPEAR, DEVICE)
        tokenizer = vkformer.Tokenizer(SPEAR)
        batch = vkformer.Batch(spear, rows=2, capacity=64, waiting=2)
        prompts = [tokenizer.encode(text).ids for text in ("ROMEO:", "JULIET:", "NURSE:")]
        numbers = [batch.submit(p, max_new_tokens=5, client="me") for p in prompts[:2]]
        with self.assertRaises(vkformer.QueueFullError):
            batch.submit(prompts[2], max_new_tokens=5)
        tokens = {number: [] for number in numbers}
        states = {}
        while not batch.idle:
            for update in batch.step():
                tokens[update.request] += update.tokens
                states[update.request] = update.state
        alone = vkformer.Session(spear)
        for number, prompt in zip(numbers, prompts):
            self.assertEqual(tokens[number], alone.generate([prompt], max_new_tokens=5)[0][0].ids[len(prompt):])
        self.assertEqual(set(states.values()), {"finished"})
        third = batch.submit(prompts[2], max_new_tokens=50)
        batch.step()
        batch.cancel(third)
        while not batch.idle:
            last = batch.step()
        self.assertEqual(last[-1].state, "cancelled")
        self.assertGreater(batch.counters.new_tokens, 9)


class Texts(unittest.TestCase):
    def test_tokenizer(self):
        encodings = TOKENIZER.encode_batch(["all", "attention"], padding="to_longest", pad_id=0)
        self.assertEqual(len(encodings[0]), len(encodings[1]))
        self.assertIn(0, encodings[0].attention_mask)
        self.assertEqual(len(TOKENIZER.encode("attention", truncation="to_length", max_length=3)), 3)
        parsed = vkformer.Tokenizer.parse((G2P / "tokenizer.json").read_bytes())
        self.assertEqual(parsed.encode("all"), TOKENIZER.encode("all"))
        self.assertEqual(parsed.vocab_size, TOKENIZER.vocab_size)
        token = TOKENIZER.encode("all").ids[0]
        self.assertEqual(TOKENIZER.token_to_id(TOKENIZER.id_to_token(token)), token)
        pairs = vkformer.Tokenizer(TASKS / "labels")
        self.assertEqual(set(pairs.encode("one", "two").type_ids), {0, 1})
        spear = vkformer.Tokenizer(SPEAR)
        ids = spear.encode("To be, or not").ids
        with spear.decode_stream() as stream:
            self.assertEqual("".join(stream.decode(ids)), spear.decode(ids))
        self.assertEqual(b"".join(spear.token_bytes(i) for i in ids).decode().strip(), "To be, or not")
        with self.assertRaises(vkformer.NotFoundError):
            TOKENIZER.token_to_id("no such token")

    def test_stop_strings(self):
        stops = vkformer.StopStrings(["end", "###"])
        self.assertEqual((stops.push("a #"), stops.push("b en"), stops.push("dless")), ("a ", "#b ", ""))
        self.assertTrue(stops.stopped)
        stops = vkformer.StopStrings(["end"])
        self.assertEqual(stops.push("x e") + stops.finish(), "x e")

    def test_grammars(self):
        self.assertTrue(vkformer.Grammar('root ::= [a-c]+').matches("abc"))
        self.assertFalse(vkformer.Grammar('start ::= "x"', root="start").matches("y"))
        self.assertTrue(vkformer.Grammar.json_schema({"type": "integer"}).matches("42"))
        with self.assertRaises(vkformer.VkformerError):
            vkformer.Grammar("root ::= (")

    def test_chat_templates(self):
        template = vkformer.ChatTemplate.parse("{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}",
                                               {"bos_token": "<s>"})
        self.assertEqual(template.render([{"role": "user", "content": "hi"}, ("assistant", "ho")]),
                         "<s>user:hi;assistant:ho;")
        folder = TASKS / "prompts-llava"
        files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
        said = [("user", "x")]
        self.assertEqual(vkformer.ChatTemplate(folder).render(said), vkformer.ChatTemplate(files).render(said))


class Media(unittest.TestCase):
    def test_images(self):
        file = TASKS / "picture-0.png"
        image = vkformer.Image(file)
        pixels = image.pixels
        self.assertEqual(pixels.shape, (image.size[1], image.size[0], 3))
        numpy.testing.assert_array_equal(vkformer.Image(file.read_bytes()).pixels, pixels)
        numpy.testing.assert_array_equal(vkformer.Image(pixels).pixels, pixels)
        wide = numpy.zeros((4, 10, 3), "uint8")
        wide[:, 2:5] = 7
        self.assertTrue((vkformer.Image(wide[:, 2:5]).pixels == 7).all())
        numpy.testing.assert_array_equal(vkformer.Image(pixels[:, :, ::-1].copy(), format="bgr8").pixels, pixels)
        self.assertEqual(vkformer.Image(wide[:, :, 0].copy()).pixels.shape, (4, 10, 3))
        for wrong in (numpy.zeros((2, 2, 5), "uint8"), numpy.zeros((0, 2, 3), "uint8"), numpy.zeros((2, 2, 3))):
            with self.assertRaises((ValueError, TypeError)):
                vkformer.Image(wrong)

    def test_processors(self):
        processor = vkformer.ImageProcessor(TASKS / "picture-labels")
        values = processor([TASKS / "picture-0.png", TASKS / "picture-1.png"])["pixel_values"]
        self.assertEqual(values.shape[:2], (2, 3))
        self.assertEqual(len(processor.seen(64, 48)), 4)
        own = vkformer.ImageProcessor(fit="stretch", width=8, height=6, mean=(0, 0, 0), std=(1, 1, 1))
        self.assertEqual(own([TASKS / "picture-0.png"])["pixel_values"].shape, (1, 3, 6, 8))
        self.assertEqual(own.settings["width"], 8)

    def test_audio(self):
        file = TASKS / "sound-0.wav"
        audio = vkformer.Audio(file)
        self.assertEqual(audio.samples.shape, (len(audio),))
        numpy.testing.assert_array_equal(vkformer.Audio(file.read_bytes()).samples, audio.samples)
        numpy.testing.assert_array_equal(vkformer.Audio(audio.samples, audio.sampling_rate).samples, audio.samples)
        half = audio.resample(audio.sampling_rate // 2)
        self.assertAlmostEqual(len(half), len(audio) / 2, delta=2)
        mel = vkformer.LogMel(TASKS / "speech")
        self.assertEqual(mel(audio)["input_features"].shape, (1, mel.info.mel_bands, mel.info.frames))


class Attention(unittest.TestCase):
    def test_maps(self):
        model = vkformer.load(G2P, DEVICE)
        found = model.attention("attention")
        cross = found["cross"]
        self.assertEqual(cross.column_labels, TOKENIZER.encode("attention").tokens)
        self.assertEqual(cross.row_labels, [*"AH0 T EH1 N SH AH0 N".split(), "</s>"])
        self.assertEqual(found["decoder"].column_labels[1:], cross.row_labels[:-1])
        given = model.attention("attention", target="K AE1 T")
        self.assertEqual(given["cross"].row_labels[:1], [TOKENIZER.encode("K AE1 T").tokens[0]])
        plays = vkformer.load(SPEAR, DEVICE).attention("ROMEO:", max_new_tokens=3)["self"]
        self.assertEqual(len(plays.row_labels), plays.info.rows)
        self.assertEqual(plays.info.rows, len(vkformer.Tokenizer(SPEAR).encode("ROMEO:")) + 3)
        for values in cross.layers.values():
            numpy.testing.assert_allclose(values.sum(-1), 1, atol=1e-4)
        self.assertEqual(cross.mean().info.heads, 1)
        self.assertEqual(found["encoder"].rollout().info.layers, 1)
        self.assertTrue(cross.png(title="words").startswith(b"\x89PNG"))
        self.assertIn("<html", cross.html("words"))
        self.assertIn("data:image/png", cross._repr_html_())
        self.assertIn("<html", vkformer.attention_page(list(found.values())))
        last = cross.layers[max(cross.layers)]
        cross.close()
        numpy.testing.assert_allclose(last.sum(-1), 1, atol=1e-4)  # shows what is in use

    def test_figures(self):
        import io
        maps = vkformer.load(G2P, DEVICE).attention("all", target=None)["cross"]
        for figure in (maps.figure(), maps.figure(0, head=1), maps.mean().figure()):
            file = io.BytesIO()
            figure.savefig(file)
            self.assertGreater(len(file.getvalue()), 5000)
        with self.assertRaises(ValueError):
            maps.figure(99)

    def test_pictures(self):
        png = vkformer.heat_map_png([[0.1, 0.9], [0.5, 0.5]], row_labels=["a", "b"], column_labels=["c", "d"], title="t")
        self.assertTrue(png.startswith(b"\x89PNG"))
        png = vkformer.overlay_png(TASKS / "picture-0.png", numpy.eye(4))
        self.assertEqual(vkformer.Image(png).size, vkformer.Image(TASKS / "picture-0.png").size)
        seen = vkformer.load(MODELS / "digits", DEVICE).attention(MODELS / "digits" / "7.png")
        self.assertIn("self", seen)

    def test_heads(self):
        session = vkformer.Session(MODEL)
        inputs = {"input_ids": [TOKENIZER.encode("attention").ids], "decoder_input_ids": [[1]]}
        scores = vkformer.AttentionMaps(session.run(inputs, attentions=True, scores=True), "encoder")
        outputs = session.run(inputs, entropy=True)
        entropies = {layer: outputs[f"encoder_attention_entropy.{layer}"][0] for layer in scores.layers}
        heads = vkformer.measure_heads([(scores, entropies)], collapsed=0.9)
        self.assertEqual(len(heads), scores.info.heads * scores.info.layers)
        self.assertTrue(all(head.state in ("usual", "collapsed", "saturated") for head in heads))

    def test_without_a_model(self):
        generator = numpy.random.default_rng(1)
        names = [f"{part}.{kind}" for part in ("query", "key", "value", "output") for kind in ("weight", "bias")]
        weights = {name: generator.standard_normal((8, 8) if "weight" in name else 8).astype("float32") for name in names}
        attention = vkformer.MultiHeadAttention(weights, DEVICE, d_model=8, heads=2, causal=1)
        outputs = attention(generator.standard_normal((1, 3, 8)).astype("float32"), [[1, 1, 1]])
        self.assertEqual(outputs["output"].shape, (1, 3, 8))
        numpy.testing.assert_allclose(outputs["weights"].sum(-1), 1, atol=1e-5)


class Operators(unittest.TestCase):
    def test_operators(self):
        self.assertIn("softmax", vkformer.operator_names())
        x = numpy.random.default_rng(2).standard_normal((3, 7)).astype("float32")
        outputs, costs = vkformer.run_operator("softmax", {"X": x}, device=DEVICE, repeats=2, poison=1)
        exact = numpy.exp(x) / numpy.exp(x).sum(-1, keepdims=True)
        numpy.testing.assert_allclose(outputs[next(iter(outputs))], exact, atol=1e-5)
        self.assertGreater(costs.dispatches, 0)

    def test_conformance(self):
        told = []
        report, failed = vkformer.conformance(DEVICE, filters=["softmax"], repeats=1,
                                              progress=lambda name, done, whole: told.append(name))
        self.assertEqual(failed, 0)
        self.assertTrue(told)
        self.assertIn("<html", vkformer.conformance_page(report))


if __name__ == "__main__":
    unittest.main()
