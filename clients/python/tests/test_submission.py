"""What a client sends as a submission, and what it refuses to send."""

import asyncio
import enum
import json
import unittest
import uuid
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pydantic
from gateway_of_tests import Answer, Gateway, Request

from redial import AsyncClient, Retry, Submission


class Class(enum.Enum):
    ECONOMY = "economy"


@dataclass
class Guest:
    name: str
    born: date


class Place(pydantic.BaseModel):
    city: str
    since: date


def body(arguments: Any, **options: Any) -> dict[str, Any]:
    return Submission("book", arguments, **options).to_json()


class Submissions(unittest.TestCase):
    def test_arguments_of_the_types_that_a_worker_reads_are_encoded(self) -> None:
        day = date(2030, 1, 2)
        sent = body(
            MappingProxyType(
                {
                    "day": day,
                    "at": datetime(2030, 1, 2, 3, 4, tzinfo=timezone.utc),
                    "id": uuid.UUID(int=1),
                    "class": Class.ECONOMY,
                    "guests": (Guest("Ann", day), {"days": {day}}),
                    "place": Place(city="Rome", since=day),
                    "rest": [None, True, 1.5, "x"],
                }
            )
        )
        wanted = {
            "day": "2030-01-02",
            "at": "2030-01-02T03:04:00+00:00",
            "id": "00000000-0000-0000-0000-000000000001",
            "class": "economy",
            "guests": [{"name": "Ann", "born": "2030-01-02"}, {"days": ["2030-01-02"]}],
            "place": {"city": "Rome", "since": "2030-01-02"},
            "rest": [None, True, 1.5, "x"],
        }
        self.assertEqual(json.loads(json.dumps(sent["arguments"])), wanted)
        self.assertEqual(body('{"day": "as a model wrote it"')["arguments"], '{"day": "as a model wrote it"')

    def test_what_cannot_be_sent_is_named_with_what_is_allowed(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        cases: list[tuple[Any, dict[str, Any], str]] = [
            ({"a": [{"x/y": Decimal(1)}]}, {}, "the arguments of book: /a/0/x~1y is of type Decimal; allowed: texts, numbers"),
            ({"a": {date(2030, 1, 1): 1}}, {}, "the arguments of book: /a has a name of type date; allowed: texts"),
            ({"a": float("nan")}, {}, "the arguments of book: /a is nan; allowed: finite numbers"),
            ({"a": endless}, {}, "the arguments of book nest too deeply"),
            ({}, {"timeout": "5s"}, "timeout is '5s'; allowed: seconds as a number, or a timedelta"),
            ({}, {"timeout": True}, "timeout is True; allowed: seconds"),
            ({}, {"retry": 3}, "retry is 3; allowed: a redial.Retry, such as Retry(max_attempts=3)"),
            ({}, {"retry": {"max_atempts": 3}}, "retry is {'max_atempts': 3}; allowed: a redial.Retry"),
            ({}, {"retry": Retry(max_attempts="3")}, "retry.max_attempts is '3'; allowed: a"),  # type: ignore[arg-type]
            ({}, {"retry": Retry(factor="2")}, "retry.factor is '2'; allowed: a number"),  # type: ignore[arg-type]
            ({}, {"key": ""}, "key is ''; allowed: a text of 1 to 200 bytes, or None for a random key"),
            ({}, {"key": 17}, "key is 17; allowed: a text"),
        ]
        for arguments, options, wanted in cases:
            with self.assertRaises((TypeError, ValueError)) as refused:
                body(arguments, **options)
            self.assertIn(wanted, str(refused.exception))

    def test_durations_and_keys_are_sent_as_given(self) -> None:
        sent = body({}, timeout=timedelta(seconds=1.5), retry=Retry(initial=1, max_attempts=2), key="order-17")
        self.assertEqual((sent["timeout_ms"], sent["retry"]["initial_ms"], sent["key"]), (1500, 1000, "order-17"))
        self.assertNotEqual(body({})["key"], body({})["key"])

    def test_other_requests_take_dates_and_refuse_empty_keys_too(self) -> None:
        async def answer(_: Request) -> Answer:
            return Answer(body={"redrive": "1", "call": "2"})

        async def ask() -> None:
            async with AsyncClient(gateway.url) as client:
                await client.redrive(tool="book", since=date(2030, 1, 2))
                await client.get_call("1").redrive({"day": date(2030, 1, 3)})
                with self.assertRaisesRegex(ValueError, "key is ''"):
                    await client.task("Hello.", "helper", key="")

        with Gateway(answer) as gateway:
            asyncio.run(ask())
        first, second = (json.loads(request.body) for request in gateway.requests)
        self.assertEqual((first["filter"]["since"], second["arguments"]["day"]), ("2030-01-02", "2030-01-03"))


if __name__ == "__main__":
    unittest.main()
