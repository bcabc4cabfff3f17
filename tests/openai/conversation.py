"""A conversation that is continued by its name, on the other gateway."""

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
