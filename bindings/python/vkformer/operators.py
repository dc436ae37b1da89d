"""Single operators by name; docs/operators.md has their names, attributes and shapes."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _c
from ._calls import Handle, Keep, bytes_from, call, fill, get, make, plain, pointer_to, read, to_text
from .devices import Device, default_device
from .models import Caught
from .sessions import Inputs, ranges_array
from .tensors import Tensors, dtype_name, tensors_of


@dataclass(frozen=True)
class OperatorCosts:
    """What an operator took; see vkf_operator_costs of vkformer/c/operators.h."""

    dispatches: int
    scratch_bytes: int
    milliseconds: float
    flops: float
    bytes: float


def operator_names() -> list[str]:
    """The operators that can be run."""
    with plain("vkf_strings", make("vkf_operator_names")) as names:
        return [to_text(call("vkf_strings_get", names, i)) or "" for i in range(call("vkf_strings_count", names))]


def _operator_call(name: str, inputs: Inputs, attributes: Mapping[str, Any] | None, keep: Keep) -> Any:
    return fill("vkf_operator_call", {"name": name, "attributes_json": json.dumps(dict(attributes)) if attributes else None,
                                      "inputs": tensors_of(inputs)}, keep, "operator")


def run_operator(name: str, inputs: Inputs, attributes: Mapping[str, Any] | None = None, *,
                 device: Device | None = None, **options: Any) -> tuple[Tensors, OperatorCosts]:
    """Runs an operator. Options: repeats, poison, precision, weights."""
    costs, room = _c.sized("vkf_operator_costs"), pointer_to("vkf_tensors")
    with Keep() as keep:
        call("vkf_operator_run", device or default_device(),
             ctypes.byref(_operator_call(name, inputs, attributes, keep)),
             ctypes.byref(fill("vkf_operator_options", options, keep, "run_operator()")), ctypes.byref(room),
             ctypes.byref(costs))
    return Tensors._of(room), OperatorCosts(**read(costs))


@dataclass(frozen=True)
class OperatorTensor:
    """A tensor that a recorded operator reads or writes; `bytes` that its buffer must have at least."""

    name: str
    dtype: str
    shape: list[int]
    bytes: int


class RecordedOperator(Handle):
    """One operator for fixed shapes, appended to an application's own command buffers."""

    _kind = "vkf_recorded_operator"

    def __init__(self, name: str, inputs: Inputs, attributes: Mapping[str, Any] | None = None, *,
                 device: Device | None = None) -> None:
        with Keep() as keep:
            given = _operator_call(name, inputs, attributes, keep)
            self._adopt(make("vkf_recorded_operator_create", device or default_device(), ctypes.byref(given)))

    def _side(self, side: int) -> list[OperatorTensor]:
        found = []
        for i in range(call("vkf_recorded_operator_count", self, side)):
            row = read(get("vkf_recorded_operator_get", self, side, i))
            found.append(OperatorTensor(**dict(row, dtype=dtype_name(row["dtype"]))))
        return found

    @property
    def inputs(self) -> list[OperatorTensor]:
        """Inputs that can be bound."""
        return self._side(_c.constants["VKF_OPERATOR_INPUTS"])

    @property
    def outputs(self) -> list[OperatorTensor]:
        """Outputs, each of which must be bound."""
        return self._side(_c.constants["VKF_OPERATOR_OUTPUTS"])

    def bind(self, buffers: Mapping[str, tuple[int, int, int]]) -> None:
        """Says where tensors lie: (VkBuffer, offset, bytes) by name. Once, before recording."""
        with Keep() as keep:
            call("vkf_recorded_operator_bind", self, ranges_array(buffers, keep), len(buffers))

    def record(self, command_buffer: int) -> None:
        """Appends to a VkCommandBuffer that is being recorded, outside of a render pass."""
        call("vkf_recorded_operator_record", self, command_buffer)


def conformance(device: Device | None = None, *, progress: Any = None, **options: Any) -> tuple[dict[str, Any], int]:
    """Checks what vkformer computes on a device, which it wants for itself. Returns the report (its schema is in
    docs/conformance.md), and how many checks failed. Options: full, demote, repeats, filters, failure_folder.
    `progress` gets (name, done, all) after every check."""
    failed, caught = ctypes.c_size_t(), Caught()

    def forward(_: Any, name: bytes, done: int, every: int) -> None:
        try:
            progress(to_text(name), done, every)
        except BaseException as failure:
            caught.failure = failure

    with caught, Keep() as keep:
        if progress is not None:
            options["progress"] = _c.types["vkf_conformance_options_progress"](forward)
        made = fill("vkf_conformance_options", options, keep, "conformance()")
        room = pointer_to("vkf_bytes")
        call("vkf_conformance_run", device or default_device(), ctypes.byref(made), ctypes.byref(room), ctypes.byref(failed))
    report = plain("vkf_bytes", room)
    with report:
        return json.loads(to_text(call("vkf_bytes_text", report)) or ""), failed.value


def conformance_page(report: Mapping[str, Any]) -> str:
    """A report of conformance() as one HTML page that needs nothing else."""
    return bytes_from("vkf_conformance_page", json.dumps(report)).decode()
