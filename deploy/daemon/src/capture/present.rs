//! The list of a log as it stands, again and again: what ended, what runs, what waits. `pleach when` forecasts from it.
//!
//! Jobs that may not start for a reason that is not the policy's are left out, and so is what ended five weeks ago.

use std::path::{Path, PathBuf};

use pleach_scheduler::cluster_spec::Seen;
use pleach_site::slurm::fold;

use super::Capture;
use super::rows::{Row, field};
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
    /// A log without a round, a name that does not end in `.csv`, files that cannot be written.
    pub fn write_present(&mut self, path: &Path, now_s: i64) -> Result<usize, Error> {
        let refuse = |reason: &str| Error::Capture {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let file = path.file_name().and_then(|name| name.to_str());
        let file = file.filter(|name| name.ends_with(".csv"));
        let file = file.ok_or_else(|| refuse("the list's name ends in .csv"))?;
        let name = file.trim_end_matches(".csv");
        let widest = self
            .widest
            .clone()
            .ok_or_else(|| refuse("the log has no round"))?;
        let now_s = now_s.max(self.last.0);
        self.forget(now_s);
        let submits = self.ended.iter().map(|ended| ended.seen.submit_s);
        let submits = submits.chain(self.live.values().map(|live| live.seen.submit_s));
        let first_s = submits.min().unwrap_or(now_s);
        let observed = |from_s: i64, to_s: Option<i64>, places: &Places| {
            let to_s = to_s.map_or(String::new(), |to_s| (to_s - first_s).to_string());
            let nodes = fold(places.iter().map(|(node, _)| node.as_str()));
            Some(format!("{},{to_s},{}", from_s - first_s, field(&nodes)))
        };
        let (mut rows, mut num_waiting) = (Vec::new(), 0);
        for ended in &self.ended {
            let last = ended.pieces.last();
            rows.push(Row {
                observed: last.and_then(|piece| observed(piece.from_s, Some(piece.to_s), &piece.places)),
                ..Row::of(&ended.seen, ended.run_time_s)
            });
        }
        for live in self.live.values() {
            let row = Row::of(&live.seen, 1.0);
            rows.push(match live.run.or(live.released) {
                Some((from_s, speed)) => Row {
                    run_time_s: live.before_s + (now_s - from_s).max(1) as f64 * speed,
                    observed: observed(from_s, None, &places_of(&live.seen)),
                    ..row
                },
                None if matches!(live.seen.phase, Phase::Blocked { .. }) => continue,
                None => {
                    num_waiting += 1;
                    row
                }
            });
        }
        rows.sort_by_key(|row| row.seen.arrival());
        let seen = Seen {
            time_0_unix_s: Some(first_s as f64),
            until_unix_s: Some(now_s as f64),
            ..Seen::default()
        };
        let sidecar = self
            .sidecar(name, &widest, seen)
            .map_err(|error| refuse(&error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        files::replace(folder, &format!("{name}.cluster.toml"), sidecar.as_bytes())?;
        files::replace(folder, file, self.rows(&widest.nodes, &rows, first_s).as_bytes())?;
        Ok(num_waiting)
    }

    fn forget(&mut self, now_s: i64) {
        let end_s = |ended: &super::EndedJob| ended.pieces.last().map_or(0, |piece| piece.to_s);
        if self.ended.iter().any(|ended| end_s(ended) < now_s - 5 * WEEK_S) {
            self.ended.retain(|ended| end_s(ended) >= now_s - 4 * WEEK_S);
        }
    }
}
