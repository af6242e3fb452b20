//! The loop on a batch system of two functions: what it asks for, in which order, and what it writes when that fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use pleach_daemon::config::{EstimateSettings, EstimatesFrom, LogSettings};
use pleach_daemon::history::{End, EndedJob};
use pleach_daemon::record::Planned;
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Site, Snapshot, Terms, VERSION};
use pleach_daemon::state::{State, read_status};
use pleach_daemon::system::{BatchSystem, Hands, Kept, Late, Look, NotSent, Words};
use pleach_daemon::wait::block_on;
use pleach_daemon::{Driver, Error, RoundSettings};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;

pub(crate) const NOW_S: i64 = 1_795_000_000;

/// A node of four GPUs and jobs of four, which start as soon as they are let go.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) jobs: Vec<JobSeen>,
    is_down: bool,
    late: Vec<Late>,
    /// What was asked for, in its order.
    asked: Vec<String>,
}

#[derive(Clone, Default)]
pub(crate) struct Toy(pub(crate) Arc<Mutex<World>>);

pub(crate) struct Seen(Snapshot);

impl Look for Seen {
    fn snapshot(&self) -> &Snapshot {
        &self.0
    }

    fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.0
    }

    fn into_snapshot(self) -> Snapshot {
        self.0
    }

    fn name(&self, job: ExternalId) -> String {
        format!("toy {job}")
    }
}

impl Toy {
    fn ask(&self, what: &str) {
        self.0.lock().unwrap().asked.push(what.to_owned());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }
}

impl BatchSystem for Toy {
    type Look = Seen;
    type Hands<'a> = &'a Toy;
    type Error = Error;

    const WORDS: Words = Words {
        scheduler: "nobody",
        left_alone: ("jobs_left_alone", "Jobs that are left alone"),
        place: "",
        held: "jobs",
        program: "toy",
    };

    fn place(&self) -> String {
        "a toy".into()
    }

    async fn observe(&mut self, now_s: i64) -> Result<Seen, Error> {
        self.ask("observe");
        let world = self.0.lock().unwrap();
        if world.is_down {
            return Err(Error::Command {
                command: "toy".into(),
                reason: "is down".into(),
            });
        }
        let is_used = world.jobs.iter().any(JobSeen::is_placed);
        Ok(Seen(Snapshot {
            version: VERSION,
            taken_s: now_s,
            site: Site::default(),
            nodes: vec![NodeSeen {
                name: "n1".into(),
                gpu_type: "a100".into(),
                num_gpus: 4,
                num_gpus_used: if is_used { 4 } else { 0 },
                num_cpus_free: 64,
                host: None,
                state: NodeState::Up,
                shared: None,
            }],
            jobs: world.jobs.clone(),
        }))
    }

    fn show(&self, look: &Arc<Seen>) {
        let told = look
            .snapshot()
            .jobs
            .iter()
            .map(|job| job.predicted_s.map(f64::round));
        self.ask(&format!("show {:?}", told.collect::<Vec<_>>()));
    }

    async fn ended(&self) -> Result<BTreeMap<ExternalId, End>, Error> {
        self.ask("ended");
        Ok(BTreeMap::new())
    }

    async fn past(&self, _: &Seen, days: u32) -> Result<Vec<EndedJob>, Error> {
        self.ask(&format!("past {days}"));
        Ok(vec![EndedJob {
            user: "ann".into(),
            account: String::new(),
            num_gpus: 4,
            start_s: NOW_S - 100,
            end_s: NOW_S - 50,
            nodes: Vec::new(),
        }])
    }

    fn hands<'a>(&'a self, _: &'a Seen, _: &'a str) -> &'a Toy {
        self
    }
}

impl Hands for &Toy {
    async fn keep(&mut self, _: i64) -> Kept {
        self.ask("keep");
        Kept {
            notes: Vec::new(),
            late: std::mem::take(&mut self.0.lock().unwrap().late),
        }
    }

    async fn stop(&mut self, _: &JobSeen, _: &Planned) -> Result<(), NotSent> {
        Err(NotSent::refused("it goes on"))
    }

    async fn start(&mut self, job: &JobSeen, planned: &Planned, now_s: i64) -> Result<(), NotSent> {
        self.ask(&format!("start {} on {}", job.id, planned.nodes.join(",")));
        let mut world = self.0.lock().unwrap();
        let own = world.jobs.iter_mut().find(|own| own.id == job.id).unwrap();
        (own.phase, own.start_s, own.nodes) = (Phase::Running, Some(now_s), planned.nodes.clone());
        Ok(())
    }
}

