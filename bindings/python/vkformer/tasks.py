"""What one does with a model: a line for each task."""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _c
from ._calls import (Handle, Keep, call, fill, get, make, plain, read, real, split_options, text_array, texts_of,
                     to_bytes, to_text)
from .attention import AttentionMaps
from .devices import Device, default_device
from .errors import CancelledError, UnsupportedError
from .media import Audio, AudioLike, Image, ImageLike, ImageProcessor, audio_of, handle_array, image_of
from .models import Caught, Model, ModelInfo, Progress, Source, _info, model_options, source_of
from .sessions import Session
from .streams import Async, Stream
from .tensors import Tensors
from .text import ChatTemplate, Grammar, Messages, Tokenizer


@dataclass(frozen=True)
class Label:
    """A class, with its probability or, of models without one, its score."""

    label: str
    score: float


@dataclass(frozen=True)
class Entity:
    """A part of a text that has a name; `begin` and `end` are code points of the text."""

    label: str
    text: str
    score: float
    begin: int
    end: int


@dataclass(frozen=True)
class Answer:
    """An answer; `begin` and `end` are code points of the context."""

    text: str
    score: float
    begin: int
    end: int


@dataclass(frozen=True)
class Filled:
    """A token that may fill a gap, and the text with it."""

    gap: int
    label: str
    token: int
    text: str
    score: float


@dataclass(frozen=True)
class Generated:
    """A generated text, the ids after the prompt, and its score."""

    text: str
    ids: list[int]
    score: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Ranked:
    """A document by its place in the list that was given."""

    index: int
    score: float


@dataclass(frozen=True)
class Word:
    """A word that was said, and when, in seconds."""

    text: str
    begin: float
    end: float


@dataclass(frozen=True)
class Transcript:
    """What was said, and its words if they were asked for."""

    text: str
    words: list[Word]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Detection:
    """An object in an image; `box` is left, top, right and bottom in pixels."""

    label: str
    score: float
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Masks:
    """Masks of one prompt, best first: bytes (masks, height, width) of which 1 is inside, and their scores."""

    masks: Any
    scores: list[float]


#: Gets (input, sequence, piece of text); False ends the text, an exception ends the call.
OnText = Callable[[int, int, str], Union[bool, None]]


def _findings(pointer: Any) -> list[list[dict[str, Any]]]:
    with plain("vkf_findings", pointer) as findings:
        return [[read(get("vkf_findings_get", findings, i, k)) for k in range(call("vkf_findings_count", findings, i))]
                for i in range(call("vkf_findings_inputs", findings))]


def _pick(kind: Any, row: Mapping[str, Any]) -> Any:
    return kind(**{name: row[name] for name in kind.__dataclass_fields__})


def _text_callback(on_text: OnText, caught: Caught) -> Any:
    if not callable(on_text):
        raise TypeError(f"[on_text] is a {type(on_text).__name__}, and a function is needed.")

    def forward(_: Any, given: int, sequence: int, piece: bytes) -> int:
        try:
            going = on_text(given, sequence, to_text(piece) or "")
            return _c.constants["VKF_END_TEXT" if going is False else "VKF_GO_ON"]
        except BaseException as failure:  # nothing may leave a callback
            caught.failure = failure
            return _c.constants["VKF_CANCEL_GENERATION"]

    return _c.types["vkf_on_text"](forward)


def _text_options(who: str, options: Mapping[str, Any], on_text: OnText | None, caught: Caught, keep: Keep) -> Any:
    parts = split_options(who, options, own="vkf_text_options", choice="vkf_choice_options")
    own = parts["own"]
    if isinstance(own.get("stop"), str):
        own["stop"] = [own["stop"]]
    if parts["choice"]:
        own["choice"] = fill("vkf_choice_options", parts["choice"], keep, who)
    if on_text is not None:
        own["on_text"] = _text_callback(on_text, caught)
    return fill("vkf_text_options", own, keep, who)


