"""Forty responses, four at a time, through whatever happens to the gateways and everything behind them.

Each is made in one of four ways: in the background and followed, as a stream, at once, and at once without a key by a client
that repeats requests by itself. Prints what each gateway did not answer.
"""

import itertools
import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import openai

URLS = os.environ["GATEWAYS"].split()
CLIENTS = [openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60) for url in URLS]
# As it is by default.
REPEATING = [openai.OpenAI(base_url=url, api_key="none", timeout=60) for url in URLS]
NEXT = itertools.count()
BROKEN = Counter()
DEADLINE = time.monotonic() + 900
TERMINAL = {"response.completed", "response.failed", "response.incomplete"}
ASK_USER = {
    "type": "function",
    "name": "ask_user",
    "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
}


def persist(what, call, clients=CLIENTS):
    """Repeats on the other gateway what an outage prevented."""
    while True:
        at = next(NEXT) % len(clients)
        try:
            return call(clients[at])
        except openai.APIStatusError as error:
            if error.status_code < 500:
                raise
            last = error
        except (openai.APIConnectionError, openai.APIError) as error:
            BROKEN[at] += 1
            last = error
        except Exception as error:  # A stream that breaks off: httpx raises its own.
            if type(error).__module__.partition(".")[0] not in ("httpx", "httpx2", "httpcore", "httpcore2"):
                raise
            BROKEN[at] += 1
            last = error
        assert time.monotonic() < DEADLINE, f"{what}: {last!r}"
        time.sleep(0.1)


def follow(begin):
    """Every event of a response, resumed after each break: `begin` asks for the first ones."""
    events = []

    def more(client):
        if events:
            after = {"starting_after": events[-1].sequence_number}
            source = client.responses.retrieve(events[0].response.id, stream=True, **after)
        else:
            source = begin(client)
        for event in source:
            events.append(event)

    while not events or events[-1].type not in TERMINAL:
        persist("follow", more)
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    assert [event.type in TERMINAL for event in events].count(True) == 1, events
    return events[-1].response


def in_background(body, key):
    begun = persist("create", lambda client: client.responses.create(**body, background=True, extra_headers=key))
    return follow(lambda client: client.responses.retrieve(begun.id, stream=True))


def as_stream(body, key):
    return follow(lambda client: client.responses.create(**body, stream=True, extra_headers=key))


def at_once(body, key):
    return persist("create", lambda client: client.responses.create(**body, extra_headers=key))


def without_key(body, _key):
    return persist("create", lambda client: client.responses.create(**body), REPEATING)


def ask(number):
    create = (in_background, as_stream, at_once, without_key)[number % 4]
    # A task that was begun twice would wait for its client.
    asks = number % 3 == 0 and create is not without_key
    body = {"model": "travel", "input": f"{'ask me' if asks else 'work'} {number}", "tools": [ASK_USER]}
    response = create(body, {"Idempotency-Key": f"kill-{number}"})
    calls = [item for item in response.output if item.type == "function_call"]
    if asks:
        assert len(calls) == 1, response
        answers = [{"type": "function_call_output", "call_id": calls[0].call_id, "output": "this"}]
        response = create({"model": "travel", "input": answers, "previous_response_id": response.id}, {})
    assert (response.status, response.output_text) == ("completed", "done"), response
    assert persist("retrieve", lambda client: client.responses.retrieve(response.id)) == response


with ThreadPoolExecutor(4) as pool:
    list(pool.map(ask, range(40)))
print(json.dumps([BROKEN[at] for at in range(len(URLS))]))
