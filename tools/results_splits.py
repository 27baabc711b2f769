"""Sections of docs/results.md: operators split over lanes."""

from results_text import table


class SplitResults:
    """Methods of the class that measures sections (write_results.py)."""

    def split_set(self, name):
        command, report = self.command(
            "bench", "op", "--set", name, "--costs", "predicted", "--sync", "svm,event"
        )
        rows = [
            [
                o["name"], o["shape"], *(f"{o[f'{who}_ms']:.3f}" for who in ("cpu", "gpu", "chosen")),
                o["chosen"], f"{o['grid_ms']:.3f}", o["grid"], f"{o['limit']:.2f}",
                "not told" if o["corun_limit"] is None else f"{o['corun_limit']:.2f}", o["bound"],
            ]
            for o in report["operators"]
        ]
        header = [
            "from", "operator", "cpu ms", "gpu ms", "chosen ms", "chosen", "best of grid ms",
            "best of grid", "limit", "co-running limit", "bound by",
        ]
        text = (
            f"Mean speed-up over the better lane: chosen {report['mean_speedup_chosen']:.3f}, best of "
            f"an exhaustive search, measured afresh, {report['mean_speedup_grid']:.3f}; at most "
            f"{report['max_speedup_chosen']:.2f}. Attained (mean of grid over chosen): "
            f"{report['attained']:.3f}, target 0.97. Of the co-running limit, where computing bounds: "
            f"{report['mean_of_corun_limit']:.3f}, target 0.93. docs/splitting.md says what is "
            "measured. Splits are predicted by the predictors above. Figures are those with mechanism "
            f"`{report['mechanisms'][0]['sync']}` where no other is named.\n\n"
        )
        return command, text + table(header, rows) + self.by_size(report), report

    @staticmethod
    def by_size(report):
        """What mechanisms of synchronisation are worth, by operators' time on the better lane."""
        mechanisms = report["mechanisms"]
        header = ["better lane's time", "operators"]
        for mechanism in mechanisms:
            header += [f"{mechanism['sync']}: chosen", f"{mechanism['sync']}: search"]
        rows = []
        for entry in report["by_time"]:
            to = "more" if entry["to_ms"] is None else f"{entry['to_ms']:g} ms"
            row = [f"{entry['from_ms']:g} to {to}", entry["operators"]]
            for chosen, grid in zip(entry["speedup_chosen"], entry["speedup_grid"], strict=True):
                row += [f"{chosen:.2f}", f"{grid:.2f}"]
            rows.append(row)
        row = ["all", len(report["operators"])]
        for mechanism in mechanisms:
            row += [f"{mechanism['mean_speedup_chosen']:.2f}", f"{mechanism['mean_speedup_grid']:.2f}"]
        attained = ", ".join(f"{m['attained']:.3f} with {m['sync']}" for m in mechanisms)
        return (
            "\nMean speed-up over the better lane with each mechanism of synchronisation, by the time "
            f"that the better lane takes. Attained of the search: {attained}.\n\n"
            + table(header, [*rows, row])
        )

    def linear_splits(self):
        return "Linear layers split", *self.split_set("linear")

    def convolution_splits(self):
        return "Convolutions split", *self.split_set("conv")
