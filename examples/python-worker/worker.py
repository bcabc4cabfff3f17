"""Three tools in Python. `python worker.py` runs them; the README describes how to try them."""

import asyncio
import json
import logging
import os
from datetime import date

from redial_outcome import ToolError, field_error, invalid
from redial_worker import Worker

worker = Worker(grace=float(os.environ.get("REDIAL_DRAIN_GRACE_SECONDS", "30")))


def text(description, **rules):
    return {"type": "string", "description": description, **rules}


def arguments_of(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@worker.tool(arguments_of(first=text("The first night", format="date"), last=text("The last night", format="date")),
             effect="read")
async def count_nights(arguments, context):
    """Counts the nights of a stay: at most 30, and the last is not before the first."""
    first, last = date.fromisoformat(arguments["first"]), date.fromisoformat(arguments["last"])
    nights, broken = (last - first).days + 1, []
    if nights < 1:
        hint = "the two dates may be swapped"
        broken.append(field_error("/last", "order", arguments["last"], f"{first} or later", hint))
    if nights > 30:
        broken.append(field_error("/last", "maximum", arguments["last"], "30 nights at most"))
    if first.year < 2000:
        broken.append(field_error("/first", "minimum", arguments["first"], "2000-01-01 or later"))
    if broken:
        raise invalid(broken)
    return {"nights": nights}


@worker.tool(arguments_of(host=text("Name or address"), port={"type": "integer", "minimum": 1, "maximum": 65535}),
             effect="read", timeout=10.0, retry={"initial_ms": 200, "cap_ms": 2000, "max_attempts": 20})
async def read_greeting(arguments, context):
    """Connects to a server and returns the first line that it sends, as mail and SSH servers do."""
    # The worker retries refused and broken connections: it maps their exceptions to class `unavailable`.
    reader, writer = await asyncio.open_connection(arguments["host"], arguments["port"])
    try:
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise ToolError("unavailable", "the server closed the connection without sending a line")
    return {"greeting": line.decode(errors="replace").strip(), "attempt": context.attempt}


@worker.tool(arguments_of(note=text("What to write down", minLength=1, maxLength=1000)), effect="keyed")
async def add_note(arguments, context):
    """Adds a note to a file; several attempts of one call add it once, and each tenant has its own notes."""
    path = os.environ.get("NOTES", "notes.jsonl")
    with open(path, "a+", encoding="utf-8") as file:
        file.seek(0)
        notes = [note for note in map(json.loads, file) if note["tenant"] == context.tenant]
        if not any(note["key"] == context.idempotency_key for note in notes):
            file.write(json.dumps({"tenant": context.tenant, "key": context.idempotency_key, "note": arguments["note"]}) + "\n")
            return {"notes": len(notes) + 1}
    return {"notes": len(notes)}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    worker.run()
