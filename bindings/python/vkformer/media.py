"""Images and audio as inputs of models."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _c
from ._calls import Handle, Keep, address_of, call, fill, get, make, read
from .tensors import ArrayLike, Tensors, floats_of, shown, view_of


class Image(Handle):
    """An image, 8-bit RGB: of a PNG, JPEG, BMP, GIF or PNM file, of a file's bytes, or of an array.

    An array is (height, width, 3), (height, width, 4) or (height, width) of uint8, with the top row
    first. Rows may be apart (a slice of a larger array). They are read without a copy."""

    _kind = "vkf_picture"

    def __init__(self, image: str | os.PathLike[str] | bytes | ArrayLike, *, format: str | None = None) -> None:
        if isinstance(image, (str, os.PathLike)):
            self._adopt(make("vkf_picture_load", image))
        elif isinstance(image, (bytes, bytearray)):
            with Keep() as keep:
                view = memoryview(image)
                self._adopt(make("vkf_picture_decode", address_of(view, keep) or None, view.nbytes, "memory"))
        else:
            with Keep() as keep:
                self._adopt(make("vkf_picture_from_pixels", ctypes.byref(_pixels(image, format, keep))))

    @property
    def pixels(self) -> Any:
        """The pixels (height, width, 3), shown without a copy."""
        made = get("vkf_picture_get", self)
        return shown(made.bytes, "U8", (made.height, made.width, 3), self)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in pixels."""
        made = get("vkf_picture_get", self)
        return made.width, made.height


def _pixels(image: ArrayLike, format: str | None, keep: Keep) -> Any:
    rows = getattr(image, "__array_interface__", None)
    strides = rows.get("strides") if rows else None
    if rows and strides and rows["typestr"] == "|u1" and len(rows["shape"]) == 3 and strides[1:] == (rows["shape"][2], 1) \
            and strides[0] > 0:
        keep.append(image)
        shape, address = list(rows["shape"]), rows["data"][0]
        count = strides[0] * (shape[0] - 1) + shape[1] * shape[2]
    else:
        view, name, shape = view_of(image, "image")
        if name != "U8":
            raise TypeError(f"[image] has the dtype {name}; pixels are U8.")
        address, strides, count = address_of(view, keep), None, view.nbytes
    channels = shape[2] if len(shape) == 3 else 1
    known = {1: "gray8", 3: "rgb8", 4: "rgba8"}
    if len(shape) not in (2, 3) or channels not in known or 0 in shape:
        raise ValueError(f"[image] has the shape {shape}; (height, width), (height, width, 3) or (height, width, 4) is needed.")
    made = fill("vkf_pixels", {"height": shape[0], "width": shape[1], "format": format or known[channels],
                               "stride": strides[0] if strides else 0}, keep, "Image()")
    made.bytes, made.byte_count = address, count
    return made


#: What is taken as an image: an Image, a path, a file's bytes or an array of pixels.
ImageLike = Union[Image, str, "os.PathLike[str]", bytes, Any]


def image_of(given: ImageLike) -> Image:
    """An Image of what a caller gave."""
    return given if isinstance(given, Image) else Image(given)


def handle_array(handles: Sequence[Handle], kind: str, keep: Keep) -> Any:
    """`const vkf_x* const*` of handles."""
    pointers = [keep.handle(h, kind, f"[{i}]") for i, h in enumerate(handles)]
    keep.extend(handles)
    array = (ctypes.POINTER(_c.types[kind]) * max(len(pointers), 1))(*pointers)
    keep.append(array)
    return array


