"""Forward passes and generations of a model."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _c
from ._calls import (Handle, Keep, call, fill, get, ids_of, make, plain, read, split_options, text_array, to_bytes,
                     to_text)
from .media import ImageLike, ImageProcessor, handle_array, image_of
from .models import Caught, Model, session_sizes, source_of
from .tensors import ArrayLike, Tensors, dtype_name, tensors_of

Inputs = Union[Tensors, Mapping[str, ArrayLike]]
#: Gets (input, sequence, token id, log-probability); False ends the text, an exception ends the call.
OnToken = Callable[[int, int, int, float], Union[bool, None]]


@dataclass(frozen=True)
class Sequence_:
    """One text of a generation: ids with the prompt or start token, and its score."""

    ids: list[int]
    score: float
    log_probabilities: list[float]


@dataclass(frozen=True)
class Counters:
    """What a generation took; see vkf_generation_counters of vkformer/c/generation.h."""

    steps: int
    submits: int
    recordings: int
    cache_bytes: int
    step_workgroups: list[int]
    reused_tokens: int


@dataclass(frozen=True)
class Advance:
    """How far a pass or a generation in slices is."""

    #: "preparing" (nothing was submitted yet), "running", "submitted" or "done".
    progress: str
    #: 0 to 1, prepared or submitted so far, by estimate.
    fraction: float
    #: GPU time of the latest slice that is known to have run; 0: none yet.
    last_microseconds: float
    #: Of the slice that this call submitted, by estimate.
    expected_microseconds: float


@dataclass(frozen=True)
class FrameEstimate:
    """What slices of a run come to; see vkf_frame_estimate of vkformer/c/slices.h."""

    first_frames: int
    frames: int
    first_milliseconds: float
    milliseconds: float
    #: Part of that time, 0 to 1, that goes by measurements on this device.
    measured: float


@dataclass(frozen=True)
class PassBuffer:
    """A tensor of a pass that was started, and where it lies: a VkBuffer, and bytes."""

    name: str
    dtype: str
    shape: list[int]
    buffer: int
    offset: int
    bytes: int


def on_token_callback(on_token: OnToken, caught: Caught) -> Any:
    """A C callback of a function; what it raises ends the call."""
    if not callable(on_token):
        raise TypeError(f"[on_token] is a {type(on_token).__name__}, and a function is needed.")

    def forward(_: Any, given: int, sequence: int, token: int, log_probability: float) -> int:
        try:
            going = on_token(given, sequence, token, log_probability)
            return _c.constants["VKF_END_TEXT" if going is False else "VKF_GO_ON"]
        except BaseException as failure:  # nothing may leave a callback
            caught.failure = failure
            return _c.constants["VKF_CANCEL_GENERATION"]

    return _c.types["vkf_on_token"](forward)


def generate_options(options: Mapping[str, Any], on_token: OnToken | None, caught: Caught, keep: Keep,
                     who: str = "generate()") -> Any:
    """vkf_generate_options from keywords, those of vkf_choice_options among them."""
    options = dict(options)
    adapters = options.pop("adapters", None) or {}
    parts = split_options(who, options, own="vkf_generate_options", choice="vkf_choice_options")
    own = parts["own"]
    if parts["choice"]:
        own["choice"] = fill("vkf_choice_options", parts["choice"], keep, who)
    if on_token is not None:
        own["on_token"] = on_token_callback(on_token, caught)
    made = fill("vkf_generate_options", own, keep, who)
    if adapters:
        scales = adapters.values() if isinstance(adapters, Mapping) else [1.0] * len(adapters)
        made.adapters = text_array(list(adapters), f"{who}: adapters")
        made.adapter_scales = (ctypes.c_float * len(adapters))(*scales)
        made.adapter_count = len(adapters)
    return made


def ids_array(rows: Sequence[Iterable[int]], keep: Keep) -> Any:
    """`const vkf_ids*` of rows of token ids."""
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise TypeError(f"[rows] is a {type(rows).__name__}, and a list of lists of token ids is needed.")
    made = [ids_of(row, f"rows[{i}]", keep) for i, row in enumerate(rows)]
    array = (_c.types["vkf_ids"] * max(len(made), 1))(*made)
    keep.append(array)
    return array


def read_generation(pointer: Any) -> list[list[Sequence_]]:
    """The sequences of each input, best first."""
    with plain("vkf_generation", pointer) as generation:
        return [[Sequence_(**read(get("vkf_generation_get", generation, i, k)))
                 for k in range(call("vkf_generation_count", generation, i))]
                for i in range(call("vkf_generation_inputs", generation))]


def ranges_array(ranges: Mapping[str, tuple[int, int, int]], keep: Keep) -> Any:
    """`const vkf_buffer_range*` of (VkBuffer, offset, bytes) by the names of tensors."""
    rows = [_c.types["vkf_buffer_range"](name.encode(), *place) for name, place in ranges.items()]
    array = (_c.types["vkf_buffer_range"] * max(len(rows), 1))(*rows)
    keep.append(array)
    return array


class Session(Handle):
    """Runs a model. Options: recordings, steps_per_submit, prefix_reuse, round_lengths, cache ("f32", "f16", "q8").

    >>> with Session(model) as session:
    ...     outputs = session.run({"input_ids": [[1, 2, 3]]}, attentions=True)
    ...     outputs["last_hidden_state"].shape
    """

    _kind = "vkf_session"

    def __init__(self, model: Model, **options: Any) -> None:
        with Keep() as keep:
            made = fill("vkf_session_options", options, keep, "Session()")
            self._adopt(make("vkf_session_create", model, ctypes.byref(made)))

    def run(self, inputs: Inputs, **options: Any) -> Tensors:
        """One full pass: arrays by name in, arrays by name out. Options: attentions, scores, entropy,
        hidden_states (True), attention_layer, attention_head, temperature, clamp_positions."""
        with Keep() as keep:
            made = fill("vkf_run_options", options, keep, "run()")
            return Tensors._of(make("vkf_session_run", self, tensors_of(inputs), ctypes.byref(made)))

    @property
    def generation_defaults(self) -> dict[str, Any]:
        """The model's own settings, by the names of the options of generate()."""
        made = get("vkf_session_generation_defaults", self)
        found = read(made)
        found.pop("set", None)
        if made.choice:
            found.update({k: v for k, v in read(made.choice.contents).items() if k != "set"})
        return found

    def generate(self, rows: Sequence[Iterable[int]] | Inputs, *, on_token: OnToken | None = None,
                 **options: Any) -> list[list[Sequence_]]:
        """Generates from rows of token ids, or from tensors by name. Options: beams, max_new_tokens,
        min_new_tokens, return_sequences, length_penalty, early_stopping, eos, pad, decoder_start,
        decoder_prompt, forced_bos, forced_eos, suppress, begin_suppress. Also context, sinks, biases, bad_words,
        constraint, adapters (names of the model's request_adapters, or a dict of their scales). Of sampling there are
        sample, temperature, top_k, top_p, min_p, typical_p, seed, repetition_penalty and so on. `on_token` gets tokens
        while they come."""
        with Caught() as caught, Keep() as keep:
            made = generate_options(options, on_token, caught, keep)
            if isinstance(rows, Mapping):
                pointer = make("vkf_session_generate_from", self, tensors_of(rows), ctypes.byref(made))
            else:
                pointer = make("vkf_session_generate", self, ids_array(rows, keep), len(rows), ctypes.byref(made))
        return read_generation(pointer)

    def score(self, input: Iterable[int], continuation: Iterable[int]) -> Any:
        """Log-probabilities (T) that the model gives the tokens of a continuation after an input."""
        with Keep() as keep:
            rows = ids_array([input], keep), ids_array([continuation], keep)
            return Tensors._of(make("vkf_session_score", self, *rows))["log_probabilities"]

    @property
    def counters(self) -> Counters:
        """What the last generation took."""
        return Counters(**read(get("vkf_session_counters", self)))

    # Within the budget of a frame ------------------------------------------------------------------

    def warm_up(self, **sizes: Any) -> None:
        """Prepares runs of these sizes (batch, tokens, new_tokens, beams, inputs) and returns at
        once; their frames then begin without "preparing"."""
        with Keep() as keep:
            call("vkf_session_warm_up", self, ctypes.byref(session_sizes(sizes, keep)))

    @property
    def warmed_up(self) -> float:
        """How much of that is there, 0 to 1."""
        fraction = ctypes.c_double()
        call("vkf_session_warmed_up", self, ctypes.byref(fraction))
        return fraction.value

    def finish_warm_up(self) -> None:
        """Waits until all of it is there."""
        call("vkf_session_finish_warm_up", self)

    def estimate(self, microseconds: float, **sizes: Any) -> FrameEstimate:
        """What slices of that budget a run of these sizes comes to."""
        found = _c.sized("vkf_frame_estimate")
        with Keep() as keep:
            call("vkf_session_estimate", self, ctypes.byref(session_sizes(sizes, keep)), microseconds,
                 ctypes.byref(found))
        return FrameEstimate(**read(found))

    def start(self, inputs: Inputs, *, buffers: Mapping[str, tuple[int, int, int]] | None = None,
              images: Sequence[Mapping[str, int]] | None = None, processor: ImageProcessor | None = None,
              **options: Any) -> None:
        """Begins a pass, which advance() carries out. Some tensors may lie in buffers of the
        application: (VkBuffer, offset, bytes) by name. `images` are a vision model's input in images
        of the application, as vkf_image_input has them, with the `processor` of the model."""
        with Keep() as keep:
            made = ctypes.byref(fill("vkf_run_options", options, keep, "start()"))
            ranges = ranges_array(buffers or {}, keep)
            if images is not None:
                rows = (_c.types["vkf_image_input"] * max(len(images), 1))(
                    *(_c.types["vkf_image_input"](**image) for image in images))
                given = fill("vkf_image_inputs", {"processor": processor} if processor else {}, keep)
                given.images, given.count = rows, len(images)
                given.ranges, given.range_count = ranges, len(buffers or {})
                call("vkf_session_start_on_images", self, tensors_of(inputs), ctypes.byref(given), made)
            elif buffers is not None:
                call("vkf_session_start_on_buffers", self, tensors_of(inputs), ranges, len(buffers), made)
            else:
                call("vkf_session_start", self, tensors_of(inputs), made)

    def start_generation(self, inputs: Inputs, **options: Any) -> None:
        """Begins a generation, which advance() carries out; options as generate() has them."""
        with Keep() as keep:
            made = generate_options(options, None, Caught(), keep, "start_generation()")
            call("vkf_session_start_generation", self, tensors_of(inputs), ctypes.byref(made))

    def advance(self, microseconds: float, *, wait: Sequence[tuple[int, int]] = (),
                signal: Sequence[tuple[int, int]] = ()) -> Advance:
        """Submits the next slice of that GPU time and does not wait for it. Semaphores are pairs of a
        VkSemaphore and a value (0: a binary one)."""
        kind = _c.types["vkf_semaphore_use"]
        with Keep() as keep:
            made = fill("vkf_slice_options", {"microseconds": microseconds}, keep, "advance()")
            for name, uses in (("wait", wait), ("signal", signal)):
                array = (kind * max(len(uses), 1))(*(kind(*use) for use in uses))
                setattr(made, name, array)
                setattr(made, f"{name}_count", len(uses))
            advance = _c.sized("vkf_advance")
            call("vkf_session_advance", self, ctypes.byref(made), ctypes.byref(advance))
        return _advance(advance)

    def record(self, command_buffer: int, microseconds: float) -> Advance:
        """Appends the next slice to a VkCommandBuffer of the application."""
        advance = _c.sized("vkf_advance")
        call("vkf_session_record", self, command_buffer, microseconds, ctypes.byref(advance))
        return _advance(advance)

    def finish(self) -> Tensors:
        """Outputs of the pass that was started; waits for the GPU."""
        return Tensors._of(make("vkf_session_finish", self))

    def finish_generation(self) -> list[list[Sequence_]]:
        """Sequences of the generation that was started; waits for the GPU."""
        return read_generation(make("vkf_session_finish_generation", self))

    def drop_recorded(self) -> None:
        """The command buffer that record() appended to last was never submitted: its slice comes again."""
        call("vkf_session_drop_recorded", self)

    def cancel(self) -> None:
        """Gives up what was started."""
        call("vkf_session_cancel", self)

    def forget_buffers(self) -> None:
        """Drops recordings on buffers of the application, before it destroys such a buffer."""
        call("vkf_session_forget_buffers", self)

    def pass_buffers(self) -> list[PassBuffer]:
        """Where inputs and outputs of what was started lie."""
        found = []
        with plain("vkf_pass_buffers", make("vkf_session_pass_buffers", self)) as buffers:
            for i in range(call("vkf_pass_buffers_count", buffers)):
                row = read(get("vkf_pass_buffers_get", buffers, i))
                place = row.pop("range")
                found.append(PassBuffer(place["name"] or "", dtype_name(row["dtype"]), row["shape"], place["buffer"],
                                        place["offset"], place["bytes"]))
        return found


