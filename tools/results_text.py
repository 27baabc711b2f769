"""What the sections of docs/results.md have in common."""


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def percent(fraction):
    return f"{100 * fraction:.1f}"


def probe_text(probes):
    """What the cores did beside the measurement: the range over all probes."""

    def extent(key, digits):
        figures = [figure for probe in probes for figure in probe[key]]
        return f"{min(figures):.{digits}f} to {max(figures):.{digits}f}"

    return (
        f"Each core did {extent('alone_gflops', 0)} GFLOPS of multiply-adds alone and "
        f"{extent('together_gflops', 0)} beside the other, and read {extent('alone_read_gbps', 1)} "
        f"GB/s alone and {extent('together_read_gbps', 1)} beside the other, before and after each "
        "network.\n\n"
    )
