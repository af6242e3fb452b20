//! The lists on which formulas are judged: generated anew for every draw, or windows of a list of one's own.
//!
//! Of a list of one's own the first seven tenths of the jobs are for the search and the rest for validation, so that what is kept
//! was judged on what came later.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_env::workload::Workload;
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::{Seed, SimConfig};
use rand::RngExt as _;

use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::workload_source::WorkloadSource;

/// Part of a list of one's own that the search sees. *Assumed.*
const SEARCHED: f64 = 0.7;

/// What a draw is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Search,
    Validation,
}

/// Files that were read.
#[derive(Debug, Default)]
pub(super) struct Lists {
    files: BTreeMap<String, Workload>,
}

impl Lists {
    /// Reads the kinds that are files.
    pub(super) fn open(kinds: &[String], num_jobs: u32) -> Result<Lists, Error> {
        let mut lists = Lists::default();
        for kind in kinds.iter().filter(|kind| WorkloadSource::is_file(kind)) {
            let (workload, _) = import(Path::new(kind), &ImportOptions::default())?;
            let (num, searched) = (workload.jobs.len(), searched(&workload));
            if searched.min(num - searched) < num_jobs as usize {
                let allowed = format!(
                    "a list of at least {:.0} jobs",
                    f64::from(num_jobs) / (1.0 - SEARCHED) + 1.0
                );
                let hint = format!(
                    "It has {num}, of which {} are for validation: give a smaller --num-jobs.",
                    num - searched
                );
                return Err(Error::config("workload", kind, allowed, hint));
            }
            lists.files.insert(kind.clone(), workload);
        }
        Ok(lists)
    }

    /// A list of a kind; at the load of its own where none is given, which is possible for files alone.
    pub(super) fn draw(
        &self,
        (kind, load): (&str, Option<f64>),
        num_jobs: u32,
        (what_for, seed): (Use, Seed),
        sim: &SimConfig,
    ) -> Result<Instance, Error> {
        let Some(workload) = self.files.get(kind) else {
            let source = WorkloadSource {
                workload: vec![kind.to_string()],
                num_jobs: Some(num_jobs),
                load,
                ..WorkloadSource::default()
            };
            return Ok(source.instances(sim, &[seed], &mut |_| {})?.remove(0));
        };
        let (num, searched) = (workload.jobs.len(), searched(workload));
        let (first, end) = match what_for {
            Use::Search => (0, searched),
            Use::Validation => (searched, num),
        };
        let last = end - num_jobs as usize;
        let start = seed.stream("window", 0).random_range(first..=last);
        let mut window = workload.slice(start, num_jobs as usize);
        if let Some(load) = load {
            window = window.scaled_load(load / window.offered_load())?;
        }
        Ok(Instance {
            workload: window,
            seed: seed.0,
        })
    }
}

/// Jobs of a list that the search sees.
fn searched(workload: &Workload) -> usize {
    (workload.jobs.len() as f64 * SEARCHED) as usize
}
