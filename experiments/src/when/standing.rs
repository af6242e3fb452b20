//! Lists that were taken while jobs waited and ran.

use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_scheduler::Time;

/// Time after the instant of a list at which what waits starts: after all that is asked.
pub(super) const LATER_S: f64 = 400.0 * 86_400.0;

/// The last instant of a list that was taken while jobs ran, s: those have no end, and have run until then. None where jobs without an
/// end have run until different instants, as in lists that say no ends, or where jobs came later.
pub(super) fn taken_s(workload: &Workload) -> Option<f64> {
    let so_far_s = |job: &JobSpec| {
        let observed = job
            .observed
            .as_deref()
            .filter(|observed| observed.end.is_none())?;
        Some(observed.start.as_secs_f64() + job.run_time_s)
    };
    let mut untils_s = workload.jobs.iter().filter_map(so_far_s);
    let until_s = untils_s.next()?;
    let is_taken = untils_s.all(|other_s| (other_s - until_s).abs() <= 1.0);
    let last_s = workload.jobs.last()?.submit.as_secs_f64();
    // At the end itself they would have ended.
    (is_taken && last_s <= until_s + 1.0).then_some((until_s - 1.0).max(0.0))
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

#[cfg(test)]
mod tests {
    use pleach_scheduler::ClusterSpec;

    use super::*;

    /// Submission, start with end, and run time of a job, s.
    type Row = (f64, Option<(f64, Option<f64>)>, f64);

    /// A list on four GPUs of such jobs.
    fn list(jobs: &[Row]) -> Workload {
        let at = Time::from_secs_f64;
        let job = |(submit_s, seen, run_s): &Row| JobSpec {
            observed: seen.map(|(start_s, end_s)| {
                Box::new(Observed {
                    start: at(start_s),
                    end: end_s.map(at),
                    ..Observed::default()
                })
            }),
            ..JobSpec::new("job", at(*submit_s), 1, *run_s)
        };
        Workload {
            name: "list".into(),
            cluster: ClusterSpec::uniform(1, 4, 1),
            classes: vec![pleach_scheduler::ModelClass::default()],
            jobs: jobs.iter().map(job).collect(),
        }
    }

    #[test]
    fn a_list_was_taken_where_all_that_run_have_run_until_one_instant() {
        let ended = (0.0, Some((0.0, Some(50.0))), 50.0);
        let runs = [(10.0, Some((20.0, None)), 80.0), (15.0, Some((60.0, None)), 40.0)];
        let waits = (90.0, None, 1.0);
        let taken = list(&[ended, runs[0], runs[1], waits]);
        assert_eq!(taken_s(&taken), Some(99.0));
        let seen = standing(taken).jobs[3].observed.clone().unwrap();
        assert_eq!(seen.start, Time::from_secs_f64(99.0 + LATER_S));
        // A list that says no ends is none, whenever its last job ends; nor is one in which all have ended.
        let other = (10.0, Some((20.0, None)), 500.0);
        assert_eq!(taken_s(&list(&[ended, runs[1], other, waits])), None);
        assert_eq!(taken_s(&list(&[ended])), None);
    }
}
