"""The CP-SAT model of a mode problem, for offline.py. docs/scheduling.md has it as formulas."""

from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model

SCHEDULE_FORMAT, VERSION = "tandem mode schedule", 1
UNITS_PER_US = 1000


def units(us):
    return int(us * UNITS_PER_US)


def balancing_weights(loads, start):
    """Weights of lanes, about 1000 together, for which the lanes' weighted load, each operator in the mode
    where that is least, is as great as may be: the dual solution of sharing all work out in fractions.
    `loads`: by operator, mode and lane; `start`: what each lane has to do besides."""
    lp = pywraplp.Solver.CreateSolver("GLOP")
    makespan = lp.NumVar(0, lp.infinity(), "makespan")
    busy = [lp.Constraint(-lp.infinity(), -us) for us in start]
    for row in busy:
        row.SetCoefficient(makespan, -1)
    for modes in loads:
        choice = lp.Constraint(1, 1)
        for load in modes:
            share = lp.NumVar(0, 1, "share")
            choice.SetCoefficient(share, 1)
            for row, us in zip(busy, load):
                row.SetCoefficient(share, us)
    lp.Minimize(makespan)
    if lp.Solve() != pywraplp.Solver.OPTIMAL:
        return [1] * len(start)
    weights = [max(0, -row.dual_value()) for row in busy]
    total = sum(weights)
    return [round(1000 * weight / total) for weight in weights] if total > 0 else [1] * len(start)


class Slot:
    """The k-th part that an operator has on a lane, whichever mode is chosen: one interval."""

    def __init__(self, op, lane):
        self.op, self.lane = op, lane
        self.parts = {}  # mode -> part


