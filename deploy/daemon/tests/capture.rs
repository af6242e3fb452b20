//! A log as a workload: jobs by hand, read back by the simulator, which then plays them.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_daemon::RoundSettings;
use pleach_daemon::capture::Capture;
use pleach_daemon::config::GpuType;
use pleach_daemon::memory::Memory;
use pleach_daemon::record::{Planned, RoundRecord};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Share, Site, Snapshot, Terms, VERSION};
use pleach_env::workload::Workload;
use pleach_env::{SimConfig, simulate};
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::decision::Action;
use pleach_scheduler::{ExternalId, Tasks, heuristics};

/// When the log begins, Unix time, s.
const EPOCH_S: i64 = 1_795_000_000;

fn settings(preemption: bool) -> RoundSettings {
    let fast = GpuType {
        speed: 2.0,
        ..GpuType::default()
    };
    RoundSettings {
        preemption,
        gpu_types: BTreeMap::from([("fast".into(), fast)]),
        tenants: BTreeMap::from([("vision".into(), 4)]),
        ..RoundSettings::default()
    }
}

fn node(name: &str, gpu_type: &str) -> NodeSeen {
    NodeSeen {
        name: name.into(),
        gpu_type: gpu_type.into(),
        num_gpus: 4,
        // The cluster is written down whole, whatever GPUs are in use.
        num_gpus_used: 3,
        num_cpus_free: 64,
        host: None,
        state: NodeState::Up,
        shared: None,
    }
}

/// A job that came `submit_s` after the beginning and runs since `start_s`, if it does.
fn job(number: u64, submit_s: i64, start_s: Option<i64>, on: &str) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: start_s.map_or(Phase::Waiting, |_| Phase::Running),
        account: if number == 1 { "vision" } else { "others" }.into(),
        user: "ann, b.".into(),
        submit_s: EPOCH_S + submit_s,
        start_s: start_s.map(|start_s| EPOCH_S + start_s),
        limit_s: Some(600),
        num_nodes: 1,
        gpus_per_node: 2,
        is_packed: false,
        share: None,
        gpu_type: None,
        gpu_types: Vec::new(),
        num_cpus: 2,
        nodes: start_s.map(|_| on.to_string()).into_iter().collect(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

fn round(number: u64, taken_s: i64, jobs: Vec<JobSeen>) -> RoundRecord {
    RoundRecord {
        round: number,
        is_shadow: true,
        policy: "fifo".into(),
        fallback: None,
        aside: None,
        snapshot: Snapshot {
            version: VERSION,
            taken_s: EPOCH_S + taken_s,
            site: Site::default(),
            nodes: vec![node("a", "slow"), node("b", "fast")],
            jobs,
        },
        memory: Memory::default(),
        turn: None,
        order: None,
        decisions: Vec::new(),
        observe_s: 0.0,
        decide_s: 0.0,
        apply_s: 0.0,
    }
}

/// Job 1 runs on the fast node from 100 s, is seen until 130 s and gone at 140 s. Job 2 is taken back while it waits. Job 3
/// runs from 100 s, waits again at 120 s, runs from 125 s and is gone at 150 s. Job 4 has not ended. Job 5 is left to the batch
/// system. Job 6 was never seen running.
fn rounds() -> Vec<RoundRecord> {
    let foreign = JobSeen {
        phase: Phase::Foreign {
            reason: "gres".into(),
        },
        ..job(5, 60, Some(70), "a")
    };
    let of = |taken_s: i64| {
        let mut jobs = Vec::new();
        if taken_s <= 130 {
            jobs.push(job(1, 50, Some(100), "b"));
        }
        if taken_s <= 110 {
            jobs.push(job(2, 70, None, ""));
        }
        // Job 6 is let go at 120 s and gone at 130 s.
        if taken_s == 120 {
            jobs.push(JobSeen {
                phase: Phase::Released {
                    since_s: EPOCH_S + 118,
                },
                nodes: vec!["a".into()],
                ..job(6, 110, None, "")
            });
        }
        match taken_s {
            120 => jobs.push(job(3, 90, None, "")),
            ..=119 => jobs.push(job(3, 90, Some(100), "a")),
            121..=140 => jobs.push(job(3, 90, Some(125), "a")),
            _ => {}
        }
        jobs.extend([job(4, 95, Some(99), "a"), foreign.clone()]);
        jobs
    };
    let times = [100, 110, 120, 130, 140, 150];
    let rounds = times.into_iter().enumerate();
    rounds
        .map(|(number, taken_s)| round(number as u64, taken_s, of(taken_s)))
        .collect()
}

fn captured(rounds: &[RoundRecord], settings: RoundSettings, path: &Path) -> (String, Workload) {
    let mut capture = Capture::new(settings);
    for record in rounds {
        capture.read(record);
    }
    let said = capture.write(path, None).unwrap();
    (said, Workload::read(path).unwrap())
}

#[test]
fn a_log_is_read_as_the_jobs_that_it_shows_and_the_simulator_plays_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("week.csv");
    let (said, workload) = captured(&rounds(), settings(false), &path);
    assert!(
        said.starts_with("3 jobs that ended; left out: 1 that had not, 1 never seen running, 1 given"),
        "{said}"
    );
    let jobs: Vec<_> = workload
        .jobs
        .iter()
        .map(|job| (job.id.as_str(), job.submit.as_secs_f64(), job.run_time_s))
        .collect();
    // 40 s at twice the speed; 25 s, for what was done before the requeue is lost.
    assert_eq!(jobs, [("1", 0.0, 80.0), ("3", 40.0, 25.0), ("6", 60.0, 12.0)]);
    let job = &workload.jobs[0];
    assert_eq!(
        (job.num_gpus, job.estimate_s, job.user.as_deref()),
        (2, Some(600.0), Some("ann, b."))
    );
    let tenants: Vec<&str> = workload
        .jobs
        .iter()
        .map(|job| workload.cluster.tenants[usize::from(job.tenant)].name.as_str())
        .collect();
    assert_eq!(tenants, ["vision", "*", "*"]);
    assert_eq!(workload.classes[0].speed, [1.0, 2.0]);
    assert_eq!(
        workload.cluster.num_gpus(),
        8,
        "the whole cluster, whoever holds what"
    );
    let mut policy = heuristics::by_name("sjf").unwrap();
    let result = simulate(&workload, &SimConfig::default(), policy.as_mut()).unwrap();
    assert!(result.metrics.avg_jct_s > 0.0);
    // With checkpoints the 20 s before the requeue count.
    let (_, workload) = captured(&rounds(), settings(true), &folder.path().join("kept.csv"));
    assert_eq!(workload.jobs[1].run_time_s, 45.0);
}

