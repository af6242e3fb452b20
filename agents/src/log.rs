//! What a run reports: TensorBoard events under the tags that researchers expect, and the same figures as JSON lines.
//!
//! `metrics.jsonl` holds nothing that depends on the clock, so two runs of one seed write the same bytes. Speed goes to
//! TensorBoard and to `timing.jsonl` only.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::Error;
use crate::evolution::GenerationStats;
use crate::tensorboard::EventFile;
use crate::trainer::UpdateStats;

/// Writes the figures of a run into a folder. Times are the caller's, seconds since 1970.
#[derive(Debug)]
pub struct Logger {
    tensorboard: EventFile,
    metrics: (PathBuf, File),
    timing: (PathBuf, File),
}

impl Logger {
    /// Opens the files of `folder`; a resumed run adds to them. The figures of updates from `num_frames` on, which a
    /// resumed run makes again, are removed.
    ///
    /// # Errors
    /// [`Error::Io`] where the folder cannot be written.
    pub fn open(folder: &Path, num_frames: u64, now_unix_s: f64) -> Result<Logger, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let metrics = folder.join("metrics.jsonl");
        forget_after(&metrics, num_frames)?;
        let append = |path: PathBuf| {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(Error::io(&path))?;
            Ok::<_, Error>((path, file))
        };
        Ok(Logger {
            metrics: append(metrics)?,
            timing: append(folder.join("timing.jsonl"))?,
            tensorboard: EventFile::create(&folder.join("tensorboard"), now_unix_s)?,
        })
    }

    /// Notes an update; `frames_per_s` is `charts/SPS`.
    ///
    /// # Errors
    /// [`Error::Io`] where a file cannot be written.
    pub fn update(&mut self, stats: &UpdateStats, now_unix_s: f64, frames_per_s: f64) -> Result<(), Error> {
        self.scalars(stats.num_frames, now_unix_s, tags(stats))?;
        self.speed(stats.num_frames, now_unix_s, frames_per_s)
    }

    /// Notes a generation of evolution strategies.
    ///
    /// # Errors
    /// [`Error::Io`] where a file cannot be written.
    pub fn generation(
        &mut self,
        stats: &GenerationStats,
        now_unix_s: f64,
        frames_per_s: f64,
    ) -> Result<(), Error> {
        let tags = [
            ("charts/update", stats.update as f64),
            ("charts/learning_rate", stats.learning_rate),
            ("losses/fitness_mean", stats.fitness_mean),
            ("losses/fitness_deviation", stats.fitness_deviation),
            ("losses/fitness_best", stats.fitness_best),
            ("losses/grad_norm", stats.grad_norm),
        ];
        let tags = tags.map(|(tag, value)| (tag.to_owned(), value)).into();
        self.scalars(stats.num_frames, now_unix_s, tags)?;
        self.speed(stats.num_frames, now_unix_s, frames_per_s)
    }

    fn speed(&mut self, num_frames: u64, now_unix_s: f64, frames_per_s: f64) -> Result<(), Error> {
        let speed = finite(vec![("charts/SPS".to_owned(), frames_per_s)]);
        self.tensorboard.scalars(num_frames, now_unix_s, &speed)?;
        write_line(&mut self.timing, num_frames, &speed)
    }

    /// Notes an evaluation; each name becomes `eval/NAME`.
    ///
    /// # Errors
    /// [`Error::Io`] where a file cannot be written.
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

    fn scalars(&mut self, num_frames: u64, now_unix_s: f64, tags: Vec<(String, f64)>) -> Result<(), Error> {
        let tags = finite(tags);
        self.tensorboard.scalars(num_frames, now_unix_s, &tags)?;
        write_line(&mut self.metrics, num_frames, &tags)
    }
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

fn write_line((path, file): &mut (PathBuf, File), step: u64, tags: &[(String, f64)]) -> Result<(), Error> {
    let mut line = Map::new();
    line.insert("step".to_owned(), Value::from(step));
    for (tag, value) in tags {
        line.insert(tag.clone(), Value::from(*value));
    }
    writeln!(file, "{}", Value::Object(line)).map_err(Error::io(path))
}

/// Keeps the lines of a JSONL file whose step is not beyond `num_frames`; a last line that was cut short goes too.
fn forget_after(path: &Path, num_frames: u64) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let kept = text.split_inclusive('\n').filter(|line| {
        let step = serde_json::from_str::<Value>(line)
            .ok()
            .and_then(|line| line["step"].as_u64());
        line.ends_with('\n') && step.is_some_and(|step| step <= num_frames)
    });
    std::fs::write(path, kept.collect::<String>()).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::metrics::Metrics;

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
        let mut logger = Logger::open(folder.path(), 0, 7.0).unwrap();
        logger.update(&stats(0), 7.5, 1234.0).unwrap();
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
        let mut logger = Logger::open(folder.path(), 0, 7.0).unwrap();
        (0..3).for_each(|update| logger.update(&stats(update), 9.0, 1.0).unwrap());
        let path = folder.path().join("metrics.jsonl");
        let straight = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{straight}{{\"step\": 3")).unwrap();
        let mut resumed = Logger::open(folder.path(), 100, 8.0).unwrap();
        (1..3).for_each(|update| resumed.update(&stats(update), 9.0, 1.0).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), straight);
    }
}
