"""One response at once, one as a stream that breaks off, one that continues, one in the background."""

import time

from common import CLIENTS

one, two = CLIENTS

assert sorted(model.id for model in one.models.list()) == ["hasty", "travel"]
assert one.models.retrieve("travel").owned_by == "redial"

# At once.
first = one.responses.create(model="travel", input="A trip to Rome.", metadata={"order": "17"})
assert (first.status, first.output_text) == ("completed", "I book it.Booked."), first
assert [item.type for item in first.output] == ["message", "mcp_call", "message"]
call = first.output[1]
assert (call.name, call.server_label, call.status) == ("book", "redial", "completed"), call
assert call.arguments == '{"city":"Rome"}' and call.output == '{"booked":"Rome"}', call
assert first.metadata == {"order": "17"} and first.usage.total_tokens == 240, first
assert first.usage.input_tokens_details.cache_write_tokens == 0, first.usage
assert two.responses.retrieve(first.id) == first, "any gateway shows the same"
items = two.responses.input_items.list(first.id).data
assert items[0].content[0].text == "A trip to Rome.", items

# As a stream that the client leaves after three events, and resumes on the other gateway.
seen = []
with one.responses.create(model="travel", input="Again.", previous_response_id=first.id, stream=True) as stream:
    for event in stream:
        seen.append(event)
        if len(seen) == 3:
            break
response_id = seen[0].response.id
resumed = list(two.responses.retrieve(response_id, stream=True, starting_after=seen[-1].sequence_number))
events = seen + resumed
assert [event.sequence_number for event in events] == list(range(len(events))), events
kinds = [event.type for event in events]
assert kinds[:2] == ["response.created", "response.in_progress"], kinds
assert kinds[-1] == "response.completed", kinds
for kind in ["response.mcp_call.in_progress", "response.mcp_call.completed", "response.mcp_call_arguments.done",
             "response.output_text.delta", "response.output_item.done"]:
    assert kind in kinds, kinds
again = list(one.responses.retrieve(response_id, stream=True))
assert again == events, "each gateway gives the same events"
second = events[-1].response
assert second.output_text == "I book it.Booked again." and second.previous_response_id == first.id, second

# Only the newest can be continued.
try:
    one.responses.create(model="travel", input="x", previous_response_id=first.id)
    raise AssertionError("it was continued")
except Exception as error:
    assert error.status_code == 400 and second.id in str(error), error

third = two.responses.create(
    model="travel", input="Hello", previous_response_id=second.id, instructions="Answer in one word."
)
assert third.output_text == "Hello.", third

# In the background, under a key: the second time it is the same.
key = {"Idempotency-Key": "background-1"}
begun = one.responses.create(model="travel", input="Work.", background=True, extra_headers=key)
assert begun.status in ("queued", "in_progress", "completed") and begun.background, begun
same = two.responses.create(model="travel", input="Work.", background=True, extra_headers=key)
assert same.id == begun.id
while begun.status in ("queued", "in_progress"):
    time.sleep(0.05)
    begun = two.responses.retrieve(begun.id)
assert (begun.status, begun.output_text) == ("completed", "In the background."), begun
kinds = [event.type for event in one.responses.retrieve(begun.id, stream=True)]
assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"], kinds
