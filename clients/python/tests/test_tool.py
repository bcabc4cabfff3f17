"""Functions as tools: schemas from annotations, and arguments as parameters."""

import enum
import json
import unittest
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, Any, Literal, TypedDict

import pydantic

from redial import Context, Field, InvalidArguments, InvalidTool, Retry, Worker
from redial.tool import Tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Guest:
    """A guest of a hotel."""

    name: Annotated[str, "As in the passport"]
    age: Annotated[int, Field(ge=0, le=150)] = 30
    friends: "list[Guest]" = field(default_factory=list)


class Options(TypedDict, total=False):
    late: bool


class Address(pydantic.BaseModel):
    city: str = pydantic.Field(min_length=1)
    zip: Annotated[str, pydantic.Field(pattern="^[0-9]+$", description="Digits")]


def tool(function: Callable[..., Any], **settings: Any) -> Tool:
    worker = Worker(environment={})
    worker.tool(**settings)(function)
    return worker.tools[settings.get("name") or function.__name__]


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found = tool(function).spec["parameters"]["properties"]
    assert isinstance(found, dict)
    return found


class Schemas(unittest.TestCase):
    def test_a_function_says_all_that_a_tool_is(self) -> None:
        def book(to: str, seats: Annotated[int, Field("How many", ge=1, le=9)] = 1, *, ctx: Context, rush: bool = False) -> None:
            """Books a flight.

            Only once.

            Args:
                to: Where to,
                    as a code: three letters.
                seats (int): Not used, because the annotation has one.
                rush: Whether to hurry.

            Returns:
                Nothing.
            """

        found = tool(book, effect="keyed", timeout=timedelta(minutes=1), retry=Retry(initial=0.25, max_attempts=3), polling=True)
        self.assertEqual(
            json.loads(json.dumps(found.spec)),
            {
                "name": "book",
                "description": "Books a flight.\n\nOnly once.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "to": {"type": "string", "description": "Where to, as a code: three letters."},
                        "seats": {
                            "type": "integer", "minimum": 1, "maximum": 9, "description": "How many", "default": 1,
                        },
                        "rush": {"type": "boolean", "description": "Whether to hurry.", "default": False},
                    },
                    "required": ["to"],
                    "additionalProperties": False,
                },
                "effect": "keyed",
                "pool": "default",
                "timeout_ms": 60000,
                "retry": {
                    "initial_ms": 250, "cap_ms": 60000, "deadline_ms": 3600000, "factor": 2.0, "max_attempts": 3,
                },
                "polling": True,
            },
        )  # fmt: skip
        self.assertEqual((found.context, found.offload), ("ctx", "thread"))

    def test_types_have_schemas(self) -> None:
        def function(
            a: int | None,
            b: Literal["x", 2],
            c: Colour,
            d: list[float],
            e: dict[str, date],
            f: tuple[int, str],
            g: set[str],
            h: Any,
            i: Annotated[Sequence[int], Field(min_length=1, max_length=3)],
            j: datetime,
            k: Mapping[str, Any],
            m: uuid.UUID,
        ) -> None: ...

        self.assertEqual(
            properties(function),
            {
                "a": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "b": {"enum": ["x", 2]},
                "c": {"enum": ["red", "blue"]},
                "d": {"type": "array", "items": {"type": "number"}},
                "e": {"type": "object", "additionalProperties": {"type": "string", "format": "date"}},
                "f": {
                    "type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False,
                    "minItems": 2, "maxItems": 2,
                },
                "g": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                "h": {},
                "i": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
                "j": {"type": "string", "format": "date-time"},
                "k": {"type": "object"},
                "m": {"type": "string", "format": "uuid"},
            },
        )  # fmt: skip

    def test_classes_are_defined_once_and_may_name_themselves(self) -> None:
        def invite(guest: Guest, others: list[Guest], options: Options, address: Address) -> None: ...

        found = tool(invite).spec["parameters"]
        self.assertEqual(found["properties"]["guest"], {"$ref": "#/$defs/Guest"})
        self.assertEqual(found["properties"]["others"], {"type": "array", "items": {"$ref": "#/$defs/Guest"}})
        guest = found["$defs"]["Guest"]
        self.assertEqual(guest["description"], "A guest of a hotel.")
        self.assertEqual(guest["required"], ["name"])
        self.assertEqual(guest["properties"]["friends"], {"type": "array", "items": {"$ref": "#/$defs/Guest"}})
        options = found["$defs"]["Options"]
        self.assertEqual(options["properties"], {"late": {"type": "boolean"}})
        self.assertNotIn("required", options)
        self.assertEqual(found["$defs"]["Address"]["properties"]["zip"]["pattern"], "^[0-9]+$")

    def test_a_function_without_parameters_and_one_that_takes_anything(self) -> None:
        def nothing() -> None: ...

        def anything(**arguments: Any) -> None: ...

        self.assertEqual(tool(nothing).spec["parameters"], {"type": "object", "additionalProperties": False})
        self.assertEqual(tool(anything).spec["parameters"], {"type": "object"})
        self.assertEqual(tool(anything).bind({"a": [1]}), {"a": [1]})

    def test_what_cannot_be_a_tool_is_named_with_what_is_allowed(self) -> None:
        def odd(a: complex) -> None: ...

        def positional(*values: int) -> None: ...

        async def coroutine() -> None: ...

        cases: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
            (odd, {}, "tool odd: <class 'complex'> has no JSON Schema; allowed: numbers, texts"),
            (positional, {}, "tool positional: parameter 'values' has no name"),
            (coroutine, {"offload": "thread"}, "offload is for blocking functions"),
            (coroutine, {"name": "a.b"}, "'a.b' is no name of a tool; allowed: letters"),
            (coroutine, {"name": "model-x"}, "are for models"),
            (coroutine, {"effect": "nice"}, "effect is 'nice'; allowed: read, idempotent, keyed, unsafe"),
            (coroutine, {"timeout": 0}, "timeout is less than 1 ms"),
            (coroutine, {"timeout": "10s"}, "tool coroutine: timeout is '10s'; allowed: seconds as a number, or a timedelta"),
            (coroutine, {"timeout": float("inf")}, "tool coroutine: timeout is inf; allowed: seconds"),
            (coroutine, {"retry": 3}, "tool coroutine: retry is 3; allowed: a redial.Retry, such as Retry(max_attempts=3)"),
            (coroutine, {"retry": Retry(cap="1m")}, "retry.cap is '1m'; allowed: seconds as a number"),  # type: ignore[arg-type]
            (coroutine, {"retry_budget": {}}, "retry_budget is {}; allowed: a redial.RetryBudget"),
        ]
        for function, settings, wanted in cases:
            with self.assertRaises(InvalidTool) as refused:
                tool(function, **settings)
            self.assertIn(wanted, str(refused.exception))
        worker = Worker(environment={"REDIAL_WORKER_POOLS": "a,b"})
        with self.assertRaisesRegex(InvalidTool, "its pool is 'default'; this worker's pools are: a, b"):
            worker.tool(coroutine)
        worker.tool(pool="a")(coroutine)
        with self.assertRaisesRegex(InvalidTool, "declared twice"):
            worker.tool(pool="a")(coroutine)


