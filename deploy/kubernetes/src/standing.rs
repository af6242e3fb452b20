//! Where a job stands, from the gates, marks and nodes of its pods.

use pleach_daemon::snapshot::Phase;

use crate::clock::Clock;
use crate::config::Settings;
use crate::mark::Decided;
use crate::pod::PodSeen;
use crate::seats::{self, Lost, Seats, rest};

/// What is to be done about the gates of a job before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing.
    None,
    /// Some of its pods were let go and others not: a release that was cut short, or pods made anew.
    Finish,
    /// It is not for the policy: to be let go without a node.
    GiveBack,
    /// Its Jobs are to be suspended: their pods wait, or were not made.
    Suspend,
    /// The tables have no place for it: to be let go without a node once no job that came before it waits.
    GiveBackInTurn,
}

/// Where a job stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// For the policy.
    pub phase: Phase,
    /// Pods on each unit, where it runs or was let go to, with the places that are kept for pods that were lost.
    pub seats: Seats,
    /// For the controller.
    pub duty: Duty,
    /// Places of a running gang that no pod has any more.
    pub lost: Lost,
}

/// What is known of a gang beside its pods.
#[derive(Clone, Copy)]
pub struct Gang<'a> {
    /// Pods that it should have; none where that is not known.
    pub size: Option<u32>,
    /// When its pods last became fewer while it waited, Unix time, s; the least number where they never did.
    pub shrank_s: i64,
    /// Places that were lost by the last look.
    pub lost: &'a [(String, i64)],
    /// What was decided about pods that were not made yet: the mark of its Job, while that counts.
    pub mark: Option<&'a Decided>,
    /// Whether its pods are there, and not only the Jobs that would make them.
    pub is_made: bool,
    /// Whether it is no gang but a lease, which is never stopped.
    pub is_lease: bool,
    /// Whether a unit takes jobs.
    pub takes_jobs: &'a dyn Fn(&str) -> bool,
    /// The settings.
    pub settings: &'a Settings,
    /// The time.
    pub clock: &'a Clock,
}

impl Gang<'_> {
    /// For the next look, where it waits and its size is not known: its pods, and when these last became fewer.
    pub(crate) fn waiting_size(&self, pods: &[PodSeen]) -> Option<(usize, i64)> {
        let waits = self.size.is_none() && self.is_made && pods.iter().all(PodSeen::is_held);
        waits.then_some((pods.len(), self.shrank_s))
    }
}

impl Standing {
    /// A job without places. One that is left to kube-scheduler gives its gates back.
    #[must_use]
    pub fn without_seats(phase: Phase, pods: &[PodSeen]) -> Standing {
        let is_foreign = matches!(phase, Phase::Foreign { .. });
        let duty = match is_foreign && pods.iter().any(PodSeen::is_held) {
            true => Duty::GiveBack,
            false => Duty::None,
        };
        Standing {
            phase,
            seats: Vec::new(),
            duty,
            lost: Vec::new(),
        }
    }
}

/// Where the pods of a job stand.
#[must_use]
pub fn of(pods: &[PodSeen], gang: &Gang<'_>) -> Standing {
    let foreign = |reason: &str| Phase::Foreign {
        reason: reason.into(),
    };
    let Some(first) = pods.first() else {
        return Standing::without_seats(foreign("has no pods"), pods);
    };
    if pods.iter().any(|pod| pod.is_ending) {
        let reason = "is being stopped".into();
        return Standing::without_seats(Phase::Blocked { reason }, &[]);
    }
    if let Some(why) = pods.iter().find_map(|pod| pod.strange) {
        return Standing::without_seats(foreign(why), pods);
    }
    let is_even = |pod: &PodSeen| pod.resource == first.resource && pod.num_gpus == first.num_gpus;
    if !pods.iter().all(is_even) {
        return Standing::without_seats(foreign("has pods that ask for different GPUs"), pods);
    }
    let num = |is: &dyn Fn(&PodSeen) -> bool| pods.iter().filter(|pod| is(pod)).count();
    let num_held = num(&PodSeen::is_held);
    if num_held == 0 {
        return not_held(pods, gang);
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
        return half_released(pods, gang);
    }
    if num_held < pods.len() {
        return Standing::without_seats(foreign("has pods that were never held"), pods);
    }
    if let Some(mark) = gang.mark.filter(|mark| mark.num_pods() >= pods.len() as u64) {
        let is_whole = !gang.is_made || mark.num_pods() == pods.len() as u64;
        return Standing {
            phase: Phase::Released { since_s: mark.at_s },
            seats: mark.seats.clone(),
            duty: if is_whole { Duty::Finish } else { Duty::None },
            lost: Vec::new(),
        };
    }
    Standing::without_seats(whole(pods, gang).unwrap_or(Phase::Waiting), pods)
}

