"""What the sections of docs/results.md have in common."""


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def percent(fraction):
    return f"{100 * fraction:.1f}"
