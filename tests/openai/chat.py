"""Chat completions: with the agent's tools, as a stream, in a conversation, with functions of the client."""

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
messages.append(completion.choices[0].message)
call = completion.choices[0].message.tool_calls[0]
assert call.function.name == "ask_user" and call.function.arguments == '{"question":"Where?"}', call
messages.append({"role": "tool", "tool_call_id": call.id, "content": "Rome"})

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
