#!/usr/bin/env python3
"""Writes an ONNX model in which every form of parallelism on its own loses.

A filter bank: many bands, each a stack of small convolutions. Then a trunk: a few heavy convolutions,
one after another.

- Cutting every operator (intra, chain) loses in the bands: a small operator that is cut has to be begun
  by both lanes, which costs about what is gained, and the halves wait for each other all the time.
- Giving whole operators to lanes (inter) loses in the trunk: there is one operator at a time.
- Deciding both together (joint) spreads whole bands over the lanes and cuts the trunk.

    .venv/bin/python examples/bands.py -o bands.onnx
    tandem bench model bands.onnx --strategy cpu,gpu,inter,intra,chain,joint --runs 31

examples/README.md has what that prints.
"""

import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self):
        self.random = np.random.default_rng(1)
        self.nodes = []
        self.weights = []

    def add(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, x, channels_in, channels_out, taps, name):
        scale = np.sqrt(2 / (channels_in * taps * taps))
        weights = self.random.standard_normal((channels_out, channels_in, taps, taps)) * scale
        self.weights.append(numpy_helper.from_array(weights.astype(np.float32), name + ".weight"))
        pad = taps // 2
        y = self.add(
            "Conv", [x, name + ".weight"], name, kernel_shape=[taps, taps], pads=[pad] * 4
        )
        return self.add("Relu", [y], name + ".relu")


def bands(count, depth, size, width, taps, trunk, trunk_channels):
    b = Builder()
    ends = []
    for band in range(count):
        x = "x"
        for layer in range(depth):
            x = b.conv(x, width, width, taps, f"band{band}.{layer}")
        ends.append(x)
    x = b.add("Concat", ends, "bands", axis=1)
    channels = count * width
    for layer in range(trunk):
        x = b.conv(x, channels, trunk_channels, 3, f"trunk.{layer}")
        channels = trunk_channels
    b.nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        b.nodes,
        "bands",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, size, size])],
        b.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, help="the ONNX file to write")
    parser.add_argument("--bands", type=int, default=32)
    parser.add_argument("--depth", type=int, default=4, help="convolutions of a band")
    parser.add_argument("--width", type=int, default=16, help="channels of a band")
    parser.add_argument("--size", type=int, default=16, help="rows and columns")
    parser.add_argument("--taps", type=int, default=3)
    parser.add_argument("--trunk", type=int, default=2, help="convolutions of the trunk")
    parser.add_argument("--trunk-channels", type=int, default=256)
    flags = parser.parse_args()
    model = bands(
        flags.bands,
        flags.depth,
        flags.size,
        flags.width,
        flags.taps,
        flags.trunk,
        flags.trunk_channels,
    )
    onnx.save(model, flags.output)


if __name__ == "__main__":
    main()