#[test]
fn a_log_as_it_stands_has_what_runs_and_what_waits_and_is_written_over_and_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.csv");
    let mut rounds = rounds();
    let blocked = Phase::Blocked {
        reason: "is at a limit".into(),
    };
    let waits = |number, phase| JobSeen {
        phase,
        ..job(number, 100, None, "")
    };
    rounds[5]
        .snapshot
        .jobs
        .extend([waits(7, Phase::Loose), waits(8, blocked)]);
    let log = folder.path().join("decisions.jsonl");
    let lines = |rounds: &[RoundRecord]| -> String {
        let line = |round| serde_json::to_string(round).unwrap() + "\n";
        rounds.iter().map(line).collect()
    };
    let mut capture = Capture::new(settings(false));
    for (num, num_waiting) in [(2, 1), (6, 1), (6, 1)] {
        std::fs::write(&log, lines(&rounds[..num])).unwrap();
        capture.read_on(&[folder.path().into()]).unwrap();
        assert_eq!(capture.write_present(&path, EPOCH_S + 160).unwrap(), num_waiting);
    }
    let list = Workload::read(&path).unwrap();
    assert_eq!(list.cluster.seen.time_0_unix_s, Some(EPOCH_S as f64 + 50.0));
    assert_eq!(list.jobs[2].run_time_s, 61.0, "the fourth has run until now");
    let told = |job: &pleach_env::workload::JobSpec| {
        let start = job
            .observed
            .as_deref()
            .map(|observed| observed.start.as_secs_f64());
        let observed = job.observed.as_deref();
        let end = observed.and_then(|observed| Some(observed.end?.as_secs_f64()));
        let nodes = observed.map_or(String::new(), |observed| observed.nodes.clone());
        (job.id.clone(), start, end, nodes)
    };
    let told: Vec<_> = list.jobs.iter().map(told).collect();
    let of = |id: &str, start: Option<f64>, end: Option<f64>, node: &str| {
        (id.to_owned(), start, end, node.to_owned())
    };
    assert_eq!(
        told,
        [
            of("1", Some(50.0), Some(90.0), "b"),
            of("3", Some(75.0), Some(100.0), "a"),
            of("4", Some(49.0), None, "a"),
            of("7", None, None, ""),
            of("6", Some(68.0), Some(80.0), "a"),
        ]
    );
}

