//! The weighted key of a tree as a sentence.

use super::Tree;
use crate::features::{FeatureSchema, Scale};
use crate::key_weight::KeyWeight;

impl Tree {
    /// What comes first inside a tier, as a sentence; none where the tie key alone decides.
    #[must_use]
    pub(super) fn key_line(&self) -> Option<String> {
        let weights = &self.meta().key_weights;
        let tie_key = serde_json::to_value(self.meta().tie_key).unwrap_or_default();
        let tie_key = tie_key.as_str().unwrap_or("index");
        (!weights.is_empty()).then(|| {
            let words = words_of(self.schema(), weights);
            format!(
                "Inside a tier first comes what has {words}, weighed together; among equals by {tie_key}."
            )
        })
    }
}

/// What comes first under a key: `more num_left (0.0913 for each 1) and less num_gpus (0.0045 for each tenfold)`. Where a feature
/// grows by a factor of ten (of 1 more than its raw value: its scale is a logarithm) or by 1, the sum changes by the number.
#[must_use]
pub fn key_in_words(weights: &[KeyWeight]) -> String {
    words_of(FeatureSchema::current(), weights)
}

fn words_of(schema: &FeatureSchema, weights: &[KeyWeight]) -> String {
    let terms: Vec<String> = weights.iter().map(|term| term_in_words(schema, term)).collect();
    match terms.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => terms.concat(),
    }
}

fn term_in_words(schema: &FeatureSchema, term: &KeyWeight) -> String {
    let feature = &schema.features[usize::from(term.feature)];
    let which = if term.weight > 0.0 { "less" } else { "more" };
    let (divisor, step) = match feature.scale {
        Scale::Linear(divisor) => (divisor, "1"),
        Scale::Log(divisor) => (divisor, "tenfold"),
    };
    let by = f64::from(term.weight).abs() / f64::from(divisor);
    let by: f64 = format!("{by:.2e}").parse().unwrap_or(by);
    format!("{which} {} ({by} for each {step})", feature.name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{keyed_tree, small_tree, weight};
    use super::*;

    #[test]
    fn a_key_reads_as_a_sentence() {
        assert_eq!(small_tree().key_line(), None);
        assert_eq!(
            keyed_tree().key_line().unwrap(),
            "Inside a tier first comes what has less num_gpus (0.0045 for each tenfold), less speed_ratio (0.22 for each 1) and \
             more num_left (0.0913 for each 1), weighed together; among equals by shortest-estimate."
        );
        assert_eq!(
            key_in_words(&[weight("wait_s", -3.0)]),
            "more wait_s (0.5 for each tenfold)"
        );
    }
}
