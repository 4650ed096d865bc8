"""A server that speaks OpenAI's chat protocol on the loopback, plays the reference agents, and fails on request.

Which request fails, and how, is a function of the seed, the request and how often it was made: the same in any order
and at any concurrency. Anthropic's protocol is spoken too, on its own path.

    python tests/fault_server.py --latency 0.2 --rate 0.3      prints its address; --help says more
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from prompt_reader import Reference, calling

from kbgym.agents.llm.prompting import call_of
from kbgym.gym.actions import Action

TRANSPORT = ("limited", "error", "reset", "timeout", "drip", "short", "half_json", "no_choices", "not_json")
MALFORMED = ("prose", "empty", "wrong_tool", "bad_arguments", "cut_off", "two_calls", "huge")
FAULTS = TRANSPORT + MALFORMED

# What a script decides for one request: an action, or a whole message to send as it is.
Script = Callable[[dict[str, Any]], "Action | dict[str, Any]"]


# -- the server -----------------------------------------------------------------------------------------------------


class FaultServer:
    """`with FaultServer(...) as server:` runs it in a thread of its own; `server.url` is the base URL."""

    def __init__(
        self,
        script: Script | None = None,
        rate: float = 0.0,
        faults: tuple[str, ...] = FAULTS,
        seed: int = 0,
        latency: float = 0.0,
        retry_after: str = "0.01",
        stall: float = 5.0,
        port: int = 0,
    ) -> None:
        self.script = script or Reference()
        self.rate = rate
        self.faults = faults
        self.seed = seed
        self.latency = latency
        self.retry_after = retry_after
        self.stall = stall
        self.port = port
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lines: list[str] = []
        self.injected: Counter[str] = Counter()
        self.mistakes: list[str] = []
        self.answered = 0
        self.busiest = 0
        self._busy = 0
        self._seen: Counter[str] = Counter()
        self._ready = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10), "the server did not start"
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self.mistakes, self.mistakes[0]

    async def serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=2**24)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await self._stop.wait()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = (line.split(": ", 1) for line in head[1:] if ": " in line)
                headers = {name.lower(): value for name, value in fields}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                self._busy += 1
                self.busiest = max(self.busiest, self._busy)
                try:
                    if not await self._respond(head[0], headers, raw, writer):
                        return
                finally:
                    self._busy -= 1
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass
        finally:
            writer.close()

    async def _respond(self, line: str, headers: dict[str, str], raw: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the connection is to be closed."""
        if line.startswith("GET"):
            stats = {"answered": self.answered, "injected": dict(self.injected), "busiest": self.busiest}
            await self._send(writer, 200, json.dumps(stats).encode())
            return True
        sent = json.loads(raw)
        self.bodies.append(sent)
        body = from_anthropic(sent) if "/messages" in line else sent
        self.headers.append(headers)
        self.lines.append(line)
        if self.latency:
            await asyncio.sleep(self.latency)
        fault = self._fate(raw)
        if fault is not None:
            self.injected[fault] += 1
            if fault in TRANSPORT:
                return await self._break(fault, body, writer)
        try:
            message = _spoilt(fault, body) if fault else self._message(body)
        except Exception as error:  # a script's mistake must fail the test that uses it, not hang it
            self.mistakes.append(repr(error))
            await self._send(writer, 400, json.dumps({"error": {"message": f"script: {error!r}"}}).encode())
            return True
        reply = _completion(message, body, "length" if fault == "cut_off" else "stop", len(raw) // 4)
        await self._send(writer, 200, to_anthropic(reply) if "/messages" in line else reply)
        self.answered += 1
        return True

    def _fate(self, raw: bytes) -> str | None:
        if not self.rate:
            return None
        key = hashlib.sha256(raw).hexdigest()
        attempt = self._seen[key]
        self._seen[key] += 1
        dice = hashlib.sha256(f"{self.seed}:{key}:{attempt}".encode()).digest()
        if int.from_bytes(dice[:4], "big") / 2**32 >= self.rate:
            return None
        return self.faults[int.from_bytes(dice[4:8], "big") % len(self.faults)]

    def _message(self, body: dict[str, Any]) -> dict[str, Any]:
        decided = self.script(body)
        if isinstance(decided, dict):
            return decided
        call = call_of(decided, f"srv_{len(body['messages'])}")
        return calling(body, [(call.name, call.arguments)])

    async def _break(self, fault: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        whole = _completion({"role": "assistant", "content": "lost"}, body)
        error = json.dumps({"error": {"message": "try again", "type": "server_error"}}).encode()
        if fault == "limited":
            await self._send(writer, 429, error, {"Retry-After": self.retry_after})
            return True
        if fault == "error":
            await self._send(writer, 500, error)
            return True
        if fault == "half_json":
            await self._send(writer, 200, whole[: len(whole) // 2])
            return True
        if fault == "no_choices":
            await self._send(writer, 200, json.dumps({"object": "chat.completion", "choices": []}).encode())
            return True
        if fault == "not_json":
            await self._send(writer, 200, b"<html>Bad gateway</html>", {"Content-Type": "text/html"})
            return True
        if fault == "timeout":
            await asyncio.sleep(self.stall)
        elif fault == "drip":
            writer.write(_head(200, len(whole)))
            for at in range(len(whole)):
                writer.write(whole[at : at + 1])
                await writer.drain()
                await asyncio.sleep(self.stall / 20)
        elif fault == "short":
            writer.write(_head(200, len(whole)) + whole[:20])
            await writer.drain()
        else:
            writer.transport.abort()
        return False

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, body: bytes, more: dict[str, str] | None = None
    ) -> None:
        writer.write(_head(status, len(body), more) + body)
        await writer.drain()


def _head(status: int, length: int, more: dict[str, str] | None = None) -> bytes:
    fields = {"Content-Type": "application/json", "Content-Length": str(length)} | (more or {})
    return "".join([f"HTTP/1.1 {status} X\r\n", *(f"{k}: {v}\r\n" for k, v in fields.items()), "\r\n"]).encode()


def _spoilt(fault: str, body: dict[str, Any]) -> dict[str, Any]:
    match fault:
        case "empty":
            return {"role": "assistant", "content": ""}
        case "wrong_tool":
            return calling(body, [("launch", '{"where":"moon"}')])
        case "bad_arguments":
            return calling(body, [("search", '{"question":7}')])
        case "cut_off" if "tools" in body:
            return calling(body, [("search", '{"query":"the jo')])
        case "two_calls" if "tools" in body:
            return calling(body, [("search", '{"query":"a"}'), ("search", '{"query":"b"}')])
        case "huge":
            return {"role": "assistant", "content": "word " * 1_000_000}
    return {"role": "assistant", "content": "I think I should search for that first."}


def _completion(message: dict[str, Any], body: dict[str, Any], finish: str = "stop", prompt: int = 100) -> bytes:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 20,
        "total_tokens": prompt + 20,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
    return json.dumps(reply | {"usage": usage}).encode()


def from_anthropic(body: dict[str, Any]) -> dict[str, Any]:
    """A request of Anthropic's protocol as one of OpenAI's."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": body["system"][0]["text"]}]
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_use":
                function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                messages.append({"role": "assistant", "tool_calls": [{"id": block["id"], "function": function}]})
            elif block["type"] == "tool_result":
                messages.append({"role": "tool", "content": block["content"]})
            elif message["role"] == "user" and messages[-1]["role"] in ("user", "tool"):
                messages[-1]["content"] += f"\n\n{block['text']}"
            else:
                messages.append({"role": message["role"], "content": block["text"]})
    return {"model": body["model"], "messages": messages, "tools": body["tools"]}


def to_anthropic(reply: bytes) -> bytes:
    """A chat completion as a message of Anthropic's protocol."""
    whole = json.loads(reply)
    message, usage = whole["choices"][0]["message"], whole["usage"]
    content: list[dict[str, Any]] = [{"type": "text", "text": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            arguments = {}
        content.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    used = {"input_tokens": usage["prompt_tokens"] - cached, "cache_read_input_tokens": cached}
    used["output_tokens"] = usage["completion_tokens"]
    return json.dumps({"content": content, "stop_reason": "tool_use", "usage": used, "model": whole["model"]}).encode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chat server that plays the reference agents and fails on request.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="share of requests that fail")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", default=",".join(FAULTS))
    options = parser.parse_args()
    faulty = FaultServer(
        rate=options.rate,
        faults=tuple(options.faults.split(",")),
        seed=options.seed,
        latency=options.latency,
        port=options.port,
    )

    async def announced() -> None:
        task = asyncio.create_task(faulty.serve())
        while not faulty._ready.is_set():
            await asyncio.sleep(0.01)
        print(faulty.url, flush=True)
        await task

    asyncio.run(announced())
