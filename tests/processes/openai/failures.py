"""A tool that failed, and a function that nobody answers."""

import time

import openai

from common import ASK_USER, CLIENTS, outputs

one, two = CLIENTS

response = one.responses.create(model="travel", input="A trip to Atlantis.")
assert (response.status, response.output_text) == ("completed", "There is no flight."), response
call = response.output[0]
assert (call.type, call.status, call.output) == ("mcp_call", "failed", None), call
assert call.error.type == "mcp_tool_execution_error", call
assert call.error.content[0]["type"] == "text", call
assert "Atlantis has no airport." in call.error.content[0]["text"], call
kinds = [event.type for event in two.responses.retrieve(response.id, stream=True)]
assert "response.mcp_call.failed" in kinds and "response.mcp_call.completed" not in kinds, kinds

asking = one.responses.create(model="hasty", input="A trip.", tools=[ASK_USER])
assert [item.type for item in asking.output] == ["function_call"], asking
after = asking.id[:-1] + "1"
while True:
    try:
        response = two.responses.retrieve(after)
        if response.status != "in_progress":
            break
    except openai.NotFoundError:
        pass  # The client may still answer.
    time.sleep(0.05)
assert (response.status, response.output_text) == ("completed", "Nobody answered."), response
try:
    one.responses.create(model="hasty", input=outputs(asking, ["Rome"]), previous_response_id=asking.id)
    raise AssertionError("it was taken")
except openai.BadRequestError as error:
    assert error.body["param"] == "input", error.body
