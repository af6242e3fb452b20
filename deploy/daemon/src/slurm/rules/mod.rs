//! The rules of a site as Slurm tells them: which nodes are closed to a job, and what of a limit it takes.
//!
//! What is not read here Slurm judges at the start: it passes the job over, and the others start.

mod book;
mod licences;
mod limits;
mod partition;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pleach_dealing::slurm;
use pleach_scheduler::ExternalId;

use self::book::Book;
use self::limits::{Limits, Payer};
use self::partition::Reservation;
use super::scope::Reach;
use super::table::{is_null, named_id};
use crate::slurm::mark::Names;
use crate::snapshot::{JobSeen, NodeSeen, Phase, Site, Terms};
use pleach_site::slurm::{expand, fold, sums};

pub(crate) use self::partition::{Partition, Partitions, partitions, unread};

/// What Slurm prints of its rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleTexts<'a> {
    /// Of each waiting job its name, the nodes that its user shuns, licences, features: `squeue` with [`WISHES`].
    pub wishes: &'a str,
    /// `scontrol -a -o show partition`: all of them.
    pub partitions: &'a str,
    /// `scontrol -o show reservation`.
    pub reservations: &'a str,
    /// `scontrol -o show licenses`; empty where no job asks for any.
    pub licences: &'a str,
    /// `scontrol -o show assoc_mgr flags=assoc,qos`.
    pub limits: &'a str,
}

/// What is asked of `squeue -o` about waiting jobs. Features and licences may hold any separator that is printed.
pub const WISHES: &str = "%i\u{1f}%x\u{1f}%W\u{1f}%f";

/// A line of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wishes<'a> {
    pub(super) shunned: &'a str,
    licences: &'a str,
    features: &'a str,
}

/// How a line ends that says of no wish: most do.
const NO_WISH: &str = "\u{1f}\u{1f}(null)\u{1f}(null)";

/// Whether some job asks for licences, by what [`WISHES`] found.
pub(crate) fn some_want_licences(wishes: &str) -> bool {
    let is_one = |line: &str| {
        !line.ends_with(NO_WISH) && line.split('\u{1f}').nth(2).is_some_and(|text| !is_null(text))
    };
    wishes.lines().any(is_one)
}

/// What a job asks for beside GPUs and CPUs, as `squeue` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asks {
    pub(crate) user: String,
    pub(crate) account: String,
    pub(crate) tres: String,
    pub(crate) qos: String,
    /// CPUs that come with each GPU; none: none are said.
    pub(crate) cpus_per_gpu: Option<u64>,
    /// In all, MiB.
    pub(crate) memory_mib: u64,
    /// Nodes that its user names, where those are all that it may have.
    pub(crate) wish: Vec<String>,
    /// Whether no nodes are to be named for it: its user names some, or it is not said as it was asked for.
    pub(crate) is_named: bool,
    /// Whether its comment is an operator's.
    pub(crate) is_commented: bool,
    /// Whether it wants its nodes for itself.
    pub(crate) is_exclusive: bool,
    /// The partitions that it names, separated by commas.
    pub(crate) partitions: String,
    /// Why Slurm passes it over, where that is a limit of its association or QOS.
    pub(crate) refusal: String,
}

/// The same of all jobs, in their order.
pub(super) type AllAsks = Vec<Arc<Asks>>;

impl Asks {
    /// Whose limit it is, as far as the reason tells.
    fn refused(&self) -> (&str, &str) {
        match self.refusal.as_str() {
            reason if reason.starts_with("QOSGrp") => (&self.qos, ""),
            reason if reason.starts_with("QOS") => (&self.qos, &self.user),
            _ => (&self.account, &self.user),
        }
    }
}

