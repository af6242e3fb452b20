//! Cutting and stretching workloads: windows for training, held-out windows for evaluation, sweeps over the load.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};

use super::{JobSpec, RUN_TIME_S_MIN, SUBMIT_S_MAX, Workload, num_gpus_by_type};
use crate::Error;

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

    /// GPUs of the cluster, each counted at the mean speed that this workload's jobs have on its type (weighted by their
    /// work): over the classes that may use the type. A type that no job may use counts nothing. The plain number of
    /// GPUs where all types are equal.
    #[must_use]
    pub fn capacity_gpus(&self) -> f64 {
        if self.jobs.is_empty() {
            return self.cluster.num_gpus() as f64;
        }
        capacity_gpus(&self.cluster, &self.classes, &self.work_by_class())
    }

    /// Work of each class, GPU x s on the reference type.
    pub(crate) fn work_by_class(&self) -> Vec<f64> {
        let mut work = vec![0.0; self.classes.len()];
        for job in &self.jobs {
            work[usize::from(job.class)] += job.gpus() * job.run_time_s;
        }
        work
    }

    /// Offered load of each GPU type, in the order of the cluster's types: the part of the time from the first to the
    /// last submission for which its GPUs are asked. A class's work lies on the types that it may use, on each for the
    /// same part of the time. Infinite where all jobs come at once, 0 where no job may use a type.
    #[must_use]
    pub fn offered_load_by_type(&self) -> Vec<f64> {
        let (num_gpus, span_s) = (num_gpus_by_type(&self.cluster), self.arrival_span_s());
        let mut loads = vec![0.0; num_gpus.len()];
        for (class, work) in self.classes.iter().zip(self.work_by_class()) {
            let capacity: f64 = class
                .speed
                .iter()
                .zip(&num_gpus)
                .map(|(speed, num)| speed * f64::from(*num))
                .sum();
            for (load, speed) in loads.iter_mut().zip(&class.speed) {
                if *speed > 0.0 && work > 0.0 {
                    *load += work / (capacity * span_s);
                }
            }
        }
        loads
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

    /// As [`Workload::slice`], with the jobs first that came before it and had not ended when it begins.
    ///
    /// They come at 0 with what is left of their work. Where it was not observed when they began, each is taken to have begun
    /// when it came; more of them than the cluster holds are a queue.
    #[must_use]
    pub fn slice_with_running(&self, start: usize, len: usize) -> Workload {
        let start = start.min(self.jobs.len());
        let origin = self.jobs.get(start).map_or(Time::ZERO, |job| job.submit);
        self.with_running(start, origin, self.slice(start, len))
    }

    /// As [`Workload::window`], with the jobs first that came before it and had not ended when it begins
    /// ([`Workload::slice_with_running`]).
    #[must_use]
    pub fn window_with_running(&self, from_s: f64, to_s: f64) -> Workload {
        let from = Time::from_secs_f64(from_s);
        let start = self.jobs.partition_point(|job| job.submit < from);
        self.with_running(start, from, self.window(from_s, to_s))
    }

    fn with_running(&self, start: usize, origin: Time, mut part: Workload) -> Workload {
        let running = self.jobs[..start].iter().filter_map(|job| left_at(job, origin));
        part.jobs.splice(0..0, running.collect::<Vec<_>>());
        part
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
        Error::refuse_if(
            !(factor > 0.0 && factor.is_finite() && last_s / factor <= SUBMIT_S_MAX),
            "load factor",
            factor,
            "a number above 0 that keeps the last submission below 2e9 s",
            "1 leaves the load as it is",
        )?;
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

/// GPUs of a cluster, each counted at the mean speed on its type of the classes that may use it, weighted by their `work`.
pub(crate) fn capacity_gpus(cluster: &ClusterSpec, classes: &[ModelClass], work: &[f64]) -> f64 {
    let of_type = |(kind, num_gpus): (usize, u32)| {
        let may = classes
            .iter()
            .zip(work)
            .filter(|(class, _)| class.speed[kind] > 0.0);
        let (weighted, total) = may.fold((0.0, 0.0), |(weighted, total), (class, work)| {
            (weighted + class.speed[kind] * work, total + work)
        });
        match total > 0.0 {
            true => f64::from(num_gpus) * (weighted / total),
            false => 0.0,
        }
    };
    num_gpus_by_type(cluster)
        .into_iter()
        .enumerate()
        .map(of_type)
        .sum()
}

/// What is left of a job at an instant after its submission, submitted at 0; none of one that has ended.
fn left_at(job: &JobSpec, at: Time) -> Option<JobSpec> {
    let begin = job
        .observed
        .as_ref()
        .map_or(job.submit, |observed| observed.start);
    let end = job.observed.as_ref().and_then(|observed| observed.end);
    let end = end.unwrap_or(begin + Time::from_secs_f64(job.run_time_s));
    if end <= at {
        return None;
    }
    let ran_s = if at > begin {
        (at - begin).as_secs_f64()
    } else {
        0.0
    };
    let left = 1.0 - ran_s / (end - begin).as_secs_f64();
    let run_time_s = (job.run_time_s * left).max(RUN_TIME_S_MIN);
    Some(JobSpec {
        submit: Time::ZERO,
        run_time_s,
        estimate_s: job.estimate_s.map(|limit| (limit - ran_s).max(run_time_s)),
        observed: None,
        ..job.clone()
    })
}

#[cfg(test)]
mod tests {
    use crate::tests::{job, workload};
    use crate::{Observed, Workload};
    use pleach_scheduler::Time;
    use pleach_scheduler::cluster_spec::{GpuTypeSpec, NodeGroup};

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

    /// Eight GPUs of each of three types; the classes may use the first, the second, and none may use the third.
    fn partitions() -> Workload {
        let mut found = workload(vec![job("a", 0.0, 4, 10.0), job("b", 10.0, 4, 5.0)]);
        let group = found.cluster.node_groups[0].clone();
        let kind = found.cluster.gpu_types[0].clone();
        for name in ["second", "third"] {
            found.cluster.node_groups.push(NodeGroup {
                gpu_type: name.into(),
                ..group.clone()
            });
            found.cluster.gpu_types.push(GpuTypeSpec {
                name: name.into(),
                ..kind.clone()
            });
        }
        found.classes.push(found.classes[0].clone());
        found.classes[0].speed = vec![1.0, 0.0, 0.0];
        found.classes[1].speed = vec![0.0, 1.0, 0.0];
        found.jobs[1].class = 1;
        found
    }

    #[test]
    fn offered_load_counts_a_type_for_the_classes_that_may_use_it_and_is_known_by_type() {
        // 40 GPU s on the first eight GPUs and 20 on the second eight, in 10 s. The third eight do nothing for these jobs.
        let mut site = partitions();
        assert!((site.offered_load() - 60.0 / (16.0 * 10.0)).abs() < 1e-12);
        assert_eq!(site.offered_load_by_type(), [0.5, 0.25, 0.0]);
        let twice = site.scaled_load(0.75 / site.offered_load()).unwrap();
        assert!((twice.arrival_span_s() - 5.0).abs() < 1e-6);
        // The second job may use the third type at half the speed too: its 20 GPU s take 20 / (8 + 4) s of both.
        site.classes[1].speed[2] = 0.5;
        assert!((site.offered_load() - 60.0 / (20.0 * 10.0)).abs() < 1e-12);
        let shared = 20.0 / (12.0 * 10.0);
        assert_eq!(site.offered_load_by_type(), [0.5, shared, shared]);
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

    #[test]
    fn a_window_may_begin_with_what_is_left_of_the_jobs_before_it() {
        let mut all = workload(vec![
            job("ended", 0.0, 1, 5.0),
            job("long", 2.0, 4, 16.0),
            job("late", 4.0, 2, 8.0),
            job("a", 10.0, 1, 1.0),
            job("b", 12.0, 1, 1.0),
        ]);
        all.jobs[1].estimate_s = Some(20.0);
        // `late` was seen to begin after the window does, so it waits there with all its work.
        let start = Time::from_secs_f64(11.0);
        all.jobs[2].observed = Some(Box::new(Observed {
            start,
            ..Observed::default()
        }));
        let slice = all.slice_with_running(3, 2);
        let seen: Vec<_> = slice
            .jobs
            .iter()
            .map(|job| (job.id.as_str(), job.submit.as_secs_f64(), job.run_time_s))
            .collect();
        // Of 16 s from 2 s on, 8 are left at 10 s; of its limit of 20 s, 12.
        let expected = [
            ("long", 0.0, 8.0),
            ("late", 0.0, 8.0),
            ("a", 0.0, 1.0),
            ("b", 2.0, 1.0),
        ];
        assert_eq!(seen, expected);
        assert_eq!(slice.jobs[0].estimate_s, Some(12.0));
        slice.validate().unwrap();
        assert_eq!(all.window_with_running(10.0, 12.0).jobs, slice.jobs[..3]);
        assert_eq!(all.slice_with_running(0, 2), all.slice(0, 2));
    }
}
