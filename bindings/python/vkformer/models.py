"""Model directories, and models on a device."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union

from . import _c
from ._calls import (Handle, Keep, address_of, call, fill, get, make, plain, read, split_options, text_array, text_from,
                     to_bytes, to_text)
from .devices import Device, default_device
from .errors import VkformerError
from .tensors import ArrayLike, tensors_of

#: Gets bytes loaded and bytes in all; False stops loading with CancelledError.
Progress = Callable[[int, int], Union[bool, None]]


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of a checkpoint; `dtype` as safetensors spells it."""

    name: str
    dtype: str
    file: str
    shape: list[int]


@dataclass(frozen=True)
class ModelInfo:
    """What a model directory holds; see vkf_model_info of vkformer/c/model.h."""

    family: str
    kind: str
    source: str
    head: str
    architecture: str
    labels: list[str]
    tasks: list[str]
    tensor_count: int
    prompt_token_count: int
    parameters: int
    width: int
    encoder_layers: int
    decoder_layers: int
    encoder_heads: int
    decoder_heads: int
    source_vocab: int
    target_vocab: int
    max_source: int
    max_target: int
    tensors: list[TensorInfo]
    #: Ids of what a decoder's prompt can hold, by name: languages, tasks.
    prompt_tokens: dict[str, int]


@dataclass(frozen=True)
class Family:
    """What the models of a family can do; see vkf_family of vkformer/c/model.h."""

    generates: bool
    family: str
    kind: str
    source: str
    heads: list[str]
    attention_maps: str
    inputs: str


@dataclass(frozen=True)
class MemoryNeeds:
    """Bytes of device memory; see vkf_memory_needs of vkformer/c/model.h."""

    weights: int
    arena: int
    cache: int
    tensors: int
    staging: int
    total: int
    arena_bound: int


@dataclass(frozen=True)
class QuantizeReport:
    """What quantize() wrote."""

    tensors: int
    matrices: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True)
class PackReport:
    """What pack() wrote: bytes, files in it, and the SHA-256 of its header, which has theirs."""

    size: int
    files: int
    sha256: str


def _info(description: Handle) -> ModelInfo:
    with description:
        made = get("vkf_description_get", description)
        tensors = [TensorInfo(**read(get("vkf_description_get_tensor", description, i)))
                   for i in range(made.tensor_count)]
        tokens = {}
        for i in range(made.prompt_token_count):
            name, token = ctypes.c_char_p(), ctypes.c_int64()
            call("vkf_description_get_prompt_token", description, i, ctypes.byref(name), ctypes.byref(token))
            tokens[to_text(name.value) or ""] = token.value
        return ModelInfo(**read(made), tensors=tensors, prompt_tokens=tokens)


def describe(directory: str | os.PathLike[str]) -> ModelInfo:
    """Reads and checks a model directory, without a device."""
    return _info(plain("vkf_description", make("vkf_describe_directory", directory)))


def families() -> list[Family]:
    """What the models of each family can do."""
    with plain("vkf_families", make("vkf_families_list")) as found:
        rows = [read(get("vkf_families_get", found, i)) for i in range(call("vkf_families_count", found))]
    return [Family(**dict(row, generates=bool(row["generates"]))) for row in rows]


def quantize(model: str | os.PathLike[str], target: str | os.PathLike[str], weights: str = "q8") -> QuantizeReport:
    """Writes the model of a directory, with smaller matrices ("q8", "q4", "q4m", "bf16", "f16"), into
    the directory `target`."""
    report = _c.sized("vkf_quantize_report")
    with Keep() as keep:
        options = fill("vkf_quantize_options", {"weights": weights}, keep, "quantize()")
        call("vkf_quantize_model", model, target, ctypes.byref(options), ctypes.byref(report))
    return QuantizeReport(**read(report))


Adapters = Union[Mapping[Any, float], Sequence[Any]]


