//! Rules of jobs: gangs and tasks, arrivals, types, quotas, nodes that close, attempts, work.

use super::*;

#[test]
fn a_gang_is_whole_and_an_elastic_job_within_what_its_class_can_use() {
    broken(Rule::Gang, "late,1,1:4-5", "late,1,1:4");
    let mut small = facts();
    small.jobs.get_mut("flex").unwrap().gpus_max = Some(1);
    let found = verify(&small, &conditions(), &run_of(RECORD)).unwrap().faults;
    assert!(
        found.len() == 1 && found[0].what.contains("can use 1 to 1"),
        "{found:?}"
    );
    broken(Rule::Gang, "1:6-7 2:3,1000,0,0,0,2", "1:6-7 2:3,1000,0,0,0,3");
    broken(Rule::Gang, "copied,1,1:6-7 2:3", "copied,1,1:5-7 2:3");
    broken(
        Rule::Gang,
        "copied,2,2:3,1000,0,0,0,1",
        "copied,2,2:3,1000,0,0,0,0",
    );
}

#[test]
fn tasks_lie_on_one_node_each_and_no_more_of_them_on_a_node_and_on_no_more_nodes_than_may() {
    let cut = |nodes: &str| {
        let (from, to) = ("cut,1,0:0-3 1:0-1", format!("cut,1,{nodes}"));
        broken(Rule::Tasks, from, &to).what
    };
    let split = cut("0:0-2 1:0-2");
    assert!(
        split.contains("holds 3 GPUs of it, and its tasks have 2"),
        "{split}"
    );
    let many = cut("0:0-5");
    assert!(many.contains("has 3 tasks on it, and may have 2"), "{many}");
    let wide = cut("0:0-1 1:0-1 3:0-1");
    assert!(wide.contains("is on 3 nodes, and may be on 2"), "{wide}");
}

#[test]
fn shares_are_those_that_were_asked_for() {
    broken(Rule::Request, "share,1,2:0,400", "share,1,2:0,300");
    broken(Rule::Request, "share,1,2:0,400,8", "share,1,2:0,400,7");
}

#[test]
fn nobody_runs_before_it_arrives() {
    let fault = broken(
        Rule::Arrival,
        "late,1,1:4-5,1000,0,0,0,0,50,70,1",
        "late,1,1:4-5,1000,0,0,0,0,49.999999,69.999999,1",
    );
    assert!(
        fault.to_string().contains("at 49.999999 s") && fault.to_string().contains("arrives at 50 s"),
        "{fault}"
    );
}

#[test]
fn types_are_those_that_a_class_can_use_and_not_mixed() {
    let fault = broken(
        Rule::Type,
        "late,2,1:6-7,1000,0,0,0,0,80,160",
        "late,2,2:2-3,1000,0,0,0,0,80,160",
    );
    assert!(fault.what.contains("cannot run on B"), "{fault}");
    let text = RECORD.replacen("flex,1,2:1-2", "flex,1,1:6 2:1", 1);
    assert_eq!(
        faults(
            &Conditions {
                mixed_types: true,
                ..conditions()
            },
            &text
        ),
        []
    );
    broken(Rule::Type, "flex,1,2:1-2", "flex,1,1:6 2:1");
}

#[test]
fn a_type_has_the_memory_that_a_job_needs() {
    let mut large = facts();
    large.jobs.get_mut("killed").unwrap().gpu_memory_mib = 17 << 10;
    let found = verify(&large, &conditions(), &run_of(RECORD)).unwrap().faults;
    assert!(found.len() == 1 && found[0].rule == Rule::GpuMemory, "{found:?}");
}

#[test]
fn a_tenant_keeps_to_its_quota_where_borrowing_is_off() {
    let mut poor = facts();
    poor.tenants[1].quota_gpus = 2;
    let found = verify(&poor, &conditions(), &run_of(RECORD)).unwrap().faults;
    assert!(
        found.iter().all(|fault| fault.rule == Rule::Quota) && !found.is_empty(),
        "{found:?}"
    );
    poor.borrowing = true;
    assert_eq!(verify(&poor, &conditions(), &run_of(RECORD)).unwrap().faults, []);
}

