#!/usr/bin/env python3
"""The C interface from another language: g2p end to end through ctypes and nothing else.

    ctypes_test.py LIBRARY MODEL_DIRECTORY HEADERS

Numbers are taken from the text of the headers in the folder HEADERS, structs are written as a binding would write them."""
import ctypes
import os
import re
import sys
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_float, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p, sizeof)
from pathlib import Path

WORDS = [b"attention", b"all"]
PHONEMES = ["AH0 T EH1 N SH AH0 N", "AO1 L"]


class Ids(Structure):
    _fields_ = [("ids", POINTER(c_int64)), ("count", c_size_t)]


class Tensor(Structure):
    _fields_ = [("struct_size", c_uint32), ("dtype", c_int32), ("shape", POINTER(c_int64)),
                ("rank", c_size_t), ("data", c_void_p), ("bytes", c_size_t)]


LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_uint64, c_uint64)


class DeviceOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("validation", c_uint32), ("device", c_char_p),
                ("tier", c_char_p), ("limits", c_char_p), ("cache_directory", c_char_p),
                ("log", LOG), ("log_data", c_void_p), ("allocator", c_void_p)]


class ModelOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("weights", c_char_p),
                ("precision", c_char_p), ("most_weight_bytes", c_uint64), ("progress", PROGRESS),
                ("progress_data", c_void_p), ("first_use", c_void_p)]


class GenerateOptions(Structure):
    """As an older header might have it: what follows length_penalty is the library's default."""
    _fields_ = [("struct_size", c_uint32), ("set", c_uint32), ("beams", c_int32),
                ("max_new_tokens", c_int32), ("min_new_tokens", c_int32),
                ("return_sequences", c_int32), ("length_penalty", c_double)]


class RunOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("attention_layer", c_int32),
                ("attention_head", c_int32), ("temperature", c_double)]


class Sequence(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("ids", Ids),
                ("score", c_double)]


class Encoding(Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("count", c_size_t),
                ("ids", POINTER(c_int64)), ("tokens", POINTER(c_char_p)),
                ("begins", POINTER(c_int32)), ("ends", POINTER(c_int32)),
                ("type_ids", POINTER(c_int32)), ("attention_mask", POINTER(c_int32))]


class Finding(Structure):
    _fields_ = [("struct_size", c_uint32), ("gap", c_int32), ("label", c_char_p),
                ("text", c_char_p), ("score", c_double), ("begin", c_int32), ("end", c_int32),
                ("token", c_int64), ("ids", Ids)]


class Failure(Exception):
    def __init__(self, name, message):
        super().__init__(f"{name}: {message}")
        self.name = name


def sized(struct, **fields):
    return struct(struct_size=sizeof(struct), **fields)


