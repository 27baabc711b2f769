"""A .tflite file: tensors, constants and operators of one graph, in the order they are given."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

# The operators of LiteRT that have been there for longer keep their number here, too.
OLD_CODES = 127
# Of constants, as kernels like to read them.
ALIGNMENT = 16
SCHEMA_VERSION = 3

TYPES = {
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.int64): schema.TensorType.INT64,
}


class AlignedBuffer(schema.BufferT):
    def Pack(self, builder):
        if self.data is None:
            return super().Pack(builder)
        content = self.data.view(np.uint8).reshape(-1)
        builder.StartVector(1, content.size, ALIGNMENT)
        builder.head -= content.size
        builder.Bytes[builder.head : builder.head + content.size] = content.data
        data = builder.EndVector()
        schema.BufferStart(builder)
        schema.BufferAddData(builder, data)
        return schema.BufferEnd(builder)


class TfliteWriter:
    def __init__(self):
        self.tensors = []
        self.buffers = [schema.BufferT()]  # the first one is that of tensors without data
        self.codes = []
        self.operators = []
        self.constants = {}  # small ones by what they hold

    def add_tensor(self, shape, name, dtype=np.float32, buffer=0):
        tensor = schema.TensorT()
        tensor.shape = np.array(shape, np.int32)
        tensor.type = TYPES[np.dtype(dtype)]
        tensor.name = name
        tensor.buffer = buffer
        tensor.hasRank = True
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def shape(self, tensor):
        return tuple(int(extent) for extent in self.tensors[tensor].shape)

    def add_constant(self, values, name=""):
        values = np.asarray(values, order="C")
        key = None
        if values.size <= 1024:
            key = (values.dtype.str, values.shape, values.tobytes())
            if key in self.constants:
                return self.constants[key]
        buffer = AlignedBuffer()
        buffer.data = values.reshape(-1)
        self.buffers.append(buffer)
        number = len(self.buffers) - 1
        tensor = self.add_tensor(values.shape, name or f"constant{number}", values.dtype, number)
        if key is not None:
            self.constants[key] = tensor
        return tensor

    def add_operator(self, name, inputs, outputs, **options):
        """`name`: of schema.BuiltinOperator. `options`: fields of its options, if it has any, and
        `options_type`, where that is not called as the operator is."""
        operator = schema.OperatorT()
        operator.opcodeIndex = self.code_index(getattr(schema.BuiltinOperator, name))
        operator.inputs = np.array(inputs, np.int32)
        operator.outputs = np.array(outputs, np.int32)
        kind = options.pop("options_type", None) or options_type(name)
        if kind is not None:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(schema, kind + "T")()
            for field, value in options.items():
                if not hasattr(operator.builtinOptions, field):
                    raise AttributeError(f"{kind} has no {field}")
                setattr(operator.builtinOptions, field, value)
        self.operators.append(operator)

    def code_index(self, number):
        for index, code in enumerate(self.codes):
            if code.builtinCode == number:
                return index
        code = schema.OperatorCodeT()
        code.builtinCode = number
        code.deprecatedBuiltinCode = min(number, OLD_CODES)
        self.codes.append(code)
        return len(self.codes) - 1

    def operator_names(self):
        names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
        return [names[self.codes[op.opcodeIndex].builtinCode] for op in self.operators]

    def write(self, path, inputs, outputs):
        graph = schema.SubGraphT()
        graph.name = "main"
        graph.tensors = self.tensors
        graph.operators = self.operators
        graph.inputs = np.array(inputs, np.int32)
        graph.outputs = np.array(outputs, np.int32)
        model = schema.ModelT()
        model.version = SCHEMA_VERSION
        model.description = "by tflite_export.py"
        model.operatorCodes = self.codes
        model.subgraphs = [graph]
        model.buffers = self.buffers
        constants = sum(b.data.nbytes + 64 for b in self.buffers if b.data is not None)
        builder = flatbuffers.Builder(constants + 4096 * (len(self.tensors) + 1))
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        with open(path, "wb") as file:
            file.write(memoryview(builder.Bytes)[builder.head :])


def options_type(name):
    """LiteRT's names: CONV_2D has Conv2DOptions."""
    words = "".join(word.capitalize() for word in name.split("_")).replace("2d", "2D")
    words = words.replace("Matmul", "MatMul")
    return words + "Options" if hasattr(schema, words + "OptionsT") else None
