#!/usr/bin/env python3
"""Writes small ONNX graphs, exports them and other ONNX files to .tflite, runs both with LiteRT and ONNX
Runtime, and prints as JSON how far the results are apart and which operators LiteRT has: for
test_tflite_export.py. Needs the packages of requirements.txt."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tools")
from tflite_export import export  # noqa: E402

RNG = np.random.default_rng(5)


class Builder:
    """A graph whose tensors are called by what makes them."""

    def __init__(self, *shape, dtype=TensorProto.FLOAT):
        self.nodes, self.weights = [], []
        self.input = helper.make_tensor_value_info("x", dtype, shape)

    def weight(self, *shape, low=-1.0, high=1.0):
        return self.constant(RNG.uniform(low, high, shape).astype(np.float32))

    def constant(self, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, names[0], **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, inputs, outputs, size, **attributes):
        weight = self.weight(outputs, inputs // attributes.get("group", 1), *size)
        return self.add("Conv", x, weight, self.weight(outputs), **attributes)

    def batch_norm(self, x, channels):
        statistics = [self.weight(channels) for _ in range(3)]
        return self.add("BatchNormalization", x, *statistics, self.weight(channels, low=0.5, high=2))

    def write(self, path, *results):
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in results]
        graph = helper.make_graph(self.nodes, path.stem, [self.input], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.save(model, path)


def asymmetric_pads():
    g = Builder(1, 3, 13, 11)
    y = g.conv("x", 3, 6, (3, 3), pads=[0, 2, 1, 1], strides=[2, 1])
    return g, g.add("Relu", y)


def same_pads():
    g = Builder(2, 3, 12, 9)
    y = g.add("Relu", g.conv("x", 3, 6, (3, 3), pads=[1, 1, 1, 1]))
    y = g.conv(y, 6, 5, (3, 2), pads=[0, 0, 1, 1], strides=[2, 2])
    return g, g.conv(y, 5, 4, (3, 3), pads=[2, 2, 2, 2], dilations=[2, 2])


def stride_on_even_extents():
    g = Builder(1, 4, 16, 16)
    return g, g.conv("x", 4, 8, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])


def grouped():
    g = Builder(1, 8, 9, 9)
    y = g.add("Relu", g.conv("x", 8, 12, (3, 3), group=4, pads=[1, 1, 1, 1]))
    y = g.batch_norm(g.conv(y, 12, 24, (3, 3), group=12, pads=[1, 1, 1, 1]), 24)
    return g, g.add("Clip", y, g.constant(np.float32(0)), g.constant(np.float32(6)))


def constants_into_weights():
    g = Builder(1, 4, 7, 7)
    y = g.batch_norm(g.conv("x", 4, 6, (1, 1)), 6)
    y = g.add("Mul", y, g.constant(np.float32(0.17)))
    y = g.add("Sub", g.weight(6, 1, 1), y)
    return g, g.batch_norm(g.add("Sigmoid", y), 6)


def transposed_convolution():
    g = Builder(1, 6, 5, 7)
    y = g.add("ConvTranspose", "x", g.weight(6, 4, 2, 2), g.weight(4), strides=[2, 2])
    y = g.batch_norm(y, 4)
    return g, g.add("ConvTranspose", y, g.weight(4, 3, 3, 3), strides=[2, 2], pads=[1, 1, 0, 0])


def average_pools():
    g = Builder(1, 4, 11, 8)
    kinds = [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 0], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "pads": [2, 0, 0, 1], "strides": [2, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0], "strides": [2, 2], "ceil_mode": 1,
         "count_include_pad": 1},
    ]
    return g, *(g.add("AveragePool", "x", **kind) for kind in kinds)


def max_pools():
    g = Builder(1, 4, 12, 9)
    below = g.add("Sub", "x", g.constant(np.float32(100)))
    kinds = [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    ]
    results = [g.add("MaxPool", below, **kind) for kind in kinds]
    return g, *results, g.add("MaxPool", g.add("Relu", "x"), **kinds[0])


def flatten_and_gemm():
    g = Builder(2, 5, 3, 4)
    y = g.add("Relu", g.conv("x", 5, 6, (1, 1)))
    y = g.add("Gemm", g.add("Flatten", y), g.weight(9, 72), g.weight(9), transB=1, alpha=0.5, beta=2.0)
    return g, g.add("Gemm", g.add("Relu", y), g.weight(9, 4), g.constant(np.float32([0.25])))


def flattened_result():
    g = Builder(1, 3, 4, 5)
    return g, g.add("Flatten", g.conv("x", 3, 6, (1, 1)))


def matmul():
    g = Builder(2, 3, 4, 5)
    y = g.add("MatMul", g.add("MatMul", "x", g.weight(5, 6)), g.weight(2, 3, 6, 7))
    turned = g.add("Transpose", y, perm=[0, 1, 3, 2])
    return g, g.add("MatMul", turned, y), g.add("MatMul", y, turned)


def attention():
    g = Builder(2, 6, 16)
    y = g.add("MatMul", "x", g.weight(16, 48))
    y = g.add("Reshape", y, g.constant(np.array([0, -1, 3, 4, 4])))
    y = g.add("Transpose", y, perm=[2, 0, 3, 1, 4])
    q, k, v = (g.add("Gather", y, g.constant(np.array(i)), axis=0) for i in range(3))
    y = g.add("MatMul", q, g.add("Transpose", k, perm=[0, 1, 3, 2]))
    y = g.add("MatMul", g.add("Softmax", y, axis=-1), v)
    y = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), g.constant(np.array([2, 6, 16])))
    return g, g.add("Add", y, "x")


def layer_norm():
    g = Builder(2, 5, 24)
    y = g.add("LayerNormalization", "x", g.weight(24), g.weight(24), axis=-1, epsilon=1e-6)
    return g, y, g.add("LayerNormalization", "x", g.weight(5, 24), axis=1)


def gelu():
    """In both orders in which it is exported."""
    g = Builder(3, 10)
    root, one, half = (g.constant(np.float32(v)) for v in (2**0.5, 1, 0.5))
    y = g.add("Add", g.add("Erf", g.add("Div", "x", root)), one)
    first = g.add("Mul", g.add("Mul", "x", y), half)
    z = g.add("Add", one, g.add("Erf", g.add("Div", first, root)))
    return g, g.add("Mul", g.add("Mul", first, half), z)


def resize():
    g = Builder(1, 3, 5, 4)
    empty = ""
    scales, sizes = g.constant(np.float32([1, 1, 2, 3])), g.constant(np.array([1, 3, 9, 7]))
    asymmetric = {"coordinate_transformation_mode": "asymmetric"}
    return (
        g,
        g.add("Resize", "x", empty, scales, mode="nearest", nearest_mode="floor", **asymmetric),
        g.add("Resize", "x", empty, scales, mode="nearest"),
        g.add("Resize", "x", empty, scales, mode="linear"),
        g.add("Resize", "x", empty, empty, sizes, mode="linear",
              coordinate_transformation_mode="align_corners"),
        g.add("Resize", "x", empty, scales, mode="linear", **asymmetric),
    )


def shuffled_channels():
    g = Builder(1, 8, 5, 6)
    y = g.add("Reshape", g.conv("x", 8, 8, (1, 1)), g.constant(np.array([1, 2, 4, 5, 6])))
    y = g.add("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = g.add("Reshape", y, g.constant(np.array([1, 8, 5, 6])))
    a, b = g.add("Split", y, g.constant(np.array([3, 5])), outputs=2, axis=1)
    c = g.add("Slice", b, *(g.constant(np.array(v)) for v in ([1], [-1], [1])))
    return g, g.add("Concat", c, a, g.weight(1, 2, 5, 6), axis=1), g.conv(a, 3, 2, (1, 1))


def broadcasts():
    g = Builder(1, 6, 4, 5)
    y = g.conv("x", 6, 6, (1, 1))
    gate = g.add("Sigmoid", g.add("GlobalAveragePool", y))
    y = g.add("Relu", g.add("Add", g.add("Mul", gate, y), g.weight(5)))
    y = g.add("Div", y, g.weight(6, 1, 1, low=1, high=2))
    mean = g.add("ReduceMean", y, axes=[2, 3], keepdims=0)
    return g, g.add("Pow", y, g.constant(np.float32(2))), mean, g.add("Max", y, g.weight(1, 6, 4, 5))


def reshape_across_factors():
    """No extent of the one is made of whole parts of the other's."""
    g = Builder(1, 4, 3, 3)
    return g, g.add("Reshape", g.conv("x", 4, 4, (1, 1)), g.constant(np.array([1, 6, 6])))


