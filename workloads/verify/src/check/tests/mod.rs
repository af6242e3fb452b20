//! Records by hand: a schedule that is possible, and for each rule a change of it that breaks this rule and no other.

mod gpus;
mod injected;
mod jobs;
mod lanes;
mod law;

use pleach_tables::schedule::{Ended, Gpus, Record, Slice};

use super::*;
use crate::{Closed, Failures};

const CLUSTER: &str = "
[[classes]]
name = 'plain'
speed = [1.0, 1.0]
[[classes]]
name = 'big'
speed = [1.0, 0.0]
[[classes]]
name = 'elastic'
speed = [2.0, 2.0]
elastic = { gpus_max = 6, sizes = [[1, 1.0], [2, 1.0]] }
[[classes]]
name = 'small'
speed = [1.0, 1.0]
fusion = { framework_gib = 1.0, job_gib = 10.0 }
[cluster]
borrowing = false
gpu_types = [{ name = 'A', memory_gib = 40.0 }, { name = 'B', memory_gib = 16.0 }]
tenants = [{ name = 'red', quota_gpus = 16 }, { name = 'blue', quota_gpus = 4 }]
[[cluster.node_groups]]
count = 2
gpus_per_node = 8
gpu_type = 'A'
nodes_per_rack = 2
cpu_cores = 32
memory_gib = 256
[[cluster.node_groups]]
count = 1
gpus_per_node = 4
gpu_type = 'B'
nodes_per_rack = 1
[[cluster.node_groups]]
count = 1
gpus_per_node = 8
gpu_type = 'A'
nodes_per_rack = 1
";

const JOBS: &str = "\
job_id,submit_s,num_gpus,run_time_s,tenant,class,gpu_milli,gpu_memory_gib,cpu_cores,memory_gib,gpus_per_task,tasks_per_node_max,nodes_max
gang,0,12,100,red,plain,1000,0,2,16,,,
late,50,2,100,blue,big,1000,0,0,0,,,
share,0,1,60,red,plain,400,8,0,0,,,
other,0,1,60,red,plain,600,8,0,0,,,
flex,10,2,100,blue,elastic,1000,0,0,0,,,
killed,0,1,500,red,plain,1000,0,0,0,,,
copied,0,2,100,red,plain,1000,0,0,0,,,
cut,0,6,10,red,plain,1000,0,0,0,2,2,2
";

/// `gang` fails and starts again, `late` is stopped, `flex` is resized, `share` and `other` are on one GPU, `killed` leaves before its
/// work is done, `copied` is trained twice, and `cut` has three tasks
/// of two GPUs, at most two on a node and on two nodes.
const RECORD: &str = "\
job_id,attempt,nodes,gpu_milli,gpu_memory_gib,cpu_cores,memory_gib,copies,from_s,to_s,rate,lost_s,ended
gang,1,0:0-7 1:0-3,1000,0,2,16,0,0,5,0,0,continued
gang,1,0:0-7 1:0-3,1000,0,2,16,0,5,45,1,10,attempt-failed
gang,2,0:0-7 1:0-3,1000,0,2,16,0,60,130,1,0,completed
late,1,1:4-5,1000,0,0,0,0,50,70,1,0,preempted
late,2,1:6-7,1000,0,0,0,0,80,160,1,0,completed
share,1,2:0,400,8,0,0,0,0,60,1,0,completed
other,1,2:0,600,8,0,0,0,0,60,1,0,completed
flex,1,2:1-2,1000,0,0,0,0,10,30,1,0,resized
flex,2,2:1,1000,0,0,0,0,30,70,0.5,0,continued
flex,2,2:1,1000,0,0,0,0,70,130,1,0,completed
killed,1,2:3,1000,0,0,0,0,0,40,1,0,killed
copied,1,1:6-7 2:3,1000,0,0,0,2,200,260,1.5,0,moved
copied,2,2:3,1000,0,0,0,1,260,280,0.5,0,completed
cut,1,0:0-3 1:0-1,1000,0,0,0,0,47,57,1,0,completed
";

fn facts() -> Facts {
    Facts::of_text("jobs", JOBS.into(), CLUSTER).unwrap()
}

fn conditions() -> Conditions {
    Conditions {
        stopping: true,
        failures: Failures {
            jobs: true,
            lose: true,
            ..Failures::default()
        },
        closed: vec![
            Closed {
                node: 0,
                from_s: 140.0,
                to_s: 150.0,
                is_down: true,
            },
            Closed {
                node: 1,
                from_s: 65.0,
                to_s: 75.0,
                is_down: false,
            },
        ],
        ..Conditions::default()
    }
}

fn run_of(text: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.csv");
    std::fs::write(&path, text).unwrap();
    Record::read(&path).unwrap().runs.remove(0)
}

fn faults(conditions: &Conditions, text: &str) -> Vec<Fault> {
    verify(&facts(), conditions, &run_of(text)).unwrap().faults
}

/// The faults of the record where one text stands for another; the rules must be these and no other.
fn broken(rule: Rule, from: &str, to: &str) -> Fault {
    assert!(RECORD.contains(from), "{from}");
    let found = faults(&conditions(), &RECORD.replacen(from, to, 1));
    let rules: BTreeSet<Rule> = found.iter().map(|fault| fault.rule).collect();
    assert_eq!(rules, BTreeSet::from([rule]), "{found:?}");
    found[0].clone()
}

#[test]
fn a_possible_schedule_has_no_fault() {
    assert_eq!(faults(&conditions(), RECORD), []);
}

#[test]
fn what_is_not_of_this_cluster_and_these_jobs_is_refused() {
    let refused = |text: String| {
        verify(&facts(), &conditions(), &run_of(&text))
            .unwrap_err()
            .to_string()
    };
    let job = refused(RECORD.replacen("share,1", "nobody,1", 1));
    assert!(job.contains("job `nobody`") && job.contains("8 jobs"), "{job}");
    let node = refused(RECORD.replacen("share,1,2:0", "share,1,4:0", 1));
    assert!(node.contains("node `4`") && node.contains("0 to 3"), "{node}");
    let named = refused(RECORD.replacen("share,1,2:0", "share,1,gpu-a:0", 1));
    assert!(named.contains("node `gpu-a`"), "{named}");
}

#[test]
fn clusters_and_lists_that_cannot_be_are_refused() {
    let refused = |jobs: &str, cluster: &str| {
        Facts::of_text("jobs", jobs.into(), cluster)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(JOBS, "x = 1").contains("cluster"));
    assert!(refused(JOBS, &CLUSTER.replace("gpu_type = 'B'", "gpu_type = 'C'")).contains("gpu_type = C"));
    assert!(refused(JOBS, &CLUSTER.replace("gpus_per_node = 4", "gpus_per_node = 65")).contains("1 to 64"));
    assert!(refused(JOBS, &CLUSTER.replace("count = 2", "count = 4000000000")).contains("1 to 4000000"));
    assert!(
        refused(JOBS, &CLUSTER.replace("speed = [1.0, 0.0]", "speed = [1.0]")).contains("big has 1 speeds")
    );
    assert!(refused(JOBS, &CLUSTER.replace("name = 'blue'", "name = 'red'")).contains("share a name"));
    assert!(refused(&JOBS.replace("late,50", "gang,50"), CLUSTER).contains("column job_id"));
    assert!(refused(&JOBS.replace("blue,big", "green,big"), CLUSTER).contains("column tenant"));
    assert!(refused(&JOBS.replace("late,50", "late,NaN"), CLUSTER).contains("column submit_s"));
}
