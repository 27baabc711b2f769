#!/usr/bin/env python3
"""Runs a model with ONNX Runtime whenever a line asks for it: see engine_worker.py. One more request:

  {"do": "memory"}
      -> {"arena_bytes": N, "planned_bytes": N}

Between runs no thread spins: with one thread there is no pool, and otherwise the pool stops spinning at
the end of a run.
"""

import re
import time

from engine_worker import EngineWorker, serve

# Runs after which an arena has what later runs need: one to learn the pattern of activations, one to
# take the block that it asks for.
SETTLING_RUNS = 3

# Of ONNX Runtime: levels of its log, and how an arena grows.
INFO, QUIET = 1, 3
AS_REQUESTED = 1


class OnnxRuntimeWorker(EngineWorker):
    def find(self):
        import onnxruntime

        self.onnxruntime = onnxruntime

    def start(self):
        begin = time.perf_counter()
        self.session = self.create_session(self.options())
        load_ms = 1000 * (time.perf_counter() - begin)
        return {"version": self.onnxruntime.__version__, "load_ms": load_ms}

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

    def infer(self):
        self.results = self.session.run(None, self.inputs)

    def outputs(self):
        return self.results

    def requests(self):
        return {**super().requests(), "memory": self.memory}

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


if __name__ == "__main__":
    serve(OnnxRuntimeWorker())
