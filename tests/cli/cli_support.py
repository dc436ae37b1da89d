"""What the tests of the program share: running it, and small safetensors files."""
import json
import os
import struct
import subprocess

PROGRAM = ""  # set by cli_test.py
MODEL = ""

# Where no Vulkan driver is to be found.
NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}


def device_arguments():
    """What tools/test asks GPU tests to run on."""
    arguments = []
    for variable, option in (("VKFORMER_TEST_DEVICE", "--device"), ("VKFORMER_TEST_TIER", "--tier"),
                             ("VKFORMER_TEST_LIMITS", "--limits")):
        if os.environ.get(variable):
            arguments += [option, os.environ[variable]]
    return arguments


def run(*arguments, text=None, environment=None, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], input=text, stdout=stdout, stderr=subprocess.PIPE,
                          encoding="utf-8", env={**os.environ, **(environment or {})}, timeout=600)


def run_on_device(*arguments, **options):
    return run(*arguments, *device_arguments(), **options)


def write_tensors(path, tensors):
    """tensors: name -> (dtype, shape, values), dtype F32, I64 or U8."""
    header, blob = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        raw = struct.pack("<%d%s" % (len(values), {"F32": "f", "I64": "q", "U8": "B"}[dtype]),
                          *values)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(blob), len(blob) + len(raw)]}
        blob += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def read_tensors(path):
    """name -> (dtype, shape, values); values of F32 and I64 only."""
    with open(path, "rb") as file:
        blob = file.read()
    size = struct.unpack("<Q", blob[:8])[0]
    tensors = {}
    for name, entry in json.loads(blob[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = blob[8 + size + begin:8 + size + end]
        code = {"F32": "f", "I64": "q"}[entry["dtype"]]
        tensors[name] = (entry["dtype"], entry["shape"],
                         [value for value, in struct.iter_unpack("<" + code, raw)])
    return tensors
