"""The same client for programs without a loop.

client = Client()
call = client.call("book_flight", {"to": "LIS"}, key="order-17")
print(call.result(timeout=30))
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
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
        threading.Thread(target=self._loop.run_forever, name="redial-client", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the end of something in the loop."""
        if self._stopped:
            work.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
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
        """Ends what is iterated over, and the thread."""
        self.run(self._loop.shutdown_asyncgens())
        self._stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)


class Client:
    """A client of a gateway; see `AsyncClient`, which it is made of. It may be used by several threads."""

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
        """See `AsyncClient.call`."""
        options: dict[str, Any] = {"key": key, "conversation": conversation, "timeout": timeout, "retry": retry}
        return Call(self._loop, self._loop.run(self._client.call(tool, arguments, **options)))

    def run(self, tool: str, arguments: Mapping[str, Any] | str, *, key: str | None = None, wait: float = 60.0) -> Any:
        """See `AsyncClient.run`."""
        return self._loop.run(self._client.run(tool, arguments, key=key, wait=wait))

    def calls(self, submissions: Iterable[Submission | tuple[str, Mapping[str, Any]]]) -> list[Call]:
        """See `AsyncClient.calls`."""
        return [Call(self._loop, call) for call in self._loop.run(self._client.calls(submissions))]

    def wait(self, calls: Sequence[Call], *, for_: Literal["any", "all"] = "all", timeout: float | None = None) -> list[Call]:
        """See `AsyncClient.wait`."""
        inner = self._client.wait([call.inner for call in calls], for_=for_, timeout=timeout)
        ended = {call.id for call in self._loop.run(inner)}
        return [call for call in calls if call.id in ended]

    def get_call(self, id: str) -> Call:
        """See `AsyncClient.get_call`."""
        return Call(self._loop, self._client.get_call(id))

    def list_calls(self, **filters: Any) -> Iterator[CallView]:
        """See `AsyncClient.list_calls`."""
        return self._loop.iterate(self._client.list_calls(**filters))

    def redrive(self, *, dry_run: bool = False, rate: int | None = None, id: str | None = None, **filters: Any) -> Redrive:
        """See `AsyncClient.redrive`."""
        return Redrive(self._loop, self._loop.run(self._client.redrive(dry_run=dry_run, rate=rate, id=id, **filters)))

    def get_redrive(self, id: str) -> Redrive:
        """See `AsyncClient.get_redrive`."""
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
        """See `AsyncClient.task`."""
        return Task(self._loop, self._loop.run(self._client.task(input, agent, conversation=conversation, key=key, **more)))

    def get_task(self, id: str) -> Task:
        """See `AsyncClient.get_task`."""
        return Task(self._loop, self._client.get_task(id))

    def list_tasks(self, **filters: Any) -> Iterator[TaskView]:
        """See `AsyncClient.list_tasks`."""
        return self._loop.iterate(self._client.list_tasks(**filters))

    def tools(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """See `AsyncClient.tools`."""
        return self._loop.iterate(self._client.tools(**filters))

    def agents(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """See `AsyncClient.agents`."""
        return self._loop.iterate(self._client.agents(**filters))

    def workers(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """See `AsyncClient.workers`."""
        return self._loop.iterate(self._client.workers(**filters))

    def messages(self, conversation: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """See `AsyncClient.messages`."""
        return self._loop.iterate(self._client.messages(conversation, **filters))

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """See `AsyncClient.events`."""
        return self._loop.iterate(self._client.events(after=after))

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """See `AsyncClient.request`."""
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
        """See `AsyncCall.view`."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> CallView:
        """See `AsyncCall.wait`."""
        return self._loop.run(self.inner.wait(timeout))

    def result(self, timeout: float | None = None) -> Any:
        """See `AsyncCall.result`."""
        return self._loop.run(self.inner.result(timeout))

    def cancel(self) -> str:
        """See `AsyncCall.cancel`."""
        return self._loop.run(self.inner.cancel())

    def redrive(self, arguments: Mapping[str, Any] | None = None) -> Call:
        """See `AsyncCall.redrive`."""
        return Call(self._loop, self._loop.run(self.inner.redrive(arguments)))

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """See `AsyncCall.events`."""
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
        """See `AsyncRedrive.view`."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> RedriveView:
        """See `AsyncRedrive.wait`."""
        return self._loop.run(self.inner.wait(timeout))

    def cancel(self) -> RedriveView:
        """See `AsyncRedrive.cancel`."""
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
        """See `AsyncTask.view`."""
        return self._loop.run(self.inner.view())

    def wait(self, timeout: float | None = None) -> TaskView:
        """See `AsyncTask.wait`."""
        return self._loop.run(self.inner.wait(timeout))

    def result(self, timeout: float | None = None) -> str:
        """See `AsyncTask.result`."""
        return self._loop.run(self.inner.result(timeout))

    def steps(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """See `AsyncTask.steps`."""
        return self._loop.iterate(self.inner.steps(after))

    def cancel(self) -> str:
        """See `AsyncTask.cancel`."""
        return self._loop.run(self.inner.cancel())

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """See `AsyncTask.events`."""
        return self._loop.iterate(self.inner.events(after=after))
