"""A worker of a run of `./dev chaos`, in Python: the same tools as those of `src/worker.rs`, which do what their arguments say.

Of the scripted tools some are coroutines, some run in threads, and some in processes. The script imports the package of this
repository, and prints its id first.
"""

import argparse
import asyncio
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "clients/python/src"))

from redial import BusinessRule, Context, InvalidArguments, Retry, Stopped, ToolError, Violation, Worker
from redial.tool import Effect, Offload

RETRY = Retry(initial=0.05, factor=2.0, cap=0.3, max_attempts=20, deadline=120)
THREADS, PROCESSES = {"idempotent", "poison"}, {"keyed"}
FAILED = {one.error_class: one for one in ToolError.__subclasses__()}


class Internal(ToolError):
    """Told to fail as a bug of Redial would."""

    error_class = "internal"


class Recorder:
    """Writes into the ledger what one execution does; see `redial_testkit::Ledger`."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.execution, self.done = ctx, uuid.uuid4(), False
        self.ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND)

    def note(self, event: str) -> None:
        now, ctx = time.time_ns() // 1000, self.ctx
        line = f"{now} {event} {ctx.call} {ctx.attempt} {ctx.idempotency_key} {self.execution}\n"
        os.write(self.ledger, line.encode())
        self.done = self.done or event == "Ended"

    def __enter__(self) -> "Recorder":
        self.note("Started")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self.done:
                self.note("Stopped")
        finally:
            os.close(self.ledger)


class Orders:
    """The arguments of a scripted tool."""

    def __init__(self, given: dict[str, Any], attempt: int) -> None:
        self.given, self.attempt = given, attempt
        self.before, self.after = given.get("before_ms", 0) / 1000, given.get("after_ms", 0) / 1000
        down = given.get("down_while")
        self.down = None if down is None else Path(down)

    def failure(self) -> ToolError | None:
        """The error that this attempt is to have."""
        kind, times = self.given.get("fail"), self.given.get("times")
        if kind is None or (times is not None and self.attempt > times):
            return None
        text, harmless = f"told to fail with {kind}", bool(self.given.get("harmless"))
        if kind == "internal":
            error: ToolError = Internal(text)
        elif kind == "invalid_arguments":
            error = InvalidArguments(Violation("", "orders", None, "other orders"))
        else:
            error = FAILED[kind](text)
        error.effect_possible = not harmless
        return error

    def before_effect(self, recorder: Recorder) -> ToolError | None:
        """What happens at the moment of the effect."""
        if self.given.get("die"):
            os.abort()
        if self.down is not None and self.down.exists():
            recorder.note("Ended")
            error = FAILED["unavailable"]("told to be down")
            error.effect_possible = False
            raise error
        failure = self.failure()
        if failure is None or failure.effect_possible:
            recorder.note("Effect")
        return failure

    def end(self, recorder: Recorder, failure: ToolError | None) -> Any:
        """The end, after the last wait."""
        recorder.note("Ended")
        if failure is not None:
            raise failure
        output = self.given.get("output")
        return {"attempt": self.attempt} if output is None else json.loads(output)


async def coroutine(ctx: Context, **given: Any) -> Any:
    orders = Orders(given, ctx.attempt)
    with Recorder(ctx) as recorder:
        await asyncio.sleep(orders.before)
        failure = orders.before_effect(recorder)
        await asyncio.sleep(orders.after)
        return orders.end(recorder, failure)


def blocking(ctx: Context, **given: Any) -> Any:
    """In a thread it looks whether it is to stop; in a process it is interrupted."""
    orders = Orders(given, ctx.attempt)
    with Recorder(ctx) as recorder:
        pause(ctx, orders.before)
        failure = orders.before_effect(recorder)
        pause(ctx, orders.after)
        return orders.end(recorder, failure)


def pause(ctx: Context, seconds: float) -> None:
    if ctx.cancelled.wait(seconds):
        raise Stopped


LEAK = {"title": "Leak", "type": "object", "properties": {"fail": {"type": "boolean"}}, "required": ["fail"]}
BULK = {
    "title": "Bulk",
    "type": "object",
    "properties": {
        "n": {"description": "Makes calls different.", "type": "integer", "format": "uint64", "minimum": 0},
        "kib": {"type": "integer", "format": "uint", "minimum": 0},
    },
    "required": ["n", "kib"],
}


def add_tools(worker: Worker, tools: str, secret: str) -> None:
    scripted: dict[str, Effect] = {
        "read": "read", "idempotent": "idempotent", "keyed": "keyed", "unsafe": "unsafe",
        "fragile": "read", "poison": "idempotent", "optional": "idempotent",
    }  # fmt: skip
    if tools == "without-optional":
        del scripted["optional"]
    for name, effect in scripted.items():
        function: Callable[..., Any] = blocking if name in THREADS | PROCESSES else coroutine
        where: Offload | None = "process" if name in PROCESSES else "thread" if name in THREADS else None
        worker.tool(name=name, description="", effect=effect, retry=RETRY, offload=where)(function)

    @worker.tool(name="leaky", description="", effect="read", parameters=LEAK)
    async def leaky(fail: bool) -> Any:
        if fail:
            raise BusinessRule(f"the key {secret} is not taken")
        return {"key": secret, "twice": [secret]}

    @worker.tool(name="bulky", description="", effect="read", parameters=BULK)
    async def bulky(n: int, kib: int) -> Any:
        return {"n": n, "text": "bulk " * (kib * 1024 // 5)}


def main() -> None:
    options = argparse.ArgumentParser()
    for name in ("--nats-url", "--inbox", "--ledger", "--secret", "--tools"):
        options.add_argument(name, required=True)
    given = options.parse_args()
    os.environ["LEDGER"] = given.ledger
    worker = Worker(given.nats_url, name="tools", pools=["default"], inbox_prefix=given.inbox, slots=64, secrets=[given.secret])
    add_tools(worker, given.tools, given.secret)
    print(f"worker-id {worker.id}", flush=True)
    with suppress(KeyboardInterrupt):
        worker.run()


if __name__ == "__main__":
    main()
