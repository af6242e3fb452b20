//! One row of a site's accounting, whatever printed it, and the reasons for which a row is left out.

use std::collections::BTreeMap;

use pleach_tables::slurm::{devices, gpus_of_tres, job_id, num_nodes, span_s, tres_of};

use super::mapping::unit_s;
use super::{Fate, Mapping};

/// Most GPU types that a list may name. *Ours*: a cluster has at most 64.
const NUM_TYPES_MAX: usize = 1000;
/// Longest list of nodes that is kept, bytes, and most nodes in it. *Ours*: no job with GPUs has had as many.
const NODES_BYTES_MAX: usize = 1 << 14;
const NODES_MAX: usize = 4096;

pub(super) const STEP: &str = "a step of a job, whose job has a row of its own";
pub(super) const REST_OF_ARRAY: &str = "tasks of an array that had not begun";
pub(super) const NO_ID: &str = "has no id that Slurm gives";
pub(super) const NEVER_BEGAN: &str = "never began";
pub(super) const NO_GPU: &str = "asks for no GPU";
pub(super) const PART_OF_GPU: &str = "asks for parts of a GPU";
pub(super) const NO_SUBMISSION: &str = "its submission cannot be read as a time";
pub(super) const NO_END: &str = "when it ended is not known";
pub(super) const BACKWARDS: &str = "ends before it begins";
pub(super) const RAGGED: &str = "has another number of fields than the header";
pub(super) const TOO_LONG: &str = "ran longer than 31 years: is the unit of its run time right?";

/// What a row says, as text and times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts<'a> {
    pub id: &'a str,
    pub submit_s: Option<f64>,
    pub eligible_s: Option<f64>,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
    /// Whether the source says when jobs began at all.
    pub tells_starts: bool,
    pub run_time: &'a str,
    pub time_limit: &'a str,
    pub gpus: &'a str,
    pub gpus_asked: &'a str,
    pub num_nodes: &'a str,
    pub gpu_type: &'a str,
    pub nodes: &'a str,
    pub tenant: &'a str,
    pub user: &'a str,
    pub class: &'a str,
    pub state: &'a str,
    pub partition: &'a str,
    pub qos: &'a str,
}

/// A run of a job, or of a component of one.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub line: u64,
    pub id: String,
    pub component: Option<u32>,
    pub fate: Fate,
    pub may_run_again: bool,
    pub submit_s: f64,
    pub eligible_s: Option<f64>,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
    /// How long it held its GPUs as the source counts it, s.
    pub run_s: Option<f64>,
    pub limit_s: Option<f64>,
    pub num_gpus: u32,
    /// Types on which it ran and which it asked for, places in [`Reader::types`].
    pub ran_on: Vec<u16>,
    pub asked: Option<u16>,
    /// 0 = not known.
    pub num_nodes: u32,
    pub nodes: String,
    pub tenant: Option<String>,
    pub user: Option<String>,
    pub class: Option<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    /// Whether its state is a word that nobody knows.
    pub is_state_unknown: bool,
}

