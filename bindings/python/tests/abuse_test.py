#!/usr/bin/env python3
"""Wrong types, closed objects, threads, cancelled streams: an exception with a sentence, and no crash."""
import asyncio
import copy
import ctypes
import gc
import pickle
import random
import re
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

import places
from places import MODELS, TASKS

import vkformer
from vkformer import _c, _calls

G2P = MODELS / "g2p-en"
SPEAR = MODELS / "shakespeare"
TEXT = {"max_new_tokens": 200}


def setUpModule():
    global DEVICE
    DEVICE = vkformer.Device(**places.device_options())


class Sentences(unittest.TestCase):
    def refused(self, call, kinds=(TypeError, ValueError, vkformer.VkformerError)):
        with self.assertRaises(kinds) as caught:
            call()
        text = str(caught.exception)
        self.assertGreater(len(text), 15, text)
        self.assertTrue(text.rstrip().endswith((".", "?", "]")) or " " in text, text)
        return text


class WrongTypes(Sentences):
    def test_tasks(self):
        model = vkformer.load(G2P, DEVICE)
        for wrong in (None, 3, 2.5, object(), [1], [None], b"bytes", [b"bytes"], {"a": 1}.items, ["a\0b"], [["a"]]):
            self.refused(lambda: model.generate(wrong))
        for options in ({"beams": "two"}, {"beams": 1.5}, {"beams": 1 << 40}, {"temperature": "hot"},
                        {"seed": -1}, {"stop": 3}, {"stop": [3]}, {"grammar": 3}, {"on_text": 3}, {"images": 3},
                        {"prefix": 3}, {"beam": 1}, {"choice": {"top": 1}}, {"set": 1}, {"struct_size": 4}):
            self.refused(lambda: model.generate("a", **options))
        for name in ("classify", "answer", "transcribe", "detect", "no such task", 3):
            self.refused(lambda: model.task(name))
        self.refused(lambda: vkformer.load(3, DEVICE))
        self.refused(lambda: vkformer.load({"config.json": 3}, DEVICE).info)
        self.refused(lambda: vkformer.load({}, DEVICE).info)
        self.refused(lambda: vkformer.load(G2P, "device").generate("a"))
        self.refused(lambda: vkformer.load(TASKS / "labels", DEVICE).classify("a", labels="abc"))
        self.refused(lambda: vkformer.load(TASKS / "answers", DEVICE).task("answer").answer([("a",)]))

    def test_handles_of_another_kind(self):
        tokenizer = vkformer.Tokenizer(G2P)
        self.assertIn("Model is needed", self.refused(lambda: vkformer.Session(tokenizer), TypeError))
        self.refused(lambda: vkformer.Session(3), TypeError)
        self.refused(lambda: vkformer.Model(G2P, tokenizer), TypeError)
        self.refused(lambda: vkformer.Grammar("root ::= [a]").constraint(DEVICE, 3, [1]), TypeError)
        self.refused(lambda: vkformer.AttentionMaps(tokenizer, "self"), TypeError)

    def test_arrays(self):
        import numpy
        for wrong in (object(), "text", numpy.zeros(3, complex), numpy.array(["a"]), [[1, 2], [3]], ["a"], [None],
                      [1 << 70], numpy.array([object()])):
            self.refused(lambda: vkformer.Tensors({"a": wrong}), (TypeError, ValueError))
        self.refused(lambda: vkformer.Tensors({3: [1]}))
        self.refused(lambda: vkformer.Tensors([("a", 1)]), (TypeError, AttributeError))
        with self.assertRaises(KeyError):
            vkformer.Tensors()["absent"]
        session = vkformer.Session(vkformer.Model(G2P, DEVICE))
        self.refused(lambda: session.run({"input_id": [[1]]}))
        self.refused(lambda: session.run([1]))
        self.refused(lambda: session.run({"input_ids": [[1]]}, attention="yes"))
        self.refused(lambda: session.run({"input_ids": [[1]]}, attentions="yes"))
        for wrong in (3, "abc", [3], [["a"]], [[1.5]], [[1 << 64]], [[-5]], [[1 << 40]], [[]], [None]):
            self.refused(lambda: session.generate(wrong))

    def test_every_function_with_nothing(self):
        """Null or 0 for all that goes in, and room for what comes out: a failure, or something made of nothing."""
        self.enterContext(places.unrecorded())
        nothing = set()
        for name, entry in _c.functions.items():
            if name == "vkf_device_create":
                continue  # all defaults
            function = _c.function(name)
            error = _c.function("vkf_error_create")()
            given = entry["parameters"][:-1] if entry["fails"] else entry["parameters"]
            arguments, made = [], []
            for parameter, kind in zip(given, function.argtypes):
                spelling, base = parameter["type"], _c.base_of(parameter["type"])
                stars = spelling.count("*")
                if "array" in parameter:
                    arguments.append((kind._type_ * parameter["array"])())
                elif not stars:
                    arguments.append(kind(0) if issubclass(kind, ctypes._SimpleCData) else kind())
                elif base in _c.handles and stars == 2 and not spelling.startswith("const"):
                    made.append((base, _calls.pointer_to(base)))
                    arguments.append(ctypes.byref(made[-1][1]))
                elif stars == (2 if spelling.startswith("const") else 1) and base != "void" and \
                        not spelling.endswith("const*") and base not in _c.handles:
                    room = _c.sized(base) if base in _c.structs else kind._type_()
                    made.append((None, room))
                    arguments.append(ctypes.byref(room))
                else:
                    arguments.append(None)
            result = function(*arguments, *([error] if entry["fails"] else []))
            if entry["fails"] and result == 0:
                nothing.add(name)
            elif entry["fails"]:
                message = _c.function("vkf_error_message")(error).decode()
                self.assertGreater(len(message), 10, f"{name}: {message}")
            for base, room in made:
                if base is not None and room:
                    _c.function(_c.handles[base]["free"])(room)
            _c.function("vkf_error_free")(error)
        self.assertEqual(nothing, {
            "vkf_devices_list", "vkf_families_list", "vkf_frames_create", "vkf_operator_names", "vkf_picture_processor_create",
            "vkf_sound_create", "vkf_source_memory", "vkf_stop_strings_create", "vkf_tensors_create"})

    def test_every_function_with_wrong_types(self):
        self.enterContext(places.unrecorded())
        for name, entry in _c.functions.items():
            for at, parameter in enumerate(entry["parameters"]):
                if _c.base_of(parameter["type"]) in _c.handles or _c.base_of(parameter["type"]) in _c.structs:
                    arguments = [None] * len(entry["parameters"])
                    arguments[at] = "text"
                    with self.assertRaises(ctypes.ArgumentError, msg=name):
                        _c.function(name)(*arguments)

    def test_they_stay_where_they_are(self):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            self.refused(lambda: attempt(DEVICE), TypeError)


