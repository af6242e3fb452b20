//! Autoscaling in steps: a day is drawn, each question shows its rows, and a choice earns the training beside less a price for misses.
//!
//! The day is played on a thread of its own, which stands still while the answer to a question is thought about; it ends with the
//! day, or with the environment.
//!
//! # Reward
//! Between two questions: GPUs that train x time, less what the stop of jobs for new replicas loses, less the price of each request
//! that was served outside of a target. The last step corrects the sum: the return of a day is the work of jobs that was done and
//! kept, GPU·h, less the price of all misses.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use pleach_env::Seed;
use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use pleach_serving::llm::{AUTOSCALING, AUTOSCALING_1, Autoscaler, Changes, Demand};
use pleach_serving::{Environment, Step};

use super::ServiceSettings;
use super::bench::MixedBench;
use super::timeline::MixedDay;
use super::tuned::{missed, worth_gpu_h};
use crate::error::Error;

/// A question.
struct Question {
    rows: Vec<f32>,
    context: Vec<f32>,
    now_s: f64,
    /// GPUs that train.
    training_gpus: f64,
    /// Requests outside of a target so far.
    missed: f64,
    /// What the stops for each row would lose, GPU·s.
    losses_gpu_s: Vec<f64>,
}

/// A day under way.
struct Episode {
    asked: Receiver<Question>,
    answers: Sender<usize>,
    day: JoinHandle<Result<MixedDay, Error>>,
}

/// An autoscaler that asks the caller of the environment's steps.
struct Asking {
    changes: Changes,
    questions: Sender<Question>,
    answers: Receiver<usize>,
}

impl Autoscaler for Asking {
    fn period_s(&self) -> Option<f64> {
        Some(Changes::period_s())
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        let Some((rows, context)) = self.changes.ask(demand) else {
            return Ok(demand.at_first());
        };
        let losses = AUTOSCALING.joined_index("stopped_gpu_s").map(|column| {
            let rows = rows.chunks_exact(AUTOSCALING_1.num_row);
            let scale = AUTOSCALING.features[column].scale;
            rows.map(|row| scale.invert(row[AUTOSCALING.place(column)]))
                .collect()
        });
        let question = Question {
            rows: rows.to_vec(),
            context: context.to_vec(),
            now_s: demand.now_s,
            training_gpus: demand.beside.training_gpus as f64,
            missed: demand.load.missed as f64,
            losses_gpu_s: losses.unwrap_or_default(),
        };
        let left = |_| Problem::new("episode", "left", "one that is played to its end", "Reset it.");
        self.questions
            .send(question)
            .map_err(|error| left(error.to_string()))?;
        let row = self.answers.recv().map_err(|error| left(error.to_string()))?;
        Ok(self.changes.take(demand, row))
    }
}

/// The environment.
pub struct Scaling {
    bench: Arc<MixedBench>,
    price_gpu_s: f64,
    episode: Option<Episode>,
    question: Option<Question>,
    /// Rows of the question, and rows of 0 beyond what may be asked for.
    rows: Vec<f32>,
    context: Vec<f32>,
    mask: Vec<bool>,
    earned_gpu_h: f64,
    ended: Option<MixedDay>,
}

