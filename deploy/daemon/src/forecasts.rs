//! Forecasts of starts that another process made, `pleach when --answers`: read from `when.json` of the folder, served, and shown
//! to a job's user when the bucket of its median wait changes.
//!
//! A job is found by its id alone, and no answer lists jobs: without its id a client learns nothing of another's job.
//!
//! # What is deliberately not here
//! How forecasts are made: simulation and random numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use pleach_scheduler::ExternalId;
use pleach_site::starts::{BYTES_MAX, Bucket, Forecast, Starts};

use crate::error::Error;
use crate::files;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// The file.
pub const FILE: &str = "when.json";
/// Least time between two words about one job, s, and most words in a round. *Ours*: each is a write of the batch system.
const AGAIN_S: i64 = 600;
const WORDS_MAX: usize = 100;

/// What is new of a job that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct News {
    /// The job.
    pub job: ExternalId,
    /// When it would start, s from `made_s` on.
    pub forecast: Forecast,
    /// When that was so, Unix time, s.
    pub made_s: i64,
}

/// The last forecasts, and the buckets that were last shown to users.
#[derive(Debug)]
pub struct Forecasts {
    path: PathBuf,
    /// Number, time and length of the file that was read: one that replaces it within a tick of the clock has another number.
    read: Option<(u64, SystemTime, u64)>,
    starts: Option<Arc<Starts>>,
    told: BTreeMap<ExternalId, (Bucket, i64)>,
    served: Served,
}

/// Forecasts of a file.
///
/// # Errors
/// A file that cannot be read, is longer than 32 MiB, or says what cannot be.
pub fn read(path: &Path) -> Result<Starts, Error> {
    let refuse = |line: usize, reason: String| Error::Text {
        path: path.to_owned(),
        line,
        reason,
    };
    let bytes = files::bytes(path, BYTES_MAX)?;
    let starts: Starts =
        serde_json::from_slice(&bytes).map_err(|error| refuse(error.line(), error.to_string()))?;
    starts.check().map_err(|reason| refuse(0, reason))?;
    Ok(starts)
}

impl Forecasts {
    /// Those of a folder; nothing is read yet. What is read is served.
    #[must_use]
    pub fn of(folder: &Path, served: Served) -> Forecasts {
        Forecasts {
            path: folder.join(FILE),
            read: None,
            starts: None,
            told: BTreeMap::new(),
            served,
        }
    }

    /// Reads the file where it is another one; what is wrong with it.
    pub fn look(&mut self, now_s: i64) -> Option<String> {
        let found = std::fs::metadata(&self.path);
        let found = found.and_then(|found| Ok((found.ino(), found.modified()?, found.len())));
        let found = found.ok();
        let mut complaint = None;
        if found != self.read {
            self.read = found;
            let starts = found.map(|_| read(&self.path)).transpose();
            complaint = starts.as_ref().err().map(ToString::to_string);
            self.starts = starts.ok().flatten().map(Arc::new);
        }
        let last = self
            .starts
            .clone()
            .map(|starts| Last(starts, now_s, Instant::now()));
        *self.served.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
        complaint
    }

    /// Waiting jobs whose bucket was not shown yet or has changed; none where the forecasts are old.
    pub fn news(&mut self, snapshot: &Snapshot) -> Vec<News> {
        let now_s = snapshot.taken_s;
        let Some(starts) = self.starts.as_ref().filter(|starts| starts.is_fresh(now_s)) else {
            return Vec::new();
        };
        let waits =
            |job: &&JobSeen| matches!(job.phase, Phase::Waiting | Phase::Loose) && !job.terms.is_lease;
        let waiting: BTreeSet<ExternalId> = snapshot.jobs.iter().filter(waits).map(|job| job.id).collect();
        self.told.retain(|job, _| waiting.contains(job));
        let of = |job: &ExternalId| {
            let forecast = *starts.jobs.get(&job.to_string())?;
            let before = self.told.get(job);
            let is_news = before.is_none_or(|(bucket, at_s)| {
                *bucket != forecast.bucket() && now_s.saturating_sub(*at_s) >= AGAIN_S
            });
            is_news.then_some(News {
                job: *job,
                forecast,
                made_s: starts.made_s,
            })
        };
        waiting.iter().filter_map(of).take(WORDS_MAX).collect()
    }

    /// Notes that these were shown at Unix time `now_s`.
    pub fn remember(&mut self, news: &[News], now_s: i64) {
        let told = news
            .iter()
            .map(|news| (news.job, (news.forecast.bucket(), now_s)));
        self.told.extend(told);
    }
}

/// What is served of forecasts, for threads that answer.
#[derive(Clone, Debug, Default)]
pub struct Served(Arc<Mutex<Option<Last>>>);

/// The last forecasts, the Unix time of a round, s, and when that was.
#[derive(Debug)]
struct Last(Arc<Starts>, i64, Instant);

