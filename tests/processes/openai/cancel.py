"""A response whose functions have no answer is cancelled, and one in the background."""

from common import ASK_USER, CLIENTS

one, two = CLIENTS

asking = one.responses.create(model="travel", input="Ask.", tools=[ASK_USER])
assert [item.type for item in asking.output] == ["function_call"], asking
assert two.responses.cancel(asking.id).status == "completed", "it is what it was"
after = asking.id[:-1] + "1"
final = list(one.responses.retrieve(after, stream=True))
assert [event.type for event in final] == ["response.created", "response.in_progress", "response.failed"], final
assert two.responses.retrieve(after).status == "cancelled"

response = one.responses.create(model="travel", input="Work.", background=True)
cancelled = two.responses.cancel(response.id)
assert cancelled.status == "cancelled", cancelled
assert one.responses.cancel(response.id).status == "cancelled"
assert list(one.responses.retrieve(response.id, stream=True))[-1].type == "response.failed"
