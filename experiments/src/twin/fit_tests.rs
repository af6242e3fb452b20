//! A site that is a simulation itself: what is fitted must be what it was made with; and a list worked by hand under two
//! policies.

use pleach_env::SimConfig;
use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_scheduler::cluster_spec::ClusterSpec;
use pleach_scheduler::{ModelClass, Time};

use super::under::play;
use super::{FitInput, Span, Trust, Twin, UnderInput, believed, doubt, fit, under};
use crate::door::DOOR;
use crate::evaluate::estimate_source::EstimateSource;
use crate::progress::Watcher;
use pleach_env::batch_system::BatchSystem;

/// 400 jobs for 16 GPUs at a load of about 1, as they went under a policy with these beliefs and a start of 45 s.
fn site(policy: &str, estimates: EstimateSource) -> Workload {
    let mut state = 7_u64;
    let mut below = |most: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut at_s = 0.0;
    let jobs = (0..400).map(|number| {
        at_s += (400 + below(4000)) as f64;
        let run_s = (600 + below(100) * below(100) * 5) as f64;
        let num_gpus = [1, 1, 2, 2, 4, 8][below(6) as usize];
        let mut job = JobSpec::new(format!("j{number}"), Time::from_secs_f64(at_s), num_gpus, run_s);
        job.estimate_s = Some(run_s * (2 + below(4)) as f64);
        job
    });
    let mut workload = Workload {
        name: "site".into(),
        cluster: ClusterSpec::uniform(2, 8, 2),
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    };
    let sim = SimConfig {
        estimates: estimates.model(),
        batch_system: Some(BatchSystem {
            start_delay_s: 45.0,
            ..BatchSystem::default()
        }),
        ..SimConfig::default()
    };
    let jobs = play(&workload, &sim, &DOOR.open_one(policy).unwrap()).unwrap();
    for (job, outcome) in workload.jobs.iter_mut().zip(jobs) {
        job.observed = Some(Box::new(Observed {
            start: Time::from_secs_f64(outcome.first_start_s),
            partition: "gpu".into(),
            ..Observed::default()
        }));
    }
    workload
}

#[test]
fn the_policy_the_beliefs_and_the_delay_of_a_simulated_site_are_found() {
    let names = ["easy", "fifo", "fifo-skip", "sjf"].map(str::to_owned);
    let policies = DOOR.open_all(&names).unwrap();
    for (policy, estimates) in [("sjf", EstimateSource::User), ("fifo-skip", EstimateSource::User)] {
        let workload = site(policy, estimates);
        let input = FitInput {
            workload: &workload,
            sim: &SimConfig::default(),
            policies: &policies,
            estimates: &believed(&workload, None),
        };
        let (found, jobs) = fit(&input, &Watcher::silent()).unwrap();
        assert_eq!((found.policy.as_str(), found.estimates), (policy, estimates));
        assert!((found.start_delay_s - 45.0).abs() <= 1.0, "{found:?}");
        let spec = DOOR.open_one(policy).unwrap();
        let sim = found.sim(&SimConfig::default());
        let twin = Twin::since(&spec, &workload, &sim, &jobs, found.until_s).unwrap();
        assert!(
            twin.trust == Trust::Close && twin.rank_correlation.unwrap() > 0.95,
            "{}",
            twin.verdict()
        );
    }
}

#[test]
fn whoever_learns_is_told_of_a_twin_that_is_not_believable_and_of_nothing_else() {
    let watcher = Watcher::silent();
    let told = |workload: &Workload| doubt(workload, &SimConfig::default(), &watcher).unwrap();
    let mut workload = site("fifo-skip", EstimateSource::User);
    assert_eq!(told(&workload), None);
    // All jobs are held back for a day, for a reason that no policy knows.
    for job in &mut workload.jobs {
        if let Some(observed) = job.observed.as_deref_mut() {
            observed.start = observed.start + Time::from_secs_f64(86_400.0);
        }
    }
    let said = told(&workload).unwrap();
    assert!(
        said.contains("not believable") && said.contains("pleach twin --fit"),
        "{said}"
    );
    workload.jobs.iter_mut().for_each(|job| job.observed = None);
    assert_eq!(told(&workload), None);
}

#[test]
fn a_list_under_another_policy_has_the_waits_that_are_worked_by_hand() {
    // One GPU. Under fifo the jobs wait 0, 99 and 198 s; the shortest first, 0, 109 and 98 s.
    let job = |id: &str, at: f64, run_s: f64| JobSpec::new(id, Time::from_secs_f64(at), 1, run_s);
    let workload = Workload {
        name: "hand".into(),
        cluster: ClusterSpec::uniform(1, 1, 1),
        classes: vec![ModelClass::default()],
        jobs: vec![job("a", 0.0, 100.0), job("b", 1.0, 100.0), job("c", 2.0, 10.0)],
    };
    let (fifo, sjf) = (DOOR.open_one("fifo").unwrap(), DOOR.open_one("sjf").unwrap());
    let compare = |since_s: f64| {
        let input = UnderInput {
            workload: &workload,
            sim: &SimConfig::default(),
            site: &fifo,
            others: std::slice::from_ref(&sjf),
            span: Span::since(&workload, since_s),
        };
        under(&input, &Watcher::silent()).unwrap()
    };
    let all = compare(0.0);
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
    near(all.rows[0].avg_wait_s, 99.0);
    near(all.rows[1].avg_wait_s, 69.0);
    near(all.rows[1].wait.unwrap().mean, 207.0 / 297.0);
    near(
        all.between("sjf", "fifo").unwrap().mean,
        (207.0 + 210.0) / (297.0 + 210.0),
    );
    assert_eq!((all.num_jobs, all.observed_wait_s), (3, None));
    // Of jobs that came later alone, with the queue that was there before them.
    near(compare(2.0).rows[1].wait.unwrap().mean, 98.0 / 198.0);
}
