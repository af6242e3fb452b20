//! Holds jobs and lets them go, many with one command, within the time that a round has for it; the rest is for the next round.
//!
//! Ending at any point leaves a Slurm that works: a start writes nodes and mark while the job is held, then lets it go, and a job
//! that is taken back is held before its mark changes. Slurm alone starts jobs, so none is started twice.
//!
//! # Source
//! Slurm 22.05 with slurmdbd: 704 releases a second by list, 217 changes of nodes; an array is one record however many tasks it
//! has (60 ms for a thousand of which eight ran). **Tasks that were split off and let go are held again at 140 ms each under the
//! controller's lock**, so only a few are in one round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pleach_scheduler::ExternalId;

use super::apart::Step;
use super::feed::{Feed, Line, about, is_gone, refused};
use super::parts::{self, whole_of};
use super::reason::{is_overdue, is_unlooked, reasons, why_late};
use super::rivals::Rivals;
use super::seen::Seen;
use crate::error::Error;
use crate::record::Planned;
use crate::slurm::command::Commands;
use crate::slurm::job::is_to_give_back;
use crate::slurm::mark::Mark;
use crate::snapshot::{JobSeen, Phase};
use crate::system::{Kept, NotSent};

/// Jobs of one list. *Ours*: a tenth of a second, and well within the limit of a command on a machine that is forty times as slow.
const LIST: usize = 50;

/// Starts that are carried out together. *Ours*: a third of a second.
const STARTS: usize = 50;

/// Least time for holding in one round, and for letting go. *Ours*: with the default tick a round takes no more than two and a half.
const HOLD_LIMIT: Duration = Duration::from_secs(2);
const RELEASE_LIMIT: Duration = Duration::from_secs(3);
/// Where the look at a long queue took longer, both get as much, up to this: the next look costs as much again. *Ours*.
const LIMIT_MAX: Duration = Duration::from_secs(10);

/// Tasks of arrays that are taken back in one round. *Ours*: a second, for the reason above.
const TASKS_BACK_MAX: usize = 8;

/// Other jobs that are taken back in one round.
const BACK_MAX: usize = 50;

/// What writes, with what was seen.
pub(super) struct Holding<'a> {
    pub(super) feed: &'a mut Feed,
    pub(super) rivals: &'a mut Rivals,
    pub(super) commands: &'a Commands,
    pub(super) seen: &'a Seen,
    pub(super) release_limit_s: i64,
    /// How long it took to see that.
    pub(super) look_took: Duration,
}

