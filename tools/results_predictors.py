"""Sections of docs/results.md: how wrong predictors are."""

from results_text import percent, table

BUDGETS = "10s,1m,10m,full"
PHONES = "data/phones/tflite_cnn_ops_gpu.csv"
PHONE_NETWORKS = "data/phones/tflite_cnn_e2e.csv"
PLOTS = "docs/plots"


def verdict(target, reached):
    return f"{percent(target)} {'reached' if reached else 'missed'}"


def families_table(families):
    rows = [
        [
            f["lane"], f["family"], f["rows"], f["shapes"],
            *(percent(f["ours"][key]) for key in ("mape", "p90", "within_10", "time_weighted")),
            percent(f["without_kernel"]["mape"]), percent(f["flops_only"]["mape"]),
            percent(f["noise"]["used"]), verdict(f["target"], f["meets_target"]),
        ]
        for f in families
    ]
    header = [
        "lane", "family", "rows", "shapes", "MAPE", "p90", "within 10%", "by time",
        "without kernel features", "FLOPs only", "noise", "target",
    ]
    return table(header, rows)


def models_table(families):
    """All three models with p90 and the share within 10%."""
    rows = [
        [
            f["lane"], f["family"],
            *(
                percent(f[model][key])
                for model in ("ours", "without_kernel", "flops_only")
                for key in ("mape", "p90", "within_10")
            ),
        ]
        for f in families
    ]
    header = ["lane", "family"] + [
        f"{model}{figure}"
        for model in ("ours: ", "without kernel features: ", "FLOPs only: ")
        for figure in ("MAPE", "p90", "within 10%")
    ]
    return table(header, rows)


def slowdowns_table(slowdowns):
    rows = [
        [s["lane"], s["load"], s["ours"]["rows"], f"{s['mean_slowdown']:.3f}",
         percent(s["ours"]["mape"]), percent(s["constant"]["mape"])]
        for s in slowdowns
    ]
    return table(["lane", "beside", "rows", "mean slowdown", "MAPE", "MAPE of the mean"], rows)


def budgets_table(budgets):
    names = [b["budget"] + ("" if b["reached"] else " (less)") for b in budgets]
    rows = [["", "rows learned from", *(b["rows"] for b in budgets)]]
    for i, family in enumerate(budgets[0]["families"]):
        cells = [b["families"][i] for b in budgets]
        rows.append(
            [family["lane"], family["family"],
             *(percent(c["mape"]) if c["rows"] else "-" for c in cells)]
        )
    for i, lane in enumerate(budgets[0]["lanes"]):
        for key, what in (("mape", "all"), ("time_weighted", "all, by time")):
            cells = [b["lanes"][i] for b in budgets]
            rows.append([lane["lane"], what, *(percent(c[key]) if c["rows"] else "-" for c in cells)])
    return table(["lane", "family", *names], rows)