#[test]
fn jobs_run_on_the_gpu_types_that_they_ask_for_and_on_any_where_no_node_of_those_holds_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut rounds = rounds();
    let asks = |number, gpu_type: &str| JobSeen {
        gpu_type: Some(gpu_type.into()),
        ..job(number, 100, None, "")
    };
    let of_two = JobSeen {
        gpu_types: vec!["slow".into(), "fast".into()],
        ..job(9, 100, None, "")
    };
    let too_large = JobSeen {
        num_nodes: 2,
        gpus_per_node: 4,
        ..asks(10, "fast")
    };
    let new = [
        asks(7, "slow"),
        asks(8, "fast"),
        of_two,
        too_large,
        asks(11, "gone"),
    ];
    rounds[5].snapshot.jobs.extend(new);
    let mut capture = Capture::new(settings(false));
    rounds.iter().for_each(|record| capture.read(record));
    let path = folder.path().join("queue.csv");
    capture.write_present(&path, EPOCH_S + 160).unwrap();
    let list = Workload::read(&path).unwrap();
    let of = |id: &str| {
        let job = list.jobs.iter().find(|job| job.id == id).unwrap();
        list.classes[usize::from(job.class)].speed.clone()
    };
    assert_eq!(["7", "8"].map(of), [[1.0, 0.0], [0.0, 2.0]]);
    assert_eq!(["1", "9", "11"].map(of), [[1.0, 2.0]; 3]);
    // A list with a job for which its cluster is too small could not be read.
    assert!(list.jobs.iter().all(|job| job.id != "10"));
}

#[test]
fn the_record_of_a_log_is_a_possible_schedule_of_its_list() {
    for (name, keeps) in [("lost", false), ("kept", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (list, place) = (
            folder.path().join(format!("{name}.csv")),
            folder.path().join("schedule.csv"),
        );
        let mut capture = Capture::new(settings(keeps));
        rounds().iter().for_each(|record| capture.read(record));
        capture.write(&list, Some(&place)).unwrap();
        let record = pleach_tables::schedule::Record::read(&place).unwrap();
        let run = &record.runs[0];
        let told: Vec<String> = run
            .segments
            .iter()
            .map(|segment| {
                let (job, ended) = (&run.jobs[segment.job as usize], segment.ended.word());
                format!(
                    "{job}/{} {} {} to {} {ended}",
                    segment.attempt,
                    run.nodes_text(segment),
                    segment.from_s,
                    segment.to_s
                )
            })
            .collect();
        // Seconds after 50 s, when job 1 came. Node 0 is `a`, node 1 `b`.
        assert_eq!(
            told,
            [
                "1/1 1:x2 50 to 90 completed",
                "3/1 0:x2 50 to 70 attempt-failed",
                "3/2 0:x2 75 to 100 completed",
                "6/1 0:x2 68 to 80 completed",
            ]
        );
        let cluster = std::fs::read_to_string(list.with_extension("cluster.toml")).unwrap();
        let facts = pleach_verify::Facts::read(&list, &cluster).unwrap();
        let conditions = pleach_verify::Conditions {
            is_observed: true,
            ..pleach_verify::Conditions::default()
        };
        let verdict = pleach_verify::verify(&facts, &conditions, run).unwrap();
        let path = serde_json::json!(list.display().to_string());
        let settings: serde_json::Value = serde_json::from_str(&record.settings).unwrap();
        assert_eq!(settings["evaluation"]["workload"]["workload"][0], path);
        assert_eq!(verdict.faults, [], "{name}");
    }
}

#[test]
fn shares_are_parts_of_gpus_and_what_is_there_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shares.csv");
    let mut rounds = rounds();
    for record in &mut rounds {
        for job in record
            .snapshot
            .jobs
            .iter_mut()
            .filter(|job| job.id == ExternalId::number(1))
        {
            job.gpus_per_node = 1;
            job.share = Some(Share {
                shards: 1,
                gpu_milli: 250,
                gpu: Some(0),
            });
        }
    }
    let (_, workload) = captured(&rounds, settings(false), &path);
    let milli: Vec<u16> = workload.jobs.iter().map(|job| job.resources.gpu_milli).collect();
    assert_eq!(milli, [250, 1000, 1000]);
    let mut again = Capture::new(settings(false));
    rounds.iter().for_each(|record| again.read(record));
    let error = again.write(&path, None).unwrap_err().to_string();
    assert!(error.contains("shares.csv"), "{error}");
    // Beside the file of another cluster no list is written, nor is half of one left.
    let path = folder.path().join("other.csv");
    std::fs::write(folder.path().join("other.cluster.toml"), "mine").unwrap();
    let mut third = Capture::new(settings(false));
    rounds.iter().for_each(|record| third.read(record));
    assert!(third.write(&path, None).is_err() && !path.exists());
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["other.cluster.toml", "shares.cluster.toml", "shares.csv"]);
    let empty = Capture::new(settings(false)).write(&folder.path().join("none.csv"), None);
    assert!(empty.unwrap_err().to_string().contains("no job ran and ended"));
}

