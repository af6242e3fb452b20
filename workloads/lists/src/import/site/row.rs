//! One row of a site's accounting, whatever printed it, and the reasons for which a row is left out.

use std::collections::{BTreeMap, BTreeSet};

use pleach_site::slurm::{
    devices, gpus_of_tres, is_cut, is_nothing, job_id, limit_s, num_nodes, span_s, tres_of,
};
use pleach_tables::clock::words_s;

use super::mapping::unit_s;
use super::reason::Reason;
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
pub(super) const GPUS_UNREAD: &str = "its GPUs are not understood";
pub(super) const NO_SUBMISSION: &str = "its submission cannot be read as a time";
pub(super) const START_UNREAD: &str = "its start cannot be read as a time";
pub(super) const END_UNREAD: &str = "its end cannot be read as a time";
pub(super) const RUN_TIME_UNREAD: &str = "its run time is not understood";
pub(super) const NO_END: &str = "when it ended is not known";
pub(super) const BACKWARDS: &str = "ends before it begins";
pub(super) const RAGGED: &str = "has another number of fields than the header";
pub(super) const TOO_LONG: &str = "ran longer than 31 years: is the unit of its run time right?";

pub(super) const STATE_UNKNOWN: &str = "its state is no word that is known: outcome unknown";
pub(super) const ASKED_UNREAD: &str = "what it asked for is not understood: what it had is taken";
const RUN_TIME_MENDED: &str = "its run time is not understood: the time from its start to its end is taken";
const LIMIT_UNREAD: &str = "its time limit is not understood: none is taken";
const NUM_NODES_UNREAD: &str = "its number of nodes is not understood: its GPUs may lie on any";
const NODES_UNREAD: &str = "its nodes are not understood: they are not kept";
/// Most lists of nodes whose jobs without GPUs are remembered one by one. *Ours*.
const OTHERS_MAX: usize = 1_000_000;
/// Most of their partitions. *Ours*.
const PARTITIONS_MAX: usize = 1000;

/// What a row says, as text and times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts<'a> {
    pub id: &'a str,
    pub submit_s: Option<f64>,
    pub eligible_s: Option<f64>,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
    /// Submission, start and end as they are written where they cannot be read; else empty.
    pub unread: [&'a str; 3],
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
    pub constraint: &'a str,
    pub licences: &'a str,
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
    pub constraint: Option<String>,
    pub licences: Option<String>,
    /// What could not be read, and what was taken instead.
    pub mended: Vec<&'static str>,
}

/// What jobs without GPUs held on some nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Others {
    pub rows: u64,
    /// Core seconds, as far as rows say how many cores they had.
    pub core_s: f64,
}

