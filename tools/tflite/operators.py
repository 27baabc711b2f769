"""What LiteRT has for each operator of ONNX, but those that slide over images (windows.py)."""

from math import prod

import numpy as np

from . import windows
from .emitter import Activation, Emitter
from .graph import batch_norm_affine
from .views import View


# --- matrix products ---


def linear(emitter, node):
    """With constant weights. Rows may lie in any order; where elements of a row lie in another order
    than ONNX's, the weights' columns are brought into theirs."""
    view = emitter.view(node, 0)
    if node.op == "Gemm" and node.attribute("transA", 0):
        view = view.transposed((1, 0))
    last = view.axes[-1]
    inner = prod(view.factors[f] for f in last)
    weight = node.weight
    if sorted(last) != list(range(len(view.factors) - len(last), len(view.factors))):
        order = [a for a in view.order() if a != len(view.axes) - 1] + [len(view.axes) - 1]
        tensor = emitter.in_order(view, order)
        view = View.of(tensor, emitter.writer.shape(tensor), order)
    else:
        extents = [view.factors[f] for f in last]
        weight = weight.reshape(-1, *extents).transpose(0, *(1 + np.argsort(last)))
        weight = weight.reshape(-1, inner)
    tensor = view.tensor
    if view.shape[-1] != inner:
        outer = [e for e in view.shape if e > 1]
        dims = [view.dims[a] for a in view.order() if a != len(view.axes) - 1]
        outer = dims if prod(dims) * inner == prod(outer) else [prod(outer) // inner]
        tensor = emitter.reshape(tensor, [*outer, inner])
    inputs = [tensor, emitter.writer.add_constant(np.ascontiguousarray(weight, np.float32),
                                                  f"{node.name}.weight")]
    if node.bias is not None:
        inputs.append(emitter.writer.add_constant(np.asarray(node.bias, np.float32),
                                                  f"{node.name}.bias"))
    fused, name = emitter.activation(node)
    outputs = weight.shape[0]
    shape = (*emitter.writer.shape(tensor)[:-1], outputs)
    tensor = emitter.emit("FULLY_CONNECTED", inputs, shape, name, fusedActivationFunction=fused,
                          keepNumDims=len(shape) > 2)
    rows = len(view.factors) - len(view.axes[-1])
    factors = view.factors[:rows] + ((outputs,) if outputs > 1 else ())
    axes = view.axes[:-1] + (((rows,) if outputs > 1 else ()),)
    emitter.views[name] = View(tensor, shape, factors, axes)


def product(emitter, node):
    if node.weight is not None:
        linear(emitter, node)
        return
    if node.op == "Gemm":
        node.fail("without constant weights")
    a, b = emitter.view(node, 0), emitter.view(node, 1)
    rank = max(len(a.dims), len(b.dims))
    if min(len(a.dims), len(b.dims)) < 2:
        node.fail("of a vector")
    a, b = emitter.expand(a, rank), emitter.expand(b, rank)
    order = list(range(rank))
    swapped = order[:-2] + [rank - 1, rank - 2]
    # LiteRT reads the right side either way: its rows stay together if they lie so now.
    adjoint = bool(b.axes[-2]) and b.axes[-2][-1] == len(b.factors) - 1
    left, right = emitter.in_order(a, order), emitter.in_order(b, swapped if adjoint else order)
    batch = np.broadcast_shapes(a.dims[:-2], b.dims[:-2])
    shape = (*(int(e) for e in batch), a.dims[-2], b.dims[-1])
    emitter.result(node, "BATCH_MATMUL", [left, right], shape, adjX=False, adjY=adjoint)


# --- elementwise ---

UNARY = {
    "Sigmoid": "LOGISTIC", "Tanh": "TANH", "Exp": "EXP", "Log": "LOG", "Sqrt": "SQRT", "Abs": "ABS",
    "Neg": "NEG", "Floor": "FLOOR", "Ceil": "CEIL", "HardSwish": "HARD_SWISH", "Relu": "RELU",
    "Gelu": "GELU",
}
FUSING = {"Add": "ADD", "Sub": "SUB", "Mul": "MUL", "Div": "DIV"}
PLAIN = {"Max": "MAXIMUM", "Min": "MINIMUM"}
NONNEGATIVE = ("Sigmoid", "Relu", "Exp", "Sqrt", "Abs")


def unary(emitter, node):
    if node.op in NONNEGATIVE:
        emitter.nonnegative.add(node.outputs[0])
    options = {}
    if node.op == "Gelu":
        options = {"approximate": node.attribute("approximate", "none") == "tanh"}
    emitter.unary(node, UNARY[node.op], **options)


def clip(emitter, node):
    low, high = emitter.clip_bounds(node)
    view = emitter.view(node, 0)
    known = {(0, np.inf): "RELU", (0, 6): "RELU6", (-1, 1): "RELU_N1_TO_1"}
    if low >= 0:
        emitter.nonnegative.add(node.outputs[0])
    if (low, high) in known:
        emitter.unary(node, known[low, high])
        return
    tensor = view.tensor
    for bound, operator in ((low, "MAXIMUM"), (high, "MINIMUM")):
        if np.isfinite(bound):
            number = emitter.writer.add_constant(np.array(bound, np.float32))
            tensor = emitter.emit(operator, [tensor, number], view.shape,
                                  options_type="MaximumMinimumOptions")
    emitter.views[node.outputs[0]] = view.on(tensor)


def binary(emitter, node):
    if len(node.inputs) != 2:
        node.fail(f"of {len(node.inputs)} tensors")
    if node.op in FUSING:
        if node.op == "Add":
            emitter.keep_sign(node, node.inputs)
        emitter.binary(node, FUSING[node.op])
    else:
        emitter.binary(node, PLAIN[node.op], fused=False)


def power(emitter, node):
    exponent = emitter.constant(node.inputs[1])
    known = {2.0: "SQUARE", 0.5: "SQRT"}
    if exponent is None or exponent.size != 1 or float(exponent.reshape(-1)[0]) not in known:
        node.fail("only squares and square roots are known")
    emitter.unary(node, known[float(exponent.reshape(-1)[0])])


def batch_norm(emitter, node):
    """One that no convolution comes before."""
    view = emitter.view(node, 0)
    order = view.order()
    tensor = emitter.in_order(view, order)
    shape = emitter.writer.shape(tensor)
    extents = [-1 if a == 1 else 1 for a in order]
    scale, shift = (emitter.writer.add_constant(v.reshape(extents).astype(np.float32))
                    for v in batch_norm_affine(emitter.graph, node))
    scaled = emitter.emit("MUL", [tensor, scale], shape)
    emitter.result(node, "ADD", [scaled, shift], shape, order,
                   fusedActivationFunction=Activation.NONE)


# --- along axes ---


def last_axis(emitter, view, axis):
    """The view's tensor with this axis last, and its order."""
    order = [a for a in view.order() if a != axis] + [axis]
    return emitter.in_order(view, order), order


def softmax(emitter, node):
    view = emitter.view(node, 0)
    rank = len(view.dims)
    axis = node.attribute("axis", -1 if emitter.graph.opset >= 13 else 1) % rank
    if emitter.graph.opset < 13 and axis != rank - 1:
        node.fail("over several axes")
    tensor, order = last_axis(emitter, view, axis)
    emitter.nonnegative.add(node.outputs[0])
    emitter.result(node, "SOFTMAX", [tensor], emitter.writer.shape(tensor), order, beta=1.0)


def layer_norm(emitter, node):
    """LiteRT has none: means, differences from them, and the inverse root of their squares' mean."""
    view = emitter.view(node, 0)
    dims = view.dims
    axis = node.attribute("axis", -1) % len(dims)
    order = view.order()
    tensor = emitter.in_order(view, order)
    shape = emitter.writer.shape(tensor)
    places = [i for i, a in enumerate(order) if a >= axis]
    kept = tuple(1 if i in places else extent for i, extent in enumerate(shape))
    axes = emitter.shape_constant(places)

    def mean(of):
        return emitter.emit("MEAN", [of, axes], kept, options_type="ReducerOptions", keepDims=True)

    def parameter(index):
        values = emitter.constant(node.inputs[index])
        if values is None:
            node.fail("its scale or bias is no constant")
        values = values.reshape((1,) * (len(dims) - values.ndim) + values.shape)
        return emitter.writer.add_constant(values.transpose(order).astype(np.float32))

    centre = mean(tensor)
    spread = mean(emitter.emit("SQUARED_DIFFERENCE", [tensor, centre], shape))
    epsilon = emitter.writer.add_constant(np.array(node.attribute("epsilon", 1e-5), np.float32))
    inverse = emitter.emit("RSQRT", [emitter.emit("ADD", [spread, epsilon], kept)], kept)
    scaled = emitter.emit("MUL", [emitter.emit("SUB", [tensor, centre], shape), inverse], shape)
    last = [scaled, parameter(1)]
    if len(node.inputs) > 2 and node.inputs[2]:
        last = [emitter.emit("MUL", last, shape), parameter(2)]
    emitter.result(node, "ADD" if len(node.inputs) > 2 and node.inputs[2] else "MUL", last, shape,
                   order, fusedActivationFunction=Activation.NONE)


def reduce_mean(emitter, node):
    view = emitter.view(node, 0)
    rank = len(view.dims)
    axes = emitter.integers(node, 1, "axes", list(range(rank)))
    axes = sorted(a % rank for a in axes)
    order = view.order()
    tensor = emitter.in_order(view, order)
    places = [i for i, a in enumerate(order) if a in axes]
    keep = bool(node.attribute("keepdims", 1))
    shape = [1 if i in places else e for i, e in enumerate(emitter.writer.shape(tensor))]
    if not keep:
        left = [a for a in range(rank) if a not in axes]
        shape = [e for i, e in enumerate(shape) if i not in places]
        order = [left.index(a) for a in order if a in left]
    emitter.result(node, "MEAN", [tensor, emitter.shape_constant(places)], tuple(shape), order,
                   options_type="ReducerOptions", keepDims=keep)


def concat(emitter, node):
    views = [emitter.views[name] for name in node.inputs if name in emitter.views]
    view = max(views, key=lambda v: prod(v.dims))
    axis = node.attribute("axis") % len(view.dims)
    order = view.order()
    inputs = [emitter.operand(node, i, order) for i in range(len(node.inputs))]
    shape = list(emitter.writer.shape(inputs[0]))
    place = order.index(axis)
    shape[place] = sum(emitter.writer.shape(tensor)[place] for tensor in inputs)
    emitter.keep_sign(node, node.inputs)
    emitter.result(node, "CONCATENATION", inputs, tuple(shape), order, axis=place)


# --- shapes ---


def reviewed(emitter, node, dims):
    """The same elements as a tensor of these extents."""
    name, view = node.outputs[0], emitter.view(node, 0)
    emitter.keep_sign(node)
    emitter.views[name] = view.reshaped(dims)
    if emitter.views[name] is None:
        tensor = emitter.in_order(view, range(len(view.dims)))
        emitter.views[name] = View.of(emitter.reshape(tensor, dims), dims)


def reshape(emitter, node):
    old = emitter.view(node, 0).dims
    dims = emitter.integers(node, 1, "shape")
    if not node.attribute("allowzero", 0):
        dims = [old[i] if extent == 0 else extent for i, extent in enumerate(dims)]
    if -1 in dims:
        dims[dims.index(-1)] = prod(old) // -prod(dims)
    reviewed(emitter, node, tuple(dims))


def flatten(emitter, node):
    old = emitter.view(node, 0).dims
    axis = node.attribute("axis", 1)
    axis = axis + len(old) if axis < 0 else axis
    reviewed(emitter, node, (prod(old[:axis]), prod(old[axis:])))


def squeeze(emitter, node):
    old = emitter.view(node, 0).dims
    axes = emitter.integers(node, 1, "axes", [a for a, e in enumerate(old) if e == 1])
    axes = [a % len(old) for a in axes]
    reviewed(emitter, node, tuple(e for a, e in enumerate(old) if a not in axes))


def unsqueeze(emitter, node):
    old = list(emitter.view(node, 0).dims)
    axes = emitter.integers(node, 1, "axes")
    for axis in sorted(a % (len(old) + len(axes)) for a in axes):
        old.insert(axis, 1)
    reviewed(emitter, node, tuple(old))


def transpose(emitter, node):
    view = emitter.view(node, 0)
    order = node.attribute("perm", list(reversed(range(len(view.dims)))))
    emitter.views[node.outputs[0]] = view.transposed(order)
    emitter.keep_sign(node)


def expand(emitter, node):
    view = emitter.view(node, 0)
    dims = tuple(int(e) for e in np.broadcast_shapes(view.dims, tuple(emitter.integers(node, 1))))
    view = emitter.expand(view, len(dims))
    if dims == view.dims:
        emitter.views[node.outputs[0]] = view
        return
    tensor = emitter.in_order(view, range(len(dims)))
    emitter.result(node, "BROADCAST_TO", [tensor, emitter.shape_constant(dims)], dims)


# --- parts ---


def narrow(emitter, view, axis, begin, size, name=""):
    """Elements begin to begin + size of an axis. Where the axis is the major part of one of LiteRT's,
    that one is cut."""
    if size == view.dims[axis]:
        return view
    factor = view.axes[axis][0] if len(view.axes[axis]) == 1 else None
    place = next((p for p, part in enumerate(view.extents()) if part and part[0] == factor), None)
    if place is None:
        order = view.order()
        tensor = emitter.in_order(view, order)
        view = View.of(tensor, emitter.writer.shape(tensor), order)
        place, factor = order.index(axis), view.axes[axis][0]
    step = view.shape[place] // view.factors[factor]
    begins, shape = [0] * len(view.shape), list(view.shape)
    begins[place], shape[place] = begin * step, size * step
    inputs = [view.tensor, emitter.shape_constant(begins), emitter.shape_constant(shape)]
    tensor = emitter.emit("SLICE", inputs, tuple(shape), name, like=view.tensor)
    factors, axes = list(view.factors), view.axes
    factors[factor] = size
    if size == 1:
        del factors[factor]
        axes = tuple(tuple(f - (f > factor) for f in a if f != factor) for a in axes)
    return View(tensor, tuple(shape), tuple(factors), axes)


def split(emitter, node):
    view = emitter.view(node, 0)
    axis = node.attribute("axis", 0) % len(view.dims)
    parts = len(node.outputs)
    even = -(-view.dims[axis] // parts)
    default = [min(even, view.dims[axis] - i * even) for i in range(parts)]
    sizes = emitter.integers(node, 1, "split", default)
    emitter.keep_sign(node)
    begin = 0
    for name, size in zip(node.outputs, sizes):
        emitter.views[name] = narrow(emitter, view, axis, begin, size, name)
        begin += size


def slice_(emitter, node):
    view = emitter.view(node, 0)
    starts, ends = emitter.integers(node, 1, "starts"), emitter.integers(node, 2, "ends")
    axes = emitter.integers(node, 3, "axes", list(range(len(starts))))
    steps = emitter.integers(node, 4, None, [1] * len(starts))
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis %= len(view.dims)
        begin, end, step = slice(start, end, step).indices(view.dims[axis])
        if step != 1:
            node.fail("with steps")
        view = narrow(emitter, view, axis, begin, max(end - begin, 0))
    emitter.views[node.outputs[0]] = view


def gather(emitter, node):
    indices, values = emitter.constant(node.inputs[1]), emitter.constant(node.inputs[0])
    if values is None and indices is not None and indices.ndim == 0:
        view = emitter.view(node, 0)
        axis = node.attribute("axis", 0) % len(view.dims)
        view = narrow(emitter, view, axis, int(indices) % view.dims[axis], 1)
        kept = view.axes[:axis] + view.axes[axis + 1 :]
        emitter.views[node.outputs[0]] = View(view.tensor, view.shape, view.factors, kept)
        return
    view = emitter.view(node, 0)
    axis = node.attribute("axis", 0) % len(view.dims)
    table = emitter.in_order(view, range(len(view.dims)))
    index = emitter.view(node, 1)
    shape = view.dims[:axis] + index.dims + view.dims[axis + 1 :]
    inputs = [table, emitter.in_order(index, range(len(index.dims)))]
    emitter.result(node, "GATHER", inputs, shape, axis=axis, like=table)


HANDLERS = {
    "MatMul": product, "Gemm": product, "Clip": clip, "Pow": power,
    "BatchNormalization": batch_norm, "Softmax": softmax, "LayerNormalization": layer_norm,
    "ReduceMean": reduce_mean, "Concat": concat, "Reshape": reshape, "Flatten": flatten,
    "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose, "Expand": expand,
    "Identity": Emitter.same, "Dropout": Emitter.same, "Split": split, "Slice": slice_, "Gather": gather,
    **{op: unary for op in UNARY}, **{op: binary for op in (*FUSING, *PLAIN)}, **windows.HANDLERS,
}