class Model:
    """The CP-SAT model of a problem. See docs/scheduling.md for its constraints in the same order."""

    def __init__(self, problem):
        self.problem = problem
        self.cp = cp_model.CpModel()
        self.operators = problem["operators"]
        self.lanes = problem["lanes"]
        self.horizon = self.find_horizon()
        self.makespan = self.time_var("makespan")
        self.choices = []  # by operator: a literal per mode
        self.literals = {}  # (operator, modes) -> a literal: one of them is chosen
        self.slots = []  # by operator
        self.slot_of = []  # by operator: (mode, part) -> slot
        for op, operator in enumerate(self.operators):
            self.add_choice(op, operator)
            self.add_slots(op, operator)
        self.readers = [[] for _ in self.operators]
        self.inputs = [[] for _ in self.operators]
        for edge in problem["edges"]:
            self.readers[edge["from"]].append(edge)
            self.inputs[edge["to"]].append(edge)
        self.crossings = {}  # (slot, lane or "out") -> a literal: it waits for that lane; others wait for it
        self.free_from = [self.lane_start(lane) for lane in range(len(self.lanes))]
        self.add_waits()
        for op in range(len(self.operators)):
            for slot in self.slots[op]:
                self.add_interval(slot)
        self.add_lanes()
        self.add_implied()
        self.cp.minimize(self.makespan)

    def time_var(self, name):
        return self.cp.new_int_var(0, self.horizon, name)

    def find_horizon(self):
        """All parts one after another, with whatever can be added to any."""
        total = sum(units(lane["enqueue_us"]) for lane in self.lanes)
        worst_latency = max(max(map(units, row)) for row in self.problem["latency_us"])
        lanes = self.lanes
        per_part = worst_latency + sum(units(lane["receive_us"]) + units(lane["enqueue_us"]) for lane in lanes)
        for op in self.operators:
            total += max(
                sum(
                    units(part["us"]) + units(part.get("leave_us", 0)) + units(lanes[part["lane"]]["send_us"])
                    for part in mode["parts"]
                )
                + per_part * len(mode["parts"])
                for mode in op["modes"]
            )
        for edge in self.problem["edges"]:
            rows = [row for mode in edge.get("fetch_us", []) for row in mode]
            total += max((sum(map(units, row)) for row in rows), default=0)
        return total + 1

    def add_choice(self, op, operator):
        modes = len(operator["modes"])
        literals = [self.cp.new_bool_var(f"x{op}_{mode}") for mode in range(modes)]
        self.cp.add_exactly_one(literals)
        self.choices.append(literals)

    def add_slots(self, op, operator):
        slots, slot_of = {}, {}
        for m, mode in enumerate(operator["modes"]):
            on_lane = {}
            for p, part in enumerate(mode["parts"]):
                lane = part["lane"]
                key = (lane, on_lane.setdefault(lane, 0))
                on_lane[lane] += 1
                slot = slots.setdefault(key, Slot(op, lane))
                slot.parts[m] = p
                slot_of[m, p] = slot
        self.slots.append(list(slots.values()))
        self.slot_of.append(slot_of)
        for slot in slots.values():
            slot.present = self.any_of(op, frozenset(slot.parts))
            slot.start, slot.end = self.time_var("start"), self.time_var("end")

    def any_of(self, op, modes):
        """A literal that says that one of these modes is chosen; None: always so."""
        count = len(self.operators[op]["modes"])
        if len(modes) == count:
            return None
        if len(modes) == 1:
            return self.choices[op][next(iter(modes))]
        if len(modes) == count - 1:
            return ~self.choices[op][next(iter(set(range(count)) - modes))]
        if (op, modes) not in self.literals:
            literal = self.cp.new_bool_var(f"any{op}_{sorted(modes)}")
            self.cp.add(sum(self.choices[op][mode] for mode in modes) == literal)
            self.literals[op, modes] = literal
        return self.literals[op, modes]

    def lane_start(self, lane):
        """When a lane is free: after enqueueing what it feeds to others, and its own first part."""
        start = units(self.lanes[lane]["enqueue_us"])
        for fed, other in enumerate(self.lanes):
            if other["fed_by"] != lane or units(other["enqueue_us"]) == 0:
                continue
            for op, operator in enumerate(self.operators):
                for mode, literal in zip(operator["modes"], self.choices[op]):
                    parts = sum(part["lane"] == fed for part in mode["parts"])
                    start += units(other["enqueue_us"]) * parts * literal
        if isinstance(start, int):
            return start
        var = self.time_var("free")
        self.cp.add(var == start)
        return var

    def waiting_pairs(self, edge):
        """(slot of from, slot of to) -> mode of from -> the modes of to in which one waits for the other."""
        pairs = {}
        for f, row in enumerate(edge["waits"]):
            for t, masks in enumerate(row):
                for p, mask in enumerate(masks):
                    for q in range(mask.bit_length()):
                        if mask >> q & 1:
                            key = self.slot_of[edge["from"]][f, q], self.slot_of[edge["to"]][t, p]
                            pairs.setdefault(key, {}).setdefault(f, set()).add(t)
        return pairs

    def add_waits(self):
        for edge in self.problem["edges"]:
            for (made, read), modes in self.waiting_pairs(edge).items():
                # Modes of `from` that the same modes of `to` wait for are treated as one.
                groups = {}
                for f, waiting in modes.items():
                    if waiting == set(read.parts):
                        waiting = read.parts  # the slot is present whenever it waits
                    groups.setdefault(frozenset(waiting), set()).add(f)
                for waiting, from_modes in groups.items():
                    literals = [
                        self.any_of(edge["from"], frozenset(from_modes)),
                        self.any_of(edge["to"], waiting),
                    ]
                    self.add_wait(made, read, [literal for literal in literals if literal is not None])

    def add_wait(self, made, read, literals):
        latency = 0
        if made.lane != read.lane:
            latency = units(self.problem["latency_us"][made.lane][read.lane])
            if units(self.lanes[read.lane]["receive_us"]) > 0:
                self.imply(literals, self.crossing(read, made.lane))
            if self.can_leave(made):
                self.imply(literals, self.crossing(made, "out"))
        self.cp.add(read.start >= made.end + latency).only_enforce_if(literals)

    def can_leave(self, slot):
        """Whether it takes time to tell other lanes of its end."""
        parts = [self.operators[slot.op]["modes"][m]["parts"][p] for m, p in slot.parts.items()]
        return units(self.lanes[slot.lane]["send_us"]) + max(units(p.get("leave_us", 0)) for p in parts) > 0

    def crossing(self, slot, what):
        if (slot, what) not in self.crossings:
            self.crossings[slot, what] = self.cp.new_bool_var("crossing")
        return self.crossings[slot, what]

    def imply(self, literals, literal):
        self.cp.add_bool_or([~premise for premise in literals] + [literal])

    def add_interval(self, slot):
        operator = self.operators[slot.op]
        size, parts = 0, {}
        for mode, part in slot.parts.items():
            parts[mode] = operator["modes"][mode]["parts"][part]
            size += units(parts[mode]["us"]) * self.choices[slot.op][mode]
        for (other, what), literal in self.crossings.items():
            if other is slot:
                size += self.crossing_time(slot, parts, what, literal)
        for edge in self.inputs[slot.op]:
            size += self.fetching(slot, edge)
        slot.size = self.time_var("size")
        self.cp.add(slot.size == size)
        if slot.present is None:
            slot.interval = self.cp.new_interval_var(slot.start, slot.size, slot.end, "part")
        else:
            slot.interval = self.cp.new_optional_interval_var(
                slot.start, slot.size, slot.end, slot.present, "part"
            )
        present = [] if slot.present is None else [slot.present]
        self.cp.add(slot.start >= self.free_from[slot.lane]).only_enforce_if(present)
        self.cp.add(slot.end <= self.makespan).only_enforce_if(present)

    def crossing_time(self, slot, parts, what, literal):
        if what != "out":
            return units(self.lanes[slot.lane]["receive_us"]) * literal
        time_of = {mode: units(part.get("leave_us", 0)) for mode, part in parts.items()}
        send = units(self.lanes[slot.lane]["send_us"])
        if len(set(time_of.values())) == 1:
            return (send + next(iter(time_of.values()))) * literal
        leaving = self.time_var("leaving")
        for mode, leave in time_of.items():
            self.cp.add(leaving >= send + leave).only_enforce_if([literal, self.choices[slot.op][mode]])
        return leaving

    def fetching(self, slot, edge):
        """The time of copying what the slot reads across the edge."""
        rows = edge.get("fetch_us")
        if not rows:
            return 0
        pairs = {}
        for f, row in enumerate(rows):
            for t, p in slot.parts.items():
                if units(row[t][p]) > 0:
                    pairs[f, t] = units(row[t][p])
        if not pairs:
            return 0
        fetch = self.time_var("fetch")
        for (f, t), value in pairs.items():
            literals = [self.choices[edge["from"]][f], self.choices[edge["to"]][t]]
            self.cp.add(fetch >= value).only_enforce_if(literals)
        return fetch

    def add_lanes(self):
        for lane in range(len(self.lanes)):
            slots = [slot for slots in self.slots for slot in slots if slot.lane == lane]
            if not slots:
                continue
            self.cp.add_no_overlap([slot.interval for slot in slots])

    def add_implied(self):
        """What follows from the rest anyway, but not so that solvers see it: they get bounds from it."""
        loads = [[self.load_of(mode) for mode in op["modes"]] for op in self.operators]
        start = [units(lane["enqueue_us"]) for lane in self.lanes]
        weights = balancing_weights(loads, start)
        rows = [[int(lane == other) for other in range(len(start))] for lane in range(len(start))]
        for row in rows + [weights]:
            # What lanes have to do, weighted: each of them does all of its parts before the end.
            work = sum(weight * us for weight, us in zip(row, start))
            for literals, modes in zip(self.choices, loads):
                for literal, load in zip(literals, modes):
                    work += sum(weight * us for weight, us in zip(row, load)) * literal
            self.cp.add(work <= sum(row) * self.makespan)
        self.add_paths(min(start))

    def load_of(self, mode):
        """By lane, the time that it is busy with the mode at least."""
        load = [0] * len(self.lanes)
        for part in mode["parts"]:
            lane = self.lanes[part["lane"]]
            load[part["lane"]] += units(part["us"])
            if lane["fed_by"] is not None:
                load[lane["fed_by"]] += units(lane["enqueue_us"])
        return load

    def add_paths(self, start):
        """An operator ends after each of its producers, by the time that it takes after the producer's part
        that its own parts need least of: least_after()."""
        ends = [self.time_var("op_end") for _ in self.operators]
        for op, operator in enumerate(self.operators):
            modes = list(zip(self.choices[op], operator["modes"]))
            longest = sum(max(units(p["us"]) for p in mode["parts"]) * literal for literal, mode in modes)
            self.cp.add(ends[op] >= start + longest)
            self.cp.add(ends[op] <= self.makespan)
            for edge in self.inputs[op]:
                after = sum(
                    self.least_after(edge, m, mode) * literal for m, (literal, mode) in enumerate(modes)
                )
                self.cp.add(ends[op] >= ends[edge["from"]] + after)

    def least_after(self, edge, to_mode, mode):
        """From the end of any part of the producer to the end of the operator, whatever the producer's mode:
        if every part of the producer is waited for. Else, unbounded: the operator may end before it."""
        least = None
        for f, row in enumerate(edge["waits"]):
            for q in range(len(self.operators[edge["from"]]["modes"][f]["parts"])):
                waiting = [
                    units(part["us"]) for part, mask in zip(mode["parts"], row[to_mode]) if mask >> q & 1
                ]
                after = max(waiting, default=-self.horizon)
                least = after if least is None else min(least, after)
        return least

    def hint(self, schedule, times):
        """`times`: by slot, the start and the end in the schedule."""
        for op, mode in enumerate(schedule["modes"]):
            for m, literal in enumerate(self.choices[op]):
                self.cp.add_hint(literal, m == mode)
        for slot, (start, end) in times.items():
            self.cp.add_hint(slot.start, start)
            self.cp.add_hint(slot.end, end)
            self.cp.add_hint(slot.size, end - start)

    def fix(self, schedule):
        """Leaves only the schedule's modes and orders."""
        for op, mode in enumerate(schedule["modes"]):
            self.cp.add(self.choices[op][mode] == 1)
        for row in schedule["lanes"]:
            slots = [self.slot_of[op][schedule["modes"][op], part] for op, part in row]
            for before, after in zip(slots, slots[1:]):
                self.cp.add(after.start >= before.end)

    def chosen_slots(self, modes):
        for op, mode in enumerate(modes):
            for part in range(len(self.operators[op]["modes"][mode]["parts"])):
                yield op, part, self.slot_of[op][mode, part]

    def schedule_of(self, solver):
        """As lanes' orders: by time, and where parts take none, producers first."""
        modes = [
            next(mode for mode, literal in enumerate(literals) if solver.boolean_value(literal))
            for literals in self.choices
        ]
        order = [[] for _ in self.lanes]
        for op, part, slot in self.chosen_slots(modes):
            key = solver.value(slot.start), solver.value(slot.end), op, part
            order[slot.lane].append((key, [op, part]))
        return {
            "format": SCHEDULE_FORMAT,
            "version": VERSION,
            "makespan_us": solver.value(self.makespan) / UNITS_PER_US,
            "modes": modes,
            "lanes": [[ref for _, ref in sorted(row)] for row in order],
        }
