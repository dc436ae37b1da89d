"""What every class of the package is made of. These are calls with their errors, handles that know whether they are in
use, options from keywords, and structs as Python objects."""
from __future__ import annotations

import ctypes
import difflib
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from . import _c
from .errors import BusyError, ClosedError, from_status

_Self = TypeVar("_Self", bound="Handle")


def to_bytes(text: Any, what: str) -> bytes:
    """A text for C: UTF-8 without zero bytes."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, str):
        raise TypeError(f"[{what}] is a {type(text).__name__}, and a text (str) is needed.")
    if "\0" in text:
        raise ValueError(f"[{what}] holds a zero character at {text.index(chr(0))}, where a text of C would end.")
    return text.encode("utf-8", "surrogateescape")


def to_text(given: bytes | None) -> str | None:
    """A text of C's; null is None."""
    return None if given is None else given.decode("utf-8", "surrogateescape")


def texts_of(given: Any, what: str) -> list[str]:
    """Several texts. A single text is an error here: it would be taken letter by letter."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"[{what}] is a {type(given).__name__}, and a list of texts is needed.")
    return list(given)


def text_array(texts: Sequence[str], what: str) -> Any:
    """`const char* const*`; the array keeps the bytes alive."""
    return (ctypes.c_char_p * max(len(texts), 1))(*(to_bytes(t, f"{what}[{i}]") for i, t in enumerate(texts)))


def number(value: Any, kind: Any, what: str) -> int:
    """An integer that fits into a C type; ctypes itself would cut it."""
    if hasattr(value, "__index__"):
        value = value.__index__()
    else:
        raise TypeError(f"[{what}] is a {type(value).__name__}, and an integer is needed.")
    bits = 8 * ctypes.sizeof(kind)
    signed = kind(-1).value < 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise ValueError(f"[{what}] is {value}, outside of {low} to {high}.")
    return value


def real(value: Any, what: str) -> float:
    """A floating-point number."""
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"[{what}] is a {type(value).__name__}, and a number is needed.")
    return float(value)


def ids_of(ids: Any, what: str, keep: "Keep") -> Any:
    """A vkf_ids of integers: arrays of 64 bits as they are, without a copy."""
    try:
        view = memoryview(ids)
    except TypeError:
        view = None
    made = _c.types["vkf_ids"]()
    if view is not None and view.ndim == 1 and view.c_contiguous and view.format in ("q", "l") and view.itemsize == 8:
        if len(view):
            made.ids, made.count = ctypes.cast(_address(view, keep), ctypes.POINTER(ctypes.c_int64)), len(view)
        return made
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"[{what}] is a {type(ids).__name__}, and a list of token ids is needed.")
    values = [number(v, ctypes.c_int64, f"{what}[{i}]") for i, v in enumerate(ids)]
    array = (ctypes.c_int64 * max(len(values), 1))(*values)
    keep.append(array)
    made.ids, made.count = ctypes.cast(array, ctypes.POINTER(ctypes.c_int64)), len(values)
    return made


def _address(view: memoryview, keep: "Keep") -> int:
    """Where the bytes of a contiguous buffer lie, which `keep` holds on to."""
    keep.append(view)
    if not view.nbytes:
        return 0
    if not view.readonly:
        first = ctypes.c_char.from_buffer(view.cast("B"))
        keep.append(first)
        return ctypes.addressof(first)
    owner = view.obj
    if isinstance(owner, bytes) and view.nbytes == len(owner):
        return ctypes.cast(ctypes.c_char_p(owner), ctypes.c_void_p).value or 0
    interface = getattr(owner, "__array_interface__", None)
    if interface and interface["shape"] == view.shape:
        return interface["data"][0]
    copied = ctypes.create_string_buffer(view.tobytes(), view.nbytes)
    keep.append(copied)
    return ctypes.addressof(copied)


address_of = _address


class Keep(list):
    """What must stay until a call has returned: arrays and structs, and handles in use."""

    def __init__(self) -> None:
        super().__init__()
        self.leases: list[Lifetime] = []

    def __enter__(self) -> "Keep":
        return self

    def __exit__(self, *_: object) -> None:
        while self.leases:
            self.leases.pop().release()

    def handle(self, given: "Handle", kind: str, what: str) -> Any:
        """The pointer of a handle inside a struct or an array."""
        if not isinstance(given, Handle) or given._kind != kind:
            raise TypeError(f"[{what}] is a {type(given).__name__}, and a {_class_name(kind)} is needed.")
        pointer = given._life.acquire()
        self.leases.append(given._life)
        return pointer


class Lifetime:
    """The pointer of a handle, and who uses it: calls, and arrays that show its memory. A handle that
    is closed while it is in use is freed by the last user."""

    def __init__(self, kind: str, pointer: Any) -> None:
        self.kind, self.pointer = kind, pointer
        self.uses, self.closed = 0, False
        self.guard = threading.RLock()
        self.turn = threading.Lock()  # of functions that take one thread at a time
        self.turn_of: int | None = None

    def acquire(self) -> Any:
        with self.guard:
            if self.closed:
                raise ClosedError(f"The {_class_name(self.kind)} is closed. Make another one, or close it later.")
            self.uses += 1
            return self.pointer

    def release(self) -> None:
        with self.guard:
            self.uses -= 1
            last = self.closed and self.uses == 0
        if last:
            self._free()

    def close(self) -> None:
        with self.guard:
            if self.closed:
                return
            self.closed = True
            last = self.uses == 0
        if last:
            self._free()

    def _free(self) -> None:
        _c.function(_c.handles[self.kind]["free"])(self.pointer)

    def take_turn(self) -> None:
        me = threading.get_ident()
        if self.turn_of == me:
            raise BusyError(f"The {_class_name(self.kind)} is in use by the call that this callback belongs to. "
                            "Use it after that call has returned.")
        self.turn.acquire()
        self.turn_of = me

    def end_turn(self) -> None:
        self.turn_of = None
        self.turn.release()


class Lease:
    """Keeps a handle's memory as long as an array shows it."""

    def __init__(self, life: Lifetime) -> None:
        life.acquire()
        # Not at the interpreter's end, when arrays may still be looked at.
        weakref.finalize(self, life.release).atexit = False


