"""Schemathesis for the gateway: ids of both tenants where an id belongs, no answer with the data of another tenant, and a report
of what was asked and answered."""

import atexit
import collections
import itertools
import json
import os
import uuid

import schemathesis

# A text in everything that the other tenant has on record, and in no request.
CANARY = os.environ["CANARY"]
# Ids on record by resource, of the tenant that asks and of the other one.
OWN, FOREIGN = json.loads(os.environ["OWN"]), json.loads(os.environ["FOREIGN"])
# By operation: statuses of the answers and how often each came; places that an id of the other tenant was sent in.
REPORT = {"statuses": collections.defaultdict(collections.Counter), "foreign": collections.defaultdict(list)}

# Parameters of queries that take an id, and of which resource.
QUERIES = {"conversation": "conversations", "task": "tasks", "erasure": "erasures"}
AGENT = "travel" if "submit" in os.environ["ROLES"].split() else {"model": "small"}


def answers_function(call):
    return "call_" + uuid.UUID(call).hex


# Bodies that are accepted, by operation: the field that takes an id, of which resource, and the body with such an id.
BODIES = {
    "answer_call": [(None, None, lambda _: {"output": 1})],
    "create_chat_completion": [
        ("conversation", "conversations", lambda id: {"model": "travel", "messages": [{"role": "user", "content": "Hi"}], "metadata": {"conversation": id}}),
        ("call_id", "functions", lambda id: {"model": "travel", "messages": [{"role": "tool", "tool_call_id": answers_function(id), "content": "1"}]}),
    ],
    "create_redrive": [
        ("conversation", "conversations", lambda id: {"filter": {"conversation": id}}),
        ("redrive", "redrives", lambda id: {"redrive": id, "filter": {"tool": "echo"}}),
    ],
    "create_response": [
        ("previous_response_id", "responses", lambda id: {"model": "travel", "input": "Hi", "previous_response_id": id}),
        ("conversation", "conversations", lambda id: {"model": "travel", "input": "Hi", "conversation": id}),
        ("call_id", "functions", lambda id: {"model": "travel", "input": [{"type": "function_call_output", "call_id": answers_function(id), "output": "1"}]}),
    ],
    "create_token": [(None, None, lambda _: {"roles": ["read"]})],
    "create_webhook": [("webhook", "webhooks", lambda id: {"webhook": id, "url": "https://acme.example/", "events": ["call.failed"]})],
    "redrive_call": [(None, None, lambda _: {})],
    "rotate_webhook": [(None, None, lambda _: {"version": 1})],
    "submit_calls": [("conversation", "conversations", lambda id: {"tool": "echo", "arguments": {}, "conversation": id})],
    "submit_task": [("conversation", "conversations", lambda id: {"input": "Hi", "agent": AGENT, "conversation": id})],
    "update_webhook": [(None, None, lambda _: {"state": "disabled"})],
    "wait_for_calls": [("calls", "calls", lambda id: {"calls": [id]})],
}
# Addresses whose id is not of the resource that the path names.
PATHS = {"answer_call": "functions"}

TURNS = collections.defaultdict(itertools.count)


def path_resources(operation, name):
    """The resource of each parameter of a path: the segment before it."""
    segments = operation.path.split("/")
    return {
        segment.strip("{}"): PATHS.get(name, before)
        for before, segment in itertools.pairwise(segments)
        if segment.startswith("{")
    }


def places(operation, name):
    """Where an id of the other tenant fits: in the path, in the query, in the body."""
    paths = [("path", field, resource) for field, resource in path_resources(operation, name).items()]
    declared = [parameter["name"] for parameter in operation.definition.raw.get("parameters", []) if parameter["in"] == "query"]
    queries = [("query", field, QUERIES[field]) for field in declared if field in QUERIES]
    bodies = [("body", field, resource) for field, resource, _ in BODIES.get(name, [])]
    return [place for place in paths + queries + bodies if place[2] in FOREIGN]


def own(resource, turn):
    return OWN[resource][turn % len(OWN[resource])] if resource in OWN else None


def foreign(part, resource):
    """An id of the other tenant. Some ids are a tenant's own choice, so a body may give it to something of this tenant: a path
    has another one, which must not be found."""
    return FOREIGN[resource][0 if part == "path" else -1]


@schemathesis.hook
def before_call(context, case, kwargs):
    """The first requests of an operation have own ids, then an id of the other tenant in each place; what follows is mixed."""
    name = case.operation.definition.raw["operationId"]
    turn, possible = next(TURNS[name]), places(case.operation, name)
    chosen = None
    if 1 <= turn <= len(possible):
        chosen = possible[turn - 1]
    elif turn % 4 == 0 and turn:
        return
    elif turn % 4 == 1 and possible:
        chosen = possible[turn // 4 % len(possible)]
    for field, resource in path_resources(case.operation, name).items():
        if chosen == ("path", field, resource):
            case.path_parameters[field] = foreign("path", resource)
        elif resource in OWN:
            case.path_parameters[field] = own(resource, turn)
    # Beside it, other parts are valid: an answer about them would come first.
    if turn == 0 or chosen:
        case.query = {chosen[1]: foreign("query", chosen[2])} if chosen and chosen[0] == "query" else {}
        valid = BODIES.get(name, [])
        of_place = [body for body in valid if chosen and ("body", *body[:2]) == chosen]
        for _, resource, build in (of_place or valid)[:1]:
            case.body = build(foreign("body", resource) if of_place else own(resource, turn))
            case.media_type = "application/json"
    if chosen:
        SENT[case.id] = chosen


# What the requests under way have of the other tenant.
SENT = {}


@schemathesis.hook
def after_call(context, case, response):
    name = case.operation.definition.raw["operationId"]
    REPORT["statuses"][name][str(response.status_code)] += 1
    sent = SENT.get(case.id)
    if sent and list(sent[:2]) not in REPORT["foreign"][name]:
        REPORT["foreign"][name].append(list(sent[:2]))


@schemathesis.check
def other_tenants_are_invisible(context, response, case):
    """Fails if an answer has what only another tenant may see, or if its ids open anything."""
    text = response.content.decode(errors="replace") + repr(dict(response.headers))
    assert CANARY not in text, "the answer has data of another tenant"
    sent = SENT.pop(case.id, None)
    # To erase what is not there succeeds.
    if sent and sent[0] == "path" and case.operation.definition.raw["operationId"] != "erase_conversation":
        assert response.status_code >= 400, f"{sent[1]} of another tenant was found"


@atexit.register
def write_report():
    with open(os.environ["REPORT"], "w") as file:
        json.dump(REPORT, file)
