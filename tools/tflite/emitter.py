"""Tensors of LiteRT for tensors of ONNX: constants, and views that are moved only where needed."""

from math import prod

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from .graph import ExportError
from .views import View
from .writer import TfliteWriter

# Of an image of ONNX, its axes as LiteRT has them.
IMAGE = (0, 2, 3, 1)
# XNNPACK's transposition takes no more.
MOST_DIMS = 6

Activation = schema.ActivationFunctionType


class Emitter:
    """Holds for each tensor of ONNX that is no constant its view, and knows whose elements are never
    negative."""

    def __init__(self, graph):
        self.graph = graph
        self.writer = TfliteWriter()
        self.views = {}
        self.nonnegative = set()
        self.moved = {}  # what has been moved already
        self.done = set()  # nodes, by identity, that others have taken in

    # --- operands ---

    def constant(self, name):
        return self.graph.constants.get(name)

    def view(self, node, index):
        name = node.inputs[index]
        if name in self.views:
            return self.views[name]
        values = self.constant(name)
        if values is None:
            node.fail(f"input '{name}' is not there")
        return View.of(self.writer.add_constant(as_written(values), name), values.shape)

    def integers(self, node, index, attribute=None, default=None):
        """An attribute of older versions, or a constant input of newer ones."""
        if attribute is not None and attribute in node.attributes:
            return [int(v) for v in np.atleast_1d(node.attributes[attribute])]
        if index >= len(node.inputs) or not node.inputs[index]:
            return default
        values = self.constant(node.inputs[index])
        if values is None:
            node.fail(f"input '{node.inputs[index]}' is no constant")
        return [int(v) for v in np.atleast_1d(values)]

    # --- moving ---

    def reshape(self, tensor, shape):
        if self.writer.shape(tensor) == tuple(shape):
            return tensor
        return self.emit("RESHAPE", [tensor, self.shape_constant(shape)], shape,
                         newShape=np.array(shape, np.int32), like=tensor)

    def shape_constant(self, values):
        return self.writer.add_constant(np.array(values, np.int32))

    def in_order(self, view, order):
        """LiteRT's tensor of the view's axes in this order."""
        dims = view.dims
        shape = tuple(dims[a] for a in order)
        key = (view, tuple(order))
        if key not in self.moved:
            self.moved[key] = self.move(view, [view.axes[a] for a in order], shape)
        return self.moved[key]

    def move(self, view, parts, shape):
        """`parts`: the factors of each of the new extents."""
        flat = [f for part in parts for f in part]
        if flat == sorted(flat):
            return self.reshape(view.tensor, shape)
        if all(list(part) == list(range(part[0], part[0] + len(part))) for part in parts if part):
            narrow = [i for i, part in enumerate(parts) if not part]
            wide = sorted((i for i, part in enumerate(parts) if part), key=lambda i: parts[i][0])
            before = narrow + wide
            if [shape[i] for i in wide] == [e for e in view.shape if e > 1] and len(shape) == len(
                view.shape
            ):
                rest, ones = iter(wide), iter(narrow)
                before = [next(rest) if extent > 1 else next(ones) for extent in view.shape]
            if len(shape) <= MOST_DIMS:
                source = self.reshape(view.tensor, [shape[i] for i in before])
                return self.transpose(source, [before.index(i) for i in range(len(shape))])
        # Factors that stay neighbours are moved together.
        runs = []
        for f in flat:
            if runs and runs[-1][-1] == f - 1:
                runs[-1].append(f)
            else:
                runs.append([f])
        before = sorted(range(len(runs)), key=lambda i: runs[i][0])
        source = self.reshape(view.tensor, [prod(view.factors[f] for f in runs[i]) for i in before])
        moved = self.transpose(source, [before.index(i) for i in range(len(runs))])
        return self.reshape(moved, shape)

    def transpose(self, tensor, order):
        shape = self.writer.shape(tensor)
        if len(order) > MOST_DIMS:
            raise ExportError(f"a transposition of {len(order)} dimensions")
        return self.emit("TRANSPOSE", [tensor, self.shape_constant(order)],
                         [shape[i] for i in order], like=tensor)

    # --- results ---

    def emit(self, operator, inputs, shape, name="", like=None, dtype=np.float32, **options):
        """An operator with one result, which has this shape."""
        output = self.writer.add_tensor(shape, name or f"t{len(self.writer.tensors)}", dtype)
        if like is not None:
            self.writer.tensors[output].type = self.writer.tensors[like].type
        self.writer.add_operator(operator, inputs, [output], **options)
        return output

    def activation(self, node):
        """What LiteRT is to do to the node's result, and the name of the result then: activations
        that nothing else comes before are taken into the operator."""
        name = node.outputs[0]
        follower = self.graph.only_consumer(name)
        if follower is None or follower.op not in ("Relu", "Clip"):
            return Activation.NONE, name
        bounds = (0, np.inf) if follower.op == "Relu" else self.clip_bounds(follower)
        known = {(0, np.inf): Activation.RELU, (0, 6): Activation.RELU6,
                 (-1, 1): Activation.RELU_N1_TO_1}
        if bounds not in known:
            return Activation.NONE, name
        self.done.add(id(follower))
        if bounds[0] == 0:
            self.nonnegative.add(follower.outputs[0])
        return known[bounds], follower.outputs[0]

    def clip_bounds(self, node):
        bounds = []
        for index, attribute, default in ((1, "min", -np.inf), (2, "max", np.inf)):
            value = node.attribute(attribute, default)
            if index < len(node.inputs) and node.inputs[index]:
                value = self.constant(node.inputs[index])
                if value is None:
                    node.fail("its bounds are no constants")
            bounds.append(float(np.asarray(value).reshape(-1)[0]))
        return tuple(bounds)

    def result(self, node, operator, inputs, shape, order=None, **options):
        """The node's, its activation included if `operator` has one: axes in this order."""
        name = node.outputs[0]
        if "fusedActivationFunction" in options:
            options["fusedActivationFunction"], name = self.activation(node)
        tensor = self.emit(operator, inputs, shape, name, **options)
        self.views[name] = View.of(tensor, shape, order)
        return tensor

    def unary(self, node, operator, **options):
        """Where the elements are does not matter."""
        view = self.view(node, 0)
        tensor = self.emit(operator, [view.tensor], view.shape, node.outputs[0], like=view.tensor,
                           **options)
        self.views[node.outputs[0]] = view.on(tensor)

    def same(self, node):
        """Its result is its input."""
        self.views[node.outputs[0]] = self.view(node, 0)
        self.keep_sign(node)

    def keep_sign(self, node, inputs=None):
        """Where none of these inputs, by default the first, is negative, no result is."""
        if all(name in self.nonnegative for name in inputs or node.inputs[:1]):
            self.nonnegative.update(node.outputs)

    def binary(self, node, operator, fused=True):
        """Elementwise, with broadcasting."""
        options = {"fusedActivationFunction": Activation.NONE} if fused else {}
        values = [self.constant(name) for name in node.inputs]
        scalar = next((i for i, v in enumerate(values) if v is not None and v.size == 1), None)
        if scalar is not None and values[scalar].ndim <= len(self.view(node, 1 - scalar).dims):
            view = self.view(node, 1 - scalar)
            number = self.writer.add_constant(as_written(values[scalar].reshape(())))
            inputs = [number, view.tensor] if scalar == 0 else [view.tensor, number]
            name = node.outputs[0]
            if fused:
                options["fusedActivationFunction"], name = self.activation(node)
            self.views[name] = view.on(self.emit(operator, inputs, view.shape, name, **options))
            return
        dims = np.broadcast_shapes(*(self.operand_dims(node, i) for i in range(2)))
        order = self.common_order(node, len(dims))
        inputs = [self.operand(node, i, order) for i in range(2)]
        self.result(node, operator, inputs, tuple(int(dims[a]) for a in order), order, **options)

    def operand_dims(self, node, index):
        values = self.constant(node.inputs[index])
        return values.shape if values is not None else self.view(node, index).dims

    def common_order(self, node, rank):
        """Of the operand that has most to move."""
        views = [self.views[name] for name in node.inputs if name in self.views]
        return self.expand(max(views, key=lambda v: prod(v.dims)), rank).order()

    def expand(self, view, rank):
        """With leading axes of extent 1."""
        axes = ((),) * (rank - len(view.axes)) + view.axes
        return View(view.tensor, view.shape, view.factors, axes)

    def operand(self, node, index, order):
        """An input's tensor in this order; constants are stored so."""
        values = self.constant(node.inputs[index])
        if values is None:
            return self.in_order(self.expand(self.view(node, index), len(order)), order)
        values = values.reshape((1,) * (len(order) - values.ndim) + values.shape)
        return self.writer.add_constant(as_written(values.transpose(order)), node.inputs[index])

    def image(self, node, index=0):
        """The input as an image of LiteRT's."""
        view = self.view(node, index)
        if len(view.dims) != 4:
            node.fail(f"has {len(view.dims)} dimensions, not those of an image")
        return self.in_order(view, IMAGE)


def as_written(values):
    return values.astype(np.float32) if values.dtype == np.float64 else values