_classes: dict[str, str] = {}


def _class_name(kind: str) -> str:
    return _classes.get(kind, kind)


class Handle:
    """An object of the library. It is freed by close(), at the end of a `with`, or when nobody refers
    to it any more. Objects keep alive what they were made from: close them in any order. Calls from
    several threads are safe: where an object takes one thread at a time, the others wait."""

    _kind: str = ""
    _life: Lifetime

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls._kind:
            _classes.setdefault(cls._kind, cls.__name__)

    def _adopt(self: _Self, pointer: Any) -> _Self:
        self._life = Lifetime(self._kind, pointer)
        weakref.finalize(self, self._life.close)
        return self

    @classmethod
    def _of(cls: type[_Self], pointer: Any) -> _Self:
        return cls.__new__(cls)._adopt(pointer)

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._life.closed

    def close(self) -> None:
        """Frees the object; what is in use by a call, or shown by an array, when that has ended. May
        be called again."""
        self._life.close()

    def __enter__(self: _Self) -> _Self:
        if self.closed:
            self._life.acquire()  # raises
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<vkformer.{type(self).__name__}{' (closed)' if self.closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"A {type(self).__name__} cannot be pickled: make one in each process.")

    def __copy__(self) -> Any:
        raise TypeError(f"A {type(self).__name__} cannot be copied; it can be used in several places.")


class _Plain(Handle):
    """A handle that is only read, inside of one function of this package."""

    @classmethod
    def of(cls, kind: str, pointer: Any) -> "_Plain":
        made = cls.__new__(cls)
        made._kind = kind
        return made._adopt(pointer)


plain = _Plain.of
_errors = threading.local()


class _ThreadError:
    """The vkf_error of a thread."""

    def __init__(self) -> None:
        self.pointer = _c.function("vkf_error_create")()
        if not self.pointer:
            raise MemoryError("Memory is exhausted.")
        # Not at the interpreter's end, when the thread may still be in a call.
        weakref.finalize(self, _c.function("vkf_error_free"), self.pointer).atexit = False


