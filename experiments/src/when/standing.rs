//! Lists that were taken while jobs waited and ran.

use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_scheduler::Time;

/// Time after the instant of a list at which what waits starts: after all that is asked.
pub(super) const LATER_S: f64 = 400.0 * 86_400.0;

/// The last instant of a list that was taken while jobs ran, s: those have no end, and have run until then. None where all of them
/// have ended, or where jobs came later.
pub(super) fn taken_s(workload: &Workload) -> Option<f64> {
    let so_far_s = |job: &JobSpec| {
        let observed = job
            .observed
            .as_deref()
            .filter(|observed| observed.end.is_none())?;
        Some(observed.start.as_secs_f64() + job.run_time_s)
    };
    let until_s = workload.jobs.iter().filter_map(so_far_s).max_by(f64::total_cmp)?;
    let last_s = workload.jobs.last()?.submit.as_secs_f64();
    // At the end itself they would have ended.
    (last_s <= until_s).then_some((until_s - 1.0).max(0.0))
}

/// Such a list with what waited then as if it started long after.
pub(super) fn standing(mut workload: Workload) -> Workload {
    let Some(until_s) = taken_s(&workload) else {
        return workload;
    };
    let later = Time::from_secs_f64(until_s + LATER_S);
    for job in &mut workload.jobs {
        job.observed.get_or_insert_with(|| {
            Box::new(Observed {
                start: later,
                end: Some(later),
                ..Observed::default()
            })
        });
    }
    workload
}
