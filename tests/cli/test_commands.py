"""What the commands print when all goes well."""

import csv
import os
import pathlib
import unittest

from cli_testing import CliTest, read_npy

SOURCE = pathlib.Path(os.environ["TANDEM_SOURCE"])
STRATEGIES = ["cpu", "gpu", "intra"]


class Run(CliTest):
    def test_adapt(self):
        report = self.succeed_json("run", "zoo:tiny_residual", "--adapt", "--runs", 40, "--verify")
        self.assertEqual([s["strategy"] for s in report["strategies"]], ["joint"])
        adaptation = report["adaptation"]
        self.assertGreaterEqual(adaptation["recorded_runs"], 3)
        self.assertGreaterEqual(adaptation["planned"], adaptation["changed"])
        self.assertEqual(set(adaptation["slowdown"]), {"cpu", "gpu"})
        self.assertTrue(report["verify"]["joint"]["agrees"])
        text = self.succeed("run", "zoo:tiny_residual", "--adapt", "--runs", 3).stdout
        self.assertIn("adapted: ", text)
        self.refuse("run", "zoo:tiny_residual", "--adapt", "--strategy", "gpu", says=["'gpu'"])
        self.refuse("run", "zoo:tiny_residual", "--adapt", "--compare", "cpu,gpu", status=2)

    def test_json_has_every_figure_with_its_conditions(self):
        report = self.succeed_json("run", "zoo:tiny_conv", "--runs", 3, "--compare", "cpu,gpu,intra")
        self.assertEqual([s["strategy"] for s in report["strategies"]], STRATEGIES)
        for strategy in report["strategies"]:
            time = strategy["time_ms"]
            self.assertEqual(time["runs"], 3)
            self.assertGreater(time["min"], 0)
            self.assertLessEqual(time["min"], time["median"])
            self.assertLessEqual(time["median"], time["p90"])
            self.assertGreater(strategy["share_of_limit"], 0)
        self.assertGreater(report["limit"], 1)
        self.assertLessEqual(report["limit"], 2)
        for key in ("date", "cpu", "clocks_mhz", "lanes", "versions", "load_average"):
            self.assertIn(key, report["conditions"])

    def test_single_lanes_run_everything_there(self):
        for strategy, lane, other in (("cpu", "cpu", "gpu"), ("gpu", "gpu", "cpu")):
            report = self.succeed_json("run", "zoo:tiny_conv", "--strategy", strategy, "--runs", 1)
            slices = report["strategies"][0]["slices"]
            self.assertGreater(slices[lane], 0)
            self.assertEqual(slices[other], 0)

    def test_strategies_and_mechanisms_give_the_same_outputs(self):
        self.succeed(
            "run", "zoo:tiny_residual", "--compare", "cpu,gpu,intra", "--runs", 1, "--output", "a"
        )
        variants = {
            "event": ("--sync", "event"), "finish": ("--sync", "finish"),
            "copies": ("--opencl-own-memory",),
        }
        for name, flags in variants.items():
            self.succeed("run", "zoo:tiny_residual", *flags, "--runs", 1, "--output", f"a/{name}")
        files = list((self.work / "a/cpu").iterdir())
        self.assertTrue(files)
        for file in files:
            expected = read_npy(file)
            self.assertGreater(max(map(abs, expected)), 0)
            for other in ("gpu", "intra", *variants):
                values = read_npy(self.work / "a" / other / file.name)
                self.assertEqual(len(values), len(expected))
                for a, b in zip(values, expected):
                    self.assertAlmostEqual(a, b, delta=1e-4)

    def test_random_inputs_depend_on_the_seed_alone(self):
        for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.succeed(
                "run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 1, "--seed", seed,
                "--output", folder,
            )
        (name,) = (path.name for path in (self.work / "a").iterdir())
        contents = [(self.work / folder / name).read_bytes() for folder in "abc"]
        self.assertEqual(contents[0], contents[1])
        self.assertNotEqual(contents[0], contents[2])

    def test_verify_compares_every_operator(self):
        for network in ("tiny_inception", "tiny_mobilenet", "tiny_vit"):
            with self.subTest(network=network):
                report = self.succeed_json(
                    "run", f"zoo:{network}", "--compare", "cpu,gpu,intra", "--runs", 1, "--verify"
                )
                for strategy in STRATEGIES:
                    verification = report["verify"][strategy]
                    self.assertTrue(verification["agrees"])
                    self.assertEqual(verification["checked"], report["operators"])

    def test_without_passes_there_are_more_operators(self):
        fused = self.succeed_json("run", "zoo:tiny_residual", "--runs", 1)
        plain = self.succeed_json("run", "zoo:tiny_residual", "--runs", 1, "--no-optimize")
        self.assertGreater(plain["operators"], fused["operators"])

    def test_benchmark_model_s_flags(self):
        report = self.succeed_json(
            "run", "zoo:tiny_conv", "--num_threads", 1, "--warmup_runs", 1, "--num_runs", 2,
            "--use_gpu=false",
        )
        self.assertEqual(report["strategies"][0]["strategy"], "cpu")
        self.assertEqual(len(report["conditions"]["lanes"]), 1)
        self.assertEqual(len(report["conditions"]["lanes"][0]["cores"]), 1)
        report = self.succeed_json("run", "zoo:tiny_conv", "--num_runs", 1, "--use_gpu=true")
        self.assertEqual(report["strategies"][0]["strategy"], "gpu")

    def compiled_files(self):
        """Programs in Tandem's cache, and what the driver keeps of them in its own."""
        return {
            path: path.stat().st_mtime_ns
            for path in self.cache.rglob("*")
            if path.suffix in (".clbin", ".so", ".bc")
        }

    def test_a_second_start_compiles_nothing(self):
        self.use_fresh_caches()
        starts = []
        for _ in range(2):
            report = self.succeed_json("run", "zoo:tiny_conv", "--strategy", "gpu", "--runs", 1)
            lane = report["strategies"][0]["init_lanes"]["gpu"]
            starts.append((report["program_cache"], lane, self.compiled_files()))
        (first, first_lane, files), (second, second_lane, files_then) = starts
        self.assertGreater(first["misses"], 0)
        self.assertGreater(first_lane["programs_compiled"], 0)
        self.assertTrue(any(path.suffix == ".clbin" for path in files))
        self.assertEqual(second["misses"], 0)
        self.assertEqual(second_lane["programs_compiled"], 0)
        self.assertEqual(second["hits"], first["misses"])
        self.assertEqual(files_then, files)

    def test_times_by_part_add_up(self):
        report = self.succeed_json("run", "zoo:tiny_conv", "--compare", "cpu,gpu,intra", "--runs", 1)
        for key in ("parse", "import", "passes"):
            self.assertGreater(report["load_ms"][key], 0)
        for strategy in report["strategies"]:
            lanes = [lane for lane, slices in strategy["slices"].items() if slices > 0]
            self.assertEqual(list(strategy["init_lanes"]), lanes)
            parts = strategy["init_parts"]
            self.assertAlmostEqual(strategy["init_ms"], sum(parts.values()))
            for part, of_model in (("read", "parse"), ("import", "import"), ("passes", "passes")):
                self.assertEqual(parts[part], report["load_ms"][of_model])
            self.assertAlmostEqual(
                strategy["search_share"], strategy["search_ms"] / strategy["init_ms"])
            for lane in strategy["init_lanes"].values():
                of_lane = [lane[key] for key in ("pack", "compile", "warm")]
                self.assertGreaterEqual(min(of_lane), 0)
                self.assertLessEqual(sum(of_lane), parts["lanes"])
                self.assertGreater(strategy["memory"]["packed_bytes"][lanes[0]], 0)

    def test_memory_is_reused_and_padding_counted(self):
        report = self.succeed_json("run", "zoo:tiny_conv", "--strategy", "cpu", "--runs", 1)
        memory = report["strategies"][0]["memory"]
        self.assertLessEqual(memory["least_bytes"], memory["arena_bytes"])
        self.assertLess(memory["arena_bytes"], memory["arena_bytes_without_reuse"])
        self.assertLess(memory["padding_bytes_without_reuse"], memory["arena_bytes_without_reuse"])


