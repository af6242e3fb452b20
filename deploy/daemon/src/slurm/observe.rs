//! Observes Slurm by its own commands, `squeue -O` and `sinfo -O`, whose fields are separated by `|` and not padded.
//!
//! The queue is read before the nodes: a job that ends or starts between the two makes a node look fuller, never emptier. A
//! text that is not what the command prints is refused with its line; a job whose line cannot be read is left alone and reported,
//! and what it holds counts as others'. Proved on Slurm 22.05.
//!
//! Tasks of an array that wait together are one job. What runs on driven nodes holds its GPUs until its limit, whatever partition it
//! is of and whatever it asked for, as for Slurm. GPUs that are in use by nothing that can be read go to no job in this round.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use pleach_scheduler::{ExternalId, IdHash};

use super::job::{Look, job};
use super::left_over::left_over;
use super::node::{Found, NODE_FIELDS, Nodes};
use super::queue;
use super::records::{Lines, each};
use super::rules::{self, AllAsks, Asks, Partitions, RuleTexts, partitions};
use super::scope::{Reach, SHOW_PARTITIONS, beside};
use super::seen::Seen;
use super::shares;
use super::site::check_partition;
use super::table::{SQUEUE, is_null, job_lines, rule_fields};
use crate::error::Error;
use crate::slurm::command::{Commands, Records};
use crate::slurm::mark::Names;
use crate::snapshot::{JobSeen, NodeSeen, Phase, Snapshot, VERSION};

/// Slurm as it is now, for the jobs that may run on the nodes of a partition. Nodes that a daemon has named for jobs (`pinned`) are not
/// their users'.
///
/// # Errors
/// A command that fails or takes too long, or output that it cannot have printed.
pub(super) fn observe(
    commands: &Commands,
    (partition, share_nodes): (&str, &[String]),
    (pinned, known): (&Names, &mut Known),
    now_s: i64,
) -> Result<Seen, Error> {
    let mut told = RulesTold::default();
    let text = told.run(commands, "scontrol", &SHOW_PARTITIONS);
    let all = partitions(&text);
    let names = beside(partition, &all);
    let mut waiting = queue::observe_again(commands, &names, &mut known.queue)?;
    let jobs = job_lines(commands, &[], &rule_fields())?;
    told.ask(commands, &names);
    told.notes.extend(rules::unread(&all, &told.reservations));
    let nodes = nodes(commands, partition)?;
    let details = match share_nodes {
        [] => Records::default(),
        _ => commands.records("scontrol", &["-o", "-d", "show", "job"], "\n")?,
    };
    let texts = Texts {
        jobs: &jobs.text,
        nodes: &nodes,
        rules: told.texts(),
        share_nodes,
        details: &details.text,
    };
    let read = read_pinned(&texts, (partition, &all), (pinned, known), now_s)?;
    let notes = std::mem::take(&mut waiting.notes).into_iter();
    let notes = notes
        .chain(jobs.notes(SQUEUE))
        .chain(details.notes("scontrol"))
        .chain(read.note)
        .chain(told.notes);
    Ok(Seen {
        snapshot: read.snapshot,
        left_over: left_over(&jobs.text),
        waiting,
        shunned: read.shunned,
        named: read.named,
        commented: read.commented,
        standing: read.standing,
        rival: None,
        notes: notes.collect(),
    })
}

/// What Slurm said of its rules.
#[derive(Debug, Default)]
struct RulesTold {
    wishes: String,
    reservations: String,
    licences: String,
    limits: String,
    /// What it did not say, and why.
    notes: Vec<String>,
}

impl RulesTold {
    /// Where it does not tell one, the order goes on without it.
    fn run(&mut self, commands: &Commands, program: &str, args: &[&str]) -> String {
        commands.run(program, args).unwrap_or_else(|error| {
            self.notes
                .push(format!("rules of the site are not known: {error}"));
            String::new()
        })
    }

    fn ask(&mut self, commands: &Commands, partitions: &[&str]) {
        let names = partitions.join(",");
        let pending = ["-h", "-a", "-p", &names, "-t", "PENDING", "-o", rules::WISHES];
        self.wishes = self.run(commands, "squeue", &pending);
        if rules::some_want_licences(&self.wishes) {
            self.licences = self.run(commands, "scontrol", &["-o", "show", "licenses"]);
        }
        self.reservations = self.run(commands, "scontrol", &["-o", "show", "reservation"]);
        self.limits = self.run(
            commands,
            "scontrol",
            &["-o", "show", "assoc_mgr", "flags=assoc,qos"],
        );
    }

    fn texts(&self) -> RuleTexts<'_> {
        RuleTexts {
            wishes: &self.wishes,
            partitions: "",
            reservations: &self.reservations,
            licences: &self.licences,
            limits: &self.limits,
        }
    }
}

