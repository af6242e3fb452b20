//! The gangs that a job can start as: what it asked for and, where the policy wants to choose, half and twice as many GPUs for
//! an elastic job, or the least CPU and memory with which its class runs fastest.
//!
//! Only new runs: no running job is resized. Other sizes come with the CPU and memory per GPU that was asked for, other shares
//! with the size that was asked for.

use smallvec::SmallVec;

use super::reservation::{Reservation, Wanted, place_undelaying};
use crate::actions::ActionKind;
use crate::candidate::{Candidate, CandidateKind, CandidateSet};
use crate::cluster::{Cluster, Demand, Shape, Slice, Template};
use crate::ids::JobId;
use crate::lens::LensSet;
use crate::policy::Needs;

/// GPUs, and what each of them comes with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gang {
    num_gpus: u32,
    shape: Shape,
    /// Whether the shape is not what the job asked for.
    is_granted: bool,
}

impl Gang {
    /// What the job asked for.
    pub(super) fn asked(cluster: &Cluster, job: JobId) -> Gang {
        let row = cluster.job(job);
        Gang {
            num_gpus: row.request.num_gpus,
            shape: cluster.shape(row.shape),
            is_granted: false,
        }
    }

    /// The types on which it fits now, within the tenant's quota.
    fn fitting_types(&self, cluster: &Cluster, job: JobId) -> u64 {
        let demand = Demand {
            num_gpus: self.num_gpus,
            ..cluster.demand(job)
        };
        if !cluster.has_room(demand) {
            return 0;
        }
        let fits = |kind: &_| cluster.fits_gang(*kind, self.shape, self.num_gpus);
        let kinds = cluster.types_in(demand.types).filter(fits);
        kinds.fold(0, |mask, kind| mask | 1 << kind.0)
    }
}

/// Offers the other gangs that a job can start as now.
pub(super) fn push_others(
    cluster: &Cluster,
    needs: &Needs,
    reservation: Option<&Reservation>,
    job: JobId,
    heads: LensSet,
    set: &mut CandidateSet,
) {
    let asked = Gang::asked(cluster, job);
    let class = cluster.class(cluster.job(job).request.class);
    if let Some(elastic) = class
        .elastic
        .filter(|_| needs.actions.contains(ActionKind::Sizes))
    {
        for num_gpus in [asked.num_gpus / 2, asked.num_gpus.saturating_mul(2)] {
            let gang = Gang { num_gpus, ..asked };
            if num_gpus == 0 || !elastic.can_hold(num_gpus) {
                continue;
            }
            let types = gang.fitting_types(cluster, job);
            push_gang(cluster, needs, reservation, (job, types), gang, heads, set);
        }
    }
    if !needs.actions.contains(ActionKind::GrantCores) || class.sensitivity.is_none() {
        return;
    }
    // Mostly one share for all types, and then all templates at once.
    let mut shares: SmallVec<[(Shape, u64); 4]> = SmallVec::new();
    for kind in cluster.types_in(cluster.job(job).types) {
        let Some(shape) = cluster.saturating_shape(job, kind) else {
            continue;
        };
        match shares.iter_mut().find(|(other, _)| *other == shape) {
            Some((_, types)) => *types |= 1 << kind.0,
            None => shares.push((shape, 1 << kind.0)),
        }
    }
    for (shape, types) in shares {
        if shape == asked.shape || !cluster.can_number(shape) {
            continue;
        }
        let gang = Gang {
            shape,
            is_granted: true,
            ..asked
        };
        let types = types & gang.fitting_types(cluster, job);
        push_gang(cluster, needs, reservation, (job, types), gang, heads, set);
    }
}