/// Reads rows by a mapping, and remembers the GPU types that they name.
pub(super) struct Reader<'a> {
    mapping: &'a Mapping,
    /// Names of types as the source writes them, in order of appearance.
    pub types: Vec<String>,
    index: BTreeMap<String, u16>,
    /// Whether jobs count that wait at the end of the list.
    pub keeps_waiting: bool,
    /// The latest time that any row names, s: no later than the export.
    pub latest_s: f64,
    /// Rows without GPUs, by the nodes on which they ran.
    pub others: BTreeMap<String, Others>,
    /// Partitions in which they ran.
    pub partitions: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(mapping: &'a Mapping) -> Reader<'a> {
        Reader {
            mapping,
            types: Vec::new(),
            index: BTreeMap::new(),
            keeps_waiting: false,
            latest_s: f64::NEG_INFINITY,
            others: BTreeMap::new(),
            partitions: BTreeSet::new(),
        }
    }

    /// A run, or why the row is none.
    pub(super) fn row(&mut self, line: u64, facts: &Facts<'_>) -> Result<Row, Reason> {
        for time in [facts.submit_s, facts.start_s, facts.end_s].into_iter().flatten() {
            self.latest_s = self.latest_s.max(time);
        }
        let mut mended = Vec::new();
        let (id, component) = self.id(line, facts)?;
        let known = self
            .mapping
            .states
            .get(facts.state)
            .copied()
            .or_else(|| Fate::of(facts.state));
        if known.is_none() {
            mended.push(STATE_UNKNOWN);
        }
        let fate = known.unwrap_or(Fate::Unknown);
        let run_s = span(facts.run_time, &self.mapping.run_time_unit);
        let waits = self.keeps_waiting && fate == Fate::Waiting;
        if !waits {
            has_begun(facts, fate, run_s)?;
        }
        let num_nodes = self.num_nodes(facts, &mut mended);
        let (num_gpus, types, asked) = match gpus_of(facts, num_nodes, &mut mended) {
            Ok(gpus) => gpus,
            Err(reason) => {
                if reason.rule == NO_GPU {
                    self.remember(facts, run_s);
                }
                return Err(reason);
            }
        };
        let submit_s = match facts.submit_s {
            Some(at) => at,
            None => return Err(Reason::cell(NO_SUBMISSION, facts.unread[0])),
        };
        if !waits {
            check_run_time(facts, fate, run_s, &mut mended)?;
        }
        let mut ran_on: Vec<u16> = types.iter().filter_map(|name| self.type_of(name)).collect();
        if ran_on.is_empty() && !is_nothing(facts.gpu_type) {
            ran_on.extend(self.type_of(facts.gpu_type));
        }
        let asked = asked.and_then(|name| self.type_of(name));
        // Who asks for a type runs on it.
        if ran_on.is_empty() {
            ran_on.extend(asked);
        }
        Ok(Row {
            line,
            id,
            component,
            fate,
            may_run_again: fate == Fate::Requeued || is_cut(facts.state),
            submit_s,
            eligible_s: facts.eligible_s,
            start_s: facts.start_s.filter(|_| !waits),
            end_s: facts.end_s,
            run_s,
            limit_s: self.limit_s(facts, &mut mended),
            num_gpus,
            ran_on,
            asked,
            num_nodes,
            nodes: nodes_of(facts.nodes, &mut mended).to_owned(),
            tenant: tidy(facts.tenant),
            user: tidy(facts.user),
            class: tidy(facts.class),
            partition: tidy(facts.partition),
            qos: tidy(facts.qos),
            constraint: tidy(facts.constraint),
            licences: tidy(facts.licences),
            mended,
        })
    }

    /// Notes what a row without GPUs held, and where.
    fn remember(&mut self, facts: &Facts<'_>, run_s: Option<f64>) {
        if self.partitions.len() < PARTITIONS_MAX {
            self.partitions.extend(tidy(facts.partition));
        }
        let run_s = run_s
            .or_else(|| Some(facts.end_s? - facts.start_s?))
            .unwrap_or(0.0);
        if is_nothing(facts.nodes) || run_s <= 0.0 || facts.nodes.len() > NODES_BYTES_MAX {
            return;
        }
        if self.others.len() == OTHERS_MAX && !self.others.contains_key(facts.nodes) {
            return;
        }
        let cores = [facts.gpus, facts.gpus_asked]
            .into_iter()
            .find_map(|text| tres_of(text, "cpu")?.parse::<f64>().ok());
        let cores = cores.filter(|cores| (0.0..=1e9).contains(cores));
        let held = self.others.entry(facts.nodes.to_owned()).or_default();
        held.rows += 1;
        held.core_s += cores.unwrap_or(0.0) * run_s;
    }

    fn limit_s(&self, facts: &Facts<'_>, mended: &mut Vec<&'static str>) -> Option<f64> {
        let text = facts.time_limit;
        let found_s = span(text, &self.mapping.time_limit_unit);
        if found_s.is_none() && !is_nothing(text) && limit_s(text).is_err() {
            mended.push(LIMIT_UNREAD);
        }
        found_s.filter(|limit| *limit > 0.0)
    }

    fn id(&self, line: u64, facts: &Facts<'_>) -> Result<(String, Option<u32>), Reason> {
        if !self.mapping.slurm_ids {
            return Ok((tidy(facts.id).unwrap_or_else(|| line.to_string()), None));
        }
        let no_id = || Reason::cell(NO_ID, facts.id);
        let id = job_id(facts.id).ok_or_else(no_id)?;
        if id.is_step {
            return Err(STEP.into());
        }
        if id.is_rest_of_array {
            return Err(REST_OF_ARRAY.into());
        }
        Ok((tidy(id.job).ok_or_else(no_id)?, id.component))
    }

    /// 0 where it is not known.
    fn num_nodes(&self, facts: &Facts<'_>, mended: &mut Vec<&'static str>) -> u32 {
        let of_tres = || tres_of(facts.gpus, "node").and_then(|text| text.parse().ok());
        let told = facts.num_nodes.parse().ok();
        if told.is_none() && !is_nothing(facts.num_nodes) {
            mended.push(NUM_NODES_UNREAD);
        }
        told.or_else(of_tres).unwrap_or(0)
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

/// Whether a run began, or why it is none.
fn has_begun(facts: &Facts<'_>, fate: Fate, run_s: Option<f64>) -> Result<(), Reason> {
    // Who is cancelled while he waits is told to have started at that moment, on no node.
    let is_empty = run_s == Some(0.0) && facts.gpus.is_empty() && is_nothing(facts.nodes);
    let [_, start, _] = facts.unread;
    if fate != Fate::Waiting && !start.is_empty() {
        return Err(Reason::cell(START_UNREAD, start));
    }
    let has_start = facts.start_s.is_some() || !facts.tells_starts;
    match fate != Fate::Waiting && has_start && !is_empty {
        true => Ok(()),
        false => Err(NEVER_BEGAN.into()),
    }
}

/// Refuses a row whose cells on its run time cannot be read where nothing else tells it.
fn check_run_time(
    facts: &Facts<'_>,
    fate: Fate,
    run_s: Option<f64>,
    mended: &mut Vec<&'static str>,
) -> Result<(), Reason> {
    let is_told = !is_nothing(facts.run_time);
    let [_, _, end] = facts.unread;
    if run_s.is_some() || fate == Fate::Running {
        return Ok(());
    }
    if facts.start_s.is_some() && facts.end_s.is_some() {
        if is_told {
            mended.push(RUN_TIME_MENDED);
        }
        return Ok(());
    }
    match (is_told, end.is_empty()) {
        (true, _) => Err(Reason::cell(RUN_TIME_UNREAD, facts.run_time)),
        (false, false) => Err(Reason::cell(END_UNREAD, end)),
        (false, true) => Ok(()),
    }
}

/// Number of GPUs and the names of their types.
type Gpus<'a> = Option<(u32, Vec<&'a str>)>;

/// GPUs of a row, their types, and the type that it asked for.
fn gpus_of<'a>(
    facts: &Facts<'a>,
    num_nodes: u32,
    mended: &mut Vec<&'static str>,
) -> Result<(u32, Vec<&'a str>, Option<&'a str>), Reason> {
    let gpus = read_gpus(facts.gpus, num_nodes)?;
    let asked = match read_gpus(facts.gpus_asked, num_nodes) {
        Err(reason) if gpus.is_some() && reason.rule == GPUS_UNREAD => {
            mended.push(ASKED_UNREAD);
            None
        }
        other => other?,
    };
    let of_type = match asked.as_ref().map(|(_, types)| types.as_slice()) {
        Some([name]) => Some(*name),
        _ => None,
    };
    let (num, types) = gpus.or(asked).ok_or(NO_GPU)?;
    Ok((num, types, of_type))
}

