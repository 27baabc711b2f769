"""HEFT and PEFT as their papers describe them, on plain whole tasks.

HEFT: Topcuoglu, Hariri, Wu, 2002, "Performance-effective and low-complexity task scheduling for
heterogeneous computing". PEFT: Arabnejad, Barbosa, 2014, "List scheduling algorithm for heterogeneous
systems by an optimistic cost table". Written from the papers' definitions and used to check Tandem's.
"""

from statistics import mean


class Tasks:
    """times[task][processor]; readers[task]: those that read its result; delay[p][q]: of a result from
    processor p to q. Tasks are numbered so that readers come later."""

    def __init__(self, times, readers, delay):
        self.times, self.readers, self.delay = times, readers, delay
        self.processors = range(len(delay))
        self.sources = [[] for _ in times]
        for task, targets in enumerate(readers):
            for target in targets:
                self.sources[target].append(task)
        pairs = [delay[p][q] for p in self.processors for q in self.processors if p != q]
        self.mean_delay = mean(pairs) if pairs else 0


class Placement:
    def __init__(self, tasks):
        self.tasks = tasks
        self.slots = [[] for _ in tasks.processors]  # (start, end), sorted
        self.where, self.finish = {}, {}

    def earliest_finish(self, task, processor):
        """Insertion-based: the first idle slot that is long enough, after all results have arrived."""
        ready = max(
            (self.finish[s] + self.tasks.delay[self.where[s]][processor] for s in self.tasks.sources[task]),
            default=0,
        )
        duration = self.tasks.times[task][processor]
        idle_from = 0
        for start, end in self.slots[processor]:
            if max(idle_from, ready) + duration <= start:
                break
            idle_from = max(idle_from, end)
        return max(idle_from, ready) + duration

    def put(self, task, processor):
        finish = self.earliest_finish(task, processor)
        self.slots[processor].append((finish - self.tasks.times[task][processor], finish))
        self.slots[processor].sort()
        self.where[task], self.finish[task] = processor, finish

    def makespan(self):
        return max(self.finish.values(), default=0)


def heft(tasks):
    rank = {}
    for task in reversed(range(len(tasks.times))):
        rest = max((tasks.mean_delay + rank[r] for r in tasks.readers[task]), default=0)
        rank[task] = mean(tasks.times[task]) + rest
    placement = Placement(tasks)
    for task in sorted(rank, key=lambda t: (-rank[t], t)):
        placement.put(task, min(tasks.processors, key=lambda p: placement.earliest_finish(task, p)))
    return placement.makespan()


def optimistic_cost_table(tasks):
    table = [[0.0] * len(tasks.delay) for _ in tasks.times]
    for task in reversed(range(len(tasks.times))):
        for p in tasks.processors:
            table[task][p] = max(
                (
                    min(
                        table[r][q] + tasks.times[r][q] + (tasks.mean_delay if p != q else 0)
                        for q in tasks.processors
                    )
                    for r in tasks.readers[task]
                ),
                default=0,
            )
    return table


def peft(tasks):
    table = optimistic_cost_table(tasks)
    placement = Placement(tasks)
    ready = {task for task, sources in enumerate(tasks.sources) if not sources}
    while ready:
        task = max(ready, key=lambda t: (mean(table[t]), -t))
        ready.remove(task)
        placement.put(
            task, min(tasks.processors, key=lambda p: placement.earliest_finish(task, p) + table[task][p])
        )
        for reader in tasks.readers[task]:
            if all(source in placement.finish for source in tasks.sources[reader]):
                ready.add(reader)
    return placement.makespan()


def random_tasks(random, count, processors, related=False):
    """A random DAG with one task that ends it. `related`: every processor has one speed for all tasks, and
    every pair the same delay."""
    speeds = [random.uniform(0.5, 2) for _ in range(processors)]
    times = []
    for _ in range(count):
        work = random.uniform(1, 50)
        times.append([work / speed * (1 if related else random.uniform(0.5, 2)) for speed in speeds])
    readers = [set() for _ in range(count)]
    for task in range(1, count):
        for source in random.sample(range(task), min(task, random.randint(1, 3))):
            readers[source].add(task)
    for task in range(count - 1):
        if not readers[task]:
            readers[task].add(count - 1)
    same = random.uniform(0, 20)
    delay = [
        [0 if p == q else same if related else random.uniform(0, 20) for q in range(processors)]
        for p in range(processors)
    ]
    return Tasks(times, [sorted(targets) for targets in readers], delay)


def as_mode_problem(tasks, name):
    """The same as a file for Tandem: every operator whole on each lane."""
    count = len(tasks.delay)
    return {
        "format": "tandem mode problem",
        "version": 1,
        "name": name,
        "lanes": [
            {"name": f"p{p}", "fed_by": None, "enqueue_us": 0, "send_us": 0, "receive_us": 0}
            for p in tasks.processors
        ],
        "latency_us": tasks.delay,
        "operators": [
            {
                "name": f"t{task}",
                "modes": [{"parts": [{"lane": p, "us": us}]} for p, us in enumerate(times)],
            }
            for task, times in enumerate(tasks.times)
        ],
        "edges": [
            {"from": task, "to": reader, "waits": [[[1]] * count] * count}
            for task, targets in enumerate(tasks.readers)
            for reader in targets
        ],
    }
