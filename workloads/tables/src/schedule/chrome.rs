//! A record as a trace of events that Perfetto and `chrome://tracing` open: a process for each node, a thread for each GPU, an event for
//! each segment on each of its GPUs. Written only.
//!
//! # Source
//! Trace Event Format of the Chromium project: complete events (`ph` X, times in µs) and metadata events (`ph` M).

use std::io::Write;

use super::{Gpus, Record, Run, Segment};

/// Text as a string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

impl Record {
    /// Writes the record as a trace in JSON.
    ///
    /// # Errors
    /// What the writer says.
    pub(super) fn write_chrome(&self, out: &mut dyn Write) -> std::io::Result<()> {
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        let (mut first, mut is_first) = (0_u64, true);
        for run in &self.runs {
            for (index, node) in run.nodes.iter().enumerate() {
                let title = match self.runs.len() {
                    1 => format!("node {node}"),
                    _ => format!("{} {} {}: node {node}", run.policy, run.workload, run.seed),
                };
                let pid = first + index as u64;
                let between = if std::mem::take(&mut is_first) {
                    "\n"
                } else {
                    ",\n"
                };
                write!(
                    out,
                    "{between}{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"tid\":0,\"args\":{{\"name\":{}}}}}",
                    quoted(&title)
                )?;
            }
            for segment in &run.segments {
                write_segment(out, run, segment, first)?;
            }
            first += run.nodes.len() as u64;
        }
        writeln!(out, "\n]}}")
    }
}

fn write_segment(out: &mut dyn Write, run: &Run, segment: &Segment, first: u64) -> std::io::Result<()> {
    let us = |seconds: f64| (seconds * 1e6).round();
    let (from_us, to_us) = (us(segment.from_s), us(segment.to_s));
    let tail = format!(
        "\"ts\":{from_us},\"dur\":{},\"name\":{},\"args\":{{\"attempt\":{},\"gpus\":{},\"gpu_milli\":{},\"rate\":{},\"ended\":\"{}\"}}}}",
        to_us - from_us,
        quoted(&run.jobs[segment.job as usize]),
        segment.attempt,
        segment.num_gpus(),
        segment.gpu_milli,
        segment.rate,
        segment.ended.word(),
    );
    for slice in &segment.slices {
        // Where it is not known which GPUs they are the segment has a line of its own.
        let mask = match slice.gpus {
            Gpus::Which(mask) => mask,
            Gpus::Num(_) => 1,
        };
        for node in slice.node..slice.node + slice.num_nodes {
            for gpu in (0..64).filter(|gpu| mask >> gpu & 1 == 1) {
                let pid = first + u64::from(node);
                write!(out, ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{gpu},{tail}")?;
            }
        }
    }
    Ok(())
}
