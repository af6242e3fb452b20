//! What a network was trained to see and to choose among. A policy is only right about observations of that kind, so
//! this travels in every file of a network.

use pleach_scheduler::WideGangs;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::policy::CandidateConfig;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::unfit;
use crate::prior::Prior;

/// Observations and candidates of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Sizes of an observation.
    pub spaces: Spaces,
    /// Name of the schema whose rows it scores: `decision`, the candidates of a pass, unless another is said.
    #[serde(default = "decision", skip_serializing_if = "is_decision")]
    pub rows: String,
    /// Hash of the view that observations show: the columns that it reads.
    pub schema_hash: String,
    /// Candidates that the policy chooses among.
    pub candidates: CandidateConfig,
    /// What the environment was, in the caller's words: its id, estimates, load.
    pub trained_on: String,
    /// The heuristic that the network corrects, if it does not decide alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
    /// The network was judged on clusters of one GPU type only: where there are several, the heuristic that it corrects decides
    /// alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_type: bool,
    /// What decides while the queue is short, if not the network. Chosen by simulation (`pleach calibrate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Standby>,
    /// What decides where gangs are wide, if not the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wide_gangs: Option<WideGangs>,
    /// Whether it makes unopposed starts: where it would hold, or start a job slower than it could, and no other job wants the
    /// GPUs ([`ChoiceRule::unopposed_starts`](pleach_scheduler::policy::ChoiceRule::unopposed_starts)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unopposed_starts: bool,
}

fn decision() -> String {
    FeatureSchema::current().name.into()
}

fn is_decision(rows: &String) -> bool {
    rows == FeatureSchema::current().name
}

/// A heuristic that decides while the queue is short: a network learns what to do where jobs wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standby {
    /// The heuristic's name.
    pub policy: String,
    /// It decides while waiting jobs ask for fewer GPUs than so many times all; above 0, at most 100.
    pub pending_gpus_ratio: f64,
}

impl Contract {
    /// Observations of the view that is as wide as these spaces; of the first one for other widths, as toys have.
    #[must_use]
    pub fn current(spaces: Spaces, candidates: CandidateConfig, trained_on: impl Into<String>) -> Contract {
        Contract::over(FeatureSchema::current(), spaces, candidates, trained_on)
    }

    /// The same of rows of any schema.
    #[must_use]
    pub fn over(
        schema: &FeatureSchema,
        spaces: Spaces,
        candidates: CandidateConfig,
        trained_on: impl Into<String>,
    ) -> Contract {
        let is_shown = |view: &&View| Spaces::of(view, spaces.num_candidates) == spaces;
        let view = schema.views.iter().find(is_shown).unwrap_or(&schema.views[0]);
        Contract {
            spaces,
            rows: schema.name.into(),
            schema_hash: schema.hash_of(view).to_owned(),
            candidates,
            trained_on: trained_on.into(),
            prior: None,
            one_type: false,
            standby: None,
            wide_gangs: None,
            unopposed_starts: false,
        }
    }

    /// Refuses rows of another schema, and a view that it does not have. Columns beyond it do not matter.
    ///
    /// # Errors
    /// An [`Error`] with the name or the hash of the file and those that there are.
    pub fn check_view(&self, schema: &FeatureSchema) -> Result<(), Error> {
        if self.rows != schema.name {
            return Err(unfit("rows", schema.name, &self.rows));
        }
        if schema.view_of_hash(&self.schema_hash).is_some() {
            return Ok(());
        }
        let views = schema.views.iter();
        let known: Vec<String> = views
            .map(|view| format!("{} ({})", schema.hash_of(view), view.name))
            .collect();
        Err(unfit("feature schema", known.join(" or "), &self.schema_hash))
    }

    /// Refuses another view than this one.
    ///
    /// # Errors
    /// An [`Error`] with both hashes.
    pub fn check_schema(&self, schema_hash: &str) -> Result<(), Error> {
        if self.schema_hash != schema_hash {
            return Err(unfit("feature schema", schema_hash, &self.schema_hash));
        }
        Ok(())
    }
}

#[cfg(debug_assertions)]
#[cfg(test)]
mod tests {
    use pleach_scheduler::{PolicyError, Rows, Scorer as _};

    use super::*;
    use crate::LearnedPolicy;
    use crate::fixtures::trained;

    /// Builds of tests have a view of two more columns: what is trained on it says so, and reads it.
    #[test]
    fn a_network_is_of_the_view_that_its_environment_showed() {
        let schema = FeatureSchema::current();
        for view in schema.views {
            let spaces = Spaces::of(view, 3);
            let contract = Contract::current(spaces, CandidateConfig::default(), "a test");
            assert_eq!(contract.schema_hash, schema.hash_of(view), "{}", view.name);
            let mut network = trained(spaces, schema.hash());
            network.contract.schema_hash = contract.schema_hash;
            let mut policy = LearnedPolicy::from_network(&network).unwrap();
            let mut score = |width: usize| {
                let (rows, mut scores) = (vec![0.5; 2 * width], [0.0; 2]);
                let rows = Rows {
                    schema,
                    rows: &rows,
                    width,
                    context: &vec![0.5; view.num_context],
                    mask: &[true; 2],
                };
                policy.score_rows(rows, &mut scores)
            };
            score(view.num_row).unwrap();
            score(view.num_row + 1).unwrap();
            let narrower = score(view.num_row - 1).unwrap_err();
            assert!(matches!(narrower, PolicyError::Shape { .. }), "{narrower}");
        }
        assert!(schema.views.len() > 1, "only one view was looked at");
    }
}
