//! The places of a gang: where its pods are or go, and which of its places are kept for pods that were lost.

use std::collections::BTreeMap;

use pleach_daemon::record::Planned;
use pleach_daemon::snapshot::JobSeen;
use pleach_scheduler::ExternalId;

use crate::clock::Clock;
use crate::config::Settings;
use crate::mark::Decided;
use crate::node::unit_name;
use crate::pod::PodSeen;

/// Pods on each unit.
pub type Seats = Vec<(String, u32)>;

/// A place that no pod of a running gang has any more, and since when, Unix time, s.
pub type Lost = Vec<(String, i64)>;

/// What a look leaves to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Places that running gangs have lost.
    pub lost: BTreeMap<ExternalId, Lost>,
    /// Of gangs that wait and whose size is not known: their pods, and when these last became fewer, Unix time, s.
    pub sizes: BTreeMap<ExternalId, (usize, i64)>,
    /// Jobs whose marks have done their work, by UID, and when they were let go, Unix time, s: no request takes these marks off.
    pub begun: BTreeMap<String, i64>,
}

impl Traces {
    /// When a gang that has `num` pods now last had more.
    pub(crate) fn shrank_s(&self, id: ExternalId, num: usize, now_s: i64) -> i64 {
        match self.sizes.get(&id) {
            Some((before, _)) if *before > num => now_s,
            known => known.map_or(i64::MIN, |(_, shrank_s)| *shrank_s),
        }
    }
}

/// Where a pod is, or goes.
fn seat(pod: &PodSeen, settings: &Settings) -> Option<String> {
    match (&pod.node, &pod.decided) {
        (Some(node), _) => Some(unit_name(node, &pod.resource, settings)),
        (None, Some(mark)) => Some(mark.seat.clone()),
        (None, None) => None,
    }
}

/// Where these pods are or go.
#[must_use]
pub fn of<'a>(pods: impl IntoIterator<Item = &'a PodSeen>, settings: &Settings) -> Seats {
    let mut seats = Seats::new();
    for unit in pods.into_iter().filter_map(|pod| seat(pod, settings)) {
        add(&mut seats, &unit);
    }
    seats
}

/// One place more.
pub fn add(seats: &mut Seats, unit: &str) {
    match seats.iter_mut().find(|(other, _)| other == unit) {
        Some((_, num)) => *num += 1,
        None => seats.push((unit.to_owned(), 1)),
    }
}

/// The newest mark of a gang.
#[must_use]
pub fn newest(pods: &[PodSeen]) -> Option<&Decided> {
    let marks = pods.iter().filter_map(|pod| pod.decided.as_ref());
    marks.max_by_key(|mark| mark.at_s)
}

/// Whether the gang runs and every pod of it that has no node was made after another one was bound: in the place of one that was
/// lost.
#[must_use]
pub fn has_come_back(pods: &[PodSeen]) -> bool {
    let begun = pods.iter().filter(|pod| pod.node.is_some());
    let Some(first_s) = begun.filter_map(|pod| pod.bound_s).min() else {
        return false;
    };
    let mut waiting = pods.iter().filter(|pod| pod.node.is_none()).peekable();
    waiting.peek().is_some() && waiting.all(|pod| pod.created_s > first_s)
}

/// The places that no pod has any more of a gang that was given `seats`; those that were lost before keep their time.
#[must_use]
pub fn lost(
    seats: &Seats,
    pods: &[PodSeen],
    before: &[(String, i64)],
    settings: &Settings,
    now_s: i64,
) -> Lost {
    let mut left = seats.clone();
    for unit in pods
        .iter()
        .filter(|pod| !pod.is_held())
        .filter_map(|pod| seat(pod, settings))
    {
        take(&mut left, &unit);
    }
    let mut known: Vec<Option<&(String, i64)>> = before.iter().map(Some).collect();
    let mut lost = Lost::new();
    for (unit, num) in left {
        for _ in 0..num {
            let found = known
                .iter_mut()
                .find(|entry| entry.is_some_and(|(other, _)| *other == unit));
            // A clock that was set back must not keep a place for ever.
            let since_s = found
                .and_then(Option::take)
                .map_or(now_s, |(_, since_s)| (*since_s).min(now_s));
            lost.push((unit.clone(), since_s));
        }
    }
    lost
}

/// The places that are kept for `num` pods: those that were lost last, within the limit, on units that take jobs.
#[must_use]
pub fn kept<'a>(
    lost: &'a [(String, i64)],
    num: usize,
    takes_jobs: &dyn Fn(&str) -> bool,
    settings: &Settings,
    clock: &Clock,
) -> Vec<&'a str> {
    let is_over = |since_s: i64| clock.is_past(since_s.saturating_add(settings.seat_limit_s));
    let is_kept = |entry: &&(String, i64)| !is_over(entry.1) && takes_jobs(&entry.0);
    let mut found: Vec<&(String, i64)> = lost.iter().filter(is_kept).collect();
    found.sort_by_key(|(_, since_s)| std::cmp::Reverse(*since_s));
    found
        .into_iter()
        .take(num)
        .map(|(unit, _)| unit.as_str())
        .collect()
}

/// Takes a place; whether there was one.
fn take(left: &mut Seats, unit: &str) -> bool {
    let found = left.iter_mut().find(|(other, num)| other == unit && *num > 0);
    found.map(|(_, num)| *num -= 1).is_some()
}

/// Where the pods go that are still held of a gang with these seats: each to the seat of its own mark, those without one to what
/// is left. Pods beyond the seats have none.
#[must_use]
pub fn rest<'a>(
    pods: &'a [PodSeen],
    seats: &[(String, u32)],
    settings: &Settings,
) -> Vec<(&'a PodSeen, String)> {
    let mut left: Seats = seats.to_vec();
    let gone = pods.iter().filter(|pod| !pod.is_held());
    for unit in gone.filter_map(|pod| seat(pod, settings)) {
        take(&mut left, &unit);
    }
    let held = pods.iter().filter(|pod| pod.is_held());
    let mut own: Vec<(&PodSeen, Option<String>)> = held
        .map(|pod| (pod, seat(pod, settings).filter(|unit| take(&mut left, unit))))
        .collect();
    for (_, place) in own.iter_mut().filter(|(_, place)| place.is_none()) {
        if let Some((unit, num)) = left.iter_mut().find(|(_, num)| *num > 0) {
            *num -= 1;
            *place = Some(unit.clone());
        }
    }
    own.into_iter()
        .filter_map(|(pod, place)| Some((pod, place?)))
        .collect()
}

/// Pods on each unit of a placement.
pub(crate) fn placed(job: &JobSeen, pods: &[PodSeen], planned: &Planned) -> Result<Seats, String> {
    let each = job.gpus_per_node.max(1);
    let mut seats = Vec::new();
    for (unit, slice) in planned.nodes.iter().zip(&planned.decision.placement) {
        if !slice.num_gpus().is_multiple_of(each) {
            return Err(format!(
                "{unit} has {} GPU(s) for pods of {each}",
                slice.num_gpus()
            ));
        }
        seats.push((unit.clone(), slice.num_gpus() / each));
    }
    let num: u32 = seats.iter().map(|(_, num)| num).sum();
    if num as usize != pods.len() || pods.iter().any(|pod| !pod.is_held()) {
        return Err(format!("{num} seats for {} pods that are held", pods.len()));
    }
    Ok(seats)
}