class Task(Handle):
    """A model that is loaded for one task: "embed", "classify", "answer", "fill-mask", "generate",
    "transcribe", "caption", "rerank", "detect", "depth", "segment" or "speak". load() loads these as they are needed.

    Options: batch, truncate, those of Model() and those of Session()."""

    _kind = "vkf_task"

    def __init__(self, files: Any, name: str, device: Device | None = None, *, progress: Progress | None = None,
                 **options: Any) -> None:
        parts = split_options("load()", options, task="vkf_task_options", model="vkf_model_options",
                              session="vkf_session_options")
        device = device or default_device()
        with Caught() as caught, Keep() as keep:
            own = parts["task"]
            own["model"] = model_options({**parts["model"], **own.pop("model", {})}, progress, caught, keep)
            own["session"] = fill("vkf_session_options", {**parts["session"], **own.pop("session", {})}, keep, "load()")
            made = ctypes.byref(fill("vkf_task_options", own, keep, "load()"))
            if isinstance(files, (str, os.PathLike)):
                self._adopt(make("vkf_task_load", device, files, name, made))
            else:
                self._adopt(make("vkf_task_load_from", device, source_of(files), name, made))

    @property
    def info(self) -> ModelInfo:
        """What the model's directory holds."""
        return _info(plain("vkf_description", make("vkf_task_describe", self)))

    @property
    def mask_token(self) -> str | None:
        """fill-mask: what a gap is written as, such as "[MASK]"."""
        return to_text(call("vkf_task_mask_token", self))

    @property
    def finds_entities(self) -> bool:
        """classify: whether the model labels tokens, for entities()."""
        return bool(call("vkf_task_finds_entities", self))

    @property
    def image_placeholder(self) -> str | None:
        """generate: what stands for an image in a prompt; None where the model reads none."""
        return to_text(call("vkf_task_picture_placeholder", self))

    def embed(self, texts: Sequence[str], **options: Any) -> Any:
        """A vector for each text (B,D). Options: pooling ("model", "mean", "first", "last"), unit_length,
        prompt, prompt_name, dimensions (the first values of each). values is "float", "int8" or "binary": eight signs a
        byte, as numpy.packbits packs them."""
        texts = texts_of(texts, "texts")
        with Keep() as keep:
            made = fill("vkf_embed_options", options, keep, "embed()")
            tensors = Tensors._of(make("vkf_task_embed", self, text_array(texts, "texts"), len(texts), ctypes.byref(made)))
        return tensors["embeddings"]

    def classify(self, texts: Sequence[Any], top: int = 0) -> list[list[Label]]:
        """The likeliest labels (0: all) of each text, or pair of texts that belong together."""
        if isinstance(texts, str):
            raise TypeError("[texts] is a str, and a list of texts is needed.")
        kind, rows = _c.types["vkf_text_pair"], []
        for i, text in enumerate(texts):
            text, pair = text if isinstance(text, tuple) else (text, None)
            rows.append(kind(to_bytes(text, f"texts[{i}]"), None if pair is None else to_bytes(pair, f"texts[{i}]")))
        array = (kind * max(len(rows), 1))(*rows)
        return self._labels(make("vkf_task_classify", self, array, len(rows), top))

    @staticmethod
    def _labels(pointer: Any) -> list[list[Label]]:
        return [[_pick(Label, row) for row in rows] for rows in _findings(pointer)]

    def classify_images(self, images: Sequence[ImageLike], top: int = 0) -> list[list[Label]]:
        """The likeliest labels (0: all) of each image."""
        with Keep() as keep:
            array = handle_array([image_of(i) for i in images], "vkf_picture", keep)
            return self._labels(make("vkf_task_classify_pictures", self, array, len(images), top))

    def zero_shot(self, texts: Sequence[str], labels: Sequence[str], **options: Any) -> list[list[Label]]:
        """Labels of one's own with their probabilities, by a model of natural language inference. Options:
        multi_label, hypothesis (with {} for the label)."""
        texts = texts_of(texts, "texts")
        with Keep() as keep:
            made = fill("vkf_zero_shot_options", {**options, "labels": labels}, keep, "zero_shot()")
            return self._labels(make("vkf_task_zero_shot", self, text_array(texts, "texts"), len(texts), ctypes.byref(made)))

    def zero_shot_images(self, images: Sequence[ImageLike], labels: Sequence[str], **options: Any) -> list[list[Label]]:
        """The same for images, by a model that compares them with texts (CLIP, SigLIP)."""
        with Keep() as keep:
            array = handle_array([image_of(i) for i in images], "vkf_picture", keep)
            made = fill("vkf_zero_shot_options", {**options, "labels": labels}, keep, "zero_shot_images()")
            return self._labels(make("vkf_task_zero_shot_pictures", self, array, len(images), ctypes.byref(made)))

    def rerank(self, query: str, documents: Sequence[str], **options: Any) -> list[Ranked]:
        """Documents by their score for the query, best first. Options: top, score ("model", "logit",
        "probability"), instruction."""
        documents = texts_of(documents, "documents")
        with Keep() as keep:
            made = fill("vkf_rerank_options", options, keep, "rerank()")
            found = _findings(make("vkf_task_rerank", self, query, text_array(documents, "documents"), len(documents),
                                   ctypes.byref(made)))
        return [_pick(Ranked, row) for row in found[0]] if found else []

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """The entities of each text, in text order."""
        texts = texts_of(texts, "texts")
        found = _findings(make("vkf_task_find_entities", self, text_array(texts, "texts"), len(texts)))
        return [[_pick(Entity, row) for row in rows] for rows in found]

    def zero_shot_entities(self, texts: Sequence[str], labels: Sequence[str], **options: Any) -> list[list[Entity]]:
        """The entities of each text with one of the labels, in text order, by a GLiNER. Options: threshold (their
        probability is above it; 0: 0.5), nested (some may lie inside others), multi_label (with several labels)."""
        texts = texts_of(texts, "texts")
        with Keep() as keep:
            made = fill("vkf_entity_options", {**options, "labels": labels}, keep, "zero_shot_entities()")
            found = _findings(make("vkf_task_zero_shot_entities", self, text_array(texts, "texts"), len(texts),
                                   ctypes.byref(made)))
        return [[_pick(Entity, row) for row in rows] for rows in found]

    def answer(self, questions: Sequence[tuple[str, str]], **options: Any) -> list[list[Answer]]:
        """The best answers to (question, context), best first. Options: top, max_answer_tokens, window,
        overlap, none_possible."""
        kind = _c.types["vkf_question"]
        rows = [kind(to_bytes(q, f"questions[{i}]"), to_bytes(c, f"contexts[{i}]")) for i, (q, c) in enumerate(questions)]
        array = (kind * max(len(rows), 1))(*rows)
        with Keep() as keep:
            made = fill("vkf_answer_options", options, keep, "answer()")
            found = _findings(make("vkf_task_answer", self, array, len(rows), ctypes.byref(made)))
        return [[_pick(Answer, row) for row in rows] for rows in found]

    def fill_mask(self, texts: Sequence[str], top: int = 0) -> list[list[Filled]]:
        """The likeliest tokens (0: 5) for each gap of each text, best first."""
        texts = texts_of(texts, "texts")
        found = _findings(make("vkf_task_fill", self, text_array(texts, "texts"), len(texts), top))
        return [[_pick(Filled, row) for row in rows] for rows in found]

    def generate(self, texts: Sequence[str], *, images: Sequence[Sequence[ImageLike]] | None = None,
                 on_text: OnText | None = None, **options: Any) -> list[list[Generated]]:
        """The sequences of each text, best first. `images` are those of each prompt, for a model that
        reads images. Options: max_new_tokens, min_new_tokens, beams, return_sequences, length_penalty,
        early_stopping, stop, bad_words, grammar, prefix, task. Also source_language, target_language, context, sinks
        and has_special_tokens. Of sampling there are sample, temperature, top_k, top_p, min_p, typical_p, seed,
        repetition_penalty and so on. `on_text` gets pieces of texts while they are written."""
        texts = texts_of(texts, "texts")
        with Caught() as caught, Keep() as keep:
            made = ctypes.byref(_text_options("generate()", options, on_text, caught, keep))
            if images is None:
                pointer = make("vkf_task_generate", self, text_array(texts, "texts"), len(texts), made)
            else:
                if len(images) != len(texts):
                    raise ValueError(f"[images] has {len(images)} lists, and there are {len(texts)} texts.")
                kind, rows = _c.types["vkf_prompt"], []
                for i, (text, shown) in enumerate(zip(texts, images)):
                    array = handle_array([image_of(image) for image in shown], "vkf_picture", keep)
                    rows.append(kind(to_bytes(text, f"texts[{i}]"), array, len(shown)))
                pointer = make("vkf_task_generate_with_pictures", self, (kind * max(len(rows), 1))(*rows), len(rows), made)
        return [[_pick(Generated, row) for row in rows] for rows in _findings(pointer)]

    def stream(self, text: str, *, images: Sequence[ImageLike] | None = None, **options: Any) -> Stream[str, Generated]:
        """The pieces of one generated text while it is written; options as generate() has them."""
        if not isinstance(text, str):
            raise TypeError(f"[text] is a {type(text).__name__}, and a text (str) is needed.")
        with Keep() as keep:  # wrong options are an error here, and not in the middle of a loop
            _text_options("stream()", options, None, Caught(), keep)

        def work(hand: Callable[[str], bool]) -> Generated:
            def on_text(_given: int, _sequence: int, piece: str) -> None:
                if not hand(piece):
                    raise CancelledError("The stream was closed.")

            return self.generate([text], images=None if images is None else [images], on_text=on_text, **options)[0][0]

        return Stream(work)

    def transcribe(self, audio: Sequence[AudioLike], **options: Any) -> list[Transcript]:
        """What was said. Options: language, task ("transcribe", "translate"), words, beams, max_new_tokens."""
        with Keep() as keep:
            array = handle_array([audio_of(a) for a in audio], "vkf_sound", keep)
            made = fill("vkf_transcribe_options", options, keep, "transcribe()")
            found = _findings(make("vkf_task_transcribe", self, array, len(audio), ctypes.byref(made)))
        return [Transcript(rows[0]["text"] or "", [Word(row["text"], row["begin_seconds"], row["end_seconds"])
                                                   for row in rows[1:]]) for rows in found]

    def caption(self, images: Sequence[ImageLike], **options: Any) -> list[str]:
        """A text for each image; of generate()'s options those of the search."""
        with Caught() as caught, Keep() as keep:
            array = handle_array([image_of(i) for i in images], "vkf_picture", keep)
            made = _text_options("caption()", options, None, caught, keep)
            found = _findings(make("vkf_task_caption", self, array, len(images), ctypes.byref(made)))
        return [rows[0]["text"] or "" for rows in found]

    def detect(self, images: Sequence[ImageLike], threshold: float = 0.5, top: int = 0) -> list[list[Detection]]:
        """Objects whose probability exceeds `threshold`, the best `top` (0: all) of each image, best first."""
        with Keep() as keep:
            array = handle_array([image_of(i) for i in images], "vkf_picture", keep)
            found = _findings(make("vkf_task_detect", self, array, len(images), real(threshold, "threshold"), top))
        return [[_pick(Detection, row) for row in rows] for rows in found]

    def depth(self, image: ImageLike) -> Any:
        """How far or near each pixel is (height, width): of a relative model the larger, the nearer."""
        return Tensors._of(make("vkf_task_depth", self, image_of(image)))["depth"]

    def segment(self, image: ImageLike, prompts: Sequence[Mapping[str, Any]], top: int = 0) -> list[Masks]:
        """The masks of each prompt, the best `top` (0: all). A prompt is a dict. Its "points" are (x, y) in pixels, "outside"
        are points of what is not wanted, and "box" is (left, top, right, bottom). One of these is enough."""
        with Keep() as keep:
            array = _mask_prompts(prompts, keep)
            found = Tensors._of(make("vkf_task_segment", self, image_of(image), array, len(prompts), top))
        masks, scores = found["masks"], found.floats("scores")
        return [Masks(masks[i], [float(score) for score in scores[i]]) for i in range(len(prompts))]

    def speak(self, text: str, **options: Any) -> Audio:
        """The text spoken. Options: speaking_rate, noise, duration_noise, speaker, seed, phonemes."""
        with Keep() as keep:
            made = fill("vkf_speak_options", options, keep, "speak()")
            return Audio._of(make("vkf_task_speak", self, text, ctypes.byref(made)))


