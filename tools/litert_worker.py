#!/usr/bin/env python3
"""Runs a model with LiteRT and its XNNPACK delegate whenever a line asks for it: see engine_worker.py.

The ONNX file is converted first, by tflite_export.py in a process of its own. What the answer to "load"
says besides: {"facts": {"convert_ms": MS, "operators": N of the converted file,
"operators_outside_xnnpack": {those that LiteRT's own kernels run: N}}}. Inputs and outputs lie as LiteRT
has them, images with channels last: moving them is not timed, nor are LiteRT's copies of inputs. Between
runs no thread spins: XNNPACK lets its pool sleep at the end of one.
"""

import collections
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

from engine_worker import EngineWorker, NotPossible, serve

CONVERTER = Path(__file__).with_name("tflite_export.py")
# LiteRT's name of the nodes that a delegate runs, and what it says of the one that it has by default.
DELEGATE = "DELEGATE"
XNNPACK = "XNNPACK delegate"


class LiteRtWorker(EngineWorker):
    def find(self):
        for package in ("onnx", "flatbuffers"):
            if importlib.util.find_spec(package) is None:
                raise ImportError(f"the converter from ONNX needs the package {package}")
        from ai_edge_litert.interpreter import Interpreter

        self.create = Interpreter

    def start(self):
        begin = time.perf_counter()
        file, made = self.convert()
        converted = time.perf_counter()
        with captured_errors() as log:
            self.interpreter = self.create(model_path=str(file), num_threads=self.threads)
            self.interpreter.allocate_tensors()
            ready = time.perf_counter()
        by_name = {tensor["name"]: tensor for tensor in self.interpreter.get_input_details()}
        self.fed = [
            (by_name[tensor["name"]]["index"], self.as_litert_has_it(tensor)) for tensor in made["inputs"]
        ]
        self.orders = [tensor["order"] for tensor in made["outputs"]]
        return {
            "version": importlib.metadata.version("ai-edge-litert"),
            "load_ms": 1000 * (ready - converted),
            "facts": {
                "convert_ms": round(1000 * (converted - begin), 1),
                "operators": len(made["operators"]),
                "operators_outside_xnnpack": self.outside_xnnpack(len(made["operators"]), log),
            },
        }

    def convert(self):
        file = self.folder / "model.tflite"
        done = subprocess.run(
            [sys.executable, CONVERTER, self.model, "-o", file, "--json"],
            capture_output=True, text=True, check=False,
        )
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
            raise NotPossible(last[0])
        return file, json.loads(done.stdout)

    def as_litert_has_it(self, tensor):
        import numpy

        return numpy.ascontiguousarray(self.inputs[tensor["name"]].transpose(tensor["order"]))

    def outside_xnnpack(self, operators, log):
        """How many operators of which kind LiteRT's own kernels run: those whose results something
        other than the delegate makes. LiteRT lists the delegate's parts after the file's operators."""
        nodes = self.interpreter._get_ops_details()
        parts = [node for node in nodes[operators:] if node["op_name"] == DELEGATE]
        if not parts or XNNPACK not in log.text:
            raise RuntimeError(f"LiteRT runs without its XNNPACK delegate: {log.text}")
        delegated = {tensor for part in parts for tensor in part["outputs"]}
        makers = {tensor: node for node in nodes[:operators] for tensor in node["outputs"]}
        needed = [tensor for part in parts for tensor in part["inputs"]]
        needed += [detail["index"] for detail in self.interpreter.get_output_details()]
        outside = {}
        while needed:
            tensor = needed.pop()
            node = makers.get(tensor)
            if node is None or tensor in delegated or node["index"] in outside:
                continue
            outside[node["index"]] = node["op_name"]
            needed += list(node["inputs"])
        return dict(collections.Counter(outside.values()))

    def prepare(self):
        for index, values in self.fed:
            self.interpreter.set_tensor(index, values)

    def infer(self):
        self.interpreter.invoke()

    def outputs(self):
        import numpy

        for detail, order in zip(self.interpreter.get_output_details(), self.orders):
            yield self.interpreter.get_tensor(detail["index"]).transpose(numpy.argsort(order))


@contextlib.contextmanager
def captured_errors():
    """What is written to standard error meanwhile: LiteRT says which delegate it has."""
    log = types.SimpleNamespace(text="")
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            log.text = file.read().decode(errors="replace").strip()


if __name__ == "__main__":
    serve(LiteRtWorker())
