#!/usr/bin/env python3
"""Writes an ONNX file as a .tflite file of float32, as LiteRT runs it: images with channels last.

Needs onnx, flatbuffers and ai-edge-litert (for the file format's classes); no TensorFlow. Only what the
networks of `tandem zoo list` and their like are made of is known: an operator that is not ends this with
an error that names it. Shapes must be fixed.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnx

from tflite.emitter import IMAGE, Emitter
from tflite.graph import ExportError, Graph
from tflite.operators import HANDLERS
from tflite.views import View

IMAGE_OPERATORS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "Resize")


def export(source, target):
    """Returns how the file's tensors lie: for each input and output, in ONNX's order, {"name": as in
    ONNX, "order": the axes of the ONNX tensor as they are in LiteRT's}; and the operators' names."""
    graph = Graph(source)
    emitter = Emitter(graph)
    images = any(node.op in IMAGE_OPERATORS for node in graph.nodes)
    inputs = [add_input(emitter, value, images) for value in graph.inputs]
    for node in graph.nodes:
        if id(node) in emitter.done:
            continue
        if node.op not in HANDLERS:
            node.fail("this operator is not known to tflite_export")
        HANDLERS[node.op](emitter, node)
    outputs = [finish(emitter, name) for name in graph.outputs]
    emitter.writer.write(target, [i.pop("tensor") for i in inputs], [o.pop("tensor") for o in outputs])
    return {"inputs": inputs, "outputs": outputs, "operators": emitter.writer.operator_names()}


def add_input(emitter, value, images):
    kind = value.type.tensor_type
    dims = tuple(d.dim_value for d in kind.shape.dim)
    if not all(dims):
        raise ExportError(f"input '{value.name}': its shape is not fixed")
    order = IMAGE if images and len(dims) == 4 else tuple(range(len(dims)))
    shape = tuple(dims[a] for a in order)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    if dtype not in (np.float32, np.int64, np.int32):
        raise ExportError(f"input '{value.name}': elements of type {dtype}")
    tensor = emitter.writer.add_tensor(shape, value.name, dtype)
    emitter.views[value.name] = View.of(tensor, shape, order)
    return {"name": value.name, "order": list(order), "tensor": tensor}


def finish(emitter, name):
    """An output stays as it lies if its axes do not lie in each other's way."""
    view = emitter.views.get(name)
    if view is None:
        raise ExportError(f"output '{name}' is a constant, or not there")
    order = view.order()
    return {"name": name, "order": list(order), "tensor": emitter.in_order(view, order)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=Path, help="the ONNX file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the .tflite file to write")
    parser.add_argument("--json", action="store_true", help="print what was made as JSON")
    arguments = parser.parse_args()
    if arguments.output.exists() and arguments.source.exists() and (
        arguments.output.samefile(arguments.source)
    ):
        sys.exit(f"tflite_export.py: {arguments.source}: the output would overwrite it; name another file")
    if not arguments.output.absolute().parent.is_dir():
        sys.exit(f"tflite_export.py: {arguments.output}: there is no folder to write it to")
    try:
        made = export(arguments.source, arguments.output)
    except (ExportError, OSError) as error:
        sys.exit(f"tflite_export.py: {arguments.source}: {error}")
    if arguments.json:
        print(json.dumps(made))
        return
    counts = {name: made["operators"].count(name) for name in sorted(set(made["operators"]))}
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    for kind in ("inputs", "outputs"):
        for tensor in made[kind]:
            print(f"{kind[:-1]} {tensor['name']}: ONNX's axes {tensor['order']}")


if __name__ == "__main__":
    main()
