"""Functions of the client: answered by id, in part, and by a client that sends everything each time."""

import openai

from common import ASK_USER, CLIENTS, outputs

one, two = CLIENTS

first = one.responses.create(model="travel", input="A trip.", tools=[ASK_USER])
assert first.status == "completed", first
assert [item.type for item in first.output] == ["function_call", "mcp_call", "function_call"], first
assert first.output[1].output == '{"booked":"Rome"}', first
answers = outputs(first, ["Rome", '{"day":"Monday"}'])

# Not all of them; and a question beside them.
for wrong in [answers[:1], [{"role": "user", "content": "Hello?"}]]:
    try:
        two.responses.create(model="travel", input=wrong, previous_response_id=first.id)
        raise AssertionError("it was taken")
    except Exception as error:
        assert error.status_code == 400, error
        assert answers[1]["call_id"] in str(error), error
        assert error.body["type"] == "invalid_request_error" and error.body["param"] == "input", error.body

# A question beside the answers is not dropped, and nothing is answered then.
question = {"role": "user", "content": "And the weather?"}
called = [item.model_dump(exclude_none=True) for item in first.output]
for wrong, before in [
    ([question, *answers], {"previous_response_id": first.id}),
    ([*answers, question], {"previous_response_id": first.id}),
    ([*called, *answers, question], {}),
]:
    try:
        two.responses.create(model="travel", input=wrong, **before)
        raise AssertionError("it was taken")
    except openai.BadRequestError as error:
        assert answers[0]["call_id"] in str(error) and "the outputs first" in str(error), error

# One that is too long: none of them is on record, so the first may be another one afterwards.
try:
    long = [{**answers[0], "output": "Bergen"}, {**answers[1], "output": "x" * (16 << 20)}]
    two.responses.create(model="travel", input=long, previous_response_id=first.id)
    raise AssertionError("it was taken")
except openai.BadRequestError as error:
    assert answers[1]["call_id"] in str(error) and "allowed: 16777216" in str(error), error

second = two.responses.create(model="travel", input=answers, previous_response_id=first.id, stream=True)
events = list(second)
second = events[-1].response
assert [event.sequence_number for event in events] == list(range(len(events)))
assert "response.function_call_arguments.done" in [event.type for event in events]
assert second.previous_response_id == first.id
assert list(one.responses.retrieve(second.id, stream=True)) == events
# The same answers again: the same response.
same = one.responses.create(model="travel", input=answers, previous_response_id=first.id)
assert same.id == second.id

third = one.responses.create(model="travel", input=outputs(second, ["Yes"]), previous_response_id=second.id)
assert third.output_text == "Done.", third
given = one.responses.input_items.list(third.id).data
assert [item.output for item in given] == ["Yes"], given

# A client that keeps the conversation itself.
items = [{"role": "user", "content": "A trip."}]
response = one.responses.create(model="travel", input=items, tools=[ASK_USER])
items += [item.model_dump(exclude_none=True) for item in response.output]
items += outputs(response, ["Oslo"])
response = two.responses.create(model="travel", input=items, tools=[ASK_USER])
assert response.output_text == "Stateless.", response
