#!/usr/bin/env python3
"""vkformer as a guest on an application's own Vulkan device: buffers, images, command buffers."""
import unittest

import numpy
import places
from host_vulkan import API_1_1, PRESENT_READ, Host
from places import MODELS, TASKS

import vkformer


class Guest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        own = vkformer.Device(**places.device_options())
        cls.host = host = Host(own.info.name)
        adopted = vkformer.AdoptedDevice(get_instance_proc_addr=host.get_instance_proc_addr, instance=host.instance,
                                         physical_device=host.physical, api_version=API_1_1)
        with vkformer.FeatureChain(adopted) as chain:
            family = chain.queue_family
            assert chain.low_priority is None or "priority" in chain.low_priority
            host.create_device(family, adopted.struct.enabled_features, adopted.enabled_extensions)
            cls.locks = []
            whole = vkformer.AdoptedDevice(
                get_instance_proc_addr=host.get_instance_proc_addr, instance=host.instance, physical_device=host.physical,
                api_version=API_1_1, device=host.device, queue=host.queue, queue_family=family,
                enabled_extensions=adopted.enabled_extensions, enabled_features=adopted.struct.enabled_features,
                queue_lock=lambda: cls.locks.append(1), queue_unlock=lambda: cls.locks.append(-1))
            options = {k: v for k, v in places.device_options().items() if k != "device"}
            cls.device = vkformer.Device.adopt(whole, **options)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()
        cls.host.close()

    def test_a_model(self):
        with vkformer.load(MODELS / "g2p-en", self.device) as model:
            self.assertEqual(model.generate("attention").text, "AH0 T EH1 N SH AH0 N")
        self.assertTrue(self.locks)
        self.assertEqual(sum(self.locks), 0)

    def test_an_operator_in_a_command_buffer(self):
        x = numpy.random.default_rng(3).standard_normal((4, 16)).astype("float32")
        with vkformer.RecordedOperator("softmax", {"X": x}, device=self.device) as softmax:
            buffers, bytes_of = {}, {}
            for tensor in (*softmax.inputs, *softmax.outputs):
                buffer, content = self.host.buffer(tensor.bytes)
                buffers[tensor.name], bytes_of[tensor.name] = (buffer, 0, tensor.bytes), content
            bytes_of[softmax.inputs[0].name][:x.nbytes] = x.tobytes()
            softmax.bind(buffers)
            self.host.begin()
            softmax.record(self.host.commands)
            self.host.submit()
            found = numpy.frombuffer(bytes_of[softmax.outputs[0].name].raw, "float32", x.size).reshape(x.shape)
        exact = numpy.exp(x) / numpy.exp(x).sum(-1, keepdims=True)
        numpy.testing.assert_allclose(found, exact, atol=1e-5)

    def test_a_pass_on_buffers(self):
        model = vkformer.Model(MODELS / "g2p-en", self.device)
        session = vkformer.Session(model)
        inputs = {"input_ids": [[5, 6, 7]], "decoder_input_ids": [[1]]}
        whole = session.run(inputs)
        name = next(iter(whole))
        size = whole[name].nbytes
        buffer, content = self.host.buffer(size + 256)
        session.start(inputs, buffers={name: (buffer, 256, size)})
        self.assertIn(buffer, [place.buffer for place in session.pass_buffers()])
        signal = self.host.semaphore()
        first = session.advance(1e6, signal=[(signal, 0)])
        while first.progress == "running":
            first = session.advance(1e6)
        rest = session.finish()
        found = numpy.frombuffer(content.raw[256:256 + size], "float32").reshape(whole[name].shape)
        numpy.testing.assert_array_equal(found, whole[name])
        self.assertNotIn(name, rest)
        session.start(inputs, buffers={name: (buffer, 256, size)})
        self.host.begin()
        while session.record(self.host.commands, 1e6).progress == "running":
            pass
        self.host.submit()
        self.assertEqual(sorted(session.finish()), sorted(rest))
        session.start(inputs, buffers={name: (buffer, 256, size)})
        self.host.begin()
        session.record(self.host.commands, 1e6)
        self.host.drop()
        session.drop_recorded()
        self.host.begin()
        while session.record(self.host.commands, 1e6).progress == "running":
            pass
        self.host.submit()
        self.assertEqual(sorted(session.finish()), sorted(rest))
        found = numpy.frombuffer(content.raw[256:256 + size], "float32").reshape(whole[name].shape)
        numpy.testing.assert_array_equal(found, whole[name])
        session.forget_buffers()
        for thing in (session, model):
            thing.close()

    def test_images_of_the_application(self):
        folder = TASKS / "picture-labels"
        model, processor = vkformer.Model(folder, self.device), vkformer.ImageProcessor(folder)
        session = vkformer.Session(model)
        picture = vkformer.Image(TASKS / "picture-0.png")
        whole = session.run(processor([picture]))
        image = self.host.image(numpy.array(picture.pixels))
        width, height = picture.size
        session.start({}, images=[{"image": image, "format": 37, "layout": PRESENT_READ, "width": width, "height": height}],
                      processor=processor)
        while session.advance(1e6).progress in ("preparing", "running"):
            pass
        outputs = session.finish()
        for name in whole:
            numpy.testing.assert_array_equal(outputs[name], whole[name])
        for thing in (session, model):
            thing.close()


if __name__ == "__main__":
    unittest.main()
