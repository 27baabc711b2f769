"""Windows that slide over images: convolutions and pools, with ONNX's padding in LiteRT's terms."""

from dataclasses import dataclass

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from .emitter import IMAGE, Activation

Padding = schema.Padding
LOWEST = np.float32(np.finfo(np.float32).min)


@dataclass
class Window:
    """Of one axis: `begin` and `end` elements of padding are looked at."""

    extent: int
    size: int
    stride: int
    dilation: int
    begin: int
    end: int
    output: int

    @property
    def reach(self):
        return (self.size - 1) * self.dilation + 1

    def is_valid(self):
        return self.begin == 0 and self.end == 0

    def is_same(self):
        """As LiteRT pads: as little as it can, and the odd element at the end."""
        total = max((self.output - 1) * self.stride + self.reach - self.extent, 0)
        return self.output == -(-self.extent // self.stride) and self.begin == total // 2


def windows_of(node, extents, sizes):
    dilations = node.attribute("dilations", [1, 1])
    strides = node.attribute("strides", [1, 1])
    pads = node.attribute("pads", [0, 0, 0, 0])
    how = node.attribute("auto_pad", "NOTSET")
    windows = []
    for i in range(2):
        window = Window(extents[i], sizes[i], strides[i], dilations[i], pads[i], pads[i + 2], 0)
        if how in ("SAME_UPPER", "SAME_LOWER"):
            window.output = -(-window.extent // window.stride)
            total = max((window.output - 1) * window.stride + window.reach - window.extent, 0)
            window.begin = total // 2 if how == "SAME_UPPER" else total - total // 2
        else:
            steps = window.extent + window.begin + window.end - window.reach
            window.output = steps // window.stride + 1
            if node.attribute("ceil_mode", 0) and steps % window.stride:
                # A window that would begin in the padding at the end is none.
                starts = window.output * window.stride
                window.output += starts < window.extent + window.begin
        used = (window.output - 1) * window.stride + window.reach - window.extent - window.begin
        window.end = max(used, 0)
        windows.append(window)
    return windows


def pad(emitter, image, windows, value=0):
    shape = emitter.writer.shape(image)
    amounts = np.array([[0, 0], *[[w.begin, w.end] for w in windows], [0, 0]], np.int32)
    padded = [extent + int(amount.sum()) for extent, amount in zip(shape, amounts)]
    inputs = [image, emitter.writer.add_constant(amounts)]
    if value == 0:
        return emitter.emit("PAD", inputs, padded)
    inputs.append(emitter.writer.add_constant(np.array(value, np.float32)))
    return emitter.emit("PADV2", inputs, padded, options_type="PadV2Options")


def padding_of(windows):
    """LiteRT's, or None if it has none like it."""
    if all(w.is_valid() for w in windows):
        return Padding.VALID
    return Padding.SAME if all(w.is_same() for w in windows) else None


def strides_of(windows):
    return {"strideH": windows[0].stride, "strideW": windows[1].stride}


def convolution(emitter, node):
    if node.weight is None or node.weight.ndim != 4:
        node.fail("only constant weights of two-dimensional convolutions are known")
    image = emitter.image(node)
    batch, height, width, channels = emitter.writer.shape(image)
    outputs, _, *sizes = node.weight.shape
    group = node.attribute("group", 1)
    windows = windows_of(node, (height, width), sizes)
    padding = padding_of(windows)
    if padding is None:
        image, padding = pad(emitter, image, windows), Padding.VALID
    options = {
        "padding": padding, **strides_of(windows), "fusedActivationFunction": Activation.NONE,
        "dilationHFactor": windows[0].dilation, "dilationWFactor": windows[1].dilation,
    }
    bias = np.zeros(outputs) if node.bias is None else node.bias
    if group == channels and group > 1:
        operator, options["depthMultiplier"] = "DEPTHWISE_CONV_2D", outputs // channels
        weight = node.weight[:, 0].transpose(1, 2, 0)[None]
    else:
        operator, weight = "CONV_2D", node.weight.transpose(0, 2, 3, 1)
    inputs = [image, *weights(emitter, node, weight, bias)]
    shape = (batch, windows[0].output, windows[1].output, outputs)
    emitter.result(node, operator, inputs, shape, IMAGE, **options)


def weights(emitter, node, weight, bias):
    return [
        emitter.writer.add_constant(weight.astype(np.float32), f"{node.name}.weight"),
        emitter.writer.add_constant(np.asarray(bias, np.float32), f"{node.name}.bias"),
    ]


def transposed_convolution(emitter, node):
    plain = all(v == 1 for v in node.attribute("dilations", [1, 1])) and not any(
        node.attribute("output_padding", [0, 0])
    )
    if node.weight is None or node.weight.ndim != 4 or node.attribute("group", 1) != 1 or not plain:
        node.fail("only constant weights, one group, and no dilation or output_padding are known")
    if node.attribute("auto_pad", "NOTSET") != "NOTSET" or "output_shape" in node.attributes:
        node.fail("only explicit pads are known")
    image = emitter.image(node)
    batch, height, width, _ = emitter.writer.shape(image)
    _, outputs, *sizes = node.weight.shape
    strides, pads = node.attribute("strides", [1, 1]), node.attribute("pads", [0, 0, 0, 0])
    full = [(e - 1) * s + k for e, s, k in zip((height, width), strides, sizes)]
    bias = np.zeros(outputs) if node.bias is None else node.bias
    weight, bias = weights(emitter, node, node.weight.transpose(1, 2, 3, 0), bias)
    whole = (batch, *full, outputs)
    inputs = [emitter.shape_constant(whole), weight, image, bias]
    options = {"padding": Padding.VALID, "strideH": strides[0], "strideW": strides[1],
               "fusedActivationFunction": Activation.NONE}
    if not any(pads):
        emitter.result(node, "TRANSPOSE_CONV", inputs, whole, IMAGE, **options)
        return
    uncut = emitter.emit("TRANSPOSE_CONV", inputs, whole, **options)
    cut = (batch, full[0] - pads[0] - pads[2], full[1] - pads[1] - pads[3], outputs)
    inputs = [uncut, *(emitter.shape_constant(v) for v in ((0, pads[0], pads[1], 0), cut))]
    emitter.result(node, "SLICE", inputs, cut, IMAGE)


def pool(emitter, node):
    if node.outputs[1:] and any(emitter.graph.consumers.get(name) for name in node.outputs[1:]):
        node.fail("its indices are used")
    if any(v != 1 for v in node.attribute("dilations", [1, 1])):
        node.fail("with dilation")
    image = emitter.image(node)
    batch, height, width, channels = emitter.writer.shape(image)
    sizes = node.attribute("kernel_shape")
    windows = windows_of(node, (height, width), sizes)
    shape = (batch, windows[0].output, windows[1].output, channels)
    nonnegative = node.inputs[0] in emitter.nonnegative
    if all(w.size == w.stride == 1 and w.is_valid() for w in windows):
        emitter.same(node)
        return
    padding, shares = padding_of(windows), None
    average = node.op == "AveragePool"
    counted = shares_of_elements(node, windows) if average else None
    # What LiteRT pads by itself it does not count.
    if padding is None or (padding == Padding.SAME and average and counted is None):
        value = 0 if average or nonnegative else LOWEST
        image, padding, shares = pad(emitter, image, windows, value), Padding.VALID, counted
    options = {"padding": padding, **strides_of(windows), "filterHeight": sizes[0],
               "filterWidth": sizes[1], "options_type": "Pool2DOptions"}
    operator = "AVERAGE_POOL_2D" if average else "MAX_POOL_2D"
    emitter.keep_sign(node)
    if shares is None:
        emitter.result(node, operator, [image], shape, IMAGE, **options)
        return
    means = emitter.emit(operator, [image], shape, **options)
    factor = emitter.writer.add_constant(shares[None, :, :, None])
    emitter.result(node, "MUL", [means, factor], shape, IMAGE,
                   fusedActivationFunction=Activation.NONE)


def shares_of_elements(node, windows):
    """By what the mean over whole windows is to be multiplied where fewer elements count; None if all
    windows count as whole."""
    padded = node.attribute("count_include_pad", 0)
    counts = []
    for i, w in enumerate(windows):
        # ONNX never counts what is beyond the padding, where ceil_mode ends.
        pads = node.attribute("pads", [0, 0, 0, 0])
        first, last = (-pads[i], w.extent + pads[i + 2]) if padded else (0, w.extent)
        starts = np.arange(w.output) * w.stride - w.begin
        counts.append(np.minimum(starts + w.size, last) - np.maximum(starts, first))
    counted = np.outer(*counts)
    whole = windows[0].size * windows[1].size
    return None if np.all(counted == whole) else (whole / counted).astype(np.float32)


def global_average(emitter, node):
    image = emitter.image(node)
    batch, _, _, channels = emitter.writer.shape(image)
    emitter.keep_sign(node)
    emitter.result(node, "MEAN", [image, emitter.shape_constant((1, 2))], (batch, 1, 1, channels),
                   IMAGE, options_type="ReducerOptions", keepDims=True)


def resize(emitter, node):
    image = emitter.image(node)
    batch, height, width, channels = emitter.writer.shape(image)
    scales = emitter.constant(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    sizes = emitter.integers(node, 3)
    if sizes is None:
        sizes = [int(e * s) for e, s in zip((batch, channels, height, width), scales)]
    if tuple(sizes[:2]) != (batch, channels):
        node.fail("only images' extents may change")
    mode = node.attribute("mode", "nearest")
    where = node.attribute("coordinate_transformation_mode", "half_pixel")
    shape = (batch, *sizes[2:], channels)
    integer = sizes[2] % height == 0 and sizes[3] % width == 0
    exact = scales is None or all(
        abs(e * s - n) < 1e-6 for e, s, n in zip((height, width), scales[2:], sizes[2:])
    )
    if mode == "nearest":
        nearest = node.attribute("nearest_mode", "round_prefer_floor")
        known = {("asymmetric", "floor"): exact, ("half_pixel", "round_prefer_floor"): integer,
                 ("half_pixel", "round_prefer_ceil"): integer}
        operator, known = "RESIZE_NEAREST_NEIGHBOR", known.get((where, nearest), False)
    else:
        known = mode == "linear" and exact and where in (
            "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
        operator = "RESIZE_BILINEAR"
    if not known:
        node.fail(f"mode {mode}, {where} with these sizes has no counterpart in LiteRT")
    emitter.keep_sign(node)
    emitter.result(node, operator, [image, emitter.shape_constant(sizes[2:])], shape, IMAGE,
                   halfPixelCenters="half_pixel" in where, alignCorners=where == "align_corners")


HANDLERS = {
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "MaxPool": pool,
    "AveragePool": pool,
    "GlobalAveragePool": global_average,
    "Resize": resize,
}
