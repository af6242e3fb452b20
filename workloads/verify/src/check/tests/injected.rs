//! Faults as an independent check once put them into records of the simulator, each with the rule that has to find it. The
//! twenty-fifth, the record of another policy, is found by a replay alone (cli/tests/command_line/schedules.rs).

use super::*;
use crate::Starts;

/// Two jobs of `PLAIN` that are placed loosely, one that is preempted, two that share a GPU, one on another type.
const LOOSE: &str = "\
[[classes]]
name = 'plain'
speed = [1.0, 0.5]
locality = { more_nodes = 0.8, cross_rack = 0.6 }
[[classes]]
name = 'big'
speed = [1.0, 0.0]
[cluster]
borrowing = false
gpu_types = [{ name = 'A', memory_gib = 40.0 }, { name = 'B', memory_gib = 16.0 }]
tenants = [{ name = 'red', quota_gpus = 24 }, { name = 'blue', quota_gpus = 2 }]
[[cluster.node_groups]]
count = 3
gpus_per_node = 8
gpu_type = 'A'
nodes_per_rack = 2
cpu_cores = 32
memory_gib = 64
[[cluster.node_groups]]
count = 1
gpus_per_node = 4
gpu_type = 'B'
nodes_per_rack = 1
";

const PLAIN: &str = "\
job_id,submit_s,num_gpus,run_time_s,tenant,class,gpu_milli,gpu_memory_gib,cpu_cores,memory_gib
near,0,4,80,red,plain,1000,0,2,8
apart,0,4,60,red,plain,1000,0,0,0
stopped,10,2,100,red,plain,1000,0,0,0
blue,0,2,50,blue,big,1000,0,0,0
half,0,1,60,red,plain,500,8,0,0
other,0,1,60,red,plain,500,8,0,0
one,0,1,40,red,plain,1000,0,0,0
two,0,1,40,red,plain,1000,0,0,0
";

const SOUND: &str = "\
job_id,attempt,nodes,gpu_milli,gpu_memory_gib,cpu_cores,memory_gib,from_s,to_s,rate,lost_s,ended
near,1,0:0-1 1:0-1,1000,0,2,8,0,100,0.8,0,completed
apart,1,0:2-3 2:0-1,1000,0,0,0,0,100,0.6,0,completed
stopped,1,1:2-3,1000,0,0,0,10,40,1,0,preempted
stopped,2,1:4-5,1000,0,0,0,50,80,0,0,continued
stopped,2,1:4-5,1000,0,0,0,80,150,1,0,completed
blue,1,2:2-3,1000,0,0,0,0,50,1,0,completed
half,1,3:0,500,8,0,0,0,120,0.5,0,completed
other,1,3:0,500,8,0,0,0,120,0.5,0,completed
one,1,2:4,1000,0,0,0,0,40,1,0,completed
two,1,2:5,1000,0,0,0,0,40,1,0,completed
";

