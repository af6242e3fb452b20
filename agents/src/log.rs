//! What a run reports: TensorBoard events under the tags that researchers expect, and the same figures as JSON lines.
//!
//! `metrics.jsonl` and `histograms.jsonl` hold nothing that depends on the clock, so two runs of one seed write the same bytes.
//! Speed goes to TensorBoard and to `timing.jsonl` only.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::Error;
use crate::evolution::GenerationStats;
use crate::histogram::Histogram;
use crate::learner::Stats;
use crate::tensorboard::EventFile;
use crate::trainer::UpdateStats;

/// Writes the figures of a run into a folder. Times are the caller's, seconds since 1970.
#[derive(Debug)]
pub struct Logger {
    tensorboard: EventFile,
    metrics: (PathBuf, File),
    histograms: (PathBuf, File),
    timing: (PathBuf, File),
    resumed: bool,
}

impl Logger {
    /// Opens the files of `folder`. `resumed_at` is None for a run that begins: what a broken-off one left is forgotten.
    /// A run that goes on from a checkpoint gives its number of frames, and adds to the files: lines of later frames,
    /// which will be made again, are cut off, and with them a last line that was cut short.
    ///
    /// # Errors
    /// [`Error::Problem`] where the folder cannot be written.
    pub fn open(folder: &Path, resumed_at: Option<u64>, now_unix_s: f64) -> Result<Logger, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let lines = |name: &str| open_lines(folder.join(name), resumed_at);
        Ok(Logger {
            metrics: lines("metrics.jsonl")?,
            histograms: lines("histograms.jsonl")?,
            timing: lines("timing.jsonl")?,
            tensorboard: EventFile::create(&folder.join("tensorboard"), resumed_at, now_unix_s)?,
            resumed: resumed_at.is_some(),
        })
    }

    /// Notes the settings of the run, whatever they are: each leaf under the keys that lead to it, joined with dots. As
    /// JSON they are the first line of `metrics.jsonl`, `hparams/KEY`.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn settings(&mut self, settings: &Value, now_unix_s: f64) -> Result<(), Error> {
        let mut leaves = Vec::new();
        collect_leaves("", settings, &mut leaves);
        self.tensorboard.settings(now_unix_s, &leaves)?;
        if self.resumed {
            return Ok(());
        }
        let values = leaves
            .into_iter()
            .map(|(key, value)| (format!("hparams/{key}"), value));
        write_line(&mut self.metrics, 0, values)
    }

    /// Notes an update of any learner; `frames_per_s` is `charts/SPS`.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn update(&mut self, stats: &Stats, now_unix_s: f64, frames_per_s: f64) -> Result<(), Error> {
        let tags = match stats {
            Stats::Update(stats) => tags(stats),
            Stats::Generation(stats) => tags_of_generation(stats),
            Stats::Own(_, figures) => figures.clone(),
        };
        self.scalars(stats.num_frames(), now_unix_s, tags)?;
        self.speed(stats.num_frames(), now_unix_s, frames_per_s)
    }

    fn speed(&mut self, num_frames: u64, now_unix_s: f64, frames_per_s: f64) -> Result<(), Error> {
        let speed = finite(vec![("charts/SPS".to_owned(), frames_per_s)]);
        self.tensorboard.scalars(num_frames, now_unix_s, &speed)?;
        write_line(&mut self.timing, num_frames, numbers(speed))
    }

    /// Notes an evaluation; each name becomes `eval/NAME`.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn evaluation(
        &mut self,
        num_frames: u64,
        now_unix_s: f64,
        figures: &[(String, f64)],
    ) -> Result<(), Error> {
        let tags = figures
            .iter()
            .map(|(name, value)| (format!("eval/{name}"), *value));
        self.scalars(num_frames, now_unix_s, tags.collect())
    }

    /// Notes figures under tags of the caller's; nothing without any.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn figures(
        &mut self,
        num_frames: u64,
        now_unix_s: f64,
        figures: Vec<(String, f64)>,
    ) -> Result<(), Error> {
        if figures.is_empty() {
            return Ok(());
        }
        self.scalars(num_frames, now_unix_s, figures)
    }

    /// Notes how numbers are spread, see [`Trainer::histograms`](crate::trainer::Trainer::histograms).
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn histograms(
        &mut self,
        num_frames: u64,
        now_unix_s: f64,
        histograms: &[(String, Histogram)],
    ) -> Result<(), Error> {
        self.tensorboard.histograms(num_frames, now_unix_s, histograms)?;
        let values = histograms
            .iter()
            .map(|(tag, histogram)| (tag.clone(), histogram.to_json()));
        write_line(&mut self.histograms, num_frames, values)
    }

    /// Brings all lines to the disk: to be called before a checkpoint that they belong to is written.
    ///
    /// # Errors
    /// [`Error::Problem`] where a file cannot be written.
    pub fn sync(&self) -> Result<(), Error> {
        for (path, file) in [&self.metrics, &self.histograms] {
            // A pipe or a device cannot be synced.
            if file.metadata().is_ok_and(|data| data.is_file()) {
                file.sync_data().map_err(Error::io(path))?;
            }
        }
        self.tensorboard.sync()
    }

    /// Notes in TensorBoard that the run came to its end.
    ///
    /// # Errors
    /// [`Error::Problem`] where the file cannot be written.
    pub fn end(&mut self, num_frames: u64, now_unix_s: f64) -> Result<(), Error> {
        self.tensorboard.end(num_frames, now_unix_s)
    }

    fn scalars(&mut self, num_frames: u64, now_unix_s: f64, tags: Vec<(String, f64)>) -> Result<(), Error> {
        let tags = finite(tags);
        self.tensorboard.scalars(num_frames, now_unix_s, &tags)?;
        write_line(&mut self.metrics, num_frames, numbers(tags))
    }
}

