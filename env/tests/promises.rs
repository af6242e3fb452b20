//! What backfilling promises: with exact estimates and gangs that run equally fast everywhere, no job starts later than it
//! was promised when it came, and conservative backfilling starts no job later than FIFO does.

use pleach_dealing::Conservative;
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{SimConfig, simulate, simulate_planner};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources, TenantSpec};
use pleach_scheduler::heuristics::by_name;
use pleach_scheduler::{JobId, Time};
use proptest::prelude::*;

/// (submission, run time, gang, tenant), all on a coarse grid so that ties abound.
type Draw = (u32, u32, u32, u16);

fn workload(num_nodes: u32, walls: bool, draws: &[Draw]) -> Workload {
    let mut cluster = ClusterSpec::uniform(num_nodes, 4, 1);
    if walls {
        let quota_gpus = num_nodes * 2;
        cluster.tenants = ["a", "b"]
            .map(|name| TenantSpec {
                name: name.into(),
                quota_gpus,
            })
            .to_vec();
        cluster.borrowing = false;
    }
    let mut draws = draws.to_vec();
    draws.sort_by_key(|draw| draw.0);
    let most = if walls { num_nodes * 2 } else { num_nodes * 4 };
    let jobs = draws.iter().enumerate();
    let jobs = jobs.map(|(number, (submit, run, gang, tenant))| JobSpec {
        id: number.to_string(),
        submit: Time::from_secs_f64(f64::from(*submit) * 60.0),
        num_gpus: gang % most + 1,
        run_time_s: f64::from(*run) * 60.0,
        estimate_s: None,
        tenant: if walls { tenant % 2 } else { 0 },
        class: 0,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources::WHOLE_GPU,
        observed: None,
    });
    let workload = Workload {
        name: "promises".into(),
        jobs: jobs.collect(),
        classes: vec![ModelClass::default()],
        cluster,
    };
    workload.validate().unwrap();
    workload
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let submit = prop_oneof![0_u32..4, 0_u32..60];
    proptest::collection::vec((submit, 1_u32..30, 0_u32..16, 0_u16..2), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nobody_starts_later_than_it_was_promised_nor_later_than_under_fifo(
        num_nodes in 1_u32..5, walls in any::<bool>(), draws in draws(),
    ) {
        let workload = workload(num_nodes, walls, &draws);
        let config = SimConfig::default();
        let mut planner = Conservative::default();
        let result = simulate_planner(&workload, &config, &mut planner).unwrap();
        let fifo = simulate(&workload, &config, by_name("fifo").unwrap().as_mut()).unwrap();
        for (number, (job, in_line)) in result.jobs.iter().zip(&fifo.jobs).enumerate() {
            let promise_s = planner.first_promise(JobId(number as u32)).unwrap().as_secs_f64();
            prop_assert!(job.first_start_s <= promise_s + 1e-3, "job {number}: {job:?}, promised {promise_s}");
            // Behind walls our FIFO lets tenants overtake each other, so it is no order to compare with.
            prop_assert!(
                walls || job.first_start_s <= in_line.first_start_s + 1e-3,
                "job {number}: {job:?}, FIFO {in_line:?}"
            );
        }
    }
}

#[test]
fn a_list_without_classes_says_nothing_of_placement_and_nothing_is_assumed() {
    // Two gangs of three on two nodes of four leave one GPU on each: the gang of two runs over both nodes, as fast as on one.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    let rows = "submit_s,num_gpus,run_time_s\n0,3,5000\n0,3,5000\n1,2,1000\n";
    std::fs::write(&path, rows).unwrap();
    let options = ImportOptions {
        cluster: Some(ClusterSpec::uniform(2, 4, 2)),
        ..ImportOptions::default()
    };
    let (workload, _) = import(&path, &options).unwrap();
    let mut policy = by_name("fifo-skip").unwrap();
    let result = simulate(&workload, &SimConfig::default(), &mut *policy).unwrap();
    assert_eq!(result.jobs[2].jct_s(), 1000.0);
}