def _mask_prompts(prompts: Sequence[Mapping[str, Any]], keep: Keep) -> Any:
    """`const vkf_mask_prompt*` of dicts."""
    array = (_c.types["vkf_mask_prompt"] * max(len(prompts), 1))()
    keep.append(array)
    for made, prompt in zip(array, prompts):
        unknown = set(prompt) - {"points", "outside", "box"}
        if unknown:
            raise ValueError(f'[prompts] has "{unknown.pop()}"; use "points", "outside" and "box".')
        places = [(x, y, 0) for x, y in prompt.get("points", ())] + [(x, y, 1) for x, y in prompt.get("outside", ())]
        points = (_c.types["vkf_prompt_point"] * max(len(places), 1))()
        for point, (x, y, outside) in zip(points, places):
            point.x, point.y, point.outside = real(x, "points"), real(y, "points"), outside
        keep.append(points)
        made.points, made.point_count = points, len(places)
        if prompt.get("box") is not None:
            corners = [real(corner, "box") for corner in prompt["box"]]
            if len(corners) != 4:
                raise ValueError(f"[box] has {len(corners)} numbers; give left, top, right and bottom.")
            box = (ctypes.c_double * 4)(*corners)
            keep.append(box)
            made.box = box
    return array


class Chat:
    """A conversation with a model that has a chat template; see Pipeline.chat()."""

    def __init__(self, pipeline: "Pipeline", system: str | None, options: Mapping[str, Any]) -> None:
        self._pipeline, self._options = pipeline, dict(options)
        self._template = pipeline.chat_template
        #: What was said: dicts with "role" and "content".
        self.messages: list[dict[str, str]] = [] if system is None else [{"role": "system", "content": system}]

    def say(self, text: str, **options: Any) -> str:
        """The model's answer to a message. What could not be answered was not said."""
        return self.stream(text, **options).result.text

    def stream(self, text: str, **options: Any) -> Stream[str, Generated]:
        """The pieces of the answer while it is written. It becomes part of the conversation when the
        stream has ended."""
        messages = [*self.messages, {"role": "user", "content": text}]
        prompt = self._template.render(messages)
        task = self._pipeline.task("generate")
        options = {**self._options, **options, "has_special_tokens": 1}

        def work(hand: Callable[[str], bool]) -> Generated:
            def on_text(_given: int, _sequence: int, piece: str) -> None:
                if not hand(piece):
                    raise CancelledError("The stream was closed.")

            answer = task.generate([prompt], on_text=on_text, **options)[0][0]
            self.messages = [*messages, {"role": "assistant", "content": answer.text}]
            return answer

        return Stream(work)