pub(crate) fn waiting(number: u64) -> JobSeen {
    JobSeen {
        id: ExternalId::number(number),
        phase: Phase::Waiting,
        account: String::new(),
        user: "ann".into(),
        submit_s: NOW_S - 100 + number as i64,
        start_s: None,
        limit_s: Some(1000),
        num_nodes: 1,
        gpus_per_node: 4,
        is_packed: false,
        share: None,
        gpu_type: None,
        gpu_types: Vec::new(),
        num_cpus: 1,
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

fn driver(toy: &Toy, folder: &Path, is_shadow: bool, seed_days: u32) -> Driver<Toy> {
    let settings = RoundSettings {
        estimates: EstimateSettings {
            from: EstimatesFrom::History,
            seed_days,
            ..EstimateSettings::default()
        },
        ..RoundSettings::default()
    };
    let state = State::take(folder, LogSettings::default()).unwrap();
    Driver::new(toy.clone(), settings, state, None, ("fifo", is_shadow)).unwrap()
}

#[test]
fn a_round_asks_in_its_order_and_for_ends_only_where_a_job_has_left() {
    let (toy, folder) = (Toy::default(), tempfile::tempdir().unwrap());
    toy.0.lock().unwrap().jobs = vec![waiting(1), waiting(2)];
    let mut driver = driver(&toy, folder.path(), false, 7);
    let mut round = |now_s| {
        let notes = block_on(driver.round(now_s));
        (toy.asked(), notes)
    };
    let told = "show [Some(50.0), Some(50.0)]";
    let (asked, notes) = round(NOW_S);
    assert_eq!(asked, ["observe", "past 7", told, "keep", "start 1 on n1"]);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(round(NOW_S + 2).0, ["observe", told, "keep"]);
    toy.0.lock().unwrap().jobs.remove(0);
    let asked = round(NOW_S + 4).0;
    assert_eq!(asked[..2], ["observe", "ended"]);
    assert_eq!(asked[3..], ["keep", "start 2 on n1"]);
    // What did not start is remembered with its node, or pauses.
    let late = |node: Option<&str>| Late {
        job: ExternalId::number(2),
        node: node.map(str::to_owned),
        reason: "Because".into(),
        pause_s: 30,
    };
    toy.0.lock().unwrap().late = vec![late(Some("n1")), late(None)];
    assert_eq!(
        round(NOW_S + 6).1,
        [
            "toy 2 was let go to n1 and did not start: Because; not there again for 60 s",
            "toy 2 was let go and did not start: Because; not again for 30 s"
        ]
    );
}

#[test]
fn a_shadow_has_no_hands_and_what_fails_is_told_and_written() {
    let (toy, folder) = (Toy::default(), tempfile::tempdir().unwrap());
    toy.0.lock().unwrap().jobs = vec![waiting(1)];
    let mut driver = driver(&toy, folder.path(), true, 0);
    assert_eq!(block_on(driver.round(NOW_S)), Vec::<String>::new());
    assert_eq!(toy.asked(), ["observe", "show [None]"]);
    let log = std::fs::read_to_string(folder.path().join("decisions.jsonl")).unwrap();
    assert!(
        log.contains("\"action\":\"start\"") && !log.contains("outcome"),
        "{log}"
    );
    assert!(!folder.path().join("heartbeat").exists());
    toy.0.lock().unwrap().is_down = true;
    assert_eq!(block_on(driver.round(NOW_S + 2)), ["toy: is down"]);
    let status = read_status(folder.path()).unwrap();
    assert_eq!(
        (status.num_rounds, status.num_failed, status.num_starts),
        (2, 1, 1)
    );
    assert_eq!(
        (status.at_s, status.last_error.as_str()),
        (NOW_S + 2, "toy: is down")
    );
    assert_eq!(status.partition, "a toy");
}

#[test]
fn where_a_job_could_not_be_stopped_nothing_is_started() {
    let (toy, folder) = (Toy::default(), tempfile::tempdir().unwrap());
    toy.0.lock().unwrap().jobs = vec![waiting(1)];
    let settings = RoundSettings {
        preemption: true,
        ..RoundSettings::default()
    };
    let state = State::take(folder.path(), LogSettings::default()).unwrap();
    let mut driver = Driver::new(toy.clone(), settings, state, None, ("las-deal", false)).unwrap();
    assert_eq!(block_on(driver.round(NOW_S)), Vec::<String>::new());
    block_on(driver.round(NOW_S + 2));
    toy.0.lock().unwrap().jobs.push(waiting(2));
    toy.asked();
    assert_eq!(
        block_on(driver.round(NOW_S + 4000)),
        [
            "toy 1: refused: it goes on",
            "toy 2: put off: a job there could not be stopped"
        ]
    );
    assert_eq!(toy.asked(), ["observe", "show [None, None]", "keep"]);
    assert_eq!(driver.status().num_starts, 1);
}
