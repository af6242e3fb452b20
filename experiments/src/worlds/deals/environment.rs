//! Deals in steps: each step gives every row a score, GPUs are dealt by these scores as daemons deal them, and the next deal is shown.
//!
//! # Reward
//! Minus the jobs in the system times h until the next deal, so that the return is minus the sum of all JCTs, h.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use pleach_dealing::{DealRows, Dealer, Opened, Order, deal_schema, order_of, scored_rules};
use pleach_env::Simulation;
use pleach_scheduler::features::View;
use pleach_scheduler::heuristics::nearest_of;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{Planner as _, Problem, Rows};
use pleach_serving::Step;
use serde_json::{Map, Value};

use super::{DealsSettings, DealsWorld};
use crate::error::Error;
use crate::worlds::settings::read;
use crate::worlds::world::{Draw, Verb, World as _};

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;

/// An environment: its id, a line, and what its settings differ in.
type Registered = (&'static str, &'static str, &'static str);

const ALL: [Registered; 2] = [
    (
        "Pleach/Deals-v0",
        "the Gavel mix on three GPU types, all GPUs dealt anew at events by a score of each job on each type; run times are known",
        "known",
    ),
    (
        "Pleach/DealsGuessed-v0",
        "the same with guessed run times",
        "guessed",
    ),
];

/// Ids of the environments, each with a line.
pub fn deal_environments() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|(id, line, _)| (*id, *line))
}

/// Keys of their settings.
#[must_use]
pub fn deal_settings() -> Vec<String> {
    DealsSettings::fields("")
        .into_iter()
        .map(|field| field.key)
        .collect()
}

/// The environment of an id with other settings, in JSON.
///
/// # Errors
/// An id or a setting that is not there, a value out of range.
pub fn deal_environment(id: &str, changes: &str) -> Result<Deals, Error> {
    let Some((.., estimates)) = ALL.iter().find(|(known, ..)| *known == id) else {
        let known = ALL.map(|(id, ..)| id);
        let hint = format!("did you mean {}?", nearest_of(&known, id).unwrap_or_default());
        return Err(Problem::new("env id", id, known.join(", "), hint).into());
    };
    let changes: Map<String, Value> = serde_json::from_str(changes).map_err(|error| {
        let hint = "Leave them out.";
        Problem::new("settings of the environment", error, "settings by name", hint)
    })?;
    let mut settings = Map::from_iter([("estimates".to_string(), Value::from(*estimates))]);
    settings.extend(changes);
    Deals::new(read(&settings)?)
}

/// The environment.
pub struct Deals {
    world: DealsWorld,
    dealer: Dealer<DealRows>,
    /// Looks at every deal, so that it remembers what it needs. Orders are used by one thread at a time.
    expert: Mutex<Box<dyn Order>>,
    play: Option<Simulation>,
    opened: Opened,
    /// What may be dealt of each row.
    shown: Vec<usize>,
    rows: Vec<f32>,
    mask: Vec<bool>,
    booked_jobs_s: f64,
    /// Figures of the last episode, and its jobs in the system times s and its end, s.
    ended: Option<Vec<(&'static str, f64)>>,
    end: (f64, f64),
}

impl fmt::Debug for Deals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Deals")
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}

