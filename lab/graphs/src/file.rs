//! Graphs from a file: our own form in JSON, or the event log of a Spark application, plain or gzipped.

use std::io::Read;
use std::path::Path;

use pleach_scheduler::Problem;
use pleach_tables::open_unpacked;
use serde::Deserialize;

use crate::event_log::{self, Parts};
use crate::graph::{Graph, Profile};

/// Most bytes of a file, unpacked. *Assumed.*
const BYTES_MAX: u64 = 1 << 28;
/// Most graphs of a file. *Assumed.*
const GRAPHS_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    templates: Vec<Template>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    /// Gibibytes of the data; not read.
    #[serde(default, rename = "size")]
    _size: f64,
    edges: Vec<(u32, u32)>,
    stages: Vec<StageText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageText {
    tasks: u32,
    rough_ms: u32,
    levels: Vec<u32>,
    fresh: Vec<Vec<u32>>,
    first: Vec<Vec<u32>>,
    rest: Vec<Vec<u32>>,
}

/// The graphs of a file.
///
/// # Errors
/// A file that cannot be read or is too large, text that is neither form, a graph that cannot be run.
pub fn read(path: &Path) -> Result<Vec<Graph>, Problem> {
    let mut bytes = Vec::new();
    let reader = open_unpacked(path)?;
    let read = reader.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|source| Problem::io("read", path, source))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Problem::data(path, format!("larger than {BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Problem::data(path, "not UTF-8 text"))?;
    let graphs = if event_log::is_one(&text) {
        event_log::graphs(path, &text)?
    } else {
        of_json(&text).map_err(|error| Problem::json(path, error))?
    };
    if !(1..=GRAPHS_MAX).contains(&graphs.len()) {
        let message = format!("{} graphs, not 1 to {GRAPHS_MAX}", graphs.len());
        return Err(Problem::data(path, message));
    }
    let graphs = graphs.iter().enumerate().map(|(number, (profiles, edges))| {
        Graph::new(profiles, edges).map_err(|error| Problem::data(path, format!("graph {number}: {error}")))
    });
    graphs.collect()
}

fn of_json(text: &str) -> serde_json::Result<Vec<Parts>> {
    let file: File = serde_json::from_str(text)?;
    let stage = |stage: StageText| Profile {
        tasks: stage.tasks,
        mean_ms: stage.rough_ms,
        levels: stage.levels,
        fresh: stage.fresh,
        first: stage.first,
        rest: stage.rest,
    };
    let parts = |template: Template| (template.stages.into_iter().map(stage).collect(), template.edges);
    Ok(file.templates.into_iter().map(parts).collect())
}
