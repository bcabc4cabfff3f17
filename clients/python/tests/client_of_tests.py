"""What `tests/processes/python_client.rs` runs against a real Redial: the name of a function here, which fails if something is wrong."""

import asyncio
import sys
import time
import uuid
from pathlib import Path
from typing import Any, TypeVar

import redial
from redial import AsyncClient, Client, Submission

E = TypeVar("E", bound=Exception)


def refusal(kind: type[E], action: Any) -> E:
    """The error of an action that must fail."""
    try:
        result = action()
    except kind as error:
        return error
    raise AssertionError(f"it returned {result!r} instead of raising {kind.__name__}")


def equal(found: object, wanted: object) -> None:
    assert found == wanted, f"{found!r} is not {wanted!r}"


def calls() -> None:
    """One call: submitted, waited for, read, submitted again."""
    with Client() as client:
        call = client.call("echo", {"n": 1}, key="order-17")
        equal(call.result(timeout=30), {"n": 1})
        equal(client.call("echo", {"n": 1}, key="order-17").id, call.id)
        conflict = refusal(redial.Conflict, lambda: client.call("echo", {"n": 2}, key="order-17"))
        equal(conflict.code, "idempotency_conflict")
        view = client.get_call(call.id).view()
        equal((view.id, view.tool, view.state, view.attempts, view.ended), (call.id, "echo", "succeeded", 1, True))
        equal(client.run("echo", {"n": 2}), {"n": 2})
        equal(client.call("echo", '{"n": 3,}').result(30), {"n": 3})
        wait = time.monotonic()
        late = client.call("read", {"n": 1, "before_ms": 6000})
        refusal(redial.Timeout, lambda: late.result(timeout=0.1))
        assert time.monotonic() - wait < 5, "a timeout is not rounded up to the end"
        equal(late.result(timeout=30), {"attempt": 1})
        equal(client.run("read", {"n": 2, "before_ms": 1200}, wait=30), {"attempt": 1})


def errors() -> None:
    """What goes wrong, as typed errors."""
    with Client() as client:
        refused = refusal(redial.CallRefused, lambda: client.call("add", {"a": "one"}))
        equal((refused.status, refused.code), (422, "invalid_arguments"))
        equal({violation.path for violation in refused.violations} >= {"/a"}, True)
        assert refused.feedback["status"] == "error", refused.feedback
        assert refused.request_id and refused.call, refused.problem
        equal(client.get_call(refused.call).view().state, "refused")
        again = client.get_call(str(refused.call))
        broken = refusal(redial.CallRefused, lambda: again.redrive({"a": "two", "b": 2}))
        equal(({violation.path for violation in broken.violations}, broken.call), ({"/a"}, None))
        equal(again.redrive({"a": 1, "b": 2}).result(30), 3)
        refusal(redial.CallRefused, lambda: client.call("no_such_tool", {}))
        failed = refusal(redial.CallFailed, lambda: client.call("read", {"fail": "business_rule"}).result(30))
        equal((failed.error_class, failed.message), ("business_rule", "told to fail with business_rule"))
        unknown = refusal(redial.CallUnknown, lambda: client.call("unsafe", {"fail": "internal"}).result(30))
        equal(unknown.error_class, "internal")
        slow = client.call("read", {"n": 9, "before_ms": 20_000})
        slow.cancel()
        refusal(redial.CallCancelled, lambda: slow.result(30))
        refusal(redial.NotFound, lambda: client.get_call(str(uuid.uuid4())).result(1))
        wrong = refusal(redial.InvalidRequest, lambda: client.request("GET", "/v1/calls", no_such_filter="x"))
        assert "no_such_filter" in wrong.message, wrong.message
        new = client.get_call(failed.view.id).redrive({"n": 1})
        equal((new.result(30), new.id == failed.view.id), ({"attempt": 1}, False))
    with Client(token="rdl_" + "a" * 12 + "_" + "b" * 52) as client:
        refusal(redial.Unauthenticated, lambda: client.call("echo", {}))
    with Client("http://127.0.0.1:1", patience=0.3) as client:
        refusal(redial.ConnectionFailed, lambda: client.call("echo", {}))


