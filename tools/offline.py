#!/usr/bin/env python3
"""The offline referee: solves mode problems with OR-tools' CP-SAT, and proves bounds.

Needs the package ortools (requirements.txt). The formulation is written out in docs/scheduling.md.

  offline.py [--time-limit S] [--workers N] [--seed N] FILE|FOLDER...
      solves the problems in files as `tandem bench schedule --export` writes them, and in folders every *.json
  offline.py [--time-limit S] ...
      answers requests from stdin, one JSON object a line:
      {"problem": {...}, "hint": a schedule (may be missing), "time_limit": seconds (may be missing)}

Answers are JSON objects, one a line:
  {"name": TEXT, "status": "OPTIMAL" | "FEASIBLE" | "UNKNOWN", "makespan_us": of the schedule in the model,
   "bound_us": no schedule takes less, "schedule": {...} or null, "seconds": TIME,
   "hint_us": what the model says of the hint}, or {"error": TEXT, "missing": whether it lacks a package}.
The model counts whole nanoseconds, and rounds every time down: its makespan is less than the problem's own
by at most a nanosecond per addend, and its bound holds for the problem.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from line_answers import answer_lines, open_answers

missing_package = None
try:
    from offline_model import SCHEDULE_FORMAT, UNITS_PER_US, VERSION, Model, cp_model
except ImportError as error:
    missing_package = str(error)

PROBLEM_FORMAT = "tandem mode problem"
# One worker that learns from conflicts alone, and one with the whole linear relaxation, are what proves most
# with two workers; CP-SAT's own choice has one of them.
FIRST_WORKERS = ["no_lp", "max_lp"]


class Malformed(Exception):
    """What is wrong with a problem or a schedule."""


def expect(condition, what):
    if not condition:
        raise Malformed(what)


def is_time(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9


def check_format(data, name):
    expect(isinstance(data, dict) and data.get("format") == name, f"not a file of format '{name}'")
    expect(data.get("version") == VERSION, f"version {data.get('version')} of '{name}'; this reads {VERSION}")


def check_lanes(problem):
    lanes = problem["lanes"]
    expect(lanes, "the problem has no lanes")
    for lane in lanes:
        expect(
            all(is_time(lane[key]) for key in ("enqueue_us", "send_us", "receive_us")),
            f"lane {lane['name']} has a time that is not one",
        )
        fed_by = lane["fed_by"]
        expect(fed_by is None or fed_by in range(len(lanes)), f"lane {lane['name']} is fed by no lane")
    latency = problem["latency_us"]
    expect(
        len(latency) == len(lanes)
        and all(len(row) == len(lanes) and all(map(is_time, row)) for row in latency),
        "latency_us is not one time per pair of lanes",
    )


def check_edge(problem, edge):
    operators = problem["operators"]
    start, end = edge["from"], edge["to"]
    expect(
        all(isinstance(op, int) for op in (start, end)) and 0 <= start < end < len(operators),
        f"an edge goes from operator {start} to {end} of {len(operators)}",
    )
    fits = len(edge["waits"]) == len(operators[start]["modes"])
    for made, row in zip(operators[start]["modes"], edge["waits"]):
        fits = fits and len(row) == len(operators[end]["modes"])
        for read, masks in zip(operators[end]["modes"], row):
            fits = fits and len(masks) == len(read["parts"])
            fits = fits and all(0 <= mask < 1 << len(made["parts"]) for mask in masks)
    expect(
        fits,
        f"the edge from {operators[start]['name']} to {operators[end]['name']} does not say, for each pair "
        "of modes and part, which parts it waits for",
    )


def check_problem(problem):
    """Raises Malformed unless the rest may take the problem's form for granted."""
    check_format(problem, PROBLEM_FORMAT)
    try:
        check_lanes(problem)
        for op in problem["operators"]:
            expect(op["modes"], f"operator {op['name']} has no modes")
            for mode in op["modes"]:
                expect(mode["parts"], f"operator {op['name']} has a mode without parts")
                for part in mode["parts"]:
                    expect(
                        part["lane"] in range(len(problem["lanes"]))
                        and is_time(part["us"])
                        and is_time(part.get("leave_us", 0)),
                        f"operator {op['name']} has a part with no such lane or no such time",
                    )
        for edge in problem["edges"]:
            check_edge(problem, edge)
    except KeyError as error:
        raise Malformed(f"there is no {error} where one is expected") from None
    except (TypeError, AttributeError) as error:
        raise Malformed(f"something is of another type than expected: {error}") from None