fn nodes(commands: &Commands, partition: &str) -> Result<String, Error> {
    let text = commands.run("sinfo", &["-h", "-N", "-p", partition, "-O", NODE_FIELDS])?;
    if text.trim().is_empty() {
        // Slurm says so little of a partition that is not there.
        check_partition(commands, partition)?;
    }
    Ok(text)
}

/// What Slurm printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    /// Of `squeue`: a job a line.
    pub jobs: &'a str,
    /// Of `sinfo`: a node a line.
    pub nodes: &'a str,
    /// Of the site's rules; empty where there are none.
    pub rules: RuleTexts<'a>,
    /// Names of the nodes whose GPUs are given in shares.
    pub share_nodes: &'a [String],
    /// What `scontrol -o -d show job` printed, where there are such nodes.
    pub details: &'a str,
}

/// The snapshot that texts tell of.
///
/// # Errors
/// A line that the command cannot have printed; nodes set apart that are not there or have not the same number of shards on each GPU.
pub fn read(texts: &Texts<'_>, partition: &str, now_s: i64) -> Result<Snapshot, Error> {
    let known = (&Names::new(), &mut Known::default());
    let read = read_pinned(
        texts,
        (partition, &partitions(texts.rules.partitions)),
        known,
        now_s,
    )?;
    Ok(read.snapshot)
}

/// A job of a line and what it asks for; none of a line that tells of none here.
type Line = Option<(JobSeen, Arc<Asks>)>;

/// What was read in the last look.
#[derive(Debug, Default)]
pub(super) struct Known {
    queue: queue::Known,
    nodes: Lines<Option<Found>>,
    jobs: Lines<Line>,
    /// What else decides how a job is read.
    by: (Reach, Names),
    /// What jobs ask for, each once.
    asks: HashSet<Arc<Asks>>,
}

impl Known {
    /// The jobs of a text as [`job`] reads them, by arrival, what they ask for, and what is to be said of lines that cannot be read.
    fn read(&mut self, text: &str, look: Look<'_>) -> Result<(Vec<JobSeen>, AllAsks, Option<String>), Error> {
        if (&self.by.0, &self.by.1) != (look.reach, look.pinned) {
            self.by = (look.reach.clone(), look.pinned.clone());
            self.jobs = Lines::default();
        }
        let asks = &mut self.asks;
        if asks.len() > 2 * self.jobs.len() {
            asks.clear();
        }
        let one = |row, line: &str| {
            let Some((job, ask)) = job(row, line, look)? else {
                return Ok(None);
            };
            let ask = asks.get(&ask).cloned().unwrap_or_else(|| Arc::new(ask));
            asks.insert(Arc::clone(&ask));
            Ok(Some((job, ask)))
        };
        let note = each(&mut self.jobs, text, one, |_| {})?;
        // What was read is put in its order before it is copied.
        let told = self.jobs.iter().filter_map(|(_, line)| line.as_ref().as_ref());
        let mut jobs: Vec<&(JobSeen, Arc<Asks>)> = told.collect();
        let mut ids: HashSet<ExternalId, IdHash> = HashSet::default();
        ids.reserve(jobs.len());
        if let Some((twice, _)) = jobs.iter().find(|(job, _)| !ids.insert(job.id)) {
            let named = format!("names job {} for the second time", twice.id);
            return Err(Error::garbage(SQUEUE, 0, "", named));
        }
        jobs.sort_by_cached_key(|(job, _)| job.arrival());
        let asks = jobs.iter().map(|(_, ask)| Arc::clone(ask)).collect();
        let jobs = jobs.into_iter().map(|(job, _)| job.clone()).collect();
        Ok((jobs, asks, note))
    }
}

/// What texts tell.
struct Read {
    snapshot: Snapshot,
    /// As [`Seen::shunned`].
    shunned: BTreeMap<String, String>,
    /// As [`Seen::named`].
    named: BTreeSet<ExternalId>,
    /// As [`Seen::commented`].
    commented: BTreeSet<ExternalId>,
    /// A sentence for the status; empty where there is nothing to say.
    standing: String,
    /// What is to be said of lines that could not be read.
    note: Option<String>,
}

