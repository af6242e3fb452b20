//! The lists on which formulas are judged: generated anew for every draw, or windows of a list of one's own.
//!
//! A list of one's own is [split](Split): what is kept was judged on what came later than what it was searched on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pleach_env::workload::Workload;
use pleach_env::{Seed, SimConfig, Split};
use rand::RngExt as _;

use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::workload_source::WorkloadSource;

/// Files that were read, and how the rest is made.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    files: BTreeMap<String, Workload>,
    source: WorkloadSource,
}

impl Drawn {
    /// Reads the kinds that are files.
    pub(super) fn open(kinds: &[String], source: &WorkloadSource, num_jobs: u32) -> Result<Drawn, Error> {
        let mut lists = Drawn {
            files: BTreeMap::new(),
            source: source.clone(),
        };
        for kind in kinds.iter().filter(|kind| WorkloadSource::is_file(kind)) {
            let (workload, _) = source.workload(kind, Seed(0))?;
            Split::check(&workload.jobs, num_jobs as usize)
                .map_err(|error| Error::data(Path::new(kind), error.to_string()))?;
            lists.files.insert(kind.clone(), workload);
        }
        Ok(lists)
    }

    /// How each file is split, in a line.
    pub(super) fn in_words(&self, num_jobs: u32) -> Vec<String> {
        let line = |(kind, list): (&String, &Workload)| {
            format!("{kind}: {}", Split::in_words(&list.jobs, num_jobs as usize))
        };
        self.files.iter().map(line).collect()
    }

    /// The files, by name.
    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &Workload)> {
        self.files.iter()
    }

    /// A list of a kind; at the load of its own where none is given, which is possible for files alone.
    pub(super) fn draw(
        &self,
        (kind, load): (&str, Option<f64>),
        num_jobs: u32,
        (split, seed): (Split, Seed),
        sim: &SimConfig,
    ) -> Result<Instance, Error> {
        let Some(workload) = self.files.get(kind) else {
            let source = WorkloadSource {
                workload: vec![kind.to_string()],
                num_jobs: Some(num_jobs),
                load,
                cluster: self.source.cluster.clone(),
                ..WorkloadSource::default()
            };
            return Ok(source.instances(sim, &[seed], &mut |_| {})?.remove(0));
        };
        let of = split.range(&workload.jobs);
        let last = of.end - num_jobs as usize;
        let start = seed.stream("window", 0).random_range(of.start..=last);
        let mut window = match self.source.keep_running {
            true => workload.slice_with_running(start, num_jobs as usize),
            false => workload.slice(start, num_jobs as usize),
        };
        if let Some(load) = load {
            window = window.scaled_load(load / window.offered_load())?;
        }
        Ok(Instance {
            workload: Arc::new(window),
            seed: seed.0,
        })
    }
}
