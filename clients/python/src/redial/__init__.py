"""Redial makes the tool calls of LLM agents durable. This package is its client and its worker for Python."""

from redial._link import Refused
from redial._version import VERSION as __version__
from redial.context import Context
from redial.fields import Field
from redial.tool import InvalidTool, Retry, RetryBudget
from redial.tool_errors import (
    NOT_SENT,
    BusinessRule,
    InvalidArgument,
    InvalidArguments,
    Misconfigured,
    NotAuthorized,
    RateLimited,
    Stopped,
    ToolError,
    ToolFailed,
    Unavailable,
    Violation,
)
from redial.worker import Worker

__all__ = [
    "NOT_SENT",
    "BusinessRule",
    "Context",
    "Field",
    "InvalidArgument",
    "InvalidArguments",
    "InvalidTool",
    "Misconfigured",
    "NotAuthorized",
    "RateLimited",
    "Refused",
    "Retry",
    "RetryBudget",
    "Stopped",
    "ToolError",
    "ToolFailed",
    "Unavailable",
    "Violation",
    "Worker",
    "__version__",
]