impl Holding<'_> {
    fn limit(&self, least: Duration) -> Duration {
        least.max(self.look_took.min(LIMIT_MAX))
    }

    /// Holds jobs that nobody holds, takes those back that did not start, gives back those that it cannot decide about.
    pub(super) fn keep(&mut self) -> Kept {
        let began = Instant::now();
        let mut kept = Kept::default();
        self.hold_loose(began, &mut kept);
        self.take_back(&mut kept);
        self.give_back(&mut kept);
        self.let_go_apart(&mut kept);
        kept
    }

    fn carry_out(&mut self, lines: &[Line]) -> Result<Vec<String>, Error> {
        let said = self.feed.carry_out(self.commands, lines);
        self.commands.pulse.beat();
        said
    }

    /// Arrays first, for they are the most jobs with one command.
    fn hold_loose(&mut self, began: Instant, kept: &mut Kept) {
        let (is_changed, apart) = self.apart_to_hold();
        let changed: BTreeSet<ExternalId> = self.seen.named.pinned.union(&is_changed).copied().collect();
        let names = loose(&self.seen.snapshot.jobs, (&changed, &apart));
        self.hold_changed(&changed, kept);
        let mut done = 0;
        for part in names.chunks(LIST) {
            if began.elapsed() > self.limit(HOLD_LIMIT) {
                let left = names.len() - done;
                kept.notes.push(format!(
                    "{left} of {} jobs that were not held are for the next round",
                    names.len()
                ));
                return;
            }
            let part: Vec<&str> = part.iter().map(String::as_str).collect();
            let lines: Vec<Line> = Line::hold(&part, Mark::HELD).into_iter().collect();
            match self.carry_out(&lines) {
                Ok(said) => kept.notes.extend(refused(&said)),
                Err(error) => {
                    kept.notes.push(error.to_string());
                    return;
                }
            }
            done += part.len();
        }
    }

    /// Jobs that the tables cannot say and that nobody holds: those whose nodes by name are the daemon's, and the others.
    fn apart_to_hold(&self) -> (BTreeSet<ExternalId>, BTreeSet<ExternalId>) {
        let (mut changed, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (job, step) in &self.seen.apart.steps {
            match step {
                Step::Hold { is_changed: true } => changed.insert(*job),
                Step::Hold { is_changed: false } => others.insert(*job),
                _ => false,
            };
        }
        changed.extend(self.seen.named.shuns.keys().filter(|job| {
            let jobs = &self.seen.snapshot.jobs;
            jobs.iter()
                .any(|seen| seen.id == **job && seen.phase == Phase::Loose)
        }));
        (changed, others)
    }

    /// Those among them whose nodes are the daemon's get their users' back.
    fn hold_changed(&mut self, changed: &BTreeSet<ExternalId>, kept: &mut Kept) {
        let apart = |job: &JobSeen| matches!(job.phase, Phase::Loose | Phase::Foreign { .. });
        let jobs = self.seen.snapshot.jobs.iter();
        let jobs = jobs.filter(|job| apart(job) && changed.contains(&job.id));
        let named = &self.seen.named;
        let line = |job: &JobSeen| {
            let (wish, shuns) = (named.wish(job.id), named.shuns(job.id));
            Line::taken_back(&job.id.to_string(), Mark::HELD, wish, shuns)
        };
        let lines: Vec<Line> = jobs.take(BACK_MAX).filter_map(line).collect();
        self.tell(&lines, kept);
    }

    fn tell(&mut self, lines: &[Line], kept: &mut Kept) {
        if lines.is_empty() {
            return;
        }
        match self.carry_out(lines) {
            Ok(said) => kept.notes.extend(refused(&said)),
            Err(error) => kept.notes.push(error.to_string()),
        }
    }

    /// Lets jobs go that the tables cannot say: their marks first, as with a start. An array of which all waits for the same is one.
    fn let_go_apart(&mut self, kept: &mut Kept) {
        let name_of = |job: &ExternalId| {
            let name = job.to_string();
            whole_of(&name).map_or(name.clone(), str::to_owned)
        };
        let mut num_tasks: BTreeMap<String, usize> = BTreeMap::new();
        let steps = &self.seen.apart.steps;
        for job in self.seen.snapshot.jobs.iter().filter(|_| !steps.is_empty()) {
            *num_tasks.entry(name_of(&job.id)).or_default() += 1;
        }
        let mut together: BTreeMap<(String, &Step), usize> = BTreeMap::new();
        for (job, step) in steps {
            *together.entry((name_of(job), step)).or_default() += 1;
        }
        let mut done = BTreeSet::new();
        let step = |(job, step): &(ExternalId, Step)| {
            let array = name_of(job);
            let is_whole = together.get(&(array.clone(), step)) == num_tasks.get(&array);
            let name = if is_whole { array } else { job.to_string() };
            if !done.insert(name.clone()) {
                return None;
            }
            let line = match step {
                Step::Hold { .. } => None,
                Step::Without { nodes, own } => Line::without(&name, nodes, own),
                Step::Last => Line::last(&name, self.seen.named.shuns(*job)),
            };
            Some((name, line?))
        };
        let steps: Vec<(String, Line)> = steps.iter().filter_map(step).take(BACK_MAX).collect();
        let (names, lines): (Vec<String>, Vec<Line>) = steps.into_iter().unzip();
        if lines.is_empty() {
            return;
        }
        match self.carry_out(&lines) {
            Ok(said) => {
                let stay: BTreeSet<&str> = said.iter().filter_map(|text| about(text)).collect();
                let names = names.iter().map(String::as_str);
                let open: Vec<&str> = names.filter(|name| !stay.contains(name)).collect();
                let lines: Vec<Line> = Line::release_all(&open).into_iter().collect();
                kept.notes.extend(refused(&said));
                self.tell(&lines, kept);
            }
            Err(error) => kept.notes.push(error.to_string()),
        }
    }

    fn take_back(&mut self, kept: &mut Kept) {
        let snapshot = &self.seen.snapshot;
        let is_late = |job: &&JobSeen| match job.phase {
            Phase::Released { since_s } => is_overdue(since_s, snapshot.taken_s, self.release_limit_s),
            _ => false,
        };
        let (mut num_tasks, mut num_others) = (0, 0);
        let is_in_bounds = |job: &&JobSeen| {
            let (num, most) = match job.id.to_string().contains('_') {
                true => (&mut num_tasks, TASKS_BACK_MAX),
                false => (&mut num_others, BACK_MAX),
            };
            *num += 1;
            *num <= most
        };
        let late: Vec<&JobSeen> = snapshot
            .jobs
            .iter()
            .filter(is_late)
            .filter(is_in_bounds)
            .collect();
        if late.is_empty() {
            return;
        }
        let ids: Vec<ExternalId> = late.iter().map(|job| job.id).collect();
        // Where Slurm does not say why, the node is held to be the reason.
        let reasons = reasons(self.commands, &ids).unwrap_or_default();
        let mut lines = Vec::new();
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (job, name) in late.iter().zip(&names) {
            let reason = reasons.get(&job.id).map_or("", String::as_str);
            if is_unlooked(job, reason, (snapshot.taken_s, self.release_limit_s)) {
                continue;
            }
            if reason.starts_with("BeginTime") {
                // It began, was requeued, and waits for Slurm: nothing refused it, and its start ended the tries before.
                let wish = self.seen.named.wish(job.id);
                lines.extend(Line::taken_back(name, Mark::HELD, wish, None));
                continue;
            }
            let tries = job.num_tries.saturating_add(1);
            let told = why_late(job, reasons.get(&job.id), tries, self.release_limit_s);
            let until_s = snapshot.taken_s + told.pause_s;
            let wish = self.seen.named.wish(job.id);
            lines.extend(Line::taken_back(name, Mark::Held { tries, until_s }, wish, None));
            kept.late.push(told);
        }
        self.tell(&lines, kept);
    }

    fn give_back(&mut self, kept: &mut Kept) {
        let jobs = self.seen.snapshot.jobs.iter();
        let ours =
            jobs.filter(|job| matches!(&job.phase, Phase::Foreign { reason } if is_to_give_back(reason)));
        let named = |job: &JobSeen| parts::Named {
            name: job.id.to_string(),
            wish: Some(self.seen.named.wish(job.id).to_owned()),
            shuns: self.seen.named.shuns(job.id).map(str::to_owned),
        };
        let names: Vec<parts::Named> = ours
            .map(named)
            .chain(self.seen.parts.iter().cloned())
            .take(BACK_MAX)
            .collect();
        if !names.is_empty() {
            kept.notes
                .extend(give_back((self.feed, self.commands), &names, true));
        }
    }

    /// Gives back what a daemon that held jobs has left behind; what was refused.
    pub(super) fn give_back_left_over(&mut self) -> Vec<String> {
        let part = &self.seen.parts[..self.seen.parts.len().min(BACK_MAX)];
        match part.is_empty() {
            true => Vec::new(),
            false => give_back((self.feed, self.commands), part, true),
        }
    }

    /// Lets jobs go in their order; what became of each.
    pub(super) fn start_all(
        &mut self,
        starts: &[(&JobSeen, &Planned)],
        now_s: i64,
    ) -> Vec<Result<(), NotSent>> {
        let began = Instant::now();
        let mut sent = Vec::with_capacity(starts.len());
        for part in starts.chunks(STARTS) {
            if began.elapsed() > self.limit(RELEASE_LIMIT) {
                break;
            }
            match self.start_part(part, now_s) {
                Ok(part) => sent.extend(part),
                // Whatever was carried out of it is seen in the next round.
                Err(error) => {
                    sent.extend(part.iter().map(|_| Err(NotSent::refused(&error))));
                    break;
                }
            }
        }
        let no_time = || Err(NotSent::put_off("the round has no time left"));
        sent.resize_with(starts.len(), no_time);
        sent
    }

    fn start_part(
        &mut self,
        part: &[(&JobSeen, &Planned)],
        now_s: i64,
    ) -> Result<Vec<Result<(), NotSent>>, Error> {
        let mut found: Vec<Result<(), NotSent>> = part
            .iter()
            .map(|(job, planned)| can_be_had(job, planned))
            .collect();
        let names: Vec<String> = part.iter().map(|(job, _)| job.id.to_string()).collect();
        let mut lines = Vec::new();
        for (at, (job, planned)) in part.iter().enumerate().filter(|(at, _)| found[*at].is_ok()) {
            let mark = Mark::Decided {
                since_s: now_s,
                tries: job.num_tries,
            };
            let wish = self.seen.named.wish(job.id);
            lines.extend(Line::decided(
                &names[at],
                &planned.nodes,
                mark,
                wish,
                job.num_restarts > 0,
            ));
        }
        let sent = (0..part.len()).filter(|at| found[*at].is_ok());
        self.rivals.marks(sent.map(|at| part[at].0.id), now_s);
        let said = self.carry_out(&lines)?;
        note(&said, &names, &mut found, |at, text| {
            // What Slurm says where a node cannot take the job whatever happens.
            let is_of_node = text.to_lowercase().contains("node");
            let node = part[at].1.nodes.first().filter(|_| is_of_node);
            NotSent::refused(text).by(node.cloned())
        });
        let open: Vec<&str> = (0..part.len())
            .filter(|at| found[*at].is_ok())
            .map(|at| names[at].as_str())
            .collect();
        let lines: Vec<Line> = Line::release_all(&open).into_iter().collect();
        let said = self.carry_out(&lines)?;
        note(&said, &names, &mut found, |_, text| NotSent::refused(text));
        Ok(found)
    }
}

