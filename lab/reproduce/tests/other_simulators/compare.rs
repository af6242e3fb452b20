//! Ends of the same jobs in two simulators.

/// The heading of the table of `lab/notes/validation.md`.
pub fn print_heading() {
    println!(
        "\n| simulator | list | policy | jobs | mean JCT there, s | here, s | off | jobs with another end | worst, s |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---:|---:|");
}

/// How far two runs agree.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    pub num_jobs: usize,
    /// Jobs whose ends are equal to the microsecond.
    pub num_equal: usize,
    pub sum_ours_s: f64,
    pub sum_theirs_s: f64,
    /// Largest difference of an end, s.
    pub worst_s: f64,
    /// First job that ends at another time: (id, ours less theirs).
    pub first: Option<(String, f64)>,
}

impl Comparison {
    pub fn add(&mut self, id: &str, submit_s: f64, ours_s: f64, theirs_s: f64) {
        let off_s = ours_s - theirs_s;
        self.num_jobs += 1;
        self.num_equal += usize::from(off_s.abs() < 1e-6);
        self.sum_ours_s += ours_s - submit_s;
        self.sum_theirs_s += theirs_s - submit_s;
        self.worst_s = self.worst_s.max(off_s.abs());
        if off_s.abs() >= 1e-6 && self.first.is_none() {
            self.first = Some((id.into(), off_s));
        }
    }

    /// Several runs as one.
    pub fn sum(parts: impl Iterator<Item = Comparison>) -> Comparison {
        parts.fold(Comparison::default(), |all, part| Comparison {
            num_jobs: all.num_jobs + part.num_jobs,
            num_equal: all.num_equal + part.num_equal,
            sum_ours_s: all.sum_ours_s + part.sum_ours_s,
            sum_theirs_s: all.sum_theirs_s + part.sum_theirs_s,
            worst_s: all.worst_s.max(part.worst_s),
            first: all.first.or(part.first),
        })
    }

    /// Jobs that end at another time.
    pub fn num_other(&self) -> usize {
        self.num_jobs - self.num_equal
    }

    /// Our mean JCT over theirs, less 1.
    pub fn off(&self) -> f64 {
        self.sum_ours_s / self.sum_theirs_s - 1.0
    }

    /// A row of the table of `lab/notes/validation.md`: jobs, mean JCT there and here, jobs with another end, largest difference.
    pub fn print(&self, simulator: &str, list: &str, policy: &str) {
        let num = self.num_jobs as f64;
        println!(
            "| {simulator} | {list} | {policy} | {} | {:.1} | {:.1} | {:+.3} % | {} | {:.0} |",
            self.num_jobs,
            self.sum_theirs_s / num,
            self.sum_ours_s / num,
            100.0 * self.off(),
            self.num_other(),
            self.worst_s,
        );
    }
}
