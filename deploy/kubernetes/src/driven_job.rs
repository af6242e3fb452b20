//! One job: its pods, where it stands, and what the tables and an operator see of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use pleach_daemon::fleet;
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Terms};

use crate::asks::{Amounts, HostPort};
use crate::clock::Clock;
use crate::config::Settings;
use crate::constraint;
use crate::gang::Membership;
use crate::job_pods::{Claim, JobPods};
use crate::mark::Decided;
use crate::pod::{self, PodSeen};
use crate::reach::{Asks, Reach, Reachable};
use crate::seats::{Lost, Seats, Traces};
use crate::standing::{self, Duty, Gang, Standing};
use crate::suspended::{Holding, Owner};
use crate::turn;
use crate::volume::Volumes;

/// Pods of one job.
pub(crate) struct Group<'a> {
    /// What they are part of.
    pub member: Membership,
    /// The pods, in no order.
    pub pods: Vec<(PodSeen, &'a Pod)>,
    /// Whether all of them are there, and none is one that its Job would make.
    pub is_made: bool,
    /// Their Jobs that are or may be suspended.
    pub owners: Vec<Owner>,
}

impl Group<'_> {
    /// Whether each pod of its Job is a job of its own.
    fn is_task(&self) -> bool {
        self.member.key.by == "pod" && self.owners.iter().any(|owner| owner.num_pods > 1)
    }
}

/// What jobs are looked at with.
pub(crate) struct Sight<'a> {
    pub reach: Reach<'a>,
    pub volumes: Volumes<'a>,
    /// Units that take jobs, and their nodes.
    pub up: &'a BTreeMap<&'a str, &'a Node>,
    pub nodes: &'a [NodeSeen],
    pub settings: &'a Settings,
    pub clock: &'a Clock,
}

/// A job as it was seen.
pub(crate) struct DrivenJob {
    pub job: JobSeen,
    pub pods: JobPods,
    pub lost: Lost,
    /// Where it waits and its size is not known: its pods, and when these last became fewer, Unix time, s.
    pub size: Option<(usize, i64)>,
    /// Its pods that are ending while others are there.
    pub ending: Vec<PodSeen>,
}

fn began_s(pod: &PodSeen) -> i64 {
    let decided_s = pod.decided.as_ref().map(|mark| mark.at_s);
    pod.start_s.or(decided_s).unwrap_or(pod.created_s)
}

/// Where its pods may run, or where it stands instead of waiting.
fn places(seen: &[PodSeen], pods: &[&Pod], sight: &mut Sight<'_>) -> Result<Reachable, Phase> {
    let foreign = || Phase::Foreign {
        reason: "has pods that may run on different nodes".into(),
    };
    let spec = pods.first().and_then(|pod| pod.spec.as_ref());
    let (first, spec) = seen.first().zip(spec).ok_or_else(foreign)?;
    let near = |seen: &PodSeen| sight.volumes.of(&seen.namespace, &seen.claims);
    let (own, volumes) = (constraint::key(spec), near(first));
    let is_alike = |(seen, pod): (&PodSeen, &&Pod)| {
        pod.spec.as_ref().is_some_and(|spec| constraint::key(spec) == own) && near(seen) == volumes
    };
    if !seen.iter().zip(pods).skip(1).all(is_alike) {
        return Err(foreign());
    }
    let mut amounts = Amounts::new();
    for (name, amount) in seen.iter().flat_map(|seen| &seen.asks) {
        let most = amounts.entry(name.clone()).or_default();
        *most = (*most).max(*amount);
    }
    sight.reach.of(&Asks {
        spec,
        resource: &first.resource,
        amounts,
        ports: &first.ports,
        volumes,
    })
}

/// Whether two pods take the same port of a host, so that each needs a node of its own.
fn share_ports(pods: &[PodSeen]) -> bool {
    let mut taken: Vec<&HostPort> = Vec::new();
    for pod in pods {
        if pod
            .ports
            .iter()
            .any(|port| taken.iter().any(|other| port.meets(other)))
        {
            return true;
        }
        taken.extend(&pod.ports);
    }
    false
}

