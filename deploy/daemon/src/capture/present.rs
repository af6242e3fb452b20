//! The list of a log as it stands, again and again: what ended, what runs, what waits. `pleach when` forecasts from it.
//!
//! Jobs that may not start for a reason that is not the policy's, or for which the cluster is too small, are left out, and so is what
//! ended five weeks ago.

use std::path::{Path, PathBuf};

use pleach_scheduler::cluster_spec::Seen;
use pleach_site::slurm::fold;

use super::rows::{Row, field};
use super::{Capture, EndedJob};
use crate::error::Error;
use crate::files;
use crate::replay::Replay;
use crate::schedule::{Places, places_of};
use crate::snapshot::Phase;

/// A week, s. Forecasts learn from four of them, *ours*; jobs of before leave together, so that time 0 of the list seldom changes.
const WEEK_S: i64 = 7 * 86_400;

impl Capture {
    /// Reads the rounds behind the last one that was read.
    ///
    /// # Errors
    /// As [`Replay`].
    pub fn read_on(&mut self, logs: &[PathBuf]) -> Result<(), Error> {
        let mut log = Replay::since(logs, self.last.0)?;
        while let Some(record) = log.next_round()? {
            let at = (record.snapshot.taken_s, record.round);
            if at > self.last {
                self.read(record);
                self.last = at;
            }
        }
        Ok(())
    }

    /// Writes `NAME.csv` and `NAME.cluster.toml` over those of before, as it stands at Unix time `now_s`, or at the last round where
    /// that is later; how many jobs wait.
    ///
    /// # Errors
    /// A log without a round, files that cannot be written.
    pub fn write_present(&mut self, path: &Path, now_s: i64) -> Result<usize, Error> {
        let refuse = |reason: &str| Error::Capture {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let widest = self
            .widest
            .clone()
            .ok_or_else(|| refuse("the log has no round"))?;
        let now_s = now_s.max(self.last.0);
        self.forget(now_s);
        let submits = self.ended.iter().map(|ended| ended.seen.submit_s);
        let submits = submits.chain(self.live.values().map(|live| live.seen.submit_s));
        let first_s = submits.min().unwrap_or(now_s);
        let cells = |from_s: i64, to_s: Option<i64>, places: &Places| {
            let to_s = to_s.map_or(String::new(), |to_s| (to_s - first_s).to_string());
            let nodes = fold(places.iter().map(|(node, _)| node.as_str()));
            format!("{},{to_s},{}", from_s - first_s, field(&nodes))
        };
        let (mut rows, mut num_waiting) = (Vec::new(), 0);
        for EndedJob {
            seen,
            run_time_s,
            pieces,
        } in &self.ended
        {
            let run = pieces.last();
            rows.push(Row {
                seen,
                run_time_s: *run_time_s,
                observed: run.map(|run| cells(run.from_s, Some(run.to_s), &run.places)),
            });
        }
        for live in self.live.values() {
            let (run_time_s, cells) = match live.run.or(live.released) {
                // So far: the list ends now.
                Some((from_s, _)) => (
                    (now_s - from_s).max(1),
                    cells(from_s, None, &places_of(&live.seen)),
                ),
                None if matches!(live.seen.phase, Phase::Blocked { .. }) => continue,
                None => (1, ",,".to_owned()),
            };
            num_waiting += usize::from(cells == ",,");
            rows.push(Row {
                seen: &live.seen,
                run_time_s: run_time_s as f64,
                observed: Some(cells),
            });
        }
        rows.sort_by_key(|row| row.seen.arrival());
        let seen = Seen {
            time_0_unix_s: Some(first_s as f64),
            ..Seen::default()
        };
        let ([sidecar, text], _) = self
            .texts(("log", seen), &widest, &rows, first_s)
            .map_err(|error| refuse(&error))?;
        let put = |path: &Path, text: &str| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files::replace(path.parent().unwrap_or(Path::new("")), &name, text.as_bytes())
        };
        put(&path.with_extension("cluster.toml"), &sidecar)?;
        put(path, &text)?;
        Ok(num_waiting)
    }

    fn forget(&mut self, now_s: i64) {
        let end_s = |ended: &EndedJob| ended.pieces.last().map_or(0, |piece| piece.to_s);
        if self.ended.iter().any(|ended| end_s(ended) < now_s - 5 * WEEK_S) {
            self.ended.retain(|ended| end_s(ended) >= now_s - 4 * WEEK_S);
        }
    }
}
