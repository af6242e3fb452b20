//! The simulator and the daemon learn run times alike: the same jobs, ended at the same times, give the same predictions, bit for
//! bit, wherever the daemon is ended and begun again.

use std::collections::BTreeMap;

use pleach_daemon::RoundSettings;
use pleach_daemon::config::{EstimateSettings, EstimatesFrom};
use pleach_daemon::history::{End, History};
use pleach_daemon::memory::Memory;
use pleach_daemon::snapshot::{JobSeen, Phase, Site, Snapshot, Terms, VERSION};
use pleach_env::Seed;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::{ClusterSpec, ExternalId, ModelClass, Provenance, Resources, Time};
use proptest::prelude::*;

const EPOCH_S: i64 = 1_795_000_000;
/// What the simulator says until anything has ended; no geometric mean of whole numbers is this.
const DEFAULT_S: f64 = 0.123;

/// User, account, GPUs, time since the last submission, run time.
type Drawn = (u8, u16, u32, i64, i64);

fn workload(drawn: &[Drawn]) -> Workload {
    let mut submit_s = 0;
    let jobs = drawn
        .iter()
        .enumerate()
        .map(|(row, (user, tenant, num_gpus, gap_s, run_time_s))| {
            submit_s += gap_s;
            JobSpec {
                id: row.to_string(),
                submit: Time(submit_s * 1_000_000),
                num_gpus: *num_gpus,
                run_time_s: *run_time_s as f64,
                estimate_s: None,
                tenant: *tenant,
                class: 0,
                user: Some(format!("user-{user}")),
                outcome: Outcome::Unknown,
                resources: Resources::WHOLE_GPU,
                observed: None,
            }
        });
    Workload {
        name: "drawn".into(),
        jobs: jobs.collect(),
        cluster: ClusterSpec::uniform(1, 8, 1),
        classes: vec![ModelClass::default()],
    }
}

fn seen(job: &JobSpec, number: usize) -> JobSeen {
    let submit_s = EPOCH_S + job.submit.0 / 1_000_000;
    JobSeen {
        id: ExternalId::number(number as u64),
        phase: Phase::Running,
        account: format!("account-{}", job.tenant),
        user: job.user.clone().unwrap(),
        submit_s,
        start_s: Some(submit_s),
        limit_s: None,
        num_nodes: 1,
        gpus_per_node: job.num_gpus,
        is_packed: false,
        gpu_type: None,
        share: None,
        gpu_types: Vec::new(),
        num_cpus: 1,
        nodes: vec!["n1".into()],
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

/// The daemon's prediction for each job when it comes, where no job has to wait. Behind each job of `cuts` it begins again.
fn told(workload: &Workload, num_last: u32, cuts: &[usize]) -> Vec<Option<f64>> {
    let settings = RoundSettings {
        estimates: EstimateSettings {
            from: EstimatesFrom::History,
            num_last,
            ..EstimateSettings::default()
        },
        ..RoundSettings::default()
    };
    let mut history = History::new(&settings.estimates);
    let all: Vec<JobSeen> = workload
        .jobs
        .iter()
        .enumerate()
        .map(|(row, job)| seen(job, row))
        .collect();
    let end_s = |row: usize| all[row].submit_s + workload.jobs[row].run_time_s as i64;
    let mut told = Vec::new();
    for (row, new) in all.iter().enumerate() {
        let now_s = new.submit_s;
        let runs = |other: &usize| *other == row || end_s(*other) > now_s;
        let ends: BTreeMap<ExternalId, End> = (0..row)
            .filter(|other| end_s(*other) <= now_s)
            .map(|other| {
                let end = End {
                    start_s: all[other].start_s,
                    end_s: end_s(other),
                    is_cut: false,
                    nodes: Vec::new(),
                };
                (all[other].id, end)
            })
            .collect();
        let mut snapshot = Snapshot {
            version: VERSION,
            taken_s: now_s,
            site: Site::default(),
            nodes: Vec::new(),
            jobs: (0..=row).filter(runs).map(|other| all[other].clone()).collect(),
        };
        history.observe(&mut snapshot, &Memory::default(), &ends, &settings);
        let found = snapshot.jobs.iter().find(|job| job.id == new.id).unwrap();
        told.push(found.predicted_s);
        if cuts.contains(&row) {
            history = History::read(&serde_json::to_vec(&history).unwrap(), &settings.estimates).unwrap();
        }
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn simulator_and_daemon_predict_the_same_bits(
        drawn in prop::collection::vec((0..4_u8, 0..2_u16, 1..5_u32, 0..20_i64, 1..200_i64), 1..60),
        num_last in 1..12_u32,
        cuts in prop::collection::vec(0..60_usize, 0..3),
    ) {
        let workload = workload(&drawn);
        let model = EstimateModel::History { num_last: num_last as usize, default_s: DEFAULT_S };
        let simulated = model.estimates(&workload, Seed(1));
        prop_assert!(simulated.iter().all(|estimate| estimate.provenance == Provenance::Predicted));
        let simulated: Vec<u64> = simulated.iter().map(|estimate| estimate.value.to_bits()).collect();
        let told: Vec<u64> = told(&workload, num_last, &cuts)
            .into_iter()
            .map(|predicted_s| predicted_s.unwrap_or(DEFAULT_S).to_bits())
            .collect();
        prop_assert_eq!(simulated, told);
    }
}
