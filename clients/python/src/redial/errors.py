"""What goes wrong for a client. Every error here is a `RedialError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redial.tool_errors import NOT_SENT, Violation
from redial.views import CallView, TaskView


class RedialError(Exception):
    """An error of this client."""


class ConnectionFailed(RedialError):
    """No gateway could be reached in time. What was submitted may have arrived; submit it again under the same key."""


class Timeout(RedialError, TimeoutError):
    """What was waited for has not happened in time. The call or the task goes on; wait again."""


class ApiError(RedialError):
    """The gateway refused a request: a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        """The HTTP status."""
        self.code = str(problem.get("code") or "unknown")
        """The stable name of the error; `docs/errors` has a page for each."""
        self.message = str(problem.get("detail") or problem.get("message") or f"the gateway answered HTTP {status}")
        """What is wrong, where, and what is allowed."""
        self.violations = violations(problem.get("errors") or problem.get("details"))
        """The broken rules."""
        self.request_id = problem.get("request_id")
        """The id of the request, as it is in the gateway's log."""
        self.problem = dict(problem)
        """The whole document."""
        super().__init__(f"{self.message} [{self.code}]")


class InvalidRequest(ApiError):
    """The request is wrong, and would be refused again."""


class CallRefused(InvalidRequest):
    """There is no such tool, or the arguments break its schema. The call never ran; one that was submitted is on record as
    refused, and a redrive with other arguments is not."""

    @property
    def call(self) -> str | None:
        """The id of the refused call, if it is on record."""
        call = self.problem.get("call")
        return None if call is None else str(call)

    @property
    def feedback(self) -> Any:
        """What a model gets as the result of the call, so that it can correct itself."""
        return self.problem.get("feedback")


class Unauthenticated(ApiError):
    """The token is missing, unknown, expired or revoked, or its user is gone."""


class Forbidden(ApiError):
    """The token does not have a role that may do this."""


class NotFound(ApiError):
    """There is no such thing in this tenant."""


class Conflict(ApiError):
    """The key was used for something else, or the state of the call does not allow this."""


class TooManyRequests(ApiError):
    """The token has reached a limit, also after several tries."""


class ServerError(ApiError):
    """The gateway or what is behind it failed, also after several tries."""


class CallError(RedialError):
    """A call has ended without a result."""

    def __init__(self, view: CallView) -> None:
        self.view = view
        """Everything that is known of the call."""
        super().__init__(_how_it_ended(f"call {view.id} of {view.tool}", view.state, view.message or view.error_class))

    @property
    def error_class(self) -> str | None:
        """The class of the error, such as `business_rule`."""
        return self.view.error_class

    @property
    def message(self) -> str | None:
        """The reason in words."""
        return self.view.message

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The rules that its arguments break."""
        return violations(self.view.json.get("details"))

    @property
    def feedback(self) -> Any:
        """What a model gets as the result of the call."""
        return self.view.json.get("feedback")


class CallFailed(CallError):
    """The call failed, and is not tried again."""


class CallUnknown(CallError):
    """It is not known whether the call had its effect, and its tool must not run twice: somebody has to look."""


class CallCancelled(CallError):
    """The call was cancelled."""


class TaskError(RedialError):
    """A task has ended without an answer."""

    def __init__(self, view: TaskView) -> None:
        self.view = view
        """Everything that is known of the task."""
        super().__init__(_how_it_ended(f"task {view.id}", view.state, view.message or view.code))

    @property
    def code(self) -> str | None:
        """Why it ended, such as `turns_exhausted`."""
        return self.view.code

    @property
    def answer(self) -> str | None:
        """The last answer of the model, if a limit forced one."""
        return self.view.answer


class TaskFailed(TaskError):
    """The task failed."""


class TaskCancelled(TaskError):
    """The task was cancelled."""


def _how_it_ended(what: str, state: str, why: str | None) -> str:
    ends = {"failed": "failed", "unknown": "has an unknown end", "cancelled": "was cancelled", "refused": "was refused"}
    end = f"{what} {ends.get(state, f'ended as {state}')}"
    return f"{end}: {why}" if why else end


def violations(details: Any) -> tuple[Violation, ...]:
    """The violations in a problem document, or in a view of a call."""
    found = []
    for one in details or ():
        path = str(one.get("pointer", one.get("path", "")))
        sent, hint = one.get("sent", NOT_SENT), one.get("hint")
        found.append(Violation(path, str(one.get("rule", "")), sent, str(one.get("allowed", "")), hint))
    return tuple(found)


def of_problem(status: int, problem: Mapping[str, Any]) -> ApiError:
    """The error of a problem document."""
    code = problem.get("code")
    # A redrive that is refused has no id.
    if problem.get("call") is not None or code in ("invalid_arguments", "unknown_tool"):
        return CallRefused(status, problem)
    if status == 409 or code == "idempotency_conflict":
        return Conflict(status, problem)
    kinds: dict[int, type[ApiError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 429: TooManyRequests}
    return kinds.get(status, InvalidRequest if status < 500 else ServerError)(status, problem)
