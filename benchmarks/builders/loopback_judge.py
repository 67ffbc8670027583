"""A chat and decision server on loopback with a constant latency, for measuring clients.

    python benchmarks/builders/loopback_judge.py [--latency 0.2] [--port 0]    # prints its address

It needs the standard library only, answers on one core in well under a millisecond a call, and
takes uvloop where it is installed. Whatever schema a request names, in ``response_format``, in a
tool or in its own prompt, is answered with a valid instance; an examination of misslink's with the
sentences of its answer as claims, and the passages' own words as quotes. ``GET /stats`` says what
was asked since the last ``POST /reset``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from functools import partial
from typing import Any, cast

MANY = 5  # items of a list: the claims of a five-sentence answer
DIMENSIONS = 64  # of an embedding
SPOKEN = {"verdict": "yes", "noncommittal": 0}  # fields whose schema does not tell their values
ANSWER = re.compile(r"<answer (?P<id>[a-p]+)>\n(.*?)\n</answer (?P=id)>", re.DOTALL)
PASSAGE = re.compile(r"<passage_(\d+) ([a-p]+)>\n(.*?)\n</passage_\1 \2>", re.DOTALL)
REFERENCE = re.compile(r"<reference_(\d+) ([a-p]+)>\n(.*?)\n</reference_\1 \2>", re.DOTALL)
FIELDS = re.compile(r"['\"](\w+)['\"] key|\"(\w+)\":\s*(\[?)")
OPENED = re.compile(r'\{\s*"(?:\$defs|properties|description|title|type)"')
DECODER = json.JSONDecoder()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
Body = dict[str, Any]


class Stats:
    """What was asked since the last reset."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.chat = self.embeddings = self.prompt_characters = 0
        self.busy = self.most_at_once = 0
        self.cpu = time.process_time()

    def shown(self) -> Body:
        """The counts, and the seconds of CPU that this process took."""
        return {
            "chat": self.chat,
            "embeddings": self.embeddings,
            "prompt_tokens": self.prompt_characters // 4,
            "most_at_once": self.most_at_once,
            "cpu_s": time.process_time() - self.cpu,
        }


def instance(schema: Body, root: Body | None = None, name: str = "") -> Any:
    """Return a valid instance of a JSON schema, its optional fields included."""
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for step in schema["$ref"].lstrip("#/").split("/"):
            target = target[step]
        return instance(target, root, name)
    for choice in schema.keys() & {"anyOf", "oneOf", "allOf"}:
        real = [option for option in schema[choice] if option.get("type") != "null"]
        return instance(real[0], root, name)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    return _of_type(schema, root, name)


def _of_type(schema: Body, root: Body, name: str) -> Any:
    kind = schema.get("type", "object")
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: instance(spec, root, field) for field, spec in fields.items()}
    if kind == "array":
        return [instance(schema["items"], root, name) for _ in range(schema.get("minItems", MANY))]
    if name in SPOKEN and isinstance(SPOKEN[name], str) == (kind == "string"):
        return SPOKEN[name]
    plain = {"boolean": True, "integer": schema.get("minimum", 1), "number": 1.0}
    return plain.get(kind, f"The {name or 'text'} is said in a sentence of some ten words or so.")


def examination(prompt: str, schema: Body) -> Body | None:
    """Examine the way misslink asks for it; None where it is not misslink that asks."""
    answer = ANSWER.search(prompt)
    if answer is None or "claims" not in schema.get("properties", {}):
        return None
    passages = [text for _, _, text in PASSAGE.findall(prompt)]
    references = [text for _, _, text in REFERENCE.findall(prompt)]
    claims = []
    for text in re.split(r"(?<=[.!?])\s+", answer.group(2).strip()):
        held = any(text in passage for passage in passages)
        claim: Body = {"span": text, "claim": None, "quotes": [text] if held else []}
        claim["support"] = "supported" if held else "unsupported"
        if references:
            claim["reference"] = "agrees" if text in references[0] else "silent"
        claims.append(claim)
    said: Body = {
        "claims": claims,
        "passages": [{"passage": n, "relevant": n == 1} for n in range(1, len(passages) + 1)],
        "sufficient": "yes",
        "response": "answers",
        "helpful": 4,
    }
    if references:
        said["reference_claims"] = [
            {"reference": n, "text": text, "answer": "states" if n == 1 else "omits"}
            for n, text in enumerate(references, 1)
        ]
    return said


def described(prompt: str) -> Body:
    """Return an object of the fields that a prompt without a schema tells of in words."""
    said: Body = {}
    for key, field, bracket in FIELDS.findall(prompt):
        name = key or field
        if bracket and name == "verdicts":
            said[name] = [{"verdict": "yes", "reason": "It is said."} for _ in range(MANY)]
        elif bracket or (key and name.endswith("s")):
            said[name] = [f"A {name[:-1]} of some ten words or so." for _ in range(MANY)]
        else:
            said.setdefault(name, SPOKEN.get(name, "It is said."))
    return said


