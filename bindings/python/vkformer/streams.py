"""Texts that are read while they are written, in a loop or in asyncio."""
from __future__ import annotations

import asyncio
import atexit
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, TypeVar

from .errors import CancelledError

T = TypeVar("T")
R = TypeVar("R")
_END = object()


class _Shared:
    """What a stream and its thread share; the thread does not keep the stream alive."""

    def __init__(self, ahead: int) -> None:
        self.pieces: queue.Queue[Any] = queue.Queue(ahead)
        self.stop = threading.Event()
        self.result: Any = None
        self.failure: BaseException | None = None
        self.waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def run(self, work: Callable[[Callable[[Any], bool]], Any]) -> None:
        try:
            self.result = work(self.put)
        except BaseException as failure:
            self.failure = failure
        self.put(_END)
        _running.pop(self, None)

    def put(self, piece: Any) -> bool:
        """False: nobody wants more."""
        while not self.stop.is_set():
            try:
                self.pieces.put(piece, timeout=0.1)
            except queue.Full:
                continue
            for loop, event in list(self.waiters):
                try:
                    loop.call_soon_threadsafe(event.set)
                except RuntimeError:  # the loop has ended
                    pass
            return True
        return False


# A callback must not come back into an interpreter that ends, so streams that still run are ended before.
_running: dict[_Shared, threading.Thread] = {}


@atexit.register
def _end_all() -> None:
    for shared, thread in list(_running.items()):
        shared.stop.set()
        thread.join()


class Stream(Generic[T, R]):
    """Pieces of a result while it is made on another thread. Iterate over it, in a `for` or an
    `async for`; close() cancels what still runs, as leaving a `with` does. `result` is the whole.

    The thread that writes runs ahead of a slow reader by `ahead` pieces at most."""

    def __init__(self, work: Callable[[Callable[[T], bool]], R], ahead: int = 64) -> None:
        """`work` gets a function to hand pieces to, which is False once it should stop."""
        self._shared = _Shared(ahead)
        self._ended = False
        self._thread = threading.Thread(target=self._shared.run, args=(work,), name="vkformer stream", daemon=True)
        _running[self._shared] = self._thread
        self._thread.start()

    def _take(self, piece: Any) -> T:
        if piece is _END:
            self._ended = True
            self._thread.join()
            if self._shared.failure is not None and not (self._shared.stop.is_set() and isinstance(self._shared.failure, CancelledError)):
                raise self._shared.failure
            raise StopIteration
        return piece

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._ended or self._shared.stop.is_set():
            raise StopIteration
        return self._take(self._shared.pieces.get())

    async def __aiter__(self) -> AsyncIterator[T]:
        event = asyncio.Event()
        waiter = (asyncio.get_running_loop(), event)
        self._shared.waiters.append(waiter)
        try:
            while not self._ended and not self._shared.stop.is_set():
                event.clear()
                try:
                    piece = self._shared.pieces.get_nowait()
                except queue.Empty:
                    await event.wait()
                    continue
                try:
                    piece = self._take(piece)
                except StopIteration:
                    return
                yield piece
        finally:
            self._shared.waiters.remove(waiter)
            if not self._ended:  # the task was cancelled, or the loop was left
                self._shared.stop.set()

    @property
    def result(self) -> R:
        """The whole result; reads what is left of the stream first. CancelledError after close()."""
        for _ in self:
            pass
        if self._shared.failure is not None:
            raise self._shared.failure
        if self._shared.stop.is_set() and self._shared.result is None:
            raise CancelledError("The stream was closed before its result was whole. Read it to its end.")
        return self._shared.result

    @property
    def closed(self) -> bool:
        """Whether the stream has ended or was closed."""
        return self._ended or self._shared.stop.is_set()

    def close(self) -> None:
        """Cancels what still runs, and waits until it has stopped: one token, or less."""
        self._shared.stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> "Stream[T, R]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        shared = getattr(self, "_shared", None)
        if shared is not None:
            shared.stop.set()


class Async:
    """The methods of an object as coroutines: `await model.aio.embed(texts)`. They run on a thread, one
    at a time; a task that is cancelled does not wait for its call."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._of, name)
        if not callable(method):
            return method

        async def run(*given: Any, **options: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(None, lambda: method(*given, **options))

        run.__name__, run.__doc__ = name, method.__doc__
        return run
