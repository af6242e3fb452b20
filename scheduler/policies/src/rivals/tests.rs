//! Formulas among the rivals score as the programs do that they were written as.

use std::iter::Peekable;
use std::str::SplitWhitespace;

use pleach_scheduler::FeatureSchema;
use pleach_scheduler::FormulaPolicy;
use pleach_scheduler::features::{DECISION_1, Group};
use pleach_scheduler::portable_math::exp;

use crate::Door;

/// The programs in prefix form, `(if> a b then else)`, by the name of the rival.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "gp-gavel",
        "(if> speed 0.8 (+ 100 (- waited dur)) (if> 10.8693 (* rem nodes) (if> numleft 0.4 -1 (+ 1.3258 1.3258)) -1))",
    ),
    (
        "gp-share",
        "(if> beside 0.5 (if> (+ speed partner) 1.35 (- 20 dur) -1) (if> loc 0.96 (- 40 (+ dur (* 0.5 gpus))) (if> 8.19 rem \
         (- 40 (+ dur (* 0.5 gpus))) (if> waited dur (- 40 (+ dur (* 0.5 gpus))) -1))))",
    ),
    (
        "share-or-tight",
        "(if> reserve 0.5 (if> 0.3 rrem (- 38 (+ dur gpus)) -1) (if> beside 0.5 (if> (+ speed partner) 1.35 (- 20 (+ dur gpus)) -1) \
         (if> loc 0.96 (- 40 (+ dur gpus)) (if> 7.2 rem (- 40 (+ dur gpus)) (if> waited 8 (- 40 (+ dur gpus)) -1)))))",
    ),
    (
        "linear-gavel",
        "(+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ (+ -14.92197 (* 0.75197 dur)) (* 0.25722 gpus)) \
         (* -1.68284 rem)) (* 8.32178 speed)) (* -0.81422 loc)) (* -7.91916 gain)) (* 0.07722 wait)) (* 0.13326 waited)) \
         (* 0.36940 press)) (* -20.28949 free)) (* 42.82573 left)) (* -1.49543 adv)) (* 0.13317 btw)) (* 1.07718 slack)) \
         (* -1.37509 nodes)) (* 1.49140 rgpus)) (* 20.28949 tenant)) (* -1.14831 largest)) (* 0.44103 drain)) (* -0.19156 numleft)) \
         (* -2.72566 rrem)) (* -4.39005 reserve)) (* 0.01992 oldest))",
    ),
];

/// What the programs call a column: the number of it, and what its scaled value is multiplied by.
const LN_10: f64 = std::f64::consts::LN_10;
const COLUMNS: [(&str, usize, f64); 23] = [
    ("dur", 7, 6.0 * LN_10),
    ("gpus", 4, 2.0 * LN_10),
    ("rem", 6, 6.0 * LN_10),
    ("speed", 14, 1.0),
    ("loc", 15, 1.0),
    ("gain", 36, 1.0),
    ("wait", 9, 6.0 * LN_10),
    ("press", 46, 2.0 * LN_10),
    ("free", 42, 1.0),
    ("beside", 32, 1.0),
    ("partner", 33, 1.0),
    ("left", 18, 1.0),
    ("adv", 37, 2.0),
    ("btw", 35, 6.0 * LN_10),
    ("slack", 19, 1.0),
    ("nodes", 16, 4.0),
    ("rgpus", 27, 1.0),
    ("tenant", 13, 2.0),
    ("largest", 43, 1.0),
    ("drain", 55, 6.0 * LN_10),
    ("numleft", 17, 8.0),
    ("rrem", 23, 1.0),
    ("reserve", 2, 1.0),
];

/// The value of a program on a joined row, as its words say.
fn value(words: &mut Peekable<SplitWhitespace<'_>>, row: &[f32]) -> f64 {
    let scaled = |number: usize| f64::from(row[number]);
    match words.next().unwrap() {
        "(" => {
            let sign = words.next().unwrap().to_owned();
            let mut next = || value(words, row);
            let found = match sign.as_str() {
                "+" => next() + next(),
                "-" => next() - next(),
                "*" => next() * next(),
                _ => {
                    let [a, b, then, other] = [next(), next(), next(), next()];
                    if a > b { then } else { other }
                }
            };
            assert_eq!(words.next(), Some(")"));
            found
        }
        // Waiting over what is left.
        "waited" => (exp(scaled(10) * 3.0 * LN_10) - 2.0).max(0.0),
        "oldest" => scaled(53) * 6.0 * LN_10,
        word => match COLUMNS.iter().find(|(name, ..)| *name == word) {
            Some((_, number, factor)) => scaled(*number) * factor,
            None => word.parse().unwrap(),
        },
    }
}

#[test]
fn a_formula_scores_as_the_program_that_it_was_written_as() {
    let schema = FeatureSchema::current();
    // Numbers that only have to differ.
    let mut state = 1_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    for (name, program) in PROGRAMS {
        let spec = Door::CLUSTER.open_one(name).unwrap();
        let policy: &FormulaPolicy = spec.formula_policy().unwrap();
        let program = program.replace('(', " ( ").replace(')', " ) ");
        let mut different = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let (mut joined, mut parts) = (Vec::new(), [Vec::new(), Vec::new()]);
            for feature in &schema.features[..DECISION_1.len] {
                let (min, max) = (feature.encode(feature.min), feature.encode(feature.max));
                let drawn = match feature.is_whole {
                    true if feature.is_flag() => draw().round(),
                    _ => draw(),
                };
                let scaled = min + (max - min) * drawn as f32;
                joined.push(scaled);
                parts[usize::from(feature.group == Group::Context)].push(scaled);
            }
            let meant = value(&mut program.split_whitespace().peekable(), &joined);
            let found = f64::from(policy.score_of(&parts[0], &parts[1]));
            assert!(
                (meant - found).abs() < 1e-4 * meant.abs().max(1.0),
                "{name}: {meant} {found}"
            );
            different.insert((found * 1e3) as i64);
        }
        assert!(different.len() > 2, "{name} says something");
    }
}

#[test]
fn a_formula_among_the_rivals_is_written_as_it_is_printed() {
    for (name, _) in PROGRAMS {
        let file = std::fs::read_to_string(format!("{}/src/rivals/{name}.json", env!("CARGO_MANIFEST_DIR")))
            .unwrap();
        let spec = Door::CLUSTER.open_one(name).unwrap();
        let line = spec.formula_policy().unwrap().formula().text();
        assert!(file.contains(&line), "{name}: {line}");
    }
}