class Closed(Sentences):
    def test_every_class(self):
        model = vkformer.Model(G2P, DEVICE)
        tokenizer = vkformer.Tokenizer(G2P)
        session = vkformer.Session(model)
        maps = vkformer.AttentionMaps(session.run({"input_ids": [[5]], "decoder_input_ids": [[1]]}, attentions=True), "cross")
        uses = [(vkformer.Device(**places.device_options()), lambda o: o.tier), (model, lambda o: o.weight_bytes),
                (session, lambda o: o.counters), (tokenizer, lambda o: o.encode("a")), (maps, lambda o: o.info),
                (tokenizer.decode_stream(), lambda o: o.push(3)), (vkformer.Tensors(), len),
                (vkformer.Image(TASKS / "picture-0.png"), lambda o: o.size), (vkformer.StopStrings(["a"]), lambda o: o.push("b")),
                (vkformer.Audio([0.0], 16000), len), (vkformer.Grammar("root ::= [a]"), lambda o: o.matches("a")),
                (vkformer.ChatTemplate.parse("x"), lambda o: o.render([])), (vkformer.Source(G2P), lambda o: vkformer.Model(o, DEVICE)),
                (vkformer.ImageProcessor(), lambda o: o.settings), (vkformer.LogMel(TASKS / "speech"), lambda o: o.info),
                (vkformer.Task(G2P, "generate", DEVICE), lambda o: o.generate(["a"])),
                (vkformer.Load(G2P, DEVICE), lambda o: o.wait()), (vkformer.Batch(vkformer.Model(SPEAR, DEVICE)), lambda o: o.step())]
        for thing, use in uses:
            self.assertFalse(thing.closed)
            thing.close()
            thing.close()
            self.assertTrue(thing.closed)
            self.assertIn("is closed", self.refused(lambda: use(thing), vkformer.ClosedError), type(thing))
            with self.assertRaises(vkformer.ClosedError), thing:
                pass
        pipeline = vkformer.load(G2P, DEVICE)
        pipeline.generate("a")
        pipeline.close()
        self.refused(lambda: pipeline.generate("a"), vkformer.ClosedError)
        self.assertFalse(DEVICE.closed)

    def test_in_any_order(self):
        for _ in range(3):
            device = vkformer.Device(**places.device_options())
            model = vkformer.Model(G2P, device)
            session = vkformer.Session(model)
            things = [device, model]
            random.shuffle(things)
            for thing in things:
                thing.close()
            self.assertTrue(session.generate([[5, 6]])[0][0].ids)

    def test_while_in_use(self):
        task = vkformer.Task(SPEAR, "generate", DEVICE)
        stream = task.stream("ROMEO:", **TEXT)
        first = next(stream)
        task.close()
        self.assertTrue(first + "".join(stream))
        self.refused(lambda: task.generate(["a"]), vkformer.ClosedError)
        self.assertEqual(task._life.uses, 0)


