"""Serve a GGUF file by llama.cpp on loopback, as an OpenAI-compatible endpoint.

pip install xllamacpp==0.2.14
python serve.py --model qwen2.5-coder-1.5b-instruct-q4_k_m.gguf --threads 4
kbgym exam worlds-out/w21 --agent llm:local/qwen --set test_in --set effort=thought --set temperature=0
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

import xllamacpp


def serve(model: Path, port: int, threads: int, slots: int, context: int) -> None:
    """Serve the model until the process ends."""
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.hostname, params.port = "127.0.0.1", port
    params.n_ctx, params.n_parallel = context * slots, slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja, params.webui = True, False
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--context", type=int, default=8_192, help="tokens of one slot")
    chosen = parser.parse_args()
    serve(chosen.model, chosen.port, chosen.threads, chosen.slots, chosen.context)
