//! Where a job stands, from the gates, marks and nodes of its pods.

use pleach_daemon::snapshot::Phase;

use crate::config::Settings;
use crate::mark::Decided;
use crate::node::unit_name;
use crate::pod::PodSeen;

/// What is to be done about the gates of a job before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing.
    None,
    /// Some of its pods were let go and others not: a release that was cut short, or pods made anew.
    Finish,
    /// The policy cannot be told of it: to be let go without a node.
    GiveBack,
}

/// Where a job stands.
#[derive(Clone, Debug)]
pub struct Stand {
    /// For the policy.
    pub phase: Phase,
    /// Pods on each unit, where it runs or was let go to.
    pub seats: Vec<(String, u32)>,
    /// For the controller.
    pub duty: Duty,
}

impl Stand {
    /// A job without places. One that is left to kube-scheduler gives its gates back.
    #[must_use]
    pub fn without_seats(phase: Phase, pods: &[PodSeen]) -> Stand {
        let is_foreign = matches!(phase, Phase::Foreign { .. });
        let duty = match is_foreign && pods.iter().any(PodSeen::is_held) {
            true => Duty::GiveBack,
            false => Duty::None,
        };
        Stand {
            phase,
            seats: Vec::new(),
            duty,
        }
    }
}

/// Where the pods stand of a job that should have `size` of them.
#[must_use]
pub fn of(pods: &[PodSeen], size: Option<u32>, settings: &Settings, now_s: i64) -> Stand {
    let foreign = |reason: &str| Phase::Foreign {
        reason: reason.into(),
    };
    let Some(first) = pods.first() else {
        return Stand::without_seats(foreign("has no pods"), pods);
    };
    if pods.iter().any(|pod| pod.is_ending) {
        let reason = "is being stopped".into();
        return Stand::without_seats(Phase::Blocked { reason }, &[]);
    }
    if let Some(why) = pods.iter().find_map(|pod| pod.strange) {
        return Stand::without_seats(foreign(why), pods);
    }
    let is_even = |pod: &PodSeen| pod.resource == first.resource && pod.num_gpus == first.num_gpus;
    if !pods.iter().all(is_even) {
        return Stand::without_seats(foreign("has pods that ask for different GPUs"), pods);
    }
    let num = |is: &dyn Fn(&PodSeen) -> bool| pods.iter().filter(|pod| is(pod)).count();
    let num_held = num(&PodSeen::is_held);
    if num_held == 0 {
        return not_held(pods, size, settings, now_s);
    }
    let has_gone = pods
        .iter()
        .any(|pod| !pod.is_held() && (pod.decided.is_some() || pod.node.is_some()));
    // Marks come before the first gate is lifted. More seats than pods: some were let go, and have ended since.
    let num_seats = pods
        .iter()
        .filter_map(|pod| pod.decided.as_ref())
        .map(Decided::num_pods)
        .max();
    if has_gone || num_seats.is_some_and(|num| num > pods.len() as u64) {
        return half_released(pods, settings);
    }
    if num_held < pods.len() {
        return Stand::without_seats(foreign("has pods that were never held"), pods);
    }
    Stand::without_seats(whole(pods, size, settings, now_s).unwrap_or(Phase::Waiting), pods)
}

/// What keeps a gang from being decided: gates of others, pods that are still missing.
fn whole(pods: &[PodSeen], size: Option<u32>, settings: &Settings, now_s: i64) -> Option<Phase> {
    let blocked = |reason: String| Some(Phase::Blocked { reason });
    if let Some(gate) = pods.iter().find_map(PodSeen::other_gate) {
        return blocked(format!("waits for the scheduling gate {gate} of somebody else"));
    }
    let youngest_s = pods.iter().map(|pod| pod.created_s).max().unwrap_or(now_s);
    let is_short = size.is_some_and(|size| pods.len() < size as usize);
    if is_short && now_s - youngest_s > settings.gang_limit_s {
        let reason = format!("waited {} s for the rest of its pods", settings.gang_limit_s);
        return Some(Phase::Foreign { reason });
    }
    match size {
        Some(size) if pods.len() < size as usize => {
            blocked(format!("waits for its pods: {} of {size} are there", pods.len()))
        }
        // A clock behind the API server's must not hold it for ever.
        None if (0..settings.settle_s).contains(&(now_s - youngest_s)) => {
            blocked("may still grow: nobody tells its size".into())
        }
        _ => None,
    }
}

