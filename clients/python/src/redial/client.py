"""The same client for programs without a loop.

client = Client()
call = client.call("book_flight", {"to": "LIS"}, key="order-17")
print(call.result(timeout=30))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, Literal, TypeVar

from redial.async_client import AsyncCall, AsyncClient, AsyncTask, Submission
from redial.errors import RedialError
from redial.redrives import AsyncRedrive, RedriveView
from redial.tool import Retry, Seconds
from redial.views import CallView, Event, TaskView

T = TypeVar("T")


class _Loop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stopped = False
        # Held while something is given to the loop, so that nothing comes after its end.
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="redial-client", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the end of something in the loop."""
        with self._lock:
            if self._stopped:
                work.close()
                raise RuntimeError("the client is closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError("the client was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    @property
    def stopped(self) -> bool:
        """True after its end."""
        return self._stopped

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterates over something in the loop. It ends there when the iterator is closed here."""

        async def following() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        close = getattr(items, "aclose", None)
        try:
            while (item := self.run(following())) is not None:
                yield item[0]
        finally:
            # An iterator may outlive its client, which has ended what it follows.
            if close is not None and not self._stopped:
                self.run(close())

    def stop(self) -> None:
        """Ends what other threads wait for, what is iterated over, and the thread."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        ended.result()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class Client:
    """A client of a gateway, for programs without a loop. Without arguments it takes `REDIAL_URL` and `REDIAL_TOKEN` from the
    environment. It may be used by several threads.

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
        self._loop = _Loop()

        async def make() -> AsyncClient:
            return AsyncClient(url, token=token, timeout=timeout, patience=patience, environment=environment)

        try:
            self._client = self._loop.run(make())
        except BaseException:
            self._loop.stop()
            raise

    def __repr__(self) -> str:
        return repr(self._client).removeprefix("Async")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        if not self._loop.stopped:
            self._loop.run(self._client.close())
            self._loop.stop()

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        key: str | None = None,
        conversation: str | None = None,
        timeout: Seconds | None = None,
        retry: Retry | None = None,
    ) -> Call:
        """Submits a call. It is on record when this returns. `arguments` may be the text that a model wrote. `timeout` is how
        long one attempt may take. Raises `CallRefused` if the arguments break the tool's schema."""
        options: dict[str, Any] = {"key": key, "conversation": conversation, "timeout": timeout, "retry": retry}
        return Call(self._loop, self._loop.run(self._client.call(tool, arguments, **options)))

    def run(self, tool: str, arguments: Mapping[str, Any] | str, *, key: str | None = None, wait: float = 60.0) -> Any:
        """Submits a call, waits at most so many seconds for its end, and returns its result. Raises what `call` and
        `result` of a call raise."""
        return self._loop.run(self._client.run(tool, arguments, key=key, wait=wait))

    def calls(self, submissions: Iterable[Submission | tuple[str, Mapping[str, Any]]]) -> list[Call]:
        """Submits any number of calls; the results are in their order. A call that was not accepted has an `error`; one with
        `ConnectionFailed` may have been, and can only be submitted again safely under a key of your own."""
        return [Call(self._loop, call) for call in self._loop.run(self._client.calls(submissions))]

    def wait(self, calls: Sequence[Call], *, for_: Literal["any", "all"] = "all", timeout: float | None = None) -> list[Call]:
        """Waits until any or all of the calls have ended; returns those that have. Raises `Timeout`."""
        inner = self._client.wait([call.inner for call in calls], for_=for_, timeout=timeout)
        ended = {call.id for call in self._loop.run(inner)}
        return [call for call in calls if call.id in ended]

    def get_call(self, id: str) -> Call:
        """The call with this id, without asking for it."""
        return Call(self._loop, self._client.get_call(id))

    def list_calls(self, **filters: Any) -> Iterator[CallView]:
        """The calls that fit the filters, page by page; the filters are those of `GET /v1/calls`. A filter that takes several
        values takes a list."""
        return self._loop.iterate(self._client.list_calls(**filters))

    def redrive(self, *, dry_run: bool = False, rate: int | None = None, id: str | None = None, **filters: Any) -> Redrive:
        """Runs all ended calls again that match the filters, which are those of `POST /v1/redrives`; with `dry_run` it counts
        them. `rate` is how many per second at most. The same `id`, a UUID, is the same redrive."""
        return Redrive(self._loop, self._loop.run(self._client.redrive(dry_run=dry_run, rate=rate, id=id, **filters)))

    def get_redrive(self, id: str) -> Redrive:
        """The redrive with this id, without asking for it."""
        return Redrive(self._loop, self._client.get_redrive(id))

    def task(
        self,
        input: str,
        agent: str | Mapping[str, Any],
        *,
        conversation: str | None = None,
        key: str | None = None,
        **more: Any,
    ) -> Task:
        """Submits a task: a request that an agent works on with tools. `agent` is the name of one, or its whole definition.
        `more` are other fields of `TaskSubmission`."""
        return Task(self._loop, self._loop.run(self._client.task(input, agent, conversation=conversation, key=key, **more)))

    def get_task(self, id: str) -> Task:
        """The task with this id, without asking for it."""
        return Task(self._loop, self._client.get_task(id))

    def list_tasks(self, **filters: Any) -> Iterator[TaskView]:
        """The tasks that fit the filters, page by page."""
        return self._loop.iterate(self._client.list_tasks(**filters))

    def tools(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """The tools that this tenant may use, each with its schema, and whether a worker serves it."""
        return self._loop.iterate(self._client.tools(**filters))

    def agents(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """The agents that this tenant may use."""
        return self._loop.iterate(self._client.agents(**filters))

    def workers(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """The workers; for operators."""
        return self._loop.iterate(self._client.workers(**filters))

    def messages(self, conversation: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """The messages of a conversation, in order."""
        return self._loop.iterate(self._client.messages(conversation, **filters))

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """The calls and tasks of this tenant that end, as they end, without an end of its own. After the loss of a gateway
        there is no gap, and some are told again."""
        return self._loop.iterate(self._client.events(after=after))

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any other request, such as `request("GET", "/v1/statistics")`; the JSON of the answer. `body` is sent as JSON, `query`
        as the query of the path. It is not sent twice unless it is a GET."""
        return self._loop.run(self._client.request(method, path, body, **query))


class Call:
    """A call that was submitted; see `AsyncCall`."""

    def __init__(self, loop: _Loop, inner: AsyncCall) -> None:
        self._loop = loop
        self.inner = inner
        """The same for programs with a loop."""

    def __repr__(self) -> str:
        return repr(self.inner).removeprefix("Async")

    @property
    def id(self) -> str:
        """Its id. Raises the error of a call that was not accepted and is not on record."""
        return self.inner.id

    @property
    def error(self) -> RedialError | None:
        """Why it was not accepted, as one of several that were submitted together."""
        return self.inner.error

    def view(self) -> CallView:
        """The call as it is on record now."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> CallView:
        """Waits for the end of the call, whatever it is. Raises `Timeout` after so many seconds; the call goes on."""
        return self._loop.run(self.inner.wait(timeout))

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result. Raises `CallFailed`, `CallUnknown` or `CallCancelled` if there is none, `CallRefused` if the
        call was not accepted, and `Timeout` after so many seconds; the call goes on then."""
        return self._loop.run(self.inner.result(timeout))

    def cancel(self) -> str:
        """Cancels the call; returns its state. A running tool is asked to stop."""
        return self._loop.run(self.inner.cancel())

    def redrive(self, arguments: Mapping[str, Any] | None = None) -> Call:
        """Runs an ended call again, as a new call; with other arguments, if some are given. Of an `unknown` call that is the
        decision that it may run again. Raises `CallRefused` if the arguments break the tool's schema, and `Conflict` if the
        call may not run again."""
        return Call(self._loop, self._loop.run(self.inner.redrive(arguments)))

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """What happens to the call, to its end; after the loss of a gateway without a gap or a double."""
        return self._loop.iterate(self.inner.events(after=after))


class Redrive:
    """A redrive of all calls that match a filter; see `AsyncRedrive`."""

    def __init__(self, loop: _Loop, inner: AsyncRedrive) -> None:
        self._loop = loop
        self.inner = inner
        """The same for programs with a loop."""

    def __repr__(self) -> str:
        return repr(self.inner).removeprefix("Async")

    @property
    def id(self) -> str:
        """Its id."""
        return self.inner.id

    def view(self) -> RedriveView:
        """How far it is now."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> RedriveView:
        """Waits for its end. Raises `Timeout` after so many seconds; it goes on."""
        return self._loop.run(self.inner.wait(timeout))

    def cancel(self) -> RedriveView:
        """Stops it. Calls that run again already are not stopped."""
        return self._loop.run(self.inner.cancel())


class Task:
    """A task that was submitted; see `AsyncTask`."""

    def __init__(self, loop: _Loop, inner: AsyncTask) -> None:
        self._loop = loop
        self.inner = inner
        """The same for programs with a loop."""

    def __repr__(self) -> str:
        return repr(self.inner).removeprefix("Async")

    @property
    def id(self) -> str:
        """Its id."""
        return self.inner.id

    def view(self) -> TaskView:
        """The task as it is on record now."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> TaskView:
        """Waits for the end of the task, whatever it is. Raises `Timeout` after so many seconds; the task goes on."""
        return self._loop.run(self.inner.wait(timeout))

    def result(self, timeout: float | None = None) -> str:
        """Waits for the answer. Raises `TaskFailed` or `TaskCancelled` if there is none, and `Timeout` after so many seconds;
        the task goes on then."""
        return self._loop.run(self.inner.result(timeout))

    def steps(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """The steps that are on record after this one, each with the messages that it wrote, in `messages`."""
        return self._loop.iterate(self.inner.steps(after))

    def cancel(self) -> str:
        """Cancels the task; returns its state. Its calls are cancelled soon after."""
        return self._loop.run(self.inner.cancel())

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """What happens in the task, to its end; after the loss of a gateway without a gap or a double. Live text of a model has
        no id, and is sent whole again after a gap."""
        return self._loop.iterate(self.inner.events(after=after))
