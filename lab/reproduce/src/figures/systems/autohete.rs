//! AutoHete: of a model's blocks some stay on the GPU, some are computed anew, some are offloaded.

use super::system::{Benchmark, Effort, Error, Reproduction, exact, figures};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "autohete",
    title: "AutoHete: keep, compute anew or offload",
    source: "AutoHete: 1.32 to 1.91 times the throughput of its rivals, by its abstract",
    setup: "Our model. Four blocks of 3 GB, forward 1 s, backward 2 s, computed anew in 1 s, on PCIe both ways in 3 or 4.5 s, all \
            assumed; the longer of computing and copying is the step",
    run,
};

/// Blocks alike, by what each costs.
struct Blocks {
    num: u32,
    size_gb: f64,
    /// Forward and backward, s.
    compute_s: f64,
    /// Forward again, s.
    anew_s: f64,
    /// To the host and back, s.
    copy_s: f64,
}

/// Blocks kept, computed anew and offloaded, and the step in s.
type Plan = (u32, u32, u32, f64);

impl Blocks {
    fn plan(&self, kept: u32, anew: u32) -> Plan {
        let offloaded = self.num - kept - anew;
        let compute_s = f64::from(self.num) * self.compute_s + f64::from(anew) * self.anew_s;
        let step_s = compute_s.max(f64::from(offloaded) * self.copy_s);
        (kept, anew, offloaded, step_s)
    }

    /// The shortest step in a memory of so many GB; of equal ones with the most blocks kept, then offloaded.
    fn best(&self, memory_gb: f64) -> Option<Plan> {
        let plans = (0..=self.num).rev().flat_map(|kept| {
            let anew = 0..=self.num - kept;
            anew.map(move |anew| self.plan(kept, anew))
        });
        let fits = plans.filter(|plan| f64::from(plan.0) * self.size_gb <= memory_gb);
        fits.reduce(|best, next| if next.3 < best.3 { next } else { best })
    }
}

/// The blocks of the example, with so many seconds of copying each.
fn example(copy_s: f64) -> Blocks {
    Blocks {
        num: 4,
        size_gb: 3.0,
        compute_s: 3.0,
        anew_s: 1.0,
        copy_s,
    }
}

fn run(_: &Effort) -> Result<Reproduction, Error> {
    let mut found = Vec::new();
    for (memory_gb, copy_s) in [(6.0, 3.0), (0.0, 4.5)] {
        let blocks = example(copy_s);
        let step_s = blocks.best(memory_gb).map_or(f64::NAN, |plan| plan.3);
        let at = format!("{memory_gb} GB and {copy_s} s a copy");
        let anew = format!("all blocks anew over the best with {at}");
        found.push(exact(format!("step with {at}, s"), step_s));
        found.push(exact(anew, blocks.plan(0, 4).3 / step_s));
    }
    figures(
        found,
        "The paper at hand has no table of models and times, so what a plan gains is a property of these four blocks. Optimizer \
         states and the CPU's own updates are left out.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_those_worked_by_hand() {
        assert_eq!(example(3.0).best(6.0), Some((2, 0, 2, 12.0)));
        assert_eq!(example(3.0).best(0.0), Some((0, 0, 4, 12.0)));
        assert_eq!(example(4.5).best(0.0), Some((0, 1, 3, 13.5)));
        assert_eq!(example(4.5).plan(0, 4).3, 16.0);
    }
}
