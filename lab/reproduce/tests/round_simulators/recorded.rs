//! Reads recorded runs and compares finish times.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pleach_env::JobOutcome;

/// One row of a table, by column.
pub type Row = std::collections::BTreeMap<String, String>;

/// The folder of a simulator's recorded runs; none, and the test is noted as skipped, where it is missing.
pub fn folder(simulator: &str) -> Option<PathBuf> {
    pleach_tests::data(&format!("golden/{simulator}"))
}

/// A CSV file, gzipped or not.
pub fn rows(path: &Path) -> Vec<Row> {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader: Box<dyn Read> = if path.extension().is_some_and(|end| end == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut table = csv::Reader::from_reader(reader);
    table.deserialize().map(|row| row.unwrap()).collect()
}

pub fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap()
}

/// How two runs of one workload compare.
pub struct Comparison {
    pub num_jobs: usize,
    /// Jobs that finish at the same time, within the tolerance.
    pub num_equal: usize,
    /// Mean JCT, s: theirs, ours.
    pub mean_jct_s: [f64; 2],
    /// The first job that differs: number, finish there, finish here.
    pub first: Option<(usize, f64, f64)>,
}

impl Comparison {
    /// `theirs` and `ours` in the same order.
    pub fn of(theirs: &[f64], ours: &[JobOutcome], tolerance_s: f64) -> Comparison {
        assert_eq!(theirs.len(), ours.len(), "as many jobs here as there");
        let pairs = || theirs.iter().zip(ours).enumerate();
        let differs = |a: f64, b: f64| (a - b).abs() > tolerance_s;
        let num_jobs = ours.len();
        let mean = |finish: &dyn Fn(usize) -> f64| {
            (0..num_jobs)
                .map(|job| finish(job) - ours[job].submit_s)
                .sum::<f64>()
                / num_jobs as f64
        };
        Comparison {
            num_jobs,
            num_equal: pairs().filter(|(_, (a, b))| !differs(**a, b.finish_s)).count(),
            mean_jct_s: [mean(&|job| theirs[job]), mean(&|job| ours[job].finish_s)],
            first: pairs()
                .filter(|(_, (a, b))| differs(**a, b.finish_s))
                .map(|(job, (a, b))| (job, *a, b.finish_s))
                .min_by(|a, b| a.1.min(a.2).total_cmp(&b.1.min(b.2))),
        }
    }

    /// Prints a line of the table.
    pub fn print(&self, run: &str) {
        let [theirs, ours] = self.mean_jct_s;
        let off = 100.0 * (ours / theirs - 1.0);
        let first = self.first.map_or(String::new(), |(job, a, b)| {
            format!(" first: job {job} at {a:.3} s, here {b:.3} s")
        });
        println!(
            "| {run} | {} of {} | {theirs:.1} | {ours:.1} | {off:+.4} % |{first}",
            self.num_equal, self.num_jobs
        );
    }

    pub fn all_equal(&self) -> bool {
        self.num_equal == self.num_jobs
    }
}
