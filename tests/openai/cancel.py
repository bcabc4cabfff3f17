"""A response in the background is cancelled."""

from common import CLIENTS

one, two = CLIENTS

response = one.responses.create(model="travel", input="Work.", background=True)
cancelled = two.responses.cancel(response.id)
assert cancelled.status == "cancelled", cancelled
assert one.responses.cancel(response.id).status == "cancelled"
assert list(one.responses.retrieve(response.id, stream=True))[-1].type == "response.failed"
