"""A gateway whose answers a test writes. It has a thread of its own, so it also serves clients that block."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

# Outages are what many tests are about; their warnings would be in the way of what failed.
logging.getLogger("redial").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What it gets. A stream is sent piece by piece, and ends with the connection."""

    status: int = 200
    body: object = None
    """JSON, or bytes as they are."""
    stream: AsyncIterator[bytes] | None = None


class Gateway:
    """Answers each request with what `answer` returns; breaks the connection if it returns nothing."""

    def __init__(self, answer: Callable[[Request], Awaitable[Answer | None]]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    def __enter__(self) -> "Gateway":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop).result()
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                answer = await self._answer(request)
                if answer is None:
                    break
                await _write(writer, answer)
                if answer.stream is not None:
                    break
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _write(writer: asyncio.StreamWriter, answer: Answer) -> None:
    if answer.stream is not None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        async for piece in answer.stream:
            writer.write(piece)
            await writer.drain()
        return
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    writer.write(f"HTTP/1.1 {answer.status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