def chat(body: Body) -> tuple[Body, int]:
    """Return the completion, and how many characters the prompt has with its schema."""
    prompt = "\n".join(_text(message.get("content")) for message in body["messages"])
    wanted = body.get("response_format") or {}
    tools = body.get("tools") or []
    schema = (wanted.get("json_schema") or {}).get("schema")
    characters = len(prompt)
    message: Body = {"role": "assistant", "content": None}
    if schema is not None:
        characters += len(json.dumps(schema, separators=(",", ":")))
        said = json.dumps(examination(prompt, schema) or instance(schema), separators=(",", ":"))
        message["content"] = said
    elif tools:
        characters += len(json.dumps(tools, separators=(",", ":")))
        function = tools[0]["function"]
        said = json.dumps(instance(function["parameters"]))
        call = {"name": function["name"], "arguments": said}
        message["tool_calls"] = [{"id": "call-1", "type": "function", "function": call}]
    else:
        found = _schema_in(prompt)
        said = json.dumps(instance(found) if found else described(prompt))
        message["content"] = said
    tokens = {"prompt_tokens": characters // 4, "completion_tokens": len(said) // 4}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tools else "stop"}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice] * body.get("n", 1),
        "usage": {**tokens, "total_tokens": sum(tokens.values())},
    }
    return completion, characters


def decisions(body: Body) -> tuple[Body, int]:
    """Return the answers to typed questions, the first option likeliest, and the characters asked."""
    answers = []
    for question in body["questions"]:
        options = question.get("choices") or question.get("levels") or []
        name = "level" if question["type"] == "score" else "value"
        shares = [0.9, *[0.1 / max(1, len(options) - 1)] * (len(options) - 1)]
        answers.append(
            {
                "type": question["type"],
                "probability": 0.1 if "cannot answer" in question["instructions"] else 0.9,
                "probabilities": [
                    {name: option.get("value"), "label": option.get("label"), "probability": share}
                    for option, share in zip(options, shares, strict=False)
                ],
            }
        )
    characters = len(body["input"]) + len(json.dumps(body["questions"], separators=(",", ":")))
    usage = {"input_tokens": characters // 4, "output_tokens": 0, "total_tokens": characters // 4}
    return {
        "id": "decision-1",
        "object": "decision",
        "answers": answers,
        "usage": usage,
    }, characters


def embeddings(body: Body) -> Body:
    """Return the same vector for every text."""
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vector = [1 / DIMENSIONS**0.5] * DIMENSIONS
    data = [{"object": "embedding", "index": n, "embedding": vector} for n in range(len(texts))]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _schema_in(prompt: str) -> Body | None:
    """The last JSON schema that stands in a prompt's own text; not one inside another."""
    found: Body | None = None
    end = 0
    for brace in OPENED.finditer(prompt):
        if brace.start() < end:
            continue
        try:
            value, end = DECODER.raw_decode(prompt, brace.start())
        except ValueError:
            continue
        if isinstance(value.get("properties"), dict):
            found = value
    return found


class Connection(asyncio.Protocol):
    """One connection: HTTP/1.1 with lengths, as every client of such servers speaks it."""

    def __init__(self, stats: Stats, latency: float) -> None:
        self.stats, self.latency = stats, latency
        self.received = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to write."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        """Write nothing more."""
        self.transport = None

    def data_received(self, data: bytes) -> None:
        """Answer what has come in whole."""
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].decode("latin-1")
            length = re.search(r"(?im)^content-length:\s*(\d+)", head)
            whole = end + 4 + (int(length.group(1)) if length else 0)
            if len(self.received) < whole:
                return
            content, self.received = self.received[end + 4 : whole], self.received[whole:]
            method, path, _ = head.split(" ", 2)
            self._answer(method, path, content)

    def _answer(self, method: str, path: str, content: bytes) -> None:
        stats = self.stats
        if path == "/reset":
            stats.reset()
        if method == "GET" or path == "/reset":
            listed = {"object": "list", "data": [{"id": "loopback", "object": "model"}]}
            self._write(listed if path.endswith("/models") else stats.shown())
            return
        stats.busy += 1
        stats.most_at_once = max(stats.most_at_once, stats.busy)
        body = json.loads(content)
        if path.endswith("/embeddings"):
            stats.embeddings += 1
            answer = embeddings(body)
        else:
            stats.chat += 1
            answer, characters = (decisions if path.endswith("/decisions") else chat)(body)
            stats.prompt_characters += characters
        asyncio.get_running_loop().call_later(self.latency, self._finish, answer)

    def _finish(self, answer: Body) -> None:
        self.stats.busy -= 1
        self._write(answer)

    def _write(self, answer: Body) -> None:
        if self.transport is not None:
            content = json.dumps(answer).encode()
            self.transport.write(HEAD % len(content) + content)


async def serve(port: int, latency: float) -> None:
    """Serve until killed, or until whoever reads the address is gone."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        partial(Connection, Stats(), latency), "127.0.0.1", port, backlog=1024
    )
    address = server.sockets[0].getsockname()
    sys.stdout.write(f"http://127.0.0.1:{address[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of every reply")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        run = asyncio.run
    else:
        run = uvloop.run
    try:
        run(serve(options.port, options.latency))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
