"""tools/tflite_export.py: LiteRT computes with its files what ONNX Runtime does with ONNX's, and they hold
the operators that they should."""

import json
import os
import pathlib
import subprocess
import unittest

from cli_testing import CliTest, model, node, value_info

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PYTHON = SOURCE / ".venv/bin/python"
NETWORKS = (
    "tiny_bert", "tiny_bottleneck", "tiny_concat", "tiny_conv", "tiny_deit", "tiny_efficientnet",
    "tiny_hrnet", "tiny_inception", "tiny_linear", "tiny_mobilenet", "tiny_residual", "tiny_shufflenet",
    "tiny_unet", "tiny_vit", "tiny_yolo", "mobilenet_v2",
)
LARGEST_ERROR = 1e-4  # relative to the greatest output
# What the export comes down to, in order.
OPERATORS = {
    "asymmetric_pads": ["PAD", "CONV_2D"],
    "same_pads": ["CONV_2D"] * 3,
    "stride_on_even_extents": ["PAD", "CONV_2D"],
    "grouped": ["CONV_2D", "DEPTHWISE_CONV_2D"],
    "constants_into_weights": ["CONV_2D", "LOGISTIC", "MUL", "ADD"],
    "flatten_and_gemm": ["CONV_2D", "RESHAPE", "FULLY_CONNECTED", "FULLY_CONNECTED"],
    "gelu": ["GELU", "GELU"],
    "max_pools": ["SUB", "PADV2", "MAX_POOL_2D", "MAX_POOL_2D", "MAX_POOL_2D", "RELU", "PAD",
                  "MAX_POOL_2D"],
}
# Those of whose tensors none is ever moved.
WITHOUT_TRANSPOSITIONS = (
    "tiny_bottleneck", "tiny_concat", "tiny_conv", "tiny_efficientnet", "tiny_hrnet", "tiny_inception",
    "tiny_mobilenet", "tiny_residual", "tiny_unet", "mobilenet_v2", "broadcasts", "average_pools", "resize",
)


def has_litert():
    check = "import ai_edge_litert, flatbuffers, onnx, onnxruntime"
    return PYTHON.exists() and subprocess.run(
        [PYTHON, "-c", check], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(has_litert(), "needs .venv with LiteRT, ONNX Runtime and onnx")
class TfliteExport(CliTest):
    def run_python(self, script, *arguments):
        return subprocess.run(
            [PYTHON, "-B", script, *map(str, arguments)], capture_output=True, text=True, check=False,
            timeout=100,
        )

    def test_graphs_and_networks_beside_onnxruntime(self):
        for name in NETWORKS:
            self.succeed("zoo", "export", name, "-o", self.work / f"{name}.onnx")
        done = self.run_python(SOURCE / "tests/cli/tflite_graphs.py", self.work)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = json.loads(done.stdout)
        self.assertGreater(len(made), len(NETWORKS) + len(OPERATORS))
        for name, result in made.items():
            with self.subTest(name):
                self.assertEqual(len(result["errors"]), result["results"])
                for error in result["errors"]:
                    self.assertLess(error, LARGEST_ERROR)
        for name, operators in OPERATORS.items():
            self.assertEqual(made[name]["operators"], operators, name)
        for name in WITHOUT_TRANSPOSITIONS:
            self.assertNotIn("TRANSPOSE", made[name]["operators"], name)
        # A convolution is one operator, with its batch norm and activation.
        self.assertLessEqual(
            set(made["mobilenet_v2"]["operators"]),
            {"CONV_2D", "DEPTHWISE_CONV_2D", "PAD", "ADD", "MEAN", "FULLY_CONNECTED", "RESHAPE"})
        # An encoder's attention moves queries, keys, values and the result.
        self.assertEqual(made["tiny_vit"]["operators"].count("TRANSPOSE"), 4 * 2)

    def refuse_export(self, onnx_model, *says):
        source, target = self.work / "m.onnx", self.work / "m.tflite"
        source.write_bytes(onnx_model)
        done = self.run_python(SOURCE / "tools/tflite_export.py", source, "-o", target)
        self.assertEqual(done.returncode, 1, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse(target.exists())

    def test_what_it_does_not_know(self):
        x, y = [value_info("x", [1, 8])], [value_info("y", [1, 8])]
        self.refuse_export(model([node("Erf", ["x"], ["y"], "the_erf")], x, y), "Erf", "the_erf")
        self.refuse_export(model([node("Pow", ["x", "x"], ["y"], "xx")], x, y), "Pow", "xx", "squares")
        free = [value_info("x", ["batch", 8])]
        self.refuse_export(model([node("Relu", ["x"], ["y"], "r")], free, y), "'x'", "not fixed")
        self.refuse_export(b"no model", "m.onnx")

    def test_its_input_is_never_overwritten(self):
        path = self.work / "kept.onnx"
        content = model([node("Relu", ["x"], ["y"], "r")], [value_info("x", [1, 8])],
                        [value_info("y", [1, 8])])
        path.write_bytes(content)
        done = subprocess.run([PYTHON, SOURCE / "tools/tflite_export.py", path, "-o", path],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("overwrite", done.stderr)
        self.assertEqual(path.read_bytes(), content)


if __name__ == "__main__":
    unittest.main(verbosity=2)
