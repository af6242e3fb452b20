//! The Gittins index of a job, from the GPU-time of the jobs that have ended so far.
//!
//! # Source
//! Tiresias (NSDI'19), section 4: for a job that has received `a`, the best ratio of the chance to end within a further
//! service `d` to the service that this is expected to cost, `P(S - a <= d | S > a) / E[min(S - a, d) | S > a]`. As in its
//! released code `d` is one quantum, not the best of all.

/// GPU-time of ended jobs, sorted, with sums from the front: one index costs two binary searches.
#[derive(Clone, Debug, Default)]
pub struct GittinsIndex {
    /// Ascending, GPU·s.
    service_gpu_s: Vec<f64>,
    /// Sum of the first so many. `[num + 1]`
    sums_gpu_s: Vec<f64>,
}

impl GittinsIndex {
    /// From the GPU-time of ended jobs, GPU·s, in any order.
    #[must_use]
    pub fn of(mut service_gpu_s: Vec<f64>) -> GittinsIndex {
        service_gpu_s.sort_unstable_by(f64::total_cmp);
        let mut sums_gpu_s = vec![0.0];
        for service in &service_gpu_s {
            sums_gpu_s.push(sums_gpu_s[sums_gpu_s.len() - 1] + service);
        }
        GittinsIndex {
            service_gpu_s,
            sums_gpu_s,
        }
    }

    /// The index of a job that has received `attained_gpu_s`, 1 / GPU·s; larger is better. Zero where no ended job
    /// received more.
    #[must_use]
    pub fn at(&self, attained_gpu_s: f64, quantum_gpu_s: f64) -> f64 {
        let passed = |limit: f64| self.service_gpu_s.partition_point(|service| *service <= limit);
        let (first, end) = (passed(attained_gpu_s), passed(attained_gpu_s + quantum_gpu_s));
        let num_longer = self.service_gpu_s.len() - first;
        if num_longer == 0 {
            return 0.0;
        }
        let num_ending = end - first;
        let ending_gpu_s = self.sums_gpu_s[end] - self.sums_gpu_s[first] - num_ending as f64 * attained_gpu_s;
        let others_gpu_s = (num_longer - num_ending) as f64 * quantum_gpu_s;
        num_ending as f64 / (ending_gpu_s + others_gpu_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_chance_to_end_over_what_it_costs() {
        // Jobs of 10, 20 and 100 GPU·s; quantum 15.
        let index = GittinsIndex::of(vec![100.0, 10.0, 20.0]);
        // New: one of three ends within 15, after 10; two cost 15.
        assert_eq!(index.at(0.0, 15.0), 1.0 / 40.0);
        // At 10: of the two that are longer one ends after 10 more, the other costs 15.
        assert_eq!(index.at(10.0, 15.0), 1.0 / 25.0);
        // At 20: only the long one is left, and it does not end.
        assert_eq!(index.at(20.0, 15.0), 0.0);
        assert_eq!(index.at(90.0, 15.0), 1.0 / 10.0);
        assert_eq!(index.at(100.0, 15.0), 0.0, "nobody was longer");
        assert_eq!(GittinsIndex::default().at(0.0, 15.0), 0.0);
    }
}
