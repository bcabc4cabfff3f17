"""Reports of functions that have ended: classes, limits, secrets."""

import asyncio
import enum
import json
import logging
import tracemalloc
import unittest
import uuid
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import httpx

from redial import (
    NOT_SENT,
    BusinessRule,
    Context,
    InvalidArgument,
    InvalidArguments,
    RateLimited,
    ToolError,
    Unavailable,
    Violation,
)
from redial._limits import MAX_PIECE, depth, parts, shorten
from redial._outcome import Outcome, message_of, of_exception, of_result, report_of
from redial._pieces import split
from redial._redact import Redactor, without_hosts

# The exceptions of these tests are meant to be raised.
logging.getLogger("redial.worker").addHandler(logging.NullHandler())
NOTHING = Redactor(())
CONTEXT = Context("call-17", "book_flight", 2, "key", "acme", 30.0)


def error_for(error: BaseException) -> dict[str, Any]:
    found = of_exception(error, NOTHING, CONTEXT).error
    assert found is not None
    return found


def answered(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://service.example")
    response = httpx.Response(status, request=request, headers=headers)
    return httpx.HTTPStatusError("no", request=request, response=response)


class Results(unittest.TestCase):
    def test_results_within_the_limits_are_kept(self) -> None:
        for size, levels in [(512 * 1024, 0), (10, 64)]:
            output: Any = "x" * (size - 2)
            for _ in range(levels):
                output = [output]
            found = of_result(output, NOTHING).output
            assert found is not None
            self.assertEqual(json.loads(found), output)
        self.assertEqual(of_result(None, NOTHING).output, b"null")

    def test_results_beyond_the_limits_become_errors(self) -> None:
        nested: Any = "x"
        for _ in range(65):
            nested = {"[[[": nested}
        endless: list[Any] = []
        endless.append(endless)
        for output, wanted in [
            ("x" * (16 * 1024 * 1024 - 1), "output_too_large"),
            ("好" * 5_600_000, "output_too_large"),
            (nested, "output_invalid"),
            (endless, "output_invalid"),
            (float("nan"), "output_invalid"),
            (object(), "output_invalid"),
        ]:
            error = of_result(output, NOTHING).error
            assert error is not None
            self.assertEqual(error["class"], wanted)
            self.assertLess(len(error["message"]), 700)

    def test_half_of_a_surrogate_pair_is_kept_as_in_arguments(self) -> None:
        for text in (r'"\ud800"', r'{"a\udfff":["x\ud83dy"]}'):
            self.assertEqual(of_result(json.loads(text), NOTHING).output, text.encode())
        self.assertEqual(of_result("\ud83d\ude00", NOTHING).output, rb'"\ud83d\ude00"')

    def test_common_types_have_json(self) -> None:
        class Colour(enum.Enum):
            RED = "red"

        @dataclass
        class Booking:
            day: date
            colour: Colour
            tags: frozenset[str]
            of: uuid.UUID

        found = of_result(Booking(date(2030, 1, 2), Colour.RED, frozenset(["a"]), uuid.UUID(int=1)), NOTHING).output
        wanted = {"day": "2030-01-02", "colour": "red", "tags": ["a"], "of": "00000000-0000-0000-0000-000000000001"}
        self.assertEqual(json.loads(found or b""), wanted)

    def test_depth_ignores_brackets_in_strings(self) -> None:
        self.assertEqual(depth("1"), 0)
        self.assertEqual(depth(r'{"a":[1,{"b":"[[[\"{{"}]}'), 3)
        self.assertEqual(depth("[" * 100_000), 100_000)
        for value, wanted in [
            ("", 0),
            ('"[{', 0),
            ("\\", 0),
            ("ends with \\", 0),
            ('\\\\"]}', 0),
            ("\ud83d\ude00 [ \ud800", 0),
            (["\\", ['"', "["], "]]"], 2),
            ({'"[': {"}": [["\n\t\u2028[", {}]]}}, 5),
            ([[], [[]], "[[[[", [1]], 3),
        ]:
            for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
                self.assertEqual(depth(text), wanted, text)

    def test_the_memory_of_depth_does_not_grow_with_the_text(self) -> None:
        for text in ('"' + 'in [a] \\"' * (4 * 1024 * 1024 // 9) + '"', '"' + "x" * (4 * 1024 * 1024) + '"'):
            tracemalloc.start()
            try:
                self.assertEqual(depth(text), 0)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            self.assertLess(peak, 3 * len(text))

    def test_long_texts_are_cut_between_characters(self) -> None:
        self.assertEqual(shorten("short", 10), "short")
        cut = shorten("好" * 100, 50)
        self.assertTrue(len(cut.encode()) <= 50 and cut.endswith("(cut)"), cut)
        self.assertEqual(shorten("\ud800", 10), "?")

    def test_pieces_are_cut_between_characters(self) -> None:
        for text in ("", "x", "x" * MAX_PIECE, "好" * MAX_PIECE, "x" + "😀" * MAX_PIECE):
            pieces = split(text.encode())
            self.assertEqual("".join(pieces), text)
            self.assertTrue(all(MAX_PIECE - 3 <= len(piece.encode()) <= MAX_PIECE for piece in pieces[:-1]))

    def test_parts_respect_size_and_count(self) -> None:
        self.assertEqual(parts([]), [])
        self.assertEqual(parts([5, 5, 5, 100, 1], most=10), [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)])
        self.assertEqual(parts([1] * 5, count=2), [slice(0, 2), slice(2, 4), slice(4, 5)])


class Errors(unittest.TestCase):
    def test_exceptions_are_classified(self) -> None:
        refused = httpx.ConnectError("secret")
        for error, error_class, effect_possible in [
            (ConnectionRefusedError("secret-host"), "unavailable", False),
            (refused, "unavailable", False),
            (httpx.ReadTimeout("secret"), "unavailable", True),
            (ConnectionResetError("secret-host"), "unavailable", True),
            (asyncio.TimeoutError(), "unavailable", True),
            (KeyError("secret"), "tool_failed", True),
            (SystemExit("secret"), "tool_failed", True),
            (FileNotFoundError("/secret"), "tool_failed", True),
            (asyncio.CancelledError(), "internal", True),
            (BusinessRule("sold out"), "business_rule", True),
            (RateLimited("slower"), "rate_limited", False),
            (answered(503), "unavailable", True),
            (answered(429), "rate_limited", False),
            (answered(403), "auth", True),
            (answered(422), "invalid_arguments", True),
            (answered(409), "business_rule", True),
            (answered(501), "configuration", True),
        ]:
            failure = error_for(error)
            self.assertEqual((failure["class"], failure.get("effect_possible", True)), (error_class, effect_possible), error)
            self.assertNotIn("secret", json.dumps(failure), "the report has the text of an exception")

    def test_a_pause_is_passed_on(self) -> None:
        self.assertEqual(error_for(RateLimited("slower", retry_after=1.5))["retry_after_ms"], 1500)
        self.assertEqual(error_for(Unavailable("later", retry_after=timedelta(days=1)))["retry_after_ms"], 86_400_000)
        self.assertEqual(error_for(answered(503, **{"retry-after": "7"}))["retry_after_ms"], 7000)
        self.assertNotIn("retry_after_ms", error_for(answered(404, **{"retry-after": "7"})))
        squared = answered(503)
        squared.response.headers = httpx.Headers([(b"retry-after", b"\xb2")])
        self.assertEqual(error_for(squared), {"class": "unavailable", "message": "the service answered HTTP 503"})

    def test_violations_are_told_with_what_was_sent(self) -> None:
        broken = (
            Violation("/date", "format", "明天", "YYYY-MM-DD"),
            Violation("/n", "maximum", 6, "1 to 5", "fewer"),
            Violation("/who", "required", NOT_SENT, "a name"),
            Violation("/x", "type", None, "a text"),
        )
        error = error_for(InvalidArguments(*broken))
        self.assertTrue(error["message"].startswith("/date: '明天' was sent; allowed: YYYY-MM-DD; /n"), error["message"])
        self.assertIn("/who: nothing was sent", error["message"])
        details = error["details"]
        self.assertEqual(details[1], {"path": "/n", "rule": "maximum", "sent": 6, "allowed": "1 to 5", "hint": "fewer"})
        self.assertNotIn("sent", details[2])
        self.assertIsNone(details[3]["sent"])
        self.assertEqual(len(error_for(InvalidArguments(*broken * 100))["details"]), 100)

    def test_errors_come_whole_out_of_another_process(self) -> None:
        import pickle

        for error in (InvalidArgument("/a", "type", 1, "a text"), Unavailable("later", retry_after=2), BusinessRule("no")):
            self.assertEqual(pickle.loads(pickle.dumps(error)).to_json(), error.to_json())

    def test_a_report_fits_into_one_message(self) -> None:
        huge = InvalidArguments(*[Violation("/text", "maxLength", "x" * 100_000, "less")] * 20)
        odd = InvalidArgument("/a", "r", float("nan"), "a number")
        for error in (huge, odd):
            grant = {"call": "c", "attempt": 1, "claim": "claim"}
            report = json.loads(report_of(grant, 0.25, of_exception(error, NOTHING, CONTEXT)))
            self.assertEqual((report["claim"], report["duration_ms"]), ("claim", 250))
            self.assertEqual(report["error"]["class"], "invalid_arguments")
            self.assertNotIn("details", report["error"])
        reports = [report_of({"call": "c", "attempt": 1, "claim": "x"}, 0, Outcome(output=text)) for text in (b'"\\u0000"', b"1")]
        sent = json.loads(message_of("w", reports))
        self.assertEqual([report["output"] for report in sent["reports"]], ["\0", 1])


class Secrets(unittest.TestCase):
    def test_secrets_are_removed_everywhere(self) -> None:
        redactor = Redactor(["canary", "canary-2", ""])
        found = of_result({"a canary-2": ["canary", {"x": "say canary!"}], "n": 1}, redactor).output or b""
        self.assertEqual(json.loads(found), {"a [secret]": ["[secret]", {"x": "say [secret]!"}], "n": 1})
        error = of_exception(InvalidArgument("/a", "canary", "canary", "not canary", "canary"), redactor, CONTEXT).error
        self.assertNotIn("canary", json.dumps(error))
        diagnosed = of_exception(ToolError("no", diagnostics="canary"), redactor, CONTEXT).error or {}
        self.assertEqual(diagnosed["diagnostics"], "[secret]")

    def test_hosts_are_removed_from_errors(self) -> None:
        for text, wanted in [
            ("dial tcp 10.0.3.17:5432: refused", "dial tcp [host]: refused"),
            ("could not reach http://db-7.prod.internal:5432/x", "could not reach http://[host]/x"),
            ("upstream payments-v2:8080 timed out", "upstream [host] timed out"),
            ("localhost refused", "[host] refused"),
            ("getaddrinfo redis.default.svc.", "getaddrinfo [host]."),
            ("tcp:10.0.0.7:80:refused", "tcp:[host]:refused"),
            ("connect ::1 failed", "connect [host] failed"),
            ("see example.org at 12:30, line 7:12", "see example.org at 12:30, line 7:12"),
            ("/date: '2030-01-01' was sent; allowed: later", "/date: '2030-01-01' was sent; allowed: later"),
        ]:
            self.assertEqual(without_hosts(text), wanted)


if __name__ == "__main__":
    unittest.main()
