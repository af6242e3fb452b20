//! Why a candidate got its score, in words: the whole path, in its order, in raw units.
//!
//! # Source
//! Show the path only and in path order: what users of tree viewers ask for most often.

use std::fmt;

use super::reach::tier_of;
use super::text::{condition, count, quantity};
use super::{Node, Tree, TreePolicy};
use crate::actions::Words;
use crate::candidate::CandidateSet;
use crate::error::PolicyError;
use crate::features::{Feature, FeatureSchema};
use crate::key_weight::weighted_sum_of_row;
use crate::policy::{DecisionPoint, TieKey};

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// Name of the feature.
    pub feature: &'static str,
    /// The condition that the candidate met, with the threshold in its unit.
    pub condition: String,
    /// The candidate's own value, in its unit.
    pub value: String,
    /// What the feature says.
    pub doc: &'static str,
}

impl Condition {
    /// The side of a split that a scaled value takes.
    pub(crate) fn met(found: &'static Feature, threshold: f32, scaled: f32) -> Condition {
        Condition {
            feature: found.name,
            condition: condition(found, threshold, scaled <= threshold),
            value: quantity(found.scale.invert(scaled), found.unit),
            doc: found.doc,
        }
    }
}

/// Why a candidate got its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What the candidate does.
    pub action: String,
    /// What decides here in place of the tree, and why; none where the tree decides. Where the tree does not decide, its leaf and
    /// tiers decide nothing: the path and the key are empty and no candidate is counted.
    pub aside: Option<String>,
    /// Id of the leaf.
    pub leaf: u32,
    /// The leaf's score.
    pub score: f32,
    /// 1 is the best tier.
    pub tier: usize,
    /// Number of tiers.
    pub num_tiers: usize,
    /// The path, from the root.
    pub path: Vec<Condition>,
    /// Admissible candidates in better tiers; 0 for the one that is chosen.
    pub num_better: usize,
    /// Other admissible candidates of the same tier.
    pub num_equal: usize,
    /// What its weighted key is made of; empty where the tree has none, and for what is about no job.
    pub key: Vec<KeyTerm>,
    /// The least weighted key among the other admissible candidates of its tier; none without such.
    pub key_of_next: Option<f64>,
    /// What decides inside the tier, among equal keys.
    pub tie_key: TieKey,
    /// What a guard has to say of it; none where none has.
    pub guard: Option<String>,
}

impl Explanation {
    /// The conditions on the path with the candidate's values, but for its kind.
    #[must_use]
    pub fn conditions(&self) -> Vec<String> {
        let schema = FeatureSchema::current();
        let is_kind = |name: &str| {
            let column = schema.joined_index(name).and_then(|number| schema.joined(number));
            column.is_some_and(Feature::is_kind)
        };
        let path = self.path.iter().filter(|step| !is_kind(step.feature));
        path.map(|step| format!("{} (it is {})", step.condition, step.value))
            .collect()
    }

    /// The same text without the action, whose rows of tables mean nothing outside.
    #[must_use]
    pub fn reason(&self) -> String {
        let text = self.to_string();
        let reason = text.strip_prefix(&self.action).unwrap_or(&text);
        reason.trim_start_matches(": ").trim_end().to_owned()
    }
}

/// One feature of a weighted key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyTerm {
    /// Name of the feature.
    pub feature: &'static str,
    /// The candidate's own value, in its unit.
    pub value: String,
    /// What it adds to the key; the least sum comes first.
    pub adds: f64,
}