class PredictorResults:
    """Sections of write_results.Results, whose command() they use."""

    def predictors(self):
        command, report = self.command(
            "train", "--budgets", BUDGETS, "--plots", PLOTS, "--measure"
        )
        text = (
            "Errors in % of measured times on shapes held out, after `tandem profile` on this "
            "machine; docs/predictors.md says what the columns mean.\n\n"
            + families_table(report["families"])
            + "\nThe three models on the same split:\n\n"
            + models_table(report["families"])
            + "\nSlowdowns of slices beside loads of the other lane, predicted and by their mean:\n\n"
            + slowdowns_table(report["slowdowns"])
            + "\nMAPE after so much profiling, judged on the same held-out shapes:\n\n"
            + budgets_table(report["budgets"])
            + "\nPredicted against measured times, each shape held out, and the steps that tiles make "
            "over output channels, measured and predicted by models that have not seen the operator: "
            + ", ".join(
                f"[{name}](plots/{name}.svg)"
                for name in ("predicted_cpu", "predicted_gpu", "steps_cpu", "steps_gpu")
            )
            + ".\n"
        )
        return "Predictors", command, text, report

    def predicted_networks(self):
        command, report = self.command(
            "train", "--only-ours", "-o", "none", "--leave-out-network", "all", "--measure"
        )
        rows = []
        for n in report["networks_left_out"]:
            whole = n["predicted_whole_us"] / n["run_us"] - 1 if n["run_us"] > 0 else None
            rows.append(
                [
                    n["network"], n["lane"], f"{n['operators_measured']}/{n['operators']}",
                    *(percent(n["errors"][key]) for key in ("mape", "p90", "within_10")),
                    f"{n['measured_us'] / 1e3:.2f}", f"{n['predicted_us'] / 1e3:.2f}",
                    percent(n["predicted_us"] / n["measured_us"] - 1) if n["measured_us"] else "-",
                    f"{n['run_us'] / 1e3:.2f}", f"{n['predicted_whole_us'] / 1e3:.2f}",
                    "-" if whole is None else percent(whole),
                ]
            )
        header = [
            "network", "lane", "operators measured", "MAPE", "p90", "within 10%", "their sum ms",
            "predicted ms", "off by %", "run ms", "predicted ms", "off by %",
        ]
        text = (
            "Trained without any shape of a network, nor one hardly different. Errors of its "
            "operators, as whole ones between strangers, each counted as often as the network has it; "
            "the sum of those that were measured; and a run of the network on that lane alone against "
            "the sum of all predictions.\n\n" + table(header, rows)
        )
        return "Networks left out", command, text, report

    def phones(self):
        command, report = self.command("train", "--csv", PHONES, "--schema", "phones",
                                       "--end-to-end", PHONE_NETWORKS)
        rows, sums, transfers = [], [], []
        for phone in report["phones"]:
            for f in phone["families"]:
                target = ""
                if f["family"] == "convolution":
                    target = verdict(0.1, f["mape"] <= 0.1)
                repeats = f["repeats"]
                rows.append(
                    [
                        phone["phone"], f["family"], f["operators"], percent(f["mape"]),
                        percent(f["p90"]), percent(f["within_10"]), percent(f["mape_true_kernel"]),
                        percent(f["mape_without_kernel"]), percent(f["mape_flops_only"]),
                        percent(repeats["mape"]) if repeats["count"] else "-", target,
                    ]
                )
            cells = [phone["phone"], percent(phone["kernel_accuracy"])]
            if whole := phone.get("end_to_end"):
                cells += [
                    percent(whole[key])
                    for key in ("mape", "p90", "within_10", "mape_plain_sum", "mape_from_measured")
                ]
            sums.append(cells + [""] * (7 - len(cells)))
            for known, errors in phone["transfer"].items():
                transfers.append(
                    [phone["phone"], known]
                    + [
                        percent(errors[key]["mape"])
                        for key in ("all", "convolutions", "alone_all", "alone_convolutions")
                    ]
                )
        text = (
            "Errors in % of measured times on networks held out; docs/phones.md says what the columns "
            "mean.\n\n"
            + table(
                [
                    "phone", "family", "operators", "MAPE", "p90", "within 10%", "true kernel told",
                    "without kernel features", "FLOPs only", "same measured again", "target",
                ],
                rows,
            )
            + "\nThe kernel that the library will choose, predicted rightly, and whole networks as "
            "sums of predicted operators:\n\n"
            + table(
                [
                    "phone", "kernel right", "networks: MAPE", "p90", "within 10%", "plain sum: MAPE",
                    "from measured operators: MAPE",
                ],
                sums,
            )
            + "\nA phone known by some operators only, with the other phones' predictors and "
            "without:\n\n"
            + table(
                ["phone", "operators known", "MAPE", "convolutions", "without others: MAPE",
                 "convolutions"],
                transfers,
            )
        )
        platform = f"the phones of data/phones/README.md; trees by XGBoost {report['xgboost']}"
        return "Predictors of phones", command, text, {"platform": platform}
