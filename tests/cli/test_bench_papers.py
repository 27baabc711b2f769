"""tandem bench papers: tables on simulated phones."""

import unittest

from cli_testing import CliTest

RUN = ["bench", "papers", "--platform", "pixel5", "--samples", "40", "--layers", "2", "--networks",
       "tiny_inception", "--network-samples", "60", "--offline", "0"]


def without_own_times(value):
    if isinstance(value, dict):
        return {key: without_own_times(part) for key, part in value.items()
                if key not in ("search_ms", "prepare_ms")}
    return [without_own_times(part) for part in value] if isinstance(value, list) else value


class BenchPapers(CliTest):
    def test_tables(self):
        report = self.succeed_json(*RUN)
        self.assertTrue(report["simulated"])
        self.assertEqual([(row["family"], row["threads"]) for row in report["layers"]],
                         [(family, threads) for family in ("linear", "conv") for threads in (1, 2, 3)])
        for row in report["layers"]:
            self.assertEqual(row["count"], 2)
            for way in row["speed_up"].values():
                searched = way["exhaustive"]
                self.assertGreaterEqual(searched["over_better_lane"]["mean"], 1)
                for how in ("predicted", "predicted_without_kernels"):
                    for over in ("over_better_lane", "over_gpu"):
                        for figure in ("mean", "best"):
                            self.assertLessEqual(way[how][over][figure], searched[over][figure] + 1e-9)
            # An exchange that costs more never pays more.
            ways = row["speed_up"]
            self.assertLessEqual(ways["event"]["exhaustive"]["over_better_lane"]["mean"],
                                 ways["best"]["exhaustive"]["over_better_lane"]["mean"])
        for row in report["predictor_errors"]:
            self.assertGreater(row["slices"], 3)
            self.assertGreater(row["predicted"]["mape"], 0)
        [network] = report["networks"]
        predicted = {name: plan["predicted_ms"] for name, plan in network["strategies"].items()}
        self.assertLessEqual(predicted["joint"], min(predicted.values()) * 1.001)
        # By the simulator's own times, plans do what they promise.
        own = network["own_costs"]
        self.assertLessEqual(own["ms"], min(network["alone_ms"].values()) * 1.02)
        self.assertLess(abs(own["predicted_ms"] / own["ms"] - 1), 0.1)
        self.assertGreater(network["rows_learned_from"], 100)
        start = network["start"]
        self.assertGreater(start["cold_ms"], start["warm_ms"])
        self.assertEqual([row["throttled"] for row in report["throttling"]], ["CPU", "GPU"])
        for row in report["throttling"]:
            self.assertLessEqual(row["changed"], row["planned"])
            self.assertGreater(row["throttled_ms"], 0.95 * row["before_ms"])
            self.assertLess(row["adapted_ms"], 1.05 * row["throttled_ms"])
        self.assertEqual([row["compute_units"] for row in report["what_if"]], [1, 2])
        [front] = report["fronts"]
        points = front["front"]
        self.assertEqual(points, sorted(points, key=lambda point: point["ms"]))
        for faster, slower in zip(points, points[1:]):
            self.assertGreater(faster["energy_mj"], slower["energy_mj"])
        # The same every time, but for the time that this machine takes.
        self.assertEqual(without_own_times(report), without_own_times(self.succeed_json(*RUN)))

    def test_platforms_that_the_papers_do_not_have(self):
        self.refuse("bench", "papers", "--platform", "rk3588", says=["rk3588", "pixel5"])


if __name__ == "__main__":
    unittest.main()
