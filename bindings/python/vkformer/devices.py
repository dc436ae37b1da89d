"""Vulkan devices, and what they take for their work."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _c
from ._calls import Handle, Keep, call, fill, get, make, plain, read, to_text, unknown_option

#: Gets messages: the level ("info", "warning" or "error") and the text.
Log = Callable[[str, str], None]


@dataclass(frozen=True)
class DeviceInfo:
    """A Vulkan device; see vkf_device_info of vkformer/c/device.h."""

    index: int
    name: str
    driver: str
    kind: str
    api_version: str
    uuid: str
    best_tier: str
    notes: list[str]
    memory_bytes: int
    max_storage_range: int
    subgroup_size: int
    max_shared_bytes: int
    max_invocations: int


@dataclass(frozen=True)
class Roofline:
    """What a device does at best; see vkf_roofline of vkformer/c/profile.h."""

    fma_gflops: float
    fma_f16_gflops: float
    units_gflops: float
    fma_int_gops: float
    copy_gbytes: float
    dispatch_us: float
    barrier_us: float
    submit_us: float


@dataclass(frozen=True)
class DispatchTime:
    """One dispatch of a profile; see vkf_dispatch_time of vkformer/c/profile.h."""

    submit: int
    op: str
    label: str
    kernel: str
    shapes: str
    start: float
    microseconds: float
    flops: float
    bytes: float


@dataclass(frozen=True)
class TunedChoice:
    """What the tuner found for one number of rows; see vkf_tuned_choice of vkformer/c/profile.h."""

    tried: int
    shape: str
    usual: str
    winner: str
    usual_ms: float
    winner_ms: float


def devices() -> list[DeviceInfo]:
    """Every Vulkan device of this machine, software ones included."""
    with plain("vkf_devices", make("vkf_devices_list")) as found:
        return [DeviceInfo(**read(get("vkf_devices_get", found, i)))
                for i in range(call("vkf_devices_count", found))]


def _log_callback(log: Log) -> Any:
    names = {_c.constants["VKF_LOG_INFO"]: "info", _c.constants["VKF_LOG_WARNING"]: "warning",
             _c.constants["VKF_LOG_ERROR"]: "error"}

    def forward(_: Any, level: int, message: bytes) -> None:
        log(names.get(level, "info"), to_text(message) or "")

    return _c.types["vkf_log_function"](forward)


def _device_options(log: Log | None, options: Mapping[str, Any], keep: Keep) -> tuple[Any, Any]:
    forward = None
    if log is not None:
        if not callable(log):
            raise TypeError(f"[log] is a {type(log).__name__}, and a function is needed.")
        forward = _log_callback(log)
        options = {**options, "log": forward}
    return fill("vkf_device_options", options, keep, "Device()"), forward


class Device(Handle):
    """A Vulkan device of vkformer's own.

    Options: device ("best", an index or a part of a name), tier, limits, cache_directory, validation,
    memory_budget, queue_priority ("low", "normal"), tuning, compile_threads. `log` gets messages, from
    any thread; it must not call vkformer."""

    _kind = "vkf_device"

    def __init__(self, device: str | None = None, *, log: Log | None = None, **options: Any) -> None:
        with Keep() as keep:
            made, self._log = _device_options(log, {**options, "device": device}, keep)
            self._adopt(make("vkf_device_create", ctypes.byref(made)))
        if self._log is not None:
            _hold_log(self)

    @classmethod
    def adopt(cls, adopted: "AdoptedDevice", *, log: Log | None = None, **options: Any) -> "Device":
        """Wraps an application's own device, whose objects must outlive all that is made from it."""
        with Keep() as keep:
            made, forward = _device_options(log, options, keep)
            device = cls._of(make("vkf_device_adopt", ctypes.byref(adopted.struct), ctypes.byref(made)))
        device._log = forward
        _held_logs.append((adopted, forward))
        return device

    @property
    def info(self) -> DeviceInfo:
        """The device as chosen, with its clamped limits."""
        return DeviceInfo(**read(get("vkf_device_get_info", self)))

    @property
    def tier(self) -> str:
        """The tier in use: "baseline", "subgroup", "fp16" or "matrix"."""
        return to_text(call("vkf_device_tier", self)) or ""

    @property
    def memory_in_use(self) -> int:
        """Bytes of device memory held by vkformer's objects."""
        return int(call("vkf_device_memory_in_use", self))

    @property
    def memory_allocated(self) -> int:
        """Bytes of device memory allocated for them, in blocks."""
        return int(call("vkf_device_memory_allocated", self))

    def roofline(self) -> Roofline:
        """Measures what the device does at best. Wants the device for itself."""
        return Roofline(**read(get("vkf_device_roofline", self)))

    def tune(self, **options: Any) -> tuple[list[TunedChoice], str]:
        """Finds the fastest kernels, for devices that are then made with tuning=1. Options: quick,
        ms_per_choice, least_gain. Returns the choices, and the file that keeps them or ""."""
        with Keep() as keep:
            made = fill("vkf_tune_options", options, keep, "tune()")
            report = plain("vkf_tune_report", make("vkf_device_tune", self, ctypes.byref(made)))
        with report:
            found = [TunedChoice(**read(get("vkf_tune_report_get", report, i)))
                     for i in range(call("vkf_tune_report_count", report))]
            return found, to_text(call("vkf_tune_report_file", report)) or ""

    def profile(self) -> "Profiler":
        """A `with` block in which every dispatch is timed; its take() gives the times."""
        return Profiler(self)


