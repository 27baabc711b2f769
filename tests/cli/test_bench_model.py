"""`tandem bench model`: whole networks beside ONNX Runtime and LiteRT, and what becomes of them without."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from cli_testing import TANDEM, TIMEOUT_S, CliTest, model, node, value_info, write_npy

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
PYTHON = SOURCE / ".venv/bin/python"
STRATEGIES = ["cpu", "gpu", "intra"]

# Stands in for Python with ONNX Runtime or LiteRT, on a model that is one Relu: answers as the real script does,
# until the fourth run is asked for.
STAND_IN = """#!{python}
import json, os, pathlib, signal, struct, sys, time
HEADER = 128
runs = 0
for line in sys.stdin:
    request = json.loads(line)
    answer = {{"ms": 1.5, "preempted": False, "arena_bytes": 4096, "planned_bytes": 2048}}
    if request["do"] == "load":
        (path,) = request["inputs"].values()
        content = pathlib.Path(path).read_bytes()
        values = [{output} for (x,) in struct.iter_unpack("<f", content[HEADER:])]
        path = pathlib.Path(request["outputs"]) / "0.npy"
        path.write_bytes(content[:HEADER] + struct.pack(f"<{{len(values)}}f", *values))
        answer = {{"version": "stand-in", "load_ms": 1.0, "outputs": [str(path)]}}
        {load}
    runs += request["do"] == "run"
    if runs == 4:
        {fault}
    print(json.dumps(answer), flush=True)