/// Numbers, truths and texts of a tree under the keys that lead to them; lists and nothings as JSON.
fn collect_leaves(key: &str, value: &Value, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if key.is_empty() { "" } else { "." };
                collect_leaves(&format!("{key}{dot}{name}"), value, leaves);
            }
        }
        leaf => leaves.push((key.to_owned(), leaf.clone())),
    }
}

fn numbers(tags: Vec<(String, f64)>) -> impl Iterator<Item = (String, Value)> {
    tags.into_iter().map(|(tag, value)| (tag, Value::from(value)))
}

fn finite(mut tags: Vec<(String, f64)>) -> Vec<(String, f64)> {
    tags.retain(|(_, value)| value.is_finite());
    tags
}

/// An update's figures under their tags. Not finite ones (no episode ended) are left out of the files.
#[must_use]
pub fn tags(stats: &UpdateStats) -> Vec<(String, f64)> {
    let ppo = &stats.ppo;
    let mut tags: Vec<(String, f64)> = [
        ("charts/update", stats.update as f64),
        ("charts/episodic_return", stats.episodic_return),
        ("charts/episodic_length", stats.episodic_length),
        ("charts/learning_rate", stats.learning_rate),
        ("charts/gradient_steps", f64::from(ppo.num_steps)),
        ("losses/policy_loss", ppo.policy_loss),
        ("losses/value_loss", ppo.value_loss),
        ("losses/entropy", ppo.entropy),
        ("losses/approx_kl", ppo.approx_kl),
        ("losses/old_approx_kl", ppo.old_approx_kl),
        ("losses/clipfrac", ppo.clipfrac),
        ("losses/explained_variance", stats.explained_variance),
        ("losses/grad_norm", ppo.grad_norm),
    ]
    .map(|(tag, value)| (tag.to_owned(), value))
    .into();
    let count = stats.episodes.len() as f64;
    if let Some(first) = stats.episodes.first() {
        for (index, (name, _)) in first.fields().into_iter().enumerate() {
            let sum: f64 = stats
                .episodes
                .iter()
                .map(|metrics| metrics.fields()[index].1)
                .sum();
            tags.push((format!("train/{name}"), sum / count));
        }
    }
    tags
}

fn tags_of_generation(stats: &GenerationStats) -> Vec<(String, f64)> {
    let tags = [
        ("charts/update", stats.update as f64),
        ("charts/learning_rate", stats.learning_rate),
        ("losses/fitness_mean", stats.fitness_mean),
        ("losses/fitness_deviation", stats.fitness_deviation),
        ("losses/fitness_best", stats.fitness_best),
        ("losses/grad_norm", stats.grad_norm),
    ];
    tags.map(|(tag, value)| (tag.to_owned(), value)).into()
}

fn write_line(
    (path, file): &mut (PathBuf, File),
    step: u64,
    values: impl Iterator<Item = (String, Value)>,
) -> Result<(), Error> {
    let mut line = Map::new();
    line.insert("step".to_owned(), Value::from(step));
    line.extend(values);
    let line = format!("{}\n", Value::Object(line));
    file.write_all(line.as_bytes()).map_err(Error::io(path))
}

/// Opens a JSONL file for adding to it, cut off behind the lines up to the step `resumed_at`; at 0 where a run begins.
/// The file is cut and not written anew, so that being killed here loses nothing.
fn open_lines(path: PathBuf, resumed_at: Option<u64>) -> Result<(PathBuf, File), Error> {
    let open = || {
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        // A pipe or a device takes what comes.
        if file.metadata()?.is_file() {
            file.set_len(resumed_at.map_or(Ok(0), |last| length_up_to(&path, last))?)?;
        }
        Ok(file)
    };
    let file = open().map_err(Error::io(&path))?;
    Ok((path, file))
}