def many() -> None:
    """Batches, waits for several, lists."""
    with Client() as client:
        batch = client.calls([("echo", {"n": n}) for n in range(2500)])
        equal(len(client.wait(batch, timeout=60)), 2500)
        equal([call.result(1)["n"] for call in batch[::500]], [0, 500, 1000, 1500, 2000])
        mixed = client.calls([("echo", {"n": 1}), ("no_such_tool", {}), Submission("read", {"n": 2}, key="mixed")])
        equal([call.error is None for call in mixed], [True, False, True])
        refusal(redial.CallRefused, lambda: mixed[1].result(1))
        slow = client.call("read", {"n": 5, "before_ms": 8000})
        quick = client.call("echo", {"n": 6})
        equal([call.id for call in client.wait([slow, quick], for_="any", timeout=30)], [quick.id])
        refusal(redial.Timeout, lambda: client.wait([slow], timeout=0.1))
        equal(slow.result(30), {"attempt": 1})
        listed = {view.id for view in client.list_calls(tool="echo", page_size=1000)}
        assert {call.id for call in batch} <= listed, len(listed)
        found = list(client.list_calls(argument=["/n=2499"], not_state=["failed", "refused"]))
        equal([view.id for view in found], [batch[2499].id])
        assert {"echo", "read", "add"} <= {tool["name"] for tool in client.tools(page_size=1)}
        for call in client.calls([("read", {"n": n, "fail": "business_rule"}) for n in range(3)]):
            refusal(redial.CallFailed, lambda call=call: call.result(30))
        counted = client.redrive(tool="read", state="failed", dry_run=True).wait(30)
        equal((counted.state, counted.matched, counted.redriven), ("done", 3, 0))
        again = client.redrive(tool="read", state="failed").wait(30)
        equal((again.state, again.matched, again.redriven), ("done", 3, 3))


def tasks() -> None:
    """A task: its answer, its steps, its cancel."""
    with Client() as client:
        task = client.task("Say hello.", agent={"model": "small"}, key="hello-17")
        equal(task.result(timeout=30), "Hello.")
        view = task.view()
        equal((view.state, view.code, view.conversation != ""), ("succeeded", "answered", True))
        steps = [step["step"] for step in task.steps()]
        equal(steps, list(range(1, len(steps) + 1)))
        equal([task.id], [found.id for found in client.list_tasks(conversation=view.conversation)])
        roles = [message["role"] for message in client.messages(view.conversation)]
        equal(roles[-2:], ["user", "assistant"])
        refusal(redial.InvalidRequest, lambda: client.task("x", agent="nobody"))
        refusal(redial.NotFound, lambda: client.get_task(str(uuid.uuid4())).result(1))
        begun = client.list_tasks()
        equal(next(begun).id, task.id)
    # An iterator of a closed client ends, and nothing hangs.
    refusal(RuntimeError, lambda: next(begun))
    refusal(RuntimeError, lambda: client.call("echo", {}))
    client.close()


def hammered() -> None:
    """While connections are cut all the time, each call is submitted once and each result arrives."""

    async def one(client: AsyncClient, n: int) -> Any:
        call = await client.call("keyed", {"n": n, "before_ms": n % 50}, key=f"hammer-{n}")
        return await call.result(timeout=60)

    async def all_() -> None:
        async with AsyncClient(patience=60) as client:
            for start in range(0, 60, 20):
                results = await asyncio.gather(*(one(client, n) for n in range(start, start + 20)))
                equal(results, [{"attempt": 1}] * 20)
            batch = await client.calls([Submission("keyed", {"n": n}, key=f"batch-{n}") for n in range(1500)])
            equal([call.error for call in batch if call.error is not None], [])
            equal(len(await client.wait(batch, timeout=60)), 1500)

    asyncio.run(all_())


def events() -> None:
    """The events of a task: each once, in order, to the end, and on from any of them."""

    async def follow() -> None:
        async with AsyncClient(patience=60) as client:
            task = await client.task("many calls", agent={"model": "small", "tools": ["read"]})
            seen = [event async for event in task.events()]
            ids = [event.id for event in seen if event.id is not None]
            equal(len(ids), len(set(ids)))
            equal(seen[-1].type, "end")
            quiet = [event async for event in task.events() if event.id is not None]
            equal([event.id for event in quiet], ids)
            halfway = ids[len(ids) // 2]
            rest = [event.id async for event in task.events(after=halfway) if event.id is not None]
            equal(rest, ids[len(ids) // 2 + 1 :])
            equal([event async for event in task.events(after=ids[-1])], [])
            print(f"{len(ids)} events")

    asyncio.run(follow())


def worker_and_client() -> None:
    """The example of the client, against the example of the worker."""
    source = (Path(__file__).resolve().parents[3] / "examples/python-client/submit.py").read_text()
    exec(compile(source, "submit.py", "exec"), {})


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("everything is as it should be")