def _advance(advance: Any) -> Advance:
    names = {_c.constants[f"VKF_{name.upper()}"]: name for name in ("running", "submitted", "done", "preparing")}
    return Advance(names[advance.progress], advance.fraction, advance.last_microseconds,
                   advance.expected_microseconds)


@dataclass(frozen=True)
class FrameProgress:
    """What became of a job in one frame; see vkf_frame_progress of vkformer/c/frames.h."""

    job: int
    #: None where there is an error.
    advance: Advance | None
    error: str | None


class FrameScheduler(Handle):
    """Several sessions that share the GPU time of a frame.

    >>> frames = FrameScheduler()
    >>> frames.add(session, priority="high", deadline_ms=500)
    >>> while len(frames):
    ...     frames.advance(2000)
    """

    _kind = "vkf_frames"
    _PRIORITIES = {"high": "VKF_JOB_HIGH", "normal": "VKF_JOB_NORMAL", "background": "VKF_JOB_BACKGROUND"}

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}  # which the jobs need
        self._adopt(make("vkf_frames_create"))

    def add(self, session: Session, *, priority: str = "normal", deadline_ms: float = 0) -> int:
        """What the session has started, or starts next; gives the job's number."""
        if priority not in self._PRIORITIES:
            raise ValueError(f"[priority] is {priority!r}; there are {', '.join(self._PRIORITIES)}.")
        number = ctypes.c_uint64()
        with Keep() as keep:
            job = fill("vkf_frame_job", {"deadline_ms": deadline_ms}, keep)
            job.priority = _c.constants[self._PRIORITIES[priority]]
            call("vkf_frames_add", self, session, ctypes.byref(job), ctypes.byref(number))
        self._sessions[number.value] = session
        return number.value

    def remove(self, job: int) -> None:
        """The job is not carried on; what its session has started stays started."""
        call("vkf_frames_remove", self, job)
        self._sessions.pop(job, None)

    def __len__(self) -> int:
        return int(call("vkf_frames_count", self))

    def advance(self, microseconds: float) -> list[FrameProgress]:
        """Hands out the GPU time of one frame, in submits of the sessions."""
        return self._progress(make("vkf_frames_advance", self, microseconds))

    def record(self, command_buffer: int, microseconds: float) -> list[FrameProgress]:
        """The same into a VkCommandBuffer of the application."""
        return self._progress(make("vkf_frames_record", self, command_buffer, microseconds))

    def _progress(self, pointer: Any) -> list[FrameProgress]:
        found = []
        with plain("vkf_frame_updates", pointer) as updates:
            for i in range(call("vkf_frame_updates_count", updates)):
                row = get("vkf_frame_updates_get", updates, i)
                error = to_text(row.error) if row.error else None
                found.append(FrameProgress(row.job, None if error else _advance(row), error))
        for one in found:
            if one.error or (one.advance and one.advance.progress == "done"):
                self._sessions.pop(one.job, None)
        return found


