"""What goes wrong must end with a status other than zero, say what to do, and leave nothing."""

import json
import unittest

from cli_testing import CliTest, model, node, value_info, write_npy


class CommandLine(CliTest):
    def test_no_command(self):
        self.refuse(status=2, says=["subcommand is required", "tandem --help"])

    def test_unknown_command(self):
        self.refuse("frobnicate", status=2, says=["'frobnicate'", "tandem --help"])
        self.refuse("zoo", "frobnicate", status=2, says=["'frobnicate'", "tandem zoo --help"])

    def test_unknown_flag_points_to_the_command_s_help(self):
        self.refuse("run", "zoo:tiny_conv", "--frobnicate", status=2, says=["tandem run --help"])

    def test_every_command_has_help(self):
        for command in (
            [], ["devices"], ["run"], ["zoo"], ["zoo", "list"], ["zoo", "export"],
            ["zoo", "shapes"], ["bench"], ["bench", "sync"], ["bench", "op"], ["bench", "model"],
        ):
            with self.subTest(command=command):
                self.assertIn("Usage:", self.succeed(*command, "--help").stdout)

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout, r"^tandem \d+\.\d+\.\d+\n$")

    def test_malformed_values(self):
        for arguments in (
            ["--runs", "0"], ["--runs", "many"], ["--warmup", "-1"], ["--deadline-ms", "0"],
            ["--sync", "telepathy"], ["--strategy", "cpu", "--compare", "cpu,gpu"],
            ["--seed", "-1"], ["--search-seed", "-1"], ["--evaluations", "0"],
        ):
            with self.subTest(arguments=arguments):
                self.refuse("run", "zoo:tiny_conv", *arguments, status=2)

    def test_numbers_that_are_none(self):
        for command, flag, values in (
            (["plan", "zoo:tiny_conv"], "--budget-ms", ("nan", "inf", "0", "-1", "1s", "1e999")),
            (["profile"], "--budget", ("nan", "inf", "-1")),
            (["train"], "--learning-rate", ("nan", "0", "2")),
            (["train"], "--folds", ("1", "-1")),
            (["bench", "schedule"], "--time-limit", ("nan", "inf", "0")),
            (["bench", "papers"], "--offline", ("nan", "-1")),
        ):
            for value in values:
                with self.subTest(flag=flag, value=value):
                    done = self.refuse(*command, flag, value, status=2, says=[flag, value])
                    self.assertLess(len(done.stderr.splitlines()[0]), 100)

    def test_empty_values_are_not_taken_for_none(self):
        for arguments, says in (
            (["plan", "zoo:tiny_conv", "--platform", ""], "'--platform'"),
            (["plan", "zoo:tiny_conv", "--platform="], "'--platform='"),
            (["plan", "zoo:tiny_conv", "-o", ""], "'-o'"),
            (["run", "zoo:tiny_conv", "--strategy", ""], "'--strategy'"),
            (["run", "zoo:tiny_conv", "--input", ""], "'--input'"),
            (["run", ""], "'run'"),
            ([""], "'tandem'"),
        ):
            with self.subTest(arguments=arguments):
                self.refuse(*arguments, status=2, says=[says])

    def test_flags_without_effect_are_refused(self):
        model = "zoo:tiny_conv"
        for flag in (["--lane", "gpu=gpu"], ["--runtime", "ncnn"], ["--throttle-after", "3"],
                     ["--simulation-seed", "2"]):
            with self.subTest(flag=flag):
                self.refuse("run", model, *flag, status=2, says=[flag[0], "--platform"])
        for flag in ("--cpu-clock", "--gpu-clock"):
            self.refuse("run", model, "--platform", "pixel5", flag, "0.5", status=2,
                        says=[flag, "--throttle-after"])
        for flag in (["--opencl-cores", "0"], ["--cpu-cores", "1"], ["--opencl-device", "pocl"],
                     ["--opencl-own-memory"], ["--no-winograd"], ["--use_gpu=false"],
                     ["--num_threads", "1"]):
            with self.subTest(flag=flag):
                self.refuse("plan", model, "--platform", "pixel5", *flag, status=2,
                            says=[flag[0].split("=")[0], "--platform"])
        for flag in (["--sync", "svm"], ["--seed", 2], ["--runs", 3], ["--throttle"]):
            self.refuse("simulate", model, "--platform", "pixel5", *flag, status=2,
                        says=[flag[0], "--strategy"])
        self.refuse("simulate", model, "--platform", "pixel5", "--strategy", "joint", "--threads", 2,
                    status=2, says=["--threads", "--strategy"])
        self.refuse("train", "--end-to-end", "x.csv", status=2, says=["--end-to-end", "--csv"])
        self.refuse("train", "--csv", "x.csv", "--store", "y", status=2, says=["--store", "--csv"])

    def test_unknown_strategy_lists_the_known_ones(self):
        self.refuse("run", "zoo:tiny_conv", "--strategy", "best", says=["best", "cpu", "gpu", "intra"])

    def test_unknown_mechanism_lists_the_known_ones(self):
        done = self.refuse("run", "zoo:tiny_conv", "--sync", "telepathy", status=2)
        for text in ("'telepathy'", "auto", "event", "svm"):
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("--sync"), 1)

    def test_cores_that_do_not_exist(self):
        self.refuse("run", "zoo:tiny_conv", "--cpu-cores", "4095", says=["4095", "this machine has"])
        self.refuse("run", "zoo:tiny_conv", "--cpu-cores", "1-", says=["--cpu-cores", "such as"])

    def test_more_threads_than_cores(self):
        self.refuse("run", "zoo:tiny_conv", "--num_threads", 4096, says=["--num_threads 4096", "cores"])

    def test_full_disk_behind_stdout(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_tandem("zoo", "list", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Models(CliTest):
    def write_model(self, content):
        path = self.work / "model.onnx"
        path.write_bytes(content)
        return path

    def test_missing_file(self):
        self.refuse("run", "missing.onnx", says=["missing.onnx"])
        self.assertEqual(self.leftovers(), [])

    def test_a_folder_is_no_model(self):
        self.refuse("run", self.folder, says=[str(self.folder)])

    def test_unknown_network_lists_the_known_ones(self):
        self.refuse("run", "zoo:skynet", says=["skynet", "resnet50"])

    def test_empty_and_foreign_files(self):
        for content in (b"", b"\x00", b"this is text, not a model\n" * 10, bytes(range(256)) * 40):
            with self.subTest(content=content[:20]):
                self.refuse("run", self.write_model(content), says=["model.onnx"])

    def test_truncated_model(self):
        whole = self.folder / "whole.onnx"
        self.succeed("zoo", "export", "tiny_conv", "-o", whole)
        content = whole.read_bytes()
        for share in (0.01, 0.1, 0.5, 0.9, 0.999):
            with self.subTest(share=share):
                path = self.write_model(content[: int(len(content) * share)])
                self.refuse("run", path, says=["model.onnx"])

    def test_one_error_lists_all_unsupported_nodes(self):
        path = self.write_model(
            model(
                [
                    node("Frobnicate", ["x"], ["a"], "first"),
                    node("Relu", ["a"], ["b"], "between"),
                    node("Defenestrate", ["b"], ["y"], "second"),
                ],
                [value_info("x", [1, 4])],
                [value_info("y", [1, 4])],
            )
        )
        self.refuse("run", path, says=["Frobnicate", "first", "Defenestrate", "second"])

    def relu_of(self, shape):
        return self.write_model(
            model(
                [node("Relu", ["pixels"], ["y"], "relu")],
                [value_info("pixels", shape)],
                [value_info("y", shape)],
            )
        )

    def test_dynamic_shape_is_refused_by_name_and_can_be_given(self):
        path = self.relu_of(["batch", 3, "height", 8])
        self.refuse("run", path, says=["pixels", "--shape"])
        self.succeed("run", path, "--shape", "pixels=1,3,8,8", "--runs", 1, "--output", "out")
        self.assertEqual((self.work / "out/y.npy").stat().st_size, 128 + 4 * 3 * 8 * 8)

    def test_shapes_that_do_not_fit(self):
        path = self.relu_of([1, 3, "height", 8])
        self.refuse("run", path, "--shape", "pixels=1,4,8,8", says=["pixels"])
        self.refuse("run", path, "--shape", "nothing=1,3,8,8", says=["nothing"])
        self.refuse("run", path, "--shape", "pixels=1,3,x,8", says=["--shape pixels=1,3,x,8"])
        self.refuse("run", path, "--shape", "1,3,8,8", says=["such as"])


class Inputs(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.work / "relu.onnx"
        self.model.write_bytes(
            model(
                [node("Relu", ["x"], ["y"], "relu")],
                [value_info("x", [1, 4])],
                [value_info("y", [1, 4])],
            )
        )
        self.file = self.work / "x.npy"

    def test_missing_file(self):
        self.refuse("run", self.model, "--input", "nowhere.npy", says=["nowhere.npy", "No such file"])

    def test_no_file_at_all(self):
        self.refuse("run", self.model, "--input", "x=", says=["--input 'x='", "no file"])
        self.refuse("run", self.model, "--input", self.work, says=["is a folder"])

    def test_not_an_array(self):
        self.file.write_text("1 2 3 4 5 6 7 8")
        self.refuse("run", self.model, "--input", self.file, says=["x.npy", "not a .npy file"])

    def test_wrong_shape(self):
        write_npy(self.file, [4, 1], [1, 2, 3, 4])
        self.refuse("run", self.model, "--input", self.file, says=["[4, 1]", "[1, 4]", "'x'"])

    def test_wrong_type(self):
        write_npy(self.file, [1, 4], [1, 2, 3, 4], "<i8")
        self.refuse("run", self.model, "--input", self.file, says=["int64", "float32"])
        write_npy(self.file, [1, 4], [1, 2, 3, 4], "<f8")
        self.refuse("run", self.model, "--input", self.file, says=["astype"])

    def test_unknown_and_repeated_names(self):
        write_npy(self.file, [1, 4], [1, 2, 3, 4])
        self.refuse("run", self.model, "--input", f"z={self.file}", says=["'z'", "x"])
        self.refuse(
            "run", self.model, "--input", f"x={self.file}", "--input", "x=random", says=["twice"]
        )

    def test_nan_is_allowed_but_said(self):
        write_npy(self.file, [1, 4], [1, float("nan"), 3, float("inf")])
        done = self.succeed("run", self.model, "--input", self.file, "--runs", 1)
        self.assertIn("2 values that are NaN or infinite", done.stderr)


class Files(CliTest):
    def test_output_folder_that_cannot_be_made(self):
        (self.work / "taken").write_text("a file")
        self.refuse("run", "zoo:tiny_conv", "--output", "taken", "--runs", 1, says=["taken"])
        self.assertEqual(self.leftovers(), ["taken"])

    def test_what_cannot_be_written_is_said_before_the_work(self):
        """Told apart from after: the model, the first thing that takes time, is not there."""
        (self.work / "taken").write_text("a file")
        (self.work / "folder").mkdir()
        run, model = "run", "nowhere.onnx"
        for command in (
            [run, model, "--trace"], [run, model, "--report"], [run, model, "--replan", "--plan"],
            ["plan", model, "-o"], ["simulate", "--fit"], ["report", "nowhere.trace", "-o"],
            ["profile", "--export", "csv", "--store", "nowhere", "-o"],
            ["zoo", "shapes", "skynet", "-o"], ["zoo", "export", "skynet", "-o"],
        ):
            for place in ("missing/file", "taken/file"):
                with self.subTest(command=command, place=place):
                    self.refuse(*command, place, says=[place, "written"])
            with self.subTest(command=command):
                self.refuse(*command, "folder", says=["folder is a folder"])
                self.refuse(*command, "/proc/file", says=["/proc/file", "written"])
        for command in (
            [run, model, "--output"], ["train", "--store", "nowhere", "--plots"],
            ["train", "--csv", "nowhere", "-o"], ["bench", "schedule", "--export"],
        ):
            for place in ("taken", "taken/folder", "/proc/folder"):
                with self.subTest(command=command, place=place):
                    self.refuse(*command, place, says=[place])
        self.refuse("train", "--store", "nowhere", "-o", "folder", says=["folder", "give a file"])
        self.refuse("train", "--store", "nowhere", "-o", "taken/x", says=["taken"])
        self.assertEqual(self.leftovers(), ["folder", "taken"])
        self.assertEqual((self.work / "taken").read_text(), "a file")

    def test_a_file_that_is_there_stays_when_the_work_fails(self):
        (self.work / "kept").write_text("a file")
        self.refuse("plan", "nowhere.onnx", "-o", "kept", says=["nowhere.onnx"])
        self.assertEqual((self.work / "kept").read_text(), "a file")
        self.succeed("plan", "zoo:tiny_conv", "--platform", "pixel5", "-o", "/dev/null")

    def test_failed_run_writes_no_outputs(self):
        self.refuse("run", "zoo:tiny_conv", "--input", "missing.npy", "--output", "out")
        self.assertEqual(self.leftovers(), [])

    def test_export_that_cannot_be_written(self):
        self.refuse("zoo", "export", "tiny_conv", "-o", "missing/m.onnx", says=["missing/m.onnx"])
        self.refuse("zoo", "export", "skynet", "-o", "m.onnx", says=["skynet", "vgg16"])
        self.assertEqual(self.leftovers(), [])

    def test_cache_folder_that_cannot_be_written(self):
        # In /proc not even root can make folders.
        for folder in ("/proc/tandem", str(self.work / "file")):
            (self.work / "file").write_text("no folder")
            with self.subTest(folder=folder):
                done = self.succeed("run", "zoo:tiny_conv", "--runs", 1, "--cache-dir", folder)
                self.assertIn("warning", done.stderr)
                self.assertIn(folder, done.stderr)

    def test_no_place_for_any_cache_keeps_the_opencl_lane(self):
        self.environment["XDG_CACHE_HOME"] = "/proc/tandem"
        done = self.succeed("run", "zoo:tiny_conv", "--strategy", "gpu", "--runs", 1)
        self.assertIn("/proc/tandem", done.stderr)

    def test_no_cache_wanted(self):
        self.use_fresh_caches()
        done = self.succeed("run", "zoo:tiny_conv", "--runs", 1, "--cache-dir", "none")
        self.assertNotIn("cache", done.stderr)
        self.assertNotIn("kept", done.stderr)
        # Drivers may have caches of their own there.
        self.assertFalse((self.cache / "tandem").exists())

    def test_malformed_shape_files(self):
        path = self.work / "shapes.csv"
        path.write_text("hello\n")
        self.refuse("bench", "op", "--shapes", path, says=["shapes.csv:1", "family,"])
        header = self.succeed("zoo", "shapes", "tiny_conv").stdout.splitlines()[3]
        path.write_text(f"{header}\nconv,1,2\n")
        self.refuse("bench", "op", "--shapes", path, says=["shapes.csv:2", "columns"])
        for content in (f"{header}\n", ""):
            path.write_text(content)
            self.refuse("bench", "op", "--shapes", path, says=["no shapes", "tandem zoo shapes"])
        self.refuse("bench", "op", "--shapes", self.work / "nowhere.csv",
                    says=["nowhere.csv", "No such file"])
        self.refuse("bench", "op", "--shapes", self.work, says=["is a folder"])


class DamagedFiles(CliTest):
    """Whatever reads a file says which, what is wrong with it, and where."""

    def check(self, *command, name, says_of_nonsense="it is no JSON: line 2, column 1"):
        path = self.work / name
        for content, says in (("{\n", says_of_nonsense), ("", ""), ("\x00\x01", "")):
            with self.subTest(command=command, content=content):
                path.parent.mkdir(exist_ok=True)
                path.write_text(content)
                done = self.refuse(*command, says=[name.split("/")[-1], says])
                for foreign in ("exception", "parse_error", "syntax error"):
                    self.assertNotIn(foreign, done.stderr)
        path.unlink()
        if "/" not in name:
            self.refuse(*command, says=[name, "No such file"])
            path.mkdir()
            self.refuse(*command, says=[name, "folder"])

    def test_platforms(self):
        self.check("plan", "zoo:tiny_conv", "--platform", "p.json", name="p.json")
        self.check("simulate", "zoo:tiny_conv", "--platform", "pixel5", "--calibration", "c.json",
                   name="c.json")

    def test_problems(self):
        flags = ("--graphs", 0, "--no-stages", "--no-adversaries", "--no-offline")
        self.check("bench", "schedule", *flags, "--problems", "problems", name="problems/p.json")
        (self.work / "problems/p.json").write_text(json.dumps(
            {"format": "tandem mode problem", "version": 1, "name": "p", "latency_us": [[0]],
             "lanes": [{"name": "cpu", "fed_by": None, "enqueue_us": 0, "send_us": 0,
                        "receive_us": 0}],
             "edges": [],
             "operators": [{"name": "a", "modes": [{"parts": [{"lane": 0, "us": "fast"}]}]}]}))
        self.refuse("bench", "schedule", *flags, "--problems", "problems",
                    says=["p.json", "operators[0]: modes[0]: parts[0]", "number"])

    def test_predictors(self):
        path = self.work / "f.json"
        for content in ("{\n", "", "hello"):
            path.write_text(content)
            done = self.refuse("plan", "zoo:tiny_conv", "--predictors", "f.json", "--costs",
                               "predicted", says=["f.json", "damaged", "tandem train"])
            self.assertNotIn("exception", done.stderr)
        self.refuse("plan", "zoo:tiny_conv", "--predictors", self.folder, "--costs", "predicted",
                    says=["is a folder"])

    def test_measurements_of_phones(self):
        self.check("train", "--csv", "m.csv", name="m.csv", says_of_nonsense="header")
        (self.work / "phones.csv").write_text("a,b\n1,2\n")
        self.check("train", "--csv", "phones.csv", "--schema", "s.json", name="s.json")

    def test_a_store_with_nothing_in_it(self):
        (self.work / "s.sqlite").write_text("")
        for command in (["train"], ["profile", "--status"]):
            self.refuse(*command, "--store", "s.sqlite", says=["s.sqlite is empty", "tandem profile"])

    def test_traces(self):
        self.refuse("report", ".", "-o", "r.html", says=["is a folder", "--trace"])
        self.refuse("report", "t", "-o", "r.html", says=["t", "No such file", "--trace"])


class NoOpenClDevice(CliTest):
    def setUp(self):
        super().setUp()
        empty = self.folder / "vendors"
        empty.mkdir()
        self.environment["OCL_ICD_VENDORS"] = str(empty)
        self.empty = empty

    def test_the_cpu_still_runs_and_says_why_it_is_alone(self):
        done = self.succeed("run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 1)
        self.assertIn(str(self.empty), done.stderr)
        self.assertIn("pocl-opencl-icd", done.stderr)

    def test_a_strategy_for_the_gpu_is_refused(self):
        self.refuse("run", "zoo:tiny_conv", "--strategy", "gpu", says=["gpu"])

    def test_a_device_asked_for_by_name_is_an_error(self):
        self.refuse(
            "run", "zoo:tiny_conv", "--opencl-device", "Mali", says=["Mali", str(self.empty)]
        )

    def test_devices_says_where_it_looked(self):
        done = self.succeed("devices")
        self.assertIn(str(self.empty), done.stdout)
        report = json.loads(self.succeed("devices", "--json").stdout)
        self.assertEqual(report["opencl"]["devices"], [])
        self.assertEqual([lane["name"] for lane in report["lanes"]], ["cpu"])

    def test_nothing_to_cross_between(self):
        self.refuse("bench", "sync", says=["tandem devices"])


class Deadline(CliTest):
    def test_a_run_past_its_deadline_fails_and_names_it(self):
        self.refuse(
            "run", "zoo:resnet18", "--strategy", "cpu", "--deadline-ms", 1, says=["deadline"]
        )

    def test_a_deadline_beyond_all_clocks(self):
        for milliseconds in (10**13, 2**63 // 10**6 + 1, 2**63 - 1):
            self.succeed(
                "run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 1,
                "--deadline-ms", milliseconds,
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
