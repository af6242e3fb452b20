//! Whether anything was learned, in words. A number above 1 after 0 updates is clear only to readers who know how it is made.

use pleach_agents::learner::{Plays, way};

use super::settings::TrainSettings;
use super::trained::Trained;
use super::validation::{Validation, mean_ratio};
use crate::evaluate::results::{PolicyRun, Results};
use crate::train::objective::Objective;

/// What is not worth a word, as a part of what the other has.
const NEGLIGIBLE: f64 = 5e-4;

/// `sjf is 1.7 % ahead`, where a ratio to it is above 1.
#[must_use]
pub fn ahead(rival: &str, ratio: f64) -> Option<String> {
    (ratio - 1.0 >= NEGLIGIBLE).then(|| format!("{rival} is {:.1} % ahead", 100.0 * (ratio - 1.0)))
}

/// That nothing was learned, or that another policy is ahead, and what to try. `is_start` where what is kept is what was begun
/// with.
#[must_use]
pub fn in_words(is_start: bool, ahead: Option<String>, to_try: &[String]) -> Option<String> {
    let said = match (is_start, ahead) {
        (false, None) => return None,
        (true, None) => "Nothing was learned; what is kept is what was begun with".to_string(),
        (true, Some(ahead)) => format!("Nothing was learned; {ahead}"),
        (false, Some(ahead)) => format!("Something was learned, and {ahead}"),
    };
    let to_try = match to_try {
        [] => String::new(),
        words => format!(" To try: {}.", words.join("; ")),
    };
    Some(format!("{said}.{to_try}"))
}

impl Trained {
    /// That the run ended because it learned from draws that were no longer what is deployed.
    fn ended_apart(&self, settings: &TrainSettings, rival: &str) -> Option<String> {
        let (_, most) = way(settings.train.learner).draws(&settings.train)?;
        let last = self.curve.last().filter(|last| last.is_apart(most))?;
        Some(format!(
            "Ended after {} of {} updates: draws have {:.3} and the likeliest candidates {:.3} of {rival}, more than {:.0} % apart \
             (train.ppo.apart_max). Lower train.ppo.temperature or its learning rates.",
            last.update,
            settings.train.num_updates,
            last.drawn.unwrap_or(f64::NAN),
            last.ratio,
            100.0 * most
        ))
    }

    /// Whether nothing was learned, or the best heuristic is ahead, on the validation workloads; none where the network is ahead, and
    /// where none was to learn beyond its clone.
    #[must_use]
    pub fn verdict(&self, settings: &TrainSettings, validation: &Validation) -> Option<String> {
        let best = self.best()?;
        let is_start = best.update == 0 && settings.train.num_updates > 0;
        let mut to_try = Vec::new();
        let heuristic = validation.best();
        if way(settings.train.learner).plays() == Plays::Steps {
            to_try.push("--learner counterfactual, which sees what another decision costs".to_string());
        } else if way(settings.train.learner).plays() == Plays::Lists {
            to_try.push("--learner evolution, which begins as the best heuristic".to_string());
        } else if settings.fine_tune.is_none() && !["best", heuristic].contains(&settings.prior.as_str()) {
            to_try.push(format!("to begin as it with --set prior={heuristic}"));
        }
        to_try.push("more updates (--extend)".to_string());
        to_try.push("a tree that is searched for (pleach distill --search)".to_string());
        to_try.push(format!(
            "or keep {heuristic}: where few jobs wait there is little to learn"
        ));
        let learned = in_words(is_start, ahead(heuristic, best.ratio), &to_try);
        let said: Vec<String> = self
            .ended_apart(settings, heuristic)
            .into_iter()
            .chain(learned)
            .collect();
        (!said.is_empty()).then(|| said.join(" "))
    }
}

/// The heuristic that is furthest ahead of a policy on the lists that all of them played, and by what ratio; none where the policy is
/// first.
#[must_use]
pub fn leader(results: &Results, own: &str, others: &[&str], objective: &Objective) -> Option<(String, f64)> {
    let of = |policy: &str| -> Vec<PolicyRun> {
        let runs = results.runs().iter().filter(|run| run.policy == policy);
        runs.cloned().collect()
    };
    let own = of(own);
    let rivals = others.iter().map(|name| (*name, of(name)));
    let rivals = rivals.filter(|(_, runs)| runs.len() == own.len());
    let ratios = rivals.map(|(name, runs)| (name.to_string(), mean_ratio(objective, &own, &runs)));
    let first = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (first.1 > 1.0).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_learned_is_said_in_these_words() {
        let to_try = ["this".to_string(), "that".to_string()];
        let said = |is_start, ratio| in_words(is_start, ahead("sjf", ratio), &to_try);
        assert_eq!(
            said(true, 1.017).unwrap(),
            "Nothing was learned; sjf is 1.7 % ahead. To try: this; that."
        );
        assert_eq!(
            said(false, 1.017).unwrap(),
            "Something was learned, and sjf is 1.7 % ahead. To try: this; that."
        );
        assert!(
            said(true, 1.0)
                .unwrap()
                .starts_with("Nothing was learned; what is kept is what")
        );
        assert_eq!(said(false, 0.98), None);
        assert_eq!(said(false, 1.0004), None);
    }
}
