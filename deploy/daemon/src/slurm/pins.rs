//! Nodes that were named for jobs which have not started: whose they are, and when they are lifted again.
//!
//! A job with nodes by name is its user's affair, so what was named here is remembered, in `pins.json` of the folder, before it is
//! written: who is killed between the two lifts nodes that nobody named, which does nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pleach_scheduler::decision::Action;

use super::feed::{Feed, Line, about, refused};
use super::queue::Place;
use crate::error::Error;
use crate::files;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::snapshot::{JobSeen, Phase};

const FILE: &str = "pins.json";

/// Largest file that is read, bytes: names of all jobs that fit a cluster at once.
const FILE_MAX: u64 = 16 << 20;

/// Doublings of the rounds for which a job goes without nodes, at most. *Ours*: half a minute of rounds of half a second.
const RESTS_MAX: u32 = 6;

/// Names of the jobs that had nodes named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    names: BTreeSet<String>,
    /// Of jobs that did not start on named nodes: how often, and the round before which they go without.
    rests: BTreeMap<String, (u32, u64)>,
    round: u64,
    folder: PathBuf,
}

impl Pins {
    /// What a daemon before remembered in the folder; nothing where there is none, or what is there is no such file.
    pub(crate) fn of(folder: &Path) -> Pins {
        let text = files::text(&folder.join(FILE), FILE_MAX).unwrap_or_default();
        Pins {
            names: serde_json::from_str(&text).unwrap_or_default(),
            folder: folder.to_owned(),
            ..Pins::default()
        }
    }

    /// Names of the jobs whose nodes are not their users'.
    pub(crate) fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Names the nodes of the jobs that the policy would start now, and lifts those of all others; what an operator should know.
    ///
    /// A job that has not started a round after its nodes were named goes without them, and so anywhere: for two rounds at first, then
    /// twice as long each time. Named every other round, it would meet a batch system that looks every two seconds with its nodes each
    /// time. So does one that its user holds. Of one that runs they stay, and are lifted should it be requeued.
    pub(super) fn tell(
        &mut self,
        (feed, commands): (&mut Feed, &Commands),
        (queue, jobs): (&[Place], &[JobSeen]),
        now: &[Planned],
    ) -> Vec<String> {
        let waits: BTreeMap<&str, &Place> = queue.iter().map(|place| (place.name.as_str(), place)).collect();
        let before = std::mem::take(&mut self.names);
        let running = jobs.iter().filter(|job| job.phase == Phase::Running);
        let running: BTreeSet<String> = running.map(|job| job.id.to_string()).collect();
        let (kept, lifted): (Vec<&String>, Vec<&String>) =
            before.iter().partition(|name| running.contains(*name));
        self.round += 1;
        self.rests.retain(|name, _| waits.contains_key(name.as_str()));
        for name in &lifted {
            let (num, until) = self.rests.entry((*name).clone()).or_default();
            *num = (*num + 1).min(RESTS_MAX);
            *until = self.round + (1 << *num);
        }
        let mut lines: Vec<Line> = lifted.iter().filter_map(|name| Line::nodes(name, &[])).collect();
        self.names = kept.into_iter().cloned().collect();
        let starts = now
            .iter()
            .filter(|planned| planned.decision.action == Action::Start);
        for planned in starts {
            let name = planned.job().to_string();
            // The tasks of an array that wait together may not all go to one node.
            let is_one = waits.get(name.as_str()).is_some_and(|place| !place.is_array);
            let rests = self.rests.get(&name).is_some_and(|rest| self.round < rest.1);
            let line =
                Line::nodes(&name, &planned.nodes).filter(|_| is_one && !rests && !before.contains(&name));
            if let Some(line) = line {
                lines.push(line);
                self.names.insert(name);
            }
        }
        let named = std::mem::take(&mut self.names);
        self.names = before.union(&named).cloned().collect();
        if lines.is_empty() {
            self.names = named;
            return Vec::new();
        }
        let told = self.write().and_then(|()| feed.carry_out(commands, &lines));
        match told {
            Ok(said) => {
                // Who has begun meanwhile has his still.
                let began = said.iter().filter(|text| text.contains("no longer pending"));
                let began = began.filter_map(|text| about(text)).map(str::to_owned);
                self.names = named.into_iter().chain(began).collect();
                let noted = self.write().err().map(|error| error.to_string());
                noted.into_iter().chain(refused(&said)).collect()
            }
            // Whose nodes were named is not known: all of them are lifted in the next round.
            Err(error) => vec![format!("nodes were not named, or in part: {error}")],
        }
    }

    /// Lifts all that was named.
    ///
    /// # Errors
    /// A `scontrol` that does not answer; a folder that cannot be written to.
    pub(crate) fn lift(&mut self, commands: &Commands) -> Result<(), Error> {
        let lines: Vec<Line> = self
            .names
            .iter()
            .filter_map(|name| Line::nodes(name, &[]))
            .collect();
        Feed::default().carry_out(commands, &lines)?;
        let had = !self.names.is_empty();
        self.names.clear();
        if had { self.write() } else { Ok(()) }
    }

    fn write(&self) -> Result<(), Error> {
        let bytes = serde_json::to_vec(&self.names).unwrap_or_default();
        files::replace(&self.folder, FILE, &bytes)
    }
}
