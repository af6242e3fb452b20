//! Why a job was passed over, the same for a simulated list and for a batch system: where its best candidate stood against what was
//! chosen, and the nearest changes with which it would have come first.

use std::fmt;

use serde::Serialize;

use super::{Contrast, Counterfactual, TreePolicy};
use crate::error::PolicyError;
use crate::features::Control;
use crate::ids::JobId;
use crate::policy::DecisionPoint;

/// Why a job was not chosen at a decision. What a policy cannot say is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassedOver {
    /// What the job's best candidate would have done; none where it had no candidate.
    pub own: Option<String>,
    /// The conditions on that candidate's path, with its values.
    pub conditions: Vec<String>,
    /// Why it had no candidate.
    pub absent: Option<String>,
    /// How what was chosen stands to it.
    pub contrast: Option<Contrast>,
    /// The nearest change with which it would have been chosen, then the nearest by time alone and by what its user chooses
    /// alone, where these are others.
    pub alternatives: Vec<Alternative>,
    /// The score of that candidate and of what was chosen, of policies without conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<(f32, f32)>,
}

/// What would have had to differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// Whose features alone were changed; anyone's where there is none.
    pub only: Option<Control>,
    /// The changes.
    pub counterfactual: Counterfactual,
}

impl PassedOver {
    /// A job without a candidate.
    #[must_use]
    pub fn absent(why: String) -> PassedOver {
        PassedOver {
            absent: Some(why),
            ..PassedOver::default()
        }
    }

    /// A job of which a policy without conditions says no more than a score.
    #[must_use]
    pub fn scored(own: String, score: f32, of_choice: f32) -> PassedOver {
        PassedOver {
            own: Some(own),
            scores: Some((score, of_choice)),
            ..PassedOver::default()
        }
    }
}

impl TreePolicy {
    /// Why candidate `choice` came before candidate `best`, the best of a job, which would have done what `own` says.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    ///
    /// # Panics
    /// If one of the candidates is not there.
    pub fn passed_over(
        &self,
        point: &DecisionPoint<'_>,
        (choice, best): (usize, usize),
        own: String,
    ) -> Result<PassedOver, PolicyError> {
        let job = point.candidates.get(best).and_then(|candidate| candidate.job);
        Ok(PassedOver {
            own: Some(own),
            conditions: self.explain(point, best)?.conditions(),
            contrast: Some(self.contrast(point, (choice, best))?),
            alternatives: match job {
                Some(job) => self.nearest(point, choice, job)?,
                None => Vec::new(),
            },
            ..PassedOver::default()
        })
    }

    /// The nearest counterfactual over all candidates of a job; by time alone and by its user alone where these are others.
    fn nearest(
        &self,
        point: &DecisionPoint<'_>,
        choice: usize,
        job: JobId,
    ) -> Result<Vec<Alternative>, PolicyError> {
        let mut alternatives: Vec<Alternative> = Vec::new();
        for only in [None, Some(Control::Time), Some(Control::User)] {
            let allowed = |control: Control| only.is_none_or(|only| only == control);
            let mut best: Option<Counterfactual> = None;
            for (index, row) in point.candidates.iter().enumerate() {
                if row.job != Some(job) {
                    continue;
                }
                let found = self.counterfactual(point, (index, choice), &allowed)?;
                let size = |found: &Counterfactual| (found.changes.len(), found.distance);
                let Some(found) = found else { continue };
                if best.as_ref().is_none_or(|best| size(&found) < size(best)) {
                    best = Some(found);
                }
            }
            let is_known =
                |found: &Counterfactual| alternatives.iter().any(|known| known.counterfactual == *found);
            if let Some(counterfactual) = best.filter(|found| !is_known(found)) {
                alternatives.push(Alternative { only, counterfactual });
            }
        }
        Ok(alternatives)
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(absent) = &self.absent {
            return writeln!(out, "It was not among the candidates: {absent}.");
        }
        if let Some(own) = &self.own {
            write!(out, "Its best candidate: {own}")?;
            match self.conditions.is_empty() {
                true => writeln!(out, ".")?,
                false => writeln!(out, "; {}.", self.conditions.join(", "))?,
            }
        }
        if let Some((own, of_choice)) = self.scores {
            writeln!(out, "It scores {own}, what was chosen {of_choice}.")?;
        }
        let Some(contrast) = &self.contrast else {
            return Ok(());
        };
        writeln!(out, "What was chosen against it: {contrast}.")?;
        match self.alternatives.is_empty() {
            true if contrast.aside.is_some() => {
                writeln!(out, "What would have brought it first is known for trees alone.")?;
            }
            true => writeln!(out, "No change of this job alone would have brought it first.")?,
            false => {}
        }
        for found in &self.alternatives {
            let who = match found.only {
                None => "It",
                Some(Control::Time) => "By waiting alone it",
                Some(_) => "By what its user chooses alone it",
            };
            writeln!(out, "{who} would have come first with {}.", found.counterfactual)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_tree;
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::pass::Pass;
    use crate::policy::Policy;

    #[test]
    fn a_job_is_passed_over_for_its_conditions_and_comes_first_with_the_nearest_change() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let long = submit(&mut cluster, 2, 3000.0);
        submit(&mut cluster, 2, 600.0);
        let mut policy = TreePolicy::new(small_tree());
        let mut pass = Pass::new();
        pass.open(&cluster, &policy.needs());
        let choice = pass.decide(&cluster, &mut policy).unwrap();
        let point = DecisionPoint {
            cluster: &cluster,
            candidates: pass.candidates(),
            observation: pass.observation().as_ref(),
        };
        let best = point.candidates.iter().position(|row| row.job == Some(long));
        let why = policy
            .passed_over(&point, (choice, best.unwrap()), "job 17 starts".into())
            .unwrap();
        let text = why.to_string();
        assert!(
            text.starts_with(
                "Its best candidate: job 17 starts; gpu_time_gpu_s > 3,600 GPU s (it is 6,000 GPU s).\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("\nWhat was chosen against it: ")
                && text.contains("\nIt would have come first with "),
            "{text}"
        );
        let keys = |why: &PassedOver| -> Vec<String> {
            let json = serde_json::to_value(why).unwrap();
            json.as_object().unwrap().keys().cloned().collect()
        };
        let of_trees = ["absent", "alternatives", "conditions", "contrast", "own"];
        let mut found = keys(&why);
        found.sort();
        assert_eq!(found, of_trees);
        // A policy without conditions gives scores; a job without a candidate gives a reason.
        let scored = PassedOver::scored("job 17 starts".into(), -6.5, -2.0);
        assert_eq!(
            scored.to_string(),
            "Its best candidate: job 17 starts.\nIt scores -6.5, what was chosen -2.\n"
        );
        assert_eq!(keys(&scored).len(), of_trees.len() + 1);
        let absent = PassedOver::absent("it asks for 8 GPUs".into());
        assert_eq!(
            absent.to_string(),
            "It was not among the candidates: it asks for 8 GPUs.\n"
        );
    }
}