class Pipeline:
    """A model directory and what can be done with it; made by load(). Each task is loaded when it is
    first used. A single text, image or sound gives a single result, and a list gives a list."""

    def __init__(self, files: Any, device: Device | None, progress: Progress | None, options: Mapping[str, Any]) -> None:
        self._files = files if isinstance(files, (str, os.PathLike)) else source_of(files)
        self._device, self._progress, self._options = device, progress, dict(options)
        self._made: dict[str, Any] = {}
        self._guard = threading.RLock()
        self._closed = False

    def _once(self, name: str, maker: Callable[[], Any]) -> Any:
        with self._guard:
            if self._closed:
                from .errors import ClosedError
                raise ClosedError("The pipeline is closed. Load the model again.")
            if name not in self._made:
                self._made[name] = maker()
            return self._made[name]

    @property
    def device(self) -> Device:
        """The device that the model runs on."""
        return self._once("device", lambda: self._device or default_device())

    def task(self, name: str) -> Task:
        """The model as it is loaded for a task."""
        return self._once(f"task {name}", lambda: Task(self._files, name, self.device, progress=self._progress,
                                                       **self._options))

    @property
    def model(self) -> Model:
        """The model for sessions and batches; it takes memory in addition to the tasks."""
        options = split_options("load()", self._options, model="vkf_model_options", session="vkf_session_options",
                                task="vkf_task_options")["model"]
        return self._once("model", lambda: Model(self._files, self.device, progress=self._progress, **options))

    @property
    def session(self) -> Session:
        """A session of `model`."""
        options = split_options("load()", self._options, session="vkf_session_options", model="vkf_model_options",
                                task="vkf_task_options")["session"]
        return self._once("session", lambda: Session(self.model, **options))

    @property
    def info(self) -> ModelInfo:
        """What the model's directory holds."""
        def maker() -> ModelInfo:
            from .models import describe
            return self.model.info if isinstance(self._files, Source) else describe(self._files)
        return self._once("info", maker)

    def _directory(self, what: str) -> Any:
        if isinstance(self._files, Source):
            raise UnsupportedError(f"[{what}] is read from a directory, and this model came from elsewhere. Make a "
                                   f"{what} yourself.")
        return self._files

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._once("tokenizer", lambda: Tokenizer(self._directory("Tokenizer")))

    @property
    def image_processor(self) -> ImageProcessor:
        """What makes the model's inputs of images."""
        return self._once("image_processor", lambda: ImageProcessor(self._directory("ImageProcessor")))

    @property
    def chat_template(self) -> ChatTemplate:
        """How the model wants a conversation."""
        return self._once("chat_template", lambda: ChatTemplate(self._files))

    @property
    def aio(self) -> Any:
        """The same methods as coroutines."""
        return Async(self)

    def close(self) -> None:
        """Frees all that was loaded; what is in use when its call has ended."""
        with self._guard:
            self._closed = True
            for name, made in self._made.items():
                if isinstance(made, Handle) and name != "device":
                    made.close()
            self._made.clear()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def embed(self, texts: Any, **options: Any) -> Any:
        """Vectors (B,D) of texts, or the vector (D) of one; options as Task.embed() has them."""
        found = self.task("embed").embed([texts] if isinstance(texts, str) else texts, **options)
        return found[0] if isinstance(texts, str) else found

    def classify(self, inputs: Any, top: int = 0, *, labels: Sequence[str] | None = None, **options: Any) -> Any:
        """The likeliest labels of texts, of pairs of texts or, where the model reads images, of images.
        With `labels` of one's own: zero-shot classification; options as Task.zero_shot() has them."""
        one = not isinstance(inputs, list)
        given, task = [inputs] if one else inputs, self.task("classify")
        images = self.info.source not in ("tokens",)
        if labels is not None:
            found = (task.zero_shot_images if images else task.zero_shot)(given, labels, **options)
        elif options:
            raise TypeError(f"classify() has no option [{next(iter(options))}] without labels.")
        else:
            found = (task.classify_images if images else task.classify)(given, top)
        return found[0] if one else found

    def entities(self, texts: Any, *, labels: Sequence[str] | None = None, **options: Any) -> Any:
        """The entities of texts: of the model's classes or, with a GLiNER, of `labels` of one's own; options
        as Task.zero_shot_entities() has them."""
        given, task = [texts] if isinstance(texts, str) else texts, self.task("classify")
        if labels is not None:
            found = task.zero_shot_entities(given, labels, **options)
        elif options:
            raise TypeError(f"entities() has no option [{next(iter(options))}] without labels.")
        else:
            found = task.entities(given)
        return found[0] if isinstance(texts, str) else found

    def rerank(self, query: str, documents: Sequence[str], **options: Any) -> list[Ranked]:
        """Documents by their score for the query; options as Task.rerank() has them."""
        return self.task("rerank").rerank(query, documents, **options)

    def answer(self, question: str, context: str, **options: Any) -> Answer | list[Answer]:
        """The best answer to a question in a context; with top=N a list. Options as Task.answer() has them."""
        found = self.task("answer").answer([(question, context)], **options)[0]
        return found if options.get("top") else found[0]

    def fill_mask(self, texts: Any, top: int = 0) -> Any:
        """The likeliest tokens for the gaps of texts."""
        found = self.task("fill-mask").fill_mask([texts] if isinstance(texts, str) else texts, top)
        return found[0] if isinstance(texts, str) else found

    def generate(self, texts: Any, **options: Any) -> Any:
        """The best text for each prompt; options as Task.generate() has them. `grammar` may be GBNF, a
        dict (a JSON schema) or a Grammar. `images` are those of a single prompt."""
        one = isinstance(texts, str)
        if one and options.get("images") is not None:
            options["images"] = [options["images"]]
        found = self.task("generate").generate([texts] if one else texts, **_with_grammar(options))
        picked = [rows[0] for rows in found]
        return picked[0] if one else picked

    def stream(self, text: str, **options: Any) -> Stream[str, Generated]:
        """The pieces of a text while it is written, for `for` and `async for`."""
        return self.task("generate").stream(text, **_with_grammar(options))

    def transcribe(self, audio: Any, **options: Any) -> Any:
        """What was said; options as Task.transcribe() has them. Audio is a path, a file's bytes, an Audio,
        or (samples, sampling rate)."""
        found = self.task("transcribe").transcribe(audio if isinstance(audio, list) else [audio], **options)
        return found if isinstance(audio, list) else found[0]

    def caption(self, images: Any, **options: Any) -> Any:
        """A text for each image."""
        found = self.task("caption").caption(images if isinstance(images, list) else [images], **options)
        return found if isinstance(images, list) else found[0]

    def detect(self, images: Any, threshold: float = 0.5, top: int = 0) -> Any:
        """The objects of images."""
        found = self.task("detect").detect(images if isinstance(images, list) else [images], threshold, top)
        return found if isinstance(images, list) else found[0]

    def depth(self, image: ImageLike) -> Any:
        """How far or near each pixel is (height, width): of a relative model the larger, the nearer."""
        return self.task("depth").depth(image)

    def segment(self, image: ImageLike, prompts: Any, top: int = 0) -> Any:
        """The masks of a prompt, or of each in a list; see Task.segment()."""
        one = isinstance(prompts, Mapping)
        found = self.task("segment").segment(image, [prompts] if one else prompts, top)
        return found[0] if one else found

    def speak(self, text: str, **options: Any) -> Audio:
        """The text spoken; options as Task.speak() has them."""
        return self.task("speak").speak(text, **options)

    def chat(self, system: str | None = None, **options: Any) -> Chat:
        """A conversation; options as Task.generate() has them."""
        return Chat(self, system, _with_grammar(options))

    def attention(self, given: Any, target: str | None = None, *, max_new_tokens: int = 0,
                  **options: Any) -> dict[str, AttentionMaps]:
        """Attention maps by their kind, with tokens as labels: of a text, an image, or inputs by name. An
        encoder-decoder goes on with `target`, or with what it generates; the rows of its decoder have the
        tokens that they gave. A decoder goes on by `max_new_tokens`. Options: attention_layer,
        attention_head, temperature, scores."""
        info, source, fed, written = self.info, None, None, None
        if isinstance(given, Mapping):
            inputs: dict[str, Any] = dict(given)
        elif isinstance(given, str) and info.source == "tokens":
            ids = self.tokenizer.encode(given).ids
            if info.kind == "decoder" and max_new_tokens:
                ids = self.session.generate([ids], beams=1, max_new_tokens=max_new_tokens)[0][0].ids
            inputs = {"input_ids": [ids]}
            source = [_token_name(self.tokenizer, i) for i in ids]
            if info.kind == "encoder-decoder":
                ids = self._target_ids(ids, target, max_new_tokens)
                inputs["decoder_input_ids"] = [ids[:-1]]
                names = [_token_name(self.tokenizer, i) for i in ids]
                fed, written = names[:-1], names[1:]
        else:
            pixels = self.image_processor([image_of(given)])
            inputs = dict(pixels)
        outputs = self.session.run(inputs, attentions=True, **options)
        found, names = {}, list(outputs)
        for kind, prefix, rows, columns in (("self", "attentions.", source, source),
                                            ("encoder", "encoder_attentions.", source, source),
                                            ("decoder", "decoder_attentions.", written, fed),
                                            ("cross", "cross_attentions.", written, source)):
            if not any(name.startswith(prefix) for name in names):
                continue
            maps = found[kind] = AttentionMaps(outputs, kind)
            shape = maps.info
            maps.set_labels(rows if rows and len(rows) == shape.rows else None,
                            columns if columns and len(columns) == shape.columns else None)
        return found

    def _target_ids(self, source: list[int], target: str | None, most: int) -> list[int]:
        if target is None:
            options: dict[str, Any] = {"max_new_tokens": most} if most else {}
            return self.session.generate([source], beams=1, **options)[0][0].ids
        start = self.session.generation_defaults["decoder_start"]
        return [start, *self.tokenizer.encode(target).ids]

    def __repr__(self) -> str:
        return f"<vkformer.Pipeline {self._files!r}>"


