use super::*;
use crate::test_lists::{class_of, job, workload};
use pleach_scheduler::cluster_spec::{ClusterSpec, TenantSpec};

fn on(num_gpus: u32, rows: &[(f64, u32, f64)]) -> Workload {
    let jobs = rows.iter().enumerate();
    let jobs = jobs.map(|(id, (submit_s, gang, run_s))| job(&id.to_string(), *submit_s, *gang, *run_s));
    let mut workload = workload(jobs.collect());
    workload.cluster = ClusterSpec::uniform(1, num_gpus, 1);
    workload.validate().unwrap();
    workload
}

fn bounds_of(workload: &Workload) -> LowerBounds {
    LowerBounds::of(workload, &Capabilities::DEFAULT)
}

fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-5, "{found} against {wanted}");
}

#[test]
fn one_server_gives_shortest_remaining_time_first_exactly() {
    // 10 s at 0, 2 s at 3, 4 s at 4: the long one waits for both. Finishes 16, 5, 9; JCT 16, 2, 5.
    let bounds = bounds_of(&on(1, &[(0.0, 1, 10.0), (3.0, 1, 2.0), (4.0, 1, 4.0)]));
    assert_near(bounds.avg_jct_s, 23.0 / 3.0);
    assert_near(bounds.makespan_s, 16.0);
}

#[test]
fn jobs_that_never_meet_give_their_isolated_times() {
    let bounds = bounds_of(&on(8, &[(5.0, 2, 10.0), (30.0, 8, 5.0), (100.0, 1, 7.0)]));
    assert_near(bounds.avg_jct_s, 22.0 / 3.0);
    assert_near(bounds.makespan_s, 102.0);
}

#[test]
fn equal_releases_give_the_bound_of_eastman_even_and_isaacs() {
    // Four 1-GPU jobs of 10 s on two GPUs. Mean busy times on a machine of speed 2: 2.5, 7.5, 12.5, 17.5; plus 5 s each
    // 60 s. The optimum is two rounds: 10 + 10 + 20 + 20 = 60 s, so the bound is tight.
    let bounds = bounds_of(&on(2, &[(0.0, 1, 10.0); 4]));
    assert_near(bounds.avg_jct_s, 15.0);
    assert_near(bounds.makespan_s, 20.0);
}

#[test]
fn jobs_with_better_isolated_bounds_leave_the_machine() {
    // Two GPUs; 1 s, 100 s, 100 s, 100 s at once. All on the machine: M = 0.25, 25.5, 75.5, 125.5 and half the spans
    // 150.5 give 377.25 s. With the short one at its isolated 1 s: 1 + 25 + 75 + 125 + 150 = 376 s, less; and with the
    // first long one isolated as well 1 + 100 + (25 + 75) + 100 = 301 s. The best is kept.
    let rows = [(0.0, 1, 1.0), (0.0, 1, 100.0), (0.0, 1, 100.0), (0.0, 1, 100.0)];
    assert_near(bounds_of(&on(2, &rows)).avg_jct_s, 377.25 / 4.0);
    // Sixteen GPUs, one job on all of them for 1,000 s at 0 s and a hundred of 1 s at 1 s: all on the machine,
    // M - r + e/2 of a short one is far below its 1 s.
    let mut rows = vec![(0.0, 16, 1000.0)];
    rows.extend([(1.0, 1, 1.0); 100]);
    let bounds = bounds_of(&on(16, &rows));
    assert!(bounds.avg_jct_s * 101.0 >= 1000.0 + 100.0, "{bounds:?}");
}

#[test]
fn walls_between_tenants_count() {
    // Two tenants with one GPU each; all four jobs of 10 s belong to the first: 10 + 20 + 30 + 40.
    let mut walled = on(2, &[(0.0, 1, 10.0); 4]);
    walled.cluster.tenants = ["a", "b"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: 1,
        })
        .into();
    assert_near(bounds_of(&walled).avg_jct_s, 15.0);
    walled.cluster.borrowing = false;
    assert_near(bounds_of(&walled).avg_jct_s, 25.0);
    assert_near(bounds_of(&walled).makespan_s, 40.0);
}

#[test]
fn a_slow_type_adds_no_more_than_it_is_worth() {
    // One GPU of speed 4 and one of speed 1: 5 units of work a second. Ten jobs of 40 s of reference time take 80 s.
    let mut mixed = on(1, &[(0.0, 1, 40.0); 10]);
    mixed.cluster.gpu_types.push(mixed.cluster.gpu_types[0].clone());
    mixed.cluster.gpu_types[1].name = "slow".into();
    let mut group = mixed.cluster.node_groups[0].clone();
    group.gpu_type = "slow".into();
    mixed.cluster.node_groups.push(group);
    mixed.classes = vec![class_of(2)];
    mixed.classes[0].speed = vec![4.0, 1.0];
    let bounds = bounds_of(&mixed);
    assert_near(bounds.makespan_s, 80.0);
    // Mean busy times 4, 12, ..., 76 on the machine; every span is 10 s on the fast type.
    assert_near(bounds.avg_jct_s, 45.0);
}

#[test]
fn two_jobs_on_each_gpu_halve_the_work_and_not_the_span() {
    // As above, four jobs of 10 s on two GPUs, but in pairs: all could run at once.
    let packed = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let bounds = LowerBounds::of(&on(2, &[(0.0, 1, 10.0); 4]), &packed);
    assert_near(bounds.avg_jct_s, 10.0);
    assert_near(bounds.makespan_s, 10.0);
}

#[test]
fn a_job_with_half_a_gpu_leaves_the_other_half() {
    // One GPU, two jobs of 10 s with 500 thousandths each: at once.
    let mut halves = on(1, &[(0.0, 1, 10.0); 2]);
    for job in &mut halves.jobs {
        job.resources.gpu_milli = 500;
    }
    assert_near(bounds_of(&halves).avg_jct_s, 10.0);
}

#[test]
fn no_jobs_give_zeros() {
    assert_eq!(bounds_of(&on(1, &[])), LowerBounds::default());
}
