"""A Python type as a JSON Schema, and a JSON value as a value of that type."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import types
import typing
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any, Literal

from redial import fields
from redial._limits import Convert, escaped
from redial.tool_errors import InvalidArgument, InvalidArguments, Violation

Shape = tuple[dict[str, Any], Convert]
"""The schema of a type, and what converts a value of it."""


class UnsupportedType(TypeError):
    """A parameter has a type that has no JSON Schema here."""


def _any(value: Any, path: str) -> Any:
    return value


def _refuse(path: str, rule: str, sent: Any, allowed: str) -> Any:
    raise InvalidArgument(path, rule, sent, allowed)


def _integer(value: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidArgument(path, "type", value, "an integer")


def _number(value: Any, path: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise InvalidArgument(path, "type", value, "a number")


def _exactly(kind: type, name: str) -> Convert:
    return lambda value, path: value if isinstance(value, kind) else _refuse(path, "type", value, name)


def _text_of(parse: Callable[[str], Any], name: str) -> Convert:
    def convert(value: Any, path: str) -> Any:
        try:
            if isinstance(value, str):
                # Before Python 3.11 no `Z` is read.
                return parse(value[:-1] + "+00:00" if name == "date-time" and value[-1:] in "Zz" else value)
        except ValueError:
            pass
        raise InvalidArgument(path, "format", value, f"a text in format {name}")

    return convert


_PLAIN: dict[Any, Shape] = {
    Any: ({}, _any),
    object: ({}, _any),
    None: ({"type": "null"}, _exactly(type(None), "null")),
    type(None): ({"type": "null"}, _exactly(type(None), "null")),
    bool: ({"type": "boolean"}, _exactly(bool, "true or false")),
    int: ({"type": "integer"}, _integer),
    float: ({"type": "number"}, _number),
    str: ({"type": "string"}, _exactly(str, "a text")),
    dict: ({"type": "object"}, _exactly(dict, "an object")),
    list: ({"type": "array"}, _exactly(list, "a list")),
    datetime.datetime: (
        {"type": "string", "format": "date-time"}, _text_of(datetime.datetime.fromisoformat, "date-time")),
    datetime.date: ({"type": "string", "format": "date"}, _text_of(datetime.date.fromisoformat, "date")),
    datetime.time: ({"type": "string", "format": "time"}, _text_of(datetime.time.fromisoformat, "time")),
    uuid.UUID: ({"type": "string", "format": "uuid"}, _text_of(uuid.UUID, "uuid")),
}  # fmt: skip

_LISTS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list, Sequence: list, Collection: list, Iterable: list, set: set, frozenset: frozenset, Set: frozenset,
}  # fmt: skip


class Types:
    """Builds the shapes of types. `definitions` are the schemas of the classes that were met."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self._classes: dict[Any, tuple[str, list[Convert]]] = {}

    def shape(self, kind: Any) -> Shape:
        """The shape of a type."""
        if (plain := _plain(kind)) is not None:
            return plain
        if (same := getattr(kind, "__supertype__", None) or getattr(kind, "__value__", None)) is not None:
            return self.shape(same)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Annotated:
            schema, convert = self.shape(arguments[0])
            return fields.apply(schema, arguments[1:]), convert
        if getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly"):
            return self.shape(arguments[0])
        if origin is Literal:
            return _choice(list(arguments), list(arguments))
        if origin is typing.Union or origin is types.UnionType:
            return self._union(arguments)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return _choice([one.value for one in kind], list(kind))
        found = self._generic(origin or kind, arguments) or self._class(kind)
        if found is None:
            allowed = "numbers, texts, dates, lists, dictionaries, enums, Literal, dataclasses, TypedDict, pydantic models"
            raise UnsupportedType(f"{kind!r} has no JSON Schema; allowed: {allowed}")
        return found

    def _union(self, arguments: tuple[Any, ...]) -> Shape:
        # The more precise converter first: an enum of texts before a text.
        shapes = [self.shape(one) for one in arguments]

        def convert(value: Any, path: str) -> Any:
            refusals: list[Violation] = []
            for _, one in shapes:
                try:
                    return one(value, path)
                except InvalidArguments as refusal:
                    refusals.extend(refusal.violations)
            allowed = ", or ".join(dict.fromkeys(refusal.allowed for refusal in refusals if refusal.path == path))
            return _refuse(path, "anyOf", value, allowed or "one of the types of the parameter")

        return {"anyOf": [schema for schema, _ in shapes]}, convert

    def _generic(self, origin: Any, arguments: tuple[Any, ...]) -> Shape | None:
        if origin in _LISTS:
            schema, convert = self.shape(arguments[0] if arguments else Any)
            unique = {"uniqueItems": True} if origin in (set, frozenset, Set) else {}
            items = {"items": schema} if schema else {}
            return {"type": "array", **items, **unique}, _list(convert, _LISTS[origin])
        if origin in (dict, Mapping):
            schema, convert = self.shape(arguments[1] if arguments else Any)
            more = {"additionalProperties": schema} if schema else {}
            return {"type": "object", **more}, _dictionary(convert)
        if origin is tuple:
            return self._tuple(arguments)
        return None

    def _tuple(self, arguments: tuple[Any, ...]) -> Shape:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            schema, convert = self.shape(arguments[0])
            return {"type": "array", "items": schema}, _list(convert, tuple)
        shapes, count = [self.shape(one) for one in arguments], len(arguments)

        def convert_all(value: Any, path: str) -> Any:
            if not isinstance(value, list) or len(value) != count:
                raise InvalidArgument(path, "type", value, f"a list of {count}")
            return tuple(shape[1](one, f"{path}/{n}") for n, (shape, one) in enumerate(zip(shapes, value, strict=True)))

        schemas = [schema for schema, _ in shapes]
        fixed = {"prefixItems": schemas, "items": False, "minItems": count, "maxItems": count}
        return {"type": "array", **fixed}, convert_all

    def _class(self, kind: Any) -> Shape | None:
        """A class has a definition, which may name itself."""
        if kind not in self._classes:
            build = self._builder(kind)
            if build is None:
                return None
            name = str(kind.__name__)
            while name in self.definitions:
                name += "_"
            self.definitions[name] = {}
            converter: list[Convert] = []
            self._classes[kind] = (name, converter)
            self.definitions[name], convert = build(kind)
            converter.append(convert)
        name, converter = self._classes[kind]
        return {"$ref": f"#/$defs/{name}"}, lambda value, path: converter[0](value, path)

    def _builder(self, kind: Any) -> Callable[[Any], Shape] | None:
        if dataclasses.is_dataclass(kind):
            return self._dataclass
        if typing.is_typeddict(kind):
            return self._typed_dict
        if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate"):
            return self._model
        return None

    def _dataclass(self, kind: Any) -> Shape:
        hints = typing.get_type_hints(kind, include_extras=True)
        members = {one.name: hints[one.name] for one in dataclasses.fields(kind) if one.init}
        optional = {
            one.name
            for one in dataclasses.fields(kind)
            if one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING
        }
        schema, convert = self.object(members, optional)
        doc = (kind.__doc__ or "").strip()
        # The docstring that dataclasses make themselves repeats the fields.
        described = {"description": doc} if doc and not doc.startswith(f"{kind.__name__}(") else {}
        return {**described, **schema}, lambda value, path: kind(**convert(value, path))

    def _typed_dict(self, kind: Any) -> Shape:
        hints = typing.get_type_hints(kind, include_extras=True)
        return self.object(hints, set(kind.__optional_keys__))

    def _model(self, kind: Any) -> Shape:
        schema = kind.model_json_schema(ref_template="#/$defs/{model}")
        for name, definition in schema.pop("$defs", {}).items():
            self.definitions.setdefault(name, definition)

        def convert(value: Any, path: str) -> Any:
            try:
                return kind.model_validate(value)
            except ValueError as error:
                raise _of_pydantic(error, path) from error

        return schema, convert

    def object(self, members: Mapping[str, Any], optional: Collection[str]) -> Shape:
        """An object with these properties and no others."""
        shapes = {name: self.shape(kind) for name, kind in members.items()}
        required = [name for name in shapes if name not in optional]
        schema: dict[str, Any] = {"type": "object", "properties": {name: one[0] for name, one in shapes.items()}}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        return schema, _object({name: one[1] for name, one in shapes.items()}, required)