class Vkformer:
    """Calls functions by name; what returns a vkf_status raises Failure."""

    def __init__(self, library, headers):
        self.library = ctypes.CDLL(library)
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(headers).glob("*.h")))
        text = re.sub(r"//[^\n]*", "", text)
        self.returns = {name: kind.replace(" ", "") for kind, name in
                        re.findall(r"VKFORMER_API\s+([\w\s]+?[\s*]+)(vkf_\w+)\(", text)}
        self.constants = {name: int(value) for name, value in
                          re.findall(r"\b(VKF_\w+) = (\d+)", text)}
        self.error = self.plain("vkf_error_create")

    def plain(self, name, *arguments):
        function = getattr(self.library, name)
        kinds = {"void": None, "constchar*": c_char_p, "size_t": c_size_t, "uint64_t": c_uint64,
                 "uint32_t": c_uint32, "int": ctypes.c_int, "vkf_status": c_int32}
        function.restype = kinds.get(self.returns[name], c_void_p)
        return function(*arguments)

    def call(self, name, *arguments):
        status = self.plain(name, *arguments, c_void_p(self.error))
        assert status == self.plain("vkf_error_status", c_void_p(self.error))
        if status != 0:
            raise Failure(self.plain("vkf_status_name", status).decode(),
                          self.plain("vkf_error_message", c_void_p(self.error)).decode())

    def make(self, name, *arguments):
        """A call whose last argument but the error is the place for a handle."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle

    def text(self, handle):
        text = self.plain("vkf_bytes_text", handle).decode()
        self.plain("vkf_bytes_free", handle)
        return text

    def fails(self, wanted, part, call, *arguments):
        try:
            call(*arguments)
        except Failure as failure:
            assert failure.name == wanted and part in str(failure), failure
            return
        raise AssertionError(f"{arguments[0]} should have failed with {wanted}")


def encode(vkf, tokenizer, words):
    encodings = vkf.make("vkf_tokenizer_encode", tokenizer, (c_char_p * len(words))(*words),
                         c_size_t(len(words)), None)
    rows = (Ids * len(words))()
    for i, row in enumerate(rows):
        encoding = sized(Encoding)
        vkf.call("vkf_encodings_get", encodings, c_size_t(i), byref(encoding))
        assert encoding.tokens[0] and encoding.attention_mask[0] == 1
        row.ids, row.count = encoding.ids, encoding.count
    return encodings, rows


def pronounce(vkf, session, tokenizer, options=None):
    encodings, rows = encode(vkf, tokenizer, WORDS)
    generation = vkf.make("vkf_session_generate", session, rows, c_size_t(len(rows)),
                          byref(options) if options else None)
    texts = []
    for i in range(vkf.plain("vkf_generation_inputs", generation)):
        sequence = sized(Sequence)
        vkf.call("vkf_generation_get", generation, c_size_t(i), c_size_t(0), byref(sequence))
        assert sequence.score < 0
        texts.append(vkf.text(vkf.make("vkf_tokenizer_decode", tokenizer, sequence.ids,
                                       c_uint32(0))))
    vkf.plain("vkf_generation_free", generation)
    vkf.plain("vkf_encodings_free", encodings)
    return texts


def attention_rows(vkf, session, tokenizer):
    """Sums of the rows of a cross-attention map."""
    encodings, rows = encode(vkf, tokenizer, WORDS[:1])
    inputs = vkf.make("vkf_tensors_create")
    start = (c_int64 * 1)(1)
    for name, ids, count in ((b"input_ids", rows[0].ids, rows[0].count),
                             (b"decoder_input_ids", start, 1)):
        shape = (c_int64 * 2)(1, count)
        tensor = sized(Tensor, dtype=vkf.constants["VKF_I64"], shape=shape, rank=2,
                       data=ctypes.cast(ids, c_void_p), bytes=8 * count)
        vkf.call("vkf_tensors_set", inputs, name, byref(tensor))
    options = sized(RunOptions, flags=vkf.constants["VKF_RUN_ATTENTIONS"])
    outputs = vkf.make("vkf_session_run", session, inputs, byref(options))
    view = sized(Tensor)
    vkf.call("vkf_tensors_get", outputs, b"cross_attentions.0", byref(view))
    heads, keys = view.shape[1], view.shape[3]
    values = (c_float * (heads * keys))()
    vkf.call("vkf_tensors_get_floats", outputs, b"cross_attentions.0", values,
             c_size_t(heads * keys))
    for handle in (inputs, outputs):
        vkf.plain("vkf_tensors_free", handle)
    vkf.plain("vkf_encodings_free", encodings)
    return [sum(values[h * keys:(h + 1) * keys]) for h in range(heads)]


def main():
    library, model_directory, headers = sys.argv[1:]
    directory = model_directory.encode()
    vkf = Vkformer(library, headers)
    assert vkf.plain("vkf_api_version") == 1
    vkf.fails("VKF_NOT_FOUND", "absent", vkf.make, "vkf_tokenizer_load", b"absent")

    heard = []
    log = LOG(lambda data, level, message: heard.append((level, message)))
    device_options = sized(DeviceOptions, log=log)
    for field in ("device", "tier", "limits"):
        value = os.environ.get(f"VKFORMER_TEST_{field.upper()}")
        if value:
            setattr(device_options, field, value.encode())
    device = vkf.make("vkf_device_create", byref(device_options))
    assert any(b"[device]" in message for _, message in heard), heard
    vkf.fails("VKF_NOT_FOUND", "absent", vkf.make, "vkf_model_load", device, b"absent",
              None)
    vkf.fails("VKF_INVALID_ARGUMENT", "struct_size", vkf.make, "vkf_model_load", device, directory,
              byref(ModelOptions()))
    stop = PROGRESS(lambda data, loaded, total: 0)
    vkf.fails("VKF_CANCELLED", "", vkf.make, "vkf_model_load", device, directory,
              byref(sized(ModelOptions, progress=stop)))

    tokenizer = vkf.make("vkf_tokenizer_load", directory)
    model = vkf.make("vkf_model_load", device, directory, None)
    session = vkf.make("vkf_session_create", model, None)
    task = vkf.make("vkf_task_load", device, directory, b"generate", None)
    for name, handle in (("model", model), ("device", device)):
        vkf.plain(f"vkf_{name}_free", handle)

    assert pronounce(vkf, session, tokenizer) == PHONEMES
    beams = sized(GenerateOptions, set=vkf.constants["VKF_SET_BEAMS"], beams=4)
    assert pronounce(vkf, session, tokenizer, beams) == PHONEMES
    beams.beams = 0
    vkf.fails("VKF_INVALID_ARGUMENT", "beams", pronounce, vkf, session, tokenizer, beams)
    assert all(abs(total - 1) < 1e-5 for total in attention_rows(vkf, session, tokenizer))

    findings = vkf.make("vkf_task_generate", task, (c_char_p * 2)(*WORDS), c_size_t(2), None)
    for i, phonemes in enumerate(PHONEMES):
        finding = sized(Finding)
        vkf.call("vkf_findings_get", findings, c_size_t(i), c_size_t(0), byref(finding))
        assert finding.text.decode() == phonemes and finding.label is None
    for name, handle in (("findings", findings), ("task", task), ("session", session),
                         ("tokenizer", tokenizer)):
        vkf.plain(f"vkf_{name}_free", handle)
    vkf.plain("vkf_error_free", c_void_p(vkf.error))
    print(f"ctypes: {PHONEMES}, {len(heard)} messages")


if __name__ == "__main__":
    main()
