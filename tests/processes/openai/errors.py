"""Bad requests."""

import openai

from common import ASK_USER, CLIENTS

one, two = CLIENTS
UNKNOWN = "resp_01a20236ac467781a3d049c0fb4d6170_0"


def refused(status, param, says, call, **body):
    try:
        call(**body)
    except openai.APIStatusError as error:
        assert error.status_code == status, error
        assert says in error.body["message"], error.body
        assert param is None or error.body["param"] == param, error.body
        return
    raise AssertionError(f"{body} was taken")


create, complete = one.responses.create, one.chat.completions.create
good = {"model": "travel", "input": "Hello"}
for param, says, body in [
    ("model", "no agent", {"model": "nobody", "input": "x"}),
    ("model", "model is missing", {"input": "x"}),
    ("store", "allowed: true", {**good, "store": False}),
    ("tool_choice", 'allowed: "auto"', {**good, "tool_choice": "required"}),
    ("tools[0]", "allowed: function", {**good, "tools": [{"type": "web_search"}]}),
    ("tools", "is the name of a tool", {**good, "tools": [{**ASK_USER, "name": "book"}]}),
    ("metadata", "is no text", {**good, "metadata": {"a": 1}}),
    ("conversation", "both set", {**good, "conversation": "c", "previous_response_id": UNKNOWN}),
    ("previous_response_id", "no id of a response", {**good, "previous_response_id": "resp_1"}),
    ("input[0]", "allowed: text", {**good, "input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
    ("input", "no function call", {**good, "input": [
        {"type": "function_call_output", "call_id": "call_01a20236ac467781a3d049c0fb4d6170", "output": "x"}]}),
]:
    refused(400, param, says, create, **body)
refused(400, "n", "allowed: 1", complete, model="travel", messages=[{"role": "user", "content": "x"}], n=2)
for nothing in [" ", [], [{"role": "assistant", "content": "Hello"}]]:
    refused(400, "input", "allowed: a text of the user", create, model="travel", input=nothing)
refused(400, "messages", "allowed: a text of the user", complete, model="travel", messages=[])
refused(400, None, "allowed: at most 512", create, **good, metadata={"a": "x" * 600})
refused(413, None, "allowed: 4194304", create, model="travel", input="x" * (5 << 20))
OBJECT = {"name": "answer", "schema": {"type": "object"}}
refused(400, "text.format", "allowed: text", create, **good, text={"format": {"type": "json_schema", **OBJECT}})
refused(400, "response_format", "allowed: text", complete, model="travel",
        messages=[{"role": "user", "content": "x"}], response_format={"type": "json_schema", "json_schema": OBJECT})
refused(404, None, UNKNOWN, one.responses.retrieve, response_id=UNKNOWN)
refused(404, None, UNKNOWN, create, **good, previous_response_id=UNKNOWN)
refused(404, None, "no agent", one.models.retrieve, model="nobody")
response = create(**good)
refused(400, "response_id", "DELETE /v1/conversations/", one.responses.delete, response_id=response.id)
refused(404, None, "no response", one.responses.retrieve, response_id=response.id[:-1] + "1")
