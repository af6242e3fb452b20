//! What a search finds on lists whose best schedule is known, and what shares of it say.

use std::sync::Arc;

use pleach_env::SimConfig;
use pleach_env::workload::{JobSpec, Workload};
use pleach_experiments::regret::{Room, rules, strongest};
use pleach_experiments::{EvaluationConfig, Instance, JobsWorld, PolicySpec, Runner, Watcher};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::portable_math::ln;

/// Jobs of one GPU each on one GPU: when they come and how long they run, s.
fn list_of(jobs: &[(f64, f64)]) -> Instance {
    let jobs = jobs.iter().enumerate();
    let jobs = jobs.map(|(number, (submit_s, run_s))| {
        JobSpec::new(number.to_string(), Time::from_secs_f64(*submit_s), 1, *run_s)
    });
    let workload = Workload {
        name: "one GPU".into(),
        cluster: ClusterSpec::uniform(1, 1, 1),
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    };
    Instance {
        workload: Arc::new(workload),
        seed: 3,
    }
}

/// The least average JCT of any order on one GPU, s, by trying all of them.
fn least_s(jobs: &[(f64, f64)], now_s: f64) -> f64 {
    fn sum_s(left: &[(f64, f64)], now_s: f64) -> f64 {
        let each = (0..left.len()).map(|first| {
            let (submit_s, run_s) = left[first];
            let end_s = now_s.max(submit_s) + run_s;
            let mut rest = left.to_vec();
            rest.remove(first);
            end_s - submit_s + sum_s(&rest, end_s)
        });
        each.min_by(f64::total_cmp).unwrap_or(0.0)
    }
    sum_s(jobs, now_s) / jobs.len() as f64
}

#[test]
fn a_search_that_sees_the_list_holds_a_long_job_back_where_short_ones_are_about_to_come() {
    let jobs = [
        (0.0, 10_000.0),
        (10.0, 100.0),
        (20.0, 300.0),
        (30.0, 200.0),
        (700.0, 50.0),
        (8000.0, 900.0),
    ];
    let list = list_of(&jobs);
    let sim = SimConfig::default();
    let rules = rules(sim.capabilities).unwrap();
    let runs = Runner::new(&sim)
        .run(std::slice::from_ref(&list), &rules)
        .unwrap();
    let least_s = least_s(&jobs, 0.0);
    let rule = strongest(&runs, rules.iter().map(PolicySpec::name)).unwrap();
    let rule_s = runs.iter().find(|run| run.policy == rule).unwrap().metrics["avg_jct_s"];
    assert!(rule_s > 1.5 * least_s, "{rule}: {rule_s} {least_s}");
    let of = |num| {
        Room::of(
            &sim,
            std::slice::from_ref(&list),
            (&runs, &rules),
            &rules,
            num,
            &Watcher::silent(),
        )
        .unwrap()
    };
    let (none, all) = (of(0), of(300));
    assert!(none.foresight.mean <= 1.0 && !none.is_evidence(), "{none:?}");
    let found_s = all.foresight.mean * rule_s;
    assert!(
        found_s >= least_s * (1.0 - 1e-9),
        "no schedule is below {least_s}: {found_s}"
    );
    assert!(found_s <= 1.02 * least_s, "{found_s} {least_s}");
    assert!(all.is_evidence() && all.bound.unwrap().mean <= all.foresight.mean);
    // The same again.
    assert_eq!(of(300), all);
}

#[test]
fn no_schedule_of_a_search_is_below_the_lower_bound_where_types_differ_and_jobs_share() {
    for (name, more) in [
        ("gavel-multi", "sharing = 'mps'"),
        ("philly-like", "preemption = true"),
    ] {
        let text = format!(
            "policy = ['sjf', 'fifo-skip']\nseeds = 2\n[workload]\nworkload = ['{name}']\nnum_jobs = 60\nload = 6.0\n\
             [scheduling]\nestimates = 'history'\n{more}"
        );
        let config: EvaluationConfig = toml::from_str(&text).unwrap();
        let evaluation = JobsWorld::open(&config).unwrap();
        let instances = evaluation.instances(&mut |_| {}).unwrap();
        let (sim, rules) = (&evaluation.sim, &evaluation.policies);
        let runs = Runner::new(sim).run(&instances, rules).unwrap();
        let room = Room::of(sim, &instances, (&runs, rules), rules, 60, &Watcher::silent()).unwrap();
        let bound = room.bound.unwrap();
        assert!(bound.mean <= room.foresight.mean, "{name}: {room:?}");
        assert!(
            room.foresight.mean < room.known.1.mean.min(1.0),
            "{name}: {room:?}"
        );
    }
}

#[test]
fn the_best_rule_wins_nothing_the_search_all_and_half_the_way_is_half() {
    let jobs = [(0.0, 10_000.0), (10.0, 100.0), (20.0, 300.0), (30.0, 200.0)];
    let lists = [1.0, 2.0, 4.0].map(|times| list_of(&jobs.map(|(at_s, run_s)| (at_s, run_s * times))));
    let sim = SimConfig::default();
    let rules = ["sjf", "fifo"].map(|name| PolicySpec::heuristic(name).unwrap());
    let runs = Runner::new(&sim).run(&lists, &rules).unwrap();
    let room = Room::of(&sim, &lists, (&runs, &rules), &rules, 200, &Watcher::silent()).unwrap();
    assert!(room.is_evidence());
    let share = |logs: &[f64]| room.share_of(logs).unwrap();
    assert_eq!(
        (share(&[0.0; 3]).mean, room.share(&runs, &room.rule).unwrap().mean),
        (0.0, 0.0)
    );
    // As much on every list as the search in the mean is all of it.
    let all = ln(room.foresight.mean);
    assert!((share(&[all; 3]).mean - 1.0).abs() < 1e-9 && (share(&[0.5 * all; 3]).mean - 0.5).abs() < 1e-9);
    let uneven = share(&[3.0 * all, 0.0, 0.0]);
    assert!(
        uneven.low < uneven.mean && uneven.mean < uneven.high,
        "{uneven:?}"
    );
    // A loss is a share below nothing.
    assert!(share(&[0.1; 3]).mean < 0.0);
    assert!(room.in_words(Some(share(&[0.5 * all; 3]))).starts_with("50 % ["));
    // Where one list is one job, nothing can be won.
    let idle = [list_of(&jobs[..1])];
    let runs = Runner::new(&sim).run(&idle, &rules).unwrap();
    let room = Room::of(&sim, &idle, (&runs, &rules), &rules, 10, &Watcher::silent()).unwrap();
    assert!(!room.is_evidence() && room.share_of(&[0.0]).is_none());
    assert_eq!(room.in_words(None), "no evidence: 0.0 % to win");
}
