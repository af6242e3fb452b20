//! A log of decisions as a workload for the simulator: when each job came, what it asked for, and how long it ran.
//!
//! The log has the rounds in which something was decided or a job that ran no longer does. Such a job has ended when that round
//! was taken, a tick too late at most, unless the daemon was away meanwhile. Run times are on the reference type: time that
//! GPUs were held, times the speed of the slowest. What a run had done before it was stopped or requeued counts where jobs
//! write checkpoints (`preemption = true`), else the last run alone.
//!
//! # What is deliberately not here
//! Jobs that had not ended with the log, that never were seen running, that are left to the batch system, or that were stopped for
//! others and are not there under their id again, as pods that are made anew: they are counted.

mod present;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use pleach_scheduler::cluster_spec::Seen;
use pleach_scheduler::decision::Action;
use pleach_scheduler::{ClusterSpec, ExternalId, ModelClass};
use pleach_tables::schedule::{ENDINGS, Ended, Record};
use serde::Serialize;

use crate::config::RoundSettings;
use crate::error::Error;
use crate::fleet;
use crate::record::{Planned, RoundRecord};
use crate::schedule::{self, Piece, Places, Told, places_decided, places_of};
use crate::snapshot::{JobSeen, Phase, Snapshot};

use self::rows::Row;

/// A job that ended.
#[derive(Clone, Debug, PartialEq)]
struct EndedJob {
    seen: JobSeen,
    run_time_s: f64,
    pieces: Vec<Piece>,
}

/// A job that waits or runs.
#[derive(Clone, Debug)]
struct Live {
    seen: JobSeen,
    last_s: i64,
    /// Start and speed of its present run.
    run: Option<(i64, f64)>,
    /// When it was let go, and the speed there, where it has not been seen running since.
    released: Option<(i64, f64)>,
    /// Where it was let go to.
    released_to: Places,
    /// Its runs that are over.
    pieces: Vec<Piece>,
    /// What earlier runs did, s on the reference type.
    before_s: f64,
    /// Whether it was being stopped for another one when it was last seen.
    is_stopped: bool,
}

/// What was read out of a log so far.
#[derive(Debug)]
pub struct Capture {
    settings: RoundSettings,
    live: BTreeMap<ExternalId, Live>,
    ended: Vec<EndedJob>,
    /// The cluster at its largest.
    widest: Option<Snapshot>,
    num_unrun: usize,
    num_stopped: usize,
    foreign: BTreeSet<ExternalId>,
    /// The policy of the last round.
    policy: String,
    /// When the last round was taken, Unix time, s, and its number.
    last: (i64, u64),
}

/// The content of `NAME.cluster.toml`.
#[derive(Serialize)]
struct Sidecar<'a> {
    name: &'a str,
    classes: Vec<ModelClass>,
    cluster: ClusterSpec,
}

impl Capture {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(settings: RoundSettings) -> Capture {
        Capture {
            settings,
            live: BTreeMap::new(),
            ended: Vec::new(),
            widest: None,
            num_unrun: 0,
            num_stopped: 0,
            foreign: BTreeSet::new(),
            policy: String::new(),
            last: (i64::MIN, 0),
        }
    }

