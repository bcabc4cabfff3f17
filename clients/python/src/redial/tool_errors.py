"""The errors that a tool raises. The class of an error decides what happens next."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from redial._limits import MAX_DETAILS, MAX_ERROR_MESSAGE, shorten


class _NotSent(enum.Enum):
    NOT_SENT = "not sent"


NOT_SENT: Final = _NotSent.NOT_SENT
"""What was sent, if nothing was: `None` says that `null` was sent."""

LONGEST_PAUSE = 366 * 86_400
"""Seconds. A service that asks for a longer pause makes a mistake, and the protocol has no number for any pause."""


@dataclass(frozen=True)
class Violation:
    """One rule that arguments break."""

    path: str
    """A JSON pointer into the arguments, such as `/date`; empty for the whole."""
    rule: str
    """The rule, by its keyword in JSON Schema where it has one: `type`, `required`, `format`, `maximum`."""
    sent: Any
    """What was sent there; `NOT_SENT` if nothing was."""
    allowed: str
    """What the rule allows, in words. A number, or another value, becomes its text."""
    hint: str | None = None
    """A likely correction."""

    def __post_init__(self) -> None:
        for name in ("path", "rule", "allowed"):
            object.__setattr__(self, name, _text(getattr(self, name)))
        if self.hint is not None:
            object.__setattr__(self, "hint", _text(self.hint))

    def to_json(self) -> dict[str, Any]:
        """As `FieldError` of the protocol."""
        found: dict[str, Any] = {"path": self.path, "rule": self.rule, "allowed": self.allowed}
        if self.sent is not NOT_SENT:
            found["sent"] = self.sent
        if self.hint is not None:
            found["hint"] = self.hint
        return found

    def __str__(self) -> str:
        # No message has room for more.
        sent = "nothing" if self.sent is NOT_SENT else shorten(repr(self.sent), MAX_ERROR_MESSAGE)
        return f"{self.path or 'the arguments'}: {sent} was sent; allowed: {self.allowed}"


class Stopped(BaseException):
    """Raised in a function that runs in a process when it is to stop: clean up, and let it pass. A function in a thread may raise
    it when it was asked to stop."""


class ToolError(Exception):
    """A tool's failure. Raise one of the subclasses: each is a class of errors with a route of its own.

    Callers and models read `message`. `diagnostics` are for operators only: put the text of a library's error there.
    Both may be exceptions, too, whose texts are taken. `retry_after` is in seconds, or a timedelta. `effect_possible=False`
    says that the tool certainly did nothing: an `unsafe` tool is tried again only then. Raises TypeError or ValueError for a
    `retry_after` that is no pause, and for violations that are none.
    """

    error_class: ClassVar[str] = "tool_failed"

    def __init__(
        self,
        message: object,
        *,
        diagnostics: object = None,
        retry_after: float | timedelta | None = None,
        effect_possible: bool = True,
        violations: tuple[Violation, ...] = (),
    ) -> None:
        self.message = _text(message)
        super().__init__(self.message)
        self.diagnostics = None if diagnostics is None else _text(diagnostics)
        self.retry_after = None if retry_after is None else _seconds(retry_after)
        self.effect_possible = effect_possible
        self.violations = tuple(_violation(one) for one in violations)

    def to_json(self) -> dict[str, Any]:
        """As `Failure` of the protocol."""
        error = failure(self.error_class, self.message, self.effect_possible)
        if self.violations:
            error["details"] = [violation.to_json() for violation in self.violations[:MAX_DETAILS]]
        if self.diagnostics is not None:
            error["diagnostics"] = shorten(self.diagnostics, MAX_ERROR_MESSAGE)
        if self.retry_after is not None:
            error["retry_after_ms"] = int(min(self.retry_after, LONGEST_PAUSE) * 1000)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self.message, dict(self.__dict__)))


def _text(value: object) -> str:
    """A text, or that of another value; an exception without one is told by its type."""
    return value if isinstance(value, str) else str(value) or type(value).__name__


def _seconds(pause: float | timedelta) -> float:
    """A pause in seconds; one that is over is 0. Raises TypeError or ValueError for what is none."""
    seconds = pause.total_seconds() if isinstance(pause, timedelta) else pause
    allowed = "allowed: seconds as a finite number, or a timedelta"
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"retry_after is {pause!r}; {allowed}")
    if not -math.inf < seconds < math.inf:
        raise ValueError(f"retry_after is {pause!r}; {allowed}")
    return max(0, seconds)


def _violation(one: object) -> Violation:
    """Raises TypeError for what is none."""
    if not isinstance(one, Violation):
        raise TypeError(f"a violation is {one!r}; allowed: Violation(path, rule, sent, allowed), one for each broken rule")
    return one


def _restored(kind: type[ToolError], message: str, state: dict[str, Any]) -> ToolError:
    """A copy that came from another process."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class InvalidArguments(ToolError):
    """The arguments break rules of the tool. It goes back to the caller, or to the model, which corrects it. Name all broken
    rules at once, so that one correction is enough."""

    error_class = "invalid_arguments"

    def __init__(self, *violations: Violation) -> None:
        message = "; ".join(map(str, violations)) or "the arguments are invalid"
        super().__init__(message, effect_possible=False, violations=violations)


class InvalidArgument(InvalidArguments):
    """One argument breaks a rule of the tool: `InvalidArgument("/date", "minimum", sent, "today or later")`."""

    def __init__(self, path: str, rule: str, sent: Any, allowed: Any, hint: Any = None) -> None:
        super().__init__(Violation(path, rule, sent, allowed, hint))


class BusinessRule(ToolError):
    """The tool says no: sold out, wrong state, not found. It goes back to the caller or the model."""

    error_class = "business_rule"


class Unavailable(ToolError):
    """What the tool needs is down. The call is tried again, after `retry_after` seconds at least if that is given."""

    error_class = "unavailable"


class RateLimited(ToolError):
    """A quota is used up, and nothing was done. The call is tried again, after `retry_after` seconds at least."""

    error_class = "rate_limited"

    def __init__(self, message: object, *, retry_after: float | timedelta | None = None, diagnostics: object = None) -> None:
        super().__init__(message, retry_after=retry_after, diagnostics=diagnostics, effect_possible=False)


class NotAuthorized(ToolError):
    """The tool's own credentials were refused. Not tried again: an operator must act."""

    error_class = "auth"


class Misconfigured(ToolError):
    """The tool is set up wrongly. Not tried again: an operator must act."""

    error_class = "configuration"


class ToolFailed(ToolError):
    """The tool failed, and nothing says that another try would help. Not tried again."""

    error_class = "tool_failed"


def failure(error_class: str, message: str, effect_possible: bool = True) -> dict[str, Any]:
    """A `Failure` of the protocol."""
    error: dict[str, Any] = {"class": error_class, "message": shorten(message, MAX_ERROR_MESSAGE)}
    if not effect_possible:
        error["effect_possible"] = False
    return error
