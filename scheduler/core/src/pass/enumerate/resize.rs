//! Other sizes for running elastic jobs: half and twice the GPUs that a job holds, of its own and of free ones of their type.
//!
//! A job that is resized stops and starts again at once, at the cost of a restart, and with the goodput of its present progress.
//! Looked at are the jobs with the longest believed rest, as many of each type as the policy wants of each order of the queue.
//! A job that started at this very instant is not resized, so a pass always ends.
//!
//! # Source
//! Jobs that are resized while they run: Pollux (OSDI'21), Optimus (EuroSys'18). Half and twice are ours, as at a start; several
//! resizes reach every such multiple.

use crate::candidate::{Candidate, CandidateKind, CandidateSet, Stopped};
use crate::cluster::{Cluster, Demand, JobState, ShapeId};
use crate::ids::JobId;
use crate::policy::Needs;

/// Running jobs of each type that are looked at for elastic ones. *Assumed.*
const LOOKED_AT_MAX: usize = 256;

/// Offers other sizes to the running elastic jobs with the longest believed rest.
pub(super) fn push_resizes(cluster: &Cluster, needs: &Needs, set: &mut CandidateSet) {
    let most = needs.heads.max(needs.fitting);
    for kind in cluster.types_in(u64::MAX >> (64 - cluster.num_types())) {
        let mut num = 0;
        for (_, job) in cluster.running_of(kind).iter().rev().take(LOOKED_AT_MAX) {
            num += usize::from(push_sizes(cluster, *job, set));
            if num == most {
                break;
            }
        }
    }
}

