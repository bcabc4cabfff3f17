"""What the gateway says of calls and tasks, with names and types for what most programs need; `json` has the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

CallState = Literal[
    "ready", "running", "retry_wait", "client_wait", "held", "succeeded", "failed", "unknown", "cancelled", "refused"
]
"""The state of a call. Newer gateways may know more."""
ENDED = frozenset({"succeeded", "failed", "unknown", "cancelled", "refused"})
"""The states that do not change any more, of calls and of tasks."""


def shown(view: object, *names: str) -> str:
    """A view for people: those of these attributes that say something."""
    values = {name: getattr(view, name) for name in names}
    said = ", ".join(f"{name}={value!r}" for name, value in values.items() if value not in (None, ""))
    return f"{type(view).__name__}({said})"


@dataclass(frozen=True, repr=False)
class CallView:
    """A call as it is on record."""

    json: Mapping[str, Any]
    """The whole view: `CallView` in the API's document."""

    def __repr__(self) -> str:
        return shown(self, "id", "tool", "state", "attempts", "error_class", "message")

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.json["call"])

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return str(self.json.get("tool", ""))

    @property
    def state(self) -> str:
        """Its state; see `CallState`."""
        return str(self.json["state"])

    @property
    def ended(self) -> bool:
        """True if the state does not change any more."""
        return self.state in ENDED

    @property
    def attempts(self) -> int:
        """How many attempts were started."""
        return int(self.json.get("attempts", 0))

    @property
    def output(self) -> Any:
        """The result; only in state `succeeded`."""
        return self.json.get("output")

    @property
    def error_class(self) -> str | None:
        """Why it failed, or why the last attempt did."""
        return self.json.get("class")

    @property
    def message(self) -> str | None:
        """The same in words."""
        return self.json.get("message")


@dataclass(frozen=True, repr=False)
class TaskView:
    """A task as it is on record."""

    json: Mapping[str, Any]
    """The whole view: `TaskView` in the API's document."""

    def __repr__(self) -> str:
        return shown(self, "id", "state", "code", "message")

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.json["task"])

    @property
    def conversation(self) -> str:
        """Its conversation."""
        return str(self.json.get("conversation", ""))

    @property
    def state(self) -> str:
        """`waiting`, `running`, `succeeded`, `failed` or `cancelled`."""
        return str(self.json["state"])

    @property
    def ended(self) -> bool:
        """True if the state does not change any more."""
        return self.state in ENDED

    @property
    def code(self) -> str | None:
        """Why it ended."""
        return self.json.get("code")

    @property
    def message(self) -> str | None:
        """The same in words."""
        return self.json.get("message")

    @property
    def answer(self) -> str | None:
        """The last answer of the model."""
        return self.json.get("answer")


@dataclass(frozen=True)
class Event:
    """One event of a call, a task or a tenant."""

    type: str
    """What happened; `end` is the last event of a call or a task."""
    data: Any
    """What is told of it."""
    id: str | None = None
    """Its durable id, by which a stream can be resumed; live text of a model has none."""