impl TreePolicy {
    /// Explains the score of one candidate.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    ///
    /// # Panics
    /// If there is no candidate `choice`.
    pub fn explain(&self, point: &DecisionPoint<'_>, choice: usize) -> Result<Explanation, PolicyError> {
        let num_candidates = point.candidates.len();
        assert!(choice < num_candidates, "candidate {choice} of {num_candidates}");
        self.check_shape(&point.observation, num_candidates)?;
        let mut leaves = vec![0; num_candidates];
        self.leaves(&point.observation, &mut leaves)?;
        let scores: Vec<f32> = leaves
            .iter()
            .map(|leaf| self.flat().score_of(*leaf as usize))
            .collect();
        let row = self.joined_row(point, choice);
        let (leaf, path) = self.tree().path(&row);
        let tiers = self.tree().tiers();
        let bare = Explanation {
            action: action(point.candidates, choice),
            aside: self.tree().aside(point.cluster, "the tree"),
            leaf,
            score: scores[choice],
            tier: tier_of(scores[choice], &tiers),
            num_tiers: tiers.len(),
            path: Vec::new(),
            num_better: 0,
            num_equal: 0,
            key: Vec::new(),
            key_of_next: None,
            tie_key: self.tree().meta().tie_key,
            guard: self.guard_in_words(point, choice),
        };
        if bare.aside.is_some() {
            return Ok(bare);
        }
        let weights = &self.tree().meta().key_weights;
        let is_about_a_job = |index: usize| point.candidates.get(index).is_some_and(|own| own.job.is_some());
        let key = weights.iter().filter(|_| is_about_a_job(choice)).map(|term| {
            let (found, scaled) = (self.tree().feature(term.feature), row[usize::from(term.feature)]);
            KeyTerm {
                feature: found.name,
                value: quantity(found.scale.invert(scaled), found.unit),
                adds: f64::from(term.weight) * f64::from(scaled),
            }
        });
        let allowed = self.tree().guards().allowed(point.cluster, point.candidates);
        let admissible =
            |index: &usize| *index != choice && point.observation.mask[*index] && allowed >> *index & 1 == 1;
        Ok(Explanation {
            path,
            num_better: (0..num_candidates)
                .filter(admissible)
                .filter(|index| scores[*index] > scores[choice])
                .count(),
            num_equal: (0..num_candidates)
                .filter(admissible)
                .filter(|index| scores[*index] == scores[choice])
                .count(),
            key: key.collect(),
            key_of_next: (0..num_candidates)
                .filter(admissible)
                .filter(|index| {
                    !weights.is_empty() && is_about_a_job(*index) && scores[*index] == scores[choice]
                })
                .map(|index| weighted_sum_of_row(weights, point.observation.row(index)))
                .min_by(f64::total_cmp),
            ..bare
        })
    }
}

impl Tree {
    /// Id of the leaf where a joined row ends, and the conditions that it met on the way.
    ///
    /// # Panics
    /// If the row is shorter than the joined row of the schema.
    #[must_use]
    pub fn path(&self, row: &[f32]) -> (u32, Vec<Condition>) {
        let mut path = Vec::new();
        let mut place = 0;
        loop {
            match self.nodes()[place] {
                Node::Leaf { id, .. } => return (id, path),
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let scaled = row[usize::from(feature)];
                    place = if scaled <= threshold {
                        left as usize
                    } else {
                        right as usize
                    };
                    path.push(Condition::met(self.feature(feature), threshold, scaled));
                }
            }
        }
    }
}

impl TreePolicy {
    /// Why a guard had a candidate chosen or does not allow it; none where no guard has anything to say.
    pub(super) fn guard_in_words(&self, point: &DecisionPoint<'_>, choice: usize) -> Option<String> {
        let (guards, cluster, set) = (self.tree().guards(), point.cluster, point.candidates);
        let allowed = guards.allowed(cluster, set);
        let is_allowed = allowed >> choice & 1 == 1;
        if let Some(job) = guards.first_overdue(cluster, set, allowed) {
            let waited_s = cluster.job(job).age_s_at(cluster.now());
            let (waited, bound) = (quantity(waited_s, "s"), quantity(guards.overdue_after_s?, "s"));
            let is_it = set.get(choice).is_some_and(|row| row.job == Some(job));
            return Some(match (is_it, is_allowed) {
                (true, true) => format!("first by the guard: it has waited {waited}, more than {bound}"),
                (true, false) => {
                    format!("not allowed by the guard: who has waited {waited} starts where it fits")
                }
                (false, _) => {
                    format!(
                        "not allowed by the guard: another job has waited {waited}, more than {bound}, and comes first"
                    )
                }
            });
        }
        if let Some(tenant) = guards.first_below_floor(cluster, set, allowed) {
            let row = set.get(choice)?;
            let held = 100.0 * cluster.tenants()[tenant.index()].use_ratio();
            let below = format!(
                "holds {held:.0} % of its quota, less than {:.0} %",
                100.0 * guards.tenant_floor?
            );
            let is_its = row
                .waiting_job()
                .is_some_and(|job| cluster.job(job).request.tenant == tenant);
            return Some(match (is_its, is_allowed) {
                (true, true) => format!("first by the guard: its tenant {below}"),
                (true, false) => "not allowed by the guard: its tenant's jobs start where they fit".into(),
                (false, _) => format!("not allowed by the guard: another tenant {below}, and comes first"),
            });
        }
        let max = guards.preemptions_max.filter(|_| !is_allowed)?;
        let times = count(max.into(), "time", "times");
        Some(format!(
            "not allowed by the guard: it would stop a job that was stopped {times} already"
        ))
    }
}