/// Offers half and twice its GPUs to a running job; whether there was anything to offer.
fn push_sizes(cluster: &Cluster, id: JobId, set: &mut CandidateSet) -> bool {
    let (job, first) = (cluster.job(id), set.rows.len());
    let Some(elastic) = cluster.class(job.request.class).elastic else {
        return false;
    };
    let is_plain = (job.shape, job.granted) == (ShapeId::PLAIN, ShapeId::PLAIN) && !job.is_forked;
    let may_stop = job.run_start < cluster.now() && cluster.gives_back_whole_gpus(id);
    if !is_plain || !may_stop || job.state != JobState::Running {
        return false;
    }
    for num_gpus in [job.num_held / 2, job.num_held.saturating_mul(2)] {
        let more = num_gpus.saturating_sub(job.num_held);
        let demand = Demand {
            num_gpus: more,
            ..cluster.demand(id)
        };
        let fits = more == 0 || (cluster.num_free_of(job.gpu_type) >= more && cluster.has_room(demand));
        if num_gpus == 0 || !fits || !elastic.can_hold(num_gpus) {
            continue;
        }
        let start = set.slices.len();
        let placed = cluster.place_over(job.gpu_type, num_gpus, &[id], &mut set.slices);
        let loose = cluster.capabilities().consolidated && !cluster.is_consolidated(&set.slices[start..]);
        if !placed || loose {
            set.slices.truncate(start);
            continue;
        }
        let facts = cluster.facts_if_restarted(id, &set.slices[start..]);
        let mut candidate = Candidate::new(CandidateKind::Resize, Some(id));
        candidate.facts = Some(facts);
        candidate.placement = start..set.slices.len();
        candidate.stopped = Stopped {
            num_gpus: job.num_held,
            remaining_s_min: 0.0,
        };
        set.rows.push(candidate);
    }
    set.rows.len() > first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::{ActionKind, ActionSet};
    use crate::cluster::decision::Action;
    use crate::cluster::{Capabilities, Submission};
    use crate::cluster_spec::{ClusterSpec, ElasticJob, ModelClass, Resources, TenantSpec};
    use crate::estimate::{Estimate, Provenance};
    use crate::features::FeatureSchema;
    use crate::ids::{ClassId, TenantId, Time};
    use crate::pass::{Pass, PassState};
    use crate::physics::goodput::Elastic;

    /// Nodes of 4 GPUs of two tenants with quotas of `quota`; an elastic class that is so many times as fast on up to 8 GPUs, one
    /// whose noise grows, and a rigid one. A restart costs 10 s.
    fn cluster(num_nodes: u32, quota: Option<u32>) -> Cluster {
        let mut spec = ClusterSpec::uniform(num_nodes, 4, 1);
        if let Some(quota_gpus) = quota {
            let tenant = |name: &str| TenantSpec {
                name: name.into(),
                quota_gpus,
            };
            (spec.tenants, spec.borrowing) = (["a", "b"].map(tenant).into(), false);
        }
        let linear = Elastic::proportional(8);
        let noisy = Elastic {
            noise_at_start: 7.0,
            noise_at_end: 700.0,
            ..linear
        };
        let class = |profile: Option<Elastic>| ModelClass {
            elastic: profile.map(|profile| ElasticJob {
                gpus_max: 8,
                profile: profile.into(),
            }),
            ..ModelClass::default()
        };
        let capabilities = Capabilities {
            restart_cost_s: 10.0,
            ..Capabilities::DEFAULT.with(ActionKind::Resize)
        };
        Cluster::new(&spec, &[Some(linear), Some(noisy), None].map(class), capabilities).unwrap()
    }

    fn submit(cluster: &mut Cluster, class: u16, tenant: u16, num_gpus: u32, run_s: f64) -> Option<JobId> {
        let request = Submission {
            tenant: TenantId(tenant),
            class: ClassId(class),
            num_gpus,
            estimate_s: Estimate {
                value: run_s,
                provenance: Provenance::Oracle,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).ok()
    }

    fn needs() -> Needs {
        Needs {
            heads: 16,
            actions: ActionSet::of(ActionKind::Resize),
            ..Needs::full()
        }
    }

    /// The resizes that are offered, by job and size.
    fn offered(pass: &Pass) -> Vec<(JobId, u32)> {
        let resizes = pass
            .candidates()
            .iter()
            .filter(|row| row.kind == CandidateKind::Resize);
        let mut found: Vec<_> = resizes
            .filter_map(|row| Some((row.job?, row.facts?.num_gpus)))
            .collect();
        found.sort_unstable();
        found
    }

    fn take(pass: &mut Pass, cluster: &mut Cluster, num_gpus: u32) -> PassState {
        let mut rows = pass.candidates().iter();
        let is_it = |row: &Candidate| row.facts.is_some_and(|facts| facts.num_gpus == num_gpus);
        let index = rows.position(is_it).unwrap();
        let state = pass.act(cluster, &needs(), index);
        cluster.check();
        state
    }

    #[test]
    fn a_job_that_grows_and_shrinks_ends_when_that_was_worked_out_by_hand() {
        // 100 s of work. One GPU until 40 s, a restart, two GPUs from 50 to 60 s: 60 s are done. A restart, and 40 s on one GPU.
        let mut cluster = cluster(1, None);
        let job = submit(&mut cluster, 0, 0, 1, 100.0).unwrap();
        let mut pass = Pass::new();
        pass.open(&cluster, &needs());
        assert_eq!(
            take(&mut pass, &mut cluster, 1),
            PassState::Closed,
            "it starts at this instant"
        );
        cluster.advance(Time::from_secs_f64(40.0));
        assert_eq!(
            pass.open(&cluster, &needs()),
            PassState::Open,
            "though nobody waits"
        );
        assert_eq!(offered(&pass), [(job, 2)]);
        assert_eq!(
            take(&mut pass, &mut cluster, 2),
            PassState::Closed,
            "once at an instant"
        );
        let ends_s = |cluster: &Cluster| cluster.job(job).expected_finish.as_secs_f64();
        assert_eq!((cluster.job(job).num_held, cluster.num_free()), (2, 2));
        assert!((ends_s(&cluster) - 80.0).abs() < 1e-5, "{}", ends_s(&cluster));
        cluster.advance(Time::from_secs_f64(60.0));
        pass.open(&cluster, &needs());
        assert_eq!(offered(&pass), [(job, 1), (job, 4)]);
        take(&mut pass, &mut cluster, 1);
        assert!((ends_s(&cluster) - 110.0).abs() < 1e-5, "{}", ends_s(&cluster));
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        let done: Vec<Action> = decisions.iter().map(|decision| decision.action).collect();
        use Action::{Preempt, Start};
        assert_eq!(done, [Start, Preempt, Start, Preempt, Start]);
    }

    #[test]
    fn it_is_offered_only_where_it_is_granted_and_wanted() {
        let mut cluster = cluster(1, None);
        submit(&mut cluster, 0, 0, 1, 100.0).unwrap();
        let mut pass = Pass::new();
        pass.open(&cluster, &needs());
        take(&mut pass, &mut cluster, 1);
        cluster.advance(Time::from_secs_f64(40.0));
        let unwanted = Needs {
            actions: ActionSet::OFFERED.without(ActionKind::Resize),
            ..needs()
        };
        assert_eq!(pass.open(&cluster, &unwanted), PassState::Closed);
        assert!(!Capabilities::DEFAULT.can(ActionKind::Resize));
        assert!(!ActionSet::IN_DAEMONS.contains(ActionKind::Resize));
    }

    /// The slow obvious answer: a job is stopped on a copy, and what fits then is what it can have.
    fn expected(cluster: &Cluster) -> Vec<(JobId, u32)> {
        let mut found = Vec::new();
        for (id, job) in cluster.jobs().iter().enumerate() {
            let may = job.state == JobState::Running && job.run_start < cluster.now();
            if !may || cluster.class(job.request.class).elastic.is_none() {
                continue;
            }
            let id = JobId(id as u32);
            let mut copy = cluster.clone();
            copy.preempt(id);
            for num_gpus in [job.num_held / 2, job.num_held * 2] {
                let demand = Demand {
                    num_gpus,
                    ..copy.demand(id)
                };
                let fits = copy.num_free() >= num_gpus && copy.has_room(demand);
                if fits && (1..=8).contains(&num_gpus) {
                    found.push((id, num_gpus));
                }
            }
        }
        found
    }

    /// Every resize on a copy: the cluster stays consistent, the job gets the size and speed that were shown, no other job
    /// changes.
    fn try_all(cluster: &Cluster, pass: &Pass) -> u32 {
        let mut num = 0;
        for (index, row) in pass.candidates().iter().enumerate() {
            let (Some(id), Some(facts)) = (row.job.filter(|_| row.kind == CandidateKind::Resize), row.facts)
            else {
                continue;
            };
            let (mut copy, mut after) = (cluster.clone(), pass.clone());
            after.act(&mut copy, &needs(), index);
            copy.check();
            let job = copy.job(id);
            assert_eq!((job.num_held, job.rate), (facts.num_gpus, facts.rate));
            assert!(!offered(&after).iter().any(|(other, _)| *other == id));
            let others = copy.jobs().iter().zip(cluster.jobs()).enumerate();
            for (other, (now, before)) in others.filter(|(other, _)| *other != id.index()) {
                assert_eq!(
                    (&now.placement, now.rate),
                    (&before.placement, before.rate),
                    "{other}"
                );
            }
            num += 1;
        }
        num
    }

    /// Certificates rest on it that every number of a row lies where the columns say for rows of its kind.
    fn check_ranges(cluster: &Cluster, pass: &mut Pass) {
        pass.observe(cluster);
        let (schema, seen) = (FeatureSchema::current(), pass.observation().as_ref());
        for (index, row) in pass.candidates().iter().enumerate() {
            let joined = schema.joined_row(seen.row(index), seen.global);
            for (feature, value) in schema.features.iter().zip(&joined) {
                let (low, high) = feature.range_among(row.kind as usize);
                let name = feature.name;
                assert!((low..=high).contains(value), "{:?}: {name} is {value}", row.kind);
            }
            let ratio = joined[schema.joined_index("resize_ratio").unwrap()];
            assert_eq!(row.kind == CandidateKind::Resize, ratio > 0.0, "{ratio}");
        }
    }

    #[test]
    fn what_is_offered_is_what_fits_where_the_job_is_stopped_and_does_what_it_says() {
        let mut draws = 7_u64;
        let mut below = |bound: u64| {
            draws = draws
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (draws >> 33) % bound
        };
        let mut num_tried = 0;
        for world in 0..60 {
            let mut cluster = cluster(2, (world % 2 == 1).then_some(4));
            let mut pass = Pass::new();
            for _ in 0..12 {
                for _ in 0..below(3) {
                    let (class, tenant) = (below(3) as u16, (below(2) * (world % 2)) as u16);
                    submit(
                        &mut cluster,
                        class,
                        tenant,
                        1 + below(4) as u32,
                        500.0 + below(5_000) as f64,
                    );
                }
                let mut state = pass.open(&cluster, &needs());
                while state == PassState::Open {
                    assert_eq!(offered(&pass), expected(&cluster));
                    num_tried += try_all(&cluster, &pass);
                    check_ranges(&cluster, &mut pass);
                    let index = below(pass.candidates().len() as u64) as usize;
                    let index = if pass.candidates().is_admissible(index) {
                        index
                    } else {
                        1
                    };
                    state = pass.act(&mut cluster, &needs(), index);
                }
                let next = cluster
                    .running()
                    .map(|id| (cluster.job(id).expected_finish, id))
                    .min();
                let later = cluster.now() + Time::from_secs_f64(1.0 + below(900) as f64);
                match next {
                    Some((end, id)) if end <= later => {
                        cluster.advance(end);
                        cluster.finish(id);
                    }
                    _ => cluster.advance(later),
                }
            }
        }
        assert!(num_tried > 500, "{num_tried} resizes say little");
    }
}