/// Completes what was seen: CPUs and memory of jobs, the rules and the sums that hold for those that wait.
pub(super) fn complete(
    (jobs, asks): (&mut [JobSeen], &AllAsks),
    (nodes, features): (&[NodeSeen], &[String]),
    (reach, texts, wishes): (&Reach, &RuleTexts<'_>, &BTreeMap<ExternalId, Wishes<'_>>),
    now_s: i64,
) -> Site {
    let mut rules = Rules {
        reach,
        reservations: whole_nodes(partition::reservations(texts.reservations), nodes),
        limits: Limits::read(texts.limits),
        licences: licences::free(texts.licences),
        names: nodes.iter().map(|node| node.name.as_str()).collect(),
        features: match wishes.is_empty() {
            true => Vec::new(),
            false => features.iter().map(|text| text.split(',').collect()).collect(),
        },
        lacking: BTreeMap::new(),
        now_s,
    };
    let mut book = Book::default();
    // Tasks of arrays ask for the same: what was found for one holds for all.
    let mut known = BTreeMap::new();
    for (job, ask) in jobs.iter_mut().zip(asks) {
        complete_demand(job, ask);
        if job.phase != Phase::Loose {
            continue;
        }
        let of_others = ask
            .is_exclusive
            .then(|| make_exclusive(job, &ask.wish, nodes))
            .flatten();
        let asked = Asked {
            ask,
            wishes: wishes.get(&job.id).copied().unwrap_or_default(),
            of_others,
            limit_s: job.limit_s,
            num_nodes: job.num_nodes,
            num_cpus: job.num_cpus,
        };
        // What is asked for is there once.
        let own = (Arc::as_ptr(ask), job.limit_s, job.num_nodes, job.num_cpus);
        let key = (own, asked.wishes, asked.of_others.clone());
        let found: &(Terms, Option<String>) = known.entry(key).or_insert_with(|| {
            let never = rules.note(&asked, &mut book);
            (book.terms(), never)
        });
        job.terms = Terms {
            memory_mib: job.terms.memory_mib,
            ..found.0.clone()
        };
        if let Some(reason) = found.1.clone() {
            job.phase = Phase::Blocked { reason };
        }
    }
    let site = book.site();
    pause(jobs, asks, &site);
    site
}

/// Jobs of associations that Slurm refuses for a limit that is not read here wait: those that it refuses, and others of the same that
/// ask for as many GPUs. Where what is read says why, it says of which.
fn pause(jobs: &mut [JobSeen], asks: &AllAsks, site: &Site) {
    if asks.iter().all(|ask| ask.refusal.is_empty()) {
        return;
    }
    let left: Vec<u64> = site.allowances.iter().map(|allowance| allowance.left).collect();
    let mut refused: BTreeMap<(&str, &str), (u32, &str)> = BTreeMap::new();
    let loose = jobs.iter().zip(asks).filter(|(job, _)| job.phase == Phase::Loose);
    for (job, ask) in loose {
        if ask.refusal.is_empty() || ask.account.is_empty() {
            continue;
        }
        if job.terms.lacking(&left).is_none() {
            let least = refused.entry(ask.refused()).or_insert((u32::MAX, &ask.refusal));
            least.0 = least.0.min(job.num_gpus());
        }
    }
    if refused.is_empty() {
        return;
    }
    let loose = jobs
        .iter_mut()
        .zip(asks)
        .filter(|(job, _)| job.phase == Phase::Loose);
    for (job, ask) in loose {
        let (user, account, qos) = (ask.user.as_str(), ask.account.as_str(), ask.qos.as_str());
        let mut paused = [(account, user), (qos, user), (qos, "")]
            .into_iter()
            .filter_map(|whose| refused.get(&whose));
        if let Some((_, reason)) = paused.find(|(least, _)| job.num_gpus() >= *least) {
            let reason = format!("is of an association or QOS of which Slurm refuses jobs ({reason})");
            job.phase = Phase::Blocked { reason };
        }
    }
}

