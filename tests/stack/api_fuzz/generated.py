"""A client that openapi-python-client generated, in the package `redial_generated`, submits a call and waits for its end."""

import os

from redial_generated import AuthenticatedClient
from redial_generated.api.calls import get_call, list_calls, submit_calls, wait_for_calls
from redial_generated.models import Submission, SubmitResult, WaitRequest

with AuthenticatedClient(os.environ["URL"], os.environ["TOKEN"], raise_on_unexpected_status=True) as client:
    submission = Submission.from_dict({"tool": "echo", "arguments": {"city": "Paris"}, "key": "of-a-generated-client"})
    accepted = submit_calls.sync(client=client, body=submission)
    assert isinstance(accepted, SubmitResult), accepted
    waited = wait_for_calls.sync(client=client, body=WaitRequest(calls=[accepted.call]), prefer="wait=30")
    assert waited.done, waited
    view = get_call.sync(str(accepted.call), client=client)
    assert view.state == "succeeded", view
    assert view.to_dict()["output"] == {"city": "Paris"}, view
    listed = list_calls.sync(client=client, tool="echo", page_size=10)
    assert accepted.call in [line.call for line in listed.calls], listed
print("the generated client works")