# A device lives on in its models after its handle was freed, and may call its log then.
_held_logs: list[Any] = []


class DeviceGroup(Handle):
    """Several devices that hold one model together, for Model(group=...): 2 to 64 in the order of the
    layers. `shares` says how the work is shared out, a positive number a device (default: by measured
    speed). `lanes` says how many parts of a batch are under way at once (default: as many as devices). With `split`
    "tensors", devices alike divide the heads and feed-forward columns of every layer evenly. With "fastest", an
    estimate chooses one of these when a model is loaded."""

    _kind = "vkf_device_group"

    def __init__(self, devices: Sequence[Device], shares: Sequence[float] | None = None, lanes: int = 0,
                 split: str = "layers") -> None:
        from .media import handle_array
        if shares is not None and len(shares) != len(devices):
            raise ValueError(f"[shares] has {len(shares)} numbers for {len(devices)} devices; give one for each.")
        makers = {"tensors": "vkf_device_group_create_divided", "fastest": "vkf_device_group_create_fastest"}
        if split != "layers" and split not in makers:
            raise ValueError(f'[split] is "{split}"; use "layers", "tensors" or "fastest".')
        if split in makers and shares is not None:
            raise ValueError("[shares] are given, but a split by tensors divides every layer evenly; omit them.")
        with Keep() as keep:
            handles = handle_array(devices, "vkf_device", keep)
            if split in makers:
                self._adopt(make(makers[split], handles, len(devices), lanes))
                return
            numbers = None if shares is None else (ctypes.c_double * max(len(shares), 1))(*shares)
            self._adopt(make("vkf_device_group_create", handles, len(devices), numbers, lanes))


def _hold_log(device: Device) -> None:
    _held_logs.append(device._log)


class Profiler:
    """Times of dispatches; see Device.profile()."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> "Profiler":
        call("vkf_device_start_profile", self._device)
        return self

    def take(self) -> list[DispatchTime]:
        """What ran since the start, or since the last call."""
        with plain("vkf_profile", make("vkf_device_take_profile", self._device)) as profile:
            return [DispatchTime(**read(get("vkf_profile_get", profile, i)))
                    for i in range(call("vkf_profile_count", profile))]

    def __exit__(self, *_: object) -> None:
        call("vkf_device_stop_profile", self._device)


class AdoptedDevice:
    """Handles of an application's own Vulkan device, for Device.adopt(): integers or ctypes' pointers,
    by the names that vkf_adopted_device of vkformer/c/device.h has. `queue_lock` and `queue_unlock`
    are functions without arguments."""

    def __init__(self, *, queue_lock: Callable[[], None] | None = None,
                 queue_unlock: Callable[[], None] | None = None, get_instance_proc_addr: int = 0,
                 enabled_extensions: list[str] | None = None, **handles: Any) -> None:
        known = [f["name"] for f in _c.structs["vkf_adopted_device"]["fields"]]
        for name in handles:
            if name not in known:
                raise unknown_option("AdoptedDevice()", name, known)
        self._keep = Keep()
        self.struct = _c.sized("vkf_adopted_device")
        if enabled_extensions is not None:
            from ._calls import text_array
            array = text_array(enabled_extensions, "enabled_extensions")
            self._keep.append(array)
            self.struct.enabled_extensions, self.struct.enabled_extension_count = array, len(enabled_extensions)
        for name, value in handles.items():
            setattr(self.struct, name, value)
        self.struct.get_instance_proc_addr = _c.types["vkf_any_function"](get_instance_proc_addr)
        for name, function in (("queue_lock", queue_lock), ("queue_unlock", queue_unlock)):
            if function is not None:
                kind = _c.types[f"vkf_adopted_device_{name}"]
                setattr(self.struct, name, kind(lambda _, f=function: f()))

    @property
    def enabled_extensions(self) -> list[str]:
        """Device extensions; after a FeatureChain was made, those to enable."""
        found = self.struct.enabled_extensions
        return [to_text(found[i]) or "" for i in range(self.struct.enabled_extension_count)]


class FeatureChain(Handle):
    """What is worth enabling before an application makes its VkDevice. Writes features and extensions
    into `host`; keep the chain until the device was made and adopted."""

    _kind = "vkf_feature_chain"

    def __init__(self, host: AdoptedDevice, own: Any = None) -> None:
        self._host = host
        self._adopt(make("vkf_feature_chain_create", ctypes.byref(host.struct), own))

    @property
    def queue_family(self) -> int:
        """A queue family for a queue of vkformer's own."""
        return int(call("vkf_feature_chain_queue_family", self))

    @property
    def low_priority(self) -> str | None:
        """The extension with which that queue can be made of low priority."""
        return to_text(call("vkf_feature_chain_low_priority", self))


_default: Device | None = None
_default_guard = threading.Lock()


def default_device() -> Device:
    """The device that load() takes where none is given: the best one, made at the first call."""
    global _default
    with _default_guard:
        if _default is None or _default.closed:
            _default = Device()
        return _default
