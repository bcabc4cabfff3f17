"""What people see of the package: reprs, errors, and what `help` shows."""

import inspect
import unittest
from collections.abc import Iterable
from typing import Any

from gateway_of_tests import Answer, Gateway, Request

from redial import (
    AsyncCall,
    AsyncClient,
    AsyncRedrive,
    AsyncTask,
    Call,
    CallCancelled,
    CallFailed,
    CallRefused,
    CallUnknown,
    CallView,
    Client,
    Redrive,
    RedriveView,
    Task,
    TaskFailed,
    TaskView,
    Timeout,
    Worker,
)
from redial.errors import of_problem

VIEW = {"call": "1", "tool": "book", "state": "failed", "attempts": 2, "class": "auth", "message": "no", "output": "x" * 9999}


def described(parameters: Iterable[inspect.Parameter]) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; the types of the two faces differ."""
    return [(one.name, one.kind, one.default) for one in parameters]


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

    def test_errors_say_how_a_call_or_a_task_ended(self) -> None:
        ended = {"call": "1", "tool": "book", "message": "no"}
        for error, wanted in [
            (CallFailed(CallView({**ended, "state": "failed"})), "call 1 of book failed: no"),
            (CallFailed(CallView({**ended, "state": "refused"})), "call 1 of book was refused: no"),
            (CallUnknown(CallView({**ended, "state": "unknown"})), "call 1 of book has an unknown end: no"),
            (CallCancelled(CallView({"call": "1", "tool": "book", "state": "cancelled"})), "call 1 of book was cancelled"),
            (TaskFailed(TaskView({"task": "1", "state": "failed", "code": "budget"})), "task 1 failed: budget"),
        ]:
            self.assertEqual(str(error), wanted)

    def test_arguments_that_break_the_schema_are_a_refused_call_also_in_a_redrive(self) -> None:
        error = of_problem(422, {"code": "invalid_arguments", "errors": [{"pointer": "/n", "rule": "type"}]})
        assert isinstance(error, CallRefused)
        self.assertEqual((error.call, error.violations[0].path), (None, "/n"))


class Requests(unittest.IsolatedAsyncioTestCase):
    async def test_what_other_packages_call_the_body_is_refused(self) -> None:
        async with AsyncClient("http://127.0.0.1:1", patience=0) as client:
            for name in ("json", "data"):
                with self.assertRaisesRegex(TypeError, f"no parameter '{name}'; allowed: `body`"):
                    await client.request("POST", "/v1/calls", **{name: {}})

    async def test_a_timeout_names_the_call_or_the_task(self) -> None:
        async def answer(request: Request) -> Answer:
            kind = "call" if "calls" in request.path else "task"
            return Answer(body={kind: "17", "state": "running"})

        with Gateway(answer) as gateway:
            async with AsyncClient(gateway.url) as client:
                with self.assertRaisesRegex(Timeout, "^call 17 is running after 0 s, and goes on$"):
                    await client.get_call("17").result(0)
                with self.assertRaisesRegex(Timeout, "^task 17 is running after 0 s, and goes on$"):
                    await client.get_task("17").result(0)


class Signatures(unittest.TestCase):
    def test_both_faces_have_the_same_methods_parameters_and_descriptions(self) -> None:
        for face, inner in [(Client, AsyncClient), (Call, AsyncCall), (Task, AsyncTask), (Redrive, AsyncRedrive)]:
            methods = {name: method for name, method in vars(face).items() if not name.startswith("_") and callable(method)}
            for name, method in methods.items():
                same = getattr(inner, name)
                self.assertEqual(inspect.getdoc(method), inspect.getdoc(same), f"{face.__name__}.{name}")
                of_face, of_inner = inspect.signature(method).parameters, inspect.signature(same).parameters
                self.assertEqual(described(of_face.values()), described(of_inner.values()), f"{face.__name__}.{name}")

    def test_no_default_contains_the_environment(self) -> None:
        for kind in (Client, AsyncClient, Worker):
            parameters: Any = inspect.signature(kind).parameters
            self.assertIsNone(parameters["environment"].default, kind)


if __name__ == "__main__":
    unittest.main()
