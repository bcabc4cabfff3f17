"""A function as a tool: its specification, and how its arguments become the function's parameters."""

from __future__ import annotations

import inspect
import json
import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from redial._limits import encode
from redial._types import Types
from redial.context import Context

Effect = Literal["read", "idempotent", "keyed", "unsafe"]
"""What a tool does to the world. It decides what happens when nobody knows how an attempt ended."""
Offload = Literal["thread", "process"]
"""Where a blocking function runs."""
Seconds = float | timedelta
"""A duration."""

_NAME = re.compile(r"[\w-]{1,64}")


class InvalidTool(ValueError):
    """A function cannot be a tool as it is declared. The text says what is wrong, and what is allowed."""


@dataclass(frozen=True)
class Retry:
    """When a failed attempt is repeated. Before attempt n + 1 the wait is random, at most `initial * factor ** (n - 1)` and
    at most `cap`."""

    initial: Seconds = 0.5
    factor: float = 2.0
    cap: Seconds = 60.0
    max_attempts: int = 6
    """Attempts in all; 1 means no retry."""
    deadline: Seconds = 3600.0
    """No attempt starts later than this after the submission."""

    def to_json(self) -> dict[str, Any]:
        """As `RetryPolicy` of the protocol. Raises TypeError or ValueError for a wrong field."""
        if not _is_number(self.factor):
            raise TypeError(f"retry.factor is {self.factor!r}; allowed: a number")
        if not isinstance(self.max_attempts, int) or isinstance(self.max_attempts, bool):
            raise TypeError(f"retry.max_attempts is {self.max_attempts!r}; allowed: a whole number, 1 or more")
        return {
            "initial_ms": milliseconds(self.initial, "retry.initial"),
            "cap_ms": milliseconds(self.cap, "retry.cap"),
            "deadline_ms": milliseconds(self.deadline, "retry.deadline"),
            "factor": float(self.factor),
            "max_attempts": self.max_attempts,
        }


@dataclass(frozen=True)
class RetryBudget:
    """How many retries of a tool run, over all of its calls."""

    burst: float = 100.0
    per_success: float = 0.1
    per_second: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """As `RetryBudget` of the protocol. Raises TypeError for a wrong field."""
        for name, value in self.__dict__.items():
            if not _is_number(value):
                raise TypeError(f"retry_budget.{name} is {value!r}; allowed: a number")
        return dict(self.__dict__)


@dataclass(frozen=True)
class Tool:
    """A tool of a worker."""

    spec: Mapping[str, Any]
    """`ToolSpec` of the protocol."""
    function: Callable[..., Any]
    bind: Callable[[dict[str, Any]], dict[str, Any]]
    """The keyword arguments of the function, without its context."""
    context: str | None
    """The parameter that takes the context."""
    offload: Offload | None
    """Where it runs; a coroutine runs in the loop of the worker."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.spec["name"])

    @property
    def pool(self) -> str:
        """The pool that its calls belong to."""
        return str(self.spec["pool"])


def milliseconds(duration: Seconds, name: str) -> int:
    """A duration as the protocol has it; `name` is what an error calls it. Raises TypeError or ValueError for what is none."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    allowed = "allowed: seconds as a number, or a timedelta"
    if not _is_number(seconds):
        raise TypeError(f"{name} is {duration!r}; {allowed}")
    if not math.isfinite(seconds):
        raise ValueError(f"{name} is {duration!r}; {allowed}")
    return int(seconds * 1000)


def retry_as_json(retry: Retry) -> dict[str, Any]:
    """As `RetryPolicy` of the protocol. Raises TypeError or ValueError for what is none."""
    if not isinstance(retry, Retry):
        raise TypeError(f"retry is {retry!r}; allowed: a redial.Retry, such as Retry(max_attempts=3)")
    return retry.to_json()