class Arguments(unittest.TestCase):
    def test_arguments_become_what_the_annotations_say(self) -> None:
        def function(
            guest: Guest,
            day: date,
            at: datetime,
            colour: Colour | None = None,
            pair: tuple[int, str] = (0, ""),
            address: Address | None = None,
            n: int = 0,
        ) -> None: ...

        bound = tool(function).bind(
            {
                "guest": {"name": "Ann", "friends": [{"name": "Bob", "age": 40}]},
                "day": "2030-01-02",
                "at": "2030-01-02T03:04:05Z",
                "colour": "blue",
                "pair": [1, "x"],
                "address": {"city": "Rome", "zip": "1"},
                "n": 2.0,
            }
        )
        self.assertEqual(bound["guest"], Guest("Ann", 30, [Guest("Bob", 40)]))
        self.assertEqual(bound["day"], date(2030, 1, 2))
        self.assertEqual(bound["at"], datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc))
        self.assertIs(bound["colour"], Colour.BLUE)
        self.assertEqual(bound["pair"], (1, "x"))
        self.assertEqual(bound["address"], Address(city="Rome", zip="1"))
        self.assertEqual((bound["n"], type(bound["n"])), (2, int))

    def test_what_does_not_fit_is_told_with_its_place(self) -> None:
        def function(guest: Guest, days: list[date], either: int | Colour, address: Address) -> None: ...

        good: dict[str, Any] = {"guest": {"name": "A"}, "days": [], "either": 1, "address": {"city": "x", "zip": "1"}}
        for name, value, path, rule in [
            ("guest", {"name": 1}, "/guest/name", "type"),
            ("guest", {}, "/guest", "required"),
            ("guest", {"name": "A", "friends": [{"name": "B"}, 3]}, "/guest/friends/1", "type"),
            ("days", ["2030-01-01", "tomorrow"], "/days/1", "format"),
            ("either", "green", "/either", "anyOf"),
            ("either", True, "/either", "anyOf"),
            ("address", {"city": "x", "zip": "a"}, "/address/zip", "string_pattern_mismatch"),
        ]:
            with self.assertRaises(InvalidArguments) as refused:
                tool(function).bind({**good, name: value})
            violation = refused.exception.violations[0]
            self.assertEqual((violation.path, violation.rule), (path, rule))


if __name__ == "__main__":
    unittest.main()