/// What keeps a gang from being decided: gates of others, pods that are still missing.
pub(crate) fn whole(pods: &[PodSeen], gang: &Gang<'_>) -> Option<Phase> {
    let Gang {
        size,
        shrank_s,
        settings,
        clock,
        ..
    } = *gang;
    let blocked = |reason: String| Some(Phase::Blocked { reason });
    if let Some(gate) = pods.iter().find_map(PodSeen::other_gate) {
        return blocked(format!("waits for the scheduling gate {gate} of somebody else"));
    }
    let youngest_s = pods.iter().map(|pod| pod.created_s).max().unwrap_or(i64::MAX);
    let is_short = size.is_some_and(|size| pods.len() < size as usize);
    if is_short && clock.is_past(youngest_s.saturating_add(settings.gang_limit_s)) {
        let reason = format!("waited {} s for the rest of its pods", settings.gang_limit_s);
        return Some(Phase::Foreign { reason });
    }
    match size {
        Some(size) if pods.len() < size as usize => {
            blocked(format!("waits for its pods: {} of {size} are there", pods.len()))
        }
        // A clock behind the API server's must not hold it for ever.
        None if clock.is_within(youngest_s.max(shrank_s), settings.settle_s) => {
            blocked("may still grow: its size is not stated".into())
        }
        _ => None,
    }
}

/// Pods that our gate does not hold.
fn not_held(pods: &[PodSeen], gang: &Gang<'_>) -> Standing {
    let Gang { settings, clock, .. } = *gang;
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
    let may_be_stopped = settings.rounds.preemption && !gang.is_lease;
    if is_bound && (!may_be_stopped || is_decided && pods.iter().all(|pod| pod.is_owned)) {
        return running(pods, gang);
    }
    if is_bound && !pods.iter().all(|pod| pod.is_owned) {
        return Standing::without_seats(
            foreign("would be lost if it were stopped: no controller owns it"),
            pods,
        );
    }
    if is_bound {
        // A job that the policy did not start may not be stopped by it.
        return Standing::without_seats(foreign("was not started by the policy"), pods);
    }
    if is_decided && seats::has_come_back(pods) {
        return running(pods, gang);
    }
    if is_decided {
        return Standing {
            phase: Phase::Released {
                since_s: since_s.unwrap_or_else(|| clock.now_s()),
            },
            seats: seats::of(pods, settings),
            duty: Duty::None,
            lost: Vec::new(),
        };
    }
    if pods.iter().any(|pod| pod.node.is_some() || pod.decided.is_some()) {
        return Standing::without_seats(foreign("has pods that were never held"), pods);
    }
    Standing::without_seats(whole(pods, gang).unwrap_or(Phase::Loose), pods)
}

/// A gang that runs. Places of pods that were lost are kept for a while, for those that are made in their stead.
fn running(pods: &[PodSeen], gang: &Gang<'_>) -> Standing {
    let Gang { settings, clock, .. } = *gang;
    let mut gone = pods.iter().filter(|pod| !pod.is_held());
    let mut seats = seats::of(gone.clone(), settings);
    let num_held = pods.iter().filter(|pod| pod.is_held()).count();
    let mark = seats::newest(pods).filter(|_| gone.all(|pod| pod.decided.is_some()));
    let lost = mark.map_or_else(Vec::new, |mark| {
        seats::lost(&mark.seats, pods, gang.lost, settings, clock.kept_s())
    });
    // No place has to be kept for pods that no controller makes anew.
    let num_all = match pods.iter().all(|pod| pod.is_owned) {
        true => gang.size.map_or(usize::MAX, |size| size as usize),
        false => 0,
    };
    let num_missing = num_all
        .saturating_sub(pods.len())
        .min(lost.len().saturating_sub(num_held));
    let kept = seats::kept(&lost, num_held + num_missing, gang.takes_jobs, settings, clock);
    if kept.len() < num_held {
        let reason = match lost.iter().all(|(unit, _)| (gang.takes_jobs)(unit)) {
            _ if lost.len() < num_held => "has more pods than were decided about",
            true => "has pods that were made anew after their places were given to others",
            false => "has pods that were made anew, and the nodes of the lost ones take no jobs",
        };
        let reason = reason.into();
        return Standing {
            lost,
            ..Standing::without_seats(Phase::Foreign { reason }, pods)
        };
    }
    kept.into_iter().for_each(|unit| seats::add(&mut seats, unit));
    Standing {
        phase: Phase::Running,
        seats,
        duty: if num_held > 0 { Duty::Finish } else { Duty::None },
        lost,
    }
}

/// A gang of which some pods were let go: the controller ended in the middle, or pods were made anew.
fn half_released(pods: &[PodSeen], gang: &Gang<'_>) -> Standing {
    let gone: Vec<&PodSeen> = pods.iter().filter(|pod| !pod.is_held()).collect();
    let num_held = pods.len() - gone.len();
    let foreign = |reason: &str| {
        let reason = reason.into();
        Standing::without_seats(Phase::Foreign { reason }, pods)
    };
    let Some(mark) = seats::newest(pods) else {
        return foreign("has pods that were never held");
    };
    if gone.iter().any(|pod| pod.decided.is_none()) {
        return foreign("has pods that were never held");
    }
    if seats::has_come_back(pods) {
        return running(pods, gang);
    }
    if rest(pods, &mark.seats, gang.settings).len() < num_held {
        return foreign("has more pods than were decided about");
    }
    let is_bound = !gone.is_empty() && gone.iter().all(|pod| pod.node.is_some());
    Standing {
        phase: if is_bound {
            Phase::Running
        } else {
            Phase::Released { since_s: mark.at_s }
        },
        seats: mark.seats.clone(),
        duty: Duty::Finish,
        lost: Vec::new(),
    }
}
