//! GPUs in use by nothing that is known, under `Drive::Order`: by jobs that end, by parts of GPUs. In the tables a job that ends
//! soon stands for them, so that all jobs that the emptied nodes could hold can be ranked.

use std::borrow::Cow;

use pleach_scheduler::ExternalId;

use crate::snapshot::{JobSeen, Phase, Snapshot, Terms};

/// Time after which such GPUs are believed to be free, s. *Assumed*: what a job takes to end.
const ENDS_AFTER_S: i64 = 60;

/// The snapshot with such jobs, under `Drive::Order` and if there are any.
pub(super) fn of_others(snapshot: &Snapshot, is_order: bool) -> Cow<'_, Snapshot> {
    if !is_order || snapshot.site.leaving.is_empty() {
        return Cow::Borrowed(snapshot);
    }
    let mut snapshot = snapshot.clone();
    let leaving = std::mem::take(&mut snapshot.site.leaving);
    let stands_in = |(number, (node, num_gpus)): (usize, (String, u32))| JobSeen {
        id: ExternalId::number(u64::MAX - number as u64),
        phase: Phase::Running,
        account: String::new(),
        user: String::new(),
        submit_s: snapshot.taken_s,
        start_s: Some(snapshot.taken_s),
        limit_s: Some(ENDS_AFTER_S),
        num_nodes: 1,
        gpus_per_node: num_gpus,
        is_packed: false,
        share: None,
        gpu_types: Vec::new(),
        gpu_type: None,
        num_cpus: 0,
        nodes: vec![node],
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    };
    let jobs = leaving.into_iter().enumerate().map(stands_in).collect::<Vec<_>>();
    snapshot.jobs.extend(jobs);
    Cow::Owned(snapshot)
}
