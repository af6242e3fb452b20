//! Lists of our own whose schedules are worked by hand.

use pleach_dealing::kueue::{Kueue, KueueConfig};
use pleach_env::workload::JobSpec;
use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::cluster_spec::TenantSpec;
use pleach_scheduler::{ActionKind, Capabilities};
use serde_json::json;

use crate::labelled;

/// (tenant, submission, GPUs on one node, run time), s, on two nodes of 8 GPUs: when each first started.
fn starts(rows: &[(u16, f64, u32, f64)], config: serde_json::Value) -> Vec<f64> {
    let tenants = ["a", "b"].map(|name| TenantSpec {
        name: name.into(),
        quota_gpus: 0,
    });
    let job = |(number, (tenant, submit_s, num_gpus, run_s)): (usize, &(u16, f64, u32, f64))| JobSpec {
        tenant: *tenant,
        ..labelled::job(
            number,
            (*submit_s, *num_gpus, (*num_gpus).min(8), *run_s),
            ("q", ""),
        )
    };
    let mut list = labelled::list(2, rows.iter().enumerate().map(job));
    list.cluster.tenants = tenants.to_vec();
    let sim = SimConfig {
        capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
        ..SimConfig::default()
    };
    let config: KueueConfig = serde_json::from_value(config).unwrap();
    let result = simulate_planner(&list, &sim, &mut Kueue::new(config).unwrap()).unwrap();
    result.jobs.iter().map(|job| job.first_start_s).collect()
}

/// A ClusterQueue of so many GPUs.
fn queue(name: &str, gpus: u32, more: serde_json::Value) -> serde_json::Value {
    let mut queue = json!({
        "name": name,
        "resourceGroups": [{"flavors": [{"name": "any", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}]}],
    });
    queue
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    queue
}

fn are(found: &[f64], wanted: &[f64]) {
    let alike = found
        .iter()
        .zip(wanted)
        .all(|(one, two)| (one - two).abs() < 1e-3);
    assert!(alike && found.len() == wanted.len(), "{found:?}, not {wanted:?}");
}

#[test]
fn quota_comes_back_a_second_after_the_end_and_best_effort_looks_a_second_later() {
    // A quota of 8 of the 16 GPUs. Job 0 fills it for 100 s; job 1 needs all of it, job 2 (4 GPUs) came after it, job 3 (8) needs all.
    let rows = [
        (0, 0.0, 8, 100.0),
        (0, 10.0, 8, 50.0),
        (0, 20.0, 4, 10.0),
        (0, 30.0, 4, 10.0),
    ];
    let config = |strategy: &str| {
        let queue = queue("cq", 8, json!({"queueingStrategy": strategy}));
        json!({"clusterQueues": [queue], "flavors": [{"name": "any"}]})
    };
    // 0.035 s to the queue, 0.08 s to the pods, 0.02 s to a node.
    let first = 0.135;
    // Job 0 ends at 100.135: its quota is back 1.04 s later. A strict queue tries its head at once, one of best effort 1 s later.
    let (strict, best) = (101.175 + 0.1, 102.175 + 0.1);
    let after = |start: f64, lag: f64| start + 50.0 + lag + 0.1;
    are(
        &starts(&rows, config("StrictFIFO")),
        &[first, strict, after(strict, 1.04), after(strict, 1.04)],
    );
    are(
        &starts(&rows, config("BestEffortFIFO")),
        &[first, best, after(best, 2.04), after(best, 2.04)],
    );
}

#[test]
fn a_newcomer_that_fits_goes_ahead_in_a_queue_of_best_effort_alone() {
    let rows = [(0, 0.0, 4, 100.0), (0, 10.0, 8, 50.0), (0, 20.0, 4, 10.0)];
    let config = |strategy: &str| {
        let queue = queue("cq", 8, json!({"queueingStrategy": strategy}));
        json!({"clusterQueues": [queue], "flavors": [{"name": "any"}]})
    };
    let best = starts(&rows, config("BestEffortFIFO"));
    assert!((best[2] - 20.135).abs() < 1e-3, "{best:?}");
    let strict = starts(&rows, config("StrictFIFO"));
    assert!(strict[2] > strict[1], "{strict:?}");
}

#[test]
fn what_is_borrowed_is_reclaimed_where_the_queue_may_preempt_and_waited_for_elsewhere() {
    // Tenant a borrows all of b's 8 GPUs for 100 s; b's job comes at 10 s.
    let rows = [(0, 0.0, 8, 100.0), (0, 1.0, 8, 100.0), (1, 10.0, 8, 50.0)];
    let config = |policy: &str, limit: serde_json::Value| {
        let more = json!({"cohortName": "site", "preemption": {"reclaimWithinCohort": policy}});
        let mut queues = [queue("a", 8, more.clone()), queue("b", 8, more)];
        queues[0]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = limit;
        let local = ["a", "b"].map(|name| json!({"namespace": name, "name": "q", "clusterQueue": name}));
        json!({"clusterQueues": queues, "flavors": [{"name": "any"}], "localQueues": local})
    };
    // The younger job goes 0.2 s after the decision, its quota is back 0.89 s later.
    are(
        &starts(&rows, config("Any", json!(null))),
        &[0.135, 1.135, 10.035 + 0.2 + 0.89 + 0.1],
    );
    are(
        &starts(&rows, config("Never", json!(null))),
        &[0.135, 1.135, 100.135 + 2.04 + 0.1],
    );
    // Without borrowing each has its own.
    are(
        &starts(&rows, config("Never", json!(0.0))),
        &[0.135, 100.135 + 2.04 + 0.1, 10.135],
    );
}
