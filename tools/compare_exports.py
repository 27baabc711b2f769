#!/usr/bin/env python3
"""Compares Tandem's results on exported networks with ONNX Runtime's.

    .venv/bin/python tools/compare_exports.py --tandem build/release/tandem DIR/*.onnx

Every network runs with each strategy on one random input; open dimensions are 1. Results may be apart by
1e-4 of the largest output, or, where that is more, by 16 times what ONNX Runtime's own result moves when
the input changes by at most the last bit of each number.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from compare_zoo import DRAWS, nudged, relative_error
from tandem_cli import STRATEGIES, TandemError, compare_strategies, file_name

LEAST = 1e-4
MARGIN = 16


def check(tandem, path, runs, work):
    """Whether all strategies give what ONNX Runtime gives; prints a line."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    inputs = {}
    for declared in session.get_inputs():
        extents = [d if isinstance(d, int) else 1 for d in declared.shape]
        inputs[declared.name] = rng.standard_normal(extents, dtype=np.float32)

    def answers(values):
        names = (file_name(output.name) for output in session.get_outputs())
        return dict(zip(names, session.run(None, values)))

    expected = answers(inputs)
    movement = max(
        relative_error(answers({n: nudged(v, np.random.default_rng(seed)) for n, v in inputs.items()}),
                       expected)
        for seed in range(DRAWS)
    )
    allowed = max(LEAST, MARGIN * movement)
    report, outputs = compare_strategies(tandem, path, inputs, runs, work, warmup=1)
    errors = {s: relative_error(outputs[s], expected) for s in STRATEGIES}
    agrees = all(error <= allowed for error in errors.values())
    times = {result["strategy"]: result["time_ms"]["median"] for result in report["strategies"]}
    cells = "  ".join(f"{s} {errors[s]:.1e} {times[s]:7.2f} ms" for s in STRATEGIES)
    print(f"{path.stem:40} allowed {allowed:.1e}  {cells}  {'ok' if agrees else 'DIFFERS'}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tandem", required=True, help="the tandem binary")
    parser.add_argument("--runs", type=int, default=1, help="timed runs of each strategy")
    parser.add_argument("models", nargs="+", type=Path)
    arguments = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="tandem-exports-") as work:
        for path in arguments.models:
            try:
                agrees = check(arguments.tandem, path, arguments.runs, work)
            except TandemError as error:
                print(f"{path.stem:40} FAILED: {error}", flush=True)
                agrees = False
            if not agrees:
                failed.append(path.stem)
    print(f"{len(arguments.models) - len(failed)} passed, {len(failed)} failed")
    if failed:
        raise TandemError(f"results differ on {', '.join(failed)}")


if __name__ == "__main__":
    try:
        main()
    except (TandemError, OSError) as error:
        print(f"compare_exports: {error}", file=sys.stderr)
        sys.exit(1)