def budget_as_json(budget: RetryBudget) -> dict[str, Any]:
    """As `RetryBudget` of the protocol. Raises TypeError for what is none."""
    if not isinstance(budget, RetryBudget):
        raise TypeError(f"retry_budget is {budget!r}; allowed: a redial.RetryBudget, such as RetryBudget(burst=50)")
    return budget.to_json()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def tool_of(
    function: Callable[..., Any],
    *,
    name: str | None,
    description: str | None,
    parameters: Mapping[str, Any] | None,
    offload: Offload | None,
    settings: Callable[[], Mapping[str, Any]],
) -> Tool:
    """The tool that a function is. `settings` makes the other fields of the specification."""
    name = name or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(name) or len(name.encode()) > 192:
        raise InvalidTool(f"{name!r} is no name of a tool; allowed: letters, digits, _ and -, at most 64")
    try:
        about = _Signature(function)
        schema = about.schema() if parameters is None else dict(parameters)
        encode(schema)
        others = settings()
    except (TypeError, NameError, ValueError) as error:
        raise InvalidTool(f"tool {name}: {error}") from error
    is_coroutine = inspect.iscoroutinefunction(function)
    if is_coroutine and offload is not None:
        raise InvalidTool(f"tool {name}: offload is for blocking functions, and this one is a coroutine")
    if offload not in (None, "thread", "process"):
        raise InvalidTool(f"tool {name}: offload is {offload!r}; allowed: 'thread', 'process'")
    text = about.description if description is None else description
    spec = {"name": name, "description": text, "parameters": schema, **others}
    # Arguments that fit a schema that was given as it is are taken as they are.
    bind = about.bind if parameters is None else dict
    return Tool(spec, function, bind, about.context, None if is_coroutine else offload or "thread")


class _Signature:
    """What a function says about its parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.description, documented = _documented(inspect.getdoc(function) or "")
        hints = typing.get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        self.context: str | None = None
        self._open = False
        types, members, optional = Types(), {}, set()
        defaults: dict[str, Any] = {}
        for one in inspect.signature(function).parameters.values():
            if hints.get(one.name) is Context:
                self.context = one.name
                continue
            if one.kind is one.VAR_KEYWORD:
                self._open = True
                continue
            if one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY):
                raise TypeError(f"parameter {one.name!r} has no name for a caller; allowed: parameters with names")
            members[one.name] = hints.get(one.name, Any)
            if one.default is not one.empty:
                optional.add(one.name)
                defaults[one.name] = one.default
        self._schema, self._convert = types.object(members, optional)
        self._names = set(members)
        self._complete(types, documented, defaults)

    def _complete(self, types: Types, documented: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
        for name, schema in self._schema["properties"].items():
            if name in documented and "description" not in schema:
                self._schema["properties"][name] = schema = {**schema, "description": documented[name]}
            if name in defaults and (default := _as_json(defaults[name])) is not None:
                self._schema["properties"][name] = {**schema, "default": default[0]}
        if self._open:
            del self._schema["additionalProperties"]
        if not self._schema["properties"]:
            del self._schema["properties"]
        if types.definitions:
            self._schema["$defs"] = types.definitions

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self._schema

    def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments as the parameters of the function. Raises `InvalidArguments`."""
        others = {name: value for name, value in arguments.items() if name not in self._names} if self._open else {}
        return {**self._convert(arguments, ""), **others}


def _as_json(default: Any) -> tuple[Any] | None:
    """A default as JSON, if it has one."""
    try:
        return (json.loads(encode(default)),)
    except (TypeError, ValueError):
        return None


def _documented(doc: str) -> tuple[str, dict[str, str]]:
    """The description in a docstring, and those of the parameters in its section `Args:`."""
    head, *rest = re.split(r"^(?:Args|Arguments|Parameters):[ \t]*$", doc, maxsplit=1, flags=re.MULTILINE)
    found: dict[str, str] = {}
    name, indent = "", None
    for line in rest[0].strip("\n").splitlines() if rest else ():
        if not line.startswith((" ", "\t")):
            break
        match = re.match(r"(\s+)(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line)
        if match and indent in (None, match[1]):
            indent, name, found[match[2]] = match[1], match[2], match[3]
        elif name:
            found[name] = f"{found[name]} {line.strip()}"
    # What follows the arguments is for readers of the code.
    text = re.split(r"^(?:Returns|Raises|Yields):[ \t]*$", head, maxsplit=1, flags=re.MULTILINE)[0]
    return text.strip(), found