def factors_of(size, parts, rng):
    """`parts` extents whose product is `size`."""
    extents = [1] * parts
    for prime in (2, 3, 5, 7, 11, 13):
        while size % prime == 0:
            extents[rng.integers(parts)] *= prime
            size //= prime
    return extents + ([size] if size > 1 else [])


def random_views(seed):
    """Transpositions and reshapes between operators to which the order of elements matters."""
    rng = np.random.default_rng(seed)
    shape = [2, 4, 6, 6]
    g = Builder(*shape)
    y = g.conv("x", 4, 4, (1, 1))
    seen = []
    for _ in range(12):
        axis = int(rng.integers(len(shape)))
        kind = rng.choice(["transpose", "reshape", "add", "matmul", "slice", "softmax", "mean", "concat",
                           "gather", "again", "relu"])
        if kind == "transpose":
            order = [int(a) for a in rng.permutation(len(shape))]
            y, shape = g.add("Transpose", y, perm=order), [shape[a] for a in order]
        elif kind == "reshape":
            shape = factors_of(int(np.prod(shape)), int(rng.integers(1, 5)), rng)
            y = g.add("Reshape", y, g.constant(np.array(shape)))
        elif kind == "add":
            other = [extent if rng.integers(2) else 1 for extent in shape[axis:]]
            y = g.add(str(rng.choice(["Add", "Mul"])), y, g.weight(*other))
        elif kind == "matmul" and len(shape) > 1:
            y, shape = g.add("MatMul", y, g.weight(shape[-1], 6)), [*shape[:-1], 6]
        elif kind == "slice" and shape[axis] > 1:
            y = g.add("Slice", y, *(g.constant(np.array([v])) for v in (1, shape[axis], axis)))
            shape[axis] -= 1
        elif kind == "gather" and len(shape) > 1 and np.prod(shape) / shape[axis] > 8:
            y = g.add("Gather", y, g.constant(np.array(shape[axis] - 1)), axis=axis)
            del shape[axis]
        elif kind == "softmax":
            y = g.add("Softmax", y, axis=axis)
        elif kind == "mean" and np.prod(shape) / shape[axis] > 8:
            y = g.add("ReduceMean", y, axes=[axis], keepdims=1)
            shape[axis] = 1
        elif kind == "concat":
            y = g.add("Concat", y, g.add("Sigmoid", y), axis=axis)
            shape[axis] *= 2
        elif kind == "again" and (same := [name for name, other in seen if other == shape]):
            y = g.add("Add", same[rng.integers(len(same))], y)
        elif kind == "relu":
            y = g.add("Relu", y)
        seen.append((y, list(shape)))
    return g, y