"""


class BenchModel(CliTest):
    def stand_in(self, fault="pass", output="max(0, x)", load="pass"):
        path = self.work / "python"
        path.write_text(
            STAND_IN.format(python=sys.executable, fault=fault, output=output, load=load)
        )
        path.chmod(0o755)
        return path

    def relu(self):
        path = self.work / "relu.onnx"
        path.write_bytes(
            model(
                [node("Relu", ["x"], ["y"], "relu")],
                [value_info("x", [1, 64])],
                [value_info("y", [1, 64])],
            )
        )
        return path

    def test_without_an_opencl_device_no_strategy_that_needs_one(self):
        self.environment["OCL_ICD_VENDORS"] = str(self.work)
        report = self.succeed_json("bench", "model", self.relu(), "--runs", 1,
                                   "--onnxruntime", "none", "--litert", "none")
        strategies = report["models"][0]["strategies"]
        self.assertIn("joint", strategies)
        self.assertNotIn("gpu", strategies)

    def bench(self, *arguments, status=0):
        """Without LiteRT, unless the arguments say otherwise."""
        if "--litert" not in arguments:
            arguments += ("--litert", "none")
        done = self.run_tandem("bench", "model", *arguments, "--json")
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout), done.stderr

    @unittest.skipUnless(PYTHON.exists(), "needs .venv with ONNX Runtime and LiteRT")
    def test_beside_onnxruntime_and_litert(self):
        report, _ = self.bench(
            "tiny_conv", "zoo:tiny_bert", "--strategy", ",".join(STRATEGIES), "--runs", 3,
            "--onnxruntime", PYTHON, "--litert", PYTHON,
        )
        self.assertEqual([m["model"] for m in report["models"]], ["tiny_conv", "tiny_bert"])
        (cpu_lane,) = (l for l in report["conditions"]["lanes"] if l["name"] == "cpu")
        for measured in report["models"]:
            self.assertEqual(list(measured["strategies"]), STRATEGIES)
            self.assertEqual(measured["onnxruntime_threads"], 1)
            self.assertEqual(measured["onnxruntime"]["cores"], cpu_lane["cores"][:1])
            self.assertGreater(measured["onnxruntime"]["memory"]["planned_bytes"], 0)
            self.assertEqual(measured["litert_threads"], 1)
            litert = measured["litert"]
            self.assertEqual(litert["cores"], cpu_lane["cores"][:1])
            self.assertEqual(litert["median_ms"], measured["litert_ms"])
            self.assertLess(litert["max_relative_difference"], 1e-4)
            # All else is XNNPACK's.
            outside = {"tiny_conv": {}, "tiny_bert": {"GATHER": 1}}[measured["model"].split(":")[-1]]
            self.assertEqual(litert["operators_outside_xnnpack"], outside)
            for times in measured["strategies"].values():
                self.assertGreater(times["median_ms"], 0)
                self.assertLessEqual(times["median_ms"], times["p90_ms"])
                self.assertAlmostEqual(
                    times["over_onnxruntime"], times["median_ms"] / measured["onnxruntime_ms"]
                )
                self.assertAlmostEqual(
                    times["over_litert"], times["median_ms"] / measured["litert_ms"]
                )
                self.assertLess(times["max_relative_difference"], 1e-4)
            self.assertGreater(measured["limit"], 1)
            self.assertGreater(min(measured["probe_before"]["together_read_gbps"]), 0)

    def test_two_threads_of_another_engine_have_the_cores_of_both_lanes(self):
        for engine, other in (("onnxruntime", "litert"), ("litert", "onnxruntime")):
            report, _ = self.bench(
                self.relu(), "--strategy", "cpu,gpu", f"--{engine}", self.stand_in(),
                f"--{engine}-threads", 2, f"--{other}", "none",
            )
            (measured,) = report["models"]
            self.assertEqual(measured[f"{engine}_ms"], 1.5)
            self.assertIsNone(measured[f"{other}_ms"])
            cores = [core for lane in report["conditions"]["lanes"] for core in lane["cores"]]
            self.assertEqual(measured[engine]["cores"], cores[:2])

    @unittest.skipUnless(PYTHON.exists() and len(os.sched_getaffinity(0)) > 1, "needs .venv, two cores")
    def test_threads_of_other_engines_have_a_core_each(self):
        cores = sorted(os.sched_getaffinity(0))[:2]
        write_npy(self.work / "x.npy", [1, 64], [0.5] * 64)
        request = {
            "do": "load", "model": str(self.relu()), "threads": 2, "cores": cores,
            "inputs": {"x": str(self.work / "x.npy")}, "outputs": str(self.work),
        }
        for script in ("onnxruntime_worker.py", "litert_worker.py"):
            with subprocess.Popen(
                [PYTHON, "-B", SOURCE / "tools" / script], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True,
            ) as worker:
                worker.stdin.write(json.dumps(request) + "\n")
                worker.stdin.flush()
                self.assertIn("version", worker.stdout.readline())
                threads = [int(path.name) for path in pathlib.Path(f"/proc/{worker.pid}/task").iterdir()]
                masks = [sorted(os.sched_getaffinity(thread)) for thread in threads]
                self.assertEqual(sorted(os.sched_getaffinity(worker.pid)), cores[:1], script)
                self.assertEqual(masks.count(cores[1:]), 1, script)
                worker.stdin.close()

    def test_other_outputs_are_an_error(self):
        stand_in = self.stand_in(output="max(0, x) + 0.25")
        report, errors = self.bench(self.relu(), "--onnxruntime", stand_in, status=1)
        self.assertIn("differ from ONNX Runtime's", errors)
        for times in report["models"][0]["strategies"].values():
            self.assertAlmostEqual(times["max_difference"], 0.25, places=5)
        stand_in = self.stand_in(output="float('nan')")
        self.bench(self.relu(), "--onnxruntime", stand_in, status=1)
        _, errors = self.bench(
            self.relu(), "--onnxruntime", "none", "--litert", stand_in, status=1)
        self.assertIn("differ from LiteRT's", errors)

    def test_without_litert_there_is_a_note(self):
        """Where the Python of the source tree lacks it."""
        tree = self.folder / "tree"
        for folder in ("build", "tools", ".venv/bin"):
            (tree / folder).mkdir(parents=True)
        shutil.copy(TANDEM, tree / "build/tandem")
        for script in ("litert_worker.py", "onnxruntime_worker.py"):
            (tree / "tools" / script).touch()
        (tree / ".venv/bin/python").symlink_to(self.stand_in(
            "pass", load="answer = {'error': 'ModuleNotFoundError: it', 'missing': True}"))
        done = subprocess.run(
            [tree / "build/tandem", "bench", "model", self.relu(), "--strategy", "cpu", "--json"],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=self.work,
            env=self.environment,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        (measured,) = json.loads(done.stdout)["models"]
        self.assertIsNone(measured["litert_ms"])
        self.assertIn("ModuleNotFoundError", measured["litert_error"])
        self.assertIn("warning: no figures of LiteRT", done.stderr)
        self.assertGreater(measured["strategies"]["cpu"]["median_ms"], 0)

    @unittest.skipUnless(PYTHON.exists(), "needs .venv with LiteRT")
    def test_a_model_that_cannot_be_converted(self):
        """Is a note, unless LiteRT was asked for."""
        path = self.work / "erf.onnx"
        path.write_bytes(model([node("Erf", ["x"], ["y"], "the_erf")], [value_info("x", [1, 64])],
                               [value_info("y", [1, 64])]))
        flags = (path, "--strategy", "cpu", "--onnxruntime", "none")
        done = self.succeed("bench", "model", *flags, "--json")
        (measured,) = json.loads(done.stdout)["models"]
        for text in (done.stderr, measured["litert_error"]):
            self.assertIn("the_erf", text)
        _, errors = self.bench(*flags, "--litert", PYTHON, status=1)
        self.assertIn("the_erf", errors)

    def check_figures_are_kept(self, says, *arguments):
        report, errors = self.bench(
            self.relu(), "--strategy", "cpu,gpu", *arguments, status=1
        )
        for text in says:
            self.assertIn(text, errors)
        (measured,) = report["models"]
        self.assertIsNone(measured["onnxruntime_ms"])
        self.assertIn(says[0], measured["onnxruntime_error"])
        for strategy in ("cpu", "gpu"):
            self.assertGreater(measured["strategies"][strategy]["median_ms"], 0)

    def test_figures_are_kept_when_onnxruntime_dies(self):
        fault = "os.kill(os.getpid(), signal.SIGKILL)"
        self.check_figures_are_kept(["signal 9"], "--onnxruntime", self.stand_in(fault))
        self.check_figures_are_kept(["status 3"], "--onnxruntime", self.stand_in("sys.exit(3)"))

    def test_figures_are_kept_when_onnxruntime_hangs(self):
        self.check_figures_are_kept(
            ["1000 ms"], "--onnxruntime", self.stand_in("time.sleep(1000)"),
            "--onnxruntime-seconds", 1,
        )

    def test_an_interruption_while_loading_leaves_no_files(self):
        folder = self.folder / "temporary"
        folder.mkdir()
        python = self.work / "python"
        python.write_text(
            f"#!{sys.executable}\nimport os, signal, sys\nsys.stdin.readline()\n"
            f"print(os.listdir({str(folder)!r}), file=sys.stderr)\n"
            "os.kill(os.getppid(), signal.SIGINT)\n"
        )
        python.chmod(0o755)
        done = self.run_tandem("bench", "model", self.relu(), "--onnxruntime", python,
                               "--litert", "none",
                               environment={"TMPDIR": str(folder)})
        self.assertEqual(done.returncode, 130, done.stderr)
        self.assertIn("tandem-", done.stderr)
        self.assertIn("interrupted", done.stderr)
        self.assertEqual([path for path in folder.iterdir() if path.name != "tandem-pocl-0"], [])

    def test_figures_are_kept_when_onnxruntime_answers_nonsense(self):
        self.check_figures_are_kept(
            ["no JSON object"], "--onnxruntime", self.stand_in("print('hello', flush=True)")
        )

    def test_a_python_that_is_not_there(self):
        self.check_figures_are_kept(["/nowhere/python"], "--onnxruntime", "/nowhere/python")

    def test_without_onnxruntime(self):
        report, errors = self.bench(
            "tiny_conv", "--strategy", "cpu,gpu", "--onnxruntime", "none", "--runs", 3
        )
        self.assertEqual(errors, "")
        (measured,) = report["models"]
        self.assertIsNone(measured["onnxruntime_ms"])
        self.assertNotIn("over_onnxruntime", measured["strategies"]["cpu"])
        self.assertNotIn("speedup_joint", measured)

    def test_all_strategies_as_predicted_and_as_measured(self):
        report, _ = self.bench("tiny_inception", "--onnxruntime", "none", "--runs", 3)
        (measured,) = report["models"]
        strategies = measured["strategies"]
        self.assertEqual(list(strategies), sorted(["cpu", "gpu", "inter", "intra", "chain", "joint"]))
        for times in strategies.values():
            self.assertGreater(times["predicted_ms"], 0)
        alone = [strategies[lane]["median_ms"] for lane in ("cpu", "gpu")]
        speed_up = min(alone) / strategies["joint"]["median_ms"]
        self.assertAlmostEqual(measured["limit"], 1 + min(alone) / max(alone))
        self.assertAlmostEqual(measured["speedup_joint"], speed_up)
        self.assertAlmostEqual(measured["of_limit"], speed_up / measured["limit"])
        # No prediction is worse than that of the best lane alone: then that lane would be taken.
        predicted = {name: times["predicted_ms"] for name, times in strategies.items()}
        for name in ("inter", "intra", "chain", "joint"):
            best = min(predicted["cpu"], predicted["gpu"])
            self.assertLessEqual(predicted[name], best * (1 + 1e-9), name)
        text = self.succeed(
            "bench", "model", "tiny_inception", "--onnxruntime", "none", "--litert", "none").stdout
        for part in ("tiny_inception", "packing", "arena", "probe after", "conditions", "of limit"):
            self.assertIn(part, text)

    def test_initialization_is_a_process_of_its_own_with_the_same_flags(self):
        """Whole and parts; and that they are those of what was asked for."""
        flags = ("--costs", "calibrated", "--shape", "x=1,64", "--cache-dir", self.work / "kept")
        report, _ = self.bench(
            self.relu(), "--strategy", "cpu,joint", "--onnxruntime", self.stand_in(), *flags
        )
        (measured,) = report["models"]
        parts = measured["init_parts"]
        self.assertAlmostEqual(measured["init_ms"], sum(parts.values()))
        for part in ("read", "import", "search", "lanes"):
            self.assertGreater(parts[part], 0, part)
        self.assertEqual(measured["search_ms"], parts["search"])
        self.assertAlmostEqual(
            measured["search_share"], measured["search_ms"] / measured["init_ms"])
        self.assertEqual(measured["onnxruntime_init_ms"], 1.0)
        (own,) = self.succeed_json("run", "relu.onnx", "--runs", 1, *flags)["strategies"]
        self.assertEqual(own["init_parts"].keys(), parts.keys())
        # What was calibrated and compiled on the way was kept where the flag says.
        self.assertGreater(len(list((self.work / "kept").rglob("*"))), 2)
        self.assertLess(parts["calibrate"], 1000)

    def test_a_process_of_its_own_that_fails_is_an_error(self):
        done = self.run_tandem(
            "bench", "model", "tiny_conv", "--strategy", "joint", "--onnxruntime", "none",
            "--litert", "none", "--pin", "nothing=cpu")
        self.assertEqual(done.returncode, 1)
        for text in ("measuring the initialization", "nothing"):
            self.assertIn(text, done.stderr)

    def test_one_model_that_fails_leaves_the_others(self):
        (self.work / "damaged.onnx").write_text("no model")
        report, errors = self.bench(
            "damaged.onnx", "tiny_conv", "--strategy", "cpu,gpu", "--onnxruntime", "none", status=1
        )
        self.assertIn("damaged.onnx", errors)
        failed, measured = report["models"]
        self.assertIn("damaged.onnx", failed["error"])
        self.assertGreater(measured["strategies"]["cpu"]["median_ms"], 0)

    def test_simulated_lanes_are_not_compared_with_engines_of_this_machine(self):
        flags = ("tiny_conv", "--platform", "pixel5", "--strategy", "cpu,gpu,joint")
        report, _ = self.bench(*flags)
        (measured,) = report["models"]
        self.assertIn("simulated", measured["onnxruntime_error"])
        self.assertIsNone(measured["onnxruntime_ms"])
        self.assertGreater(measured["speedup_joint"], 0)
        self.bench(*flags, "--onnxruntime", self.stand_in(), status=1)

    def test_what_cannot_be_measured(self):
        self.refuse("bench", "model", says=["--all"])
        self.refuse("bench", "model", "skynet", says=["skynet", "tandem zoo list"])
        self.refuse("bench", "model", "zoo:skynet", says=["skynet", "tandem zoo list"])
        self.refuse("bench", "model", "tiny_conv", "--strategy", "best", says=["best", "intra"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
