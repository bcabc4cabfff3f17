"""Submits a call and waits for its result; `REDIAL_URL` and `REDIAL_TOKEN` say where and as whom."""

from redial import Client

call = Client().call("count_nights", {"first": "2030-02-01", "last": "2030-02-03"}, key="stay-17")
print(call.result(timeout=30))
