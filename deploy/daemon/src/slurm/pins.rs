//! Nodes where the policy chose them: on a cluster of several GPU types, for a job that may have more than one of them, its nodes are
//! named where it would start now, and the nodes of other types are closed to it where it waits for one type on purpose although it
//! would fit elsewhere. Nothing else is named: which of equal nodes a job gets is Slurm's to say.
//!
//! Nodes by name are a user's affair, so what was named here is remembered, in `pins.json` of the folder, before it is written: after
//! a kill between the two nodes are lifted that were never named, which does nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pleach_scheduler::decision::Action;
use pleach_site::slurm::{expand, fold};

use super::feed::{Feed, Line, about, refused};
use super::queue::Place;
use super::seen::Seen;
use crate::error::Error;
use crate::files;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::mark::Names;
use crate::snapshot::{JobSeen, NodeSeen, Phase, Snapshot};

const FILE: &str = "pins.json";

/// Largest file that is read, bytes: names of all jobs that fit a cluster at once.
const FILE_MAX: u64 = 16 << 20;

/// Doublings of the rounds for which a job goes without nodes, at most. *Ours*: half a minute of rounds of half a second.
const RESTS_MAX: u32 = 6;

/// What was named for which jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    names: Names,
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

    /// Jobs whose nodes by name are not their users'.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Names nodes as the policy decides now, and lifts what it does not decide any more; what an operator should know.
    ///
    /// A job that has not started a round after its nodes were named goes without them, and so anywhere: for two rounds at first, then
    /// twice as long each time. Named every other round, it would meet a Slurm that looks every two seconds with its nodes each time.
    /// Of a job that runs they stay, and are lifted should it be requeued.
    pub(super) fn tell(
        &mut self,
        (feed, commands): (&mut Feed, &Commands),
        seen: &Seen,
        now: &[Planned],
    ) -> Vec<String> {
        let wanted = wanted(seen, now);
        if wanted.is_empty() && self.names.is_empty() {
            return Vec::new();
        }
        let queue = &seen.waiting.queue;
        let waits: BTreeMap<&str, &Place> = queue.iter().map(|place| (&*place.name, place)).collect();
        let running = seen
            .snapshot
            .jobs
            .iter()
            .filter(|job| job.phase == Phase::Running);
        let running: BTreeSet<String> = running.map(|job| job.id.to_string()).collect();
        self.round += 1;
        self.rests.retain(|name, _| waits.contains_key(name.as_str()));
        let (mut lines, mut named) = (Vec::new(), Names::new());
        for (name, own) in &self.names {
            let stays =
                running.contains(name) || own.is_some() && matches!(wanted.get(name), Some(Want::NotOn(_)));
            if stays {
                named.insert(name.clone(), own.clone());
                continue;
            }
            lines.extend(lifted(name, own.as_deref()));
            if own.is_none() {
                let (num, until) = self.rests.entry(name.clone()).or_default();
                *num = (*num + 1).min(RESTS_MAX);
                *until = self.round + (1 << *num);
            }
        }
        for (name, want) in wanted {
            // The tasks of an array that wait together may not all go to one node.
            let is_one = waits.get(name.as_str()).is_some_and(|place| !place.is_array);
            let rests = self.rests.get(&name).is_some_and(|rest| self.round < rest.1);
            if !is_one || self.names.contains_key(&name) {
                continue;
            }
            let (line, own) = match want {
                Want::On(_) if rests => continue,
                Want::On(nodes) => (Line::nodes(&name, nodes), None),
                Want::NotOn(mut nodes) => {
                    let own = seen.shunned.get(&name).cloned().unwrap_or_default();
                    // Where what its user shuns cannot be read, nothing is written in its place.
                    let Ok(all) = expand(&own) else { continue };
                    nodes.extend(all);
                    (
                        Line::shunned(&name, &fold(nodes.iter().map(String::as_str))),
                        Some(own),
                    )
                }
            };
            if let Some(line) = line {
                lines.push(line);
                named.insert(name, own);
            }
        }
        self.write_out((feed, commands), (named, &lines))
    }

    fn write_out(
        &mut self,
        (feed, commands): (&mut Feed, &Commands),
        (named, lines): (Names, &[Line]),
    ) -> Vec<String> {
        if lines.is_empty() {
            self.names = named;
            return Vec::new();
        }
        let before = self.names.clone();
        self.names.extend(named.clone());
        match self.write().and_then(|()| feed.carry_out(commands, lines)) {
            Ok(said) => {
                self.names = named;
                // A job that has begun meanwhile has its nodes still.
                let began = said.iter().filter(|text| text.contains("no longer pending"));
                for name in began.filter_map(|text| about(text)) {
                    let own = before.get(name).cloned().flatten();
                    self.names.entry(name.to_owned()).or_insert(own);
                }
                let noted = self.write().err().map(|error| error.to_string());
                noted.into_iter().chain(refused(&said)).collect()
            }
            // Which nodes were named is not known: all of them are lifted in the next round.
            Err(error) => vec![format!("nodes were not named, or in part: {error}")],
        }
    }

    /// Lifts all that was named.
    ///
    /// # Errors
    /// A `scontrol` that does not answer; a folder that cannot be written to.
    pub(crate) fn lift(&mut self, commands: &Commands) -> Result<(), Error> {
        let lines = self
            .names
            .iter()
            .filter_map(|(name, own)| lifted(name, own.as_deref()));
        Feed::default().carry_out(commands, &lines.collect::<Vec<_>>())?;
        let had = !self.names.is_empty();
        self.names.clear();
        if had { self.write() } else { Ok(()) }
    }

    fn write(&self) -> Result<(), Error> {
        let bytes = serde_json::to_vec(&self.names).unwrap_or_default();
        files::replace(&self.folder, FILE, &bytes)
    }
}

