//! What is learned from which jobs, by hand: a cluster of one node, watched from outside.

use super::*;
use crate::config::{EstimatesFrom, GpuType};
use crate::snapshot::NodeSeen;
use pleach_scheduler::Provenance;
use pleach_scheduler::cluster::NodeState;

const EPOCH_S: i64 = 1_795_000_000;

fn settings() -> RoundSettings {
    RoundSettings {
        estimates: EstimateSettings {
            from: EstimatesFrom::History,
            ..EstimateSettings::default()
        },
        ..RoundSettings::default()
    }
}

/// A job of `user` with four GPUs; `start_s` since the beginning, where it runs.
fn job(number: u64, user: &str, start_s: Option<i64>) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: if start_s.is_some() {
            Phase::Running
        } else {
            Phase::Waiting
        },
        account: "team".into(),
        user: user.into(),
        submit_s: EPOCH_S,
        start_s: start_s.map(|start_s| EPOCH_S + start_s),
        limit_s: Some(3600),
        num_nodes: 1,
        gpus_per_node: 4,
        is_packed: false,
        gpu_type: None,
        share: None,
        gpu_types: Vec::new(),
        num_cpus: 4,
        nodes: start_s.map(|_| "n1".to_owned()).into_iter().collect(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: crate::snapshot::Terms::default(),
    }
}

fn end(start_s: Option<i64>, end_s: i64, is_cut: bool) -> End {
    End {
        start_s: start_s.map(|start_s| EPOCH_S + start_s),
        end_s: EPOCH_S + end_s,
        is_cut,
        nodes: Vec::new(),
    }
}

/// A daemon that watches.
struct Watch {
    history: History,
    memory: Memory,
    settings: RoundSettings,
    ends: BTreeMap<ExternalId, End>,
}

impl Watch {
    fn new(settings: RoundSettings) -> Watch {
        Watch {
            history: History::new(&settings.estimates),
            memory: Memory::default(),
            settings,
            ends: BTreeMap::new(),
        }
    }

    /// A look at `now_s`; the predictions of the jobs.
    fn look(&mut self, now_s: i64, jobs: &[JobSeen]) -> Vec<Option<f64>> {
        let mut snapshot = Snapshot {
            version: crate::snapshot::VERSION,
            taken_s: EPOCH_S + now_s,
            site: crate::snapshot::Site::default(),
            nodes: vec![NodeSeen {
                name: "n1".into(),
                gpu_type: "a100".into(),
                num_gpus: 8,
                num_gpus_used: 0,
                num_cpus_free: 64,
                host: None,
                shared: None,
                state: NodeState::Up,
            }],
            jobs: jobs.to_vec(),
        };
        self.memory.observe(&snapshot);
        self.history
            .observe(&mut snapshot, &self.memory, &self.ends, &self.settings);
        snapshot.jobs.iter().map(|job| job.predicted_s).collect()
    }

    fn ended(&mut self, number: u64, end: End) {
        self.ends.insert(ExternalId::number(number), end);
    }
}

fn is_near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-6 * expected)
}

#[test]
fn jobs_are_told_what_others_like_them_took_and_keep_it() {
    let mut watch = Watch::new(settings());
    // Nothing has ended: there is no prediction yet, and the next look asks again.
    assert_eq!(
        watch.look(0, &[job(1, "ann", Some(0)), job(2, "ann", None)]),
        [None, None]
    );
    watch.ended(1, end(Some(0), 100, false));
    assert!(is_near(watch.look(101, &[job(2, "ann", Some(101))])[0], 100.0));
    watch.ended(2, end(Some(101), 501, false));
    // A quarter of the 500 GPU s went in runs of up to 400 s. Bob has no history of his own: all jobs of four GPUs count.
    let told = watch.look(502, &[job(3, "ann", None), job(4, "bob", None)]);
    assert!(is_near(told[0], 400.0) && is_near(told[1], 400.0), "{told:?}");
    // Job 3 gets no new prediction while it waits, though a third job has ended since.
    watch.look(510, &[job(3, "ann", None), job(5, "ann", Some(505))]);
    watch.ended(5, end(Some(505), 515, false));
    let told = watch.look(520, &[job(3, "ann", None), job(6, "ann", None)]);
    assert!(is_near(told[0], 400.0) && is_near(told[1], 400.0), "{told:?}");
}

