//! What Slurm's programs print, and what a daemon keeps.

use std::collections::BTreeSet;
use std::path::Path;

use pleach_daemon::replay::Replay;
use pleach_daemon::slurm::observe::{SharesText, read_queue, read_rules};
use pleach_daemon::slurm::rules::RuleTexts;
use pleach_daemon::slurm::scope::Scope;
use pleach_daemon::slurm::{accounting, ended, observe, queue};
use pleach_daemon::state::{State, read_history, read_memory};
use pleach_daemon::status::read_status;
use pleach_daemon::{EstimateSettings, Settings};

use super::Reader;

const NOW_S: i64 = 1_750_000_000;
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

pub const READERS: [Reader; 11] = [
    Reader {
        name: "slurm-jobs",
        beside: &[],
        sources: &[],
        read: |path| {
            let [jobs, nodes] = texts(path);
            let others = read_queue(&jobs, &nodes, "gpu", &BTreeSet::new(), NOW_S);
            let read = observe::read(&jobs, &nodes, "gpu", NOW_S);
            others.and(read).map(drop).map_err(|error| error.to_string())
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
                gpu_nodes: part(),
                reservations: part(),
                licences: part(),
                limits: part(),
            };
            let read = read_rules(
                &jobs,
                &nodes,
                &Scope::only("gpu"),
                &SharesText::default(),
                &rules,
                NOW_S,
            );
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "slurm-queue",
        beside: &[],
        sources: &[],
        read: |path| {
            let [jobs, factors] = texts(path);
            queue::read(&jobs, &factors, "gpu")
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
            words(state.read_drift())
        },
    },
];