/// Notes what was said of jobs by their names.
fn note(
    said: &[String],
    names: &[String],
    found: &mut [Result<(), NotSent>],
    not: impl Fn(usize, &str) -> NotSent,
) {
    let at: BTreeMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at))
        .collect();
    for text in said {
        if let Some(at) = about(text).and_then(|name| at.get(name).copied()) {
            found[at] = Err(not(at, text));
        }
    }
}

/// Whether a placement is one that Slurm can be told.
fn can_be_had(job: &JobSeen, planned: &Planned) -> Result<(), NotSent> {
    let slices = &planned.decision.placement;
    let even = slices.iter().all(|slice| slice.num_gpus() == job.gpus_per_node);
    if planned.nodes.len() == job.num_nodes as usize && even {
        return Ok(());
    }
    let (num, gpus) = (job.num_nodes, job.gpus_per_node);
    Err(NotSent::put_off(format!(
        "{num} nodes with {gpus} GPUs each are not to be had"
    )))
}

/// Names of the jobs that nobody holds and that have no nodes of the daemon's (`changed`), those `apart` among them: of an array of
/// which none is let go or held, the array, however many tasks it has.
fn loose(jobs: &[JobSeen], (changed, apart): (&BTreeSet<ExternalId>, &BTreeSet<ExternalId>)) -> Vec<String> {
    let is_free = |job: &JobSeen| job.phase == Phase::Loose || apart.contains(&job.id);
    let is_loose = |job: &&JobSeen| is_free(job) && !changed.contains(&job.id);
    let arrays = |is: &dyn Fn(&JobSeen) -> bool| -> BTreeSet<String> {
        let of = jobs.iter().filter(|job| is(job));
        of.filter_map(|job| whole_of(&job.id.to_string()).map(str::to_owned))
            .collect()
    };
    let split = arrays(&|job| !(is_free(job) || job.phase == Phase::Running) || changed.contains(&job.id));
    let whole = arrays(&|job| is_loose(&job));
    let whole: Vec<String> = whole.difference(&split).cloned().collect();
    let known: BTreeSet<&str> = whole.iter().map(String::as_str).collect();
    let others = jobs.iter().filter(is_loose).map(|job| job.id.to_string());
    let others: Vec<String> = others
        .filter(|name| whole_of(name).is_none_or(|array| !known.contains(array)))
        .collect();
    whole.into_iter().chain(others).collect()
}