/// Reads rows by a mapping, and remembers the GPU types that they name.
pub(super) struct Reader<'a> {
    mapping: &'a Mapping,
    /// Names of types as the source writes them, in order of appearance.
    pub types: Vec<String>,
    index: BTreeMap<String, u16>,
    /// The latest time that any row names, s: no later than the export.
    pub latest_s: f64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(mapping: &'a Mapping) -> Reader<'a> {
        Reader {
            mapping,
            types: Vec::new(),
            index: BTreeMap::new(),
            latest_s: f64::NEG_INFINITY,
        }
    }

    /// A run, or why the row is none.
    pub(super) fn row(&mut self, line: u64, facts: &Facts<'_>) -> Result<Row, &'static str> {
        for time in [facts.submit_s, facts.start_s, facts.end_s].into_iter().flatten() {
            self.latest_s = self.latest_s.max(time);
        }
        let (id, component) = self.id(line, facts)?;
        let known = self
            .mapping
            .states
            .get(facts.state)
            .copied()
            .or_else(|| Fate::of(facts.state));
        let fate = known.unwrap_or(Fate::Unknown);
        let run_s = self.run_s(facts);
        let has_begun = fate != Fate::Waiting
            && (facts.start_s.is_some() || !facts.tells_starts)
            // Who is cancelled while he waits is told to have started at that moment, on no node.
            && !(run_s == Some(0.0) && facts.gpus.is_empty() && is_nothing(facts.nodes));
        if !has_begun {
            return Err(NEVER_BEGAN);
        }
        let nodes_told = self.num_nodes(facts);
        let gpus = read_gpus(facts.gpus, nodes_told)?;
        let asked = read_gpus(facts.gpus_asked, nodes_told)?;
        let Some((num_gpus, ran_on)) = gpus.or_else(|| asked.clone()) else {
            return Err(NO_GPU);
        };
        let submit_s = facts.submit_s.ok_or(NO_SUBMISSION)?;
        let mut ran_on: Vec<u16> = ran_on.iter().filter_map(|name| self.type_of(name)).collect();
        if ran_on.is_empty() && !is_nothing(facts.gpu_type) {
            ran_on.extend(self.type_of(facts.gpu_type));
        }
        let asked = match asked.as_ref().map(|(_, types)| types.as_slice()) {
            Some([name]) => self.type_of(name),
            _ => None,
        };
        // Who asks for a type runs on it.
        if ran_on.is_empty() {
            ran_on.extend(asked);
        }
        let limit_s = span(facts.time_limit, &self.mapping.time_limit_unit);
        let is_kept = facts.nodes.len() <= NODES_BYTES_MAX && !is_nothing(facts.nodes);
        let is_kept = is_kept && num_nodes(facts.nodes).is_ok_and(|num| num <= NODES_MAX);
        let nodes = if is_kept { facts.nodes } else { "" };
        Ok(Row {
            line,
            id,
            component,
            fate,
            may_run_again: fate.may_run_again(facts.state),
            submit_s,
            eligible_s: facts.eligible_s,
            start_s: facts.start_s,
            end_s: facts.end_s,
            run_s,
            limit_s: limit_s.filter(|limit| *limit > 0.0),
            num_gpus,
            ran_on,
            asked,
            num_nodes: nodes_told,
            nodes: nodes.to_owned(),
            tenant: tidy(facts.tenant),
            user: tidy(facts.user),
            class: tidy(facts.class),
            partition: tidy(facts.partition),
            qos: tidy(facts.qos),
            is_state_unknown: known.is_none(),
        })
    }

    fn id(&self, line: u64, facts: &Facts<'_>) -> Result<(String, Option<u32>), &'static str> {
        if !self.mapping.slurm_ids {
            return Ok((tidy(facts.id).unwrap_or_else(|| line.to_string()), None));
        }
        let id = job_id(facts.id).ok_or(NO_ID)?;
        if id.is_step {
            return Err(STEP);
        }
        if id.is_rest_of_array {
            return Err(REST_OF_ARRAY);
        }
        Ok((tidy(id.job).ok_or(NO_ID)?, id.component))
    }

    fn run_s(&self, facts: &Facts<'_>) -> Option<f64> {
        span(facts.run_time, &self.mapping.run_time_unit)
    }

    fn num_nodes(&self, facts: &Facts<'_>) -> u32 {
        let of_tres = || tres_of(facts.gpus, "node").and_then(|text| text.parse().ok());
        facts.num_nodes.parse().ok().or_else(of_tres).unwrap_or(0)
    }

    fn type_of(&mut self, name: &str) -> Option<u16> {
        if let Some(index) = self.index.get(name) {
            return Some(*index);
        }
        if self.types.len() == NUM_TYPES_MAX {
            return None;
        }
        let index = self.types.len() as u16;
        self.types.push(name.to_owned());
        self.index.insert(name.to_owned(), index);
        Some(index)
    }
}

/// Number of GPUs and the names of their types.
type Gpus<'a> = Option<(u32, Vec<&'a str>)>;

/// A number, `gres/gpu=2,gres/gpu:a100=2`, or for each of the nodes `gpu:a100:4`.
fn read_gpus(text: &str, num_nodes: u32) -> Result<Gpus<'_>, &'static str> {
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            _ if number.fract() != 0.0 && number > 0.0 => Err(PART_OF_GPU),
            _ if number >= 1.0 && number <= f64::from(u32::MAX) => Ok(Some((number as u32, Vec::new()))),
            _ => Ok(None),
        };
    }
    if text.contains("gres/gpu") {
        let found = gpus_of_tres(text);
        return Ok(found.map(|(num, types)| (num, types.into_iter().map(|(name, _)| name).collect())));
    }
    if text.contains("gres/shard") || text.contains("gres/mps") {
        return Err(PART_OF_GPU);
    }
    let each = devices(text).into_iter().filter(|device| device.kind == "gpu");
    let (mut num, mut types) = (0_u32, Vec::new());
    for device in each {
        num = num.saturating_add(device.num.saturating_mul(num_nodes.max(1)));
        types.extend(device.of_type);
    }
    Ok((num > 0).then_some((num, types)))
}

/// Seconds of a span: Slurm's form, or a number of `unit`.
fn span(text: &str, unit: &str) -> Option<f64> {
    let number = || {
        text.parse::<f64>()
            .ok()
            .map(|number| number * unit_s(unit).unwrap_or(1.0))
    };
    let span = if text.contains(':') {
        span_s(text)
    } else {
        number().or_else(|| span_s(text))
    };
    span.filter(|span| span.is_finite() && *span >= 0.0)
}

/// Whether a field says nothing.
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(
        text,
        "" | "Unknown"
            | "None"
            | "None assigned"
            | "N/A"
            | "(null)"
            | "null"
            | "NULL"
            | "NaN"
            | "nan"
            | "NA"
            | "-"
            | "n/a"
            | "none"
    )
}

/// A name that can stand in a file; none where nothing is left of it.
pub(super) fn tidy(text: &str) -> Option<String> {
    if is_nothing(text) {
        return None;
    }
    let mut name: String = text.trim().chars().filter(|c| !c.is_control()).collect();
    if name.len() > 256 {
        let end = (0..=256)
            .rev()
            .find(|end| name.is_char_boundary(*end))
            .unwrap_or(0);
        name.truncate(end);
    }
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
