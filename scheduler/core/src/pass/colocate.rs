//! Putting a pending job beside a running one, on exactly its GPUs.
//!
//! Offered is the partner with which both together get most done; equal pairs go to the lowest partner. Whether the pair
//! is worth it is the policy's business: the candidate's rate is the newcomer's beside its partner.

use crate::candidate::{Candidate, CandidateKind, CandidateSet};
use crate::cluster::{Cluster, Sharing};
use crate::ids::JobId;
use crate::lens::LensSet;

/// The partner beside which a pending job and the partner together get most done, with both speeds as parts of their
/// speeds alone; none where no job can be its partner.
pub(crate) fn best_partner(cluster: &Cluster, job: JobId) -> Option<(JobId, f64, f64)> {
    if cluster.capabilities().sharing == Sharing::Off {
        return None;
    }
    let mut best: Option<(f64, JobId, f64, f64)> = None;
    for kind in cluster.types_in(cluster.job(job).types) {
        for (_, partner) in cluster.running_of(kind).iter() {
            if !cluster.can_pack(job, *partner) {
                continue;
            }
            let own = cluster.packed_speed(job, &[*partner], kind);
            let other = cluster.packed_speed(*partner, &[job], kind);
            let better = best
                .is_none_or(|(sum, known, ..)| own + other > sum || (own + other == sum && *partner < known));
            if better {
                best = Some((own + other, *partner, own, other));
            }
        }
    }
    best.map(|(_, partner, own, other)| (partner, own, other))
}

pub(super) fn push_beside(cluster: &Cluster, job: JobId, heads: LensSet, set: &mut CandidateSet) {
    let Some((partner, own, other)) = best_partner(cluster, job) else {
        return;
    };
    let start = set.slices.len();
    set.slices.extend_from_slice(&cluster.job(partner).placement);
    let mut facts = cluster.job_facts(job, &set.slices[start..]);
    facts.rate *= own;
    let mut candidate = Candidate::new(CandidateKind::Start, Some(job));
    candidate.facts = Some(facts);
    candidate.partner = Some(partner);
    // A partner has its GPUs to itself until now.
    candidate.partner_rate_ratio = other;
    candidate.heads = heads;
    candidate.placement = start..set.slices.len();
    set.rows.push(candidate);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::ActionKind;
    use crate::candidate::CandidateKind;
    use crate::cluster::{Capabilities, JobState, Submission};
    use crate::cluster_spec::{ClusterSpec, Load, ModelClass, Resources};
    use crate::estimate::{Estimate, Provenance};
    use crate::ids::{ClassId, TenantId, Time};
    use crate::pass::{Pass, PassState};
    use crate::policy::CandidateConfig;

    /// One node of 2 GPUs with 32 GiB each; a light class (20 % busy) and a heavy one (100 %), no bandwidth.
    fn packing() -> Cluster {
        let class = |name: &str, utilisation| ModelClass {
            name: name.into(),
            load: Load {
                utilisation,
                bandwidth: 0.0,
            },
            ..ModelClass::default()
        };
        let capabilities = Capabilities {
            sharing: Sharing::Mps,
            ..Capabilities::default()
        };
        let classes = [class("light", 0.2), class("heavy", 1.0)];
        Cluster::new(&ClusterSpec::uniform(1, 2, 1), &classes, capabilities).unwrap()
    }

    fn submit(cluster: &mut Cluster, class: u16, gpu_memory_gib: f64) -> JobId {
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(class),
            num_gpus: 1,
            estimate_s: Estimate {
                value: 100.0,
                provenance: Provenance::Oracle,
            },
            resources: Resources {
                gpu_memory_gib,
                ..Resources::WHOLE_GPU
            },
        };
        cluster.submit(request).unwrap()
    }

    /// Starts the first candidate that is, or is not, beside another job.
    fn start(cluster: &mut Cluster, beside: bool) -> Option<JobId> {
        let mut needs = CandidateConfig::default().needs();
        needs.actions = needs.actions.with(ActionKind::Share);
        let mut pass = Pass::new();
        assert_eq!(pass.open(cluster, &needs), PassState::Open);
        let wanted = |row: &crate::candidate::Candidate| {
            row.kind == CandidateKind::Start && row.partner.is_some() == beside
        };
        let index = pass.candidates().iter().position(wanted)?;
        let partner = pass.candidates().get(index).and_then(|row| row.partner);
        pass.act(cluster, &needs, index);
        cluster.check();
        partner
    }

    #[test]
    fn a_job_goes_beside_the_partner_with_which_most_gets_done_and_both_slow_down() {
        let mut cluster = packing();
        let heavy = submit(&mut cluster, 1, 10.0);
        start(&mut cluster, false);
        let light = submit(&mut cluster, 0, 10.0);
        start(&mut cluster, false);
        cluster.advance(Time::from_secs_f64(20.0));
        let newcomer = submit(&mut cluster, 1, 10.0);
        assert_eq!(start(&mut cluster, true), Some(light));
        // kappa 0.4: 1 / (1 + 0.4 x 0.2 x 1) for both. The light job has done 20 of 100 s; 80 s take 86.4 s more.
        let factor = 1.0 / 1.08;
        for id in [light, newcomer] {
            assert!((cluster.job(id).rate - factor).abs() < 1e-12);
        }
        assert_eq!(cluster.job(heavy).rate, 1.0);
        assert!((cluster.job(light).expected_finish.as_secs_f64() - 106.4).abs() < 1e-6);
        let mut rerated = Vec::new();
        cluster.take_rerated(&mut rerated);
        assert_eq!(rerated, [light]);
        // 43.2 s later the newcomer stops: the light job has done 20 + 40, and the last 40 s take 40 s.
        cluster.advance(Time::from_secs_f64(63.2));
        cluster.finish(newcomer);
        cluster.check();
        assert_eq!(cluster.job(light).rate, 1.0);
        assert!((cluster.job(light).expected_finish.as_secs_f64() - 103.2).abs() < 1e-6);
        assert_eq!(cluster.num_free(), 0);
        cluster.finish(light);
        cluster.check();
        assert_eq!(cluster.num_free(), 1);
    }

    #[test]
    fn memory_that_does_not_fit_together_and_full_gpus_have_no_partner() {
        let mut cluster = packing();
        let first = submit(&mut cluster, 0, 20.0);
        start(&mut cluster, false);
        let large = submit(&mut cluster, 0, 13.0);
        assert!(best_partner(&cluster, large).is_none(), "20 + 13 GiB on 32");
        let small = submit(&mut cluster, 0, 12.0);
        let (partner, own, other) = best_partner(&cluster, small).unwrap();
        assert_eq!(partner, first);
        assert!(own == other && own < 1.0);
        let placement = cluster.job(first).placement.clone();
        cluster.start(small, placement);
        cluster.check();
        let third = submit(&mut cluster, 0, 0.0);
        assert!(best_partner(&cluster, third).is_none(), "two is the most");
        cluster.preempt(first);
        cluster.check();
        assert_eq!(cluster.job(small).state, JobState::Running);
        assert_eq!(best_partner(&cluster, third).map(|found| found.0), Some(small));
    }
}
