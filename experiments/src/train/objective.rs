//! What evolution strategies optimise: figures of whole episodes, as they are reported, of policies as they are deployed.

use std::collections::BTreeMap;

use pleach_env::Metrics;
use pleach_scheduler::portable_math::{exp, ln};

use crate::error::Error;
use crate::evaluate::metric::{Better, MAIN_METRIC, Metric};

/// Added to a metric before its logarithm, in its own unit, so that a wait of zero has one. *Assumed*.
pub(crate) const FLOOR: f64 = 1e-3;

/// Weights of metrics, by key. A policy's loss on a workload is the weighted sum of the logarithms of its metrics, so weights
/// compare percents: 1 and 0.1 trade ten percent of one for one percent of the other. Metrics of which more is better count
/// with the other sign.
pub type Objective = BTreeMap<String, f64>;

/// The average JCT alone.
#[must_use]
pub fn avg_jct() -> Objective {
    BTreeMap::from([(MAIN_METRIC.to_string(), 1.0)])
}

/// Keys of the metrics of which more or less is better.
#[must_use]
pub fn known_metrics() -> Vec<&'static str> {
    Metrics::default()
        .fields()
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| Metric::find(key).is_some_and(|metric| metric.better != Better::Neither))
        .collect()
}

/// Refuses an objective without a metric, with an unknown one, or with weights that are not above 0.
///
/// # Errors
/// The key with what is allowed.
pub fn check(objective: &Objective) -> Result<(), Error> {
    check_as(
        objective,
        "For example: objective = { avg_jct_s = 1.0, p99_jct_s = 0.2 }.",
    )
}

fn check_as(objective: &Objective, hint: &str) -> Result<(), Error> {
    let known = known_metrics();
    Error::refuse_if(objective.is_empty(), "objective", "{}", known.join(", "), hint)?;
    for (key, weight) in objective {
        Error::refuse_if(
            !known.contains(&key.as_str()),
            "objective",
            key,
            known.join(", "),
            hint,
        )?;
        Error::refuse_if(
            !(weight.is_finite() && *weight > 0.0),
            format_args!("objective.{key}"),
            weight,
            "a weight above 0",
            hint,
        )?;
    }
    Ok(())
}

/// Reads an objective from a flag's `METRIC=WEIGHT`, one text for each metric.
///
/// # Errors
/// Another form, a metric twice, and as [`check`].
pub fn parse(terms: &[String]) -> Result<Objective, Error> {
    const HINT: &str = "For example: --objective avg_jct_s=1,p99_jct_s=0.2";
    let mut objective = Objective::new();
    for term in terms {
        let (key, weight) = term.split_once('=').unwrap_or((term, ""));
        let Ok(weight) = weight.trim().parse() else {
            return Err(Error::config(
                "objective",
                term,
                "METRIC=WEIGHT with a weight above 0",
                HINT,
            ));
        };
        Error::refuse_if(
            objective.insert(key.trim().to_string(), weight).is_some(),
            "objective",
            term,
            "each metric once",
            HINT,
        )?;
    }
    check_as(&objective, HINT)?;
    Ok(objective)
}

/// An objective as the flag that [`parse`] reads: `avg_jct_s=1,p99_jct_s=0.2`.
#[must_use]
pub fn as_flag(objective: &Objective) -> String {
    let term = |(key, weight): (&String, &f64)| format!("{key}={weight}");
    objective.iter().map(term).collect::<Vec<_>>().join(",")
}

/// The loss of one run, whose metrics `of` gives by key; less is better.
#[must_use]
pub fn loss(objective: &Objective, of: impl Fn(&str) -> f64) -> f64 {
    let term = |(key, weight): (&String, &f64)| {
        let better = Metric::find(key)?.better;
        let sign = if better == Better::Higher { -1.0 } else { 1.0 };
        Some(sign * weight * ln(of(key) + FLOOR))
    };
    objective.iter().filter_map(term).sum()
}

/// Largest absolute logarithm of a metric with its floor. Times are whole microseconds in 63 bits and counts are below 2^64, so a
/// metric is below 2^64 = e^44.4, and [`FLOOR`] is e^-6.9.
pub(crate) const LN_MAX: f64 = 45.0;

/// Largest absolute loss that a run can have.
#[must_use]
pub fn loss_max(objective: &Objective) -> f64 {
    LN_MAX * objective.values().sum::<f64>()
}

/// What one run costs over another on the same workload: the ratio of `exp(loss)`; of the average JCT alone that of the JCTs, as
/// tables show it. Both functions give a metric by its key.
#[must_use]
pub fn ratio(objective: &Objective, own: impl Fn(&str) -> f64, base: impl Fn(&str) -> f64) -> f64 {
    match *objective == avg_jct() {
        true => own(MAIN_METRIC) / base(MAIN_METRIC),
        // The difference, for each alone may be too large for a number.
        false => exp(loss(objective, own) - loss(objective, base)),
    }
}

