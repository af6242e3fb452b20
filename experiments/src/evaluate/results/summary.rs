//! One policy over all pairs that every policy finished: means, and the ratio to the reference.

use std::collections::BTreeMap;

use pleach_env::bound::LowerBounds;
use serde::Serialize;

use super::run::{BOUND_KEYS, PolicyRun};
use crate::evaluate::gain::Gain;
use crate::evaluate::metric::{Better, Metric, Versus};
use crate::evaluate::stats::{Ratio, mean};

/// A policy's ratio to the reference, as it stands in the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatioVsReference {
    /// Name of the reference policy.
    pub policy: String,
    /// Key of the metric that is compared, `avg_jct_s` if nothing else was asked for.
    pub metric: &'static str,
    /// The ratio.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// By how much a policy is above the reference, as it stands in the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GainVsReference {
    /// Name of the reference policy.
    pub policy: String,
    /// Key of the metric that is compared.
    pub metric: &'static str,
    /// The difference, in the metric's unit; of metrics that are compared in per cent, ratio less 1, %.
    #[serde(flatten)]
    pub gain: Gain,
}

/// One policy over all common pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean of each metric over the common pairs; a metric that some run lacks is left out.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, f64>,
    /// Against the reference; none without one or where a value is not positive.
    pub ratio_vs_reference: Option<RatioVsReference>,
    /// The same by differences, of metrics that are compared by them; none for the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_vs_reference: Option<GainVsReference>,
}

/// Mean of the lower bounds of `runs`, if all have them.
pub(super) fn mean_bounds(runs: &[&PolicyRun]) -> Option<LowerBounds> {
    let column =
        |key: &str| -> Option<Vec<f64>> { runs.iter().map(|run| run.metrics.get(key).copied()).collect() };
    Some(LowerBounds {
        avg_jct_s: mean(&column(BOUND_KEYS[0])?),
        makespan_s: mean(&column(BOUND_KEYS[1])?),
    })
}

/// Means of `runs`, and their ratio to the reference's runs on the same pairs (both in the order of pairs).
pub(super) fn summarise(
    known: &'static [Metric],
    metric: &'static Metric,
    runs: &[&PolicyRun],
    reference: Option<&(&str, Vec<&PolicyRun>)>,
) -> Summary {
    let column = |runs: &[&PolicyRun], key: &str| -> Option<Vec<f64>> {
        runs.iter().map(|run| run.metrics.get(key).copied()).collect()
    };
    let metrics = known
        .iter()
        .filter_map(|metric| Some((metric.key.to_string(), mean(&column(runs, metric.key)?))))
        .collect();
    let gain_vs_reference = reference.filter(|_| metric.versus != Versus::Ratio);
    let gain_vs_reference = gain_vs_reference.and_then(|(name, others)| {
        let (ours, theirs) = (column(runs, metric.key)?, column(others, metric.key)?);
        let is_reference = runs
            .iter()
            .zip(others)
            .all(|(one, other)| std::ptr::eq(*one, *other));
        let gain = Gain::by(metric.versus, &ours, &theirs);
        // Nothing is so many per cent more than nothing.
        (!is_reference && gain.mean.is_finite()).then(|| GainVsReference {
            policy: (*name).to_string(),
            metric: metric.key,
            gain,
        })
    });
    let ratio_vs_reference = reference.filter(|_| metric.versus == Versus::Ratio);
    let ratio_vs_reference = ratio_vs_reference.and_then(|(name, others)| {
        let (ours, theirs) = (column(runs, metric.key)?, column(others, metric.key)?);
        let pairs: Vec<(f64, f64)> = ours.into_iter().zip(theirs).collect();
        let mut ratio = Ratio::of_pairs(&pairs)?;
        if metric.better == Better::Higher {
            let of_ratio = &pairs[..ratio.num_pairs];
            ratio.num_better = of_ratio.iter().filter(|(own, other)| own > other).count();
        }
        Some(RatioVsReference {
            policy: (*name).to_string(),
            metric: metric.key,
            ratio,
        })
    });
    Summary {
        metrics,
        ratio_vs_reference,
        gain_vs_reference,
    }
}
