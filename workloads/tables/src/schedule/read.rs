//! Reads a record: CSV, plain or gzipped, or Parquet, bounded, with every complaint by file, line and column.

use std::collections::BTreeMap;
use std::path::Path;

use super::places::{NODES_MAX, NodeNames, of_text};
use super::{Ended, Names, REQUIRED, Record, Run, SETTINGS, Segment, Slice, TIME_S_MAX};
use crate::{Problem, ROWS_MAX, Table};

/// Most slices of a file. *Ours*: they fit into memory.
const SLICES_MAX: usize = 1 << 26;
/// Most (segment, node) pairs of a file, those of ranges one by one. *Ours*: half a minute.
const PLACES_MAX: u64 = 1 << 28;
/// Most names of nodes of all runs together. *Ours*: they fit into memory.
const NAMES_MAX: usize = 1 << 23;
/// Most runs of a file.
const RUNS_MAX: usize = 1 << 20;

/// Positions of the columns.
struct Columns {
    at: BTreeMap<&'static str, usize>,
}

impl Columns {
    fn of(table: &Table) -> Columns {
        let at = super::COLUMNS
            .into_iter()
            .filter_map(|name| Some((name, table.column(name)?)));
        Columns { at: at.collect() }
    }

    fn get(&self, name: &str) -> Option<usize> {
        self.at.get(name).copied()
    }
}

/// A run that is being read.
#[derive(Default)]
struct Reading {
    run: Run,
    jobs: Names,
    nodes: Names,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    /// A file that is none, columns that are missing, a value out of its range: with file, line, column, what is allowed and the
    /// fix.
    pub fn read(path: &Path) -> Result<Record, Problem> {
        let mut table = Table::open(path, &REQUIRED)?;
        let columns = Columns::of(&table);
        let settings_at = table.column(SETTINGS);
        let mut settings = String::new();
        let mut by_name: BTreeMap<(String, String, u64), usize> = BTreeMap::new();
        let mut runs: Vec<Reading> = Vec::new();
        let (mut num_rows, mut num_slices, mut num_names) = (0, 0, 0);
        let mut places_left = PLACES_MAX;
        while table.next_row()? {
            num_rows += 1;
            if num_rows > ROWS_MAX {
                return Err(table.error("-", format!("more than {ROWS_MAX} segments; cut the record")));
            }
            if num_rows == 1 {
                settings = table.text(settings_at).to_owned();
            }
            let name = run_name(&table, &columns)?;
            let index = match by_name.get(&name) {
                Some(index) => *index,
                None if runs.len() == RUNS_MAX => {
                    return Err(table.error("seed", format!("more than {RUNS_MAX} runs; split the file")));
                }
                None => {
                    runs.push(Reading {
                        run: Run {
                            policy: name.0.clone(),
                            workload: name.1.clone(),
                            seed: name.2,
                            ..Run::default()
                        },
                        ..Reading::default()
                    });
                    by_name.insert(name, runs.len() - 1);
                    runs.len() - 1
                }
            };
            let num_names_before = runs[index].run.nodes.len();
            let segment = segment(&table, &columns, &mut runs[index], &mut places_left)?;
            num_slices += segment.slices.len();
            num_names += runs[index].run.nodes.len() - num_names_before;
            if num_slices > SLICES_MAX || num_names > NAMES_MAX {
                let text = format!(
                    "more than {SLICES_MAX} slices of segments or {NAMES_MAX} nodes of runs in all; split the file"
                );
                return Err(table.error("nodes", text));
            }
            runs[index].run.segments.push(segment);
        }
        let runs = runs.into_iter().map(|reading| reading.run).collect();
        Ok(Record { runs, settings })
    }
}

fn run_name(table: &Table, columns: &Columns) -> Result<(String, String, u64), Problem> {
    let name = |column| -> Result<String, Problem> {
        Ok(table.optional_name(columns.get(column))?.unwrap_or_default())
    };
    let seed = columns.get("seed");
    let seed = match table.text(seed) {
        "" => 0,
        text => text.parse().map_err(|_| {
            table.refuse(
                seed,
                "a whole number from 0 to 18446744073709551615",
                "leave it empty",
            )
        })?,
    };
    Ok((name("policy")?, name("workload")?, seed))
}