/// An objective in words: `average JCT`, or `avg_jct_s x p99_jct_s^0.2`, with a minus where more is better.
#[must_use]
pub fn in_words(objective: &Objective) -> String {
    if *objective == avg_jct() {
        return "average JCT".to_string();
    }
    let term = |(key, weight): (&String, &f64)| {
        let higher = Metric::find(key).is_some_and(|metric| metric.better == Better::Higher);
        match if higher { -weight } else { *weight } {
            1.0 => key.clone(),
            weight => format!("{key}^{weight}"),
        }
    };
    objective.iter().map(term).collect::<Vec<_>>().join(" x ")
}

/// A metric by its key; not a number where there is none.
pub(crate) fn value_of(metrics: &Metrics, key: &str) -> f64 {
    let fields = metrics.fields();
    let found = fields.iter().find(|(known, _)| *known == key);
    found.map_or(f64::NAN, |(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_trade_percents_and_more_of_a_good_thing_is_less_loss() {
        let metrics = Metrics {
            avg_jct_s: 100.0,
            p99_jct_s: 1000.0,
            utilisation: 0.5,
            ..Metrics::default()
        };
        let objective = Objective::from([("avg_jct_s".into(), 1.0), ("p99_jct_s".into(), 0.1)]);
        let changed = Metrics {
            avg_jct_s: 99.0,
            p99_jct_s: 1000.0 * (1.0_f64 / 0.99).powi(10),
            ..metrics
        };
        // One percent off the average pays for ten percents on the tail, but for the floor.
        let loss = |objective: &Objective, metrics: &Metrics| loss(objective, |key| value_of(metrics, key));
        assert!((loss(&objective, &metrics) - loss(&objective, &changed)).abs() < 1e-5);
        let use_of_gpus = Objective::from([("utilisation".into(), 1.0)]);
        let fuller = Metrics {
            utilisation: 0.6,
            ..metrics
        };
        assert!(loss(&use_of_gpus, &fuller) < loss(&use_of_gpus, &metrics));
    }

    #[test]
    fn a_ratio_is_that_of_the_jct_alone_or_a_product_of_powers() {
        let own = |key: &str| match key {
            "avg_jct_s" => 123.456,
            "p99_jct_s" => 4000.0,
            _ => 0.5,
        };
        let base = |key: &str| match key {
            "avg_jct_s" => 246.0,
            "p99_jct_s" => 1000.0,
            _ => 0.25,
        };
        assert_eq!(ratio(&avg_jct(), own, base), 123.456 / 246.0);
        assert_eq!(in_words(&avg_jct()), "average JCT");
        let weights = [("avg_jct_s", 1.0), ("p99_jct_s", 0.5), ("utilisation", 2.0)];
        let mixed: Objective = weights.map(|(key, weight)| (key.to_string(), weight)).into();
        // 123.456 / 246 x sqrt(4) / 2^2, but for the floor.
        let by_hand = 123.456 / 246.0 * 2.0 / 4.0;
        assert!((ratio(&mixed, own, base) / by_hand - 1.0).abs() < 0.01);
        assert_eq!(in_words(&mixed), "avg_jct_s x p99_jct_s^0.5 x utilisation^-2");
        // Weights are worth something beside each other only; so large ones must not run out of numbers.
        let heavy: Objective = weights
            .map(|(key, weight)| (key.to_string(), 400.0 * weight))
            .into();
        assert!(ratio(&heavy, own, own) == 1.0 && ratio(&heavy, own, base) < 1e-100);
    }

    #[test]
    fn an_objective_reads_back_from_its_flag_and_others_are_refused() {
        let terms =
            |text: &str| -> Vec<String> { text.split(',').map(|term| term.trim().to_string()).collect() };
        let text = "avg_jct_s=1,p99_jct_s=0.2";
        let mixed = parse(&terms(text)).unwrap();
        assert_eq!(mixed["p99_jct_s"], 0.2);
        assert_eq!(as_flag(&mixed), text);
        assert_eq!(parse(&terms("avg_jct_s=1.0")).unwrap(), avg_jct());
        for (text, words) in [
            (
                "jct=1",
                ["objective = jct", "avg_jct_s, p50_jct_s", "--objective"],
            ),
            (
                "avg_jct_s",
                ["objective = avg_jct_s", "METRIC=WEIGHT", "--objective"],
            ),
            ("avg_jct_s=low", ["avg_jct_s=low", "METRIC=WEIGHT", "--objective"]),
            (
                "avg_jct_s=1, avg_jct_s=2",
                ["avg_jct_s=2", "each metric once", "--objective"],
            ),
            (
                "makespan_s=-1",
                ["objective.makespan_s = -1", "above 0", "--objective"],
            ),
        ] {
            let said = parse(&terms(text)).unwrap_err().to_string();
            assert!(words.iter().all(|word| said.contains(word)), "{text}: {said}");
        }
    }

    #[test]
    fn unknown_metrics_and_useless_weights_are_refused_with_the_allowed_set() {
        for (key, weight, word) in [
            ("jct", 1.0, "avg_slowdown"),
            ("preemptions", 1.0, "avg_slowdown"),
            ("avg_jct_s", 0.0, "above 0"),
            ("avg_jct_s", f64::NAN, "above 0"),
        ] {
            let text = check(&Objective::from([(key.into(), weight)]))
                .unwrap_err()
                .to_string();
            assert!(text.contains(word), "{text}");
        }
        assert!(check(&Objective::new()).is_err() && check(&avg_jct()).is_ok());
    }
}