fn lifted(name: &str, own: Option<&str>) -> Option<Line> {
    match own {
        None => Line::nodes(name, &[]),
        Some(own) => Line::shunned(name, own),
    }
}

/// Where the policy wants a job.
enum Want<'a> {
    On(&'a [String]),
    NotOn(Vec<String>),
}

/// What the policy decides now of jobs that may have GPUs of several types and whose users name no nodes, by their names.
fn wanted<'a>(seen: &'a Seen, now: &'a [Planned]) -> BTreeMap<String, Want<'a>> {
    let snapshot = &seen.snapshot;
    let kinds: BTreeSet<&str> = snapshot.nodes.iter().map(|node| node.gpu_type.as_str()).collect();
    if kinds.len() < 2 {
        return BTreeMap::new();
    }
    let jobs: BTreeMap<_, &JobSeen> = snapshot.jobs.iter().map(|job| (job.id, job)).collect();
    let want = |planned: &'a Planned| {
        let job = jobs
            .get(&planned.job())
            .filter(|job| job.gpu_type.is_none() && job.share.is_none() && !seen.named.contains(&job.id))?;
        let want = match planned.decision.action {
            Action::Start => Want::On(&planned.nodes),
            Action::Reserve => Want::NotOn(closed_while_waiting(job, snapshot, planned)?),
            Action::Preempt => return None,
        };
        Some((job.id.to_string(), want))
    };
    now.iter().filter_map(want).collect()
}

/// Nodes of other types than the one for which a job waits; none where it fits on none of them, and Slurm starts it there no sooner.
fn closed_while_waiting(job: &JobSeen, snapshot: &Snapshot, planned: &Planned) -> Option<Vec<String>> {
    // As the tables number them: by their first nodes.
    let mut kinds: Vec<(&str, bool)> = Vec::new();
    for node in &snapshot.nodes {
        let kind = (node.gpu_type.as_str(), node.shared.is_some());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let held_back = planned.decision.reservation?;
    let (waits_for, _) = *kinds.get(held_back.gpu_type.index())?;
    let others = || snapshot.nodes.iter().filter(|node| node.gpu_type != waits_for);
    let is_open = |node: &&NodeSeen| node.num_gpus.saturating_sub(node.num_gpus_used) >= job.gpus_per_node;
    let fits = others().filter(is_open).count() >= job.num_nodes as usize;
    fits.then(|| others().map(|node| node.name.clone()).collect())
}
