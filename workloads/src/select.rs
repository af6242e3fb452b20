//! Cutting and stretching workloads: windows for training, held-out windows for evaluation, sweeps over the load.

use pleach_scheduler::Time;

use super::{SUBMIT_S_MAX, Workload, config, num_gpus_by_type};
use crate::error::Error;

impl Workload {
    /// Time from the first to the last submission, s.
    #[must_use]
    pub fn arrival_span_s(&self) -> f64 {
        match (self.jobs.first(), self.jobs.last()) {
            (Some(first), Some(last)) => (last.submit - first.submit).as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Work asked for, GPU x s on the reference type.
    #[must_use]
    pub fn demand_gpu_s(&self) -> f64 {
        self.jobs.iter().map(|job| job.gpus() * job.run_time_s).sum()
    }

    /// GPUs of the cluster, each counted at the mean speed of this workload's jobs on its type (weighted by their
    /// work); the plain number of GPUs where all types are equal.
    #[must_use]
    pub fn capacity_gpus(&self) -> f64 {
        let mut work = vec![0.0; self.classes.len()];
        for job in &self.jobs {
            work[usize::from(job.class)] += job.gpus() * job.run_time_s;
        }
        let total: f64 = work.iter().sum();
        let mut capacity = 0.0;
        for (kind, num_gpus) in num_gpus_by_type(&self.cluster).into_iter().enumerate() {
            let weighted: f64 = self
                .classes
                .iter()
                .zip(&work)
                .map(|(class, work)| class.speed[kind] * work)
                .sum();
            let speed = if total > 0.0 { weighted / total } else { 1.0 };
            capacity += f64::from(num_gpus) * speed;
        }
        capacity
    }

    /// Work asked for over what the cluster could do between the first and the last submission; above 1 the queue
    /// must grow. Infinite where all jobs come at once, 0 without jobs.
    #[must_use]
    pub fn offered_load(&self) -> f64 {
        let demand = self.demand_gpu_s();
        if demand == 0.0 {
            return 0.0;
        }
        demand / (self.capacity_gpus() * self.arrival_span_s())
    }

    /// Jobs submitted in `[from_s, to_s)`, with the clock moved so that `from_s` is 0.
    #[must_use]
    pub fn window(&self, from_s: f64, to_s: f64) -> Workload {
        let (from, to) = (Time::from_secs_f64(from_s), Time::from_secs_f64(to_s));
        let start = self.jobs.partition_point(|job| job.submit < from);
        let end = self.jobs.partition_point(|job| job.submit < to).max(start);
        self.part(start, end, from)
    }

    /// Up to `len` jobs from position `start` on, with the clock moved so that the first of them comes at 0.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Workload {
        let start = start.min(self.jobs.len());
        let end = start.saturating_add(len).min(self.jobs.len());
        let origin = self.jobs.get(start).map_or(Time::ZERO, |job| job.submit);
        self.part(start, end, origin)
    }

    fn part(&self, start: usize, end: usize, origin: Time) -> Workload {
        let mut jobs = self.jobs[start..end].to_vec();
        for job in &mut jobs {
            job.submit = job.submit - origin;
            job.observed = job
                .observed
                .take()
                .map(|observed| Box::new(observed.since(origin)));
        }
        let mut cluster = self.cluster.clone();
        let time_0 = &mut cluster.seen.time_0_unix_s;
        *time_0 = time_0.map(|before| before + origin.as_secs_f64());
        Workload {
            name: self.name.clone(),
            cluster,
            classes: self.classes.clone(),
            jobs,
        }
    }

    /// The same jobs arriving `factor` times as fast, so at `factor` times the load; run times stay.
    ///
    /// # Errors
    /// A factor that is not a positive number, or so small that the clock runs out.
    pub fn scaled_load(&self, factor: f64) -> Result<Workload, Error> {
        let last_s = self.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
        if !(factor > 0.0 && factor.is_finite() && last_s / factor <= SUBMIT_S_MAX) {
            let allowed = "a number above 0 that keeps the last submission below 2e9 s";
            return Err(config(
                "load factor",
                factor,
                allowed,
                "1 leaves the load as it is",
            ));
        }
        let mut scaled = self.clone();
        if factor != 1.0 {
            scaled.cluster.seen.time_0_unix_s = None;
        }
        for job in &mut scaled.jobs {
            job.submit = Time::from_secs_f64(job.submit.as_secs_f64() / factor);
            // At another load it would have gone otherwise.
            if factor != 1.0 {
                job.observed = None;
            }
        }
        Ok(scaled)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{job, workload};
    use pleach_scheduler::Time;

    #[test]
    fn offered_load_is_work_over_capacity_in_the_arrival_span() {
        // 8 GPUs, 10 s between first and last submission: 80 GPU s of capacity. Work: 4 x 5 + 1 x 20 = 40 GPU s.
        let workload = workload(vec![job("a", 5.0, 4, 5.0), job("b", 15.0, 1, 20.0)]);
        assert!((workload.offered_load() - 0.5).abs() < 1e-12);
        let twice = workload.scaled_load(2.0).unwrap();
        assert!((twice.offered_load() - 1.0).abs() < 1e-6);
        assert!(workload.scaled_load(0.0).is_err() && workload.scaled_load(f64::NAN).is_err());
    }

    #[test]
    fn a_job_that_asks_for_half_a_gpu_is_half_the_work() {
        // Work: 1 x 20 x 0.5 + 1 x 10 = 20 GPU s; capacity: 8 GPUs for 10 s.
        let mut workload = workload(vec![job("a", 0.0, 1, 20.0), job("b", 10.0, 1, 10.0)]);
        workload.jobs[0].resources.gpu_milli = 500;
        assert!((workload.demand_gpu_s() - 20.0).abs() < 1e-12);
        assert!((workload.offered_load() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn slow_gpu_types_count_for_less_capacity() {
        let mut workload = workload(vec![job("a", 0.0, 4, 5.0), job("b", 10.0, 4, 5.0)]);
        workload.classes[0].speed = vec![0.5];
        assert!((workload.capacity_gpus() - 4.0).abs() < 1e-12);
    }

    #[test]
    fn windows_and_slices_move_the_clock_and_keep_the_order() {
        let all = workload(vec![
            job("a", 1.0, 1, 1.0),
            job("b", 2.0, 1, 1.0),
            job("c", 2.0, 1, 1.0),
            job("d", 9.0, 1, 1.0),
        ]);
        let window = all.window(2.0, 9.0);
        let ids: Vec<_> = window.jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(ids, ["b", "c"]);
        assert_eq!(window.jobs[0].submit, Time::ZERO);
        let slice = all.slice(2, 99);
        assert_eq!((slice.jobs.len(), slice.jobs[1].submit), (2, Time(7_000_000)));
        assert_eq!(all.slice(9, 1).jobs.len(), 0);
        assert_eq!(all.window(5.0, 1.0).jobs.len(), 0);
    }
}
