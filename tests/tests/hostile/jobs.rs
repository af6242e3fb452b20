//! Lists of jobs, clusters, records of schedules, and what serves: requests and calls.

use std::path::Path;

use pleach_env::schedule::Record;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::import::site::{Mapping, NodeTable, SiteOptions, import_site};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::{Seed, Workload};
use pleach_experiments::evaluate::cluster_flag::cluster_of;
use pleach_experiments::file_kind::FileKind;
use pleach_experiments::schedule::RecordSettings;
use pleach_experiments::worlds;
use pleach_verify::Facts;

use super::Reader;

/// The text of a file, or no reader's affair.
fn text(path: &Path) -> Option<String> {
    String::from_utf8(std::fs::read(path).unwrap()).ok()
}

pub const READERS: [Reader; 12] = [
    Reader {
        name: "lists",
        beside: &[("lists.cluster.toml", "beside/jobs.cluster.toml")],
        sources: &[
            "workloads/tables/src/lines.rs",
            "workloads/tables/src/parquet_read.rs",
            "workloads/lists/src/import/detect.rs",
            "workloads/lists/src/import/eva.rs",
            "workloads/lists/src/import/rejected.rs",
        ],
        read: |path| {
            let read = import(path, &ImportOptions::default());
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "sidecars",
        beside: &[("sidecars.csv", "lists/canonical.csv")],
        sources: &[
            "workloads/lists/src/file/read.rs",
            "workloads/lists/src/cluster/faults.rs",
        ],
        read: |path| {
            let jobs = path.with_file_name("sidecars.csv");
            Workload::read(&jobs).map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "accounting",
        beside: &[("nodes.txt", "nodes/scontrol.txt")],
        sources: &["workloads/lists/src/import/site/document.rs"],
        read: |path| {
            let nodes = NodeTable::read(&path.with_file_name("nodes.txt")).unwrap();
            let options = SiteOptions {
                nodes: Some(nodes),
                ..SiteOptions::default()
            };
            import_site(path, &options)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "nodes",
        beside: &[],
        sources: &["workloads/lists/src/import/site/nodes.rs"],
        read: |path| NodeTable::read(path).map(drop).map_err(|error| error.to_string()),
    },
    Reader {
        name: "mappings",
        beside: &[("sacct.txt", "accounting/sacct.txt")],
        sources: &["workloads/lists/src/import/site/mapping.rs"],
        read: |path| {
            let Some(text) = text(path) else { return Ok(()) };
            let mapping = Mapping::of_text("mapping.toml", &text).map_err(|error| error.to_string())?;
            let options = SiteOptions {
                mapping: Some(mapping),
                ..SiteOptions::default()
            };
            // A mapping that is none of that list may leave no job.
            let read = import_site(&path.with_file_name("sacct.txt"), &options);
            read.map_or_else(|error| Err(error.to_string()), |_| Ok(()))
        },
    },
    Reader {
        name: "profiles",
        beside: &[],
        sources: &["workloads/lists/src/generate/profile_file.rs"],
        read: |path| {
            let Some(text) = text(path) else { return Ok(()) };
            std::fs::write(path.with_extension("toml"), text).unwrap();
            let name = path.with_extension("toml").display().to_string();
            let config = GeneratorConfig::preset(&name).map_err(|error| error.to_string())?;
            let drawn = generate(&config.resized(Some(20), None), Seed(1));
            drawn.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "clusters",
        beside: &[],
        sources: &["experiments/src/evaluate/cluster_flag.rs"],
        read: |path| cluster_of(path).map(drop).map_err(|error| error.to_string()),
    },
    Reader {
        name: "records",
        beside: &[],
        sources: &["experiments/src/schedule/settings.rs"],
        read: |path| {
            let record = Record::read(path).map_err(|error| error.to_string())?;
            let given = RecordSettings::of(&pleach_experiments::EvaluationConfig::default());
            RecordSettings::of_record(&record, given)
                .map(drop)
                .map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "facts",
        beside: &[("jobs.csv", "lists/canonical.csv")],
        sources: &["workloads/verify/src/facts/mod.rs"],
        read: |path| {
            let Some(cluster) = text(path) else { return Ok(()) };
            let read = Facts::read(&path.with_file_name("jobs.csv"), &cluster);
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "requests",
        beside: &[],
        sources: &["serving/src/llm/file.rs"],
        read: |path| {
            let read = worlds::requests::read(path);
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "calls",
        beside: &[],
        sources: &[],
        read: |path| {
            let read = pleach_serving::functions::read(path, Seed(0));
            read.map(drop).map_err(|error| error.to_string())
        },
    },
    Reader {
        name: "kinds",
        beside: &[],
        sources: &["experiments/src/file_kind.rs"],
        read: |path| {
            let _ = FileKind::of(path);
            Ok(())
        },
    },
];