def write_gguf(model: str | os.PathLike[str], target: str | os.PathLike[str], weights: str = "q8_0",
               adapters: Adapters | None = None) -> QuantizeReport:
    """Writes a model, a directory or a GGUF file, as the GGUF file `target`. Its weights are in "f32", "f16", "bf16" or
    a type of blocks such as "q8_0" and "q4_k". Adapters (paths, or a dict of their scales) are merged."""
    report = _c.sized("vkf_quantize_report")
    with Keep() as keep:
        options = fill("vkf_gguf_options", {"weights": weights}, keep, "write_gguf()")
        _set_adapters(options, adapters)
        call("vkf_write_gguf", model, target, ctypes.byref(options), ctypes.byref(report))
    return QuantizeReport(**read(report))


def pack(model: str | os.PathLike[str], target: str | os.PathLike[str], weights: str | None = None,
         adapters: Adapters | None = None, device_layout: bool = False) -> PackReport:
    """Writes a model as one file that Source.pack() loads, from a place in an archive, too. `weights`
    quantizes it first ("q8", "q4", "q4m", "bf16", "f16") and merges adapters, which else are packed
    beside it. With `device_layout` weights lie in the file as GPUs read them: loading is faster, and
    takes no other format and no adapters."""
    report = _c.sized("vkf_pack_report")
    with Keep() as keep:
        options = fill("vkf_pack_options", {"weights": weights, "device_layout": device_layout}, keep, "pack()")
        _set_adapters(options, adapters)
        call("vkf_pack_model", model, target, ctypes.byref(options), ctypes.byref(report))
    return PackReport(report.size, report.files, bytes(report.sha256).hex())