#[test]
fn failed_and_cancelled_runs_count_and_those_that_the_cluster_cut_do_not() {
    let after = |ended: End| {
        let mut watch = Watch::new(settings());
        watch.look(0, &[job(1, "ann", Some(0))]);
        watch.ended(1, ended);
        watch.look(10, &[job(2, "ann", None)])[0]
    };
    assert!(is_near(after(end(Some(0), 7, false)), 7.0));
    assert_eq!(after(end(Some(0), 7, true)), None);
    // Cancelled before it ran: the watch saw a start that Slurm took back.
    let mut watch = Watch::new(settings());
    let mut let_go = job(1, "ann", None);
    let_go.phase = Phase::Released { since_s: EPOCH_S };
    let_go.nodes = vec!["n1".into()];
    watch.look(0, &[let_go.clone()]);
    watch.ended(1, end(None, 3, false));
    assert_eq!(watch.look(4, &[job(2, "ann", None)]), [None]);
    // One that ran and ended between two looks is known by what Slurm tells.
    let mut watch = Watch::new(settings());
    watch.look(0, &[let_go]);
    watch.ended(1, end(Some(1), 3, false));
    assert!(is_near(watch.look(4, &[job(2, "ann", None)])[0], 2.0));
    // Shorter than a second is a second, also where the clock was set back, and nothing is longer than 31 years.
    assert!(is_near(after(end(Some(0), 0, false)), 1.0));
    assert!(is_near(after(end(Some(9), 0, false)), 1.0));
    let far = End {
        start_s: Some(i64::MIN),
        ..end(Some(0), i64::MAX - EPOCH_S, false)
    };
    assert!(is_near(after(far), 1e9));
}

#[test]
fn an_end_that_nobody_tells_lies_between_two_looks_or_is_not_known() {
    let after = |now_s: i64| {
        let mut watch = Watch::new(settings());
        watch.look(0, &[job(1, "ann", Some(-96))]);
        watch.look(now_s, &[job(2, "ann", None)])[0]
    };
    assert!(is_near(after(8), 100.0));
    assert!(is_near(after(60), 126.0));
    assert_eq!(after(61), None, "the daemon was away");
}

#[test]
fn a_requeued_run_is_no_end_and_what_a_preempted_job_did_before_counts() {
    let mut watch = Watch::new(settings());
    watch.look(0, &[job(1, "ann", Some(0))]);
    watch.look(50, &[job(1, "ann", None)]); // Put back, with nothing kept: a failure.
    assert_eq!(
        watch.look(51, &[job(1, "ann", None), job(2, "bob", None)]),
        [None, None]
    );
    watch.look(60, &[job(1, "ann", Some(60))]);
    watch.ended(1, end(Some(60), 190, false));
    // The run of 130 s, less the restart of 30 s.
    assert!(is_near(watch.look(191, &[job(3, "ann", None)])[0], 100.0));
}

#[test]
fn time_on_fast_gpus_counts_for_more_and_a_prediction_never_exceeds_the_limit() {
    let mut fast = settings();
    fast.gpu_types.insert(
        "a100".into(),
        GpuType {
            speed: 2.5,
            ..GpuType::default()
        },
    );
    let mut watch = Watch::new(fast);
    watch.look(0, &[job(1, "ann", Some(0))]);
    // It began between two looks: the nodes that Slurm reports count.
    watch.look(1, &[job(1, "ann", Some(0)), job(9, "bob", None)]);
    watch.ended(
        9,
        End {
            nodes: vec!["n1".into()],
            ..end(Some(0), 4, false)
        },
    );
    watch.look(2, &[job(1, "ann", Some(0))]);
    assert!(is_near(
        watch.look(3, &[job(1, "ann", Some(0)), job(8, "bob", None)])[1],
        10.0
    ));
    watch.ended(1, end(Some(0), 400, false));
    let mut next = job(2, "ann", None);
    next.predicted_s = watch.look(401, &[next.clone()])[0];
    assert!(is_near(next.predicted_s, 1000.0));
    let told = next.estimate_s(86_400);
    assert_eq!(told.provenance, Provenance::Predicted);
    assert!(is_near(Some(told.value), 1000.0));
    next.limit_s = Some(600);
    let told = next.estimate_s(86_400);
    assert_eq!((told.value, told.provenance), (600.0, Provenance::UserLimit));
    next.limit_s = None;
    assert_eq!(next.estimate_s(999).value, 999.0);
}

