"""Chat completions: with the agent's tools, as a stream, in a conversation, with functions of the client."""

import openai

from common import ASK_USER, CLIENTS

one, two = CLIENTS


def user(text):
    return {"role": "user", "content": text}


done = one.chat.completions.create(model="travel", messages=[user("A trip to Rome.")])
choice = done.choices[0]
assert (choice.message.content, choice.finish_reason) == ("Booked.", "stop"), done
assert done.usage.total_tokens == 240, done

talk = {"conversation": "talk-1"}
stream = one.chat.completions.create(
    model="travel", messages=[user("Hello")], metadata=talk, stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert text == "Streamed." and chunks[-1].usage.total_tokens == 120, chunks
assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
later = two.chat.completions.create(model="travel", messages=[user("And now?")], metadata=talk)
assert later.choices[0].message.content == "Later.", later

tools = [{"type": "function", "function": {key: ASK_USER[key] for key in ("name", "description", "parameters")}}]
messages = [user("A trip.")]
completion = one.chat.completions.create(model="travel", messages=messages, tools=tools)
assert completion.choices[0].finish_reason == "tool_calls", completion
assert completion.usage.total_tokens == 0, "it is counted with the end"
messages.append(completion.choices[0].message)
call = completion.choices[0].message.tool_calls[0]
assert call.function.name == "ask_user" and call.function.arguments == '{"question":"Where?"}', call
messages.append({"role": "tool", "tool_call_id": call.id, "content": "Rome"})
try:
    one.chat.completions.create(model="travel", messages=[*messages, user("And the weather?")], tools=tools)
    raise AssertionError("the answer was dropped")
except openai.BadRequestError as error:
    assert call.id in str(error) and "the outputs first" in str(error), error

chunks = list(two.chat.completions.create(model="travel", messages=messages, tools=tools, stream=True))
calls = [call for chunk in chunks for call in (chunk.choices[0].delta.tool_calls or [])]
assert len(calls) == 1 and chunks[-1].choices[0].finish_reason == "tool_calls", chunks
messages.append({
    "role": "assistant",
    "tool_calls": [{"id": calls[0].id, "type": "function", "function": calls[0].function.model_dump()}],
})
messages.append({"role": "tool", "tool_call_id": calls[0].id, "content": "Monday"})
last = one.chat.completions.create(model="travel", messages=messages, tools=tools)
assert last.choices[0].message.content == "Done.", last
assert last.usage.total_tokens == 360, last

# A conversation that was begun elsewhere.
messages = [
    user("Hello"),
    {"role": "assistant", "tool_calls": [{"id": "toolu_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "toolu_1", "content": "x"},
    {"role": "assistant", "content": "Hi."},
    user("Go on."),
]
moved = one.chat.completions.create(model="travel", messages=messages)
assert moved.choices[0].message.content == "On.", moved
