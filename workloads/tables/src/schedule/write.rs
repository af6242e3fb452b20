//! Writes a record as CSV, gzipped CSV or Parquet, or as a trace that Perfetto and Chrome open, by the ending of the name.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::places::to_text;
use super::{COLUMNS, Record, Run, SETTINGS, SETTINGS_BYTES_MAX, Segment};
use crate::{Column, Problem, Values, is_gzip_name, is_parquet_name, quoted, replace, to_parquet};

/// Endings that [`Record::write`] knows.
pub const ENDINGS: &str = ".csv, .csv.gz, .parquet, .json or .json.gz (a trace for Perfetto)";

impl Record {
    /// Whether a name has an ending that says how it is to be written.
    #[must_use]
    pub fn can_write(path: &Path) -> bool {
        let name = path.to_string_lossy().to_ascii_lowercase();
        [".csv", ".csv.gz", ".parquet", ".json", ".json.gz"]
            .iter()
            .any(|ending| name.ends_with(ending))
    }

    /// Writes the record by the ending of the name ([`ENDINGS`]), whole or not at all. The same record gives the same bytes. Only CSV
    /// and Parquet read back.
    ///
    /// # Errors
    /// Another ending, Parquet in a build without it, files that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Problem> {
        if !Record::can_write(path) {
            let text =
                format!("the name does not say how to write a schedule: allowed endings are {ENDINGS}");
            return Err(Problem::data(path, text));
        }
        if is_parquet_name(path) {
            let bytes = self.parquet(path)?;
            return replace(path, |out| out.write_all(&bytes));
        }
        let plain = if is_gzip_name(path) {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        let is_trace = plain
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let rows = |out: &mut dyn Write| match is_trace {
            true => self.write_chrome(out),
            false => self.write_csv(out),
        };
        replace(path, |out| {
            if !is_gzip_name(path) {
                return rows(out);
            }
            let mut gzip = GzEncoder::new(out, Compression::default());
            rows(&mut gzip)?;
            gzip.finish()?;
            Ok(())
        })
    }

    /// Every segment with its run, and with the settings beside the first.
    fn rows(&self) -> Vec<(&Run, &Segment, &str)> {
        let of = |run| Run::rows(run);
        let mut rows: Vec<_> = self.runs.iter().flat_map(of).collect();
        if let Some(first) = rows.first_mut() {
            first.2 = self.written_settings().unwrap_or_default();
        }
        rows
    }

    fn written_settings(&self) -> Option<&str> {
        let fit = (1..=SETTINGS_BYTES_MAX).contains(&self.settings.len());
        fit.then_some(self.settings.as_str())
    }

    /// Writes the record as CSV.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write_csv(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut settings = self.written_settings();
        match settings {
            Some(_) => writeln!(out, "{},{SETTINGS}", COLUMNS.join(","))?,
            None => writeln!(out, "{}", COLUMNS.join(","))?,
        }
        for run in &self.runs {
            for segment in &run.segments {
                let nodes = to_text(&segment.slices, &run.nodes);
                write!(
                    out,
                    "{},{},{},{},{},{},{},",
                    quoted(&run.policy),
                    quoted(&run.workload),
                    run.seed,
                    quoted(&run.jobs[segment.job as usize]),
                    segment.attempt,
                    quoted(&nodes),
                    segment.num_gpus(),
                )?;
                write!(
                    out,
                    "{},{},{},{},{},{},{},{},{},{}",
                    segment.gpu_milli,
                    segment.gpu_memory_gib,
                    segment.cpu_cores,
                    segment.memory_gib,
                    segment.copies,
                    segment.from_s,
                    segment.to_s,
                    segment.rate,
                    segment.lost_s,
                    segment.ended.word(),
                )?;
                match settings {
                    Some(text) => writeln!(out, ",{}", quoted(text))?,
                    None => writeln!(out)?,
                }
                settings = settings.map(|_| "");
            }
        }
        Ok(())
    }

    fn parquet(&self, path: &Path) -> Result<Vec<u8>, Problem> {
        type Row<'a> = (&'a Run, &'a Segment, &'a str);
        let rows = self.rows();
        let count = |num: u64| u32::try_from(num).unwrap_or(u32::MAX);
        let values: [Values<'_, Row<'_>>; 18] = [
            Values::Text(Box::new(|(run, ..)| run.policy.as_str().into())),
            Values::Text(Box::new(|(run, ..)| run.workload.as_str().into())),
            // As text, for no number of Parquet holds every seed.
            Values::Text(Box::new(|(run, ..)| run.seed.to_string().into())),
            Values::Text(Box::new(|(run, segment, _)| {
                run.jobs[segment.job as usize].as_str().into()
            })),
            Values::Count(Box::new(|(_, segment, _)| segment.attempt)),
            Values::Text(Box::new(|(run, segment, _)| {
                to_text(&segment.slices, &run.nodes).into()
            })),
            Values::Count(Box::new(move |(_, segment, _)| count(segment.num_gpus()))),
            Values::Count(Box::new(|(_, segment, _)| u32::from(segment.gpu_milli))),
            Values::Number(Box::new(|(_, segment, _)| segment.gpu_memory_gib)),
            Values::Number(Box::new(|(_, segment, _)| segment.cpu_cores)),
            Values::Number(Box::new(|(_, segment, _)| segment.memory_gib)),
            Values::Count(Box::new(|(_, segment, _)| segment.copies)),
            Values::Number(Box::new(|(_, segment, _)| segment.from_s)),
            Values::Number(Box::new(|(_, segment, _)| segment.to_s)),
            Values::Number(Box::new(|(_, segment, _)| segment.rate)),
            Values::Number(Box::new(|(_, segment, _)| segment.lost_s)),
            Values::Text(Box::new(|(_, segment, _)| segment.ended.word().into())),
            Values::Text(Box::new(|(.., settings)| (*settings).into())),
        ];
        let own = self.written_settings().map(|_| SETTINGS);
        let columns: Vec<Column<'_, Row<'_>>> = COLUMNS
            .into_iter()
            .chain(own)
            .zip(values)
            .map(|(name, values)| Column { name, values })
            .collect();
        to_parquet(path, "schedule", &rows, &columns)
    }
}

impl Run {
    fn rows(&self) -> impl Iterator<Item = (&Run, &Segment, &str)> {
        self.segments.iter().map(move |segment| (self, segment, ""))
    }

    /// The nodes of a segment as text, as in a file.
    #[must_use]
    pub fn nodes_text(&self, segment: &Segment) -> String {
        to_text(&segment.slices, &self.nodes)
    }
}