def _plain(kind: Any) -> Shape | None:
    try:
        return _PLAIN.get(kind)
    except TypeError:
        # The type cannot be hashed, because its metadata cannot.
        return None


def _choice(values: list[Any], results: list[Any]) -> Shape:
    def convert(value: Any, path: str) -> Any:
        for known, result in zip(values, results, strict=True):
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return result
        raise InvalidArgument(path, "enum", value, ", ".join(map(str, values)))

    return {"enum": values}, convert


def _list(convert: Convert, build: Callable[[Iterable[Any]], Any]) -> Convert:
    def convert_all(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise InvalidArgument(path, "type", value, "a list")
        return build(convert(one, f"{path}/{n}") for n, one in enumerate(value))

    return convert_all


def _dictionary(convert: Convert) -> Convert:
    def convert_all(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidArgument(path, "type", value, "an object")
        return {name: convert(one, f"{path}/{escaped(name)}") for name, one in value.items()}

    return convert_all


def _object(members: Mapping[str, Convert], required: Collection[str]) -> Convert:
    def convert_all(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidArgument(path, "type", value, "an object")
        for name in required:
            if name not in value:
                raise InvalidArgument(path, "required", value, f"an object with {name!r}")
        known = ((name, one) for name, one in value.items() if name in members)
        return {name: members[name](one, f"{path}/{escaped(name)}") for name, one in known}

    return convert_all


def _of_pydantic(error: ValueError, path: str) -> Exception:
    details = getattr(error, "errors", None)
    if not callable(details):
        return error
    found = [
        Violation("/".join([path, *(escaped(str(part)) for part in one["loc"])]), one["type"], one.get("input"), one["msg"])
        for one in details(include_url=False, include_context=False)
    ]
    return InvalidArguments(*found)