class Threads(Sentences):
    def test_two_threads_one_session(self):
        task = vkformer.Task(G2P, "generate", DEVICE)
        session = vkformer.Session(vkformer.Model(G2P, DEVICE))
        tokenizer = vkformer.Tokenizer(G2P)
        words = ["all", "attention", "you", "need"] * 4
        right = {word: task.generate([word])[0][0].text for word in words}
        wrong = []

        def work(at):
            for word in words[at:] + words[:at]:
                ids = session.generate([tokenizer.encode(word).ids])[0][0].ids
                if task.generate([word])[0][0].text != right[word] or tokenizer.decode(ids) != right[word]:
                    wrong.append(word)

        threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_others_run_meanwhile(self):
        """The interpreter's lock is released: a thread counts while a call of the library runs."""
        count, stop = [0], threading.Event()

        def work():
            while not stop.is_set():
                count[0] += 1
                time.sleep(0.0005)

        task = vkformer.Task(SPEAR, "generate", DEVICE)
        task.generate(["ROMEO:"], max_new_tokens=2)
        thread = threading.Thread(target=work)
        thread.start()
        before, begin = count[0], time.perf_counter()
        task.generate(["ROMEO:"], max_new_tokens=300)
        took = time.perf_counter() - begin
        counted = count[0] - before
        stop.set()
        thread.join()
        self.assertGreater(counted, took / 0.02)

    def test_closing_beside_calls(self):
        for _ in range(10):
            task = vkformer.Task(G2P, "generate", DEVICE)
            failures = []

            def work():
                try:
                    while True:
                        task.generate(["all"])
                except vkformer.ClosedError:
                    pass
                except BaseException as failure:
                    failures.append(failure)

            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(random.random() / 20)
            task.close()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_a_callback_that_calls_back(self):
        task = vkformer.Task(G2P, "generate", DEVICE)
        text = self.refused(lambda: task.generate(["all"], on_text=lambda *_: task.generate(["you"])), vkformer.BusyError)
        self.assertIn("callback", text)
        self.assertEqual(task.generate(["all"])[0][0].text, "AO1 L")
        task.generate(["all"], on_text=lambda *_: task.close())  # is freed when the call has returned
        self.assertEqual(task._life.uses, 0)


