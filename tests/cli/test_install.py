"""An installed Tandem can be found, linked and used by another CMake project."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["TANDEM_BUILD"]
CONSUMER = pathlib.Path(__file__).parent / "consumer"
TIMEOUT_S = 300


def run(*command):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem-install-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = self.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", self.prefix)

    def test_the_binary_runs_from_there(self):
        self.assertIn("resnet50", run(self.prefix / "bin/tandem", "zoo", "list"))
        scripts = self.prefix / "share/tandem"
        for name in ("onnxruntime_worker.py", "litert_worker.py", "engine_worker.py", "line_answers.py",
                     "tflite_export.py", "tflite/graph.py"):
            self.assertTrue((scripts / name).exists(), name)

    def test_another_project_builds_against_it(self):
        build = self.folder / "build"
        run("cmake", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.assertRegex(run(build / "consumer"), r"^\[1, \d+.*\]\n$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
