"""Builds src/kbgym/search/minilm.onnx and minilm_int8.onnx: the arithmetic of all-MiniLM-L6-v2 without its weights.

Run it with the `dev` extra installed: `python scripts/build_minilm_graph.py`. The graph is a few kilobytes; every
weight is a named external initializer, and the names are those of the official model.safetensors, so the file is fed
to the graph as it is. One input, `ids` of shape (texts, tokens), and no attention mask: every text in a batch has the
same number of tokens, which is what makes a row's bits independent of the rest of its batch. One output, `vectors`,
mean-pooled and of unit length.

The int8 graph multiplies whole numbers: weights are -64..64 with one scale a column, made at load from the same file;
every row of the activations gets a scale of its own, so here too a row does not know its batch. 255 * 64 * 2 fits 16
bits, so no processor's kernel saturates and all give the same sums.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

LAYERS, HEADS, WIDTH, INNER, VOCABULARY, POSITIONS = 6, 12, 384, 1536, 30522, 512
HEAD_WIDTH = WIDTH // HEADS
EPSILON = 1e-12
OPSET = 17
OUT = Path(__file__).resolve().parent.parent / "src" / "kbgym" / "search"
ZERO = 128  # the whole number that stands for 0.0 in a row of activations


class Graph:
    """Collects nodes and initializers; every method returns the name of the value it made."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._constants: dict[str, str] = {}

    def weight(self, name: str, *shape: int, kind: int = TensorProto.FLOAT) -> str:
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        # The location is never opened: the run time hands the bytes over by name.
        tensor.external_data.add(key="location", value="model.safetensors")
        self.initializers.append(tensor)
        return name

    def constant(self, value: object, kind: type) -> str:
        key = f"{kind.__name__}:{value}"
        if key not in self._constants:
            name = self._constants[key] = f"constant_{len(self._constants)}"
            self.initializers.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return self._constants[key]

    def ints(self, *values: int) -> str:
        return self.constant(list(values), np.int64)

    def apply(self, operator: str, *inputs: str, out: str | None = None, **attributes: object) -> str:
        name = out or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def dense(self, x: str, name: str, width_in: int, width_out: int) -> str:
        weight = self.weight(f"{name}.weight", width_out, width_in)
        return self.apply("Gemm", x, weight, self.weight(f"{name}.bias", width_out), transB=1)

    def norm(self, x: str, name: str) -> str:
        weight, bias = (self.weight(f"{name}.{part}", WIDTH) for part in ("weight", "bias"))
        return self.apply("LayerNormalization", x, weight, bias, axis=-1, epsilon=EPSILON)