class FileReader(Protocol):
    """The host's own files, read by the thread that loads."""

    def size(self, name: str) -> int | None:
        """A file's bytes; None if there is none of that name."""

    def read(self, name: str, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset` on."""


class Source(Handle):
    """Where a model's files come from: a directory, a dict of their bytes by name, or a FileReader."""

    _kind = "vkf_source"

    def __init__(self, files: str | os.PathLike[str] | Mapping[str, Any] | FileReader, name: str = "memory") -> None:
        self._keep: list[Any] = []  # what the library refers to
        self.failure: BaseException | None = None
        if isinstance(files, (str, os.PathLike)):
            self._adopt(make("vkf_source_directory", files))
        elif isinstance(files, Mapping):
            self._adopt(self._memory(files, name))
        elif hasattr(files, "size") and hasattr(files, "read"):
            self._adopt(self._reader(files, name))
        else:
            raise TypeError(f"[files] is a {type(files).__name__}, and a directory, a dict of bytes by name, or an "
                            "object with size() and read() is needed.")

    @classmethod
    def pack(cls, path: str | os.PathLike[str], offset: int = 0) -> "Source":
        """A packed model (`vkformer pack`): the file from the byte `offset` on."""
        source = cls._of(make("vkf_source_pack", path, offset))
        source._keep, source.failure = [], None
        return source

    def _memory(self, files: Mapping[str, Any], name: str) -> Any:
        keep = Keep()
        rows = []
        for file, content in files.items():
            view = memoryview(content).cast("B") if memoryview(content).nbytes else memoryview(b"")
            rows.append(_c.types["vkf_file"](to_bytes(file, "files"), address_of(view, keep) or None, view.nbytes))
        array = (_c.types["vkf_file"] * max(len(rows), 1))(*rows)
        self._keep += [keep, array, dict(files)]
        return make("vkf_source_memory", array, len(rows), name)

    def _reader(self, reader: FileReader, name: str) -> Any:
        def size(_: Any, file: bytes, out: Any) -> int:
            try:
                found = reader.size(to_text(file) or "")
                if found is None:
                    return 0
                out[0] = found
                return 1
            except BaseException as failure:  # nothing may leave a callback
                self.failure = failure
                return 0

        def read_some(_: Any, file: bytes, offset: int, out: int, count: int) -> int:
            try:
                content = reader.read(to_text(file) or "", offset, count)
                if len(content) != count:
                    raise ValueError(f"[{to_text(file)}] read() gave {len(content)} bytes, and {count} were asked for.")
                ctypes.memmove(out, bytes(content), count)
                return 1
            except BaseException as failure:
                self.failure = failure
                return 0

        struct = _c.sized("vkf_file_reader", size=_c.types["vkf_file_reader_size"](size),
                          read=_c.types["vkf_file_reader_read"](read_some))
        self._keep.append(struct)
        return make("vkf_source_reader", ctypes.byref(struct), name)


def source_of(files: Any) -> Source:
    """A Source of what load() was given."""
    return files if isinstance(files, Source) else Source(files)


class Caught:
    """An exception of a callback, raised again after the call."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: Any, failure: Any, _: Any) -> None:
        if self.failure is not None and (failure is None or isinstance(failure, VkformerError)):
            raise self.failure


def progress_callback(progress: Progress, caught: Caught) -> Any:
    """A C callback of a function; what it raises stops loading."""
    if not callable(progress):
        raise TypeError(f"[progress] is a {type(progress).__name__}, and a function is needed.")

    def forward(_: Any, loaded: int, total: int) -> int:
        try:
            return 0 if progress(loaded, total) is False else 1
        except BaseException as failure:
            caught.failure = failure
            return 0

    return _c.types["vkf_model_options_progress"](forward)


def model_options(options: Mapping[str, Any], progress: Progress | None, caught: Caught, keep: Keep) -> Any:
    """vkf_model_options from keywords."""
    options = dict(options)
    if isinstance(options.get("first_use"), Mapping):
        options["first_use"] = session_sizes(options["first_use"], keep)
    if progress is not None:
        options["progress"] = progress_callback(progress, caught)
    adapters = options.pop("adapters", None) or {}
    requests = options.pop("request_adapters", None) or {}
    made = fill("vkf_model_options", options, keep, "Model()")
    _set_adapters(made, adapters)
    if requests:
        if not isinstance(requests, Mapping):
            raise TypeError(f"[request_adapters] is a {type(requests).__name__}, and a dict of names and "
                            "directories is needed.")
        made.request_adapter_names = text_array(list(requests), "request_adapters")
        made.request_adapters = text_array([os.fspath(path) for path in requests.values()], "request_adapters")
        made.request_adapter_count = len(requests)
    return made


def _set_adapters(made: Any, adapters: Any) -> None:
    """Paths of adapters, or a dict of their scales, as fields of options."""
    if not adapters:
        return
    names = [os.fspath(name).encode() for name in adapters]
    scales = adapters.values() if isinstance(adapters, Mapping) else [1.0] * len(names)
    made.adapters = (ctypes.c_char_p * len(names))(*names)
    made.adapter_scales = (ctypes.c_float * len(names))(*scales)
    made.adapter_count = len(names)


def session_sizes(sizes: Mapping[str, Any], keep: Keep) -> Any:
    """vkf_session_sizes from keywords."""
    sizes = dict(sizes)
    if sizes.get("inputs") is not None:
        sizes["inputs"] = tensors_of(sizes["inputs"])
        keep.append(sizes["inputs"])
    return fill("vkf_session_sizes", sizes, keep, "sizes")


class Model(Handle):
    """A model on a device. It never changes: sessions on any threads may share one.

    Options: weights are "stored", "f32", "f16", "bf16", "q8", "q4", "q4m", or a type of GGUF files such as "q4_k".
    precision is "f32", "f16", "reproducible" or "int8". most_weight_bytes and device_memory are numbers; device_memory
    is bytes of weights there at most, and the others are in host memory. copy_weights copies those of a pack in the
    layout of devices, even if the device can read the file. adapters are paths of LoRA or DoRA adapters, or a dict of
    their scales. request_adapters is a dict of names and directories of LoRA adapters that generations choose from.
    first_use is a dict of batch, tokens, new_tokens, beams, inputs. group is a DeviceGroup, which then holds the model
    in place of the device."""

    _kind = "vkf_model"

    def __init__(self, files: Any, device: Device | None = None, *, progress: Progress | None = None,
                 **options: Any) -> None:
        device = device or default_device()
        with Caught() as caught, Keep() as keep:
            made = model_options(options, progress, caught, keep)
            if isinstance(files, (str, os.PathLike)):
                self._adopt(make("vkf_model_load", device, files, ctypes.byref(made)))
            else:
                source = source_of(files)
                try:
                    self._adopt(make("vkf_model_load_from", device, source, ctypes.byref(made)))
                except VkformerError as error:
                    raise error from source.failure
                # Other scales of adapters are computed from the bytes that it was loaded from.
                self._life.needs = (source,)  # type: ignore[attr-defined]

    @property
    def info(self) -> ModelInfo:
        """What its directory holds."""
        return _info(plain("vkf_description", make("vkf_model_describe", self)))

    @property
    def weight_bytes(self) -> int:
        """Bytes of device memory that the weights take."""
        return int(call("vkf_model_weight_bytes", self))

    @property
    def group_plan(self) -> str:
        """Who of a group has which layers, a line a device; empty on one device."""
        return text_from("vkf_model_group_plan", self)

    def set_adapter_scales(self, scales: Sequence[float]) -> None:
        """Other scales for the adapters that it was loaded with, in their order; 0 leaves one out."""
        values = (ctypes.c_float * len(scales))(*scales)
        call("vkf_model_set_adapter_scales", self, values, len(scales))

    def plan(self, **options: Any) -> str:
        """The plan of a pass in words. Options: batch, source, target, beams, pass_ ("forward", "prompt"
        or "step")."""
        if "pass_" in options:
            options["pass"] = options.pop("pass_")
        with Keep() as keep:
            return text_from("vkf_model_plan", self, ctypes.byref(fill("vkf_plan_options", options, keep, "plan()")))


def memory_needs(files: Any, device: Device | None = None, **options: Any) -> MemoryNeeds:
    """What a model and one session will hold, without loading it. Options are those of Model(), and the
    sizes of the session: batch, tokens, new_tokens, beams, inputs."""
    parts = split_options("memory_needs()", options, sizes="vkf_session_sizes", model="vkf_model_options")
    needs = _c.sized("vkf_memory_needs")
    with Keep() as keep:
        call("vkf_model_memory_needs", device or default_device(), source_of(files),
             ctypes.byref(fill("vkf_model_options", parts["model"], keep)),
             ctypes.byref(session_sizes(parts["sizes"], keep)), ctypes.byref(needs))
    return MemoryNeeds(**read(needs))


class Load(Handle):
    """A model that loads on a thread of the library's."""

    _kind = "vkf_load"

    def __init__(self, files: Any, device: Device | None = None, *, progress: Progress | None = None,
                 **options: Any) -> None:
        self._source, self._caught, self._keep = source_of(files), Caught(), Keep()
        made = model_options(options, progress, self._caught, self._keep)
        try:
            self._adopt(make("vkf_load_start", device or default_device(), self._source, ctypes.byref(made)))
        finally:
            self._keep.__exit__()
        # The thread calls back and reads files until the handle is freed.
        self._life.needs = (self._keep, self._source)  # type: ignore[attr-defined]

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes so far, and in all once that is known."""
        loaded, total = ctypes.c_uint64(), ctypes.c_uint64()
        call("vkf_load_progress", self, ctypes.byref(loaded), ctypes.byref(total))
        return loaded.value, total.value

    @property
    def done(self) -> bool:
        """Whether wait() would return at once."""
        return bool(call("vkf_load_done", self))

    def advance(self, microseconds: float) -> None:
        """Of a load with paced=True, once a frame: how long weights may be copied."""
        call("vkf_load_advance", self, microseconds)

    def cancel(self) -> None:
        """Asks to stop; wait() then raises CancelledError, unless loading was over already."""
        call("vkf_load_cancel", self)

    def wait(self) -> Model:
        """The model, or the exception that says why there is none."""
        with self._caught:
            model = Model._of(make("vkf_load_wait", self))
        model._life.needs = (self._source,)  # type: ignore[attr-defined]  # as of Model()
        return model


__all__ = ["ArrayLike", "Family", "FileReader", "Load", "MemoryNeeds", "Model", "ModelInfo", "Progress",
           "QuantizeReport", "Source", "TensorInfo", "describe", "families", "memory_needs", "quantize"]
