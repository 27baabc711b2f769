#!/usr/bin/env python3
"""Runs a model with ONNX Runtime whenever a line asks for it; `tandem bench model` starts this.

Requests and answers are JSON objects, one a line, on stdin and stdout. An answer with "error" says what
went wrong. The process ends when its stdin does.

  {"do": "load", "model": FILE, "threads": N, "cores": [...], "inputs": {NAME: FILE.npy, ...},
   "outputs": FOLDER}
      -> {"version": TEXT, "load_ms": MS, "outputs": [FILE.npy, ...]}
  {"do": "run"}
      -> {"ms": MS, "preempted": whether the kernel took a core away from it meanwhile}
  {"do": "memory"}
      -> {"arena_bytes": N, "planned_bytes": N}

The process runs on the given cores only, which its threads inherit. Between runs none of them spins:
with one thread there is no pool, and otherwise the pool stops spinning at the end of a run.
"""

import json
import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

# Runs after which an arena has what later runs need: one to learn the pattern of activations, one to
# take the block that it asks for.
SETTLING_RUNS = 3

# Of ONNX Runtime: levels of its log, and how an arena grows.
INFO, QUIET = 1, 3
AS_REQUESTED = 1


class Worker:
    def __init__(self):
        self.session = None

    def load(self, request):
        os.sched_setaffinity(0, request["cores"])
        # Here, and not above: what fails is an answer, and threads inherit the mask.
        import numpy
        import onnxruntime

        self.numpy, self.onnxruntime = numpy, onnxruntime
        self.model, self.threads = request["model"], request["threads"]
        self.inputs = {name: numpy.load(path) for name, path in request["inputs"].items()}
        begin = time.perf_counter()
        self.session = self.create_session(self.options())
        load_ms = 1000 * (time.perf_counter() - begin)
        files = []
        for index, values in enumerate(self.session.run(None, self.inputs)):
            files.append(str(Path(request["outputs"]) / f"{index}.npy"))
            numpy.save(files[-1], numpy.ascontiguousarray(values))
        return {"version": onnxruntime.__version__, "load_ms": load_ms, "outputs": files}

    def options(self):
        options = self.onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = QUIET
        options.add_session_config_entry("session.force_spinning_stop", "1")
        return options

    def create_session(self, options):
        return self.onnxruntime.InferenceSession(
            self.model, options, providers=["CPUExecutionProvider"]
        )

    def run(self, _):
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        begin = time.perf_counter()
        self.session.run(None, self.inputs)
        ms = 1000 * (time.perf_counter() - begin)
        now = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        return {"ms": ms, "preempted": now != switches}

    def memory(self, _):
        """What an arena takes for the activations and scratch of this model, from the log of a second
        session: the Python API has no statistics. Weights are kept out of that arena, and it grows by
        what is asked for (its default, powers of two, takes more).

        planned_bytes: the block that the second run asks for, when the first one has shown which
        activations there are and when each is in use.
        arena_bytes: all that the arena has taken after some runs.
        """
        ort = self.onnxruntime
        lines = []
        ort.set_default_logger_callback(lambda *fields: lines.append(fields[-1]))
        ort.set_default_logger_severity(INFO)
        ort.create_and_register_allocator(
            ort.OrtMemoryInfo(
                "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
            ),
            ort.OrtArenaCfg({"arena_extend_strategy": AS_REQUESTED}),
        )
        options = self.options()
        options.log_severity_level = INFO
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
        session = self.create_session(options)
        taken = []
        for _ in range(SETTLING_RUNS):
            lines.clear()
            session.run(None, self.inputs)
            sizes = re.findall(r"Extended allocation by (\d+) bytes", "\n".join(lines))
            taken.append([int(size) for size in sizes])
        ort.set_default_logger_severity(QUIET)
        # A block that fits into what the first run has left is asked for, but not seen.
        planned = max(taken[1], default=max(taken[0], default=0))
        return {"arena_bytes": sum(map(sum, taken)), "planned_bytes": planned}


def main():
    # Ctrl-C reaches the asker, too, which tells of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Whatever else is printed must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker()
    known = {"load": worker.load, "run": worker.run, "memory": worker.memory}
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = known[request["do"]](request)
        except Exception as error:  # whatever happens is the asker's to judge
            answer = {
                "error": f"{type(error).__name__}: {error}",
                "missing": isinstance(error, ImportError),
            }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
