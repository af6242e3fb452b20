//! Runs of jobs that were preempted, of which accounting tells alone.

use std::collections::BTreeMap;
use std::path::Path;

use super::given::{Row, plans};
use super::{Case, Job};

impl Case {
    /// The same with the runs that were preempted, each as a job of its own. Such a run ends when the job that took its nodes
    /// starts.
    pub(super) fn with_all_runs(mut self, folder: &Path) -> Case {
        let text = std::fs::read_to_string(folder.join("sacct.txt")).unwrap();
        if !text.contains("|PREEMPTED|") {
            return self;
        }
        let t0_s = of_day_s(self.meta["t0"].as_str().unwrap());
        let mut rows = csv::ReaderBuilder::new()
            .delimiter(b'|')
            .flexible(true)
            .from_reader(text.as_bytes());
        let tier = |job: &Job| self.meta["tiers"][&job.partition].as_u64();
        let mut runs = Vec::new();
        for row in rows.deserialize::<BTreeMap<String, String>>() {
            let row = row.unwrap();
            let time_s = |key: &str| of_day_s(&row[key]) - t0_s;
            let is_of = |job: &Job| row["JobID"] == job.num.0.to_string();
            let Some(place) = self.jobs.iter().position(is_of) else {
                continue;
            };
            if self.jobs[place].attempts > 1 && row["State"] == "COMPLETED" {
                self.jobs[place].eligible_s = time_s("Eligible");
            }
            if row["State"] != "PREEMPTED" {
                continue;
            }
            let nodes = names(&row["NodeList"]);
            let (start_s, end_s) = (time_s("Start"), time_s("End"));
            let taken = |job: &&Job| {
                tier(job) > tier(&self.jobs[place])
                    && (-0.5..4.0).contains(&(job.start_s - end_s))
                    && job
                        .nodes
                        .split(' ')
                        .any(|node| nodes.iter().any(|own| own == node))
            };
            let by = self
                .jobs
                .iter()
                .filter(taken)
                .map(|job| job.start_s)
                .fold(f64::INFINITY, f64::min);
            runs.push(Job {
                eligible_s: time_s("Eligible"),
                start_s,
                end_s: if by.is_finite() { by + 0.005 } else { end_s },
                nodes: nodes.join(" "),
                by_backfill: row["Flags"].contains("SchedBackfill"),
                was_preempted: true,
                ..self.jobs[place].clone()
            });
        }
        self.jobs.extend(runs);
        // As Slurm lists them: that decides which of those that are alike is preempted.
        self.jobs.sort_by_key(|job| job.num);
        self
    }
}

/// Sets the starts of preempted runs by backfill to those of their cycles.
pub(super) fn at_cycles(name: &str, case: &mut Case) {
    let cycles = plans(name);
    for job in case
        .jobs
        .iter_mut()
        .filter(|job| job.was_preempted && job.by_backfill)
    {
        let is_of = |(_, rows): &(&i64, &Vec<Row>)| {
            rows.iter()
                .any(|(id, start, _)| start.is_none() && *id == job.num.0.to_string())
        };
        let second = (job.start_s * 1e3) as i64;
        let mut within = cycles.range(second - 500..second + 1500);
        if let Some((cycle_ms, _)) = within.find(is_of) {
            job.start_s = *cycle_ms as f64 / 1e3;
        }
    }
}

/// Seconds since midnight of `2026-11-28T07:36:46`.
fn of_day_s(time: &str) -> f64 {
    let parts = time[11..19].split(':').map(|part| part.parse::<f64>().unwrap());
    parts.fold(0.0, |sum, part| sum * 60.0 + part)
}

/// The nodes of `n2` and `n[1-2,4]`.
fn names(list: &str) -> Vec<String> {
    let numbers = list.trim_start_matches('n').trim_matches(['[', ']']).split(',');
    let of = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let [from, to] = [from, to].map(|number| number.parse::<u32>().unwrap());
        (from..=to).map(|number| format!("n{number}")).collect::<Vec<_>>()
    };
    numbers.flat_map(of).collect()
}