#[test]
fn names_of_any_length_and_of_any_number_stay_within_bounds() {
    let mut few = settings();
    few.estimates.num_users = 3;
    few.estimates.num_last = 2;
    let mut watch = Watch::new(few);
    for number in 0..200 {
        let name = format!("{number}\u{1b}[2J\"\\|{}", "n\u{0}".repeat(100_000));
        watch.look(10 * number, &[job(number as u64, &name, Some(10 * number))]);
    }
    watch.look(3000, &[]);
    // Three users with two groups, their gang and all, of two run times each.
    assert!(
        watch.history.num_kept().0 <= (3 * 2 + 2) * 2,
        "{:?}",
        watch.history.num_kept()
    );
    let text = serde_json::to_string(&watch.history).unwrap();
    assert!(
        text.len() < 5000 && !text.contains(char::is_control),
        "{}",
        text.len()
    );
    assert!(!text.contains("\\u0000") && !text.contains("\\u001b"));
}

#[test]
fn a_watch_that_is_cut_off_behind_any_look_and_goes_on_tells_the_same() {
    let script = |cut: Option<i64>| {
        let mut watch = Watch::new(settings());
        let mut told = Vec::new();
        for now in 0..40_i64 {
            // Two jobs at a time; each runs four looks.
            let jobs: Vec<JobSeen> = (0..=now / 2)
                .filter(|number| now < number * 2 + 4)
                .map(|number| {
                    job(
                        number as u64,
                        ["ann", "bob", "cem"][number as usize % 3],
                        Some(number * 2),
                    )
                })
                .collect();
            for number in 0..=now / 2 {
                let last_s = number * 2 + 3;
                if last_s < now {
                    watch.ended(number as u64, end(Some(number * 2), last_s, false));
                }
            }
            told.push(watch.look(now, &jobs));
            if cut == Some(now) {
                let text = serde_json::to_vec(&watch.history).unwrap();
                watch.history = History::read(&text, &watch.settings.estimates).unwrap();
            }
        }
        told
    };
    let whole = script(None);
    assert!(whole.last().unwrap().iter().all(Option::is_some));
    for cut in 0..40 {
        assert_eq!(script(Some(cut)), whole, "cut off behind look {cut}");
    }
}

#[test]
fn leases_teach_nothing_and_are_told_nothing() {
    let mut watch = Watch::new(settings());
    let lease = |number: u64, start_s: Option<i64>| {
        let mut lease = job(number, "ann", start_s);
        lease.terms.is_lease = true;
        lease
    };
    watch.look(0, &[lease(1, Some(0)), job(2, "ann", Some(0))]);
    watch.ended(1, end(Some(0), 5_000, false));
    watch.ended(2, end(Some(0), 100, false));
    let told = watch.look(5_001, &[job(3, "ann", None), lease(4, None)]);
    assert!(is_near(told[0], 100.0) && told[1].is_none(), "{told:?}");
    // A job that becomes one, by the settings, is not learned from either.
    watch.look(5_010, &[job(5, "ann", Some(5_002))]);
    watch.look(5_020, &[lease(5, Some(5_002))]);
    watch.ended(5, end(Some(5_002), 9_000, false));
    let told = watch.look(9_001, &[job(6, "ann", None)]);
    assert!(is_near(told[0], 100.0), "{told:?}");
}
