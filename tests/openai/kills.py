"""Forty responses, four at a time, through whatever happens to the gateway and everything behind it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import openai

CLIENT = openai.OpenAI(base_url=os.environ["GATEWAYS"], api_key="none", max_retries=0, timeout=60)
DEADLINE = time.monotonic() + 240
TERMINAL = {"response.completed", "response.failed", "response.incomplete"}
ASK_USER = {
    "type": "function",
    "name": "ask_user",
    "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
}


def persist(what, call):
    """Repeats what an outage prevented."""
    while True:
        try:
            return call()
        except openai.APIStatusError as error:
            if error.status_code < 500:
                raise
            last = error
        except (openai.APIConnectionError, openai.APIError) as error:
            last = error
        except Exception as error:  # A stream that breaks off: httpx raises its own.
            if type(error).__module__.partition(".")[0] not in ("httpx", "httpx2", "httpcore", "httpcore2"):
                raise
            last = error
        assert time.monotonic() < DEADLINE, f"{what}: {last!r}"
        time.sleep(0.1)


def follow(response_id):
    """Every event of a response, resumed after each break."""
    events = []

    def more():
        after = {"starting_after": events[-1].sequence_number} if events else {}
        for event in CLIENT.responses.retrieve(response_id, stream=True, **after):
            events.append(event)

    while not events or events[-1].type not in TERMINAL:
        persist(f"follow {response_id}", more)
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    assert [event.type in TERMINAL for event in events].count(True) == 1, events
    final = events[-1].response
    assert persist("retrieve", lambda: CLIENT.responses.retrieve(response_id)) == final
    return final


def ask(number):
    question = "ask me" if number % 3 == 0 else "work"
    body = {"model": "travel", "input": f"{question} {number}", "tools": [ASK_USER], "background": True}
    key = {"Idempotency-Key": f"kill-{number}"}
    begun = persist("create", lambda: CLIENT.responses.create(**body, extra_headers=key))
    response = follow(begun.id)
    calls = [item for item in response.output if item.type == "function_call"]
    if number % 3 == 0:
        assert len(calls) == 1, response
        answers = [{"type": "function_call_output", "call_id": calls[0].call_id, "output": "this"}]
        body = {"model": "travel", "input": answers, "previous_response_id": response.id, "background": True}
        response = follow(persist("answer", lambda: CLIENT.responses.create(**body)).id)
    assert (response.status, response.output_text) == ("completed", "done"), response


with ThreadPoolExecutor(4) as pool:
    list(pool.map(ask, range(40)))
