//! Policies: trees, formulas, those of an index, networks in both forms, bundles, the state of a training, what other batch systems show.

use std::path::Path;

use pleach_agents::{Checkpoint, Logger};
use pleach_experiments::{DOOR, worlds};
use pleach_network::TrainedNetwork;
use pleach_scheduler::tree::Bundle;

use super::Reader;

fn open(path: &Path) -> Result<(), String> {
    let opened = DOOR.open(&path.display().to_string());
    opened.map(drop).map_err(|error| error.to_string())
}

/// What a bundle has beside its manifest.
const BUNDLE: [(&str, &str); 3] = [
    ("tree.json", "beside/bundle/tree.json"),
    ("tree.txt", "beside/bundle/tree.txt"),
    ("certificates.txt", "beside/bundle/certificates.txt"),
];

pub const READERS: [Reader; 7] = [
    Reader {
        name: "policies",
        beside: &[],
        sources: &[
            "scheduler/dealing/src/formula.rs",
            "scheduler/network/src/container.rs",
            "scheduler/network/src/graph/onnx_data.rs",
            "scheduler/network/src/load.rs",
            "scheduler/network/src/onnx_file.rs",
            "scheduler/network/src/policy_file.rs",
            "scheduler/policies/src/door.rs",
            "scheduler/policies/src/file.rs",
            "scheduler/core/src/tree/file.rs",
            "scheduler/core/src/tree/file/columns.rs",
            "scheduler/core/src/tree/file/disk.rs",
            "scheduler/core/src/formula/file.rs",
        ],
        read: open,
    },
    Reader {
        name: "networks",
        beside: &[],
        sources: &[],
        read: |path| {
            let read = TrainedNetwork::load(path);
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "artefacts",
        beside: &[("tree.json", "policies/tree.json"), ("run.json", "runs/run.json")],
        sources: &["scheduler/policies/src/artefacts.rs"],
        read: |path| {
            // It has the name that a run gives it.
            open(path.parent().unwrap())
        },
    },
    Reader {
        name: "bundles",
        beside: &BUNDLE,
        sources: &["scheduler/core/src/tree/bundle.rs"],
        read: |path| {
            // A bundle holds nothing besides.
            let folder = path.parent().unwrap().join("bundle");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(path, folder.join("manifest.json")).unwrap();
            for (name, _) in BUNDLE {
                std::fs::copy(path.with_file_name(name), folder.join(name)).unwrap();
            }
            Bundle::open(&folder).map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "checkpoints",
        beside: &[],
        sources: &["agents/src/checkpoint.rs"],
        read: |path| {
            Checkpoint::load(path)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "training-logs",
        beside: &[],
        sources: &["agents/src/log.rs"],
        read: |path| {
            let folder = path.parent().unwrap().join("log");
            std::fs::create_dir_all(&folder).unwrap();
            for name in ["metrics.jsonl", "histograms.jsonl", "timing.jsonl"] {
                std::fs::copy(path, folder.join(name)).unwrap();
            }
            let opened = Logger::open(&folder, Some(1000), 0.0).map(drop);
            std::fs::remove_dir_all(&folder).unwrap();
            opened.map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "serving-trees",
        beside: &[],
        sources: &[],
        read: |path| {
            let read = worlds::certified(path);
            read.map(drop).map_err(|error| error.to_string())
        },
    },
];