@dataclass(frozen=True)
class Update:
    """What a step brought a request; see vkf_batch_update of vkformer/c/batch.h."""

    #: "runs", "finished", "cancelled" or "failed".
    state: str
    request: int
    tokens: list[int]
    score: float
    steps: int
    prompt_tokens: int
    reused_tokens: int
    new_tokens: int
    draft_tokens: int
    accepted_tokens: int
    error: str | None
    sequence: int


@dataclass(frozen=True)
class BatchCounters:
    """Of all requests so far; see vkf_batch_counters of vkformer/c/batch.h."""

    steps: int
    prompt_tokens: int
    reused_tokens: int
    new_tokens: int
    draft_tokens: int
    accepted_tokens: int
    draft_steps: int
    waiting: int
    running: int
    cache_bytes: int


class ImagePrompts(Handle):
    """Prompts with images as tensors, for a model that is loaded already; `files` are those of the model,
    as Model() takes them.

    >>> prompts = ImagePrompts(model, directory)
    >>> number = batch.submit(prompts.read("What is this?", [image]), max_new_tokens=8)
    """

    _kind = "vkf_image_prompts"

    def __init__(self, model: Model, files: Any) -> None:
        self._adopt(make("vkf_image_prompts_load", model, source_of(files)))

    @property
    def placeholder(self) -> str:
        """What stands for an image in a prompt, such as "<image>"; "" of a model that describes an image."""
        return to_text(call("vkf_image_prompts_placeholder", self)) or ""

    def read(self, text: str, images: Sequence[ImageLike] = ()) -> Tensors:
        """Tensors with "input_ids" (1,T) and those of the images. A text without placeholders has its images
        before it. For Batch.submit(), and for Session.generate(). Of a model that describes an image, the text
        is what the description begins with, for Batch.submit() alone; without one there are no "input_ids"."""
        with Keep() as keep:
            array = handle_array([image_of(image) for image in images], "vkf_picture", keep)
            prompt = _c.types["vkf_prompt"](to_bytes(text, "text"), array, len(images))
            return Tensors._of(make("vkf_image_prompts_read", self, ctypes.byref(prompt)))