/// The job that the policy is shown in the place of one that the tables cannot express, and why they cannot; none where it is none
/// that waits, and where no node has a place for it.
fn in_turn(
    (job, stand): (&JobSeen, &Standing),
    (seen, pods): (&[PodSeen], &[&Pod]),
    gang: &Gang<'_>,
    sight: &mut Sight<'_>,
) -> Option<(JobSeen, String)> {
    let Phase::Foreign { reason } = &job.phase else {
        return None;
    };
    if stand.duty != Duty::GiveBack {
        return None;
    }
    let mut shown = turn::stand_in(job, seen)?;
    let of_most = |seen: &PodSeen| seen.is_held() && seen.num_gpus == shown.gpus_per_node;
    let largest = seen.iter().position(of_most)?;
    let mut reachable = Reachable::default();
    match places(&seen[largest..=largest], &pods[largest..=largest], sight) {
        Ok(found) => reachable = found,
        Err(phase) => shown.phase = phase,
    }
    (shown.gpu_types, shown.terms.rules) = (reachable.types, reachable.rules);
    if seen.iter().all(PodSeen::is_held)
        && let Some(phase @ Phase::Blocked { .. }) = standing::whole(seen, gang)
    {
        shown.phase = phase;
    }
    let open = sight.nodes.iter();
    let open = open.filter(|node| !reachable.never.contains(&node.name));
    match fleet::never_fits(&shown, open) {
        None => Some((shown, reason.clone())),
        Some(_) => None,
    }
}

/// Looks at a job after another look.
pub(crate) fn job(group: Group<'_>, before: &Traces, sight: &mut Sight<'_>) -> DrivenJob {
    let (settings, is_task) = (sight.settings, group.is_task());
    let Group {
        member,
        mut pods,
        is_made,
        owners,
    } = group;
    let mark = newest(&owners, sight).filter(|_| !is_made || !is_task);
    pods.sort_by(|(a, _), (b, _)| {
        (a.index, a.name.len(), &a.name, &a.uid).cmp(&(b.index, b.name.len(), &b.name, &b.uid))
    });
    let ending = take_ending(&mut pods);
    let (seen, pods): (Vec<PodSeen>, Vec<&Pod>) = pods.into_iter().unzip();
    let is_lease = member.size == Some(1) && matches!(&seen[..], [pod] if pod.is_lease);
    let first = pods.first().copied();
    let tolerations = first.and_then(|pod| pod.spec.as_ref()?.tolerations.as_deref());
    let up = sight.up;
    let takes_jobs = |unit: &str| up.get(unit).is_some_and(|node| tolerates(tolerations, node));
    let gang = Gang {
        mark,
        is_made,
        is_lease,
        size: size(&member, (&owners, is_made), &seen),
        lost: before.lost.get(&member.id).map_or(&[], Vec::as_slice),
        shrank_s: before.shrank_s(member.id, seen.len(), sight.clock.kept_s()),
        takes_jobs: &takes_jobs,
        settings,
        clock: sight.clock,
    };
    let mut stand = standing::of(&seen, &gang);
    let mut reachable = Reachable::default();
    if matches!(stand.phase, Phase::Waiting | Phase::Loose) {
        match places(&seen, &pods, sight) {
            Ok(found) => reachable = found,
            Err(phase) => stand = Standing::without_seats(phase, &seen),
        }
    }
    let mut job = described(&member, first, &seen, &stand, sight);
    (job.gpu_types, job.terms.rules) = (reachable.types, reachable.rules);
    job.terms.owner = member.owner;
    job.terms.priority = seen.iter().map(|pod| pod.priority).max().unwrap_or(0);
    if is_lease {
        (job.terms.is_lease, job.limit_s) = (true, None);
    }
    // What no cluster of these nodes could give it by the tables' rules is not held for something that never comes.
    let open = sight
        .nodes
        .iter()
        .filter(|node| !reachable.never.contains(&node.name));
    if matches!(job.phase, Phase::Waiting | Phase::Loose)
        && let Some(reason) = fleet::never_fits(&job, open)
    {
        stand = Standing::without_seats(Phase::Foreign { reason }, &seen);
        job.phase = stand.phase.clone();
    }
    let mut turn = None;
    if let Some((shown, reason)) = in_turn((&job, &stand), (&seen, &pods), &gang, sight) {
        (job, stand.duty, turn) = (shown, Duty::None, Some(reason));
    } else if stand.duty == Duty::GiveBack && turn::stand_in(&job, &seen).is_some() {
        stand.duty = Duty::GiveBackInTurn;
    }
    let holding = Holding {
        owners: &owners,
        is_made,
        is_released: mark.is_some(),
        may_be_suspended: settings.suspend && !is_task && !is_lease && turn.is_none() && ending.is_empty(),
    };
    if let Some((phase, duty)) = holding.of((&job.phase, stand.duty), &seen, &gang) {
        (job.phase, stand.duty) = (phase, duty);
    }
    job.not_before_s = holding.not_before_s();
    let size = gang.waiting_size(&seen);
    let name = format!("{}/{}", member.key.namespace, member.key.name);
    let claim = claim(&member, &seen);
    let remark = member
        .remark
        .or_else(|| remark(&name, &job, &stand.seats, &seen, settings))
        .or_else(|| turn.as_deref().map(|why| in_turn_words(&name, why)))
        .or_else(|| deadline(&name, &job, &seen, member.limit_s.filter(|_| is_made)))
        .or_else(|| (!is_lease).then(|| no_lease(&name, &seen)).flatten());
    DrivenJob {
        pods: JobPods {
            name,
            pods: seen,
            is_made,
            owners,
            seats: stand.seats,
            duty: stand.duty,
            claim,
            turn,
            remark,
        },
        job,
        lost: stand.lost,
        size,
        ending,
    }
}