def _convert(given: Any, parameter: Mapping[str, Any], name: str, keep: Keep) -> Any:
    """An argument as ctypes takes it."""
    kind, what = parameter["type"], f"{name}: {parameter['name']}"
    base = _c.base_of(kind)
    if kind.count("*") == 1 and base in _c.handles:
        return None if given is None else keep.handle(given, base, what)
    if kind == "const char*" and isinstance(given, (str, os.PathLike)):
        return to_bytes(given, what)
    plain_type = _c.of_c(kind)
    if "*" not in kind and "array" not in parameter and isinstance(plain_type, type) and issubclass(plain_type, ctypes._SimpleCData) and \
            base not in _c.callbacks and not isinstance(given, ctypes._SimpleCData):
        return real(given, what) if base in ("double", "float") else number(given, plain_type, what)
    return given


def call(name: str, *given: Any) -> Any:
    """Calls a function of the C interface: Handle objects and texts are converted, numbers are checked.
    If the function can fail, leave its last argument, the error, away: a failure is an exception.
    Returns what the function returns, but None for a status."""
    entry, function = _c.functions[name], _c.function(name)
    parameters = entry["parameters"][:-1] if entry["fails"] else entry["parameters"]
    if len(given) != len(parameters):
        raise TypeError(f"[{name}] takes {len(parameters)} arguments, not {len(given)}.")
    turns: list[Lifetime] = []
    with Keep() as keep:
        arguments = [_convert(value, p, name, keep) for value, p in zip(given, parameters)]
        for i, value in enumerate(given):
            # Tensors may be set by one thread while another reads them, so they take turns as well.
            if isinstance(value, Handle) and (value._kind == "vkf_tensors" or i == 0 and entry["threads"] != "any"):
                if value._life not in turns:
                    turns.append(value._life)
        try:
            for i, life in enumerate(turns):
                try:
                    life.take_turn()
                except BusyError:
                    del turns[i:]
                    raise
            if not entry["fails"]:
                return function(*arguments)
            if not hasattr(_errors, "mine"):
                _errors.mine = _ThreadError()
            error = _errors.mine.pointer
            try:
                status = function(*arguments, error)
            except ctypes.ArgumentError as failure:
                at = int("".join(filter(str.isdigit, str(failure).split(":")[0])) or 1) - 1
                raise TypeError(f"[{name}: {parameters[at]['name']}] is a {type(given[at]).__name__}, "
                                f"and C's [{parameters[at]['type']}] is needed.") from None
            if status != 0:
                raise from_status(status, to_text(_c.function("vkf_error_message")(error)) or "")
        finally:
            for life in turns:
                life.end_turn()
    return None


def pointer_to(kind: str) -> Any:
    """Room for a handle that a call makes."""
    return ctypes.POINTER(_c.types[kind])()


def make(name: str, *given: Any) -> Any:
    """A call that makes a handle, which is its last argument but the error; returns the pointer."""
    out = _c.functions[name]["parameters"][-2]["type"]
    room = pointer_to(out.replace("*", ""))
    call(name, *given, ctypes.byref(room))
    return room


def text_from(name: str, *given: Any) -> str:
    """A call that makes a text."""
    return to_text(bytes_from(name, *given)) or ""


def bytes_from(name: str, *given: Any) -> bytes:
    """A call that makes bytes."""
    made = plain("vkf_bytes", make(name, *given))
    try:
        return ctypes.string_at(call("vkf_bytes_data", made), call("vkf_bytes_size", made))
    finally:
        made.close()


# Options ------------------------------------------------------------------------------------------

# Fields whose values have names: the prefix of the constants.
_CHOICES = {
    ("vkf_embed_options", "pooling"): "VKF_POOL_", ("vkf_rerank_options", "score"): "VKF_RERANK_",
    ("vkf_embed_options", "values"): "VKF_VECTOR_",
    ("vkf_device_options", "queue_priority"): "VKF_PRIORITY_", ("vkf_picture_settings", "fit"): "VKF_FIT_",
    ("vkf_attention_options", "projection"): "VKF_PROJECT_", ("vkf_view_options", "range"): "VKF_",
    ("vkf_encode_options", "truncation"): "VKF_", ("vkf_encode_options", "padding"): "VKF_",
    ("vkf_encode_options", "truncation_strategy"): "VKF_", ("vkf_pixels", "format"): "VKF_",
    ("vkf_image_input", "format"): "", ("vkf_operator_tensor", "dtype"): "VKF_",
}
_FLAGS = {"vkf_run_options": "VKF_RUN_", "vkf_encode_options": "VKF_ENCODE_", "vkf_answer_options": "VKF_ANSWER_",
          "vkf_entity_options": "VKF_ENTITY_"}
