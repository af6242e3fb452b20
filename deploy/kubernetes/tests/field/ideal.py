"""What an order is worth on the lists of the field test without a control plane: mean time from submission to completion, s.

    ideal.py [LIST ...]

Jobs start once an order comes to them and they fit, gangs as a whole, on the fullest nodes that hold them; none is stopped. A start takes
`delay_s` after its GPUs are free, and a Job is complete a second after its pods, as on the plane.
"""

import heapq
import random
import sys

import lists

# From the last pod's end to the Job's completion, s: the field test's `end_delay_s`.
END_S = 1.03
NUM_CHANCES = 40


def place(free, job):
    """Nodes of a job's pods, none where it does not fit."""
    left, nodes = list(free), []
    for _ in range(job.num_pods):
        open_nodes = [node for node in range(len(left)) if left[node] >= job.gpus]
        if not open_nodes:
            return None
        nodes.append(min(open_nodes, key=lambda node: (left[node], node)))
        left[nodes[-1]] -= job.gpus
    return nodes


def mean_s(number, order, delay_s):
    """The mean of a list under an order of those that wait."""
    jobs, free = lists.make(number), [lists.GPUS_PER_NODE] * lists.NUM_NODES
    events = [(job.at_s + delay_s, 0, row) for row, job in enumerate(jobs)]
    heapq.heapify(events)
    waiting, running, times = [], {}, []
    while events:
        now_s = events[0][0]
        while events and events[0][0] <= now_s:
            _, is_end, row = heapq.heappop(events)
            if is_end:
                for node in running.pop(row):
                    free[node] += jobs[row].gpus
            else:
                waiting.append(row)
        for row in sorted(waiting, key=lambda row: order(jobs[row])):
            nodes = place(free, jobs[row])
            if nodes is None:
                continue
            waiting.remove(row)
            running[row] = nodes
            for node in nodes:
                free[node] -= jobs[row].gpus
            end_s = now_s + jobs[row].run_s + delay_s
            times.append(end_s + END_S - jobs[row].at_s)
            heapq.heappush(events, (end_s, 1, row))
    return sum(times) / len(times)


def main():
    for number in map(int, sys.argv[1:] or ("1", "2")):
        shortest = [f"{mean_s(number, lambda job: job.run_s, delay_s):.1f}" for delay_s in (0, 0.3, 0.6, 1.0)]
        random.seed(number)
        chance = sorted(mean_s(number, lambda job: random.random(), 0.05) for _ in range(NUM_CHANCES))
        print(f"list {number}: shortest first with delays of 0, 0.3, 0.6 and 1 s: {', '.join(shortest)}; {NUM_CHANCES} orders by "
              f"chance: {chance[0]:.1f} to {chance[-1]:.1f}, median {chance[NUM_CHANCES // 2]:.1f}")


if __name__ == "__main__":
    main()