/// Whether pods with these tolerations may come to a node.
fn tolerates(tolerations: Option<&[Toleration]>, node: &Node) -> bool {
    constraint::hard_taints(node).all(|taint| constraint::is_tolerated(tolerations, taint))
}

/// Takes the pods away that are ending while others are there.
fn take_ending(pods: &mut Vec<(PodSeen, &Pod)>) -> Vec<PodSeen> {
    let has_live = pods.iter().any(|(seen, _)| !seen.is_ending);
    let is_out = |seen: &PodSeen| seen.is_ending == has_live;
    let out = pods.iter().filter(|(seen, _)| is_out(seen));
    let ending = out.map(|(seen, _)| seen.clone()).collect();
    pods.retain(|(seen, _)| !is_out(seen));
    ending
}

/// The newest mark of Jobs that counts.
fn newest<'a>(owners: &'a [Owner], sight: &Sight<'_>) -> Option<&'a Decided> {
    let marks = owners.iter();
    let marks = marks.filter_map(|owner| owner.mark_at(sight.settings, sight.clock));
    marks.max_by_key(|mark| mark.at_s)
}

/// Pods that a job has in all. Of what a template alone says that is no Job's no Job tells it.
fn size(member: &Membership, (owners, is_made): (&[Owner], bool), pods: &[PodSeen]) -> Option<u32> {
    match owners.iter().any(|owner| owner.kind.plural != "jobs") && !is_made {
        true => u32::try_from(pods.len()).ok(),
        false => member.size,
    }
}

/// What its pods say of its run time; none where one of them says nothing.
fn claim(member: &Membership, pods: &[PodSeen]) -> Option<Claim> {
    let claims: Vec<i64> = pods.iter().map(|pod| pod.claim_s).collect::<Option<_>>()?;
    let deadline_s = pods.iter().filter_map(|pod| pod.deadline_s).max();
    Some(Claim {
        claim_s: claims.into_iter().max()?,
        deadline_s: deadline_s.or(member.limit_s),
    })
}