/// All that rules look at of a job.
struct Asked<'a> {
    limit_s: Option<i64>,
    num_cpus: u32,
    num_nodes: u32,
    ask: &'a Asks,
    wishes: Wishes<'a>,
    /// Nodes of another size than the job that wants its nodes for itself has.
    of_others: Option<String>,
}

/// The rules of a site at one moment.
struct Rules<'a> {
    reach: &'a Reach,
    reservations: Vec<Reservation>,
    limits: Limits<'a>,
    licences: BTreeMap<&'a str, u64>,
    /// Of the nodes. `[node]`
    names: Vec<&'a str>,
    features: Vec<Vec<&'a str>>,
    /// Nodes that lack what is asked for, as a list.
    lacking: BTreeMap<&'a str, String>,
    now_s: i64,
}

impl<'a> Rules<'a> {
    /// Notes in the book what holds for a job; why it can never start, if so, as what "it" does.
    fn note(&mut self, asked: &Asked<'a>, book: &mut Book) -> Option<String> {
        self.close(asked, book);
        let on_node = asked.num_cpus.div_ceil(asked.num_nodes.max(1));
        let ask = asked.ask;
        let (name, partition, nodes) = self.reach.of(&ask.partitions);
        let never = partition.forbids(asked.limit_s, asked.num_nodes, on_node);
        if let Some(nodes) = nodes {
            let others = self.names.iter().copied().filter(|name| !nodes.contains(*name));
            book.closes(&fold(others), format!("is not of its partition ({name})"));
        }
        let mut payer = Payer {
            user: &ask.user,
            account: &ask.account,
            partition: name,
            qos: &ask.qos,
            takes: BTreeMap::new(),
            limit_s: asked.limit_s,
        };
        let mut of_limits = None;
        if self.limits.bind(&payer) {
            payer.takes = sums(&ask.tres);
            payer.takes.insert("cpu", u64::from(asked.num_cpus));
            of_limits = self.limits.note(&payer, book);
        }
        let never = never.or(of_limits);
        for (name, num) in slurm::licences(asked.wishes.licences).unwrap_or_default() {
            let left = self.licences.get(name).copied().unwrap_or(u64::MAX);
            book.takes(&format!("licences {name}"), left, num);
        }
        never
    }

    /// Notes the nodes that are closed to it.
    fn close(&mut self, asked: &Asked<'a>, book: &mut Book) {
        let (
            ask,
            Wishes {
                shunned,
                features: wanted,
                ..
            },
        ) = (asked.ask, asked.wishes);
        if let Some(others) = &asked.of_others {
            let why = "is of another size than most, and it asks for nodes of its own";
            book.closes(others, why.to_owned());
        }
        if !is_null(wanted) && slurm::matching::<&str>(wanted, &[]).is_some() {
            let (names, features) = (&self.names, &self.features);
            let closed = self.lacking.entry(wanted).or_insert_with(|| {
                let has = slurm::matching(wanted, features).unwrap_or_default();
                let lacks = names.iter().zip(has).filter(|(_, has)| !has);
                fold(lacks.map(|(name, _)| *name))
            });
            book.closes(closed, format!("lacks what it asks for: {wanted}"));
        }
        if !ask.wish.is_empty() {
            let is_named = |name: &str| ask.wish.iter().any(|wish| wish == name);
            let others = fold(self.names.iter().copied().filter(|name| !is_named(name)));
            let wish = fold(ask.wish.iter().map(String::as_str));
            book.closes(&others, format!("is not among those that it names ({wish})"));
        }
        // What is no list Slurm judges at the start.
        if !is_null(shunned) && expand(shunned).is_ok() {
            book.closes(shunned, "is excluded by its user".to_owned());
        }
        for reservation in &self.reservations {
            if reservation.meets(self.now_s, asked.limit_s) {
                book.closes(&reservation.nodes, reservation.told(self.now_s));
            }
        }
    }
}