class Zoo(CliTest):
    def test_list(self):
        report = self.succeed_json("zoo", "list")
        networks = {entry["name"]: entry for entry in report["networks"]}
        self.assertEqual(networks["resnet50"]["shape"], [1, 3, 224, 224])
        self.assertEqual(networks["resnet50"]["parameters"], 25557032)
        table = self.succeed("zoo", "list").stdout
        for name in networks:
            self.assertIn(name, table)

    def test_export_depends_on_the_seed_alone(self):
        for path, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.succeed("zoo", "export", "tiny_conv", "-o", path, "--seed", seed)
        a, b, c = ((self.work / path).read_bytes() for path in "abc")
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        self.succeed("run", "a", "--runs", 1)

    def test_committed_shapes_are_those_of_the_networks(self):
        files = sorted(
            file
            for file in (SOURCE / "bench/shapes").glob("*.csv")
            if not file.name.startswith("set_")
        )
        self.assertTrue(files)
        for file in files:
            with self.subTest(file=file.name):
                self.assertEqual(self.succeed("zoo", "shapes", file.stem).stdout, file.read_text())


class Devices(CliTest):
    def test_threads_have_the_masks_of_their_lanes(self):
        report = self.succeed_json("devices")
        names = [lane["name"] for lane in report["lanes"]]
        self.assertEqual(names, ["cpu", "gpu"])
        for lane in report["lanes"]:
            with self.subTest(lane=lane["name"]):
                allowed = set()
                for mask in lane["thread_masks"]:
                    for part in mask.split(","):
                        first, _, last = part.partition("-")
                        allowed.update(range(int(first), int(last or first) + 1))
                self.assertEqual(allowed, set(lane["cores"]))
        self.assertEqual(report["lanes"][1]["self_test"], "passed")
        self.assertTrue(any("libOpenCL" in path for path in report["libraries"]))

    def test_says_which_mechanism_is_used_and_why_not_the_others(self):
        report = self.succeed_json("devices")
        choice = report["synchronization_choice"]
        mechanisms = {"svm", "event", "pinned", "finish"}
        self.assertEqual(set(report["synchronization"][0]["mechanisms"]), mechanisms)
        self.assertEqual(set(choice["why_not"]), mechanisms - {choice["mechanism"]})
        self.assertIn("promise", choice["why_not"]["pinned"])
        session = self.succeed_json("run", "zoo:tiny_residual", "--runs", 1)["strategies"][0]
        self.assertEqual(session["sync"], choice["mechanism"])

    def test_a_device_with_memory_of_its_own_has_no_svm(self):
        report = self.succeed_json("devices", "--opencl-own-memory")
        costs = report["synchronization"][0]["mechanisms"]
        self.assertFalse(costs["svm"]["available"])
        self.assertTrue(costs["event"]["available"])
        self.assertTrue(costs["finish"]["available"])
        self.refuse("run", "zoo:tiny_residual", "--opencl-own-memory", "--sync", "svm", says=["svm"])

    def test_lanes_can_change_cores(self):
        report = self.succeed_json("devices", "--opencl-cores", "1", "--cpu-cores", "0")
        self.assertEqual([lane["cores"] for lane in report["lanes"]], [[0], [1]])

    def test_text(self):
        text = self.succeed("devices").stdout
        for part in ("Lanes:", "L1 data", "masks in force", "self-test: passed", "round trip"):
            self.assertIn(part, text)


