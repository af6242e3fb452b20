//! A formula as a list of numbers that evolution moves, and back.

use pleach_dealing::{DealingRules, Formula, deal_schema};
use pleach_scheduler::portable_math::{exp, ln};

/// Numbers of the rules behind the weights: ln deal_min_s, ln deal_max_s, pack_above, ln reseat_loss, ln stint.
const NUM_RULES: usize = 5;

/// A shorter stint hardly is one, restarts. A search that begins without stints begins here.
const STINT_MIN: f64 = 0.1;

/// What of the numbers may move.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// The rules that do not move: whether to stop, seat anew and share.
    rules: DealingRules,
    /// Columns that weigh nothing whatever is found.
    without: Vec<String>,
}

impl Encoding {
    /// With these switches; columns in `without` weigh nothing.
    #[must_use]
    pub fn new(rules: DealingRules, without: &[String]) -> Encoding {
        Encoding {
            rules,
            without: without.to_vec(),
        }
    }

    /// The numbers of a formula.
    #[must_use]
    pub fn numbers(&self, formula: &Formula) -> Vec<f64> {
        let weights = deal_schema().of_rows();
        let weights = weights.map(|feature| formula.weights.get(feature.name).copied().unwrap_or(0.0));
        let rules = &formula.rules;
        let rules = [
            ln(rules.deal_min_s.max(1.0)),
            ln(rules.deal_max_s),
            rules.pack_above,
            ln(rules.reseat_loss.max(1e-3)),
            ln(rules.stint.max(STINT_MIN)),
        ];
        weights.chain(rules).collect()
    }

    /// How far each number moves at first.
    #[must_use]
    pub fn steps(&self) -> Vec<f64> {
        let of_feature = |name: &str| match name {
            // Products of two logarithms are larger.
            "service_load" | "speed_service" | "size_load" | "size_service" | "belief_load" => 0.06,
            "stays" | "moves" | "speed" | "beside" | "grows" | "rest_trust" | "service_trust" | "belief" => {
                0.4
            }
            _ => 0.15,
        };
        let weights = deal_schema().of_rows().map(|feature| of_feature(feature.name));
        weights.chain([0.4, 0.4, 0.05, 0.5, 0.7]).collect()
    }

    /// The formula of some numbers, whatever they are.
    #[must_use]
    pub fn formula(&self, numbers: &[f64]) -> Formula {
        let (weights, rules) = numbers.split_at(deal_schema().features.len());
        debug_assert_eq!(rules.len(), NUM_RULES);
        let named = deal_schema().of_rows().zip(weights);
        let named = named.filter(|(feature, _)| self.without.iter().all(|name| name != feature.name));
        let round = |value: f64| (value * 1e4).round() / 1e4;
        let rules = DealingRules {
            deal_min_s: round(exp(rules[0]).clamp(1.0, 3600.0)),
            deal_max_s: round(exp(rules[1]).clamp(60.0, 86_400.0)),
            pack_above: round(rules[2].clamp(1.0, 1.6)),
            reseat_loss: round(exp(rules[3]).clamp(1e-3, 1e3)),
            stint: round(exp(rules[4]).clamp(STINT_MIN, 100.0)),
            ..self.rules
        };
        let weights = named.map(|(feature, weight)| (feature.name.into(), round(weight.clamp(-20.0, 20.0))));
        Formula::of(rules, weights.collect(), "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_comes_back_from_its_numbers() {
        let formula = pleach_dealing::reference_formula().unwrap();
        let encoding = Encoding::new(formula.rules, &[]);
        let back = encoding.formula(&encoding.numbers(&formula));
        for (name, weight) in &formula.weights {
            assert!((back.weights[name] - weight).abs() < 1e-4, "{name}");
        }
        assert!((back.rules.deal_max_s - formula.rules.deal_max_s).abs() < 1e-3);
        assert!((back.rules.stint - formula.rules.stint).abs() < 1e-3);
        assert_eq!(encoding.steps().len(), encoding.numbers(&formula).len());
        let without = Encoding::new(formula.rules, &["service".to_string()]);
        assert!(
            !without
                .formula(&encoding.numbers(&formula))
                .weights
                .contains_key("service")
        );
    }
}
