//! From easy to hard: what the learner plays in grows from update to update, what it is judged in stays.
//!
//! Over the first `until` of the updates the offered load, the number of jobs in an episode, or both go in `num_stages` equal
//! steps from a first to a last value; then the last value stays. The stage is a function of the update's number and of the
//! settings alone, so a resumed run is in the same stage as one without a break.
//!
//! ```text
//! stage(u) = min(k - 1, floor(u (k - 1) / (until num_updates)))        k stages, from 0; u = number of the update, from 0
//! value(u) = first + (last - first) stage(u) / (k - 1)
//! ```
//!
//! A load or a number of jobs out of its range is refused with its key.
//!
//! # Source
//! Growing episodes: Decima (Mao et al., SIGCOMM'19), which draws their ends instead. From easy to hard lists of jobs:
//! RLScheduler (Zhang et al., SC'20), which sorts lists by their spread instead. Stages of load and the defaults are *assumed*.

use pleach_env::{EnvConfig, Source};
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Above, Settings as _};

use crate::error::Error;

settings! {
    /// What grows, and how fast.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Curriculum {
        /// Offered load of the first and of the last stage, above 0; none leaves the environment's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub load: Option<[f64; 2]>;
        /// Jobs in an episode of the first and of the last stage, at least 1; none leaves the environment's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub num_jobs: Option<[usize; 2]>;
        /// Stages, 2 to 1000; as many as updates for a change with every update.
        pub num_stages: u64 = 10, in 2..=1000;
        /// Part of the updates after which the last stage begins, above 0 to 1.
        pub until: f64 = 0.5, in Above(0.0, 1.0);
    }
}

impl Curriculum {
    /// Default settings are left out: settings without a curriculum are written as ever.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Curriculum::default()
    }

    /// Checks the ranges, and that `env` can be changed so.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let hint = "For example: curriculum = { load = [0.5, 1.5], num_jobs = [50, 300] }.";
        if let Some(loads) = self.load
            && !loads.iter().all(|load| load.is_finite() && *load > 0.0)
        {
            let value = format!("{loads:?}");
            return Err(Error::config("curriculum.load", value, "two loads above 0", hint));
        }
        if let Some(counts) = self.num_jobs
            && counts.contains(&0)
        {
            let value = format!("{counts:?}");
            return Err(Error::config(
                "curriculum.num_jobs",
                value,
                "two numbers of at least 1",
                hint,
            ));
        }
        Ok(self.check_at("curriculum", hint)?)
    }

    /// Sees whether the jobs of the first and of the last stage are there, so that no run ends half-way for want of them.
    ///
    /// # Errors
    /// A workload that cannot be read or has fewer jobs than a stage wants.
    pub(crate) fn open_ends(&self, env: &EnvConfig) -> Result<(), Error> {
        if self.is_default() {
            return Ok(());
        }
        for stage in [0, self.num_stages - 1] {
            Source::open(&self.env_of(env, stage))?;
        }
        Ok(())
    }

    /// The stage of an update, from 0. Environments go on over `restart_every` updates, and their stage with them.
    #[must_use]
    pub fn stage(&self, update: u64, num_updates: u64, restart_every: u64) -> u64 {
        let begun = update - update % restart_every.max(1);
        let last = self.num_stages - 1;
        let ramp = self.until * num_updates as f64;
        if begun as f64 >= ramp {
            return last;
        }
        ((begun as f64 * last as f64 / ramp) as u64).min(last)
    }

    /// What the learner plays in at a stage.
    #[must_use]
    pub fn env_of(&self, env: &EnvConfig, stage: u64) -> EnvConfig {
        let part = stage as f64 / (self.num_stages - 1) as f64;
        let between = |[first, last]: [f64; 2]| first + (last - first) * part;
        let load = self.load.map(between);
        let num_jobs = self
            .num_jobs
            .map(|ends| between(ends.map(|end| end as f64)).round() as usize);
        let mut env = env.clone();
        env.workload = env.workload.resized(num_jobs, load);
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::WorkloadConfig;
    use pleach_env::workload::generate::GeneratorConfig;

    const GROWING: Curriculum = Curriculum {
        load: Some([0.5, 1.5]),
        num_jobs: Some([100, 301]),
        num_stages: 5,
        until: 0.5,
    };

    #[test]
    fn stages_share_the_first_half_and_the_last_one_stays() {
        // 40 updates, the last of five stages from 20 on: 0 to 4, 5 to 9, 10 to 14 and 15 to 19 are the others.
        let stages: Vec<u64> = (0..40).map(|update| GROWING.stage(update, 40, 1)).collect();
        let expected: Vec<u64> = (0..40).map(|update: u64| (update / 5).min(4)).collect();
        assert_eq!(stages, expected);
        // Environments that go on over three updates begin a stage with the next restart.
        assert_eq!([4, 5, 6].map(|update| GROWING.stage(update, 40, 3)), [0, 0, 1]);
        let every = Curriculum {
            num_stages: 11,
            until: 1.0,
            ..GROWING
        };
        let stages: Vec<u64> = (0..10).map(|update| every.stage(update, 10, 1)).collect();
        assert_eq!(stages, (0..10).collect::<Vec<_>>(), "another with every update");
        assert_eq!(
            GROWING.stage(0, 0, 1),
            4,
            "a run without updates is in its last stage"
        );
    }

    #[test]
    fn load_and_jobs_go_linearly_from_first_to_last() {
        let env = EnvConfig::default();
        let at = |num_jobs, load| WorkloadConfig::Generate(GeneratorConfig::default().with(num_jobs, load));
        for (stage, num_jobs, load) in [(0, 100, 0.5), (1, 150, 0.75), (2, 201, 1.0), (4, 301, 1.5)] {
            let played = GROWING.env_of(&env, stage);
            assert_eq!(played.workload, at(num_jobs, load), "{stage}");
            assert_eq!(played.sim, env.sim);
        }
        assert_eq!(Curriculum::default().env_of(&env, 3), env);
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_key() {
        let said = |curriculum: Curriculum| curriculum.check().unwrap_err().to_string();
        let load = Some([0.0, 1.0]);
        assert!(said(Curriculum { load, ..GROWING }).contains("curriculum.load"));
        let num_jobs = Some([0, 5]);
        assert!(said(Curriculum { num_jobs, ..GROWING }).contains("curriculum.num_jobs"));
        let num_stages = 1;
        assert!(
            said(Curriculum {
                num_stages,
                ..GROWING
            })
            .contains("curriculum.num_stages")
        );
        let until = f64::NAN;
        assert!(said(Curriculum { until, ..GROWING }).contains("curriculum.until"));
        assert!(GROWING.check().is_ok());
    }

    #[test]
    fn a_last_stage_with_more_jobs_than_the_file_has_is_refused_before_anything_is_played() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jobs.csv");
        let generator = GeneratorConfig::default().with(20, 1.0);
        let workload = pleach_env::workload::generate::generate(&generator, pleach_env::Seed(1)).unwrap();
        workload.write(&path).unwrap();
        let env = EnvConfig {
            workload: WorkloadConfig::File {
                path,
                options: Box::default(),
                num_jobs: 10,
                split: None,
                load: None,
                keep_running: false,
            },
            ..EnvConfig::default()
        };
        let to = |last| Curriculum {
            num_jobs: Some([5, last]),
            load: None,
            ..GROWING
        };
        to(20).open_ends(&env).unwrap();
        to(21).check().unwrap();
        assert!(to(21).open_ends(&env).is_err());
    }
}
