//! What asking for less would have won: on a list that the policy plays itself the truth of each alternative is known.

use pleach_env::Seed;
use pleach_env::workload::JobSpec;
use pleach_forecast::case::{SHORT_S, Scene, Subject, wait_s};
use pleach_forecast::draws::Draws;
use pleach_forecast::learn::{Case, Learner, Method};
use pleach_forecast::record::Present;
use pleach_forecast::replay::{Coming, DAYS_MAX_S};
use pleach_forecast::score::MIDDLE;
use pleach_scheduler::Resources;
use serde::Serialize;

use super::{REPLAYS_LEARNED, subject};
use crate::evaluate::metric::show_seconds;

/// Gangs that had to wait whose alternatives are played, at most. *Ours*.
pub(super) const GANGS_MAX: usize = 150;

/// Means over gangs that had to wait, each as asked, with half the GPUs, half the time, and both.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Gains {
    /// Gangs.
    pub num_gangs: usize,
    /// Of which the replay with true run times starts as the list says.
    pub num_exact: usize,
    /// Of which the alternative with the least stated median starts first, or within a minute of the first.
    pub num_picked: usize,
    /// By which it starts later than the first, s a gang.
    pub lost_s: f64,
    /// By which it starts earlier than what was asked, s a gang.
    pub won_s: f64,
    /// By which the stated gain of half the GPUs misses the true one, s a gang.
    pub error_s: f64,
    /// The true gain of half the GPUs, s a gang.
    pub half_s: f64,
}

impl Gains {
    /// Adds a gang by what was stated and what is true of each alternative, s.
    fn add(&mut self, wait_s: f64, stated_s: &[f64], true_s: &[f64]) {
        let least = |of: &[f64]| {
            (0..of.len())
                .min_by(|one, other| of[*one].total_cmp(&of[*other]))
                .unwrap_or(0)
        };
        let (picked_s, first_s) = (true_s[least(stated_s)], true_s[least(true_s)]);
        let half_s = true_s[0] - true_s[1];
        self.num_gangs += 1;
        self.num_exact += usize::from((true_s[0] - wait_s).abs() <= 1.0);
        self.num_picked += usize::from(picked_s <= first_s + SHORT_S);
        let share = 1.0 / self.num_gangs as f64;
        for (mean, value) in [
            (&mut self.lost_s, picked_s - first_s),
            (&mut self.won_s, true_s[0] - picked_s),
            (&mut self.error_s, (stated_s[0] - stated_s[1] - half_s).abs()),
            (&mut self.half_s, half_s),
        ] {
            *mean += (value - *mean) * share;
        }
    }

    /// Plays the alternatives of a gang that came.
    pub(super) fn play(
        &mut self,
        scene: &Scene<'_>,
        (learner, method): (&Learner, Option<Method>),
        case: &Case,
    ) -> Result<(), pleach_env::Error> {
        let job = &scene.site.workload.jobs[case.job];
        let without = Present {
            waiting: scene
                .present
                .waiting
                .iter()
                .copied()
                .filter(|other| *other != case.job)
                .collect(),
            ..scene.present.clone()
        };
        let scene = Scene {
            present: &without,
            ..*scene
        };
        let asks = [(1, 1.0), (2, 1.0), (1, 2.0), (2, 2.0)].map(|(gpus, time)| JobSpec {
            num_gpus: job.num_gpus / gpus,
            estimate_s: job.estimate_s.map(|limit_s| limit_s / time),
            resources: if gpus == 1 {
                job.resources
            } else {
                Resources::WHOLE_GPU
            },
            ..job.clone()
        });
        let subjects = asks.map(|ask| {
            let mut one = subject(&scene, &ask);
            if let Subject::New(coming, _) = &mut one
                && ask.estimate_s == job.estimate_s
            {
                coming.estimate = scene.site.estimates[case.job];
            }
            one
        });
        let bares = scene.bares(&subjects, REPLAYS_LEARNED, Seed(case.job as u64))?;
        let method = learner.method(method) as usize;
        let stated: Vec<f64> = bares
            .iter()
            .map(|bare| learner.state(bare).1[method][MIDDLE])
            .collect();
        let truth = |one: &Subject<'_>| {
            let mut drawn = Draws::truth(scene.site, &without);
            if let Subject::New(coming, _) = one {
                let run_s = job.run_time_s;
                drawn.coming.insert(
                    0,
                    Coming {
                        run_s,
                        ..(**coming).clone()
                    },
                );
            }
            let number = without.waiting.len();
            Ok(wait_s(
                scene.site.replay(&without, &drawn, 1, &[number], DAYS_MAX_S)?[number],
            ))
        };
        let truths = subjects
            .iter()
            .map(truth)
            .collect::<Result<Vec<f64>, pleach_env::Error>>()?;
        self.add(case.wait_s, &stated, &truths);
        Ok(())
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let part = |num: usize| 100.0 * num as f64 / self.num_gangs as f64;
        format!(
            "Of {} gangs that had to wait, the one of four (as asked, half the GPUs, half the time, both) with the least stated median \
             was the first, or within a minute of it, in {:.0} %. It was {} later on average, and {} earlier than what was asked. The stated gain of \
             half the GPUs missed the true one, {}, by {}. The replay with true run times met {:.0} % of the starts.",
            self.num_gangs,
            part(self.num_picked),
            show_seconds(self.lost_s),
            show_seconds(self.won_s),
            show_seconds(self.half_s),
            show_seconds(self.error_s),
            part(self.num_exact),
        )
    }
}
