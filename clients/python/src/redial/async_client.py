"""The client: submits calls and tasks to a gateway, and waits for them.

async with AsyncClient() as client:
    call = await client.call("book_flight", {"to": "LIS"}, key="order-17")
    print(await call.result(timeout=30))
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from redial import _batch, _events
from redial._http import Transport, check_url, path_of
from redial._limits import as_json
from redial._pages import Page, pages
from redial.errors import CallCancelled, CallFailed, CallUnknown, RedialError, TaskCancelled, TaskFailed, Timeout
from redial.redrives import AsyncRedrive
from redial.tool import Retry, Seconds, milliseconds, retry_as_json
from redial.views import CallView, Event, TaskView

URL = "http://127.0.0.1:8700"
"""Where `redial dev` has its gateway."""
LONGEST_WAIT = 30.0
"""Seconds that one request waits; a longer wait takes several."""
MOST_WAITED = 1000
"""Calls that one request can wait for."""
PAUSE = 0.1
"""Seconds between two requests of one wait that are answered at once."""

View = TypeVar("View", CallView, TaskView)


@dataclass(frozen=True)
class Submission:
    """A call to submit. `timeout` and `retry` override what the tool says; `key` makes it safe to submit it again."""

    tool: str
    arguments: Mapping[str, Any] | str
    key: str | None = None
    conversation: str | None = None
    timeout: Seconds | None = None
    retry: Retry | None = None

    def to_json(self) -> dict[str, Any]:
        """As `Submission` of the API, with a key in any case: so it can be sent again when an answer was lost. Raises TypeError
        or ValueError for what cannot be sent."""
        arguments = as_json(self.arguments, f"the arguments of {self.tool}")
        body: dict[str, Any] = {"tool": self.tool, "arguments": arguments, "key": _key(self.key)}
        if self.conversation is not None:
            body["conversation"] = self.conversation
        if self.timeout is not None:
            body["timeout_ms"] = milliseconds(self.timeout, "timeout")
        if self.retry is not None:
            body["retry"] = retry_as_json(self.retry)
        return body


def _key(key: str | None) -> str:
    """The key of a submission: that of the program, or a random one."""
    if key is None:
        return str(uuid.uuid4())
    if not isinstance(key, str) or not key:
        raise ValueError(f"key is {key!r}; allowed: a text of 1 to 200 bytes, or None for a random key")
    return key


class AsyncClient:
    """A client of a gateway. Without arguments it takes `REDIAL_URL` and `REDIAL_TOKEN` from the environment.

    `timeout` is how many seconds one request may take, beside those that the gateway is asked to wait; `patience` how many
    seconds a request is tried again while no gateway answers. Each submission has a key, its own or a random one, so that trying
    again submits nothing twice. Raises ValueError for a wrong address.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        patience: float = 30.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        environment = os.environ if environment is None else environment
        if url:
            check_url("url", url)
        else:
            url = environment.get("REDIAL_URL") or URL
            check_url("REDIAL_URL", url)
        self._transport = Transport(url, token or environment.get("REDIAL_TOKEN"), timeout, patience)

    def __repr__(self) -> str:
        # Without the token, and without what the address may say of a login.
        return f"{type(self).__name__}({self._transport.url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections."""
        await self._transport.close()

    # ---- Calls ----

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        key: str | None = None,
        conversation: str | None = None,
        timeout: Seconds | None = None,
        retry: Retry | None = None,
    ) -> AsyncCall:
        """Submits a call. It is on record when this returns. `arguments` may be the text that a model wrote. `timeout` is how
        long one attempt may take. Raises `CallRefused` if the arguments break the tool's schema."""
        body = Submission(tool, arguments, key, conversation, timeout, retry).to_json()
        answer = await self._transport.json("POST", path_of("calls"), body)
        return AsyncCall(self._transport, str(answer["call"]))

    async def run(self, tool: str, arguments: Mapping[str, Any] | str, *, key: str | None = None, wait: float = 60.0) -> Any:
        """Submits a call, waits at most so many seconds for its end, and returns its result. Raises what `call` and
        `result` of a call raise."""
        body, until = Submission(tool, arguments, key).to_json(), time.monotonic() + wait
        first = min(wait, LONGEST_WAIT)
        answer = await self._transport.json("POST", path_of("calls"), body, wait=first)
        call = AsyncCall(self._transport, str(answer["call"]))
        if "status" not in answer and CallView(answer).ended:
            return result_of(CallView(answer))
        return await call.result(until - time.monotonic())

    async def calls(self, submissions: Iterable[Submission | tuple[str, Mapping[str, Any]]]) -> list[AsyncCall]:
        """Submits any number of calls; the results are in their order. A call that was not accepted has an `error`; one with
        `ConnectionFailed` may have been, and can only be submitted again safely under a key of your own."""
        bodies = [(one if isinstance(one, Submission) else Submission(*one)).to_json() for one in submissions]
        results = await _batch.submit(self._transport, bodies)
        return [AsyncCall(self._transport, call, error) for call, error in results]

    async def wait(
        self, calls: Sequence[AsyncCall], *, for_: Literal["any", "all"] = "all", timeout: float | None = None
    ) -> list[AsyncCall]:
        """Waits until any or all of the calls have ended; returns those that have. Raises `Timeout`."""
        if for_ == "any" and len(calls) > MOST_WAITED:
            raise ValueError(f"{len(calls)} calls were given; allowed with for_='any': {MOST_WAITED}")
        until = None if timeout is None else time.monotonic() + timeout
        ended: set[str] = set()
        for start in range(0, len(calls), MOST_WAITED):
            part = [call.id for call in calls[start : start + MOST_WAITED]]
            ended.update(await self._wait_for(part, for_, until))
        return [call for call in calls if call.id in ended]

    async def _wait_for(self, ids: list[str], until_what: str, until: float | None) -> list[str]:
        body = {"calls": ids, "until": until_what}
        while True:
            wait = LONGEST_WAIT if until is None else min(LONGEST_WAIT, max(0.0, until - time.monotonic()))
            began = time.monotonic()
            response = await self._transport.send("POST", path_of("calls", "wait"), body, wait=wait)
            answer = response.json()
            if answer["done"]:
                return [str(one["call"]) for one in answer["calls"] if one["ended"]]
            if until is not None and time.monotonic() >= until:
                open_ = sum(not one["ended"] for one in answer["calls"])
                raise Timeout(f"{open_} of {len(ids)} calls have not ended in time; they go on")
            await _pause(began, wait)

    def get_call(self, id: str) -> AsyncCall:
        """The call with this id, without asking for it."""
        return AsyncCall(self._transport, id)

    def list_calls(self, **filters: Any) -> AsyncIterator[CallView]:
        """The calls that fit the filters, page by page; the filters are those of `GET /v1/calls`. A filter that takes several
        values takes a list."""
        return pages(self._transport, path_of("calls"), "calls", filters, CallView)

    async def redrive(
        self, *, dry_run: bool = False, rate: int | None = None, id: str | None = None, **filters: Any
    ) -> AsyncRedrive:
        """Runs all ended calls again that match the filters, which are those of `POST /v1/redrives`; with `dry_run` it counts
        them. `rate` is how many per second at most. The same `id`, a UUID, is the same redrive."""
        body = {"redrive": str(uuid.uuid4()) if id is None else id, "filter": filters, "dry_run": dry_run, "rate": rate}
        return AsyncRedrive(self._transport, str((await self._transport.json("POST", path_of("redrives"), body))["redrive"]))

    def get_redrive(self, id: str) -> AsyncRedrive:
        """The redrive with this id, without asking for it."""
        return AsyncRedrive(self._transport, id)

    # ---- Tasks ----

    async def task(
        self,
        input: str,
        agent: str | Mapping[str, Any],
        *,
        conversation: str | None = None,
        key: str | None = None,
        **more: Any,
    ) -> AsyncTask:
        """Submits a task: a request that an agent works on with tools. `agent` is the name of one, or its whole definition.
        `more` are other fields of `TaskSubmission`."""
        body: dict[str, Any] = {"input": input, "agent": agent, "key": _key(key), **more}
        if conversation is not None:
            body["conversation"] = conversation
        answer = await self._transport.json("POST", path_of("tasks"), body)
        return AsyncTask(self._transport, str(answer["task"]))

    def get_task(self, id: str) -> AsyncTask:
        """The task with this id, without asking for it."""
        return AsyncTask(self._transport, id)

    def list_tasks(self, **filters: Any) -> AsyncIterator[TaskView]:
        """The tasks that fit the filters, page by page."""
        return pages(self._transport, path_of("tasks"), "tasks", filters, TaskView)

    # ---- What there is ----

    def tools(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """The tools that this tenant may use, each with its schema, and whether a worker serves it."""
        return pages(self._transport, path_of("tools"), "tools", filters, dict)

    def agents(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """The agents that this tenant may use."""
        return pages(self._transport, path_of("agents"), "agents", filters, dict)

    def workers(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """The workers; for operators."""
        return pages(self._transport, path_of("workers"), "workers", filters, dict)

    def messages(self, conversation: str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """The messages of a conversation, in order."""
        return pages(self._transport, path_of("conversations", conversation, "messages"), "messages", filters, dict)

    def events(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """The calls and tasks of this tenant that end, as they end, without an end of its own. After the loss of a gateway
        there is no gap, and some are told again."""
        return _events.events(self._transport, path_of("events"), after)

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any other request, such as `request("GET", "/v1/statistics")`; the JSON of the answer. `body` is sent as JSON, `query`
        as the query of the path. It is not sent twice unless it is a GET."""
        for name in ("json", "data"):
            if name in query:
                raise TypeError(f"request() has no parameter {name!r}; allowed: `body`, which is sent as JSON")
        return await self._transport.json(method, path, body, query=query, again=method.upper() == "GET")

    async def page(self, path: str, name: str, **query: Any) -> Page:
        """One page of a list, for programs that show pages: the entries, and the token of the next page."""
        return await Page.get(self._transport, path, name, query)


class AsyncCall:
    """A call that was submitted."""

    def __init__(self, transport: Transport, id: str | None, error: RedialError | None = None) -> None:
        self._transport = transport
        self._id = id
        self.error = error
        """Why it was not accepted, as one of several that were submitted together."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._id!r})"

    @property
    def id(self) -> str:
        """Its id. Raises the error of a call that was not accepted and is not on record."""
        if self._id is None:
            raise self.error or RuntimeError("the call has no id")
        return self._id

    async def view(self) -> CallView:
        """The call as it is on record now."""
        return CallView(await self._transport.json("GET", path_of("calls", self.id)))

    async def wait(self, timeout: float | None = None) -> CallView:
        """Waits for the end of the call, whatever it is. Raises `Timeout` after so many seconds; the call goes on."""
        return await _ended(self._transport, "call", self.id, CallView, timeout)

    async def result(self, timeout: float | None = None) -> Any:
        """Waits for the result. Raises `CallFailed`, `CallUnknown` or `CallCancelled` if there is none, `CallRefused` if the
        call was not accepted, and `Timeout` after so many seconds; the call goes on then."""
        if self.error is not None:
            raise self.error
        return result_of(await self.wait(timeout))

    async def cancel(self) -> str:
        """Cancels the call; returns its state. A running tool is asked to stop."""
        answer = await self._transport.json("POST", path_of("calls", self.id, "cancel"))
        return str(answer["state"])

    async def redrive(self, arguments: Mapping[str, Any] | None = None) -> AsyncCall:
        """Runs an ended call again, as a new call; with other arguments, if some are given. Of an `unknown` call that is the
        decision that it may run again. Raises `CallRefused` if the arguments break the tool's schema, and `Conflict` if the
        call may not run again."""
        body = {} if arguments is None else {"arguments": as_json(arguments, "the arguments")}
        answer = await self._transport.json("POST", path_of("calls", self.id, "redrive"), body)
        return AsyncCall(self._transport, str(answer["call"]))

    def events(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """What happens to the call, to its end; after the loss of a gateway without a gap or a double."""
        return _events.events(self._transport, path_of("calls", self.id, "events"), after)


class AsyncTask:
    """A task that was submitted."""

    def __init__(self, transport: Transport, id: str) -> None:
        self._transport = transport
        self.id = id
        """Its id."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    async def view(self) -> TaskView:
        """The task as it is on record now."""
        return TaskView(await self._transport.json("GET", path_of("tasks", self.id)))

    async def wait(self, timeout: float | None = None) -> TaskView:
        """Waits for the end of the task, whatever it is. Raises `Timeout` after so many seconds; the task goes on."""
        return await _ended(self._transport, "task", self.id, TaskView, timeout)

    async def result(self, timeout: float | None = None) -> str:
        """Waits for the answer. Raises `TaskFailed` or `TaskCancelled` if there is none, and `Timeout` after so many seconds;
        the task goes on then."""
        return answer_of(await self.wait(timeout))

    async def steps(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """The steps that are on record after this one, each with the messages that it wrote, in `messages`."""
        while True:
            report = await self._transport.json("GET", path_of("tasks", self.id, "steps"), query={"after_step": after})
            for step in report["steps"]:
                after = int(step["step"])
                yield step
            if not report.get("more") or not report["steps"]:
                return

    async def cancel(self) -> str:
        """Cancels the task; returns its state. Its calls are cancelled soon after."""
        answer = await self._transport.json("POST", path_of("tasks", self.id, "cancel"))
        return str(answer["state"])

    def events(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """What happens in the task, to its end; after the loss of a gateway without a gap or a double. Live text of a model has
        no id, and is sent whole again after a gap."""
        return _events.events(self._transport, path_of("tasks", self.id, "events"), after)


async def _ended(transport: Transport, what: str, id: str, kind: type[View], timeout: float | None) -> View:
    """Waits for the end of a call or a task, as `what` says."""
    path = path_of(f"{what}s", id)
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        wait = LONGEST_WAIT if until is None else min(LONGEST_WAIT, max(0.0, until - time.monotonic()))
        began = time.monotonic()
        view = kind(await transport.json("GET", path, wait=wait))
        if view.ended:
            return view
        if until is not None and time.monotonic() >= until:
            raise Timeout(f"{what} {id} is {view.state} after {timeout:g} s, and goes on")
        await _pause(began, wait)


async def _pause(began: float, wait: float) -> None:
    """Before the same is asked again: a gateway that shuts down answers at once, and so does one that is to wait for less than a
    second."""
    if time.monotonic() - began < min(wait, PAUSE):
        await asyncio.sleep(PAUSE)


def result_of(view: CallView) -> Any:
    """The result of an ended call, or the error that it ended with."""
    if view.state == "succeeded":
        return view.output
    kinds = {"unknown": CallUnknown, "cancelled": CallCancelled}
    raise kinds.get(view.state, CallFailed)(view)


def answer_of(view: TaskView) -> str:
    """The answer of an ended task, or the error that it ended with."""
    if view.state == "succeeded":
        return view.answer or ""
    raise (TaskCancelled if view.state == "cancelled" else TaskFailed)(view)
