"""The examples do what they say: here, as predicted. examples/README.md has what was measured."""

import os
import pathlib
import subprocess
import unittest

from cli_testing import CliTest

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PYTHON = SOURCE / ".venv/bin/python"


@unittest.skipUnless(PYTHON.exists(), "needs .venv with onnx")
class Examples(CliTest):
    def test_bands(self):
        subprocess.run(
            [PYTHON, SOURCE / "examples/bands.py", "-o", self.work / "bands.onnx",
             "--bands", "12", "--depth", "2", "--trunk", "1", "--trunk-channels", "128"],
            check=True,
        )
        report = self.succeed_json("run", "bands.onnx", "--runs", 1, "--verify")
        self.assertEqual([s["strategy"] for s in report["strategies"]], ["joint"])
        plan = self.succeed_json("plan", "bands.onnx")
        predicted = {s["strategy"]: s["predicted_ms"] for s in plan["strategies"] if "predicted_ms" in s}
        for other in ("cpu", "gpu", "inter", "intra", "chain"):
            self.assertLessEqual(predicted["joint"], predicted[other] + 1e-9, other)


if __name__ == "__main__":
    unittest.main(verbosity=2)
