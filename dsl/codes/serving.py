"""Learners behind HTTP or a pipe (OCO66x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

SERVING: dict[str, Code] = {
    "OCO660": Code(
        "a key that no learner can have",
        "A key names a learner in addresses, in logs and in metrics: 1 to 200 letters, digits and the signs . : @ + - _ of ASCII.",
        "curl -X POST http://127.0.0.1:8000/learners/a%20b/decide",
        "Give a key of letters, digits and . : @ + - _, as a hash of what it stands for.",
        Stage.COMMAND,
    ),
    "OCO661": Code(
        "a learner that has not begun",
        "The store has no learner of this key. The first `decide` of a key begins one.",
        "curl http://127.0.0.1:8000/learners/new/state",
        "Ask for a decision first: POST /learners/KEY/decide.",
        Stage.COMMAND,
    ),
    "OCO662": Code(
        "a call that cannot be read",
        "A call is one JSON object: `round`, and the streams or contexts by name. NaN and infinities are no numbers of JSON, and no "
        "name stands twice. `observe` always has its round.",
        "curl -X POST http://127.0.0.1:8000/learners/a/observe -H 'Content-Type: application/json' -d '[1, 2]'",
        'Send an object such as {"round": 1, "price": 31.5}; /openapi.json has the schema.',
        Stage.COMMAND,
    ),
    "OCO663": Code(
        "a body that is too large",
        "A call has the data of one round. Its body may have 64 bytes for each number of them and 64 KiB beside.",
        "curl -X POST http://127.0.0.1:8000/learners/a/observe --data-binary @year.json",
        "Send one round a call.",
        Stage.COMMAND,
    ),
    "OCO664": Code(
        "a request that is not let in",
        "A service with --token-file asks each request for one of its tokens; one without answers requests to 127.0.0.1 or localhost "
        "alone, and none of web pages.",
        "curl http://127.0.0.1:8000/metrics",
        "Send a header `Authorization: Bearer TOKEN` with a token of the file.",
        Stage.COMMAND,
    ),
    "OCO665": Code(
        "a service that takes no more calls",
        "More calls wait for the disk than it can write, or the service is going down. The call changed nothing.",
        "curl -X POST http://127.0.0.1:8000/learners/a/decide",
        "Call again after the time in `Retry-After`, with the same round.",
        Stage.COMMAND,
    ),
    "OCO666": Code(
        "a client that sends too many requests",
        "Each client of a service with --rate N may send N requests a second, and N at once. A client is a token, or without one an "
        "address. The call changed nothing.",
        "oco serve model.oco --rate 1",
        "Call again after the time in `Retry-After`, with the same round; or serve with a larger --rate.",
        Stage.COMMAND,
    ),
    "OCO667": Code(
        "an address that cannot be served",
        "The service listens at this machine alone. Another address needs a file of tokens, and a port that nothing else has.",
        "oco serve model.oco --host 0.0.0.0",
        "Give --token-file FILE with a token on each line, or another --port.",
        Stage.COMMAND,
    ),
    "OCO668": Code(
        "a folder with nothing to serve",
        "`oco serve` and `oco pipe` take a model, a saved state, a store of learners, or a folder with a journal or a store.",
        "oco serve empty_folder",
        "Name a model file: oco serve model.oco.",
        Stage.COMMAND,
    ),
}
