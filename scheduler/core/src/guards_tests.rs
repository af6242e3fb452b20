//! Guards on candidates that are made by hand, where each rule alone decides what is left.

use crate::candidate::{Candidate, CandidateKind, CandidateSet};
use crate::cluster::tests::{cluster_of, submit, submit_for};
use crate::cluster::{Cluster, Slice};
use crate::cluster_spec::{ClusterSpec, TenantSpec};
use crate::guards::Guards;
use crate::ids::{JobId, NodeId, TenantId, Time};

/// Candidates about these jobs, in this order behind *hold*.
fn offered(rows: &[(CandidateKind, JobId)]) -> CandidateSet {
    let mut set = CandidateSet::default();
    set.clear();
    let rows = rows.iter().map(|(kind, job)| Candidate::new(*kind, Some(*job)));
    set.rows.extend(rows);
    set
}

fn overdue_after(after_s: f64) -> Guards {
    Guards {
        overdue_after_s: Some(after_s),
        ..Guards::NONE
    }
}

fn floor(share: f64) -> Guards {
    Guards {
        tenant_floor: Some(share),
        ..Guards::NONE
    }
}

/// Four GPUs on one node, and tenants with these quotas that may borrow.
fn with_quotas(quotas: &[u32]) -> Cluster {
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    let tenant = |(id, quota_gpus): (usize, &u32)| TenantSpec {
        name: format!("t{id}"),
        quota_gpus: *quota_gpus,
    };
    spec.tenants = quotas.iter().enumerate().map(tenant).collect();
    spec.borrowing = true;
    cluster_of(&spec)
}

/// Puts a job on these GPUs of the first node, a bit each.
fn start(cluster: &mut Cluster, job: JobId, gpus: u64) {
    let slice = Slice {
        node: NodeId(0),
        gpus,
    };
    cluster.start(job, [slice].into_iter().collect());
}

#[test]
fn a_job_is_overdue_when_it_has_waited_longer_and_not_when_as_long() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let job = submit(&mut cluster, 1, 10.0);
    let guards = overdue_after(60.0);
    cluster.advance(Time::from_secs_f64(60.0));
    assert!(!guards.is_overdue(&cluster, job));
    cluster.advance(Time(60_000_001));
    assert!(guards.is_overdue(&cluster, job));
    assert!(!Guards::NONE.is_overdue(&cluster, job));
}

#[test]
fn of_jobs_that_came_at_one_instant_the_first_by_number_is_overdue_first() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let jobs = [(); 3].map(|()| submit(&mut cluster, 1, 10.0));
    cluster.advance(Time::from_secs_f64(100.0));
    let later = submit(&mut cluster, 1, 10.0);
    cluster.advance(Time::from_secs_f64(200.0));
    let order = [later, jobs[2], jobs[1], jobs[0]].map(|job| (CandidateKind::Start, job));
    let (set, guards) = (offered(&order), overdue_after(60.0));
    assert_eq!(guards.first_overdue(&cluster, &set, u64::MAX), Some(jobs[0]));
    assert_eq!(guards.allowed(&cluster, &set), 1 << 4);
}

#[test]
fn what_is_not_allowed_makes_nobody_overdue() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let victim = submit(&mut cluster, 4, 1000.0);
    start(&mut cluster, victim, 0b1111);
    cluster.advance(Time(1));
    cluster.preempt(victim);
    start(&mut cluster, victim, 0b1111);
    let (first, second) = (submit(&mut cluster, 4, 10.0), submit(&mut cluster, 2, 10.0));
    cluster.advance(Time::from_secs_f64(100.0));
    let mut set = offered(&[(CandidateKind::Preempt, first), (CandidateKind::Reserve, second)]);
    set.victims.push(victim);
    set.rows[1].victims = 0..1;
    let guards = Guards {
        preemptions_max: Some(1),
        ..overdue_after(60.0)
    };
    assert_eq!(guards.first_overdue(&cluster, &set, u64::MAX), Some(first));
    assert_eq!(guards.first_overdue(&cluster, &set, !0b10), Some(second));
    // The victim was stopped once and may not be again, so there is nothing of the first to come first.
    assert_eq!(guards.allowed(&cluster, &set), 0b100);
    let twice = Guards {
        preemptions_max: Some(2),
        ..guards
    };
    assert_eq!(twice.allowed(&cluster, &set), 0b010);
}

#[test]
fn a_start_beside_another_job_is_not_a_start_on_free_gpus() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let resident = submit(&mut cluster, 4, 1000.0);
    start(&mut cluster, resident, 0b1111);
    let job = submit(&mut cluster, 2, 10.0);
    cluster.advance(Time::from_secs_f64(100.0));
    let guards = overdue_after(60.0);
    let mut set = offered(&[(CandidateKind::Start, job), (CandidateKind::Reserve, job)]);
    set.rows[1].partner = Some(resident);
    // Beside the other it starts, and GPUs may be held back for it as well: the policy chooses.
    assert_eq!(guards.allowed(&cluster, &set), 0b110);
    // On free GPUs it starts there.
    set.rows.push(Candidate::new(CandidateKind::Start, Some(job)));
    assert_eq!(guards.allowed(&cluster, &set), 0b1000);
}

#[test]
fn a_tenant_at_its_floor_is_not_below_it_and_one_without_a_quota_never_is() {
    let mut cluster = with_quotas(&[2, 2, 0]);
    let jobs = [0, 1, 2].map(|tenant| submit_for(&mut cluster, tenant, 1, 10.0));
    let running = submit_for(&mut cluster, 0, 1, 100.0);
    start(&mut cluster, running, 0b1);
    let set = offered(&jobs.map(|job| (CandidateKind::Start, job)));
    let first = |share: f64, allowed: u64| floor(share).first_below_floor(&cluster, &set, allowed);
    assert_eq!(first(0.5, u64::MAX), Some(TenantId(1)));
    // The first tenant holds one of two: it is below 0.6 and not below 0.5. The last has no quota to be below.
    assert_eq!(first(0.5, !0b100), None);
    assert_eq!(first(0.6, !0b100), Some(TenantId(0)));
    assert_eq!(floor(0.5).allowed(&cluster, &set), 0b100);
    let of_the_last = offered(&[(CandidateKind::Start, jobs[2])]);
    assert_eq!(
        floor(1.0).first_below_floor(&cluster, &of_the_last, u64::MAX),
        None
    );
    assert_eq!(floor(1.0).allowed(&cluster, &of_the_last), u64::MAX);
}

#[test]
fn who_was_stopped_often_enough_is_not_resized_either() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    let job = submit(&mut cluster, 2, 1000.0);
    start(&mut cluster, job, 0b11);
    let set = offered(&[(CandidateKind::Resize, job)]);
    let guards = |max| Guards {
        preemptions_max: Some(max),
        ..Guards::NONE
    };
    assert_eq!(guards(1).allowed(&cluster, &set) & 0b11, 0b11);
    cluster.advance(Time(1));
    cluster.preempt(job);
    start(&mut cluster, job, 0b11);
    assert_eq!(guards(1).allowed(&cluster, &set) & 0b11, 0b01);
    assert_eq!(guards(2).allowed(&cluster, &set) & 0b11, 0b11);
}