/// What a candidate does, in words.
pub(crate) fn action(set: &CandidateSet, index: usize) -> String {
    let Some(row) = set.get(index) else {
        return "nothing".into();
    };
    let place = row.facts.map_or(String::new(), |facts| {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let (gpus, nodes) = (facts.num_gpus, facts.num_nodes);
        format!(" on {gpus} GPU{} of {nodes} node{}", plural(gpus), plural(nodes))
    });
    let victims: Vec<String> = set.victims(row).iter().map(|job| job.0.to_string()).collect();
    row.kind.order(&Words {
        job: row.job.map_or(String::new(), |job| job.0.to_string()),
        place,
        victims: victims.join(", "),
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation {
            action,
            leaf,
            score,
            tier,
            num_tiers,
            ..
        } = self;
        match &self.aside {
            Some(aside) => writeln!(out, "{action}: {aside}")?,
            None => writeln!(
                out,
                "{action}: tier {tier} of {num_tiers} (leaf {leaf}, score {score})"
            )?,
        }
        if let Some(guard) = &self.guard {
            writeln!(out, "  {guard}")?;
        }
        for step in &self.path {
            let Condition {
                feature,
                condition,
                value,
                doc,
            } = step;
            writeln!(out, "  {condition} ({feature} is {value}): {doc}")?;
        }
        if self.num_better > 0 {
            writeln!(out, "  not chosen: {} in better tiers", self.num_better)?;
        }
        if self.num_equal > 0 {
            let key = match self.tie_key {
                TieKey::Index => "the order of the candidates",
                TieKey::Arrival => "arrival",
                TieKey::ShortestEstimate => "the shortest believed rest",
                TieKey::SmallestGpuTime => "the smallest believed GPU time",
            };
            if self.key.is_empty() {
                writeln!(
                    out,
                    "  {} more in this tier; {key} decides among them",
                    self.num_equal
                )?;
            } else {
                writeln!(
                    out,
                    "  {} more in this tier; the least weighted key decides among them, then {key}",
                    self.num_equal
                )?;
            }
        }
        if !self.key.is_empty() {
            let sum: f64 = self.key.iter().map(|term| term.adds).sum();
            let terms = self.key.iter();
            let terms: Vec<String> = terms
                .map(|term| format!("{:+.4} for {} = {}", term.adds, term.feature, term.value))
                .collect();
            write!(out, "  its key is {sum:.4}: {}", terms.join(", "))?;
            if let Some(next) = self.key_of_next {
                write!(out, "; the least of the others is {next:.4}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{keyed_tree, small_tree};
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::pass::Pass;
    use crate::policy::Policy;

    #[test]
    fn a_decision_is_explained_by_its_path_in_raw_units() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        submit(&mut cluster, 2, 3000.0);
        submit(&mut cluster, 2, 600.0);
        submit(&mut cluster, 1, 900.0);
        let mut policy = TreePolicy::new(small_tree());
        let mut pass = Pass::new();
        pass.open(&cluster, &policy.needs());
        let choice = pass.decide(&cluster, &mut policy).unwrap();
        let point = DecisionPoint {
            cluster: &cluster,
            candidates: pass.candidates(),
            observation: pass.observation().as_ref(),
        };
        let text = policy.explain(&point, choice).unwrap().to_string();
        assert_eq!(
            text,
            "start job 1 on 2 GPUs of 1 node: tier 1 of 3 (leaf 1, score 1)\n  \
             is_hold = 0 (is_hold is 0): 1 if the candidate ends the pass.\n  \
             gpu_time_gpu_s <= 3,600 GPU s (gpu_time_gpu_s is 1,200 GPU s): Believed rest times the size of the \
             gang.\n  1 more in this tier; the shortest believed rest decides among them\n"
        );
        let hold = policy.explain(&point, 0).unwrap();
        assert_eq!((hold.tier, hold.num_better, hold.leaf), (3, 3, 0));
        assert!(hold.to_string().starts_with("hold: tier 3 of 3"));
        // With a key: what it is made of, and what the next has. Job 2 leaves 3 GPUs free and comes before job 1, which leaves 2.
        let mut policy = TreePolicy::new(keyed_tree());
        let choice = pass.decide(&cluster, &mut policy).unwrap();
        let point = DecisionPoint {
            cluster: &cluster,
            candidates: pass.candidates(),
            observation: pass.observation().as_ref(),
        };
        let text = policy.explain(&point, choice).unwrap().to_string();
        assert!(
            text.starts_with("start job 2 on 1 GPU of 1 node: tier 1 of 3"),
            "{text}"
        );
        assert!(
            text.contains("the least weighted key decides among them, then the shortest believed rest\n"),
            "{text}"
        );
        // 0.009 log10(2) / 2 + 0.22 * 1 - 0.73 * 3 / 8 and 0.009 log10(3) / 2 + 0.22 - 0.73 * 2 / 8.
        assert!(
            text.contains(
                "  its key is -0.0524: +0.0014 for num_gpus = 1, +0.2200 for speed_ratio = 1, -0.2738 for num_left = 3; \
                 the least of the others is 0.0396\n"
            ),
            "{text}"
        );
    }
}
