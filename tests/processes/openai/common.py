"""The clients of the gateways."""

import os

from openai import OpenAI

CLIENTS = [OpenAI(base_url=url, api_key="none", max_retries=5) for url in os.environ["GATEWAYS"].split()]

ASK_USER = {
    "type": "function",
    "name": "ask_user",
    "description": "Asks the user.",
    "parameters": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
}


def outputs(response, answers):
    """The answers to the function calls of a response, in order."""
    calls = [item for item in response.output if item.type == "function_call"]
    assert len(calls) == len(answers), response
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": answer}
        for call, answer in zip(calls, answers)
    ]