/// A number, `gres/gpu=2,gres/gpu:a100=2`, or for each of the nodes `gpu:a100:4`.
fn read_gpus(text: &str, num_nodes: u32) -> Result<Gpus<'_>, Reason> {
    let unread = || Reason::cell(GPUS_UNREAD, text);
    if is_nothing(text) {
        return Ok(None);
    }
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            0.0 => Ok(None),
            _ if number.fract() != 0.0 && number > 0.0 => Err(PART_OF_GPU.into()),
            _ if number >= 1.0 && number <= f64::from(u32::MAX) => Ok(Some((number as u32, Vec::new()))),
            _ => Err(unread()),
        };
    }
    if text.contains("gres/gpu") {
        let found = gpus_of_tres(text).map_err(|_| unread())?;
        return Ok(found.map(|(num, types)| (num, types.into_iter().map(|(name, _)| name).collect())));
    }
    if text.contains("gres/shard") || text.contains("gres/mps") {
        return Err(PART_OF_GPU.into());
    }
    // Cores, memory, licences: no GPU among what it had.
    if text.contains('=') {
        return Ok(None);
    }
    let devices = devices(text);
    if devices.is_empty() {
        return Err(unread());
    }
    let (mut num, mut types) = (0_u32, Vec::new());
    for device in devices.into_iter().filter(|device| device.kind == "gpu") {
        num = num.saturating_add(device.num.saturating_mul(num_nodes.max(1)));
        types.extend(device.of_type);
    }
    Ok((num > 0).then_some((num, types)))
}

/// Nodes as they are kept; empty where they are not understood or are too many.
fn nodes_of<'a>(text: &'a str, mended: &mut Vec<&'static str>) -> &'a str {
    if is_nothing(text) {
        return "";
    }
    let is_kept = text.len() <= NODES_BYTES_MAX && num_nodes(text).is_ok_and(|num| num <= NODES_MAX);
    if !is_kept {
        mended.push(NODES_UNREAD);
    }
    if is_kept { text } else { "" }
}

/// Seconds of a span: Slurm's form, a number of `unit`, or words such as `2d`.
fn span(text: &str, unit: &str) -> Option<f64> {
    let number = || {
        text.parse::<f64>()
            .ok()
            .map(|number| number * unit_s(unit).unwrap_or(1.0))
    };
    // `1 day, 02:03:04`, as Python prints it.
    let both = || {
        let (words, clock) = text.rsplit_once(' ')?;
        Some(words_s(words.trim_end_matches(','))? + span_s(clock)?)
    };
    let span = if text.contains(':') {
        span_s(text).or_else(both)
    } else {
        number().or_else(|| span_s(text)).or_else(|| words_s(text))
    };
    span.filter(|span| span.is_finite() && *span >= 0.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_slurms_numbers_of_a_unit_words_or_words_and_a_clock() {
        for (text, seconds) in [
            ("1-02:03:04", 93_784.0),
            ("90", 5400.0),
            ("1h30m", 5400.0),
            ("1 day, 02:03:04", 93_784.0),
            ("1d 02:03:04", 93_784.0),
        ] {
            assert_eq!(span(text, "min"), Some(seconds), "{text}");
        }
        for text in ["", "soon", "1 day, soon", "x 02:03:04", "02:03:04 1d"] {
            assert_eq!(span(text, "min"), None, "{text}");
        }
    }
}
