"""A conversation that is continued by its name, on the other gateway."""

from concurrent.futures import ThreadPoolExecutor

from common import CLIENTS

one, two = CLIENTS

first = one.responses.create(model="travel", input="I am Ada.", conversation="trip to Rome")
assert first.conversation.id == "trip to Rome", first
second = two.responses.create(model="travel", input="Who am I?", conversation={"id": "trip to Rome"})
assert (second.conversation.id, second.output_text) == ("trip to Rome", "You are Ada."), second
third = one.responses.create(model="travel", input="Thanks.", previous_response_id=second.id)
assert third.conversation.id == "trip to Rome", third
other = one.responses.create(model="travel", input="Who am I?", conversation="another")
assert other.output_text == "I do not know.", other

# Equal requests at once, as of a client that repeats by itself: one response, whichever is faster.
with ThreadPoolExecutor(6) as pool:
    for turn in range(10):
        before = other

        def ask(n):
            client = CLIENTS[n % 2]
            return client.responses.create(
                model="travel", input="Who am I?", previous_response_id=before.id, background=True,
                extra_headers={"Idempotency-Key": f"again-{turn}"},
            )

        asked = list(pool.map(ask, range(6)))
        assert len({response.id for response in asked}) == 1, asked
        other = asked[0]
