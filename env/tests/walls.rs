//! Tenants behind walls, where no tenant borrows: under head-of-line blocking each runs as on a cluster of its own.

use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{SimConfig, simulate, simulate_planner};
use pleach_scheduler::Lens;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources, TenantSpec};
use pleach_scheduler::heuristics::{self, head_of_line};
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{ActionKind, PolicyPlanner, Time};
use proptest::prelude::*;

/// (submit s, GPUs, run time s, tenant), sorted by submission.
type Row = (u32, u32, u32, u16);

fn workload(cluster: ClusterSpec, rows: &[Row], tenant: impl Fn(&Row) -> u16) -> Workload {
    let jobs = rows.iter().enumerate().map(|(number, row)| JobSpec {
        id: number.to_string(),
        submit: Time::from_secs_f64(f64::from(row.0)),
        num_gpus: row.1,
        run_time_s: f64::from(row.2),
        estimate_s: None,
        tenant: tenant(row),
        class: 0,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    });
    Workload {
        name: "walls".into(),
        cluster,
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    }
}

fn finishes(workload: &Workload, policy: &mut dyn Policy) -> Vec<f64> {
    let result = simulate(workload, &SimConfig::default(), policy).unwrap();
    result.jobs.iter().map(|job| job.finish_s).collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0_u32..60, 1_u32..=4, 1_u32..40, 0_u16..3);
    proptest::collection::vec(row, 1..30).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.0);
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn walled_tenants_finish_as_on_clusters_of_their_own(rows in rows(), by_length in any::<bool>()) {
        // Three tenants with 4 GPUs each on one node of 12, against three nodes of 4.
        let mut policy = if by_length {
            head_of_line("sjf-strict", Lens::Shortest)
        } else {
            head_of_line("fifo", Lens::Arrival)
        };
        let mut spec = ClusterSpec::uniform(1, 12, 1);
        spec.borrowing = false;
        let tenant = |number| TenantSpec { name: format!("t{number}"), quota_gpus: 4 };
        spec.tenants = (0..3).map(tenant).collect();
        let together = finishes(&workload(spec, &rows, |row| row.3), &mut policy);
        for tenant in 0..3 {
            let own: Vec<Row> = rows.iter().filter(|row| row.3 == tenant).copied().collect();
            let alone = finishes(&workload(ClusterSpec::uniform(1, 4, 1), &own, |_| 0), &mut policy);
            let walled = rows.iter().zip(&together).filter(|(row, _)| row.3 == tenant);
            prop_assert_eq!(walled.map(|(_, finish_s)| *finish_s).collect::<Vec<f64>>(), alone);
        }
    }

    #[test]
    fn a_policy_as_a_planner_that_asks_to_be_woken_decides_as_the_policy_with_its_tick(
        rows in rows(),
        name in proptest::sample::select(heuristics::names()),
    ) {
        let workload = workload(ClusterSpec::uniform(3, 4, 2), &rows, |_| 0);
        let mut config = SimConfig::default();
        config.capabilities.grant(ActionKind::Preempt, true);
        let policy = simulate(&workload, &config, &mut heuristics::by_name(name).unwrap()).unwrap();
        let mut planner = PolicyPlanner::new(heuristics::by_name(name).unwrap());
        prop_assert_eq!(simulate_planner(&workload, &config, &mut planner).unwrap(), policy);
    }
}
