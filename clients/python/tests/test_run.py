"""Functions that run as attempts: in a loop, in a thread, and in a process."""

import asyncio
import os
import subprocess
import sys
import unittest
from typing import Any

from redial import Context, Worker
from redial._outcome import Outcome
from redial._redact import Redactor
from redial._run import Runner
from redial.tool import Tool


def fail() -> None:
    raise ValueError("only for the log")


async def fail_in_the_loop() -> None:
    fail()


async def outcome_of(tool: Tool) -> Outcome:
    runner = Runner(asyncio.get_running_loop(), Redactor(()))
    try:
        return await runner.start(tool, {}, Context("call-17", tool.name, 2, "key", "acme", 30.0)).ended
    finally:
        await runner.close()


def run(function: str, offload: Any) -> None:
    """What the test below runs in a process of its own, whose log it reads."""
    worker = Worker(environment={})
    worker.tool(name="book_flight", offload=offload)(globals()[function])
    print(asyncio.run(outcome_of(worker.tools["book_flight"])).error)


class Exceptions(unittest.TestCase):
    def test_the_log_names_the_attempt_that_raised_an_exception(self) -> None:
        for function, offload in (("fail_in_the_loop", None), ("fail", "thread"), ("fail", "process")):
            command = [sys.executable, "-c", f"import test_run; test_run.run({function!r}, {offload!r})"]
            path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
            ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
            self.assertIn("Tool raised an exception tool=book_flight call=call-17 attempt=2\n", ended.stderr)
            self.assertIn("ValueError: only for the log", ended.stderr)
            self.assertIn("the tool raised ValueError", ended.stdout)
            self.assertNotIn("only for the log", ended.stdout)


if __name__ == "__main__":
    unittest.main()
