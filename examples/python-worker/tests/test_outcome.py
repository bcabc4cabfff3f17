"""Tests of the reports of finished tools. Run: python -m unittest discover tests"""

import asyncio
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import redial_outcome
from redial_outcome import NOT_SENT, ToolError, checked, depth, field_error, invalid, message_of, result, shorten

redial_outcome.log.disabled = True


def report_of(tool):
    async def run():
        task = asyncio.create_task(tool())
        await asyncio.wait({task})
        return result(task)

    return asyncio.run(run())


def error_for(exception):
    async def tool():
        raise exception

    return report_of(tool)["error"]


class Outcomes(unittest.TestCase):
    def test_results_within_the_limits_are_kept(self):
        for size, depth_ in [(512 * 1024, 1), (10, 64)]:
            output = "x" * (size - 2)
            for _ in range(depth_ if size < 100 else 0):
                output = [output]
            self.assertEqual(checked(output), {"output": output})
        self.assertEqual(checked(None), {"output": None})

    def test_results_beyond_the_limits_become_errors(self):
        nested = "x"
        for _ in range(65):
            nested = {"[[[": nested}
        endless = []
        endless.append(endless)
        for output, wanted in [
            ("x" * (512 * 1024 - 1), "output_too_large"),
            ("好" * 175_000, "output_too_large"),
            (nested, "output_invalid"),
            (endless, "output_invalid"),
            (float("nan"), "output_invalid"),
            (object(), "output_invalid"),
            ("\ud800", "output_invalid"),
        ]:
            error = checked(output)["error"]
            self.assertEqual(error["class"], wanted)
            self.assertLess(len(error["message"]), 700)

    def test_depth_ignores_brackets_in_strings(self):
        self.assertEqual(depth("1"), 0)
        self.assertEqual(depth(r'{"a":[1,{"b":"[[[\"{{"}]}'), 3)
        self.assertEqual(depth("[" * 100_000), 100_000)

    def test_exceptions_are_classified(self):
        for error, error_class, effect_possible in [
            (ConnectionRefusedError("secret-host"), "unavailable", False),
            (ConnectionResetError("secret-host"), "unavailable", True),
            (asyncio.TimeoutError(), "unavailable", True),
            (KeyError("secret"), "tool_failed", None),
            (FileNotFoundError("/secret"), "tool_failed", None),
            (asyncio.CancelledError(), "internal", None),
            (ToolError("business_rule", "sold out"), "business_rule", True),
        ]:
            failure = error_for(error)
            self.assertEqual((failure["class"], failure.get("effect_possible")), (error_class, effect_possible), error)
            self.assertNotIn("secret", json.dumps(failure), "the report contains the text of an exception")

    def test_a_tool_error_keeps_its_details(self):
        broken = [
            field_error("/date", "format", "明天", "YYYY-MM-DD"),
            field_error("/n", "maximum", 6, "1 to 5", "fewer"),
        ]
        error = error_for(invalid(broken))
        self.assertEqual((error["class"], error["details"]), ("invalid_arguments", broken))
        self.assertIn("/date: '明天' was sent; allowed: YYYY-MM-DD", error["message"])
        missing = field_error("/date", "required", NOT_SENT, "YYYY-MM-DD")
        self.assertNotIn("sent", missing)
        self.assertIn("/date: nothing was sent", error_for(invalid([missing]))["message"])
        self.assertIsNone(field_error("/date", "type", None, "text")["sent"])
        self.assertEqual(error_for(ToolError("rate_limited", "slower", retry_after=1.5))["retry_after_ms"], 1500)
        self.assertEqual(len(error_for(invalid(broken * 100))["details"]), 100)

    def test_long_texts_are_cut_between_characters(self):
        self.assertEqual(shorten("short", 10), "short")
        cut = shorten("好" * 100, 50)
        self.assertTrue(len(cut.encode()) <= 50 and cut.endswith("(cut)"), cut)
        self.assertEqual(shorten("\ud800", 10), "?")

    def test_a_report_fits_into_one_message(self):
        huge = invalid([field_error("/text", "maxLength", "x" * 100_000, "less")] * 20)
        report = {"call": "c", "attempt": 1, "error": huge.error}
        sent = json.loads(message_of("w", report))
        self.assertNotIn("details", sent["reports"][0]["error"])
        self.assertIn("details", report["error"], "the caller's report was changed")
        odd = {"call": "c", "attempt": 1, "error": invalid([field_error("/a", "r", float("nan"), "a number")]).error}
        self.assertEqual(json.loads(message_of("w", odd))["reports"][0]["error"]["class"], "invalid_arguments")
        for text in ("好", "\u0000"):
            fits = {"call": "c", "attempt": 1, "output": text}
            self.assertEqual(json.loads(message_of("w", fits))["reports"], [fits])


if __name__ == "__main__":
    unittest.main()
