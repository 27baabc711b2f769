"""Section of docs/results.md: schedules beside the optimum."""

from results_text import table


class ScheduleResults:
    """Methods of the class that measures sections (write_results.py)."""

    def schedules(self):
        command, report = self.command("bench", "schedule")
        strategies = ("single", "inter", "intra", "chain", "joint")
        graphs = report["graphs"]
        rows = []
        names = [*(kind for kind in report["kinds"] if kind != "adversary"), "all", "adversary"]
        for kind in names:
            summary = report if kind == "all" else report["kinds"].get(kind)
            if summary is None:
                continue
            of_kind = [
                g for g in graphs if g["kind"] == kind or (kind == "all" and g["kind"] != "adversary")
            ]
            over = (
                sum(g[f"{s}_us"] / g["exact_us"] for g in of_kind) / len(of_kind) for s in strategies
            )
            gaps = ("mean_gap_proven", "max_gap_proven", "mean_gap_to_bound", "max_gap_to_bound")
            rows.append(
                [
                    kind, len(of_kind), f"{100 * summary['share_proven']:.0f}%",
                    *(f"{ratio:.3f}" for ratio in over),
                    *("" if summary[g] is None else f"{100 * summary[g]:.2f}%" for g in gaps),
                    f"{summary['median_search_ms']:.1f}",
                    f"{max(g['search_ms'] for g in of_kind):.0f}",
                ]
            )
        header = [
            "problems", "number", "optimum proven", *strategies, "gap of joint to proven optima, mean",
            "worst", "gap to optimum or bound, mean", "worst", "search, median ms", "most ms",
        ]
        settings = report["settings"]
        text = (
            f"{len(graphs)} problems of 5 to 60 operators on 2 to 4 lanes, contention 1; "
            f"CP-SAT {settings['time_limit_s']} s a problem with {settings['workers']} workers. Columns "
            "of strategies: makespans over the best that anything found (the optimum, where it is "
            "proven), means. Joint is worse than a baseline on "
            f"{sum(not g['joint_never_worse'] for g in graphs)} problems. Targets: 60% proven, gap to "
            "proven optima 2% in the mean and 8% at worst. docs/scheduling.md says what the problems "
            "are; the adversary's were chosen because joint does badly on them.\n\n"
        )
        text += table(header, rows)
        worst = sorted(
            (g for g in graphs if g["kind"] == "adversary"), key=lambda g: g["gap"], reverse=True
        )
        text += "\nThe adversary's, joint over the optimum (or over the bound, where none is proven):\n\n"
        text += table(
            ["problem", "operators", "lanes", "joint us", "optimum us", "proven", "ratio"],
            [
                [
                    g["name"], g["operators"], g["lanes"], f"{g['joint_us']:.1f}", f"{g['exact_us']:.1f}",
                    "yes" if g["proven"] else "no", f"{1 + g['gap']:.3f}",
                ]
                for g in worst
            ],
        )
        return "Schedules", command, text, report
