"""What a tool knows of the attempt that it runs in."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:
    _Adapter = logging.LoggerAdapter


@dataclass(frozen=True, eq=False)
class Context:
    """One attempt of one call. A function gets it in a parameter that has this type."""

    call: str
    """The id of the call."""
    tool: str
    """The name of the tool."""
    attempt: int
    """The number of the attempt, from 1."""
    idempotency_key: str
    """The same in every attempt of the call: pass it to services that recognise a repetition by it."""
    tenant: str
    """Whose call it is. A tool that keeps data keeps it apart by this, and not by an argument."""
    timeout: float
    """Seconds that this attempt may take."""
    conversation: str | None = None
    """The conversation that the call belongs to, if it belongs to one."""
    task: str | None = None
    """The task that the call belongs to, if it belongs to one."""
    traceparent: str | None = None
    """The W3C trace context of the submission, if it had one."""
    deadline: float = 0.0
    """When the attempt has to be over, by `time.monotonic()`."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the function is to stop: its call was cancelled, its deadline passed, its lease was lost, or the worker ends.
    A coroutine is cancelled besides; a blocking function in a thread has to look at this, or wait on it."""

    def remaining(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(0.0, self.deadline - time.monotonic())

    @cached_property
    def logger(self) -> _Adapter:
        """A logger that adds the call and the attempt to each message, as text and as fields."""
        fields = {"call": self.call, "attempt": self.attempt}
        return _WithFields(logging.getLogger(f"redial.tool.{self.tool}"), fields)


class _WithFields(_Adapter):
    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        fields = self.extra or {}
        kwargs["extra"] = {**fields, **(kwargs.get("extra") or {})}
        return f"{msg} " + " ".join(f"{name}={value}" for name, value in fields.items()), kwargs