fn segment(
    table: &Table,
    columns: &Columns,
    reading: &mut Reading,
    places_left: &mut u64,
) -> Result<Segment, Problem> {
    let get = |name| columns.get(name);
    let amount = |name, most: f64, otherwise: f64| -> Result<f64, Problem> {
        Ok(table
            .optional(get(name), 0.0, most, "leave it empty for none")?
            .unwrap_or(otherwise))
    };
    let whole = |name, otherwise: u32, least: u32, most: u32| -> Result<u32, Problem> {
        let column = get(name);
        if table.text(column).is_empty() {
            return Ok(otherwise);
        }
        match table.text(column).parse::<u32>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(table.refuse(
                column,
                &format!("a whole number from {least} to {most}"),
                "correct the row",
            )),
        }
    };
    let time = |name| table.number(get(name), 0.0, TIME_S_MAX, "give seconds of the record's clock");
    let name = table.name(get("job_id"))?;
    let (from_s, to_s) = (time("from_s")?, time("to_s")?);
    let us = |seconds: f64| (seconds * 1e6).round();
    if us(to_s) <= us(from_s) {
        let allowed = format!("later than from_s, {from_s}, by a microsecond or more");
        return Err(table.refuse(get("to_s"), &allowed, "a segment ends after it began"));
    }
    let rate = table.number(
        get("rate"),
        0.0,
        1e12,
        "give progress per second, 0 where there is none",
    )?;
    let ended = get("ended");
    let ended = Ended::of(table.text(ended)).ok_or_else(|| {
        let words: Vec<&str> = Ended::ALL.iter().map(|ended| ended.word()).collect();
        table.refuse(ended, &words.join(", "), "use one of these words")
    })?;
    let slices = slices(table, get("nodes"), reading, places_left)?;
    let segment = Segment {
        job: reading.jobs.index(&name, &mut reading.run.jobs),
        attempt: whole("attempt", 1, 1, u32::MAX)?,
        slices,
        gpu_milli: whole("gpu_milli", 1000, 1, 1000)? as u16,
        gpu_memory_gib: amount("gpu_memory_gib", 1e6, 0.0)?,
        cpu_cores: amount("cpu_cores", 1e6, 0.0)?,
        memory_gib: amount("memory_gib", 1e6, 0.0)?,
        copies: whole("copies", 0, 0, NODES_MAX)?,
        from_s,
        to_s,
        rate,
        lost_s: amount("lost_s", 1e15, 0.0)?,
        ended,
    };
    let column = get("num_gpus");
    if !table.text(column).is_empty() && u64::from(whole("num_gpus", 0, 1, u32::MAX)?) != segment.num_gpus() {
        let allowed = format!("{}, as nodes says", segment.num_gpus());
        return Err(table.refuse(column, &allowed, "correct one of the two, or leave num_gpus out"));
    }
    Ok(segment)
}

/// What a cell means. Ranges are counted against what is left of the file's bound before they are gone through.
fn slices(
    table: &Table,
    column: Option<usize>,
    reading: &mut Reading,
    places_left: &mut u64,
) -> Result<Vec<Slice>, Problem> {
    let places = of_text(table.text(column)).map_err(|text| table.error("nodes", text))?;
    let num = |names: &NodeNames<'_>| match names {
        NodeNames::One(_) => 1,
        NodeNames::Range(first, last) => u64::from(last - first) + 1,
    };
    let num_places: u64 = places.iter().map(|(names, _)| num(names)).sum();
    *places_left = places_left.checked_sub(num_places).ok_or_else(|| {
        let text = format!("more than {PLACES_MAX} nodes of segments in all; split the file");
        table.error("nodes", text)
    })?;
    let mut slices: Vec<Slice> = Vec::with_capacity(places.len());
    for (names, gpus) in places {
        let (nodes, known) = (&mut reading.nodes, &mut reading.run.nodes);
        match names {
            NodeNames::One(name) => slices.push(Slice {
                node: nodes.index(name, known),
                num_nodes: 1,
                gpus,
            }),
            NodeNames::Range(first, last) => {
                for number in first..=last {
                    let node = nodes.index(&number.to_string(), known);
                    // A row of indexes where the names were met in that order, as they are in a record of ours.
                    match slices.last_mut() {
                        Some(row) if number > first && row.node + row.num_nodes == node => row.num_nodes += 1,
                        _ => slices.push(Slice {
                            node,
                            num_nodes: 1,
                            gpus,
                        }),
                    }
                }
            }
        }
    }
    Ok(slices)
}