def _token_name(tokenizer: Tokenizer, token: int) -> str:
    from .errors import NotFoundError
    try:
        return tokenizer.id_to_token(token)
    except NotFoundError:
        return str(token)


def _with_grammar(options: dict[str, Any]) -> dict[str, Any]:
    grammar = options.get("grammar")
    if isinstance(grammar, str):
        options["grammar"] = Grammar(grammar)
    elif isinstance(grammar, Mapping):
        options["grammar"] = Grammar.json_schema(grammar)
    return options


def load(files: Any, device: Device | None = None, *, progress: Progress | None = None, **options: Any) -> Pipeline:
    """A model: from its directory, a dict of files' bytes by name, or a Source. Nothing is read before
    the first task.

    Options: weights, precision, batch, truncate, cache, prefix_reuse and so on, as Task() has them.

    >>> vkformer.load("models/g2p-en").generate("attention").text
    'AH0 T EH1 N SH AH0 N'
    """
    split_options("load()", options, task="vkf_task_options", model="vkf_model_options",
                  session="vkf_session_options")  # what is not an option is an error here
    if isinstance(files, (str, os.PathLike)):
        from .models import describe
        pipeline = Pipeline(files, device, progress, options)
        pipeline._made["info"] = describe(files)  # what is not a model is an error here
        return pipeline
    return Pipeline(files, device, progress, options)


__all__ = ["Answer", "Chat", "Detection", "Entity", "Filled", "Generated", "Image", "Label", "Messages", "Pipeline",
           "Ranked", "Task", "Transcript", "Word", "load"]