    /// Reads the next round.
    pub fn read(&mut self, record: &RoundRecord) {
        let snapshot = &record.snapshot;
        let now_s = snapshot.taken_s;
        self.policy.clone_from(&record.policy);
        let types: BTreeMap<&str, &str> = snapshot
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.gpu_type.as_str()))
            .collect();
        for seen in snapshot.jobs.iter().filter(|job| !job.terms.is_lease) {
            if let Phase::Foreign { .. } = seen.phase {
                self.live.remove(&seen.id);
                self.foreign.insert(seen.id);
                continue;
            }
            let speed = self.slowest(&seen.nodes, &types);
            let keeps = self.settings.preemption;
            let live = self.live.entry(seen.id).or_insert_with(|| Live {
                seen: seen.clone(),
                last_s: now_s,
                run: None,
                released: None,
                released_to: Places::new(),
                pieces: Vec::new(),
                before_s: 0.0,
                is_stopped: false,
            });
            let was_stopped = live.is_stopped;
            // A pod that is stopped for another one is seen for as long as it takes to end.
            live.is_stopped &= matches!(seen.phase, Phase::Blocked { .. });
            let run = seen.start_s.filter(|_| seen.phase == Phase::Running);
            if let Some((start_s, old_speed)) = live.run
                && run != Some(start_s)
            {
                let end_s = run.unwrap_or(now_s).min(now_s);
                let did_s = (end_s - start_s).max(0) as f64 * old_speed;
                if end_s > start_s {
                    live.pieces.push(Piece {
                        from_s: start_s,
                        to_s: end_s,
                        places: places_of(&live.seen),
                        rate: old_speed,
                        lost_s: if keeps { 0.0 } else { did_s },
                        ended: if was_stopped {
                            Ended::Preempted
                        } else {
                            Ended::AttemptFailed
                        },
                    });
                }
                live.before_s = if keeps { live.before_s + did_s } else { 0.0 };
            }
            live.run = run.map(|start_s| (start_s, speed));
            live.released = match seen.phase {
                Phase::Released { since_s } => Some((since_s, speed)),
                _ => None,
            };
            (live.seen, live.last_s) = (seen.clone(), now_s);
        }
        // A short job may start and end before the next round that is written down.
        let sent = |planned: &&Planned| planned.outcome == "sent";
        for planned in record.decisions.iter().filter(sent) {
            let speed = self.slowest(&planned.nodes, &types);
            let live = self.live.get_mut(&planned.job());
            match (planned.decision.action, live) {
                (Action::Start, Some(live)) => {
                    live.released = Some((now_s, speed));
                    live.released_to = places_decided(planned);
                }
                (Action::Preempt, Some(live)) => live.is_stopped = true,
                _ => {}
            }
        }
        let gone: Vec<ExternalId> = self
            .live
            .iter()
            .filter(|(_, live)| live.last_s < now_s)
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            if let Some(live) = self.live.remove(&id) {
                self.end(live, now_s);
            }
        }
        let num_gpus = |snapshot: &Snapshot| snapshot.nodes.iter().map(|node| node.num_gpus).sum::<u32>();
        if self
            .widest
            .as_ref()
            .is_none_or(|widest| num_gpus(widest) < num_gpus(snapshot))
        {
            self.widest = Some(Snapshot {
                jobs: Vec::new(),
                ..snapshot.clone()
            });
        }
    }

    /// Speed of the slowest of some nodes.
    fn slowest(&self, nodes: &[String], types: &BTreeMap<&str, &str>) -> f64 {
        let speed = |node: &String| {
            let gpu_type = types.get(node.as_str())?;
            Some(
                self.settings
                    .gpu_types
                    .get(*gpu_type)
                    .map_or(1.0, |gpu| gpu.speed),
            )
        };
        let slowest = nodes.iter().filter_map(speed).fold(f64::INFINITY, f64::min);
        if slowest.is_finite() { slowest } else { 1.0 }
    }

    fn end(&mut self, mut live: Live, now_s: i64) {
        if live.is_stopped {
            self.num_stopped += 1;
            return;
        }
        let Some((start_s, speed)) = live.run.or(live.released) else {
            self.num_unrun += 1;
            return;
        };
        let held_s = (now_s - start_s).max(1) as f64;
        let is_seen = !live.seen.nodes.is_empty() && (live.run.is_some() || live.released_to.is_empty());
        live.pieces.push(Piece {
            from_s: start_s,
            to_s: start_s + held_s as i64,
            places: if is_seen {
                places_of(&live.seen)
            } else {
                live.released_to
            },
            rate: speed,
            lost_s: 0.0,
            ended: Ended::Completed,
        });
        self.ended.push(EndedJob {
            run_time_s: live.before_s + held_s * speed,
            seen: live.seen,
            pieces: live.pieces,
        });
    }

    /// Writes `NAME.csv` and `NAME.cluster.toml` and, where asked, the record of which job ran where and when. Returns what they
    /// hold and what they leave out.
    ///
    /// # Errors
    /// A log without an ended job, a name that does not end in `.csv`, files that are there already or cannot be written.
    pub fn write(mut self, path: &Path, schedule: Option<&Path>) -> Result<String, Error> {
        let refuse = |reason: &str| Error::Capture {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let name = path.to_str().and_then(|path| path.strip_suffix(".csv"));
        let name = name
            .ok_or_else(|| refuse("the list's name ends in .csv"))?
            .to_owned();
        let Some(widest) = self.widest.take().filter(|_| !self.ended.is_empty()) else {
            return Err(refuse(
                "no job ran and ended while the log was written; let the daemon run for longer",
            ));
        };
        self.ended.sort_by_key(|ended| ended.seen.arrival());
        if path.exists() {
            return Err(refuse("it is there already; give another name"));
        }
        if let Some(place) = schedule.filter(|place| place.exists() || !Record::can_write(place)) {
            return Err(Error::Capture {
                path: place.to_owned(),
                reason: format!("the schedule needs a name that is not there yet and ends in {ENDINGS}"),
            });
        }
        let rows = self.ended.iter().map(|ended| Row {
            seen: &ended.seen,
            run_time_s: ended.run_time_s,
            observed: None,
        });
        let all: Vec<Row<'_>> = rows.collect();
        let ([sidecar, text], num_too_large) = self
            .texts((&name, Seen::default()), &widest, &all, self.first_s())
            .map_err(|error| refuse(&error))?;
        // The list comes last: where it is, its cluster is.
        put(Path::new(&format!("{name}.cluster.toml")), &sidecar)?;
        put(path, &text)?;
        let schedule = match schedule {
            Some(place) => self.write_schedule(place, path, &fleet::whole_nodes(&widest))?,
            None => String::new(),
        };
        let stopped = match self.num_stopped {
            0 => String::new(),
            num => format!(", {num} stopped and made anew under another id"),
        };
        let too_large = match num_too_large {
            0 => String::new(),
            num => format!(", {num} larger than the cluster"),
        };
        Ok(format!(
            "{} jobs that ended; left out: {} that had not, {} never seen running, {} given over to the batch system{stopped}{too_large}\
             {schedule}",
            self.ended.len() - num_too_large,
            self.live.len(),
            self.num_unrun,
            self.foreign.len(),
        ))
    }

    /// Writes the record of the schedule, and says what of it is left out.
    fn write_schedule(&self, place: &Path, list: &Path, nodes: &[String]) -> Result<String, Error> {
        let told = self.ended.iter().map(|ended| Told {
            id: ended.seen.id,
            seen: &ended.seen,
            pieces: &ended.pieces,
        });
        // As `pleach verify` and `pleach watch` read it.
        let settings = serde_json::json!({
            "observed": true,
            "evaluation": {
                "workload": { "workload": [list.display().to_string()] },
                "scheduling": { "preemption": true },
                "seeds": 1,
            },
        });
        let of = (self.policy.as_str(), &settings);
        Ok(match schedule::write(place, of, nodes, self.first_s(), told)? {
            0 => String::new(),
            num => format!(
                "\n{num} runs were on nodes that the list's cluster does not have, and are not in the schedule"
            ),
        })
    }

    /// The first submission of the list, Unix time, s.
    fn first_s(&self) -> i64 {
        let submissions = self.ended.iter().map(|ended| ended.seen.submit_s);
        submissions.min().unwrap_or(0)
    }

    /// The cluster of a list and the list as texts, and how many rows it leaves out, for which the cluster is too small.
    fn texts(
        &self,
        (name, seen): (&str, Seen),
        widest: &Snapshot,
        rows: &[Row<'_>],
        first_s: i64,
    ) -> Result<([String; 2], usize), String> {
        let jobs: Vec<&JobSeen> = rows.iter().map(|row| row.seen).collect();
        let (cluster, classes, class_of) = fleet::whole(widest, &jobs, &self.settings);
        let named = rows.iter().zip(&class_of);
        let named: Vec<(&Row<'_>, &str)> = named
            .filter_map(|(row, class)| Some((row, classes[(*class)?].name.as_str())))
            .collect();
        let num_left = rows.len() - named.len();
        let text = rows::text(&named, &widest.nodes, &self.settings.tenants, first_s);
        let name = Path::new(name).file_name().and_then(|name| name.to_str());
        let sidecar = toml::to_string_pretty(&Sidecar {
            name: name.unwrap_or("log"),
            classes,
            cluster: ClusterSpec { seen, ..cluster },
        });
        Ok(([sidecar.map_err(|error| error.to_string())?, text], num_left))
    }
}

/// Writes a file that is not there yet, whole or not at all.
fn put(path: &Path, text: &str) -> Result<(), Error> {
    let part = path.with_added_extension("part");
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        // Unlike a rename, a link replaces no file that is there.
        std::fs::hard_link(&part, path)
    };
    let written = write();
    // Nothing to do about a failure here: the name is never read by anyone.
    let _ = std::fs::remove_file(&part);
    written.map_err(Error::file(path))
}
