"""What becomes of a model that tools/export_frameworks.py has exported."""

import math

import numpy as np
import onnx
import onnx.numpy_helper

# Tensors of fewer elements stay in small models: shapes, axes, scalars.
STRIPPED_ELEMENTS = 48


def unit_numbers(name, count):
    """Numbers in [0, 1) that the name determines."""
    seed = np.uint64(14695981039346656037)
    with np.errstate(over="ignore"):
        for byte in name.encode():
            seed = (seed ^ np.uint64(byte)) * np.uint64(1099511628211)
        # A linear congruential generator, stepped by index.
        index = np.arange(count, dtype=np.uint64)
        bits = (index + seed) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        bits ^= bits >> np.uint64(29)
        bits *= np.uint64(0xBF58476D1CE4E5B9)
    return (bits >> np.uint64(40)).astype(np.float64) / (1 << 24)


def weights_of(name, dims):
    """Weights for a name: the same as tests/conformance/exported_test.cc makes."""
    count = math.prod(dims)
    unit = unit_numbers(name, count)
    if len(dims) < 2:
        return (0.5 + unit).astype(np.float32).reshape(dims)
    scale = math.sqrt(6.0 * max(dims[0], dims[1]) / count)
    return ((2 * unit - 1) * scale).astype(np.float32).reshape(dims)


def input_of(dims):
    """An input, likewise."""
    return (2 * unit_numbers("input", math.prod(dims)) - 1).astype(np.float32).reshape(dims)


def finish(path, small, origin):
    """Records the origin; strips a small model, and adds what tests compare with."""
    model = onnx.load(path)
    operators = sorted({node.op_type for node in model.graph.node})
    if small:
        model.producer_name, model.producer_version = origin.split(" ", 1)
        strip(model)
        save_example(path, model)
    onnx.save(model, path)
    print(f"{path.name}: {path.stat().st_size >> 10} KiB, {len(model.graph.node)} nodes, opset "
          f"{model.opset_import[0].version}, {len(model.functions)} functions: "
          f"{' '.join(operators)}", flush=True)


def strip(model):
    """Leaves out stack traces, shapes of inner values, and the bytes of weights."""
    model.doc_string = ""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for tensor in model.graph.initializer:
        tensor.doc_string = ""
        if tensor.data_type == onnx.TensorProto.FLOAT and math.prod(tensor.dims) >= STRIPPED_ELEMENTS:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")


def filled(model):
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in whole.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and not (tensor.raw_data or tensor.float_data):
            if math.prod(tensor.dims) > 0:
                values = weights_of(tensor.name, list(tensor.dims))
                tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    return whole


def save_example(path, model):
    """ONNX Runtime's answer to an input that weights_of() makes, too."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        filled(model).SerializeToString(), providers=["CPUExecutionProvider"])
    (declared,) = session.get_inputs()
    dims = [d if isinstance(d, int) else 1 for d in declared.shape]
    (answer,) = session.run(None, {declared.name: input_of(dims)})
    np.save(path.with_suffix(".npy"), answer.astype(np.float32))