#[test]
fn a_node_that_is_closed_takes_nobody_and_one_that_is_down_runs_nobody() {
    let closed = |node, from_s, to_s, is_down| {
        let closed = vec![Closed {
            node,
            from_s,
            to_s,
            is_down,
        }];
        let found = faults(
            &Conditions {
                closed,
                ..conditions()
            },
            RECORD,
        );
        assert!(
            found.iter().all(|fault| fault.rule == Rule::Availability),
            "{found:?}"
        );
        found.len()
    };
    assert_eq!(
        closed(0, 130.0, f64::INFINITY, true),
        0,
        "whoever ends at the instant has ended"
    );
    assert_eq!(closed(0, 129.0, f64::INFINITY, true), 1);
    assert_eq!(
        closed(0, 61.0, f64::INFINITY, false),
        0,
        "a drained node keeps what it has"
    );
    assert_eq!(closed(0, 60.0, 61.0, false), 1);
    assert_eq!(
        closed(2, 65.0, 75.0, false),
        0,
        "an attempt goes on at another rate"
    );
}

#[test]
fn attempts_come_one_after_the_other_and_keep_their_gpus() {
    broken(Rule::Attempt, "gang,2,", "gang,3,");
    broken(Rule::Attempt, "killed,1,", "killed,2,");
    broken(Rule::Attempt, "0,5,0,0,continued", "0,5,0,0,preempted");
    broken(
        Rule::Attempt,
        "flex,1,2:1-2,1000,0,0,0,0,10,30,1,0,resized",
        "flex,1,2:1-2,1000,0,0,0,0,10,30,1,0,continued",
    );
    broken(
        Rule::Attempt,
        "0,30,70,0.5,0,continued",
        "0,30,70,0.5,0,completed",
    );
    broken(
        Rule::Attempt,
        "flex,2,2:1,1000,0,0,0,0,70",
        "flex,2,2:2,1000,0,0,0,0,70",
    );
    broken(
        Rule::Attempt,
        "10,30,1,0,resized",
        "10,29,1.05263157894736842,0,resized",
    );
    broken(
        Rule::Attempt,
        "copied,2,2:3,1000,0,0,0,1,260,280",
        "copied,2,2:2,1000,0,0,0,1,250,270",
    );
}

#[test]
fn nobody_is_stopped_where_nobody_may_stop() {
    let found = faults(
        &Conditions {
            stopping: false,
            ..conditions()
        },
        RECORD,
    );
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.iter().all(|fault| fault.rule == Rule::Stopping),
        "{found:?}"
    );
}

#[test]
fn a_job_does_its_work_and_no_more() {
    broken(
        Rule::Work,
        "share,1,2:0,400,8,0,0,0,0,60,1",
        "share,1,2:0,400,8,0,0,0,0,60,0.999",
    );
    broken(
        Rule::Work,
        "share,1,2:0,400,8,0,0,0,0,60,1",
        "share,1,2:0,400,8,0,0,0,0,60.1,1",
    );
    broken(Rule::Work, "5,45,1,10,", "5,45,1,9.9,");
    broken(
        Rule::Work,
        "killed,1,2:3,1000,0,0,0,0,0,40",
        "killed,1,3:0,1000,0,0,0,0,0,600",
    );
    broken(Rule::Work, "0,40,1,0,killed", "0,40,1,0,completed");
    // Half a microsecond is nothing.
    let text = RECORD.replacen(
        "share,1,2:0,400,8,0,0,0,0,60,1",
        "share,1,2:0,400,8,0,0,0,0,60.000001,1",
        1,
    );
    assert_eq!(faults(&conditions(), &text), []);
}

#[test]
fn every_job_leaves_unless_the_record_ends_before() {
    let without = RECORD.replace("share,1,2:0,400,8,0,0,0,0,60,1,0,completed\n", "");
    let found = faults(&conditions(), &without);
    assert!(found.len() == 1 && found[0].rule == Rule::Completion, "{found:?}");
    assert!(found[0].to_string().contains("job share"), "{}", found[0]);
    broken(Rule::Completion, "0,40,1,0,killed", "0,40,1,0,preempted");
    broken(Rule::Completion, "0,40,1,0,killed", "0,40,1,0,continued");
    let cut = without.replacen("80,160,1,0,completed", "80,100,1,0,horizon", 1);
    let observed = Conditions {
        is_observed: true,
        ..conditions()
    };
    assert_eq!(faults(&observed, &cut), []);
}
