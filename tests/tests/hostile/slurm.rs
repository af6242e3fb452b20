//! What Slurm's programs print, and what a daemon keeps.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_daemon::drift::Remembered;
use pleach_daemon::forecasts::{self, Forecasts, Served};
use pleach_daemon::memory::Memory;
use pleach_daemon::promised::{self, Guard};
use pleach_daemon::replay::Replay;
use pleach_daemon::slurm::observe::{Texts, read};
use pleach_daemon::slurm::rules::RuleTexts;
use pleach_daemon::slurm::{accounting, ended, queue};
use pleach_daemon::snapshot::{Site, Snapshot, VERSION};
use pleach_daemon::state::{DRIFT, State, WAITS, read_history, read_memory};
use pleach_daemon::status::read_status;
use pleach_daemon::{EstimateSettings, RoundSettings, Settings};
use pleach_experiments::promise;
use pleach_site::promise::{Limits, Stated};

use super::Reader;

const NOW_S: i64 = 1_750_000_000;
/// Those of the seeds of waits: a mean above 1080 s, and a job that waits longer than 8640 s.
const LIMITS: Limits = Limits {
    wait_s: Stated {
        value: 600.0,
        low: 300.0,
        high: 900.0,
    },
    wait_s_p99: 7200.0,
    margin: 0.2,
};

fn snapshot() -> Snapshot {
    Snapshot {
        version: VERSION,
        taken_s: NOW_S,
        nodes: Vec::new(),
        jobs: Vec::new(),
        site: Site::default(),
    }
}

/// Between the texts of several programs in one seed.
const BETWEEN: &str = "==\n";

fn texts(path: &Path) -> [String; 2] {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let (one, other) = text.split_once(BETWEEN).unwrap_or((&text, ""));
    [one.to_owned(), other.to_owned()]
}

/// The file under the name that a daemon gives it, alone in a folder.
fn as_state(path: &Path, name: &str) -> std::path::PathBuf {
    let folder = path.parent().unwrap().join("state");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(path, folder.join(name)).unwrap();
    folder
}

fn words<T>((_, words): (T, Option<String>)) -> Result<(), String> {
    words.map_or(Ok(()), Err)
}

pub const READERS: [Reader; 14] = [
    Reader {
        name: "slurm-jobs",
        beside: &[],
        sources: &[],
        read: |path| {
            let [jobs, nodes] = texts(path);
            let texts = Texts {
                jobs: &jobs,
                nodes: &nodes,
                ..Texts::default()
            };
            read(&texts, "gpu", NOW_S)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-rules",
        beside: &[("look.txt", "beside/look.txt")],
        sources: &[],
        read: |path| {
            let [jobs, nodes] = texts(&path.with_file_name("look.txt"));
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
            let mut parts = text.split(BETWEEN);
            let mut part = || parts.next().unwrap_or_default();
            let rules = RuleTexts {
                wishes: part(),
                partitions: part(),
                reservations: part(),
                licences: part(),
                limits: part(),
            };
            let texts = Texts {
                jobs: &jobs,
                nodes: &nodes,
                rules,
                ..Texts::default()
            };
            read(&texts, "gpu", NOW_S)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-queue",
        beside: &[],
        sources: &[],
        read: |path| {
            let [jobs, factors] = texts(path);
            queue::read(&jobs, &factors, &["gpu"])
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-ended",
        beside: &[],
        sources: &[],
        read: |path| {
            ended::read(&texts(path)[0])
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-past",
        beside: &[],
        sources: &[],
        read: |path| {
            accounting::read(&texts(path)[0])
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "scheduler-settings",
        beside: &[],
        sources: &["deploy/daemon/src/config.rs", "deploy/daemon/src/files.rs"],
        read: |path| Settings::load(path).map(drop).map_err(|error| error.to_string()),
    },
    Reader {
        name: "decisions",
        beside: &[],
        sources: &[
            "deploy/daemon/src/journal/mod.rs",
            "deploy/daemon/src/journal/segments.rs",
            "deploy/daemon/src/record.rs",
            "deploy/daemon/src/replay.rs",
        ],
        read: |path| {
            let mut replay = Replay::open(path).map_err(|error| error.to_string())?;
            while replay.next_round().map_err(|error| error.to_string())?.is_some() {}
            let folder = as_state(path, "decisions.jsonl");
            let id = pleach_scheduler::ExternalId::number(1);
            let rounds = pleach_daemon::state::rounds_of(&folder, id, 5);
            rounds.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "memories",
        beside: &[],
        sources: &["deploy/daemon/src/state.rs"],
        read: |path| words(read_memory(&as_state(path, "memory.json"))),
    },
    Reader {
        name: "histories",
        beside: &[],
        sources: &["deploy/daemon/src/history.rs"],
        read: |path| {
            let settings = EstimateSettings::default();
            words(read_history(&as_state(path, "history.json"), &settings))
        },
    },
    Reader {
        name: "states",
        beside: &[],
        sources: &["deploy/daemon/src/status.rs"],
        read: |path| {
            let read = read_status(&as_state(path, "status.json"));
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "drifts",
        beside: &[],
        sources: &[],
        read: |path| {
            let folder = as_state(path, "drift.json");
            let state = State::take(&folder, Settings::default().log()).map_err(|error| error.to_string())?;
            words(state.read_watch::<Remembered>(DRIFT))
        },
    },
    Reader {
        name: "promises",
        beside: &[],
        sources: &["deploy/daemon/src/promised.rs"],
        read: |path| {
            let settings = RoundSettings {
                promise: Some(path.to_owned()),
                ..RoundSettings::default()
            };
            promised::read(&settings).map_err(|error| error.to_string())?;
            // The command reads what was played too.
            promise::read(path).map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "forecasts",
        beside: &[],
        sources: &["deploy/daemon/src/forecasts.rs"],
        read: |path| {
            let served = Served::default();
            let mut forecasts = Forecasts::of(&as_state(path, forecasts::FILE), served.clone());
            let said = forecasts.look(NOW_S);
            let _ = (served.starts(), forecasts.news(&snapshot()));
            let _ = (served.answer(""), served.answer("x&job=4711"));
            said.map_or(Ok(()), Err)
        },
    },
    Reader {
        name: "waits",
        beside: &[],
        sources: &[],
        read: |path| {
            let folder = as_state(path, WAITS);
            let state = State::take(&folder, Settings::default().log()).map_err(|error| error.to_string())?;
            let (remembered, said) = state.read_watch(WAITS);
            let settings = RoundSettings::default();
            let mut guard = Guard::new(LIMITS, &settings).going_on(remembered);
            guard.observe(&snapshot(), &Memory::default(), &BTreeMap::new());
            let _ = (guard.status(NOW_S).told(), guard.degraded());
            said.map_or(Ok(()), Err)
        },
    },
];