impl Served {
    /// The last ones; none where there are none.
    #[must_use]
    pub fn starts(&self) -> Option<Arc<Starts>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|last| Arc::clone(&last.0))
    }

    /// The answer to `GET /v1/when`, by what stands behind the question mark: without a job those of requests. None where there are
    /// no forecasts, or none of the job.
    #[must_use]
    pub fn answer(&self, query: &str) -> Option<String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Last(starts, at_s, since) = last.as_ref()?;
        let now_s = at_s.saturating_add(since.elapsed().as_secs() as i64);
        let query = query.trim_start_matches('?');
        let job = query.split('&').find_map(|pair| pair.strip_prefix("job="));
        let (mut requests, mut jobs) = (Vec::new(), BTreeMap::new());
        match job {
            Some(job) => drop(jobs.insert(job.to_owned(), *starts.jobs.get(job)?)),
            None => requests.clone_from(&starts.requests),
        }
        let forecast = jobs.values().next().copied();
        // Piece by piece: the others of a hundred thousand jobs are not copied for one answer.
        let some = Starts {
            version: starts.version,
            made_s: starts.made_s,
            method: starts.method.clone(),
            policy: starts.policy.clone(),
            held: starts.held,
            num_held: starts.num_held,
            jobs,
            requests,
        };
        let mut answer = serde_json::to_value(some).ok()?;
        answer["age_s"] = starts.age_s(now_s).into();
        answer["is_fresh"] = starts.is_fresh(now_s).into();
        answer["bucket"] = forecast.map(|of| of.bucket().name()).into();
        Some(answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Site, VERSION};

    fn snapshot(taken_s: i64, num: u64) -> Snapshot {
        let job = |number| {
            let text = format!(
                r#"{{"id":"{number}","phase":"waiting","submit_s":0,"num_nodes":1,"gpus_per_node":1,"num_cpus":1}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        Snapshot {
            version: VERSION,
            taken_s,
            nodes: Vec::new(),
            jobs: (0..num).map(job).collect(),
            site: Site::default(),
        }
    }

    /// Forecasts of jobs 0 to `num` in a file.
    fn write(folder: &Path, made_s: i64, median_s: f64, num: u64) {
        let forecast = Forecast {
            at_once: 0.5,
            median_s,
            within_s: [0.0, 2.0 * median_s],
        };
        let starts = Starts {
            version: pleach_site::starts::VERSION,
            made_s,
            method: "trees".into(),
            policy: "easy".into(),
            held: 0.75,
            num_held: 12,
            jobs: (0..num).map(|job| (job.to_string(), forecast)).collect(),
            requests: Vec::new(),
        };
        files::replace(folder, FILE, &serde_json::to_vec(&starts).unwrap()).unwrap();
    }

    #[test]
    fn a_job_is_told_of_another_bucket_and_no_sooner_than_after_ten_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let mut forecasts = Forecasts::of(folder.path(), Served::default());
        let mut told = |now_s: i64, made_s: i64, median_s: f64| {
            write(folder.path(), made_s, median_s, 2);
            assert_eq!(forecasts.look(now_s), None);
            let news = forecasts.news(&snapshot(now_s, 1));
            forecasts.remember(&news, now_s);
            news.len()
        };
        assert_eq!(told(1000, 1000, 3000.0), 1, "of two the one that waits");
        assert_eq!(told(1060, 1060, 3599.0), 0, "the same bucket");
        assert_eq!(told(1599, 1599, 3600.0), 0, "too soon");
        assert_eq!(told(1600, 1000, 3600.0), 0, "too old");
        assert_eq!(told(1601, 1600, 3600.0), 1);
        assert_eq!(told(2300, 2300, 3000.0), 1);
    }

    #[test]
    fn of_many_some_are_told_each_round() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1000, 60.0, 250);
        let mut forecasts = Forecasts::of(folder.path(), Served::default());
        forecasts.look(1000);
        let mut told = |now_s| {
            let news = forecasts.news(&snapshot(now_s, 250));
            forecasts.remember(&news, now_s);
            news.len()
        };
        assert_eq!([1000, 1001, 1002, 1003].map(&mut told), [100, 100, 50, 0]);
    }

    #[test]
    fn an_answer_says_its_age_and_is_of_one_job_alone() {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::default();
        let mut forecasts = Forecasts::of(folder.path(), served.clone());
        assert_eq!((forecasts.look(1000), served.answer("job=1")), (None, None));
        write(folder.path(), 1000, 9000.0, 2);
        forecasts.look(1040);
        let answer = served.answer("job=1").unwrap();
        for part in [
            r#""age_s":40"#,
            r#""is_fresh":true"#,
            r#""jobs":{"1":"#,
            r#""bucket":"1h-to-4h""#,
            r#""held":0.75"#,
        ] {
            assert!(answer.contains(part), "{part} is not in {answer}");
        }
        assert_eq!(served.answer("job=7"), None);
        let all = served.answer("").unwrap();
        assert!(all.contains(r#""jobs":{}"#), "{all}");
        forecasts.look(1600);
        assert!(served.answer("job=1").unwrap().contains(r#""is_fresh":false"#));
        // What cannot be understood is no forecast, and is complained of once.
        std::fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(forecasts.look(1700).unwrap().contains(FILE));
        assert_eq!((forecasts.look(1701), served.answer("job=1")), (None, None));
    }
}
