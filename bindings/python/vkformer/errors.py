"""Exceptions: one for each status of the C interface that is a failure."""
from __future__ import annotations

from . import _c


class VkformerError(Exception):
    """A call failed. The text is one sentence with the value, the limit and what to do."""

    #: Number of the status in the C interface; 0: the failure is this package's.
    status: int = 0


class InvalidArgumentError(VkformerError, ValueError):
    """A value is outside of what the call accepts."""


class NotFoundError(VkformerError, LookupError):
    """A file, device, tensor or name does not exist."""


class InvalidFileError(VkformerError, ValueError):
    """A file's content is malformed, truncated or hostile."""


class UnsupportedError(VkformerError, NotImplementedError):
    """Well-formed, but this build, model family or device cannot do it."""


class OutOfMemoryError(VkformerError, MemoryError):
    """Host or device memory, or a configured budget, is exhausted."""


class DeviceLostError(VkformerError):
    """The Vulkan device was lost. Make a new device."""


class DriverError(VkformerError):
    """A Vulkan call failed in another way."""


class CancelledError(VkformerError):
    """The caller asked to stop."""


class InternalError(VkformerError):
    """A bug in vkformer; please report it."""


class QueueFullError(VkformerError):
    """A queue holds its maximum. Try again after some of its work has ended."""


class ClosedError(VkformerError, ValueError):
    """The object was closed before."""


class BusyError(VkformerError, RuntimeError):
    """A callback used the object whose call it is part of."""


_CLASSES: dict[int, type[VkformerError]] = {
    _c.constants["VKF_INVALID_ARGUMENT"]: InvalidArgumentError,
    _c.constants["VKF_NOT_FOUND"]: NotFoundError,
    _c.constants["VKF_INVALID_FILE"]: InvalidFileError,
    _c.constants["VKF_UNSUPPORTED"]: UnsupportedError,
    _c.constants["VKF_OUT_OF_MEMORY"]: OutOfMemoryError,
    _c.constants["VKF_DEVICE_LOST"]: DeviceLostError,
    _c.constants["VKF_DRIVER"]: DriverError,
    _c.constants["VKF_CANCELLED"]: CancelledError,
    _c.constants["VKF_INTERNAL"]: InternalError,
    _c.constants["VKF_QUEUE_FULL"]: QueueFullError,
}


def from_status(status: int, message: str) -> VkformerError:
    """The exception of a status. A status that this package does not know is a VkformerError."""
    kind = _CLASSES.get(status, VkformerError)
    made = kind(message or status_name(status))
    made.status = status
    return made


def status_name(status: int) -> str:
    """The name that C gives a status, such as "VKF_NOT_FOUND"."""
    return _c.function("vkf_status_name")(status).decode()
