//! Values that are drawn and not listed: `[draw]` of a grid file, a range or a choice for each setting.
//!
//! A draw depends on the sweep's seed, the setting's name and the number of the draw alone, so another setting beside it moves
//! none of its values.

use std::collections::BTreeMap;

use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};
use rand::Rng as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::Error;

/// Depth of nested tables, at most.
const DEPTH_MAX: usize = 16;
/// How a setting may be drawn, for messages.
const ALLOWED: &str = "{ log_uniform = [LOW, HIGH] }, { uniform = [LOW, HIGH] }, { integer = [LOW, HIGH] } or { choice = [..] }";

/// How the value of one setting is drawn.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Draw {
    /// Equally likely in each equal part of the logarithm, between two positive numbers; four digits.
    LogUniform(f64, f64),
    /// Equally likely in each equal part; four digits.
    Uniform(f64, f64),
    /// A whole number, both ends included.
    Integer(i64, i64),
    /// One of a list.
    Choice(Vec<Value>),
}

impl Draw {
    /// Collects how settings are drawn under dotted keys; a table that is no range only groups keys.
    ///
    /// # Errors
    /// [`Error::Problem`] where a range or a choice cannot be used.
    pub(super) fn all(table: &Map<String, Value>) -> Result<BTreeMap<String, Draw>, Error> {
        let mut all = BTreeMap::new();
        collect("", table, &mut all, 0)?;
        Ok(all)
    }

    fn is_usable(&self) -> bool {
        match self {
            Draw::LogUniform(low, high) => *low > 0.0 && low < high && high.is_finite(),
            Draw::Uniform(low, high) => low < high && (high - low).is_finite(),
            Draw::Integer(low, high) => low < high && high.checked_sub(*low).is_some(),
            Draw::Choice(values) => !values.is_empty(),
        }
    }

    /// The value of draw `number` of the setting `key`.
    pub(super) fn value(&self, root: u64, key: &str, number: usize) -> Value {
        let bits = Seed(root)
            .stream(&format!("sweep/draw/{key}"), number as u64)
            .next_u64();
        // 53 bits, as many as a float holds.
        let part = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let below = |bound: u128| (u128::from(bits) * bound) >> 64;
        match self {
            Draw::LogUniform(low, high) => {
                let drawn = exp(ln(*low) + part * (ln(*high) - ln(*low)));
                json!(four_digits(drawn).clamp(*low, *high))
            }
            Draw::Uniform(low, high) => {
                json!(four_digits(low + part * (high - low)).clamp(*low, *high))
            }
            Draw::Integer(low, high) => {
                let num = u128::from(high.abs_diff(*low)) + 1;
                // The sum is at most `high`.
                json!(low.wrapping_add_unsigned(below(num) as u64))
            }
            Draw::Choice(values) => values[below(values.len() as u128) as usize].clone(),
        }
    }
}

/// A number that people can read and type: four digits.
pub(super) fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn collect(
    prefix: &str,
    table: &Map<String, Value>,
    all: &mut BTreeMap<String, Draw>,
    depth: usize,
) -> Result<(), Error> {
    const WAYS: [&str; 4] = ["log_uniform", "uniform", "integer", "choice"];
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        let refused = |hint: &str| Error::config(format!("draw.{key}"), value, ALLOWED, hint);
        let inner = value
            .as_object()
            .ok_or_else(|| refused("A list of values to try, each with all others, belongs under [grid]."))?;
        let is_way = inner.len() == 1 && inner.keys().all(|word| WAYS.contains(&word.as_str()));
        if !is_way {
            if depth >= DEPTH_MAX
                || inner.is_empty()
                || inner.keys().any(|word| WAYS.contains(&word.as_str()))
            {
                return Err(refused("Give one of them."));
            }
            collect(&key, inner, all, depth + 1)?;
            continue;
        }
        let draw: Draw =
            serde_json::from_value(value.clone()).map_err(|error| refused(&format!("Here: {error}.")))?;
        if !draw.is_usable() {
            return Err(refused(
                "LOW is below HIGH, above 0 for log_uniform; a choice has at least one value.",
            ));
        }
        if all.insert(key.clone(), draw).is_some() {
            return Err(refused("It is given both dotted and nested."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Result<BTreeMap<String, Draw>, Error> {
        Draw::all(&toml::from_str(text).unwrap())
    }

    #[test]
    fn draws_stay_in_their_ranges_and_cover_them() {
        let all = draws(
            "a.rate = { log_uniform = [1e-5, 1e-1] }\nb = { uniform = [-1, 1] }\nc = { integer = [1, 3] }\nd = { choice = ['x', 2] }",
        )
        .unwrap();
        let values =
            |key: &str| -> Vec<Value> { (0..400).map(|number| all[key].value(7, key, number)).collect() };
        let rates: Vec<f64> = values("a.rate").iter().filter_map(Value::as_f64).collect();
        assert!(rates.iter().all(|rate| (1e-5..=1e-1).contains(rate)));
        // Half of the logarithm is below 1e-3: 200 of 400, with a standard deviation of 10.
        let below = rates.iter().filter(|rate| **rate < 1e-3).count();
        assert!((160..=240).contains(&below), "{below}");
        let mean = values("b").iter().filter_map(Value::as_f64).sum::<f64>() / 400.0;
        assert!(mean.abs() < 0.12, "{mean}");
        for (key, wanted) in [
            ("c", vec![json!(1), json!(2), json!(3)]),
            ("d", vec![json!("x"), json!(2)]),
        ] {
            for value in &wanted {
                let num = values(key).iter().filter(|drawn| *drawn == value).count();
                let expected = 400 / wanted.len();
                assert!(num.abs_diff(expected) < 45, "{key} {value}: {num}");
            }
            assert!(values(key).iter().all(|drawn| wanted.contains(drawn)));
        }
    }

    #[test]
    fn a_draw_depends_on_seed_key_and_number_and_nothing_else() {
        let draw = Draw::Uniform(0.0, 1.0);
        assert_eq!(draw.value(0, "a", 1), draw.value(0, "a", 1));
        for (root, key, number) in [(1, "a", 1), (0, "b", 1), (0, "a", 2)] {
            assert_ne!(draw.value(root, key, number), draw.value(0, "a", 1));
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_by_its_key() {
        for (text, words) in [
            ("a.b = [1, 2]", "draw.a.b"),
            ("a = { log_uniform = [0, 1] }", "LOW is below HIGH"),
            ("a = { uniform = [1, 1] }", "LOW is below HIGH"),
            ("a = { uniform = [1] }", "Here: "),
            ("a = { choice = [] }", "at least one value"),
            ("a = { choice = [1], uniform = [0, 1] }", "Give one of them"),
            ("a = {}", "Give one of them"),
        ] {
            let said = draws(text).unwrap_err().to_string();
            assert!(
                said.contains(words) && said.contains("log_uniform"),
                "{text}: {said}"
            );
        }
    }
}
