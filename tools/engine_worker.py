"""What the scripts share that run a model in another engine whenever a line asks for it; `tandem bench
model` starts them.

Requests and answers are lines (see line_answers.py). An answer with "error" says what went wrong.

  {"do": "load", "model": FILE, "threads": N, "cores": [...], "inputs": {NAME: FILE.npy, ...},
   "outputs": FOLDER}
      -> {"version": TEXT, "load_ms": MS, "outputs": [FILE.npy, ...],
          "facts": {what else there is to say, if anything}}
  {"do": "run"}
      -> {"ms": MS, "preempted": whether the kernel took a core away from it meanwhile}

The process runs on the given cores only, each thread of the engine's on one of them.
"""

import json
import os
import resource
import time
from pathlib import Path

from line_answers import answer_lines, open_answers


class NotPossible(Exception):
    """The engine cannot have this model: nobody's fault."""


class EngineWorker:
    """An engine adds find(), which imports it; start(), which loads the model and says what is known of
    it, {"version", "load_ms", "facts"}; infer(), which is timed; and outputs(), arrays in the model's
    order."""

    def load(self, request):
        os.sched_setaffinity(0, request["cores"])
        # Here, and not above: what fails is an answer, and threads inherit the mask.
        import numpy

        self.model, self.threads = request["model"], request["threads"]
        self.folder = Path(request["outputs"])
        self.inputs = {name: numpy.load(path) for name, path in request["inputs"].items()}
        self.find()
        others = threads_of_this_process()
        answer = self.start()
        self.prepare()
        self.infer()
        spread_out(sorted(threads_of_this_process() - others), request["cores"])
        answer["outputs"] = []
        for index, values in enumerate(self.outputs()):
            answer["outputs"].append(str(self.folder / f"{index}.npy"))
            numpy.save(answer["outputs"][-1], numpy.ascontiguousarray(values))
        return answer

    def prepare(self):
        """What comes before every inference and is not timed."""

    def run(self, _):
        self.prepare()
        switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        begin = time.perf_counter()
        self.infer()
        ms = 1000 * (time.perf_counter() - begin)
        now = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        return {"ms": ms, "preempted": now != switches}

    def requests(self):
        return {"load": self.load, "run": self.run}


def threads_of_this_process():
    return {int(name) for name in os.listdir("/proc/self/task")}


def spread_out(pool, cores):
    """This thread, which works in the engine's pool, too, and the others have a core each, as Tandem's
    threads do: left to the kernel, two of them may share one for many runs."""
    if len(pool) + 1 == len(cores):
        for thread, core in zip([0, *pool], cores):
            os.sched_setaffinity(thread, [core])


def serve(worker):
    answers = open_answers()
    known = worker.requests()

    def answer_to(line):
        try:
            request = json.loads(line)
            return known[request["do"]](request)
        except Exception as error:  # whatever happens is the asker's to judge
            return {
                "error": f"{type(error).__name__}: {error}",
                "missing": isinstance(error, (ImportError, NotPossible)),
            }

    return answer_lines(answers, answer_to)