/// Offers the starts of a gang on some of the types, one for each template that places it differently.
pub(super) fn push_gang(
    cluster: &Cluster,
    needs: &Needs,
    reservation: Option<&Reservation>,
    (job, types): (JobId, u64),
    gang: Gang,
    heads: LensSet,
    set: &mut CandidateSet,
) {
    let (class, first) = (cluster.job(job).request.class, set.rows.len());
    let mut tight = 0_u64;
    for template in needs.templates {
        let Some(kind) = cluster.preferred_type(*template, class, types) else {
            continue;
        };
        // Two templates that differ only in the type they prefer place alike on the same one.
        if *template != Template::Fragments {
            if tight >> kind.0 & 1 == 1 {
                continue;
            }
            tight |= 1 << kind.0;
        }
        let start = set.slices.len();
        let wanted = Wanted {
            job,
            shape: gang.shape,
            num_gpus: gang.num_gpus,
        };
        let (place, rows) = ((*template, kind), &set.rows[first..]);
        let is_known = |before: &[Slice], placement: &[Slice]| {
            let mut others = rows.iter();
            others.any(|row| before[row.placement.clone()] == *placement)
        };
        let slices = &mut set.slices;
        let Some(facts) = place_undelaying(cluster, reservation, place, wanted, is_known, slices) else {
            continue;
        };
        let mut candidate = Candidate::new(CandidateKind::Start, Some(job));
        candidate.facts = Some(facts);
        candidate.granted = gang.is_granted.then_some(gang.shape);
        candidate.heads = heads;
        candidate.placement = start..set.slices.len();
        set.rows.push(candidate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Capabilities, JobState, Submission};
    use crate::cluster_spec::{ClusterSpec, ElasticJob, GpuTypeSpec, ModelClass, Resources};
    use crate::estimate::{Estimate, Provenance};
    use crate::ids::{ClassId, TenantId};
    use crate::pass::Pass;
    use crate::physics::goodput::Elastic;
    use crate::physics::sensitivity::Sensitivity;
    use crate::policy::CandidateConfig;

    fn everything() -> CandidateConfig {
        CandidateConfig {
            actions: ActionKind::ALL.into_iter().collect(),
            ..CandidateConfig::default()
        }
    }

    fn submit(cluster: &mut Cluster, class: u16, num_gpus: u32, run_s: f64) -> JobId {
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(class),
            num_gpus,
            estimate_s: Estimate {
                value: run_s,
                provenance: Provenance::Oracle,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).unwrap()
    }

    fn look(cluster: &Cluster, config: CandidateConfig) -> Pass {
        let mut pass = Pass::new();
        pass.open(cluster, &config.needs());
        pass
    }

    /// GPUs, size ratio and efficiency of each start of a job.
    fn sizes(pass: &Pass, job: JobId) -> Vec<(u32, f64, f64)> {
        let rows = pass.candidates().iter().enumerate();
        let starts = rows.filter(|(_, row)| row.job == Some(job) && row.kind == CandidateKind::Start);
        let cost = |index: usize| pass.candidates().opportunity_cost(index);
        let sizes = starts.filter_map(|(index, row)| {
            let cost = cost(index);
            Some((row.facts?.num_gpus, cost.size_ratio, cost.gpu_efficiency))
        });
        sizes.collect()
    }

    /// Steps of 1 s whatever the batch up to 8 a GPU, at most 16 in all: 8 samples a second on one GPU, 16 on two and more.
    fn elastic() -> Cluster {
        let profile = Elastic::proportional(2);
        let class = ModelClass {
            elastic: Some(ElasticJob {
                gpus_max: 4,
                profile: profile.into(),
            }),
            ..ModelClass::default()
        };
        Cluster::new(&ClusterSpec::uniform(1, 4, 1), &[class], Capabilities::default()).unwrap()
    }

    #[test]
    fn an_elastic_job_may_start_on_half_and_twice_its_gpus_as_far_as_they_are_free() {
        let mut cluster = elastic();
        let job = submit(&mut cluster, 0, 2, 100.0);
        let near = |found: Vec<(u32, f64, f64)>, expected: &[(u32, f64, f64)]| {
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!((found.0, found.1), (expected.0, expected.1));
                assert!((found.2 - expected.2).abs() < 1e-6, "{found:?} {expected:?}");
            }
        };
        near(
            sizes(&look(&cluster, CandidateConfig::default()), job),
            &[(2, 1.0, 1.0)],
        );
        // Per GPU 8, 8 and 4 samples a second.
        let mut pass = look(&cluster, everything());
        near(sizes(&pass, job), &[(2, 1.0, 1.0), (1, 0.5, 1.0), (4, 2.0, 0.5)]);
        let needs = everything().needs();
        let double = |row: &Candidate| row.facts.is_some_and(|facts| facts.num_gpus == 4);
        let index = pass.candidates().iter().position(double).unwrap();
        pass.act(&mut cluster, &needs, index);
        cluster.check();
        assert_eq!((cluster.job(job).num_held, cluster.num_free()), (4, 0));
        assert!(
            (cluster.job(job).rate - 1.0).abs() < 1e-6,
            "no faster than on two"
        );
        cluster.finish(job);
        // Three GPUs free, one job on one: of a job that asks for 4, half fits and the whole can be reserved.
        let one = submit(&mut cluster, 0, 1, 100.0);
        let mut pass = look(&cluster, everything());
        pass.act(&mut cluster, &needs, 1);
        assert_eq!(cluster.job(one).state, JobState::Running);
        let wide = submit(&mut cluster, 0, 4, 100.0);
        let pass = look(&cluster, everything());
        near(sizes(&pass, wide), &[(2, 0.5, 1.0)]);
        let reserves = |row: &Candidate| row.kind == CandidateKind::Reserve;
        assert!(pass.candidates().iter().any(reserves));
    }

    #[test]
    fn a_size_that_would_delay_a_reserved_job_is_not_offered_behind_it() {
        // One GPU busy until 100 s; 4 GPUs are reserved for then. 8 reference seconds of a job of 2 end in time at any size;
        // 150 on two GPUs, or 300 on one, do not.
        let mut cluster = elastic();
        let needs = everything().needs();
        submit(&mut cluster, 0, 1, 100.0);
        look(&cluster, everything()).act(&mut cluster, &needs, 1);
        let wide = submit(&mut cluster, 0, 4, 10.0);
        let short = submit(&mut cluster, 0, 2, 8.0);
        let long = submit(&mut cluster, 0, 2, 150.0);
        let mut pass = look(&cluster, everything());
        let reserve = |row: &Candidate| row.kind == CandidateKind::Reserve && row.job == Some(wide);
        let index = pass.candidates().iter().position(reserve).unwrap();
        pass.act(&mut cluster, &needs, index);
        let offered: Vec<u32> = sizes(&pass, short).iter().map(|row| row.0).collect();
        assert_eq!(offered, [2, 1]);
        assert!(sizes(&pass, long).is_empty());
    }

    #[test]
    fn a_hungry_job_may_take_the_cores_that_it_can_use_and_a_modest_one_leave_them() {
        // 4 GPUs, 12 cores and 64 GiB: a fair share is 3 cores and 16 GiB. The hungry class gains up to 9 cores, the modest
        // one runs as fast on one; both are content with 8 GiB.
        let mut spec = ClusterSpec::uniform(1, 4, 1);
        (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (12.0, 64.0);
        let class = |name: &str, speed: [f64; 3]| ModelClass {
            name: name.into(),
            sensitivity: Some(Sensitivity {
                cores: vec![1.0, 3.0, 9.0],
                memory_gib: vec![8.0],
                speed: speed.into(),
                storage: None,
            }),
            ..ModelClass::default()
        };
        let classes = [class("hungry", [0.4, 1.0, 2.2]), class("modest", [1.0, 1.0, 1.0])];
        let mut cluster = Cluster::new(&spec, &classes, Capabilities::default()).unwrap();
        let hungry = submit(&mut cluster, 0, 1, 220.0);
        let modest = submit(&mut cluster, 1, 2, 220.0);
        let granted = |pass: &Pass, job: JobId| {
            let of_job = |row: &Candidate| row.job == Some(job) && row.granted.is_some();
            pass.candidates().iter().position(of_job)
        };
        let none = look(&cluster, CandidateConfig::default());
        assert!(granted(&none, hungry).is_none());
        let mut pass = look(&cluster, everything());
        let index = granted(&pass, hungry).unwrap();
        let cost = pass.candidates().opportunity_cost(index);
        assert_eq!((cost.cores_ratio, cost.demand_rate_ratio), (3.0, 1.0));
        let needs = everything().needs();
        pass.act(&mut cluster, &needs, index);
        cluster.check();
        assert!((cluster.job(hungry).rate - 2.2).abs() < 1e-9);
        assert_eq!(cluster.nodes()[0].cpu_milli_free, 3000);
        let index = granted(&pass, modest).unwrap();
        let cost = pass.candidates().opportunity_cost(index);
        assert_eq!((cost.cores_ratio, cost.demand_rate_ratio), (1.0 / 3.0, 1.0));
        pass.act(&mut cluster, &needs, index);
        cluster.check();
        assert_eq!(cluster.job(modest).rate, 1.0);
        assert_eq!(cluster.nodes()[0].cpu_milli_free, 1000);
        // One GPU and one core are left: no 9 cores for another hungry job.
        let another = submit(&mut cluster, 0, 1, 220.0);
        assert!(granted(&look(&cluster, everything()), another).is_none());
    }

    #[test]
    fn a_job_may_hold_back_gpus_of_a_faster_type_although_it_fits_on_a_slower_one() {
        // Four times as fast on the new type, which is busy until 100 s: 800 s here, or 100 + 200 s there. A short job of
        // 100 s ends after 100 s here and after 125 s there.
        let mut spec = ClusterSpec::uniform(1, 4, 1);
        let kind = |name: &str| GpuTypeSpec {
            name: name.into(),
            memory_gib: 16.0,
            mig: None,
        };
        spec.gpu_types = ["old", "new"].map(kind).into();
        spec.node_groups[0].gpu_type = "old".into();
        let mut group = spec.node_groups[0].clone();
        group.gpu_type = "new".into();
        spec.node_groups.push(group);
        let class = ModelClass {
            speed: vec![1.0, 4.0],
            ..ModelClass::default()
        };
        let mut cluster = Cluster::new(&spec, &[class], Capabilities::default()).unwrap();
        let needs = everything().needs();
        submit(&mut cluster, 0, 4, 400.0);
        look(&cluster, everything()).act(&mut cluster, &needs, 1);
        let long = submit(&mut cluster, 0, 4, 800.0);
        let short = submit(&mut cluster, 0, 4, 100.0);
        let reserve = |pass: &Pass, job: JobId| {
            let of_job = |row: &Candidate| row.kind == CandidateKind::Reserve && row.job == Some(job);
            pass.candidates().iter().position(of_job)
        };
        let default = look(&cluster, CandidateConfig::default());
        assert!(reserve(&default, long).is_none());
        let mut pass = look(&cluster, everything());
        assert!(reserve(&pass, short).is_none(), "it ends soonest here");
        let index = reserve(&pass, long).unwrap();
        let candidate = pass.candidates().get(index).unwrap();
        assert_eq!(
            (candidate.wait_to_fit_s, candidate.reserved_type.unwrap().0),
            (100.0, 1)
        );
        pass.act(&mut cluster, &needs, index);
        let held = pass.reservation().unwrap();
        assert_eq!((held.job, held.gpu_type.0, held.extra), (long, 1, 0));
        // The old GPUs stay open for the other one.
        let starts = |row: &Candidate| row.kind == CandidateKind::Start && row.job == Some(short);
        assert!(pass.candidates().iter().any(starts));
    }
}
