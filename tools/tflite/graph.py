"""An ONNX file as the exporter reads it: constants folded, and what can be folded into the weights of
convolutions and matrix products in them."""

from dataclasses import dataclass

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

SQRT_2 = 2**0.5
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class ExportError(Exception):
    """Something that the exporter does not do; says what of which node."""


@dataclass
class Node:
    op: str
    name: str
    inputs: list
    outputs: list
    attributes: dict
    # Of operators that have constant ones: as ONNX's Conv and ConvTranspose have them, and for matrix
    # products [outputs, inputs].
    weight: np.ndarray = None
    bias: np.ndarray = None

    def fail(self, what):
        raise ExportError(f"{self.op} '{self.name}': {what}")

    def attribute(self, name, default=None):
        return self.attributes.get(name, default)


class Graph:
    def __init__(self, path):
        try:
            model = onnx.load(path)
        except DecodeError as error:
            raise ExportError("no ONNX file") from error
        onnx_graph = model.graph
        self.opset = next((o.version for o in model.opset_import if not o.domain), 1)
        self.constants = {t.name: numpy_helper.to_array(t) for t in onnx_graph.initializer}
        self.inputs = [i for i in onnx_graph.input if i.name not in self.constants]
        self.outputs = [o.name for o in onnx_graph.output]
        self.nodes = []
        for node in onnx_graph.node:
            self.add(node)
        self.find_consumers()
        self.take_weights()
        self.fold_into_weights()
        self.find_gelus()

    def add(self, node):
        if node.domain not in ("", "ai.onnx"):
            raise ExportError(f"{node.domain}.{node.op_type} '{node.name}': of an unknown domain")
        if all(not name or name in self.constants for name in node.input):
            results = evaluate(node, self.constants, self.opset)
            self.constants.update(zip(node.output, results))
            return
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
        self.nodes.append(
            Node(node.op_type, node.name, list(node.input), list(node.output), attributes)
        )

    def find_consumers(self):
        self.consumers = {}
        for node in self.nodes:
            for name in node.inputs:
                self.consumers.setdefault(name, []).append(node)

    def only_consumer(self, name):
        consumers = self.consumers.get(name, [])
        return consumers[0] if len(consumers) == 1 and name not in self.outputs else None

    def remove(self, node):
        """Its result is then that of the node before it."""
        for name in node.inputs:
            if name in self.consumers:
                self.consumers[name] = [n for n in self.consumers[name] if n is not node]
        self.nodes = [n for n in self.nodes if n is not node]

    # --- weights ---

    def take_weights(self):
        for node in self.nodes:
            if node.op not in WEIGHTED:
                continue
            weight = self.constants.get(node.inputs[1])
            if weight is None or (node.op == "MatMul" and weight.ndim != 2):
                continue
            bias = None
            if len(node.inputs) > 2 and node.inputs[2]:
                bias = self.constants.get(node.inputs[2])
                if bias is None:
                    continue
            if node.op == "Gemm":
                weight = weight if node.attribute("transB", 0) else weight.T
                weight = node.attribute("alpha", 1.0) * weight
                if bias is not None:
                    if bias.size not in (1, weight.shape[0]):
                        node.fail("its C is no vector of a value per output")
                    bias = node.attribute("beta", 1.0) * bias.reshape(-1)
                    bias = np.broadcast_to(bias, weight.shape[:1])
            elif node.op == "MatMul":
                weight = weight.T
            node.weight, node.bias = weight, bias

    def fold_into_weights(self):
        """Batch norms, and constants that are added or multiplied, one for each channel."""
        for node in list(self.nodes):
            if node.weight is None:
                continue
            while (follower := self.only_consumer(node.outputs[0])) is not None:
                affine = self.affine_of(node, follower)
                if affine is None:
                    break
                scale_and_shift(node, *affine)
                self.remove(follower)
                node.outputs = follower.outputs

    def affine_of(self, node, follower):
        """Scale and shift per channel of the node's output, if that is what the follower does."""
        if follower.op == "BatchNormalization":
            return batch_norm_affine(self, follower) if node.op.startswith("Conv") else None
        if follower.op not in ("Add", "Sub", "Mul", "Div"):
            return None
        ours = follower.inputs.index(node.outputs[0])
        other = self.constants.get(follower.inputs[1 - ours])
        values = None if other is None else per_channel(node, other)
        if values is None or (ours == 1 and follower.op == "Div"):
            return None
        if follower.op == "Add":
            return 1.0, values
        if follower.op == "Sub":
            return (1.0, -values) if ours == 0 else (-1.0, values)
        return (values if follower.op == "Mul" else 1 / values), 0.0

    # --- GELU ---

    def find_gelus(self):
        """x / 2 * (1 + erf(x / sqrt(2))), in whatever order its products are taken."""
        producers = {name: node for node in self.nodes for name in node.outputs}
        for erf in [n for n in self.nodes if n.op == "Erf"]:
            scaled = producers.get(erf.inputs[0])
            plus_one = self.only_consumer(erf.outputs[0])
            if scaled is None or plus_one is None or plus_one.op != "Add":
                continue
            x = self.scaled_input(scaled, 1 / SQRT_2)
            if x is not None and self.constant_beside(plus_one, erf.outputs[0]) == 1:
                self.replace_gelu(x, [scaled, erf, plus_one], producers)

    def replace_gelu(self, x, chain, producers):
        """Follows 1 + erf through products with x and 1/2, and puts a Gelu there."""
        seen_x, factor, last = False, 1.0, chain[-1]
        while not (seen_x and np.isclose(factor, 0.5)):
            product = self.only_consumer(last.outputs[0])
            if product is None or product.op != "Mul":
                return
            constant = self.constant_beside(product, last.outputs[0])
            other = product.inputs[1 - product.inputs.index(last.outputs[0])]
            half = producers.get(other)
            if constant is not None:
                factor *= constant
            elif not seen_x and other == x:
                seen_x = True
            elif not seen_x and half is not None and self.scaled_input(half, 0.5) == x:
                seen_x, factor = True, factor * 0.5
                chain.append(half)
            else:
                return
            chain.append(product)
            last = product
        gelu = Node("Gelu", last.name, [x], last.outputs, {})
        self.nodes[next(i for i, n in enumerate(self.nodes) if n is last)] = gelu
        for node in reversed(chain):
            if node is last or not any(self.consumers.get(name) for name in node.outputs):
                self.remove(node)
        self.find_consumers()

    def constant_beside(self, node, name):
        """The one number that the node's other input is, if it is."""
        other = self.constants.get(node.inputs[1 - node.inputs.index(name)])
        return None if other is None or other.size != 1 else float(other.reshape(-1)[0])

    def scaled_input(self, node, factor):
        """The input of a node that multiplies by this number, or divides by its inverse."""
        for name in node.inputs if node.op in ("Mul", "Div") else ():
            constant = None if name in self.constants else self.constant_beside(node, name)
            if constant is None or (node.op == "Div" and name != node.inputs[0]):
                continue
            if np.isclose(constant if node.op == "Mul" else 1 / constant, factor, rtol=1e-5):
                return name
        return None