/// Gives jobs back to Slurm's own scheduler in their order, with the nodes that their users named; what was refused.
///
/// A pin that cannot be lifted is no reason to keep a job waiting; its mark stays then, and it is given back again. Who has left or
/// begun meanwhile has nothing to be given back. Released before the mark goes: whoever ends between the two leaves a job that runs,
/// with a stale mark that the next round reads.
pub(super) fn give_back(
    (feed, commands): (&mut Feed, &Commands),
    jobs: &[parts::Named],
    is_released: bool,
) -> Vec<String> {
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let wished = jobs
        .iter()
        .filter_map(|job| Line::wished(&job.name, job.wish.as_deref()?));
    let shunned = jobs
        .iter()
        .filter_map(|job| Line::shunned(&job.name, job.shuns.as_deref()?));
    let wished: Vec<Line> = wished.chain(shunned).collect();
    let release: Vec<Line> = Line::release_all(&names)
        .into_iter()
        .filter(|_| is_released)
        .collect();
    let mut refused: Vec<String> = Vec::new();
    for lines in [wished, release] {
        match feed.carry_out(commands, &lines) {
            Ok(said) => refused.extend(said.into_iter().filter(|text| !is_gone(text))),
            Err(error) => return vec![error.to_string()],
        }
        commands.pulse.beat();
    }
    let stay: BTreeSet<&str> = refused.iter().filter_map(|text| about(text)).collect();
    let rest: Vec<&str> = names.into_iter().filter(|name| !stay.contains(name)).collect();
    let unmark: Vec<Line> = Line::mark(&rest, Mark::None).into_iter().collect();
    // A mark that stays is read in the next round.
    let _ = feed.carry_out(commands, &unmark);
    commands.pulse.beat();
    refused
}

/// Gives every job that is held for the daemon back to Slurm's own scheduler, in the order of arrival: how many, and what was
/// refused. Who is held by his user goes on to be, without mark and nodes of ours. Needs no policy and no state.
///
/// # Errors
/// A queue that cannot be read.
pub fn hand_back(commands: &Commands) -> Result<(u64, Vec<String>), Error> {
    let args = ["-h", "-a", "-t", "PENDING", "-S", "V,i", "-O"];
    let fields = "JobArrayID:|,ReqNodes:|,admin_comment:|,Reason:|";
    let text = commands.run("squeue", &[&args, &[fields][..]].concat())?;
    let (of_users, jobs) = super::parts::ours(&text);
    let (mut feed, mut refused) = (Feed::default(), Vec::new());
    for (jobs, is_released) in [(&of_users, false), (&jobs, true)] {
        for part in jobs.chunks(LIST) {
            refused.extend(give_back((&mut feed, commands), part, is_released));
        }
    }
    let num = (of_users.len() + jobs.len()).saturating_sub(refused.len());
    Ok((num as u64, refused))
}
