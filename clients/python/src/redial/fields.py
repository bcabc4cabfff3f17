"""What an annotation says about a parameter of a tool beside its type: `Annotated[int, Field("Seats", ge=1, le=9)]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """Description and limits of a parameter, for models and for the check of arguments. The names are pydantic's."""

    description: str | None = None
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    examples: Sequence[Any] | None = None


_NUMBERS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
}  # fmt: skip
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def apply(schema: dict[str, Any], metadata: Sequence[Any]) -> dict[str, Any]:
    """A schema with what the metadata of `Annotated` says: a text is a description; a `Field`, pydantic's `Field` and the
    types of `annotated_types` are limits. Anything else is left alone."""
    added: dict[str, Any] = {}
    for one in metadata:
        if isinstance(one, str):
            added["description"] = one
        else:
            added.update(_of(one, schema.get("type")))
            # pydantic's `Field` keeps limits in a list of its own.
            for more in getattr(one, "metadata", None) or ():
                added.update(_of(more, schema.get("type")))
    if not added:
        return schema
    return {"allOf": [schema], **added} if "$ref" in schema else {**schema, **added}


def _of(one: Any, kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, keyword in _NUMBERS.items():
        if (value := getattr(one, name, None)) is not None:
            found[keyword] = value
    if isinstance(kind, str) and kind in _LENGTHS:
        for name, prefix in (("min_length", "min"), ("max_length", "max")):
            if (value := getattr(one, name, None)) is not None:
                found[prefix + _LENGTHS[kind]] = value
    for name in ("description", "pattern", "format"):
        # `format` of a text is a method; only what was set counts.
        if isinstance(value := getattr(one, name, None), str):
            found[name] = value
    if examples := getattr(one, "examples", None):
        found["examples"] = list(examples)
    return found
