"""Tokenizers, grammars and chat templates."""
from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _c
from ._calls import (Handle, Keep, address_of, bytes_from, call, fill, get, ids_of, make, plain, text_array,
                     text_from, texts_of, to_bytes, to_text)


@dataclass(frozen=True)
class Encoding:
    """One encoded text; all lists are as long as it has tokens. `begins` and `ends` are code points of
    the text."""

    ids: list[int]
    tokens: list[str]
    begins: list[int]
    ends: list[int]
    type_ids: list[int]
    attention_mask: list[int]

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer(Handle):
    """Texts to token ids and back, from a tokenizer.json or a directory that has one. It never changes."""

    _kind = "vkf_tokenizer"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._adopt(make("vkf_tokenizer_load", path))

    @classmethod
    def parse(cls, content: bytes | str, name: str = "tokenizer.json") -> "Tokenizer":
        """From the content of a tokenizer.json."""
        if isinstance(content, str):
            content = content.encode()
        with Keep() as keep:
            view = memoryview(content).cast("B") if len(content) else memoryview(b"")
            return cls._of(make("vkf_tokenizer_parse", address_of(view, keep) or None, len(content), name))

    def encode(self, text: str, pair: str | None = None, **options: Any) -> Encoding:
        """Tokens of a text, or of two that belong together. Options: no_special_tokens, truncation and
        padding ("off", "to_length", "from_file", "to_longest"), max_length, truncation_strategy,
        padded_length, multiple_of, pad_id, pad_type_id, truncate_left, pad_left."""
        if pair is None:
            return self.encode_batch([text], **options)[0]
        with Keep() as keep:
            made = fill("vkf_encode_options", options, keep, "encode()")
            return self._read(make("vkf_tokenizer_encode_pair", self, text, pair, ctypes.byref(made)))[0]

    def encode_batch(self, texts: Sequence[str], **options: Any) -> list[Encoding]:
        """Tokens of several texts; options as encode() has them."""
        texts = texts_of(texts, "texts")
        with Keep() as keep:
            made = fill("vkf_encode_options", options, keep, "encode_batch()")
            return self._read(make("vkf_tokenizer_encode", self, text_array(texts, "texts"), len(texts),
                                   ctypes.byref(made)))

    @staticmethod
    def _read(pointer: Any) -> list[Encoding]:
        with plain("vkf_encodings", pointer) as encodings:
            found = []
            for i in range(call("vkf_encodings_count", encodings)):
                row = get("vkf_encodings_get", encodings, i)
                n = row.count
                found.append(Encoding(row.ids[:n], [to_text(row.tokens[k]) or "" for k in range(n)], row.begins[:n],
                                      row.ends[:n], row.type_ids[:n], row.attention_mask[:n]) if n
                             else Encoding([], [], [], [], [], []))
            return found

    def decode(self, ids: Iterable[int], *, special_tokens: bool = False) -> str:
        """The text of ids."""
        with Keep() as keep:
            return text_from("vkf_tokenizer_decode", self, ids_of(ids, "ids", keep), _decode_flags(special_tokens))

    def decode_stream(self, *, special_tokens: bool = False) -> "DecodeStream":
        """Decoding while ids still arrive."""
        return DecodeStream._of(make("vkf_decode_stream_create", self, _decode_flags(special_tokens)))

    @property
    def vocab_size(self) -> int:
        """Distinct tokens, added ones included."""
        return int(call("vkf_tokenizer_vocab_size", self))

    def token_to_id(self, token: str) -> int:
        """NotFoundError if there is no such token."""
        found = ctypes.c_int64()
        call("vkf_tokenizer_token_to_id", self, token, ctypes.byref(found))
        return found.value

    def id_to_token(self, token: int) -> str:
        """NotFoundError if there is no such id."""
        return text_from("vkf_tokenizer_id_to_token", self, token)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to a decoded text after others: not always whole characters."""
        return bytes_from("vkf_tokenizer_token_bytes", self, token)


def _decode_flags(special_tokens: bool) -> int:
    return _c.constants["VKF_DECODE_SPECIAL_TOKENS"] if special_tokens else 0


class DecodeStream(Handle):
    """Decoding while ids still arrive; see Tokenizer.decode_stream()."""

    _kind = "vkf_decode_stream"

    def push(self, token: int) -> str:
        """The text that is certain with this id; often empty."""
        return text_from("vkf_decode_stream_push", self, token)

    def finish(self) -> str:
        """The rest of the text. The stream is then ready for another one."""
        return text_from("vkf_decode_stream_finish", self)

    def decode(self, ids: Iterable[int]) -> Iterator[str]:
        """The pieces of a text while `ids` gives its tokens."""
        for token in ids:
            piece = self.push(token)
            if piece:
                yield piece
        rest = self.finish()
        if rest:
            yield rest


class StopStrings(Handle):
    """Ends a text where the first of several strings is complete, while it still arrives in pieces."""

    _kind = "vkf_stop_strings"

    def __init__(self, stops: Sequence[str]) -> None:
        stops = texts_of(stops, "stops")
        self._adopt(make("vkf_stop_strings_create", text_array(stops, "stops"), len(stops)))

    def push(self, piece: str) -> str:
        """The text that is certain with this piece; nothing once a string was found."""
        return text_from("vkf_stop_strings_push", self, piece)

    def finish(self) -> str:
        """What was held back, where no string came."""
        return text_from("vkf_stop_strings_finish", self)

    @property
    def stopped(self) -> bool:
        """Whether one of the strings came."""
        return bool(call("vkf_stop_strings_stopped", self))


class Grammar(Handle):
    """What may be written: GBNF, whose whole text matches the rule `root`."""

    _kind = "vkf_grammar"

    def __init__(self, gbnf: str, root: str | None = None) -> None:
        self._adopt(make("vkf_grammar_from_gbnf", gbnf, root))

    @classmethod
    def json_schema(cls, schema: str | Mapping[str, Any]) -> "Grammar":
        """JSON that is valid for a schema, given as a text or as a dict."""
        if not isinstance(schema, str):
            schema = json.dumps(schema)
        return cls._of(make("vkf_grammar_from_json_schema", schema))

    def matches(self, text: str) -> bool:
        """Whether the grammar matches the whole text."""
        found = ctypes.c_int32()
        call("vkf_grammar_matches", self, text, ctypes.byref(found))
        return bool(found.value)

    def constraint(self, tokenizer: Tokenizer, width: int, ends: Iterable[int]) -> "Constraint":
        """The grammar with the tokens of a model, whose logits are `width` wide; `ends` are its end tokens."""
        with Keep() as keep:
            return Constraint._of(make("vkf_constraint_create", self, tokenizer, width, ids_of(ends, "ends", keep)))


class Constraint(Handle):
    """A grammar with the tokens of a model, for Session.generate(constraint=...)."""

    _kind = "vkf_constraint"


#: A conversation: dicts with "role" and "content", or pairs of them.
Messages = Sequence[Any]


class ChatTemplate(Handle):
    """How a model wants a conversation as a text: from its directory, a dict of files, or a Source."""

    _kind = "vkf_chat_template"

    def __init__(self, files: Any) -> None:
        if isinstance(files, (str, os.PathLike)):
            self._adopt(make("vkf_chat_template_load", files))
        else:
            from .models import source_of
            self._adopt(make("vkf_chat_template_load_from", source_of(files)))

    @classmethod
    def parse(cls, text: str, special_tokens: Mapping[str, str] | None = None) -> "ChatTemplate":
        """A template by its text; special tokens such as {"bos_token": "<s>"}."""
        tokens = None if special_tokens is None else json.dumps(dict(special_tokens))
        return cls._of(make("vkf_chat_template_parse", text, tokens))

    def render(self, messages: Messages) -> str:
        """The conversation as a text that ends where the model is to answer. Special tokens are part of it."""
        rows = []
        for i, message in enumerate(messages):
            role, content = (message["role"], message["content"]) if isinstance(message, Mapping) else message
            rows.append(_c.types["vkf_message"](to_bytes(role, f"messages[{i}] role"),
                                                to_bytes(content, f"messages[{i}] content")))
        array = (_c.types["vkf_message"] * max(len(rows), 1))(*rows)
        return text_from("vkf_chat_template_render", self, array, len(rows))
