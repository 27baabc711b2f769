#!/usr/bin/env python3
"""Compares Tandem's results on the networks of its zoo with ONNX Runtime's.

Every network is exported with `tandem zoo export`, and runs on one random input with each strategy.
Tiny networks are compared with double precision, the others with ONNX Runtime.

How far results may be apart is not guessed. The tiny networks are also computed in double precision
(by the onnx package's own interpreter, which shares no code with either engine): that shows how much
error single precision brings per operator passed. Errors grow like a random walk, so a network of n
operators may differ by

    MARGIN * (worst error over sqrt(n) seen on the tiny networks, of ONNX Runtime alone) * sqrt(n)

relative to its largest output. The margin covers that two engines differ by both their errors, and
that sums in large networks have up to a hundred times as many terms as in tiny ones, whose error
grows by another square root.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.reference
import onnxruntime

from tandem_cli import STRATEGIES, TandemError, compare_strategies, file_name, run_tandem

MARGIN = 2 * math.sqrt(100)
NORMAL = ("resnet18", "mobilenet_v2", "squeezenet1_1", "deit_tiny")


def to_double(model):
    """The same network with double weights."""
    model = onnx.ModelProto.FromString(model.SerializeToString())

    def convert(tensor):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))

    for initializer in model.graph.initializer:
        convert(initializer)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                convert(attribute.t)
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type == onnx.TensorProto.FLOAT:
            tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return model


def relative_error(values, expected):
    """Of all outputs: the greatest difference over the output's greatest magnitude."""
    worst = 0.0
    for name, wanted in expected.items():
        got = values.get(name)
        if got is None or got.shape != wanted.shape:
            raise TandemError(f"output {name} is missing or has another shape than {wanted.shape}")
        error = float(np.abs(got - wanted).max() / np.abs(wanted).max())
        worst = max(worst, error if math.isfinite(error) else math.inf)
    return worst


class Network:
    """An exported network with one random input."""

    def __init__(self, tandem, name, work):
        self.name = name
        self.path = Path(work) / f"{name}.onnx"
        run_tandem(tandem, "zoo", "export", name, "-o", self.path)
        self.session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        self.model = onnx.load(self.path)
        rng = np.random.default_rng(1)
        (declared,) = self.session.get_inputs()
        if declared.type == "tensor(int64)":
            values = rng.integers(0, 100, declared.shape, dtype=np.int64)
        else:
            values = rng.standard_normal(declared.shape, dtype=np.float32)
        self.inputs = {declared.name: values}

    def steps(self):
        return math.sqrt(len(self.model.graph.node))

    def named(self, values):
        return dict(zip((file_name(o.name) for o in self.session.get_outputs()), values))

    def onnxruntime(self):
        return self.named(self.session.run(None, self.inputs))

    def in_double(self):
        inputs = {
            name: values.astype(np.float64) if values.dtype == np.float32 else values
            for name, values in self.inputs.items()
        }
        evaluator = onnx.reference.ReferenceEvaluator(to_double(self.model))
        return self.named(evaluator.run(None, inputs))


def compare(tandem, network, expected, allowed, runs, work):
    """Whether all strategies give what is expected; prints a line."""
    report, outputs = compare_strategies(tandem, network.path, network.inputs, runs, work, warmup=1)
    errors = {s: relative_error(outputs[s], expected) for s in STRATEGIES}
    agrees = all(error <= allowed for error in errors.values())
    times = {result["strategy"]: result["time_ms"]["median"] for result in report["strategies"]}
    cells = "  ".join(f"{s} {errors[s]:.1e} {times[s]:8.2f} ms" for s in STRATEGIES)
    verdict = "ok" if agrees else "DIFFERS"
    print(f"{network.name:20} allowed {allowed:.1e}  {cells}  {verdict}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("--all", action="store_true", help="the large networks, too")
    parser.add_argument("--runs", type=int, default=1, help="timed runs of each strategy")
    arguments = parser.parse_args()

    listed = json.loads(run_tandem(arguments.tandem, "zoo", "list", "--json"))["networks"]
    names = [entry["name"] for entry in listed]
    tiny = [name for name in names if name.startswith("tiny_")]
    large = [name for name in names if name not in tiny and (arguments.all or name in NORMAL)]
    failed = []

    def check(network, expected, allowed):
        try:
            agrees = compare(
                arguments.tandem, network, expected, allowed, arguments.runs, work
            )
        except TandemError as error:
            print(f"{network.name:20} FAILED: {error}", flush=True)
            agrees = False
        if not agrees:
            failed.append(network.name)

    with tempfile.TemporaryDirectory(prefix="tandem-zoo-") as work:
        networks = [Network(arguments.tandem, name, work) for name in tiny]
        truths = [network.in_double() for network in networks]
        error_per_step = max(
            relative_error(network.onnxruntime(), truth) / network.steps()
            for network, truth in zip(networks, truths)
        )
        print(
            f"ONNX Runtime differs from double precision by up to {error_per_step:.1e} * "
            f"sqrt(operators) on {len(tiny)} tiny networks; {MARGIN:.0f} times that is allowed"
        )
        for network, truth in zip(networks, truths):
            check(network, truth, MARGIN * error_per_step * network.steps())
        for name in large:
            network = Network(arguments.tandem, name, work)
            check(network, network.onnxruntime(), MARGIN * error_per_step * network.steps())
            network.path.unlink()
    print(f"{len(tiny) + len(large) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise TandemError(f"results differ on {', '.join(failed)}")


if __name__ == "__main__":
    try:
        main()
    except (TandemError, OSError) as error:
        print(f"compare_zoo: {error}", file=sys.stderr)
        sys.exit(1)
