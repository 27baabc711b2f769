#!/usr/bin/env python3
"""Compares Tandem's results on the networks of its zoo with ONNX Runtime's.

Every network is exported with `tandem zoo export`, and runs on one random input with each strategy, and
split over the lanes with each mechanism of synchronisation that there is. Tiny networks are compared
with double precision, the others with ONNX Runtime.

How far results may be apart is not guessed. A network amplifies rounding errors by a factor of its
own; how much is seen by changing its input (or its weights, where the input is not floating point) by
at most the last bit of each number, and looking how far ONNX Runtime's result moves. On the tiny
networks, which are also computed in double precision (by the onnx package's own interpreter, which
shares no code with either engine), that movement is compared with ONNX Runtime's true error. So

    MARGIN * (true error over movement, worst of the tiny networks) * (movement of the network)

relative to the largest output is allowed. The margin is 2, because both engines have errors, times 4,
because Winograd's algorithm rounds that much more coarsely.
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

MARGIN = 2 * 4
DRAWS = 3
# The strategy in which lanes wait for each other.
SPLIT = "intra"
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


def nudged(values, rng):
    """Floats changed by up to their last bit."""
    epsilon = np.finfo(np.float32).eps
    factor = 1 + epsilon * rng.uniform(-1, 1, values.shape)
    return (values.astype(np.float64) * factor).astype(np.float32)


def nudged_weights(model, rng):
    """The bytes of the model with all of its float weights changed so."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            values = nudged(onnx.numpy_helper.to_array(weight), rng)
            weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    return model.SerializeToString()


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

    def named(self, values):
        return dict(zip((file_name(o.name) for o in self.session.get_outputs()), values))

    def onnxruntime(self):
        return self.named(self.session.run(None, self.inputs))

    def movement(self):
        """Of ONNX Runtime's outputs, when numbers change by up to their last bit; the worst of some
        draws."""
        expected = self.onnxruntime()
        worst = 0.0
        for seed in range(DRAWS):
            rng = np.random.default_rng(seed)
            (name, values), = self.inputs.items()
            if values.dtype == np.float32:
                session, inputs = self.session, {name: nudged(values, rng)}
            else:
                session = onnxruntime.InferenceSession(
                    nudged_weights(self.model, rng), providers=["CPUExecutionProvider"]
                )
                inputs = self.inputs
            worst = max(worst, relative_error(self.named(session.run(None, inputs)), expected))
        return worst

    def in_double(self):
        inputs = {
            name: values.astype(np.float64) if values.dtype == np.float32 else values
            for name, values in self.inputs.items()
        }
        evaluator = onnx.reference.ReferenceEvaluator(to_double(self.model))
        return self.named(evaluator.run(None, inputs))


def available_mechanisms(tandem):
    """How lanes can wait for each other on this machine."""
    costs = json.loads(run_tandem(tandem, "bench", "sync", "--iterations", 200, "--json"))
    return [name for name, cost in costs["mechanisms"].items() if cost["available"]]


def compare(tandem, network, mechanisms, expected, allowed, runs, work):
    """Whether all strategies and mechanisms give what is expected; prints a line."""

    def results(strategies, sync):
        report, outputs = compare_strategies(
            tandem, network.path, network.inputs, runs, work, strategies, warmup=1, sync=sync
        )
        for result in report["strategies"]:
            error = relative_error(outputs[result["strategy"]], expected)
            yield result["strategy"], result["sync"], error, result["time_ms"]["median"]

    compared = list(results(STRATEGIES, "auto"))
    used = {sync for _, sync, _, _ in compared}
    for mechanism in mechanisms:
        if mechanism not in used:
            compared += results([SPLIT], mechanism)
    agrees = all(error <= allowed for _, _, error, _ in compared)
    cells = "  ".join(
        f"{f'{name}/{sync}' if name == SPLIT else name} {error:.1e} {ms:8.2f} ms"
        for name, sync, error, ms in compared
    )
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
    mechanisms = available_mechanisms(arguments.tandem)
    print(f"mechanisms of synchronisation: {', '.join(mechanisms)}")
    failed = []

    def check(network, expected, allowed):
        try:
            agrees = compare(
                arguments.tandem, network, mechanisms, expected, allowed, arguments.runs, work
            )
        except TandemError as error:
            print(f"{network.name:20} FAILED: {error}", flush=True)
            agrees = False
        if not agrees:
            failed.append(network.name)

    with tempfile.TemporaryDirectory(prefix="tandem-zoo-") as work:
        networks = [Network(arguments.tandem, name, work) for name in tiny]
        truths = [network.in_double() for network in networks]
        movements = [network.movement() for network in networks]
        ratio = max(
            relative_error(network.onnxruntime(), truth) / movement
            for network, truth, movement in zip(networks, truths, movements)
        )
        print(
            f"ONNX Runtime's error is up to {ratio:.2f} times its movement on {len(tiny)} tiny "
            f"networks; {MARGIN} times that is allowed"
        )
        for network, truth, movement in zip(networks, truths, movements):
            check(network, truth, MARGIN * ratio * movement)
        for name in large:
            network = Network(arguments.tandem, name, work)
            check(network, network.onnxruntime(), MARGIN * ratio * network.movement())
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