fn read_pinned(
    texts: &Texts<'_>,
    (partition, partitions): (&str, &Partitions<'_>),
    (pinned, known): (&Names, &mut Known),
    now_s: i64,
) -> Result<Read, Error> {
    let mut nodes = Nodes::read(&mut known.nodes, texts.nodes)?;
    let names = nodes.tables.iter().map(|node| node.name.as_str());
    let reach = Reach::read(partition, names, partitions);
    let look = Look {
        reach: &reach,
        gives_shares: !texts.share_nodes.is_empty(),
        pinned,
    };
    let (mut jobs, asks, note) = known.read(texts.jobs, look)?;
    if look.gives_shares {
        let per_gpu = shares::set_apart(&mut nodes.tables, texts.share_nodes, &nodes.num_shards)?;
        shares::complete(&mut jobs, &mut nodes.tables, per_gpu, texts.details);
    }
    // Jobs ask for a few different things; each is looked up among the nodes once.
    let mut known = BTreeMap::new();
    for job in jobs.iter_mut().filter(|job| job.phase == Phase::Loose) {
        shrink(job, &nodes.tables, &mut known);
    }
    let wishes = rules::wishes(texts.rules.wishes, pinned);
    let mut site = rules::complete(
        (&mut jobs, &asks),
        (&nodes.tables, &nodes.features),
        (&reach, &texts.rules, &wishes),
        now_s,
    );
    site.leaving = held_by_others(&jobs, &nodes.tables);
    let shunned = wishes.iter().filter(|(_, wishes)| !is_null(wishes.shunned));
    let those = |is: fn(&Asks) -> bool| {
        jobs.iter()
            .zip(&asks)
            .filter(move |(_, ask)| is(ask))
            .map(|(job, _)| job.id)
    };
    Ok(Read {
        named: those(|ask| ask.is_named).collect(),
        commented: those(|ask| ask.is_commented).collect(),
        shunned: shunned
            .map(|(job, wishes)| (job.to_string(), wishes.shunned.to_owned()))
            .collect(),
        snapshot: Snapshot {
            version: VERSION,
            taken_s: now_s,
            site,
            nodes: nodes.tables,
            jobs,
        },
        standing: standing(&reach, &nodes.leaking),
        note,
    })
}

/// GPUs of each node that are in use by nothing that was read: by jobs that end, by parts of GPUs, by no job where Slurm
/// miscounts.
fn held_by_others(jobs: &[JobSeen], nodes: &[NodeSeen]) -> BTreeMap<String, u32> {
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.phase == Phase::Running) {
        for node in &job.nodes {
            *used.entry(node).or_default() += job.gpus_per_node;
        }
    }
    let whole = nodes.iter().filter(|node| node.shared.is_none());
    let rest = whole.map(|node| {
        let ours = used.get(node.name.as_str()).copied().unwrap_or(0);
        (node.name.clone(), node.num_gpus_used.saturating_sub(ours))
    });
    rest.filter(|(_, num)| *num > 0).collect()
}

/// What an operator should know of the site, whatever is decided.
fn standing(reach: &Reach, leaking: &[String]) -> String {
    let leaking = match leaking {
        [] => String::new(),
        nodes => format!(
            "idle nodes of whose GPUs Slurm counts some as used, so no job gets them: {} (22.05 forgets what ended while its controller \
             was away)",
            nodes.join(", ")
        ),
    };
    let told = [reach.tiers(), leaking];
    told.into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}

/// What is asked of a node: type, GPUs on each, nodes, whether shares.
type Demand = (Option<String>, u32, u32, bool);

/// Makes a job that even the empty cluster could not hold as asked the largest that it could hold: Slurm may start it all the same, on
/// nodes of different sizes or types, and it is ranked as what comes nearest.
fn shrink(job: &mut JobSeen, nodes: &[NodeSeen], known: &mut BTreeMap<Demand, Option<Demand>>) {
    let asked: Demand = (
        job.gpu_type.clone(),
        job.gpus_per_node,
        job.num_nodes,
        job.share.is_some(),
    );
    let nearest = known
        .entry(asked)
        .or_insert_with_key(|asked| nearest(asked, nodes));
    if let Some((gpu_type, gpus_per_node, num_nodes, _)) = nearest.clone() {
        (job.gpu_type, job.gpus_per_node, job.num_nodes) = (gpu_type, gpus_per_node, num_nodes);
    }
}

/// The demand that is nearest to one that does not fit; none where it fits or where there is no such node at all.
fn nearest(asked: &Demand, nodes: &[NodeSeen]) -> Option<Demand> {
    let (gpu_type, each, num, is_share) = asked;
    let mut sizes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.shared.is_some() == *is_share) {
        sizes.entry(&node.gpu_type).or_default().push(node.num_gpus);
    }
    let named = |kind: &&str| gpu_type.as_deref().is_none_or(|asked| asked == *kind);
    let is_known = sizes.keys().any(named);
    let open = || sizes.iter().filter(|(kind, _)| !is_known || named(kind));
    let with = |sizes: &[u32], each: u32| sizes.iter().filter(|size| **size >= each).count() as u32;
    if is_known && open().any(|(_, sizes)| with(sizes, *each) >= *num) {
        return None;
    }
    let most = open().flat_map(|(_, sizes)| sizes).max()?;
    let each = *each.min(most);
    let num = open().map(|(_, sizes)| with(sizes, each)).max()?.min(*num);
    Some((gpu_type.clone().filter(|_| is_known), each, num.max(1), *is_share))
}

#[cfg(test)]
#[path = "observe_tests.rs"]
mod tests;