class Batch(Handle):
    """Requests that join and leave a running batch. Options: rows, capacity, step_tokens, waiting,
    waiting_of_client, running_of_client, forget, draft_tokens, lookup, context, sinks, draft (a Model), source.

    >>> batch = Batch(model)
    >>> number = batch.submit([1, 2, 3], max_new_tokens=8)
    >>> while not batch.idle:
    ...     for update in batch.step():
    ...         print(update.request, update.tokens)
    """

    _kind = "vkf_batch"
    _STATES = {"VKF_REQUEST_RUNS": "runs", "VKF_REQUEST_FINISHED": "finished", "VKF_REQUEST_CANCELLED": "cancelled",
               "VKF_REQUEST_FAILED": "failed"}

    def __init__(self, model: Model, **options: Any) -> None:
        with Keep() as keep:
            made = fill("vkf_batch_options", options, keep, "Batch()")
            self._adopt(make("vkf_batch_create", model, ctypes.byref(made)))

    def submit(self, prompt: Iterable[int] | Inputs, *, client: str | None = None, **options: Any) -> int:
        """The request's number. QueueFullError: take steps, then submit it again. Options as
        Session.generate() has them. A prompt with images is what ImagePrompts.read() gives."""
        number = ctypes.c_uint64()
        with Keep() as keep:
            given: dict[str, Any] = {"client": client}
            if isinstance(prompt, (Mapping, Tensors)):
                given["inputs"] = tensors_of(prompt)
            else:
                given["prompt"] = prompt
            if options:
                given["options"] = generate_options(options, None, Caught(), keep, "submit()")
            made = fill("vkf_batch_request", given, keep, "submit()")
            call("vkf_batch_submit", self, ctypes.byref(made), ctypes.byref(number))
        return number.value

    def cancel(self, request: int) -> None:
        """Ends a request that waits or runs; the next step tells of it."""
        call("vkf_batch_cancel", self, request)

    def step(self) -> list[Update]:
        """Lets requests join, takes one step, and tells what came of it."""
        names = {_c.constants[name]: state for name, state in self._STATES.items()}
        with plain("vkf_updates", make("vkf_batch_step", self)) as updates:
            rows = [read(get("vkf_updates_get", updates, i)) for i in range(call("vkf_updates_count", updates))]
        return [Update(**dict(row, state=names[row["state"]])) for row in rows]

    @property
    def idle(self) -> bool:
        """Whether nobody waits, runs or has an update left."""
        return bool(call("vkf_batch_idle", self))

    @property
    def counters(self) -> BatchCounters:
        """Of all requests so far."""
        return BatchCounters(**read(get("vkf_batch_count", self)))


