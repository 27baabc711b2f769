"""What users and machines do to a command: interrupts, closed outputs, no home, several at once."""

import json
import os
import signal
import subprocess
import time
import unittest

from cli_testing import TANDEM, TIMEOUT_S, CliTest, model, node, read_npy, value_info, write_npy


class Numerics(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.work / "log.onnx"
        self.model.write_bytes(
            model(
                [
                    node("Neg", ["x"], ["a"], "negative"),
                    node("Log", ["a"], ["b"], "logarithm"),
                    node("Relu", ["b"], ["y"], "after"),
                ],
                [value_info("x", [2, 100])],
                [value_info("y", [2, 100])],
            )
        )
        self.values = [-1.0] * 200

    def check(self, strategy, **keywords):
        write_npy(self.work / "x.npy", [2, 100], self.values)
        return self.run_tandem(
            "run", self.model, "--input", "x.npy", "--runs", 1, "--check-numerics",
            "--strategy", strategy, **keywords,
        )

    def test_the_operator_the_element_and_the_lane_are_named(self):
        for strategy, lane in (("cpu", "cpu"), ("gpu", "gpu"), ("intra", "")):
            with self.subTest(strategy=strategy):
                self.values[150] = 2.0
                done = self.check(strategy)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertIn("makes a NaN", done.stderr)
                self.assertIn("at [1, 50]", done.stderr)
                self.assertIn(f"on lane {lane}", done.stderr)
                self.values[150] = -1.0
                self.assertEqual(self.check(strategy).returncode, 0)

    def test_inputs_are_named(self):
        self.values[7] = float("nan")
        done = self.check("cpu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("input x holds 1 NaN", done.stderr)
        self.assertIn("at [0, 7]", done.stderr)


class Interrupts(CliTest):
    def interrupt(self, *arguments, after=None):
        """Sends SIGINT once the runs have begun, and again if that is not enough."""
        process = subprocess.Popen(
            [TANDEM, *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work,
            env=self.environment,
        )
        time.sleep(after)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, stdout, stderr

    def test_what_has_been_measured_is_reported(self):
        self.succeed("run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 1)
        after = 1
        while True:
            status, stdout, stderr = self.interrupt(
                "run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 100_000_000, "--output", "out",
                after=after,
            )
            self.assertEqual(status, 130, stderr)
            if stdout:
                break
            # Not yet at the runs: a slow machine.
            self.assertIn("tandem: interrupted\n", stderr)
            self.assertLess(after, 30)
            after *= 2
        self.assertIn("median", stdout)
        self.assertRegex(stderr, r"interrupted after \d+ of 100000000 runs")
        (output,) = (self.work / "out").iterdir()
        self.assertGreater(len(read_npy(output)), 0)

    def test_before_there_is_anything_to_report(self):
        self.use_fresh_caches()
        for command in (["run", "zoo:resnet50", "--strategy", "gpu"],
                        ["plan", "zoo:resnet50", "-o", "p.json"]):
            with self.subTest(command=command):
                status, stdout, stderr = self.interrupt(*command, after=0.2)
                self.assertEqual(status, 130)
                self.assertEqual(stdout, "")
                self.assertIn("tandem: interrupted\n", stderr)
                self.assertEqual(self.leftovers(), [])


class Streams(CliTest):
    def test_reader_that_goes_away(self):
        done = subprocess.run(
            f"{TANDEM} zoo list | head -n 1; exit ${{PIPESTATUS[0]}}",
            shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S, env=self.environment,
        )
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))
        self.assertEqual(done.stderr, "")

    def test_closed_output(self):
        for closed in (">&-", ">&- <&-"):
            with self.subTest(closed=closed):
                done = subprocess.run(
                    f"exec {TANDEM} run zoo:tiny_conv --strategy gpu --runs 1 {closed}",
                    shell=True, executable="/bin/bash", capture_output=True, text=True,
                    check=False, timeout=TIMEOUT_S, cwd=self.work, env=self.environment,
                )
                self.assertEqual(done.returncode, 1)
                self.assertIn("standard output", done.stderr)
        # Nor has the report gone into a file that happened to be open.
        self.succeed("run", "zoo:tiny_conv", "--strategy", "gpu", "--runs", 1)
        for file in (self.cache / "tandem").rglob("*"):
            if file.is_file():
                self.assertNotIn(b"median", file.read_bytes())


class Homes(CliTest):
    def run_with(self, **variables):
        environment = dict(os.environ)
        for name in ("HOME", "XDG_CACHE_HOME"):
            environment.pop(name, None)
        environment.update(variables)
        self.environment = environment
        return self.succeed("run", "zoo:tiny_conv", "--strategy", "gpu", "--runs", 1)

    def test_no_home(self):
        self.assertEqual(self.run_with().stderr, "")

    def test_home_that_cannot_be_written(self):
        done = self.run_with(HOME="/proc/nobody")
        self.assertIn("/proc/nobody", done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 3)


class Caches(CliTest):
    def test_damaged_calibration_is_said_once_and_replaced(self):
        self.use_fresh_caches()
        command = ["run", "zoo:tiny_conv", "--use_gpu=false", "--strategy", "intra", "--runs", 1]
        self.succeed(*command)
        (file,) = (self.cache / "tandem/calibration").glob("*.json")
        whole = file.read_text()
        for damaged in ("", whole[: len(whole) // 2], '{"version": 1}'):
            with self.subTest(damaged=damaged[:20]):
                file.write_text(damaged)
                done = self.succeed(*command)
                self.assertEqual(done.stderr.count(str(file)), 1, done.stderr)
                self.assertNotIn("json.exception", done.stderr)
                self.assertIn("will be replaced", done.stderr)
                self.assertIn("fingerprint", json.loads(file.read_text()))

    def test_processes_that_start_at_once_on_empty_caches(self):
        self.use_fresh_caches()
        processes = [
            subprocess.Popen(
                [TANDEM, "run", "zoo:tiny_conv", "--strategy", "gpu", "--runs", "1", "--output",
                 str(self.work / str(i))],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment,
            )
            for i in range(4)
        ]
        outputs = set()
        for i, process in enumerate(processes):
            _, stderr = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, stderr)
            self.assertEqual(stderr, "")
            (file,) = (self.work / str(i)).iterdir()
            outputs.add(file.read_bytes())
        self.assertEqual(len(outputs), 1)
        files = list((self.cache / "tandem/programs").iterdir())
        self.assertTrue(files)
        self.assertEqual({file.suffix for file in files}, {".clbin"})


class Neighbours(CliTest):
    def test_processes_on_the_same_cores(self):
        self.succeed("run", "zoo:tiny_inception", "--runs", 1)
        processes = [
            subprocess.Popen(
                [TANDEM, "run", "zoo:tiny_inception", "--runs", "10", "--sync", sync,
                 "--output", str(self.work / sync)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment,
            )
            for sync in ("svm", "event")
        ]
        outputs = []
        for sync, process in zip(("svm", "event"), processes):
            _, stderr = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, stderr)
            (file,) = (self.work / sync).iterdir()
            outputs.append(read_npy(file))
        for a, b in zip(*outputs):
            self.assertAlmostEqual(a, b, delta=1e-4)


class Memory(CliTest):
    def relu_of(self, shape):
        path = self.work / "relu.onnx"
        path.write_bytes(
            model(
                [node("Relu", ["x"], ["y"], "relu")],
                [value_info("x", shape)],
                [value_info("y", shape)],
            )
        )
        return path

    def test_more_than_any_machine_has(self):
        # A petabyte; more bytes than 64 bits can count; more elements.
        for shape in ([1000, 1000, 1000, 100_000], [2**31, 2**31], [2**31, 2**31, 2**31]):
            with self.subTest(shape=shape):
                done = self.refuse("run", self.relu_of(shape), "--strategy", "cpu")
                self.assertLess(len(done.stderr), 2000)

    def test_limited_address_space(self):
        for kilobytes in (300_000, 1_000_000):
            with self.subTest(kilobytes=kilobytes):
                done = subprocess.run(
                    f"ulimit -v {kilobytes}; exec {TANDEM} run zoo:vgg16 --use_gpu=false --runs 1",
                    shell=True, executable="/bin/bash", capture_output=True, text=True,
                    check=False, timeout=TIMEOUT_S, env=self.environment,
                )
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("memory", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