/// Longest line that a run goes on behind, bytes; those of histograms are below 1 MB.
const LINE_BYTES_MAX: u64 = 1 << 24;

/// Bytes of the whole lines whose step is not beyond `last`. Steps never fall from line to line.
fn length_up_to(path: &Path, last: u64) -> std::io::Result<u64> {
    let mut length = 0;
    let (mut reader, mut line) = (BufReader::new(File::open(path)?), Vec::new());
    loop {
        line.clear();
        (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let step = serde_json::from_slice::<Value>(&line)
            .ok()
            .and_then(|line| line["step"].as_u64());
        if !line.ends_with(b"\n") || step.is_none_or(|step| step > last) {
            break;
        }
        length += line.len() as u64;
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::Metrics;

    fn stats(update: u64) -> UpdateStats {
        let metrics = Metrics {
            avg_jct_s: 10.0 * (update + 1) as f64,
            ..Metrics::default()
        };
        UpdateStats {
            update,
            num_frames: 100 * (update + 1),
            episodic_return: f64::NAN,
            episodes: vec![
                metrics,
                Metrics {
                    avg_jct_s: 0.0,
                    ..metrics
                },
            ],
            ..UpdateStats::default()
        }
    }

    #[test]
    fn figures_go_to_both_files_and_speed_only_where_nothing_is_compared() {
        let folder = tempfile::tempdir().unwrap();
        let mut logger = Logger::open(folder.path(), None, 7.0).unwrap();
        logger.update(&Stats::Update(stats(0)), 7.5, 1234.0).unwrap();
        logger
            .evaluation(100, 7.5, &[("avg_jct_s".to_owned(), 5.0)])
            .unwrap();
        let metrics = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
        let lines: Vec<Value> = metrics
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["step"], 100);
        assert_eq!(lines[0]["train/avg_jct_s"], 5.0);
        assert_eq!(lines[0]["losses/clipfrac"], 0.0);
        assert!(lines[0].get("charts/episodic_return").is_none());
        assert_eq!(lines[1]["eval/avg_jct_s"], 5.0);
        assert!(!metrics.contains("SPS"));
        let timing = std::fs::read_to_string(folder.path().join("timing.jsonl")).unwrap();
        assert_eq!(timing, "{\"charts/SPS\":1234.0,\"step\":100}\n");
        assert_eq!(
            std::fs::read_dir(folder.path().join("tensorboard"))
                .unwrap()
                .count(),
            1
        );
    }

    #[test]
    fn a_resumed_run_drops_the_lines_that_it_will_write_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut logger = Logger::open(folder.path(), None, 7.0).unwrap();
        (0..3).for_each(|update| logger.update(&Stats::Update(stats(update)), 9.0, 1.0).unwrap());
        let path = folder.path().join("metrics.jsonl");
        let straight = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{straight}{{\"step\": 3")).unwrap();
        let mut resumed = Logger::open(folder.path(), Some(100), 8.0).unwrap();
        (1..3).for_each(|update| resumed.update(&Stats::Update(stats(update)), 9.0, 1.0).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), straight);
    }

    #[test]
    fn a_run_that_begins_forgets_what_a_broken_off_one_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let begin = || {
            let mut logger = Logger::open(folder.path(), None, 7.0).unwrap();
            logger.evaluation(0, 7.0, &[("a".to_owned(), 1.0)]).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        assert_eq!(begin(), "{\"eval/a\":1.0,\"step\":0}\n");
        assert_eq!(begin(), "{\"eval/a\":1.0,\"step\":0}\n");
    }

    #[test]
    fn settings_are_the_first_line_under_the_keys_that_lead_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let settings = serde_json::json!({"seed": 3, "train": {"rate": 0.5, "loads": [1, 2]}, "name": "x"});
        let mut logger = Logger::open(folder.path(), None, 7.0).unwrap();
        logger.settings(&settings, 7.0).unwrap();
        let mut logger = Logger::open(folder.path(), Some(0), 8.0).unwrap();
        logger.settings(&settings, 8.0).unwrap();
        let written = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
        let line: Value = serde_json::from_str(&written).unwrap();
        let expected = serde_json::json!({
            "step": 0, "hparams/seed": 3, "hparams/name": "x",
            "hparams/train.rate": 0.5, "hparams/train.loads": [1, 2],
        });
        assert_eq!(line, expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("metrics.jsonl")).unwrap();
        let mut logger = Logger::open(folder.path(), Some(0), 7.0).unwrap();
        let error = logger
            .update(&Stats::Update(stats(0)), 7.5, 1.0)
            .unwrap_err()
            .to_string();
        assert!(error.contains("metrics.jsonl: No space left"), "{error}");
        logger.sync().unwrap();
    }
}