impl Deals {
    /// An environment before its first episode.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(settings: DealsSettings) -> Result<Deals, Error> {
        let max_rows = settings.max_rows;
        Ok(Deals {
            dealer: Dealer::new("deals", scored_rules()?, DealRows::default())?,
            expert: Mutex::new(order_of(&settings.expert)?),
            play: None,
            opened: Opened::default(),
            shown: Vec::new(),
            rows: vec![0.0; max_rows * deal_schema().features.len()],
            mask: vec![false; max_rows],
            booked_jobs_s: 0.0,
            ended: None,
            end: (0.0, 0.0),
            world: DealsWorld::new(settings)?,
        })
    }

    /// What rows show.
    #[must_use]
    pub fn view(&self) -> View {
        deal_schema().views[0]
    }

    /// Begins an episode. The same seed is the same list and the same fates.
    ///
    /// # Errors
    /// A list that cannot be drawn.
    pub fn reset(&mut self, seed: u64) -> Result<(), Error> {
        let draw = Draw {
            verb: Verb::Train,
            seed,
            stream: "episode",
            number: 0,
            load: 1.0,
            num: 1,
        };
        let list = self.world.draw(draw)?.swap_remove(0);
        let sim = self.world.sim_of(&list);
        self.dealer = Dealer::new("deals", scored_rules()?, DealRows::default())?;
        self.expert = Mutex::new(order_of(&self.world.settings.expert)?);
        (self.booked_jobs_s, self.ended) = (0.0, None);
        self.play = Some(Simulation::open(&list.workload, &sim, "deals")?);
        self.next()
    }

    /// The rows of the deal `[max_rows, F]` with their mask `[max_rows]`: first that of the job which came first, on its first type.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            schema: deal_schema(),
            rows: &self.rows,
            width: self.view().num_row,
            context: &[],
            mask: &self.mask,
        }
    }

    /// Deals by scores, one for each row; the larger comes first, minus infinity gets no GPUs, and those of rows that are masked are
    /// not read. In the last step the rows stay as they were.
    ///
    /// # Errors
    /// Another number of scores, one that is no number; a step before the first episode or after the last deal; a run that fails.
    pub fn step(&mut self, scores: &[f64]) -> Result<Step, Error> {
        let Some(play) = &mut self.play else {
            return Err(Error::config(
                "step",
                "scores",
                "a step of an episode",
                "Reset it.",
            ));
        };
        let num_rows = self.mask.len();
        Error::refuse_if(
            scores.len() != num_rows,
            "action",
            format_args!("{} numbers", scores.len()),
            format_args!("{num_rows} numbers, one for each row"),
            "Pad them.",
        )?;
        let mut own = vec![f64::NEG_INFINITY; self.opened.asks.len()];
        for (score, place) in scores.iter().zip(&self.shown) {
            Error::refuse_if(
                score.is_nan(),
                "action",
                score,
                "numbers",
                "Minus infinity is a job that gets no GPUs.",
            )?;
            own[*place] = *score;
        }
        let then_s = play.cluster_mut().now().as_secs_f64();
        self.dealer.close(play.cluster_mut(), &self.opened, &own);
        let wake = self.dealer.wake_at(play.cluster_mut());
        play.decided(wake)?;
        self.next()?;
        let (jobs_s, now_s) = self.play.as_mut().map_or(self.end, reached);
        let gained_s = jobs_s - self.booked_jobs_s;
        self.booked_jobs_s = jobs_s;
        Ok(Step {
            reward: -gained_s / HOUR_S,
            dt_s: now_s - then_s,
            is_last: self.play.is_none(),
        })
    }

    /// The scores of the named dealer for the rows of this deal; minus infinity for those that are masked.
    ///
    /// # Errors
    /// No episode, a dealer that cannot be asked.
    pub fn expert_scores(&mut self) -> Result<Vec<f64>, Error> {
        let Some(play) = &mut self.play else {
            return Err(Error::config(
                "expert_scores",
                "asked",
                "a deal of an episode",
                "Reset it.",
            ));
        };
        let expert = self.expert.get_mut().unwrap_or_else(PoisonError::into_inner);
        let scores = expert.scores(play.cluster_mut(), &self.opened.asks)?;
        let mut of_rows = vec![f64::NEG_INFINITY; self.mask.len()];
        for (score, place) in of_rows.iter_mut().zip(&self.shown) {
            *score = scores[*place];
        }
        Ok(of_rows)
    }

    /// Goes on to the next deal of something, or to the end.
    fn next(&mut self) -> Result<(), Error> {
        let Some(play) = &mut self.play else {
            return Ok(());
        };
        while play.advance() {
            let cluster = play.cluster_mut();
            self.opened = self.dealer.open(cluster)?;
            let expert = self.expert.get_mut().unwrap_or_else(PoisonError::into_inner);
            expert.look(cluster, &self.opened.movable)?;
            if !self.opened.asks.is_empty() {
                self.show();
                return Ok(());
            }
            self.dealer.close(cluster, &self.opened, &[]);
            let wake = self.dealer.wake_at(cluster);
            play.decided(wake)?;
        }
        self.end = reached(play);
        self.ended = self.play.take().map(|play| play.end().metrics.fields().to_vec());
        Ok(())
    }

    /// Writes the rows. Where there are more than may be, those of running jobs come before the others.
    fn show(&mut self) {
        let Some(play) = &mut self.play else {
            return;
        };
        let asks = &self.opened.asks;
        self.shown = (0..asks.len()).collect();
        if asks.len() > self.mask.len() {
            self.shown
                .sort_by_key(|place| !self.opened.movable.contains(&asks[*place].job));
            self.shown.truncate(self.mask.len());
            self.shown.sort_unstable();
        }
        let rows = self.dealer.order().of(play.cluster_mut(), asks);
        self.rows.fill(0.0);
        for (row, place) in self.rows.chunks_exact_mut(rows.width).zip(&self.shown) {
            row.copy_from_slice(rows.row(*place));
        }
        for (place, may) in self.mask.iter_mut().enumerate() {
            *may = place < self.shown.len();
        }
    }

    /// Figures of an episode that has ended, by name, once; none before.
    pub fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        self.ended.take()
    }
}

/// Jobs in the system times s so far, and the time, s.
fn reached(play: &mut Simulation) -> (f64, f64) {
    (play.jobs_s(), play.cluster_mut().now().as_secs_f64())
}