class Int8Graph(Graph):
    """The same graph with its products in whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, tuple[str, str]] = {}

    def dense(self, x: str, name: str, width_in: int, width_out: int) -> str:
        if x not in self._rows:
            self._rows[x] = self._quantised(x, after_gelu=width_in == INNER)
        rows, scale = self._rows[x]
        weight = self.weight(f"{name}.weight.int8", width_in, width_out, kind=TensorProto.INT8)
        weight_scale, bias = (self.weight(f"{name}.{part}", width_out) for part in ("weight.scale", "bias"))
        one, zero = self.constant(1.0, np.float32), self.constant(ZERO, np.uint8)
        product = self.apply("MatMulIntegerToFloat", rows, weight, one, weight_scale, zero, domain="com.microsoft")
        return self.apply("Add", self.apply("Mul", product, scale), bias)

    def _quantised(self, x: str, after_gelu: bool) -> tuple[str, str]:
        """The rows of a matrix as whole numbers, and what one of them is worth in each row."""
        largest = self.apply("ReduceMax", x if after_gelu else self.apply("Abs", x), axes=[1], keepdims=1)
        if after_gelu:  # which gives nothing below -0.17: one pass over the widest matrix less
            largest = self.apply("Max", largest, self.constant(0.17, np.float32))
        scale = self.apply("Mul", largest, self.constant(1 / (ZERO - 1), np.float32))
        flat = self.apply("Reshape", scale, self.ints(-1))
        zeros = self.apply("Expand", self.constant([ZERO], np.uint8), self.apply("Shape", flat))
        return self.apply("QuantizeLinear", x, flat, zeros, axis=0), scale


def embeddings(g: Graph) -> str:
    tokens = g.apply("Slice", g.apply("Shape", "ids"), g.ints(1), g.ints(2))
    word = g.apply("Gather", g.weight("embeddings.word_embeddings.weight", VOCABULARY, WIDTH), "ids")
    table = g.weight("embeddings.position_embeddings.weight", POSITIONS, WIDTH)
    position = g.apply("Slice", table, g.ints(0), tokens, g.ints(0))
    kind = g.apply("Gather", g.weight("embeddings.token_type_embeddings.weight", 2, WIDTH), g.ints(0))
    summed = g.apply("Add", word, g.apply("Add", position, kind))
    flat = g.apply("Reshape", summed, g.ints(-1, WIDTH))
    return g.norm(flat, "embeddings.LayerNorm")


def attention(g: Graph, x: str, name: str, by_head: str) -> str:
    def heads(part: str, order: list[int]) -> str:
        dense = g.dense(x, f"{name}.self.{part}", WIDTH, WIDTH)
        return g.apply("Transpose", g.apply("Reshape", dense, by_head), perm=order)

    query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    scale = g.constant(1 / HEAD_WIDTH**0.5, np.float32)
    weights = g.apply("Softmax", g.apply("Mul", g.apply("MatMul", query, key), scale), axis=-1)
    mixed = g.apply("Transpose", g.apply("MatMul", weights, value), perm=[0, 2, 1, 3])
    return g.dense(g.apply("Reshape", mixed, g.ints(-1, WIDTH)), f"{name}.output.dense", WIDTH, WIDTH)


def gelu(g: Graph, x: str) -> str:
    erf = g.apply("Erf", g.apply("Div", x, g.constant(2**0.5, np.float32)))
    doubled = g.apply("Mul", x, g.apply("Add", erf, g.constant(1.0, np.float32)))
    return g.apply("Mul", doubled, g.constant(0.5, np.float32))


def build(g: Graph) -> ModelProto:
    shape = g.apply("Shape", "ids")
    by_head = g.apply("Concat", shape, g.ints(HEADS, HEAD_WIDTH), axis=0)
    x = embeddings(g)
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        x = g.norm(
            g.apply("Add", x, attention(g, x, f"{name}.attention", by_head)), f"{name}.attention.output.LayerNorm"
        )
        inner = gelu(g, g.dense(x, f"{name}.intermediate.dense", WIDTH, INNER))
        x = g.norm(g.apply("Add", x, g.dense(inner, f"{name}.output.dense", INNER, WIDTH)), f"{name}.output.LayerNorm")
    by_text = g.apply("Concat", shape, g.ints(WIDTH), axis=0)
    # The mean as a matrix product: ReduceMean sums in another order when a batch holds a single text.
    tokens = g.apply("Slice", shape, g.ints(1), g.ints(2))
    share = g.apply("Reciprocal", g.apply("Cast", tokens, to=TensorProto.FLOAT))
    row = g.apply("Expand", share, g.apply("Concat", g.ints(1), tokens, axis=0))
    mean = g.apply("MatMul", row, g.apply("Reshape", x, by_text))
    pooled = g.apply("Reshape", mean, g.ints(-1, WIDTH))
    length = g.apply("ReduceL2", pooled, axes=[1], keepdims=1)
    g.apply("Div", pooled, length, out="vectors")
    graph = helper.make_graph(
        g.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", WIDTH])],
        g.initializers,
    )
    sets = [helper.make_opsetid("", OPSET)]
    if isinstance(g, Int8Graph):
        sets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=sets, ir_version=8, producer_name="kbgym")


def serialized() -> dict[str, bytes]:
    """The bytes of each file."""
    graphs = {"minilm.onnx": Graph(), "minilm_int8.onnx": Int8Graph()}
    return {name: build(graph).SerializeToString(deterministic=True) for name, graph in graphs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT)
    out: Path = parser.parse_args().out
    for name, data in serialized().items():
        (out / name).write_bytes(data)
        print(f"{out / name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
