//! A list of one's own in three consecutive spans of time: one to train on, one to choose by, one to judge on.
//!
//! Windows are drawn inside one of them, so nothing that a policy is chosen by has been trained on, and nothing that it is judged on
//! has been either. They are parts of the jobs and not of the days, so that each has its share of a list that grows busier. Jobs that
//! come at one instant are of one part.

use std::fmt;
use std::ops::Range;

use pleach_scheduler::Problem;
use pleach_workloads::JobSpec;
use serde::{Deserialize, Serialize};

/// What a part of a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The first six tenths of the jobs, on which a policy is trained.
    Train,
    /// The next two tenths, by which one is chosen.
    Validation,
    /// The last two tenths, on which the one that was chosen is judged.
    Test,
}

impl Split {
    /// All, in the order of time.
    pub const ALL: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

    /// Where each ends, in parts of the jobs. *Assumed*, as is usual.
    const ENDS: [f64; 3] = [0.6, 0.8, 1.0];

    /// Name on the command line and in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }

    /// The jobs of this part, of jobs in the order of their submission.
    #[must_use]
    pub fn range(self, jobs: &[JobSpec]) -> Range<usize> {
        let end = |number: usize| {
            let end = (jobs.len() as f64 * Split::ENDS[number]).round() as usize;
            match end.checked_sub(1).and_then(|last| jobs.get(last)) {
                Some(last) => jobs.partition_point(|job| job.submit <= last.submit),
                None => end,
            }
        };
        let number = self as usize;
        number.checked_sub(1).map_or(0, end)..end(number)
    }

    /// Jobs of the smallest part.
    #[must_use]
    pub fn num_jobs_min(jobs: &[JobSpec]) -> usize {
        let sizes = Split::ALL.map(|split| split.range(jobs).len());
        sizes.into_iter().min().unwrap_or_default()
    }

    /// Refuses windows of more jobs than each part has.
    ///
    /// # Errors
    /// Such windows, with the longest that fit.
    pub fn check(jobs: &[JobSpec], num_jobs: usize) -> Result<(), Problem> {
        /// Fewer jobs are no schedule.
        const FEWEST: usize = 5;
        let most = Split::num_jobs_min(jobs);
        if (1..=most).contains(&num_jobs) && most >= FEWEST {
            return Ok(());
        }
        let [train, validation, test] = Split::ALL.map(|split| split.range(jobs).len());
        let parts = format!("{train} to train on, {validation} to choose by and {test} to judge on");
        Problem::refuse_if(
            most < FEWEST,
            "jobs of the list",
            jobs.len(),
            format_args!("a list of which each part has at least {FEWEST} jobs, and here are {parts}"),
            "give a longer list: 1,000 jobs make a good beginning",
        )?;
        let allowed = format!("1 to {most}, for the list has {parts}");
        let hint = format!(
            "give --num-jobs {} or so, or a longer list",
            (most / 4).max(FEWEST)
        );
        Err(Problem::new("num_jobs", num_jobs, allowed, hint))
    }

