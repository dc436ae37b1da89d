"""Arrays in and out, by name. numpy is used where it is installed; without it results are memoryviews."""
from __future__ import annotations

import array
import ctypes
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, Union

from . import _c
from ._calls import Handle, Keep, Lease, address_of, call, make, number, to_text
from .errors import NotFoundError

#: What is taken as a tensor: numpy arrays, whatever has the buffer protocol or DLPack, nested lists.
ArrayLike = Any

try:
    import numpy as _numpy
except ImportError:
    _numpy = None  # type: ignore[assignment]

# dtype: bytes of an element, letter of the buffer protocol, numpy's name, kind and letter of DLPack.
_DTYPES: dict[str, tuple[int, str, Union[str, None], int]] = {
    "F32": (4, "f", "float32", 2), "F64": (8, "d", "float64", 2), "F16": (2, "H", "float16", 2),
    "BF16": (2, "H", None, 4), "I64": (8, "q", "int64", 0), "I32": (4, "i", "int32", 0),
    "I16": (2, "h", "int16", 0), "I8": (1, "b", "int8", 0), "U64": (8, "Q", "uint64", 1),
    "U32": (4, "I", "uint32", 1), "U16": (2, "H", "uint16", 1), "U8": (1, "B", "uint8", 1),
    "BOOL": (1, "?", "bool", 6)}
_BY_NUMPY = {**{row[2]: name for name, row in _DTYPES.items() if row[2]}, "bfloat16": "BF16"}  # of ml_dtypes
_BY_LETTER = {"f": "F32", "d": "F64", "e": "F16", "?": "BOOL",
              **{letter: f"{'I' if letter.islower() else 'U'}{8 * array.array(letter).itemsize}" for letter in "bBhHiIlLqQ"}}


def dtype_name(value: int) -> str:
    """The name of a vkf_dtype, as safetensors spells it."""
    for name in _DTYPES:
        if _c.constants[f"VKF_{name}"] == value:
            return name
    return f"dtype {value}"


def _flatten(values: Any, what: str) -> tuple[list[Any], list[int]]:
    """The numbers of nested lists, and their shape."""
    if not isinstance(values, (list, tuple)):
        return [values], []
    if not values:
        return [], [0]
    parts = [_flatten(v, what) for v in values]
    if any(shape != parts[0][1] for _, shape in parts):
        raise ValueError(f"[{what}] has rows of different lengths. Pad them.")
    return [v for flat, _ in parts for v in flat], [len(values), *parts[0][1]]


def _from_lists(values: Any, what: str) -> memoryview:
    flat, shape = _flatten(values, what)
    if all(isinstance(v, bool) for v in flat) and flat:
        made: Any = bytearray(flat)
        return memoryview(made).cast("?", shape) if shape else memoryview(made).cast("?")
    if all(hasattr(v, "__index__") for v in flat):
        made = array.array("q", [number(v, ctypes.c_int64, what) for v in flat])
    elif all(isinstance(v, (int, float)) for v in flat):
        made = array.array("f", flat)
    else:
        raise TypeError(f"[{what}] holds a {next(type(v).__name__ for v in flat if not isinstance(v, (int, float)))}, "
                        "and numbers are needed.")
    if not flat:
        return memoryview(made)
    return memoryview(made).cast("B").cast(made.typecode, shape or [1])


