//! Why a job that waits is not among the candidates of a decision, as far as is known.

use crate::cluster::Cluster;
use crate::ids::JobId;
use crate::policy::Needs;

/// Why a pending job is not among the candidates that these needs ask for, as a clause: `it asks for 8 GPUs, and ...`.
#[must_use]
pub fn why_absent(cluster: &Cluster, needs: &Needs, job: JobId) -> String {
    let demand = cluster.demand(job);
    let tasks = cluster.shape(demand.shape).tasks;
    let gpus = match demand.num_gpus {
        1 => "1 GPU".to_string(),
        num if tasks.gpus_per_task > 1 => format!("{num} GPUs in tasks of {}", tasks.gpus_per_task),
        num => format!("{num} GPUs"),
    };
    let Needs { heads, fitting, .. } = needs;
    if !cluster.has_room(demand) {
        let left = cluster.quota_left(demand.tenant);
        return format!("it asks for {gpus}, and the quota of its tenant leaves {left}");
    }
    if cluster.fitting_types(demand) == 0 {
        return format!(
            "it asks for {gpus}, and does not fit now: {} free in all, but not as it needs them; nor is it among the first {heads} \
             of any order",
            cluster.num_free()
        );
    }
    format!("it fits, but others come before it: it is not among the first {fitting} that fit of any order")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::pass::Pass;

    #[test]
    fn a_job_is_absent_because_others_come_first_or_because_it_does_not_fit() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let needs = Needs {
            heads: 0,
            fitting: 1,
            ..Needs::full()
        };
        submit(&mut cluster, 1, 100.0);
        // Later, longer, as large and with less to hope for under every order than the first.
        let later = submit(&mut cluster, 1, 200.0);
        assert!(why_absent(&cluster, &needs, later).contains("not among the first 1 that fit"));
        let mut pass = Pass::new();
        pass.open(&cluster, &needs);
        pass.act(&mut cluster, &needs, 1);
        let large = submit(&mut cluster, 4, 50.0);
        assert_eq!(
            why_absent(&cluster, &needs, large),
            "it asks for 4 GPUs, and does not fit now: 3 free in all, but not as it needs them; nor is it among the first 0 of \
             any order"
        );
    }
}