/// CPUs and memory of a job.
fn complete_demand(job: &mut JobSeen, ask: &Asks) {
    if let Some(per_gpu) = ask.cpus_per_gpu.filter(|_| job.phase != Phase::Running) {
        let num_cpus = per_gpu.saturating_mul(u64::from(job.num_gpus()));
        job.num_cpus = u32::try_from(num_cpus).unwrap_or(u32::MAX).max(job.num_cpus);
    }
    let on_node = ask.memory_mib.div_ceil(u64::from(job.num_nodes.max(1)));
    job.terms.memory_mib = u32::try_from(on_node).unwrap_or(u32::MAX);
}

/// Makes a job that wants its nodes for itself one that asks for all of them: those of the most frequent size that would do, of those
/// that it names if it does; the others, as a list. None where there is no such size.
fn make_exclusive(job: &mut JobSeen, wish: &[String], nodes: &[NodeSeen]) -> Option<String> {
    let size = |node: &NodeSeen| (node.num_gpus, node.host.map_or(0, |host| host.num_cpus));
    let named = |node: &NodeSeen| job.gpu_type.as_deref().is_none_or(|asked| asked == node.gpu_type);
    let mut sizes: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for node in nodes
        .iter()
        .filter(|node| node.num_gpus >= job.gpus_per_node && named(node))
        .filter(|node| wish.is_empty() || wish.contains(&node.name))
    {
        *sizes.entry(size(node)).or_default() += 1;
    }
    // Of two that are as frequent the smaller.
    let (most, _) = sizes.into_iter().rev().max_by_key(|(_, num)| *num)?;
    let others = nodes
        .iter()
        .filter(|node| size(node) != most)
        .map(|node| node.name.as_str());
    let others = fold(others);
    (job.gpus_per_node, job.num_cpus) = (most.0, most.1.saturating_mul(job.num_nodes));
    Some(others)
}

/// Reservations of whole nodes that are there; of parts of nodes Slurm says at the start whether a job fits beside them.
fn whole_nodes(reservations: Vec<Reservation>, nodes: &[NodeSeen]) -> Vec<Reservation> {
    if reservations.is_empty() {
        return reservations;
    }
    let cpus: BTreeMap<&str, u64> = nodes
        .iter()
        .map(|node| {
            (
                node.name.as_str(),
                node.host.map_or(0, |host| u64::from(host.num_cpus)),
            )
        })
        .collect();
    let is_whole = |reservation: &Reservation| {
        let Ok(names) = expand(&reservation.nodes) else {
            return false;
        };
        let names: BTreeSet<String> = names.into_iter().collect();
        let ours: Vec<u64> = names
            .iter()
            .filter_map(|name| cpus.get(name.as_str()).copied())
            .collect();
        // Nodes of other partitions have cores among them too.
        !ours.is_empty() && reservation.num_cores >= ours.iter().sum::<u64>() / 2
    };
    reservations.into_iter().filter(is_whole).collect()
}

/// What users wish of waiting jobs that wish anything; of those that are in `pinned` with a list that is what they shun. Lines that cannot
/// be read are none.
pub(super) fn wishes<'a>(text: &'a str, pinned: &'a Names) -> BTreeMap<ExternalId, Wishes<'a>> {
    let one = |line| {
        let mut fields = str::splitn(line, 4, '\u{1f}');
        let mut next = || fields.next();
        let (id, shunned, licences, features) = (next()?, next()?, next()?, next()?);
        let own = pinned.get(id).and_then(|own| own.as_deref());
        let wishes = Wishes {
            shunned: own.unwrap_or(shunned),
            licences,
            features,
        };
        let has_some = [wishes.shunned, licences, features]
            .iter()
            .any(|text| !is_null(text));
        has_some.then_some((named_id(id)?, wishes))
    };
    // What a pinned job shuns does not stand in its line.
    let may_wish = |line: &&str| !pinned.is_empty() || !line.ends_with(NO_WISH);
    text.lines().filter(may_wish).filter_map(one).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