def view_of(values: ArrayLike, what: str) -> tuple[Any, str, list[int]]:
    """A contiguous buffer of what was given, its dtype and its shape. Copies only where the layout
    asks for it."""
    if isinstance(values, Tensor):
        return values.view(), values.dtype, list(values.shape)
    if not isinstance(values, (list, tuple, int, float)):
        if _numpy is not None and not isinstance(values, (_numpy.ndarray, bytes, bytearray, memoryview, array.array)):
            if hasattr(values, "__dlpack__"):
                values = _numpy.from_dlpack(values)
            elif hasattr(values, "__array_interface__") or hasattr(values, "__array__"):
                values = _numpy.asarray(values)
        if _numpy is not None and isinstance(values, (_numpy.ndarray, _numpy.generic)):
            shape = list(values.shape)
            values = _numpy.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
            name = _BY_NUMPY.get(values.dtype.name)
            if name is None:
                raise TypeError(f"[{what}] has the dtype {values.dtype}; those of tensors are {sorted(_BY_NUMPY)}.")
            buffer: Any = values.view("uint16") if name in ("F16", "BF16") else values
            return memoryview(buffer), name, shape
        try:
            view = memoryview(values)
        except TypeError:
            raise TypeError(f"[{what}] is a {type(values).__name__}, and an array, a buffer or nested lists of "
                            "numbers are needed.") from None
        name = _BY_LETTER.get(view.format.lstrip("@="))
        if name is None:
            raise TypeError(f"[{what}] has elements of the format [{view.format}]; those of tensors are {sorted(_BY_LETTER)}.")
        if not view.c_contiguous:
            view = memoryview(view.tobytes()).cast(view.format, tuple(view.shape or ()))
        return view, name, list(view.shape or [])
    view = _from_lists(values, what)
    shape = list(view.shape or []) if isinstance(values, (list, tuple)) else []
    return view, _BY_LETTER[view.format], shape


def tensor_struct(values: ArrayLike, what: str, keep: Keep) -> Any:
    """A vkf_tensor that shows what was given."""
    view, name, shape = view_of(values, what)
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    keep.append(sizes)
    return _c.sized("vkf_tensor", dtype=_c.constants[f"VKF_{name}"], rank=len(shape),
                    shape=sizes if shape else None, data=address_of(view, keep) or None, bytes=view.nbytes)


def floats_of(values: ArrayLike, what: str, keep: Keep) -> tuple[Any, list[int]]:
    """`const float*` and the shape of what was given; f32 is not copied."""
    if _numpy is not None:
        values = _numpy.asarray(values, dtype="float32")
    view, name, shape = view_of(values, what)
    if name == "F32":
        return ctypes.cast(address_of(view, keep), ctypes.POINTER(ctypes.c_float)), shape
    flat = memoryview(view).cast("B").cast(view.format)
    made = (ctypes.c_float * max(len(flat), 1))(*(float(v) for v in flat))
    keep.append(made)
    return ctypes.cast(made, ctypes.POINTER(ctypes.c_float)), shape


def shown(address: Any, dtype: str, shape: tuple[int, ...], owner: Handle) -> Any:
    """An array over memory of the library, which stays as long as the array does. Nobody may write
    to it. numpy's array, or a memoryview without numpy (f16 and bf16 then are 16-bit integers)."""
    size, letter, name, _ = _DTYPES[dtype]
    count = math.prod(shape)
    memory = (ctypes.c_char * max(count * size, 1)).from_address(address or 0) if count else (ctypes.c_char * 1)()
    memory._lease = Lease(owner._life)  # type: ignore[attr-defined]
    view = memoryview(memory).cast("B")[:count * size].toreadonly()
    if _numpy is not None:
        return _numpy.frombuffer(view, dtype=name or "uint16").reshape(shape)
    flat = view.cast(letter)
    return flat if not shape or not count or len(shape) == 1 else view.cast(letter, shape)


class Tensor:
    """One array of a Tensors, shown without a copy: through numpy.asarray, the buffer of view(), or
    DLPack (torch.from_dlpack)."""

    def __init__(self, owner: "Tensors", name: str, struct: Any) -> None:
        self.name = name
        #: Such as "F32", as safetensors spells it.
        self.dtype = dtype_name(struct.dtype)
        #: Elements in each dimension, slowest first.
        self.shape: tuple[int, ...] = tuple(struct.shape[:struct.rank])
        self._owner, self._address, self._lease = owner, struct.data, Lease(owner._life)

    def view(self) -> memoryview:
        """The elements as a buffer that cannot be written to."""
        size, letter, _, _ = _DTYPES[self.dtype]
        count = math.prod(self.shape)
        memory = (ctypes.c_char * max(count * size, 1)).from_address(self._address) if count else (ctypes.c_char * 1)()
        memory._lease = self._lease  # type: ignore[attr-defined]
        flat = memoryview(memory).cast("B")[:count * size].toreadonly()
        return flat.cast(letter) if len(self.shape) < 2 or not count else flat.cast(letter, self.shape)

    def numpy(self) -> Any:
        """The elements as an array that cannot be written to; bf16 as the 16-bit integers of its bits."""
        if _numpy is None:
            raise ImportError("numpy is not installed. Install it, or use view().")
        return shown(self._address, self.dtype, self.shape, self._owner)

    def __array__(self, dtype: Any = None) -> Any:
        made = self.numpy()
        return made if dtype is None else made.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # host memory

    def __dlpack__(self, **options: Any) -> Any:
        from ._dlpack import capsule
        size, _, _, code = _DTYPES[self.dtype]
        return capsule(self._address or 0, code, 8 * size, self.shape, self._lease)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        return f"<vkformer.Tensor {self.name} {self.dtype} {list(self.shape)}>"


