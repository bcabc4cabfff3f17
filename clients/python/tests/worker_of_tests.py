"""The worker that `tests/processes/python_worker.rs` runs against real servers: tools that wait, fail, block and compute."""

import asyncio
import json
import os
import socket
from datetime import date
from pathlib import Path
from typing import Annotated

from redial import Context, Field, InvalidArguments, Retry, Unavailable, Violation, Worker

worker = Worker(grace=float(os.environ.get("GRACE", "30")), secrets=["canary-of-tests"], slots={"default": 16, "narrow": 2})
Port = Annotated[int, Field(ge=1, le=65535)]


@worker.tool(effect="read")
async def count_nights(first: date, last: date) -> dict[str, int]:
    """Counts the nights of a stay: at most 30, and the last is not before the first."""
    nights, broken = (last - first).days + 1, []
    if nights < 1:
        hint = "the two dates may be swapped"
        broken.append(Violation("/last", "order", str(last), f"{first} or later", hint))
    if first.year < 2000:
        broken.append(Violation("/first", "minimum", str(first), "2000-01-01 or later"))
    if broken:
        raise InvalidArguments(*broken)
    return {"nights": nights}


@worker.tool(effect="read", timeout=10, retry=Retry(initial=0.2, cap=2, max_attempts=20))
async def read_greeting(host: str, port: Port, ctx: Context) -> dict[str, object]:
    """Connects to a server and returns the first line that it sends."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise Unavailable("the server closed the connection without sending a line")
    return {"greeting": line.decode(errors="replace").strip(), "attempt": ctx.attempt}


@worker.tool(effect="keyed")
def add_note(note: Annotated[str, Field(min_length=1, max_length=1000)], ctx: Context) -> dict[str, int]:
    """Adds a note to a file; several attempts of one call add it once, and each tenant has its own notes."""
    path = Path(os.environ.get("NOTES", "notes.jsonl"))
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        notes = [known for known in map(json.loads, file) if known["tenant"] == ctx.tenant]
        if not any(known["key"] == ctx.idempotency_key for known in notes):
            file.write(json.dumps({"tenant": ctx.tenant, "key": ctx.idempotency_key, "note": note}) + "\n")
            return {"notes": len(notes) + 1}
    return {"notes": len(notes)}


@worker.tool(effect="read")
async def block_the_loop(port: Port) -> str:
    """Does what a coroutine must not do: it blocks its loop, until a server has sent a line or 30 s have passed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        return connection.recv(100).decode().strip()


@worker.tool(effect="unsafe", timeout=20)
def block_a_thread(port: Port, ctx: Context) -> str:
    """Waits for a line of a server, and for being asked to stop."""
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as connection:
        while not ctx.cancelled.is_set():
            try:
                return connection.recv(100).decode().strip()
            except TimeoutError:
                continue
    raise Unavailable("asked to stop")


@worker.tool(effect="read", offload="process", timeout=20)
def compute(rounds: int, port: Port, ctx: Context) -> dict[str, int]:
    """Connects to a server, then computes without a pause; `rounds` of 0 never end."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{os.getpid()}\n".encode())
        n = total = 0
        while rounds == 0 or n < rounds:
            n += 1
            total += n * n % 7
        return {"total": total, "process": os.getpid(), "attempt": ctx.attempt}


running: list[int] = []


@worker.tool(effect="read", pool="narrow")
def take_a_slot(port: Port) -> int:
    """Holds one of the two slots of its pool until a server has sent a line; returns how many ran at the same time at most."""
    running.append(port)
    seen = len(running)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.recv(100)
    seen = max(seen, len(running))
    running.remove(port)
    return seen


@worker.tool(effect="read")
def tell(what: str) -> object:
    """Fails in several ways, and tells a secret in others."""
    if what == "secret":
        return {"key": "canary-of-tests", "of": ["canary-of-tests!"]}
    if what == "exit":
        raise SystemExit("canary-of-tests")
    if what == "large":
        return "x" * (16 * 1024 * 1024)
    if what.startswith("echo"):
        return what
    raise Unavailable("canary-of-tests: db-1.internal:5432 is down", effect_possible=False)


if __name__ == "__main__":
    worker.run()