class Streams(Sentences):
    def setUp(self):
        self.task = vkformer.Task(SPEAR, "generate", DEVICE)

    def test_cancelled(self):
        for taken in (0, 1, 5):
            stream = self.task.stream("ROMEO:", **TEXT)
            for _ in range(taken):
                next(stream)
            stream.close()
            self.assertEqual(list(stream), [])
            self.refused(lambda: stream.result, vkformer.CancelledError)
        with self.task.stream("ROMEO:", **TEXT) as stream:
            next(stream)
        self.assertFalse(stream._thread.is_alive())
        whole = self.task.generate(["ROMEO:"], max_new_tokens=20)[0][0]
        self.assertEqual(self.task.stream("ROMEO:", max_new_tokens=20).result, whole)

    def test_forgotten(self):
        stream = self.task.stream("ROMEO:", **TEXT)
        thread = stream._thread
        del stream
        gc.collect()
        thread.join(30)
        self.assertFalse(thread.is_alive())

    def test_slow_readers_hold_the_writer(self):
        stream = self.task.stream("ROMEO:", max_new_tokens=300)
        time.sleep(1)
        self.assertLessEqual(stream._shared.pieces.qsize(), 64)
        self.assertEqual("".join(stream), stream.result.text)

    def test_a_program_that_ends_meanwhile(self):
        program = ("import sys, vkformer; model = vkformer.load(sys.argv[1]); "
                   "stream = model.stream('ROMEO:', max_new_tokens=390); next(stream); "
                   "kept = model.attention('RO')['self'].layers; sys.exit(3)")
        folder = str(Path(vkformer.__file__).parents[1])
        for _ in range(3):
            done = subprocess.run([sys.executable, "-B", "-c", program, str(SPEAR)], capture_output=True, text=True,
                                  check=False, cwd=folder)
            self.assertEqual((done.returncode, done.stderr), (3, ""))

    def test_wrong_options_fail_at_once(self):
        self.refused(lambda: self.task.stream("a", beam=1), TypeError)
        self.refused(lambda: self.task.stream(["a"]), TypeError)
        stream = self.task.stream("ROMEO:", max_new_tokens=-3)
        self.refused(lambda: list(stream), vkformer.InvalidArgumentError)
        self.refused(lambda: stream.result, vkformer.InvalidArgumentError)

    def test_cancelled_in_asyncio(self):
        async def read(stream, most):
            count = 0
            async for _ in stream:
                count += 1
                if count == most:
                    break
            return count

        async def several():
            stream = self.task.stream("ROMEO:", **TEXT)
            self.assertEqual(await read(stream, 3), 3)
            stream.close()
            stream = self.task.stream("ROMEO:", **TEXT)
            reader = asyncio.create_task(read(stream, 10 ** 6))
            await asyncio.sleep(0.05)
            reader.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await reader
            stream.close()
            return stream

        self.assertFalse(asyncio.run(several())._thread.is_alive())


class Leaks(unittest.TestCase):
    def test_memory_stays_flat(self):
        def once():
            with vkformer.load(G2P, DEVICE) as model:
                model.generate("all")
                maps = model.attention("all")
                list(model.stream("you"))
                del maps
            try:
                vkformer.load("absent")
            except vkformer.NotFoundError:
                pass
            gc.collect()

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * 4096

        for _ in range(3):
            once()
        device, host = DEVICE.memory_in_use, resident()
        for _ in range(15):
            once()
        self.assertEqual(DEVICE.memory_in_use, device)
        self.assertLess(resident() - host, 30 << 20)

    def test_errors_are_freed_with_their_threads(self):
        made, freed = [0], [0]
        create, free = _c.function("vkf_error_create"), _c.function("vkf_error_free")
        _c._made["vkf_error_create"] = lambda: made.__setitem__(0, made[0] + 1) or create()
        _c._made["vkf_error_free"] = lambda pointer: freed.__setitem__(0, freed[0] + 1) or free(pointer)
        try:
            for _ in range(5):
                thread = threading.Thread(target=lambda: vkformer.Grammar("root ::= [a]"))
                thread.start()
                thread.join()
            gc.collect()
        finally:
            _c._made["vkf_error_create"], _c._made["vkf_error_free"] = create, free
        self.assertEqual(made, freed)
        self.assertEqual(made[0], 5)
        self.assertTrue(re.match("vkf_", next(iter(_calls._c.functions))))


if __name__ == "__main__":
    unittest.main()
