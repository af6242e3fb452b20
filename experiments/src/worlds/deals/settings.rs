//! Lists of jobs, their cluster and what may be done to them: the settings of the world.

use std::path::PathBuf;

use pleach_env::SimConfig;
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::settings::{Above, OneOf};

use crate::error::Error;
use crate::evaluate::workload_source::{Source, WorkloadSource};

/// The jobs that are dealt where nothing else is said, and their cluster: small enough that 120 of them have to wait. *Assumed.*
const GAVEL: &str = "gavel-multi";
const SMALL: &str = "2x4:v100,2x4:p100,2x4:k80";

pleach_scheduler::settings! {
    /// Lists of jobs, their cluster and what may be done to them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DealsSettings {
        /// Jobs: a preset, a profile or an environment by name (pleach workload)
        pub jobs: String = GAVEL.into();
        /// Cluster: a description, or nodes x GPUs : type [default: of gavel-multi 2x4:v100,2x4:p100,2x4:k80, else that of the jobs]
        pub cluster: Option<PathBuf>;
        /// Jobs of a list
        pub num_jobs: u32 = 120, in 1..=1_000_000;
        /// Offered load
        pub load: f64 = 1.5, in 0.01..=10.0;
        /// Times that load at which policies are compared, a list
        pub loads: Vec<f64> = vec![1.0], in Above(0.0, 100.0);
        /// Lists to draw
        pub lists: u16 = 10, in 1..=1000;
        /// Run times: known, or guessed from the jobs that have ended
        pub estimates: String = "known".into(), in OneOf(&["known", "guessed"]);
        /// What a restart costs a job, s
        pub restart_cost_s: f64 = 30.0, in 0.0..=1e6;
        /// Whether two jobs may run on the same GPUs: off, mps
        pub sharing: String = "mps".into(), in OneOf(&["off", "mps"]);
        /// Rows of an environment at most; running jobs come first, and a job without a row gets no GPUs
        pub max_rows: usize = 512, in 1..=16_384;
        /// Dealer whose scores an environment tells: index, las-deal, srtf-deal, rate-deal, belief-deal or gittins-deal
        pub expert: String = "index".into(), in OneOf(&pleach_dealing::NAMES);
    }
}

impl DealsSettings {
    /// Where lists come from, at so many times the load.
    ///
    /// # Errors
    /// Jobs that are not there, and a list of jobs, which cannot be drawn anew.
    pub(super) fn source(&self, load: f64) -> Result<WorkloadSource, Error> {
        let own = (self.jobs == GAVEL).then(|| PathBuf::from(SMALL));
        let source = WorkloadSource {
            cluster: self.cluster.clone().or(own),
            num_jobs: Some(self.num_jobs),
            load: Some(self.load * load),
            ..WorkloadSource::of(&self.jobs)
        };
        if let Source::File(_) = source.source(&self.jobs)? {
            let hint = "pleach index tunes a formula on a list of jobs.";
            return Err(Error::config("jobs", &self.jobs, "jobs that are drawn", hint));
        }
        source.check()?;
        Ok(source)
    }

    /// The cluster: running jobs may be stopped.
    pub(super) fn sim(&self) -> SimConfig {
        let mut sim = SimConfig::default();
        if self.estimates == "guessed" {
            sim.estimates = EstimateModel::HISTORY;
        }
        let can = &mut sim.capabilities;
        can.grant(ActionKind::Preempt, true);
        can.restart_cost_s = self.restart_cost_s;
        can.sharing = match self.sharing.as_str() {
            "mps" => Sharing::Mps,
            _ => Sharing::Off,
        };
        sim
    }
}
