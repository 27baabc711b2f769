"""Calls the tandem binary from Python."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

STRATEGIES = ("cpu", "gpu", "intra")


class TandemError(Exception):
    """A command failed, or its answer is wrong."""


def run_tandem(tandem, *arguments, timeout=600, environment=None):
    """The command's standard output; TandemError with its errors if it fails. `environment`: what to
    change of this process's."""
    command = [str(tandem), *map(str, arguments)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired as error:
        raise TandemError(f"{' '.join(command)}: no answer within {timeout} s") from error
    if done.returncode != 0:
        raise TandemError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def compare_strategies(
    tandem, model, inputs, runs, work, strategies=STRATEGIES, warmup=2, sync="auto"
):
    """Runs a model with every strategy in turn on the same inputs (by name).

    Returns the JSON report, and each strategy's outputs by name.
    """
    with tempfile.TemporaryDirectory(dir=work) as folder:
        arguments = []
        for index, (name, tensor) in enumerate(inputs.items()):
            path = Path(folder) / f"input{index}.npy"
            np.save(path, tensor)
            shape = ",".join(map(str, tensor.shape))
            arguments += ["--input", f"{name}={path}", "--shape", f"{name}={shape}"]
        answers = Path(folder) / "outputs"
        report = run_tandem(
            tandem, "run", model, *arguments, "--output", answers, "--compare",
            ",".join(strategies), "--runs", runs, "--warmup", warmup, "--sync", sync, "--json",
        )
        outputs = {
            strategy: {path.stem: np.load(path) for path in (answers / strategy).glob("*.npy")}
            for strategy in strategies
        }
        return json.loads(report), outputs


def file_name(tensor):
    """The stem of the file that `tandem run --output` writes a tensor of that name to."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", tensor)
    return f"_{name}" if not name or name.startswith(".") else name
