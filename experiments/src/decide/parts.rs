//! The three parts of a list.

use pleach_env::workload::Workload;
use serde::{Deserialize, Serialize};

use super::PartsConfig;
use crate::evaluate::day::DAY_S;

/// Ends of parts are whole multiples of this, days: what a person can type.
const STEP_DAYS: f64 = 0.1;

/// Where the parts of a list end, days from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The part in which is searched ends, and the one in which is chosen begins.
    pub learn_days: f64,
    /// The part in which is chosen ends, and the one that judges begins.
    pub choose_days: f64,
}

impl Parts {
    /// Cuts a list.
    #[must_use]
    pub fn of(workload: &Workload, config: PartsConfig) -> Parts {
        let last_s = workload.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
        let days = |part: f64| {
            let steps = (last_s * part / DAY_S / STEP_DAYS).floor().max(1.0);
            // As it is written with one digit.
            (steps * STEP_DAYS * 10.0).round() / 10.0
        };
        Parts {
            learn_days: days(config.learn),
            choose_days: days(config.learn + config.choose),
        }
    }

    /// The jobs in which is searched.
    #[must_use]
    pub fn early(&self, workload: &Workload) -> Workload {
        workload.window(0.0, self.learn_days * DAY_S)
    }

    /// Those, and the ones in which is chosen.
    #[must_use]
    pub fn before_judging(&self, workload: &Workload) -> Workload {
        workload.window(0.0, self.choose_days * DAY_S)
    }
}

#[cfg(test)]
mod tests {
    use pleach_env::workload::JobSpec;
    use pleach_scheduler::{ClusterSpec, Time};

    use super::*;

    #[test]
    fn no_job_is_in_two_parts_and_none_is_lost() {
        let jobs = (0..400).map(|number| {
            let at = Time::from_secs_f64(f64::from(number) * 3000.0);
            JobSpec::new(format!("j{number}"), at, 1, 60.0)
        });
        let list = Workload {
            name: "list".into(),
            cluster: ClusterSpec::uniform(1, 8, 1),
            classes: vec![pleach_scheduler::ModelClass::default()],
            jobs: jobs.collect(),
        };
        // 399 jobs x 3000 s are 13.85 days.
        let parts = Parts::of(&list, PartsConfig::default());
        assert_eq!((parts.learn_days, parts.choose_days), (6.2, 9.0));
        let (early, before) = (parts.early(&list), parts.before_judging(&list));
        assert_eq!(early.jobs, before.jobs[..early.jobs.len()]);
        assert_eq!(before.jobs, list.jobs[..before.jobs.len()]);
        let since = |days: f64| {
            let later = list
                .jobs
                .iter()
                .filter(|job| job.submit.as_secs_f64() >= days * DAY_S);
            later.count()
        };
        assert_eq!(early.jobs.len() + since(parts.learn_days), 400);
        assert_eq!(before.jobs.len() + since(parts.choose_days), 400);
    }
}