_SETS = {"vkf_choice_options": "VKF_CHOICE_", "vkf_generate_options": "VKF_SET_", "vkf_text_options": "VKF_SET_",
         "vkf_transcribe_options": "VKF_SET_", "vkf_speak_options": "VKF_SPEAK_"}
#: Fields whose bit has another name.
_BIT_NAMES = {("vkf_speak_options", "speaking_rate"): "RATE"}
_NO_BIT = {("vkf_text_options", "bad_words")}
#: Words of the field for what the C interface calls otherwise.
_ALIASES = {"vkf_choice_options": {"drawn": "sample", "do_sample": "sample"}, "vkf_batch_options": {"guesses": "draft_tokens"}}
_HIDDEN = ("struct_size", "reserved", "set", "flags")


def option_names(struct: str) -> list[str]:
    """The keywords that fill() takes for a struct."""
    fields = _c.structs[struct]["fields"]
    counts = {f["count"] for f in fields if "count" in f}
    names = [f["name"] for f in fields if f["name"] not in _HIDDEN and f["name"] not in counts]
    prefix = _FLAGS.get(struct)
    if prefix:
        names += [c[len(prefix):].lower() for c in _c.constants if c.startswith(prefix)
                  and c[len(prefix):].lower() not in names]
    for alias, name in _ALIASES.get(struct, {}).items():
        if name in names:
            names.append(alias)
    return names


def _bit(struct: str, field: str) -> int:
    """The bit of `set` that makes a field count; 0: it has none."""
    prefix = _SETS.get(struct)
    if not prefix or (struct, field) in _NO_BIT:
        return 0
    name = _BIT_NAMES.get((struct, field), field.upper())
    found = [c for c in _c.constants if c.startswith(prefix) and name.startswith(c[len(prefix):])]
    return _c.constants[max(found, key=len)] if found else 0


def unknown_option(who: str, name: str, known: Iterable[str]) -> TypeError:
    near = difflib.get_close_matches(name, list(known), 1)
    return TypeError(f"{who} has no option [{name}]" + (f"; the nearest is [{near[0]}]." if near else "."))


def fill(struct: str, values: Mapping[str, Any], keep: Keep, who: str = "") -> Any:
    """A struct of options from keywords. Fields of `set` and `flags` follow from what is given."""
    who = who or struct
    entry, made = _c.structs[struct], _c.sized(struct)
    keep.append(made)
    fields = {f["name"]: f for f in entry["fields"]}
    known = option_names(struct)
    for name, value in values.items():
        if name not in known:
            raise unknown_option(who, name, known)
        field_name = _ALIASES.get(struct, {}).get(name, name)
        if struct in _FLAGS:
            bit = _c.constants.get(_FLAGS[struct] + field_name.upper(), 0)
            if bit and (field_name in fields or _truth(value, f"{who}: {name}")):
                made.flags |= bit
        if field_name not in fields:
            continue
        if value is None and "*" in fields[field_name]["type"]:
            continue
        if value is None:
            continue  # the default
        _set(made, struct, fields[field_name], value, f"{who}: {name}", keep)
        if "set" in fields:
            made.set |= _bit(struct, field_name)
    return made


def _truth(value: Any, what: str) -> bool:
    if not isinstance(value, (bool, int)):
        raise TypeError(f"[{what}] is a {type(value).__name__}, and True or False is needed.")
    return bool(value)


