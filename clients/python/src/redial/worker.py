"""The worker: runs functions as tools for Redial.

from redial import Worker

worker = Worker()

@worker.tool(effect="read")
def add(a: int, b: int) -> int:
    \"\"\"Adds two numbers.\"\"\"
    return a + b

if __name__ == "__main__":
    worker.run()
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, overload

from redial import _version
from redial._core import Settings
from redial._link import Address, Refused
from redial._session import Session
from redial.tool import (
    Effect,
    InvalidTool,
    Offload,
    Retry,
    RetryBudget,
    Seconds,
    Tool,
    budget_as_json,
    milliseconds,
    retry_as_json,
    tool_of,
)

P = ParamSpec("P")
R = TypeVar("R")

MODELS = "models"
"""The pool of models, and the prefix of their names, are not for tools."""
LEAVES = 5.0
"""Seconds after the drain in which the process ends by itself; a function that blocks it does not keep it longer."""

NO_ADDRESS = 'REDIAL_NATS_URL is not set; eval "$(redial env)" in the folder of redial dev sets it'
"""What a worker that was given no address says while it cannot connect."""

Variables = Mapping[str, str]


class Worker:
    """Runs tools until SIGTERM. Any number of workers may run side by side.

    What is not given is read from the environment, as `redial env` prints it: `REDIAL_NATS_URL`,
    `REDIAL_NATS_INBOX_PREFIX`, `REDIAL_WORKER_NAME` and `REDIAL_WORKER_POOLS`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str | None = None,
        pools: Iterable[str] | None = None,
        inbox_prefix: str | None = None,
        credentials: str | os.PathLike[str] | None = None,
        slots: int | Mapping[str, int] = 32,
        grace: float = 30.0,
        secrets: Iterable[str] = (),
        host: str | None = None,
        environment: Variables | None = None,
    ) -> None:
        """`url` is the address of NATS; `name` the worker's identity, and `pools` the pools of its credentials. `slots` is how
        many calls of each pool run at once, or of each that a dictionary names. `grace` is how many seconds running calls get to
        finish after SIGTERM. No text of `secrets` leaves the worker in a result or an error. Raises ValueError for a wrong
        address."""

        variables = os.environ if environment is None else environment

        def setting(given: str | None, variable: str, default: str) -> str:
            return given or variables.get(variable) or default

        self.name = Settings.identity(setting(name, "REDIAL_WORKER_NAME", "python"))
        listed = variables.get("REDIAL_WORKER_POOLS", "").split(",") if pools is None else pools
        known = setting(url, "REDIAL_NATS_URL", "")
        address = Address(
            known or "nats://127.0.0.1:4222",
            self.name,
            setting(inbox_prefix, "REDIAL_NATS_INBOX_PREFIX", "_INBOX"),
            os.fspath(credentials) if credentials is not None else variables.get("REDIAL_NATS_CREDENTIALS"),
            hint="" if known else NO_ADDRESS,
        )
        self._settings = Settings(
            Settings.new_id(self.name),
            address,
            self.name,
            tuple(pool.strip() for pool in listed if pool.strip()),
            host,
            grace,
            tuple(secrets),
        )
        # A wrong address is refused here, and not only when the worker connects.
        address.options()
        self._slots = slots
        self._tools: dict[str, Tool] = {}
        self._session: Session | None = None
        self._stops = 0

    @property
    def id(self) -> str:
        """The id under which attempts of this worker are on record."""
        return self._settings.id

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by their names."""
        return dict(self._tools)

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "unsafe",
        timeout: Seconds = 30.0,
        retry: Retry | None = None,
        retry_budget: RetryBudget | None = None,
        pool: str = "default",
        offload: Offload | None = None,
        polling: bool = False,
        sequential: bool = False,
        repairs: bool = True,
        parameters: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "unsafe",
        timeout: Seconds = 30.0,
        retry: Retry | None = None,
        retry_budget: RetryBudget | None = None,
        pool: str = "default",
        offload: Offload | None = None,
        polling: bool = False,
        sequential: bool = False,
        repairs: bool = True,
        parameters: Mapping[str, Any] | None = None,
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Makes a function a tool, and returns it unchanged.

        Name, description and schema come from the function: its name, its docstring, and the annotations of its parameters,
        unless they are given. A parameter with the type `Context` gets the context of the attempt.

        `effect` is what the tool does to the world. With `read` and `idempotent` an attempt with an unknown end is repeated, with
        `keyed` under the same `Context.idempotency_key`, with `unsafe`, the default, never. `timeout` is how long one attempt may
        take. A coroutine runs in the loop of the worker; a blocking function in a thread, or, with `offload="process"`, in a
        process, which computes beside others and is killed when the attempt is over.
        """

        def settings() -> dict[str, Any]:
            found: dict[str, Any] = {"effect": effect, "pool": pool, "timeout_ms": milliseconds(timeout, "timeout")}
            if retry is not None:
                found["retry"] = retry_as_json(retry)
            if retry_budget is not None:
                found["retry_budget"] = budget_as_json(retry_budget)
            found.update({k: True for k, v in {"polling": polling, "sequential": sequential}.items() if v})
            if not repairs:
                found["repairs"] = False
            return found

        def add(function: Callable[P, R]) -> Callable[P, R]:
            about = {"name": name, "description": description, "parameters": parameters}
            self._add(tool_of(function, offload=offload, settings=settings, **about))  # type: ignore[arg-type]
            return function

        return add if function is None else add(function)

    def _add(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise InvalidTool(f"tool {tool.name} is declared twice")
        if tool.pool == MODELS or tool.name.startswith("model-"):
            raise InvalidTool(f"tool {tool.name}: pool {MODELS!r} and names that start with 'model-' are for models")
        allowed = ("read", "idempotent", "keyed", "unsafe")
        if tool.spec["effect"] not in allowed:
            raise InvalidTool(f"tool {tool.name}: effect is {tool.spec['effect']!r}; allowed: {', '.join(allowed)}")
        if tool.spec["timeout_ms"] < 1:
            raise InvalidTool(f"tool {tool.name}: timeout is less than 1 ms")
        if self._settings.pools and tool.pool not in self._settings.pools:
            pools = ", ".join(self._settings.pools)
            raise InvalidTool(f"tool {tool.name}: its pool is {tool.pool!r}; this worker's pools are: {pools}")
        self._tools[tool.name] = tool

    def _limits(self) -> dict[str, int]:
        """How many calls of each pool run at once."""
        slots = self._slots
        pools = sorted({tool.pool for tool in self._tools.values()})
        limits = {pool: slots if isinstance(slots, int) else slots.get(pool, 32) for pool in pools}
        for pool, limit in limits.items():
            if not 1 <= limit <= 100_000:
                raise InvalidTool(f"slots of pool {pool} is {limit}; allowed: 1 to 100000")
        return limits

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, then drains: running calls finish within the grace period, the rest is given back. A
        second signal ends the grace period. Exits with a message if NATS or the dispatchers refuse this worker."""
        if not logging.getLogger().handlers:
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
            logging.getLogger("httpx").setLevel(logging.WARNING)
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not in the loop: it would not come to it while a tool blocks the loop.
            signal.signal(number, lambda *_: self.stop())
        try:
            asyncio.run(self.serve(then=_leave))
        except Refused as refusal:
            sys.exit(f"error: {refusal}")

    async def serve(self, on_ready: Callable[[], None] | None = None, then: Callable[[], None] | None = None) -> None:
        """Works in this loop until `stop`, or until this is cancelled, then drains. Coroutines among the tools run in this loop;
        the protocol has a thread of its own. `on_ready` is called, from another thread, once the tools can be called."""
        if not self._tools:
            raise InvalidTool("the worker has no tools; at least one is needed")
        loop = asyncio.get_running_loop()
        if self._session is not None:
            self._settings = replace(self._settings, id=Settings.new_id(self.name))
        version = f"python-{_version.VERSION}"
        session = Session(self._settings, self._tools, self._limits(), version, on_ready or (lambda: None))
        self._session = session
        # A signal may have come before.
        for _ in range(self._stops):
            session.stop()
        self._stops = 0
        ended: asyncio.Future[None] = loop.create_future()

        def work() -> None:
            error: BaseException | None = None
            try:
                session.run(loop)
            except BaseException as raised:
                error = raised
            try:
                if then is not None:
                    then()
            finally:
                loop.call_soon_threadsafe(_end, ended, error)

        threading.Thread(target=work, name="redial-worker", daemon=True).start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            session.stop()
            await ended
            raise

    def stop(self) -> None:
        """Begins to drain; from any thread. The second time the grace period ends at once."""
        if self._session is None:
            self._stops += 1
        else:
            self._session.stop()


def _end(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)


def _leave() -> None:
    """Ends the process soon, even if a tool blocks it."""

    def leave() -> None:
        logging.getLogger("redial.worker").warning("Left functions behind that have not returned")
        logging.shutdown()
        os._exit(0)

    timer = threading.Timer(LEAVES, leave)
    timer.daemon = True
    timer.start()
