//! What `easy` makes of a recorded state: the cluster as it was just before an instant, and the waiting jobs that it starts there.

use pleach_env::workload::Workload;
use pleach_scheduler::cluster::{Cluster, Slice};
use pleach_scheduler::{
    Capabilities, ClassId, Estimate, JobId, NodeId, Planner as _, PolicyPlanner, Provenance, Submission,
    TenantId, Time, heuristics,
};

/// A job that runs, or holds nodes: its row in the list, since when, s, and the GPUs that it has on each of its nodes.
pub(crate) type Run = (usize, f64, Vec<(usize, u32)>);

/// The rows of the waiting jobs that `easy` starts now, with their nodes. Waiting ones are in the order in which they came.
pub(crate) fn starts(
    (list, can): (&Workload, Capabilities),
    limit_s: impl Fn(usize) -> f64,
    mut runs: Vec<Run>,
    waits: &[usize],
    at_s: f64,
) -> Vec<(usize, Vec<usize>)> {
    let mut cluster = Cluster::new(&list.cluster, &list.classes, can).unwrap();
    let submit = |cluster: &mut Cluster, row: usize, num_gpus: u32| {
        let spec = &list.jobs[row];
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(spec.class),
            num_gpus,
            estimate_s: Estimate {
                value: limit_s(row),
                provenance: Provenance::UserLimit,
            },
            resources: spec.resources,
        };
        cluster.submit(request).unwrap()
    };
    runs.sort_by(|one, other| one.1.total_cmp(&other.1));
    for (row, start_s, on) in &runs {
        cluster.advance(Time::from_secs_f64(*start_s).max(cluster.now()));
        let id = submit(&mut cluster, *row, on.iter().map(|(_, gpus)| gpus).sum());
        let slices = on.iter().map(|(node, gpus)| Slice {
            node: NodeId(*node as u32),
            gpus: cluster.nodes()[*node].lowest_free(*gpus),
        });
        let placement = slices.collect();
        cluster.start(id, placement);
    }
    cluster.advance(Time::from_secs_f64(at_s));
    for row in waits {
        submit(&mut cluster, *row, list.jobs[*row].num_gpus);
    }
    let mut easy = PolicyPlanner::new(heuristics::by_name("easy").unwrap());
    easy.plan(&mut cluster).unwrap();
    let on = |number: usize| {
        let placement = &cluster.job(JobId((runs.len() + number) as u32)).placement;
        let mut on: Vec<usize> = placement.iter().map(|slice| slice.node.index()).collect();
        on.sort_unstable();
        on
    };
    let all = waits.iter().enumerate().map(|(number, row)| (*row, on(number)));
    all.filter(|(_, on)| !on.is_empty()).collect()
}