def _set(made: Any, struct: str, field: Mapping[str, Any], value: Any, what: str, keep: Keep) -> None:
    name, kind = field["name"], field["type"]
    base = _c.base_of(kind)
    stars = kind.count("*")
    choices = _CHOICES.get((struct, name))
    if isinstance(value, str) and not stars and choices is not None:
        constant = choices + value.upper().replace("-", "_")
        if constant not in _c.constants:
            known = sorted(c[len(choices):].lower() for c in _c.constants if c.startswith(choices)) if choices != "VKF_" else []
            raise ValueError(f"[{what}] is [{value}], which is no choice" + (f"; those are {known}." if known else "."))
        setattr(made, name, _c.constants[constant])
    elif "array" in field:
        numbers = [real(v, f"{what}[{i}]") for i, v in enumerate(value)]
        if len(numbers) != field["array"]:
            raise ValueError(f"[{what}] has {len(numbers)} numbers, and {field['array']} are needed.")
        setattr(made, name, type(getattr(made, name))(*numbers))
    elif base in _c.callbacks:
        keep.append(value)
        setattr(made, name, value)
    elif kind == "const char*":
        setattr(made, name, to_bytes(value, what))
    elif kind == "const char* const*":
        texts = texts_of(value, what)
        array = text_array(texts, what)
        keep.append(array)
        setattr(made, name, array)
        if "count" in field:
            setattr(made, field["count"], len(texts))
    elif base == "vkf_ids" and stars == 0:
        setattr(made, name, ids_of(value, what, keep))
    elif base == "vkf_ids":
        rows = [ids_of(v, f"{what}[{i}]", keep) for i, v in enumerate(value)]
        array = (_c.types[base] * max(len(rows), 1))(*rows)
        keep.append(array)
        setattr(made, name, array)
        setattr(made, field["count"], len(rows))
    elif base == "vkf_token_bias":
        pairs = value.items() if isinstance(value, Mapping) else value
        rows = [_c.types[base](ids_of([t] if hasattr(t, "__index__") else t, what, keep), real(bias, what))
                for t, bias in pairs]
        array = (_c.types[base] * max(len(rows), 1))(*rows)
        keep.append(array)
        setattr(made, name, array)
        setattr(made, field["count"], len(rows))
    elif base in _c.handles and stars == 1:
        setattr(made, name, keep.handle(value, base, what))
    elif base in _c.structs and stars == 1:
        if isinstance(value, Mapping):
            value = fill(base, value, keep, what)
        setattr(made, name, ctypes.pointer(value))
    elif kind.startswith("const void*") or kind == "void*":
        setattr(made, name, value)
    elif base in ("double", "float"):
        setattr(made, name, real(value, what))
    else:
        setattr(made, name, number(value, _c.of_c(kind), what))


def split_options(who: str, given: Mapping[str, Any], **structs: str) -> dict[str, dict[str, Any]]:
    """Sorts keywords by the struct that knows them; the first one that does takes each."""
    parts: dict[str, dict[str, Any]] = {part: {} for part in structs}
    names = {part: option_names(struct) for part, struct in structs.items()}
    for name, value in given.items():
        for part, known in names.items():
            if name in known:
                parts[part][name] = value
                break
        else:
            raise unknown_option(who, name, [n for known in names.values() for n in known])
    return parts


# Structs that the library fills --------------------------------------------------------------------

def read(made: Any) -> dict[str, Any]:
    """The fields of a struct as Python values: texts, numbers and lists, all copied."""
    struct = type(made).__name__
    fields = _c.structs[struct]["fields"]
    counts = {f["count"] for f in fields if "count" in f}
    found: dict[str, Any] = {}
    for field in fields:
        name, kind = field["name"], field["type"]
        base, value = _c.base_of(kind), getattr(made, name)
        if name in ("struct_size", "reserved") or name in counts:
            continue
        if kind == "const char*":
            found[name] = to_text(value)
        elif kind == "const char* const*" and "count" in field:
            found[name] = [to_text(value[i]) or "" for i in range(getattr(made, field["count"]))]
        elif "array" in field:
            found[name] = tuple(value)
        elif base == "vkf_ids" and "*" not in kind:
            found[name] = value.ids[:value.count] if value.count else []
        elif kind in ("const int64_t*", "const float*") and "count" in field:
            found[name] = value[:getattr(made, field["count"])] if getattr(made, field["count"]) else []
        elif base in _c.structs and "*" not in kind:
            found[name] = read(value)
        elif "*" not in kind and base not in _c.callbacks:
            found[name] = value
    return found


def get(name: str, *given: Any) -> Any:
    """A call that fills a struct, its last argument but the error; returns the struct."""
    struct = _c.functions[name]["parameters"][-2]["type"].replace("*", "")
    made = _c.sized(struct)
    call(name, *given, ctypes.byref(made))
    return made