class Tensors(Handle, Mapping):  # type: ignore[type-arg]
    """Arrays by name, in host memory: what goes into a model, and what comes out. A dict of arrays is
    taken wherever a Tensors is. Results can be used like a dict of numpy arrays, which show the library's memory
    without a copy.

    >>> Tensors({"input_ids": [[1, 2, 3]]})["input_ids"].shape
    (1, 3)
    """

    _kind = "vkf_tensors"

    def __init__(self, values: Mapping[str, ArrayLike] | None = None) -> None:
        self._adopt(make("vkf_tensors_create"))
        for name, value in (values or {}).items():
            self[name] = value

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Tensors":
        """Every tensor of a safetensors file."""
        return cls._of(make("vkf_tensors_read", path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a safetensors file; an existing one is replaced whole or not at all."""
        call("vkf_tensors_write", self, path)

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        """Copies an array in. One of that name is replaced, unless an array still shows it."""
        if self._life.uses and name in self:
            raise ValueError(f"[{name}] cannot be replaced while arrays show these tensors. Make another Tensors.")
        with Keep() as keep:
            call("vkf_tensors_set", self, name, ctypes.byref(tensor_struct(value, name, keep)))

    def tensor(self, name: str) -> Tensor:
        """One of them with its dtype and shape, without a copy. KeyError if there is none."""
        struct = _c.sized("vkf_tensor")
        try:
            call("vkf_tensors_get", self, name, ctypes.byref(struct))
        except NotFoundError:
            raise KeyError(name) from None
        return Tensor(self, name, struct)

    def __getitem__(self, name: str) -> Any:
        """An array; bf16 is widened to f32, which copies it."""
        found = self.tensor(name)
        return self.floats(name) if found.dtype == "BF16" else shown(found._address, found.dtype, found.shape, self)

    def floats(self, name: str) -> Any:
        """A copy of a tensor of any float type, widened to f32."""
        return self._copy(name, "vkf_tensors_get_floats", ctypes.c_float, "F32")

    def ints(self, name: str) -> Any:
        """A copy of integers or booleans in 64 bits."""
        return self._copy(name, "vkf_tensors_get_ints", ctypes.c_int64, "I64")

    def _copy(self, name: str, function: str, kind: Any, dtype: str) -> Any:
        shape = self.tensor(name).shape
        count = math.prod(shape)
        values = (kind * max(count, 1))()
        call(function, self, name, values, count)
        flat = memoryview(values).cast("B")[:count * ctypes.sizeof(kind)]
        if _numpy is not None:
            return _numpy.frombuffer(flat, dtype=_DTYPES[dtype][2]).reshape(shape)
        letter = _DTYPES[dtype][1]
        return flat.cast(letter) if len(shape) < 2 or not count else flat.cast(letter, shape)

    def __iter__(self) -> Iterator[str]:
        """Names, in order."""
        for index in range(len(self)):
            name = to_text(call("vkf_tensors_name", self, index))
            if name is not None:
                yield name

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self.tensor(name)
        except KeyError:
            return False
        return True

    def __len__(self) -> int:
        return int(call("vkf_tensors_count", self))

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def tensors_of(given: Tensors | Mapping[str, ArrayLike] | None) -> Tensors | None:
    """A Tensors of what a caller gave as inputs."""
    if given is None or isinstance(given, Tensors):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"[inputs] is a {type(given).__name__}, and a dict of arrays by name is needed.")
    return Tensors(given)
