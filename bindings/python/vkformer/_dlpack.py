"""Arrays for other libraries without a copy, by the DLPack protocol."""
from __future__ import annotations

import ctypes
from typing import Any


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_held: dict[int, Any] = {}  # what consumers still use, by address


@_Deleter
def _delete(managed: Any) -> None:
    _held.pop(ctypes.addressof(managed.contents), None)


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_NAME = b"dltensor"  # a consumer renames the capsule when it takes the array over


@_Destructor
def _destroy(capsule: Any) -> None:
    """A capsule that nobody took over."""
    if _is_valid(capsule, _NAME):
        _held.pop(_get(capsule, _NAME), None)


def capsule(address: int, code: int, bits: int, shape: tuple[int, ...], owner: Any) -> Any:
    """A capsule that keeps `owner` until its consumer has done with the memory."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = _Managed(_Tensor(address, 1, 0, len(shape), code, bits, 1, sizes, None, 0), None, _delete)
    _held[ctypes.addressof(managed)] = (managed, sizes, owner)
    return _new(ctypes.addressof(managed), _NAME, _destroy)