/// A job as the tables get it, but for its GPU types.
fn described(
    member: &Membership,
    first: Option<&Pod>,
    seen: &[PodSeen],
    stand: &Standing,
    sight: &Sight<'_>,
) -> JobSeen {
    let settings = sight.settings;
    let num_parts = stand
        .seats
        .iter()
        .fold(0_u32, |sum, (_, num)| sum.saturating_add(*num));
    let num_pods = u32::try_from(seen.len())
        .unwrap_or(u32::MAX)
        .max(num_parts)
        .max(1);
    let cpu_milli = seen
        .iter()
        .fold(0_u64, |sum, pod| sum.saturating_add(pod.cpu_milli()));
    let created_s = seen.iter().map(|pod| pod.created_s).min();
    let limit_s = seen.iter().filter_map(|pod| pod.limit_s).max().or(member.limit_s);
    JobSeen {
        id: member.id,
        start_s: match stand.phase {
            // A pod whose kubelet has reported nothing yet began when it was let go.
            Phase::Running => seen.iter().filter(|pod| pod.node.is_some()).map(began_s).max(),
            _ => None,
        },
        phase: stand.phase.clone(),
        account: first.map_or_else(String::new, |pod| pod::account(pod, settings)),
        user: String::new(),
        submit_s: member
            .created_s
            .or(created_s)
            .unwrap_or_else(|| sight.clock.now_s()),
        limit_s,
        num_nodes: num_pods,
        gpus_per_node: seen.first().map_or(1, |pod| pod.num_gpus.max(1)),
        is_packed: num_pods > 1 && !share_ports(seen),
        share: None,
        gpu_type: None,
        gpu_types: Vec::new(),
        num_cpus: u32::try_from(cpu_milli.div_ceil(1000)).unwrap_or(u32::MAX),
        nodes: stand
            .seats
            .iter()
            .flat_map(|(unit, num)| std::iter::repeat_n(unit.clone(), *num as usize))
            .collect(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

/// What is to be said of a job whose deadline runs while it is held: that of its Job, which begins when the Job does.
fn deadline(name: &str, job: &JobSeen, pods: &[PodSeen], of_job: Option<i64>) -> Option<String> {
    let is_held = !job.is_placed() && pods.iter().any(PodSeen::is_held);
    let limit_s = of_job.filter(|_| is_held)?;
    Some(format!(
        "{name} is held and its Job's activeDeadlineSeconds ({limit_s} s) runs: it may be ended before it starts. In the pod \
         template the same field counts from the start"
    ))
}

/// What is to be said of a job that the tables cannot express.
fn in_turn_words(name: &str, why: &str) -> String {
    format!("{name} waits for its turn and is then left to kube-scheduler: it {why}")
}

/// What is to be said of a gang where pods are leases.
fn no_lease(name: &str, pods: &[PodSeen]) -> Option<String> {
    let has_leases = pods.iter().any(|pod| pod.is_lease);
    has_leases.then(|| format!("{name} is a gang and no lease: it waits as jobs do"))
}

/// What is to be said of a gang that runs without all its pods.
fn remark(name: &str, job: &JobSeen, seats: &Seats, pods: &[PodSeen], settings: &Settings) -> Option<String> {
    let num_seats = seats
        .iter()
        .fold(0_usize, |sum, (_, num)| sum.saturating_add(*num as usize));
    let num_bound = pods.iter().filter(|pod| pod.node.is_some()).count();
    (job.phase == Phase::Running && num_seats > num_bound).then(|| {
        format!(
            "{name} runs with {num_bound} of {num_seats} pods: the places of the others are kept for {} s",
            settings.seat_limit_s
        )
    })
}