class Bench(CliTest):
    def test_sync(self):
        report = self.succeed_json("bench", "sync", "--iterations", 200)
        for mechanism in ("svm", "event", "finish"):
            costs = report["mechanisms"][mechanism]
            self.assertTrue(costs["available"])
            for key in ("cpu_to_gpu_us", "gpu_to_cpu_us", "round_trip_us"):
                self.assertGreater(costs[key], 0)
                self.assertGreaterEqual(costs[key.replace("_us", "_p90_us")], costs[key])
            self.assertLess(costs["cpu_ms_per_second_of_waiting"], 500)
        self.assertIn("pinned", report["mechanisms"])

    def test_op(self):
        shapes = self.work / "shapes.csv"
        shapes.write_text(self.succeed("zoo", "shapes", "tiny_mobilenet").stdout)
        report = self.succeed_json("bench", "op", "--impl", "--shapes", shapes, "--samples", 3)
        self.assertEqual(len(report["shapes"]), len(shapes.read_text().splitlines()) - 4)
        for row in report["shapes"]:
            results = {(r["lane"], r["role"]): r for r in row["results"]}
            for lane in ("cpu", "gpu"):
                self.assertGreater(results[lane, "lane"]["gflops"], 0)
                self.assertGreater(results[lane, "oneDNN"]["gflops"], 0)
            self.assertIn(("cpu", "implementation"), results)
        self.assertTrue(report["summary"])

    def test_sets_hold_shapes_of_the_networks_that_they_name(self):
        for name, family in (("linear", "linear"), ("conv", "conv")):
            text = (SOURCE / f"bench/shapes/set_{name}.csv").read_text()
            rows = list(csv.DictReader(line for line in text.splitlines() if line[0] != "#"))
            self.assertGreaterEqual(len(rows), 40)
            shapes = {}
            for row in rows:
                network = row.pop("network")
                if network not in shapes:
                    listed = self.succeed("zoo", "shapes", network).stdout.splitlines()
                    shapes[network] = list(
                        csv.DictReader(line for line in listed if line[0] != "#")
                    )
                # Linear layers come with rows that are not those of one image.
                ignored = {"n", "count"} if name == "linear" else set()
                kept = {key: value for key, value in row.items() if key not in ignored}
                self.assertTrue(
                    any(kept.items() <= shape.items() for shape in shapes[network]), (network, row)
                )
                self.assertIn(row["family"], (family, "depthwise"))

    def test_op_set(self):
        report = self.succeed_json(
            "bench", "op", "--set", "linear", "--filter", "deit_tiny linear 197x192 -> 192",
            "--sync", "svm,event", "--samples", 2,
        )
        self.assertEqual(report["set"], "linear")
        self.assertTrue(report["complete"])
        (op,) = report["operators"]
        self.assertEqual(op["shape"], "linear 197x192 -> 192")
        best = min(op["cpu_ms"], op["gpu_ms"])
        self.assertGreater(best, 0)
        self.assertAlmostEqual(op["limit"], 1 + best / max(op["cpu_ms"], op["gpu_ms"]))
        self.assertAlmostEqual(op["speedup_chosen"], best / op["chosen_ms"])
        self.assertAlmostEqual(op["of_corun_limit"], op["speedup_chosen"] / op["corun_limit"])
        self.assertIn(op["bound"], ("compute", "memory"))
        self.assertAlmostEqual(report["attained"], op["grid_ms"] / op["chosen_ms"])
        self.assertAlmostEqual(report["mean_speedup_grid"], best / op["grid_ms"])
        self.assertAlmostEqual(report["max_speedup_chosen"], op["speedup_chosen"])
        for parts in (op["chosen_parts"], op["grid_parts"]):
            if len(parts) > 1:
                self.assertEqual(parts[0]["end"], parts[1]["begin"])
        self.assertEqual([m["sync"] for m in report["mechanisms"]], ["svm", "event"])
        self.assertEqual(len(op["other_mechanisms"]), 1)
        (bin_,) = report["by_time"]
        self.assertEqual(bin_["operators"], 1)
        self.assertAlmostEqual(bin_["speedup_chosen"][0], op["speedup_chosen"])

    def test_op_set_refuses_what_there_is_not(self):
        self.refuse("bench", "op", says=("--set",))
        self.refuse("bench", "op", "--set", "linear", "--filter", "nothing like it",
                    says=("nothing like it", "set_linear.csv"))
        self.refuse("bench", "op", "--set", "linear", "--use_gpu=false", says=("tandem devices",))


if __name__ == "__main__":
    unittest.main(verbosity=2)