def evaluate(node, constants, opset):
    graph = onnx.helper.make_graph(
        [node], "constant", [onnx.helper.make_empty_tensor_value_info(n) for n in node.input if n],
        [onnx.helper.make_empty_tensor_value_info(n) for n in node.output],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    evaluator = ReferenceEvaluator(model)
    results = evaluator.run(None, {name: constants[name] for name in node.input if name})
    return [np.asarray(result) for result in results]


def batch_norm_affine(graph, node):
    names = node.inputs[1:5]
    if any(name not in graph.constants for name in names):
        node.fail("its statistics are no constants")
    scale, shift, mean, variance = (graph.constants[n].astype(np.float64) for n in names)
    scale = scale / np.sqrt(variance + node.attribute("epsilon", 1e-5))
    return scale, shift - mean * scale


def per_channel(node, values):
    """A vector, or one number; None if the constant is neither beside the node's output."""
    values = values.astype(np.float64)
    if values.size == 1 and values.ndim <= 1:
        return values.reshape(())
    outputs = output_channels(node)
    if node.op.startswith("Conv"):
        rank = node.weight.ndim
        if values.ndim > rank or values.size != outputs:
            return None
        shape = (1,) * (rank - values.ndim) + values.shape
        return values.reshape(-1) if shape[1] == outputs else None
    if values.ndim > 2 or values.size != outputs or values.shape[-1] != outputs:
        return None
    return values.reshape(-1)


def output_channels(node):
    if node.op == "ConvTranspose":
        return node.weight.shape[1] * node.attribute("group", 1)
    return node.weight.shape[0]


def scale_and_shift(node, scale, shift):
    outputs = output_channels(node)
    bias = np.zeros(outputs) if node.bias is None else node.bias.astype(np.float64)
    node.bias = (bias * scale + shift).astype(np.float32)
    if np.all(scale == 1):
        return
    weight = node.weight.astype(np.float64)
    scale = np.broadcast_to(scale, (outputs,))
    if node.op == "ConvTranspose":
        if node.attribute("group", 1) != 1:
            node.fail("in groups")
        weight = weight * scale.reshape(1, -1, *[1] * (weight.ndim - 2))
    else:
        weight = weight * scale.reshape(-1, *[1] * (weight.ndim - 1))
    node.weight = weight.astype(np.float32)