/// Pods that nobody of us holds.
fn not_held(pods: &[PodSeen], size: Option<u32>, settings: &Settings, now_s: i64) -> Stand {
    let foreign = |reason: &str| Phase::Foreign {
        reason: reason.into(),
    };
    let is_decided = pods.iter().all(|pod| pod.decided.is_some());
    let is_bound = pods.iter().all(|pod| pod.node.is_some());
    let since_s = pods
        .iter()
        .filter_map(|pod| pod.decided.as_ref())
        .map(|mark| mark.at_s)
        .max();
    if is_bound && (!settings.rounds.preemption || is_decided && pods.iter().all(|pod| pod.is_owned)) {
        return Stand {
            phase: Phase::Running,
            seats: seats(pods, settings),
            duty: Duty::None,
        };
    }
    if is_bound && !pods.iter().all(|pod| pod.is_owned) {
        return Stand::without_seats(
            foreign("would be lost if it were stopped: no controller owns it"),
            pods,
        );
    }
    if is_bound {
        // Nobody who was not started by the policy may be stopped by it.
        return Stand::without_seats(foreign("was not started by the policy"), pods);
    }
    if is_decided {
        return Stand {
            phase: Phase::Released {
                since_s: since_s.unwrap_or(now_s),
            },
            seats: seats(pods, settings),
            duty: Duty::None,
        };
    }
    if pods.iter().any(|pod| pod.node.is_some() || pod.decided.is_some()) {
        return Stand::without_seats(foreign("has pods that were never held"), pods);
    }
    Stand::without_seats(whole(pods, size, settings, now_s).unwrap_or(Phase::Loose), pods)
}

/// A gang of which some pods were let go: the controller ended in the middle, or pods were made anew.
fn half_released(pods: &[PodSeen], settings: &Settings) -> Stand {
    let gone: Vec<&PodSeen> = pods.iter().filter(|pod| !pod.is_held()).collect();
    let mark = pods
        .iter()
        .filter_map(|pod| pod.decided.as_ref())
        .max_by_key(|mark| mark.at_s);
    let num_held = pods.len() - gone.len();
    let foreign = |reason: &str| {
        let reason = reason.into();
        Stand::without_seats(Phase::Foreign { reason }, pods)
    };
    let Some(mark) = mark else {
        return foreign("has pods that were never held");
    };
    if gone.iter().any(|pod| pod.decided.is_none()) {
        return foreign("has pods that were never held");
    }
    if rest(pods, &mark.seats, settings).len() < num_held {
        return foreign("has more pods than were decided about");
    }
    let is_bound = !gone.is_empty() && gone.iter().all(|pod| pod.node.is_some());
    Stand {
        phase: if is_bound {
            Phase::Running
        } else {
            Phase::Released { since_s: mark.at_s }
        },
        seats: mark.seats.clone(),
        duty: Duty::Finish,
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

fn seats(pods: &[PodSeen], settings: &Settings) -> Vec<(String, u32)> {
    let mut seats: Vec<(String, u32)> = Vec::new();
    for unit in pods.iter().filter_map(|pod| seat(pod, settings)) {
        match seats.iter_mut().find(|(other, _)| *other == unit) {
            Some((_, num)) => *num += 1,
            None => seats.push((unit, 1)),
        }
    }
    seats
}

/// Where the pods go that are still held of a gang with these seats: each to the seat of its own mark, those without one to what
/// is left. Pods beyond the seats have none.
#[must_use]
pub fn rest<'a>(
    pods: &'a [PodSeen],
    seats: &[(String, u32)],
    settings: &Settings,
) -> Vec<(&'a PodSeen, String)> {
    let mut left: Vec<(String, u32)> = seats.to_vec();
    let mut take = |unit: &str| {
        let found = left.iter_mut().find(|(other, num)| other == unit && *num > 0);
        found.map(|(_, num)| *num -= 1).is_some()
    };
    let gone = pods.iter().filter(|pod| !pod.is_held());
    for unit in gone.filter_map(|pod| seat(pod, settings)) {
        take(&unit);
    }
    let held = pods.iter().filter(|pod| pod.is_held());
    let mut own: Vec<(&PodSeen, Option<String>)> = held
        .map(|pod| (pod, seat(pod, settings).filter(|unit| take(unit))))
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