/// (what was done to the record, text, other text, the rule that finds it)
const INJECTED: [(&str, &str, &str, Rule); 24] = [
    (
        "a GPU twice for a microsecond",
        "one,1,2:4,1000,0,0,0,0,40,1",
        "one,1,2:3,1000,0,0,0,49.999999,89.999999,1",
        Rule::Gpus,
    ),
    (
        "a microsecond before it arrives",
        "stopped,1,1:2-3,1000,0,0,0,10,40",
        "stopped,1,1:2-3,1000,0,0,0,9.999999,39.999999",
        Rule::Arrival,
    ),
    (
        "work that is short by a ten-millionth",
        "two,1,2:5,1000,0,0,0,0,40,1",
        "two,1,2:5,1000,0,0,0,0,40,0.9999999",
        Rule::Work,
    ),
    (
        "a gang that is short of a GPU",
        "near,1,0:0-1 1:0-1",
        "near,1,0:0-1 1:0",
        Rule::Gang,
    ),
    ("a stop where none is lawful", "", "", Rule::Stopping),
    (
        "a job that is missing",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed\n",
        "",
        Rule::Completion,
    ),
    (
        "a job that is doubled",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed\n",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed\none,1,2:6,1000,0,0,0,0,40,1,0,completed\n",
        Rule::Attempt,
    ),
    (
        "a tenant above its quota",
        "one,0,1,40,red,plain",
        "one,0,1,40,blue,plain",
        Rule::Quota,
    ),
    (
        "a GPU type that the class cannot use",
        "blue,1,2:2-3",
        "blue,1,3:2-3",
        Rule::Type,
    ),
    (
        "more host memory than the node has",
        "near,1,0:0-1 1:0-1,1000,0,2,8",
        "near,1,0:0-1 1:0-1,1000,0,2,40",
        Rule::Memory,
    ),
    (
        "another share than was asked for",
        "other,1,3:0,500",
        "other,1,3:0,400",
        Rule::Request,
    ),
    (
        "a third job on a GPU",
        "two,1,2:5,1000,0,0,0,0,40,1",
        "two,1,3:0,1000,0,0,0,0,80,0.5",
        Rule::Shares,
    ),
    ("a node that is down", "", "", Rule::Availability),
    (
        "two jobs that swap their GPUs and clash",
        "near,1,0:0-1 1:0-1",
        "near,1,0:2-3 1:2-3",
        Rule::Gpus,
    ),
    (
        "two jobs that swap their times and clash",
        "stopped,2,1:4-5,1000,0,0,0,50,80,0,0,continued",
        "stopped,2,1:4-5,1000,0,0,0,20,80,0,0,continued",
        Rule::Attempt,
    ),
    (
        "two attempts that swap their nodes",
        "stopped,2,1:4-5,1000,0,0,0,80,150,1",
        "stopped,2,1:2-3,1000,0,0,0,80,150,1",
        Rule::Attempt,
    ),
    // What passed before rates, costs and ends were held to the settings.
    (
        "a job a thousand times as fast",
        "one,1,2:4,1000,0,0,0,0,40,1",
        "one,1,2:4,1000,0,0,0,0,0.04,1000",
        Rule::Rate,
    ),
    (
        "a loose gang at full speed",
        "apart,1,0:2-3 2:0-1,1000,0,0,0,0,100,0.6",
        "apart,1,0:2-3 2:0-1,1000,0,0,0,0,60,1",
        Rule::Rate,
    ),
    (
        "a restart at no cost",
        "stopped,2,1:4-5,1000,0,0,0,50,80,0,0,continued\nstopped,2,1:4-5,1000,0,0,0,80,150,1",
        "stopped,2,1:4-5,1000,0,0,0,50,120,1",
        Rule::Start,
    ),
    (
        "killed after a second where nothing kills",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed",
        "one,1,2:4,1000,0,0,0,0,1,1,0,killed",
        Rule::Ending,
    ),
    (
        "failed after a second where nothing fails",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed",
        "one,1,2:4,1000,0,0,0,0,1,1,0,failed",
        Rule::Ending,
    ),
    (
        "cut off after a second where nothing ends",
        "one,1,2:4,1000,0,0,0,0,40,1,0,completed",
        "one,1,2:4,1000,0,0,0,0,1,1,0,horizon",
        Rule::Ending,
    ),
    (
        "work that is lost without a failure",
        "1:2-3,1000,0,0,0,10,40,1,0,preempted",
        "1:2-3,1000,0,0,0,10,40,1,1000,preempted",
        Rule::Loss,
    ),
    (
        "cores and memory that were asked for and are not held",
        "near,1,0:0-1 1:0-1,1000,0,2,8",
        "near,1,0:0-1 1:0-1,1000,0,0,0",
        Rule::Request,
    ),
];

#[test]
fn each_fault_that_was_ever_put_into_a_record_is_found_by_its_rule() {
    let sound = Conditions {
        stopping: true,
        starts: Starts::Each {
            start_s: 0.0,
            restart_s: 30.0,
        },
        ..Conditions::default()
    };
    let found = |conditions: &Conditions, jobs: &str, record: &str| -> Vec<Fault> {
        let facts = Facts::of_text("jobs", jobs.into(), LOOSE).unwrap();
        verify(&facts, conditions, &run_of(record)).unwrap().faults
    };
    assert_eq!(found(&sound, PLAIN, SOUND), []);
    let mut missed = Vec::new();
    for (what, from, to, rule) in INJECTED {
        let (mut conditions, jobs) = (sound.clone(), PLAIN.replacen(from, to, 1));
        match rule {
            Rule::Stopping => conditions.stopping = false,
            Rule::Availability => conditions.closed.push(Closed {
                node: 2,
                from_s: 20.0,
                to_s: 30.0,
                is_down: true,
            }),
            _ => assert!(SOUND.contains(from) || PLAIN.contains(from), "{what}: {from}"),
        }
        let record = SOUND.replacen(from, to, 1);
        let faults = match rule {
            Rule::Quota => found(&conditions, &jobs, SOUND),
            _ => found(&conditions, PLAIN, &record),
        };
        if !faults.iter().any(|fault| fault.rule == rule) {
            missed.push((what, rule, faults));
        }
    }
    assert!(
        missed.is_empty(),
        "{} of {} missed: {missed:#?}",
        missed.len(),
        INJECTED.len()
    );
}