RANDOM_GRAPHS = 60
GRAPHS = (
    asymmetric_pads, same_pads, stride_on_even_extents, grouped, constants_into_weights,
    transposed_convolution, average_pools, max_pools, flatten_and_gemm, flattened_result, matmul,
    attention, layer_norm, gelu, resize, shuffled_channels, broadcasts, reshape_across_factors,
)


def compare(path):
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    target = path.with_suffix(".tflite")
    made = export(path, target)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (feed,) = session.get_inputs()
    values = RNG.standard_normal(feed.shape, np.float32)
    if feed.type == "tensor(int64)":
        values = RNG.integers(0, 10, feed.shape)
    expected = session.run(None, {feed.name: values})
    interpreter = Interpreter(model_path=str(target))
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    order = made["inputs"][0]["order"]
    interpreter.set_tensor(detail["index"], np.ascontiguousarray(values.transpose(order)))
    interpreter.invoke()
    errors = []
    for detail, tensor, other in zip(interpreter.get_output_details(), made["outputs"], expected):
        result = interpreter.get_tensor(detail["index"]).transpose(np.argsort(tensor["order"]))
        # A difference of shapes is one without bound.
        same = result.shape == other.shape
        off = np.abs(result - other).max() / np.abs(other).max() if same else np.inf
        errors.append(float(off))
    return {"errors": errors, "results": len(expected), "operators": made["operators"]}


def main():
    folder = Path(sys.argv[1])
    for make in GRAPHS:
        graph, *results = make()
        graph.write(folder / f"{make.__name__}.onnx", *results)
    for seed in range(RANDOM_GRAPHS):
        graph, result = random_views(seed)
        graph.write(folder / f"random_views_{seed}.onnx", result)
    print(json.dumps({path.stem: compare(path) for path in sorted(folder.glob("*.onnx"))}))


if __name__ == "__main__":
    main()
