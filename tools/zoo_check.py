#!/usr/bin/env python3
"""Checks exported networks of the zoo with the ONNX checker and ONNX Runtime.

For every FILE: the checker with full shape inference; two runs on seeded random inputs; output
statistics. A problem is: a model that the checker or the runtime refuses, an output that is not
finite, not of order one, or constant, or a model that ignores its input. Exits non-zero then.

Needs numpy, onnx and onnxruntime.
"""

import argparse
import collections
import sys

import numpy as np
import onnx
import onnxruntime

# Activations are meant to stay of order one: outputs outside are a mistake in the scaling. Boxes of
# detectors are in pixels.
MIN_STD, MAX_ABS = 0.005, 2000.0


def random_input(info, rng):
    """A seeded input for one model input: normal floats, or small token ids."""
    if info.type == "tensor(int64)":
        return rng.integers(0, 100, info.shape, dtype=np.int64)
    return rng.standard_normal(info.shape, dtype=np.float32)


def relative_difference(a, b):
    return float(np.abs(a - b).mean() / (np.abs(a).mean() + 1e-30))


def check(path, seed, threads):
    """Yields the problems of one file, after printing its statistics."""
    onnx.checker.check_model(path, full_check=True)
    operators = collections.Counter(node.op_type for node in onnx.load(path).graph.node)
    print(path)
    print("  operators: " + " ".join(f"{op}:{n}" for op, n in sorted(operators.items())))

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    first, second = (
        session.run(None, {info.name: random_input(info, rng) for info in session.get_inputs()})
        for _ in range(2)
    )
    for info, a, b in zip(session.get_outputs(), first, second):
        std, largest = float(a.std()), float(np.abs(a).max())
        change = relative_difference(a, b)
        print(
            f"  {info.name} {list(a.shape)}: mean {a.mean():.4f} std {std:.4f} "
            f"max abs {largest:.4f} finite {bool(np.isfinite(a).all())} "
            f"change with input {change:.4f}"
        )
        if list(a.shape) != info.shape:
            yield f"output {info.name} has shape {list(a.shape)}, but declares {info.shape}"
        if not np.isfinite(a).all():
            yield f"output {info.name} is not finite"
        elif std < MIN_STD or largest > MAX_ABS:
            yield f"output {info.name} is not of order one"
        elif change < 1e-3:
            yield f"output {info.name} hardly depends on the input"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs (default: 1)")
    parser.add_argument("--threads", type=int, default=0, help="0 (default): all cores")
    args = parser.parse_args()

    failed = 0
    for path in args.files:
        try:
            problems = list(check(path, args.seed, args.threads))
        except Exception as error:  # whatever the checker or the runtime raises is a finding
            problems = [f"{type(error).__name__}: {error}"]
        for problem in problems:
            print(f"{path}: {problem}", file=sys.stderr)
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
