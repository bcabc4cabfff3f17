"""The errors that a tool raises. The class of an error decides what happens next."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from redial._limits import MAX_DETAILS, MAX_ERROR_MESSAGE, shorten


class _NotSent(enum.Enum):
    NOT_SENT = "not sent"


NOT_SENT: Final = _NotSent.NOT_SENT
"""What was sent, if nothing was: `None` says that `null` was sent."""


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
    """What the rule allows, in words."""
    hint: str | None = None
    """A likely correction."""

    def to_json(self) -> dict[str, Any]:
        """As `FieldError` of the protocol."""
        found: dict[str, Any] = {"path": self.path, "rule": self.rule, "allowed": self.allowed}
        if self.sent is not NOT_SENT:
            found["sent"] = self.sent
        if self.hint is not None:
            found["hint"] = self.hint
        return found

    def __str__(self) -> str:
        sent = "nothing" if self.sent is NOT_SENT else repr(self.sent)
        return f"{self.path or 'the arguments'}: {sent} was sent; allowed: {self.allowed}"


class Stopped(BaseException):
    """Raised in a function that runs in a process when it is to stop: clean up, and let it pass. A function in a thread may raise
    it when it was asked to stop."""


class ToolError(Exception):
    """A tool's failure. Raise one of the subclasses: each is a class of errors with a route of its own.

    Callers and models read `message`. `diagnostics` are for operators only: put the text of a library's error there.
    `retry_after` is in seconds. `effect_possible=False` says that the tool certainly did nothing: an `unsafe` tool is
    tried again only then.
    """

    error_class: ClassVar[str] = "tool_failed"

    def __init__(
        self,
        message: str,
        *,
        diagnostics: str | None = None,
        retry_after: float | None = None,
        effect_possible: bool = True,
        violations: tuple[Violation, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.diagnostics = diagnostics
        self.retry_after = retry_after
        self.effect_possible = effect_possible
        self.violations = violations

    def to_json(self) -> dict[str, Any]:
        """As `Failure` of the protocol."""
        error = failure(self.error_class, self.message, self.effect_possible)
        if self.violations:
            error["details"] = [violation.to_json() for violation in self.violations[:MAX_DETAILS]]
        if self.diagnostics is not None:
            error["diagnostics"] = shorten(self.diagnostics, MAX_ERROR_MESSAGE)
        if self.retry_after is not None:
            error["retry_after_ms"] = max(0, int(self.retry_after * 1000))
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self.message, dict(self.__dict__)))


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

    def __init__(self, path: str, rule: str, sent: Any, allowed: str, hint: str | None = None) -> None:
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

    def __init__(self, message: str, *, retry_after: float | None = None, diagnostics: str | None = None) -> None:
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