/// A gang of two pods on Kubernetes, and a pod that is stopped for it: the pod that stands for it then has an id of its own.
#[test]
fn a_log_of_pods_is_read_too_and_who_was_stopped_and_made_anew_has_not_ended() {
    let id = |number: u32| format!("123e4567-e89b-42d3-a456-{number:012x}").parse().unwrap();
    let pod = |number: u32, submit_s, start_s| JobSeen {
        id: id(number),
        ..job(9, submit_s, start_s, "a")
    };
    let gang = |start_s: Option<i64>| JobSeen {
        num_nodes: 2,
        is_packed: true,
        nodes: start_s
            .into_iter()
            .flat_map(|_| ["a".into(), "a".into()])
            .collect(),
        ..pod(2, 60, start_s)
    };
    let mut stopped = round(1, 100, vec![pod(1, 50, Some(55)), gang(None)]);
    stopped.decisions = vec![
        decided(id(1), Action::Preempt, "sent"),
        decided(id(2), Action::Start, "sent"),
    ];
    // It takes a while to end.
    let ending = JobSeen {
        phase: Phase::Blocked {
            reason: "is being stopped".into(),
        },
        start_s: None,
        ..pod(1, 50, None)
    };
    let rounds = [
        stopped,
        round(2, 105, vec![ending, gang(Some(102)), pod(3, 105, None)]),
        round(2, 110, vec![gang(Some(102)), pod(3, 105, None)]),
        round(3, 170, vec![pod(3, 105, None)]),
    ];
    let folder = tempfile::tempdir().unwrap();
    let (said, workload) = captured(&rounds, settings(true), &folder.path().join("pods.csv"));
    assert!(
        said.contains("1 jobs that ended; left out: 1 that had not"),
        "{said}"
    );
    assert!(
        said.contains("1 stopped and made anew under another id"),
        "{said}"
    );
    let jobs: Vec<(String, u32, f64)> = workload
        .jobs
        .iter()
        .map(|job| (job.id.to_string(), job.num_gpus, job.run_time_s))
        .collect();
    assert_eq!(jobs, [(id(2).to_string(), 4, 68.0)]);
    // Two pods of two GPUs.
    assert_eq!(workload.jobs[0].resources.tasks, Tasks::of(2));
}

/// A decision about a job with this outcome.
fn decided(job: ExternalId, action: Action, outcome: &str) -> Planned {
    let decision = serde_json::json!({ "job": job, "action": action, "placement": [], "num_gpus": 2, "gpu_milli": 1000,
        "gpu_memory_mib_per_gpu": 0, "cpu_milli_per_gpu": 0, "memory_mib_per_gpu": 0, "num_copies": 1 });
    Planned {
        decision: serde_json::from_value(decision).unwrap(),
        nodes: vec!["a".into()],
        estimate_s: None,
        why: String::new(),
        outcome: outcome.into(),
        refused_by: Vec::new(),
    }
}