class ImageProcessor(Handle):
    """Makes a model's inputs of images, as its directory says, or as options say. Options are fit ("stretch", "as_is",
    "shortest_edge", "most_patches"), width, height, shortest_edge, resampling, crop_width and crop_height. The others
    are rescale, mean, std, longest_edge, side_multiple and max_patches."""

    _kind = "vkf_picture_processor"

    def __init__(self, directory: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        if directory is not None:
            if settings:
                raise TypeError("A directory has its own settings: give one or the other.")
            self._adopt(make("vkf_picture_processor_load", directory))
        else:
            with Keep() as keep:
                made = fill("vkf_picture_settings", settings, keep, "ImageProcessor()")
                self._adopt(make("vkf_picture_processor_create", ctypes.byref(made)))

    @property
    def settings(self) -> dict[str, Any]:
        """What happens to each image, by the names of the options."""
        return read(get("vkf_picture_processor_settings", self))

    def seen(self, width: int, height: int) -> tuple[float, float, float, float]:
        """Which part of an image of that many pixels the model sees: left, top, width, height."""
        region = (ctypes.c_double * 4)()
        call("vkf_picture_processor_seen", self, width, height, region)
        return region[0], region[1], region[2], region[3]

    def __call__(self, images: Sequence[ImageLike]) -> Tensors:
        """Tensors with the "pixel_values" of a batch (B,3,height,width)."""
        if isinstance(images, (str, bytes, Image)):
            images = [images]
        with Keep() as keep:
            array = handle_array([image_of(i) for i in images], "vkf_picture", keep)
            return Tensors._of(make("vkf_picture_processor_run", self, array, len(images)))


@dataclass(frozen=True)
class LogMelInfo:
    """How a model hears; see vkf_log_mel_info of vkformer/c/audio.h."""

    sampling_rate: int
    chunk_samples: int
    mel_bands: int
    frames: int


class Audio(Handle):
    """One channel of samples: of a WAV file, of a file's bytes, or of an array with its rate.

    `sampling_rate` is that of an array (needed then); of a file it is the rate to resample to."""

    _kind = "vkf_sound"

    def __init__(self, audio: str | os.PathLike[str] | bytes | ArrayLike, sampling_rate: int = 0) -> None:
        with Keep() as keep:
            if isinstance(audio, (str, os.PathLike)):
                self._adopt(make("vkf_sound_load", audio, sampling_rate))
            elif isinstance(audio, (bytes, bytearray)):
                view = memoryview(audio)
                file = _c.types["vkf_file"](b"memory", address_of(view, keep) or None, view.nbytes)
                self._adopt(make("vkf_sound_decode", ctypes.byref(file), sampling_rate))
            else:
                samples, shape = floats_of(audio, "audio", keep)
                if len(shape) != 1:
                    raise ValueError(f"[audio] has the shape {shape}; one channel of samples is needed.")
                self._adopt(make("vkf_sound_create", samples, shape[0], sampling_rate))

    def resample(self, sampling_rate: int) -> "Audio":
        """The audio at another rate."""
        return Audio._of(make("vkf_sound_resample", self, sampling_rate))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a WAV file of 16-bit samples."""
        call("vkf_sound_save", self, path)

    @property
    def samples(self) -> Any:
        """The samples, shown without a copy."""
        address = ctypes.cast(call("vkf_sound_samples", self), ctypes.c_void_p).value
        return shown(address, "F32", (len(self),), self)

    @property
    def sampling_rate(self) -> int:
        """Samples per second."""
        return int(call("vkf_sound_sampling_rate", self))

    def __len__(self) -> int:
        return int(call("vkf_sound_count", self))

    def __bool__(self) -> bool:
        return True


AudioLike = Union[Audio, str, "os.PathLike[str]", bytes, Any]


def audio_of(given: AudioLike) -> Audio:
    """An Audio of what a caller gave: an Audio, a path, a file's bytes, or (samples, sampling rate)."""
    if isinstance(given, tuple) and len(given) == 2:
        return Audio(given[0], given[1])
    return given if isinstance(given, Audio) else Audio(given)


class LogMel(Handle):
    """Makes a model's input of audio, as its directory says."""

    _kind = "vkf_log_mel"

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._adopt(make("vkf_log_mel_load", directory))

    @property
    def info(self) -> LogMelInfo:
        """How the model hears."""
        return LogMelInfo(**read(get("vkf_log_mel_get_info", self)))

    def __call__(self, audio: AudioLike) -> Tensors:
        """Tensors with the "input_features" of one stretch of audio (1,M,T)."""
        return Tensors._of(make("vkf_log_mel_run", self, audio_of(audio)))


__all__ = ["Audio", "Image", "ImageProcessor", "LogMel", "LogMelInfo"]
