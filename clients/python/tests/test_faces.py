"""What `help` shows of the package."""

import inspect
import unittest
from typing import Any

from redial import AsyncClient, CallView, Client, RedriveView, TaskView, Worker

VIEW = {"call": "1", "tool": "book", "state": "failed", "attempts": 2, "class": "auth", "message": "no", "output": "x" * 9999}


class Texts(unittest.TestCase):
    def test_views_and_clients_show_what_they_are_and_no_secret(self) -> None:
        client = Client("http://user:word@gateway:8700/", token="rdl_secret", environment={})
        self.assertEqual(repr(client), "Client('http://gateway:8700/')")
        self.assertEqual(repr(AsyncClient(token="rdl_secret", environment={})), "AsyncClient('http://127.0.0.1:8700')")
        for shown, wanted in [
            (CallView(VIEW), "CallView(id='1', tool='book', state='failed', attempts=2, error_class='auth', message='no')"),
            (CallView({"call": "1", "state": "ready"}), "CallView(id='1', state='ready', attempts=0)"),
            (TaskView({"task": "1", "state": "failed", "code": "budget"}), "TaskView(id='1', state='failed', code='budget')"),
            (
                RedriveView({"redrive": "1", "state": "done", "matched": 3, "redriven": 2}),
                "RedriveView(id='1', state='done', matched=3, redriven=2)",
            ),
            (client.get_call("1"), "Call('1')"),
            (client.get_call("1").inner, "AsyncCall('1')"),
            (client.get_task("1"), "Task('1')"),
            (client.get_redrive("1"), "Redrive('1')"),
        ]:
            self.assertEqual(repr(shown), wanted)


class Signatures(unittest.TestCase):
    def test_no_default_contains_the_environment(self) -> None:
        for kind in (Client, AsyncClient, Worker):
            parameters: Any = inspect.signature(kind).parameters
            self.assertIsNone(parameters["environment"].default, kind)


if __name__ == "__main__":
    unittest.main()
