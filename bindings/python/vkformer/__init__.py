"""Transformer models on any Vulkan device.

>>> import vkformer
>>> vkformer.load("models/g2p-en").generate("attention").text
'AH0 T EH1 N SH AH0 N'

load() gives a Pipeline with a method for each task. Beneath it are Device, Model, Session, Tokenizer
and the others. They have the shape of the C interface, whose headers in vkformer/c/ say what every option means.
`vkformer._c` calls every C function by its name.

Arrays go in as numpy arrays, buffers, DLPack or lists, and come out as numpy arrays that show the
library's memory. Objects are safe to use from several threads, and can be closed in any order.
Failures are exceptions: VkformerError and its kinds."""
from ._calls import to_text as _to_text
from . import _c
from .attention import (AttentionMaps, Head, MapsInfo, MultiHeadAttention, attention_page, heat_map_png,
                        measure_heads, overlay_png)
from .devices import (AdoptedDevice, Device, DeviceGroup, DeviceInfo, DispatchTime, FeatureChain, Profiler, Roofline, TunedChoice,
                      default_device, devices)
from .errors import (BusyError, CancelledError, ClosedError, DeviceLostError, DriverError, InternalError,
                     InvalidArgumentError, InvalidFileError, NotFoundError, OutOfMemoryError, QueueFullError,
                     UnsupportedError, VkformerError)
from .media import Audio, Image, ImageProcessor, LogMel, LogMelInfo
from .models import (Family, FileReader, Load, MemoryNeeds, Model, ModelInfo, PackReport, QuantizeReport, Source,
                     TensorInfo, describe, families, memory_needs, pack, quantize, write_gguf)
from .operators import (OperatorCosts, OperatorTensor, RecordedOperator, conformance, conformance_page,
                        operator_names, run_operator)
from .sessions import (Advance, Batch, BatchCounters, Counters, FrameEstimate, FrameProgress, FrameScheduler,
                       ImagePrompts, PassBuffer, Session, Update)
from .streams import Stream
from .tasks import (Answer, Chat, Detection, Entity, Filled, Generated, Label, Masks, Pipeline, Ranked, Task,
                    Transcript, Word, load)
from .tensors import Tensor, Tensors
from .text import ChatTemplate, Constraint, DecodeStream, Encoding, Grammar, StopStrings, Tokenizer


def library_version() -> str:
    """The version of the library, "0.1.0"."""
    return _to_text(_c.function("vkf_version_text")()) or ""


def api_version() -> int:
    """The version of the library's C interface; _c.constants["VKF_API_VERSION"] is this package's."""
    return int(_c.function("vkf_api_version")())


__all__ = [name for name in globals() if not name.startswith("_") and name[0].isupper()] + [
    "api_version", "attention_page", "conformance", "conformance_page", "default_device", "describe", "devices",
    "families", "heat_map_png", "library_version", "load", "measure_heads", "memory_needs", "operator_names",
    "overlay_png", "pack", "quantize", "run_operator", "write_gguf"]