impl Scaling {
    /// An environment before its first episode; a miss costs `price_gpu_s` GPU·s of training.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn new(config: &ServiceSettings, price_gpu_s: f64) -> Result<Scaling, Error> {
        Scaling::on(Arc::new(MixedBench::new(config)?), price_gpu_s)
    }

    /// The same on a bench that others share.
    pub(super) fn on(bench: Arc<MixedBench>, price_gpu_s: f64) -> Result<Scaling, Error> {
        Error::refuse_if(
            !(0.0..=1e6).contains(&price_gpu_s),
            "price_gpu_s",
            price_gpu_s,
            "0 to 1000000",
            "Try 18.",
        )?;
        let num_choices = Changes::NUM_MAX;
        Ok(Scaling {
            bench,
            price_gpu_s,
            episode: None,
            question: None,
            rows: vec![0.0; num_choices * AUTOSCALING_1.num_row],
            context: vec![0.0; AUTOSCALING_1.num_context],
            mask: vec![false; num_choices],
            earned_gpu_h: 0.0,
            ended: None,
        })
    }

    /// Begins a day. The same seed is the same day.
    ///
    /// # Errors
    /// A day that cannot be drawn.
    pub fn reset(&mut self, seed: u64) -> Result<(), Error> {
        self.leave();
        let day = self.bench.day(Seed(seed), 1.0)?;
        let (questions, asked) = bounded(0);
        let (answers, answered) = bounded(0);
        let bench = Arc::clone(&self.bench);
        let play = move || {
            let mut asking = Asking {
                changes: Changes::new(bench.capacity_per_s),
                questions,
                answers: answered,
            };
            Ok(bench.play(&day, &mut asking)?.0)
        };
        self.episode = Some(Episode {
            asked,
            answers,
            day: std::thread::spawn(play),
        });
        (self.earned_gpu_h, self.ended) = (0.0, None);
        self.next()
    }

    /// What is asked: rows `[C, F]`, context `[G]` and mask `[C]` of [`AUTOSCALING`].
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            schema: &AUTOSCALING,
            rows: &self.rows,
            width: AUTOSCALING_1.num_row,
            context: &self.context,
            mask: &self.mask,
        }
    }

    /// Takes a row. In the last step the rows stay as they were.
    ///
    /// # Errors
    /// A row that may not be chosen; a step before the first episode or after the last question; a run that fails.
    pub fn step(&mut self, choice: usize) -> Result<Step, Error> {
        let (Some(episode), Some(before)) = (&self.episode, &self.question) else {
            return Err(Error::config("step", choice, "a step of an episode", "Reset it."));
        };
        Error::refuse_if(
            !self.mask.get(choice).is_some_and(|may| *may),
            "action",
            choice,
            "a row that the mask allows",
            "Read the mask.",
        )?;
        let (then_s, missed_then) = (before.now_s, before.missed);
        let loss_gpu_s = before.losses_gpu_s.get(choice).copied().unwrap_or(0.0);
        // Where the day has failed, the next question says why.
        let _ = episode.answers.send(choice);
        self.next()?;
        let (reward, dt_s) = match (&self.question, &self.ended) {
            (Some(now), _) => {
                let dt_s = now.now_s - then_s;
                let earned =
                    now.training_gpus * dt_s - loss_gpu_s - self.price_gpu_s * (now.missed - missed_then);
                (earned / 3_600.0, dt_s)
            }
            (None, Some(day)) => (worth_gpu_h(day, self.price_gpu_s) - self.earned_gpu_h, 0.0),
            (None, None) => (0.0, 0.0),
        };
        self.earned_gpu_h += reward;
        Ok(Step {
            reward,
            dt_s,
            is_last: self.question.is_none(),
        })
    }

    /// Of an episode that has ended, once: its figures and its misses; none before.
    pub fn take_day(&mut self) -> Option<(MixedDay, f64)> {
        self.ended.take().map(|day| (day, missed(&day)))
    }

    /// Waits for the next question, or for the end.
    fn next(&mut self) -> Result<(), Error> {
        let Some(episode) = &self.episode else {
            return Ok(());
        };
        self.question = episode.asked.recv().ok();
        if let Some(question) = &self.question {
            self.rows.fill(0.0);
            self.rows[..question.rows.len()].copy_from_slice(&question.rows);
            self.context.copy_from_slice(&question.context);
            for (row, may) in self.mask.iter_mut().enumerate() {
                *may = row < question.losses_gpu_s.len();
            }
            return Ok(());
        }
        if let Some(episode) = self.episode.take() {
            let day = episode.day.join();
            self.ended = Some(day.map_err(|_| Error::Failed("a day was broken off".into()))??);
        }
        Ok(())
    }

    /// Leaves a day that is under way.
    fn leave(&mut self) {
        self.question = None;
        if let Some(Episode { asked, answers, day }) = self.episode.take() {
            drop((asked, answers));
            // It ends with an error of its own, which says that it was left.
            let _ = day.join();
        }
    }
}

impl Drop for Scaling {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Environment for Scaling {
    fn view(&self) -> View {
        AUTOSCALING_1
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
        Scaling::reset(self, seed).map_err(of_episode)
    }

    fn rows(&self) -> Rows<'_> {
        Scaling::rows(self)
    }

    fn step(&mut self, choice: usize) -> Result<Step, Problem> {
        Scaling::step(self, choice).map_err(of_episode)
    }

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let (day, missed) = self.take_day()?;
        Some(vec![
            ("num_requests", day.num_requests),
            ("missed_requests", missed),
            ("hits_pct", day.hits_pct),
            ("training_gpu_h", day.training_gpu_h),
            ("serving_gpu_h", day.serving_gpu_h),
            ("lost_gpu_h", day.lost_gpu_h),
            ("moves", day.moves),
            ("preemptions", day.preemptions),
        ])
    }
}

fn of_episode(error: Error) -> Problem {
    match error {
        Error::Problem(problem) => problem,
        other => Problem::new(
            "episode",
            other,
            "a run that does not fail",
            "Take other settings.",
        ),
    }
}
