"""A worker with one tool. `python worker.py` runs it; the README describes how to try it."""

from datetime import date

from redial import InvalidArgument, Worker

worker = Worker()


@worker.tool(effect="read", timeout=10)
def count_nights(first: date, last: date) -> dict[str, int]:
    """Counts the nights of a stay, the first and the last included."""
    if last < first:
        raise InvalidArgument("/last", "minimum", str(last), f"{first} or later", hint="the two dates may be swapped")
    return {"nights": (last - first).days + 1}


if __name__ == "__main__":
    worker.run()