    /// The parts of a list in one line.
    #[must_use]
    pub fn in_words(jobs: &[JobSpec], num_jobs: usize) -> String {
        let first = jobs.first().map(|job| job.submit);
        let day = |place: usize| {
            let job = jobs.get(place.min(jobs.len().saturating_sub(1)));
            job.zip(first)
                .map_or(0.0, |(job, first)| (job.submit - first).as_secs_f64() / 86_400.0)
        };
        let parts = Split::ALL.map(|split| {
            let Range { start, end } = split.range(jobs);
            let what = match split {
                Split::Train => "train on",
                Split::Validation => "choose by",
                Split::Test => "judge on",
            };
            let num = end - start;
            let windows = num / num_jobs.max(1);
            format!(
                "{num} to {what} (days {:.1} to {:.1}, {windows} windows side by side)",
                day(start),
                day(end.saturating_sub(1))
            )
        });
        format!(
            "{} jobs, in windows of {num_jobs}: {}",
            jobs.len(),
            parts.join(", ")
        )
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{EnvConfig, Source, WorkloadConfig};
    use pleach_scheduler::Time;
    use pleach_workloads::generate::{GeneratorConfig, generate};
    use pleach_workloads::{Seed, Workload};

    /// A list whose jobs come at these times, s.
    fn list_of(mut submit_s: Vec<u32>) -> Workload {
        submit_s.sort_unstable();
        let generator = GeneratorConfig::default().with(submit_s.len(), 1.0);
        let mut workload = generate(&generator, Seed(1)).unwrap();
        for (job, at_s) in workload.jobs.iter_mut().zip(submit_s) {
            job.submit = Time::from_secs_f64(f64::from(at_s));
        }
        workload
    }

    fn env_of(path: &std::path::Path, num_jobs: usize) -> EnvConfig {
        EnvConfig {
            workload: WorkloadConfig::File {
                path: path.to_path_buf(),
                options: Box::default(),
                num_jobs,
                split: Some(Split::Train),
                load: None,
                keep_running: false,
            },
            ..EnvConfig::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_job_is_of_one_part_and_no_part_begins_before_the_last_has_ended(
            submit_s in proptest::collection::vec(0_u32..60, 0..120),
        ) {
            let jobs = if submit_s.is_empty() { Vec::new() } else { list_of(submit_s).jobs };
            let mut end = 0;
            for split in Split::ALL {
                let range = split.range(&jobs);
                prop_assert_eq!(range.start, end);
                prop_assert!(range.end >= range.start);
                if let (true, Some(before)) = (!range.is_empty(), range.start.checked_sub(1)) {
                    prop_assert!(jobs[before].submit < jobs[range.start].submit);
                }
                end = range.end;
            }
            prop_assert_eq!(end, jobs.len());
        }

        #[test]
        fn windows_of_different_parts_share_no_job_and_no_time(
            gaps_s in proptest::collection::vec(0_u32..500, 60..200),
            seeds in proptest::collection::vec(any::<u64>(), 1..8),
            num_jobs in 3_usize..9,
        ) {
            let mut at_s = 0;
            let submit_s = gaps_s.iter().map(|gap_s| { at_s += gap_s; at_s }).collect();
            let whole = list_of(submit_s);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("mine.csv");
            whole.write(&path).unwrap();
            let env = env_of(&path, num_jobs);
            if Source::open(&env).is_err() {
                return Ok(());
            }
            // Where a window lies: jobs keep their ids.
            let place = |window: &Workload| {
                let id = &window.jobs[0].id;
                whole.jobs.iter().position(|job| &job.id == id).unwrap()
            };
            let mut spans = Vec::new();
            for split in Split::ALL {
                let env = env.in_split(split);
                let source = Source::open(&env).unwrap();
                for seed in &seeds {
                    let window = source.workload(&env, Seed(*seed)).unwrap();
                    prop_assert_eq!(window.jobs.len(), num_jobs);
                    let first = place(&window);
                    let last = first + num_jobs - 1;
                    spans.push((split, whole.jobs[first].submit, whole.jobs[last].submit));
                }
            }
            for (split, _, end) in &spans {
                for (other, begin, _) in &spans {
                    if (*split as usize) < (*other as usize) {
                        prop_assert!(end < begin, "{split} ends at {end:?}, {other} begins at {begin:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_list_that_is_too_short_is_refused_with_what_would_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.csv");
        list_of((0..100).collect()).write(&path).unwrap();
        assert!(Source::open(&env_of(&path, 20)).is_ok());
        let said = Source::open(&env_of(&path, 21)).unwrap_err().to_string();
        assert!(
            said.contains("1 to 20") && said.contains("--num-jobs 5"),
            "{said}"
        );
        // All jobs come at once: two parts are empty.
        list_of(vec![7; 100]).write(&path).unwrap();
        let said = Source::open(&env_of(&path, 1)).unwrap_err().to_string();
        assert!(
            said.contains("a longer list") && said.contains("0 to judge on"),
            "{said}"
        );
    }

    #[test]
    fn the_line_says_days_and_windows() {
        let jobs = list_of((0..10).map(|day| day * 86_400).collect()).jobs;
        assert_eq!(
            Split::in_words(&jobs, 2),
            "10 jobs, in windows of 2: 6 to train on (days 0.0 to 5.0, 3 windows side by side), \
             2 to choose by (days 6.0 to 7.0, 1 windows side by side), \
             2 to judge on (days 8.0 to 9.0, 1 windows side by side)"
        );
    }
}
