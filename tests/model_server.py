"""A model that is a script, on loopback: behind the APIs agent programs speak, the reference agents play the prompt.

It sees nothing but what the program sends: the prompt it was started with, its calls and their results.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prompt_reader import _task
from turns import turn

from kbgym.agents.llm.prompting import call_of
from kbgym.agents.reference.curator import ReferenceCurator
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.gym.policy import View
from kbgym.gym.tools import TOOLS, parse

_LEFT = re.compile(r"Actions left: (\d+)\.")
_DATA = re.compile(r"<observation>\n(.*?)\n</observation>", re.DOTALL)
_TASK = "# Your task\n\n"
Past = list[tuple[str, str, str]]  # tool, arguments, result
Play = Callable[[str, Past], tuple[str, str] | str]  # the next call, or the last words


def next_call(prompt: str, past: Past) -> tuple[str, str] | str:
    """The call the reference agent makes after these, until its pass is over."""
    role: Any = "curator" if "# Keeping a store in order" in prompt else "reader"
    if past and (past[-1][0] in ("answer", "done") or not _DATA.search(past[-1][2])):
        return "Over."
    text = prompt.partition(_TASK)[2]
    turns = tuple(turn(parse(name, json.loads(args), role), _DATA.search(said)[1]) for name, args, said in past)  # type: ignore[index]
    left, task = int(_LEFT.findall(text)[-1]), _task(text, role)
    policy = ReferenceReader() if role == "reader" else ReferenceCurator()

    async def led() -> Any:
        for number in range(len(turns) + 1):
            action = await policy.act(View(role, task, turns[:number], left - number))
        return action

    call = call_of(asyncio.run(led()), "")
    return call.name, call.arguments


def _plain(name: str) -> str:
    return next((tool for tool in sorted(TOOLS, key=len, reverse=True) if name.endswith(tool)), name)


def _names(tool: dict[str, Any]) -> list[str]:
    """The names under which a request offers a tool, or the tools of a server."""
    if "tools" in tool:
        return [f"{tool['name']}__{one['name']}" for one in tool["tools"]]
    listed = tool.get("functionDeclarations", [tool])
    return [str(one.get("name") or one.get("function", {}).get("name")) for one in listed]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


class ModelServer(ThreadingHTTPServer):
    """`play` chooses what the model says; `offered` has the names of tools in every request that offered any."""

    def __init__(self, play: Play = next_call) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.play = play
        self.offered: list[list[str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._say(b'{"data":[],"models":[]}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        events = next((say for end, say in _APIS.items() if path.endswith(end)), _completions)(body, self.server.play)
        offered = [name for tool in body.get("tools", ()) for name in _names(tool)]
        if offered:
            self.server.offered.append(offered)
        self._say("".join(events).encode(), "text/event-stream")

    def _say(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _responses(body: dict[str, Any], play: Play) -> list[str]:
    """OpenAI's Responses API, streamed."""
    items = body["input"]
    prompt = next(text for item in items if _TASK in (text := _text(item.get("content"))))
    said = {item["call_id"]: _text(item["output"]) for item in items if item.get("type") == "function_call_output"}
    calls = [item for item in items if item.get("type") == "function_call"]
    past = [(_plain(call["name"]), call["arguments"], said[call["call_id"]]) for call in calls]
    found = play(prompt, past)
    item: dict[str, Any] = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": found}],
    }
    if not isinstance(found, str):
        item = {"type": "function_call", "call_id": f"c{len(calls)}", "name": found[0], "arguments": found[1]}
        item["namespace"] = "mcp__kbgym"
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": {"id": "i", **item}},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _completions(body: dict[str, Any], play: Play) -> list[str]:
    """OpenAI's chat completions, streamed."""
    messages = body["messages"]
    prompts = [text for m in messages if m["role"] == "user" and _TASK in (text := _text(m["content"]))]
    said = {m["tool_call_id"]: _text(m["content"]) for m in messages if m["role"] == "tool"}
    calls = [call for m in messages for call in m.get("tool_calls") or ()]
    past = [(_plain(c["function"]["name"]), c["function"]["arguments"], said[c["id"]]) for c in calls]
    # Programs also ask for a title and the like, without any tool.
    found = play(prompts[0], past) if prompts and body.get("tools") else "Over."
    delta: dict[str, Any] = {"role": "assistant", "content": found}
    if not isinstance(found, str):
        names = [tool["function"]["name"] for tool in body["tools"]]
        name = next(name for name in names if re.search(f"kbgym_+{found[0]}$", name))
        function = {"name": name, "arguments": found[1]}
        call = {"index": 0, "id": f"c{len(calls)}", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    base = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", "")}
    ends = {"delta": {}, "index": 0, "finish_reason": "stop" if isinstance(found, str) else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunks = [{**base, "choices": [{"delta": delta, "index": 0}]}, {**base, "choices": [ends], "usage": usage}]
    return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]


def _messages(body: dict[str, Any], play: Play) -> list[str]:
    """Anthropic's messages, streamed."""
    parts = [part for m in body["messages"] if not isinstance(m["content"], str) for part in m["content"]]
    texts = [m["content"] for m in body["messages"] if isinstance(m["content"], str)]
    prompts = [text for text in (*texts, *(part.get("text", "") for part in parts)) if _TASK in text]
    said = {part["tool_use_id"]: _text(part["content"]) for part in parts if part["type"] == "tool_result"}
    calls = [part for part in parts if part["type"] == "tool_use"]
    past = [(_plain(call["name"]), json.dumps(call["input"]), said[call["id"]]) for call in calls]
    found = play(prompts[0], past) if prompts and body.get("tools") else "Over."
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": found}
    if not isinstance(found, str):
        block = {"type": "tool_use", "id": f"toolu_{len(calls)}", "name": f"mcp__kbgym__{found[0]}", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": found[1]}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": [], "usage": usage}
    events = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn" if isinstance(found, str) else "tool_use"},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def _contents(body: dict[str, Any], play: Play) -> list[str]:
    """Google's generateContent, streamed."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    prompts = [part["text"] for part in parts if _TASK in part.get("text", "")]
    said = [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [text.encode().decode("unicode_escape") for text in said]
    past = [(_plain(c["name"]), json.dumps(c.get("args", {})), r) for c, r in zip(calls, results, strict=True)]
    names = [one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    found = play(prompts[0], past) if prompts and names else "Over."
    part: dict[str, Any] = {"text": found}
    if not isinstance(found, str):
        name = next(name for name in names if re.search(f"kbgym_+{found[0]}$", name))
        part = {"functionCall": {"name": name, "args": json.loads(found[1])}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return [f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\n\n"]


_APIS = {"/responses": _responses, "/messages": _messages, ":streamGenerateContent": _contents}
