"""Wall-clock time and processor time of all threads."""

import time


class Clock:
    """Sums what it times, as [frames, wall s, processor s]."""

    def __init__(self):
        self.wall_s = self.cpu_s = 0.0

    def time(self, work):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu

    def line(self, frames):
        return [frames, self.wall_s, self.cpu_s]

    def repeat(self, seconds, work, frames, parts=()):
        """Repeats `work`, of `frames` each, for at least `seconds` after one that does not count, for `parts` neither."""
        work()
        for part in parts:
            part.wall_s = part.cpu_s = 0.0
        done = 0
        while self.wall_s < seconds:
            self.time(work)
            done += frames
        return self.line(done)
