"""Runs blocking functions in processes, which compute beside one another and can be killed.

A process runs one call at a time, and is used again. It ends when its worker does, however that ended.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from redial import _outcome
from redial._outcome import NO_OUTCOME, Outcome
from redial._redact import Redactor
from redial.context import Context
from redial.tool import Tool
from redial.tool_errors import Stopped

TERMINATES = 1.0
"""Seconds between SIGTERM, which raises `Stopped` in the function, and SIGKILL."""
IDLE = 4
"""Processes that are kept although nothing runs in them."""


@dataclass
class _Job:
    """What a process gets: the function by its name, which its module must have."""

    function: Any
    parameters: dict[str, Any]
    context_parameter: str | None
    context: dict[str, Any]
    redactor: Redactor


class ProcessPool:
    """Starts functions in processes, from the loop of the protocol."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # A fork of a process with threads may hang for ever.
        self._spawn = multiprocessing.get_context("spawn")
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._closed = False

    def start(self, tool: Tool, arguments: dict[str, Any], context: Context) -> _InProcess:
        """Starts a function in an idle process, or in a new one."""
        return _InProcess(self, tool, arguments, context)

    async def close(self) -> None:
        """Ends all processes."""
        with self._lock:
            self._closed = True
            children = [*self._idle, *self._busy]
        for child in children:
            child.kill()

    def take(self) -> _Child:
        """A process that runs nothing. Blocks while a new one is started; called from a thread."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            if child is None:
                child = _Child(self._spawn)
            elif not child.process.is_alive():
                child.kill()
                continue
            with self._lock:
                self._busy.add(child)
                if self._closed:
                    child.kill()
            return child

    def give_back(self, child: _Child, usable: bool) -> None:
        """The function in it has ended."""
        with self._lock:
            self._busy.discard(child)
            keep = usable and not self._closed and len(self._idle) < IDLE
            if keep:
                self._idle.append(child)
        if not keep:
            child.kill()

    @property
    def redactor(self) -> Redactor:
        """Removes the secrets of the worker."""
        return self._redactor


class _Child:
    """A process, and the pipe to it."""

    def __init__(self, spawn: Any) -> None:
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(theirs, os.getpid()), daemon=True, name="redial-tool")
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        with suppress(OSError, ValueError):
            self.process.kill()
        self.pipe.close()


class _InProcess:
    """A function in a process. A thread waits for its result."""

    can_be_stopped = True

    def __init__(self, pool: ProcessPool, tool: Tool, arguments: dict[str, Any], context: Context) -> None:
        self._pool, self._context = pool, context
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Outcome] = self._loop.create_future()
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._wait = threading.Thread(target=self._work, args=(tool, arguments), daemon=True)
        try:
            self._wait.start()
        except RuntimeError as error:
            self.ended.set_result(Outcome.failed("unavailable", "the worker could not start the tool", effect_possible=False))
            _outcome.log.error("Failed to start a thread for a tool error=%s", error)

    def stop(self) -> None:
        self._context.cancelled.set()
        with self._lock:
            if self._child is not None:
                with suppress(OSError, ValueError):
                    self._child.process.terminate()
        self._loop.call_later(TERMINATES, self._kill)

    def _kill(self) -> None:
        with self._lock:
            if self._child is not None:
                with suppress(OSError, ValueError):
                    self._child.process.kill()

    def _work(self, tool: Tool, arguments: dict[str, Any]) -> None:
        outcome = NO_OUTCOME
        try:
            outcome = self._run(tool, arguments)
        finally:
            with suppress(RuntimeError):  # the worker has ended
                self._loop.call_soon_threadsafe(self._set, outcome)

    def _set(self, outcome: Outcome) -> None:
        if not self.ended.done():
            self.ended.set_result(outcome)

    def _run(self, tool: Tool, arguments: dict[str, Any]) -> Outcome:
        try:
            known = self._context.__dict__.items()
            plain = {name: value for name, value in known if name not in ("cancelled", "deadline", "logger")}
            text = pickle.dumps(_Job(tool.function, tool.bind(arguments), tool.context, plain, self._pool.redactor))
            child = self._pool.take()
        except BaseException as error:
            return _outcome.of_exception(error, self._pool.redactor, self._context)
        with self._lock:
            stopped = self._context.cancelled.is_set()
            self._child = None if stopped else child
        if stopped:
            self._pool.give_back(child, usable=True)
            return Outcome.failed("cancelled", "the tool was stopped before it started", effect_possible=False)
        return self._result(child, text)

    def _result(self, child: _Child, text: bytes) -> Outcome:
        answered = False
        try:
            child.pipe.send_bytes(text)
            answer: Outcome = pickle.loads(child.pipe.recv_bytes())
            answered = True
        except (EOFError, OSError):
            # It was killed, or it ended itself.
            answer = Outcome.failed("tool_failed", "the process of the tool ended before the tool did")
        finally:
            with self._lock:
                self._child = None
                # A process that has just ended may still count as alive.
                usable = answered and not self._context.cancelled.is_set() and child.process.is_alive()
            self._pool.give_back(child, usable)
        return answer


def _serve(pipe: Connection, parent: int) -> None:
    """The main function of a process: runs what comes, until its worker ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker decides when tools end
    signal.signal(signal.SIGTERM, _raise_stopped)
    _die_with(parent)
    with suppress(EOFError, OSError, Stopped):
        while True:
            job: _Job = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(pickle.dumps(_answer(job)))


def _answer(job: _Job) -> Outcome:
    context = Context(**job.context)
    object.__setattr__(context, "deadline", time.monotonic() + context.timeout)
    parameters = dict(job.parameters)
    if job.context_parameter is not None:
        parameters[job.context_parameter] = context
    try:
        return _outcome.of_result(job.function(**parameters), job.redactor)
    except BaseException as error:
        # Here, where the traceback is. Also `Stopped`: if the worker sent the signal, it ends this process now.
        return _outcome.of_exception(error, job.redactor, context)


def _raise_stopped(_signal: int, _frame: Any) -> None:
    raise Stopped


def _die_with(parent: int) -> None:
    """Ends this process when the worker has ended: nothing may run on after its lease."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