def check_schedule(problem, schedule):
    check_format(schedule, SCHEDULE_FORMAT)
    modes = schedule.get("modes", [])
    operators = problem["operators"]
    expect(
        len(modes) == len(operators)
        and all(mode in range(len(op["modes"])) for mode, op in zip(modes, operators)),
        "the hint does not choose a mode per operator",
    )
    placed = sorted((op, part, lane) for lane, row in enumerate(schedule["lanes"]) for op, part in row)
    chosen = [op["modes"][mode]["parts"] for mode, op in zip(modes, operators)]
    wanted = sorted((o, p, part["lane"]) for o, parts in enumerate(chosen) for p, part in enumerate(parts))
    expect(placed == wanted, "the hint does not have every part of the chosen modes on its lane once")


def new_solver(options, time_limit):
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit
    solver.parameters.num_workers = options.workers
    solver.parameters.random_seed = options.seed
    if options.workers == len(FIRST_WORKERS):
        solver.parameters.subsolvers.extend(FIRST_WORKERS)
    return solver


def price_hint(problem, hint, options):
    """The makespan, in units, and by slot's operator and part the times that the model gives to a schedule."""
    model = Model(problem)
    model.fix(hint)
    solver = new_solver(options, options.time_limit)
    if solver.solve(model.cp) != cp_model.OPTIMAL:
        raise Malformed("the hint's lanes wait for each other")
    times = {
        (op, part): (solver.value(slot.start), solver.value(slot.end))
        for op, part, slot in model.chosen_slots(hint["modes"])
    }
    return solver.value(model.makespan), times


def solve(request, options):
    problem, hint = request["problem"], request.get("hint")
    time_limit = float(request.get("time_limit", options.time_limit))
    check_problem(problem)
    answer = {"name": problem.get("name", "")}
    begin = time.perf_counter()
    model = Model(problem)
    if hint is not None:
        check_schedule(problem, hint)
        makespan, times = price_hint(problem, hint, options)
        answer["hint_us"] = makespan / UNITS_PER_US
        slots = model.chosen_slots(hint["modes"])
        model.hint(hint, {slot: times[op, part] for op, part, slot in slots})
        model.cp.add(model.makespan <= makespan)
    solver = new_solver(options, time_limit)
    status = solver.solve(model.cp)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        raise RuntimeError(f"CP-SAT says {solver.status_name(status)}: {model.cp.validate()}")
    found = status != cp_model.UNKNOWN
    answer |= {
        "status": solver.status_name(status),
        "makespan_us": solver.value(model.makespan) / UNITS_PER_US if found else None,
        "bound_us": max(solver.best_objective_bound, 0) / UNITS_PER_US,
        "schedule": model.schedule_of(solver) if found else None,
        "seconds": time.perf_counter() - begin,
    }
    return answer


def answer_to(read, options):
    """`read` returns a request, or raises."""
    if missing_package:
        return {"error": f"{missing_package}; install requirements.txt", "missing": True}
    try:
        return solve(read(), options)
    except Malformed as error:
        return {"error": str(error), "missing": False}
    except json.JSONDecodeError as error:
        return {"error": f"not JSON: {error}", "missing": False}
    except Exception as error:  # whatever happens is the asker's to judge
        return {"error": f"{type(error).__name__}: {error}", "missing": False}


def parse_request(line):
    request = json.loads(line)
    expect(isinstance(request, dict) and "problem" in request, "a request without a problem")
    return request


def files_in(paths):
    for path in map(Path, paths):
        yield from sorted(path.glob("*.json")) if path.is_dir() else [path]


def solve_files(paths, options, answers):
    failed = False
    for path in files_in(paths):
        answer = {"file": str(path)}
        try:
            text = path.read_text(encoding="utf-8")
            answer |= answer_to(lambda: {"problem": json.loads(text)}, options)
        except (OSError, UnicodeDecodeError) as error:
            answer |= {"error": str(error), "missing": False}
        failed = failed or "error" in answer
        if "error" in answer:
            print(f"offline.py: {path}: {answer['error']}", file=sys.stderr)
        print(json.dumps(answer), file=answers, flush=True)
    return 1 if failed else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description="Solves mode problems with CP-SAT; see the top of this file.")
    parser.add_argument("paths", nargs="*", metavar="FILE|FOLDER", help="default: requests from stdin")
    parser.add_argument("--time-limit", type=float, default=10, metavar="S", help="per problem (default: 10)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="threads (default: all cores)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse_arguments()
    answers = open_answers()
    if options.paths:
        return solve_files(options.paths, options, answers)
    return answer_lines(answers, lambda line: answer_to(lambda: parse_request(line), options))


if __name__ == "__main__":
    sys.exit(main())
