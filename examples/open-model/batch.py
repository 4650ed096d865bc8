"""Serve a Qwen2 GGUF file by PyTorch, many passes at once: an OpenAI-compatible endpoint that writes JSON by a schema.

pip install torch gguf tokenizers numpy aiohttp
python batch.py --model qwen2.5-coder-1.5b-instruct-q4_k_m.gguf --rows 128
kbgym exam worlds-out/w21 --agent llm:local/qwen --set effort=thought --set temperature=0 --set concurrency=128

kbgym plays, records and resumes as with any server. Requests come and go while others are written; what a pass has
been read before, and the prompt that all passes share, is not read again. A request needs a `response_format` with a
JSON schema (`effort=thought`), and its reply always fits the schema.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Generator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import torch
from aiohttp import web
from qwen import Qwen, Rows, common_length

LONGEST = 400  # characters of a text without another limit
# What is written next: a fixed text, one of several texts, or the rest of a string of at most so many characters.
Wanted = str | tuple[str, ...] | int
Plan = Generator[Wanted, str, None]


def plan_of(schema: dict[str, Any]) -> Plan:
    """Yield what a JSON value of a schema consists of; what was written comes back."""
    if "anyOf" in schema:
        yield from _one_call(schema["anyOf"])
    elif schema["type"] == "object":
        yield "{"
        yield from _properties(schema, list(schema["properties"]), "")
    elif schema["type"] == "string":
        yield '"'
        yield schema.get("maxLength", LONGEST)
        yield '"'
    elif schema["type"] == "boolean":
        yield ("true", "false")
    elif schema["type"] == "array":
        yield "["
        yield from plan_of(schema["items"])
        while (yield ("]", ", ")) == ", ":
            yield from plan_of(schema["items"])
    else:
        yield tuple("123456789")


def _one_call(options: list[dict[str, Any]]) -> Plan:
    """Yield one of several objects that a constant in their first property tells apart."""
    first = next(iter(options[0]["properties"]))
    by_name = {option["properties"][first]["const"]: option for option in options}
    yield f'{{"{first}": "'
    name = (yield tuple(f'{name}"' for name in by_name))[:-1]
    yield from _properties(by_name[name], list(by_name[name]["properties"])[1:], ", ")


def _properties(schema: dict[str, Any], names: list[str], before: str) -> Plan:
    """Yield the properties of an object and its end; the model chooses where optional ones stop."""
    for number, name in enumerate(names):
        begin = f'{before if number == 0 else ", "}"{name}": '
        if name in schema["required"]:
            yield begin
        elif (yield ("}", begin)) == "}":
            return
        yield from plan_of(schema["properties"][name])
    yield "}"


class Writing:
    """One request: its prompt, the plan of its reply, and the text so far."""

    def __init__(self, body: dict[str, Any], prompt: list[int], reply: asyncio.Future[dict[str, Any]]) -> None:
        self.prompt, self.reply = prompt, reply
        self.temperature = float(body.get("temperature") or 0)
        self.plan = plan_of(body["response_format"]["json_schema"]["schema"])
        self.wanted: Wanted | None = next(self.plan)
        self.text, self.part = "", ""  # the reply, and the part of it that is being written
        self.tokens = self.kept = 0
        self.limit = int(body.get("max_tokens") or 2_048)

    def finish_part(self, text: str) -> None:
        """Go on to the next part of the plan."""
        self.text, self.part = self.text + text, ""
        try:
            self.wanted = self.plan.send(text)
        except StopIteration:
            self.wanted = None

    def finish(self, said: dict[str, Any]) -> None:
        """Answer the request, from another thread, unless its client has left."""
        reply = self.reply
        reply.get_loop().call_soon_threadsafe(lambda: reply.done() or reply.set_result(said))


class Engine:
    """Reads and writes all requests in one thread."""

    def __init__(self, model: Qwen, rows: int, length: int, at_once: int) -> None:
        self.model, self.at_once = model, at_once
        self.rows = Rows(model, rows, length)
        self.queue: SimpleQueue[Writing] = SimpleQueue()
        self.active: dict[int, Writing] = {}
        self.unread: dict[int, list[int]] = {}
        size = model.weights["output.weight"].shape[0]
        self.pieces = [model.tokenizer.decode([number], skip_special_tokens=False) for number in range(size)]
        unfit = [any(c < " " or c == "\ufffd" for c in piece) or not piece or "<|" in piece for piece in self.pieces]
        self.barred = torch.tensor(unfit, device=model.device)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.model.tokenizer.encode(text).ids
        return ids

    def run(self) -> None:
        while True:
            while len(self.active) < len(self.rows.known) and not (self.queue.empty() and self.active):
                self._admit(self.queue.get())
            self.active = {row: one for row, one in self.active.items() if not one.reply.cancelled()}
            if not self.active:
                continue
            new = self._next_tokens()
            logits = self.rows.step(new)
            for row, scores in zip(new, logits, strict=True):
                if not self.unread[row]:
                    self._write(row, scores)

    def _admit(self, writing: Writing) -> None:
        """Give a request the free row that knows most of its prompt."""
        if len(writing.prompt) + 2 * LONGEST > self.rows.length:
            writing.finish({"error": "context length"})
            return
        free = [row for row in range(len(self.rows.known)) if row not in self.active]
        shared = {row: common_length(self.rows.known[row], writing.prompt) for row in free}
        row = max(free, key=lambda one: (shared[one], -len(self.rows.known[one])))
        writing.kept = self.rows.begin(row, writing.prompt)
        self.active[row], self.unread[row] = writing, writing.prompt[writing.kept :]
        if writing.kept < len(writing.prompt) // 2:  # the first of its kind: others copy what it has read
            while self.unread[row]:
                new = self.unread[row][: self.at_once]
                self.unread[row] = self.unread[row][len(new) :]
                scores = self.rows.step({row: new})[0]
            self._write(row, scores)

    def _next_tokens(self) -> dict[int, list[int]]:
        """Return the next tokens of every row, at most `at_once` in all and at least one each."""
        room, new = max(self.at_once, len(self.active)), {}
        for number, row in enumerate(sorted(self.active, key=lambda one: len(self.unread[one]))):
            take = max(1, min(len(self.unread[row]), room - (len(self.active) - number - 1)))
            new[row], self.unread[row] = self.unread[row][:take], self.unread[row][take:]
            room -= take
        return new

    def _write(self, row: int, scores: torch.Tensor) -> None:
        """Choose what follows the last token of a row: a token, or all tokens of a fixed text."""
        writing = self.active[row]
        tokens = self._chosen(writing, scores)
        fixed = ""
        while isinstance(writing.wanted, str):
            fixed += writing.wanted
            writing.finish_part(writing.wanted)
        tokens += self.encode(fixed)
        writing.tokens += len(tokens)
        if writing.wanted is None or writing.tokens >= writing.limit:
            del self.active[row]
            writing.finish(self._said(writing))
        else:
            self.unread[row] = tokens or [self.rows.known[row].pop()]

    def _chosen(self, writing: Writing, scores: torch.Tensor) -> list[int]:
        wanted = writing.wanted
        if isinstance(wanted, tuple):
            left = [text[len(writing.part) :] for text in wanted if text.startswith(writing.part)]
            starts = {ids[0]: ids for ids in map(self.encode, left)}
            token = max(starts, key=lambda one: float(scores[one]))
            written = [text for text in left if self.encode(text)[0] == token]
            if len(written) == 1:
                writing.finish_part(writing.part + written[0])
                return starts[token]
            writing.part += self.pieces[token]
            return [token]
        if isinstance(wanted, int):
            scores = scores.masked_fill(self.barred, -torch.inf)
            if writing.temperature:
                token = int(torch.multinomial((scores / writing.temperature).softmax(-1), 1))
            else:
                token = int(scores.argmax())
            return self._in_string(writing, token, wanted)
        return []

    def _in_string(self, writing: Writing, token: int, most: int) -> list[int]:
        """Add a token to a string; a quote ends it, and so does the limit."""
        whole = writing.part + self.pieces[token]
        at, end = len(writing.part) - (writing.part.endswith("\\") and not writing.part.endswith("\\\\")), None
        while at < len(whole) and end is None:
            if whole[at] == "\\":
                at += 2 if whole[at + 1 : at + 2] in ('"', "\\", "/", "n", "t", "") else 1
            elif whole[at] == '"':
                end = at
            else:
                at += 1
        if end is None and len(whole) < most:
            writing.part = whole
            return [token]
        kept = whole[: most if end is None else end].rstrip("\\")
        rest = self.encode(kept[len(writing.part) :]) if len(kept) > len(writing.part) else []
        writing.finish_part(json.dumps(_unescaped(kept), ensure_ascii=False)[1:-1])
        return rest

    def _said(self, writing: Writing) -> dict[str, Any]:
        usage = {"prompt_tokens": len(writing.prompt), "completion_tokens": writing.tokens}
        usage |= {"prompt_tokens_details": {"cached_tokens": writing.kept}}
        message = {"role": "assistant", "content": writing.text}
        finish = "stop" if writing.wanted is None else "length"
        return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text.replace("\\", "")


def prompt_of(messages: list[dict[str, str]]) -> str:
    turns = [f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages]
    return "".join([*turns, "<|im_start|>assistant\n"])


def application(engine: Engine, name: str) -> web.Application:
    async def complete(request: web.Request) -> web.Response:
        body = await request.json()
        if "response_format" not in body:
            said = "this server writes by a schema: use effort=thought; `tools` are not supported"
            return web.json_response({"error": {"message": said, "param": "tools"}}, status=400)
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        engine.queue.put(Writing(body, engine.encode(prompt_of(body["messages"])), reply))
        said = await reply
        if "error" in said:
            return web.json_response({"error": {"message": "prompt is too long for the context length"}}, status=400)
        return web.json_response({"id": "r", "object": "chat.completion", "model": name, "created": 0, **said})

    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", complete)
    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--adapter", type=Path, help="made by teach.py")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--rows", type=int, default=16, help="requests that are written together")
    parser.add_argument("--context", type=int, default=6_144, help="tokens of a request and its reply")
    parser.add_argument("--at-once", type=int, default=512, help="tokens of one step")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    began = time.time()
    loaded = Qwen(chosen.model, chosen.adapter, chosen.device)
    engine = Engine(loaded, chosen.rows, chosen.context, chosen.at_once)
    threading.Thread(target=engine.run, daemon=True).start()
    print(f"loaded in {time.time() - began:.0f} s; http://127.0.0.1:{chosen.port}/v1", flush=True)
    web.run_app(
        application(engine, chosen.model.stem),
        host="127.0.0.1",
        port=chosen.port,
        print=None,
        handler_cancellation=True,
    )
