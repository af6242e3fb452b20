//! Formulas: written and read, finite everywhere, within their bounds, sealed, deciding.

use proptest::prelude::*;

use super::bounds::ColumnRanges;
use super::postfix::{Decode, Postfix};
use super::*;
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster_spec::ClusterSpec;
use crate::features::{CONTEXT_WIDTH, Group, ROW_WIDTH};
use crate::pass::{Pass, PassState};
use crate::policy::Policy as _;

fn schema() -> &'static FeatureSchema {
    FeatureSchema::current()
}

fn column(name: &str) -> u16 {
    schema().joined_index(name).unwrap() as u16
}

fn read(text: &str) -> Expression {
    parse(schema(), text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Plain numbers of columns, constants and all operations, at most three levels.
fn numbers() -> BoxedStrategy<Expression> {
    let constant =
        prop_oneof![-30.0..30.0_f64, Just(0.0), Just(1e12), Just(-1e-9)].prop_map(Expression::Number);
    let of_column = (0..schema().features.len() as u16).prop_map(|number| {
        let is_plain = schema().features[usize::from(number)].unit.is_empty();
        match is_plain {
            true => Expression::Column(number),
            false => Expression::one(Operation::Log1p, Expression::Column(number)),
        }
    });
    let leaf = prop_oneof![constant, of_column];
    leaf.prop_recursive(4, 40, 4, |inner| {
        let of_one = |place: usize| {
            [
                Operation::Negate,
                Operation::Log1p,
                Operation::Exp,
                Operation::Abs,
            ][place]
        };
        let of_two = |place: usize| Operation::ALL[Operation::Add as usize + place].0;
        let compared = |place: usize| Operation::ALL[Operation::Less as usize + place].0;
        let condition = (0..4_usize, inner.clone(), inner.clone(), any::<bool>()).prop_map(
            move |(place, a, b, is_not)| {
                let truth = Expression::two(compared(place), a, b);
                if is_not {
                    Expression::one(Operation::Not, truth)
                } else {
                    truth
                }
            },
        );
        let joined = (condition.clone(), condition.clone(), any::<bool>())
            .prop_map(|(a, b, and)| Expression::two(if and { Operation::And } else { Operation::Or }, a, b));
        prop_oneof![
            (0..4_usize, inner.clone()).prop_map(move |(place, a)| Expression::one(of_one(place), a)),
            (0..6_usize, inner.clone(), inner.clone()).prop_map(move |(place, a, b)| Expression::two(
                of_two(place),
                a,
                b
            )),
            (prop_oneof![condition, joined], inner.clone(), inner)
                .prop_map(|(c, a, b)| Expression::Choice(Box::new([c, a, b]))),
        ]
    })
    .boxed()
}

/// Numbers that no observation should have are among them.
fn any_scaled() -> impl Strategy<Value = f32> {
    prop_oneof![8 => -0.2..1.3_f32, 1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(-1e30_f32), Just(f32::MIN_POSITIVE)]]
}

/// The slow and obvious value: the tree itself, each column decoded.
fn slow(expression: &Expression, row: &[f32], context: &[f32]) -> f64 {
    let value = |part: &Expression| slow(part, row, context);
    match expression {
        Expression::Number(number) => *number,
        Expression::Column(number) => {
            let feature = &schema().features[usize::from(*number)];
            let place = schema().place((*number).into());
            let from = if feature.group == Group::Row { row } else { context };
            Decode::raw(feature).of(from[place])
        }
        Expression::One(operation, of) => operation.of(value(of), 0.0),
        Expression::Two(operation, of) => operation.of(value(&of[0]), value(&of[1])),
        Expression::Choice(of) => {
            if value(&of[0]) == 1.0 {
                value(&of[1])
            } else {
                value(&of[2])
            }
        }
    }
}

/// A row of a kind: each column within its range there, by a share of it.
fn row_of_kind(kind: usize, shares: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut row, mut context) = (vec![0.0; ROW_WIDTH], vec![0.0; CONTEXT_WIDTH]);
    for (number, feature) in schema().features.iter().enumerate() {
        let (min, max) = feature.range_among(kind);
        let value = min + (max - min) * shares[number];
        let into = if feature.group == Group::Row {
            &mut row
        } else {
            &mut context
        };
        into[schema().place(number)] = value;
    }
    (row, context)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_printed_is_read_as_the_same_expression(expression in numbers()) {
        let text = expression.text(schema());
        prop_assert!(matches!(expression.kind(schema()), Ok(Kind::Number(_))));
        prop_assert_eq!(parse(schema(), &text).unwrap_or_else(|error| panic!("{text}: {error}")), expression, "{}", text);
    }

    #[test]
    fn every_value_is_finite_and_the_steps_give_what_the_tree_gives(
        expression in numbers(),
        row in prop::collection::vec(any_scaled(), ROW_WIDTH),
        context in prop::collection::vec(any_scaled(), CONTEXT_WIDTH),
    ) {
        let value = Postfix::of(schema(), &expression).value(&row, &context);
        prop_assert!(value.abs() <= LARGEST, "{}", value);
        // Comparisons near a tie may fall otherwise where a logarithm was read without an exponential; so near is no draw here.
        let slow = slow(&expression, &row, &context);
        let has_choice = expression.text(schema()).contains("if ");
        prop_assert!(has_choice || (value - slow).abs() <= 1e-6 * slow.abs().max(1.0), "{} {}", value, slow);
    }

    #[test]
    fn values_lie_between_the_bounds_of_their_kind(
        expression in numbers(),
        kind in 0..5_usize,
        shares in prop::collection::vec(0.0..=1.0_f32, schema().features.len()),
    ) {
        let range = ColumnRanges::of_kind(schema(), kind).range(&expression);
        let (row, context) = row_of_kind(kind, &shares);
        let value = Postfix::of(schema(), &expression).value(&row, &context);
        let slack = 1e-9 * value.abs().max(1.0);
        prop_assert!(range.min - slack <= value && value <= range.max + slack, "{value} outside {range:?}");
    }

    #[test]
    fn what_is_proved_to_rise_with_waiting_never_falls(
        expression in numbers(),
        shares in prop::collection::vec(0.0..=1.0_f32, schema().features.len()),
        grown in prop::collection::vec(0.0..=1.0_f32, schema().features.len()),
        stimulus in prop::sample::select(vec![Stimulus::Waiting, Stimulus::Estimate]),
    ) {
        const START: usize = 1;
        let moves = ColumnRanges::of_kind(schema(), START).moves(&expression, stimulus);
        let moved: Vec<f32> = schema().features.iter().enumerate().map(|(number, feature)| {
            let (own, other) = (shares[number], grown[number]);
            match feature.relation(stimulus) {
                Relation::Equal => own,
                Relation::Up => own.max(other),
                Relation::Down => own.min(other),
                Relation::Any => other,
            }
        }).collect();
        let value = |shares: &[f32]| {
            let (row, context) = row_of_kind(START, shares);
            Postfix::of(schema(), &expression).value(&row, &context)
        };
        let (before, after) = (value(&shares), value(&moved));
        let slack = 1e-9 * before.abs().max(1.0);
        match moves {
            Relation::Equal => prop_assert_eq!(before, after),
            Relation::Up => prop_assert!(after >= before - slack, "{before} {after}"),
            Relation::Down => prop_assert!(after <= before + slack, "{before} {after}"),
            Relation::Any => {}
        }
    }
}

#[test]
fn operators_bind_as_in_mathematics() {
    for (text, other) in [
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("1 + 2 * num_gpus", "1 + (2 * num_gpus)"),
        ("-num_gpus * 2", "(-num_gpus) * 2"),
        (
            "if is_oldest or is_beside and not is_shortest then 1 else 0",
            "if is_oldest or (is_beside and (not is_shortest)) then 1 else 0",
        ),
        (
            "if num_gpus + 1 > 2 then 1 else if is_oldest then 2 else 3 + 4",
            "if (num_gpus + 1) > 2 then 1 else (if is_oldest then 2 else (3 + 4))",
        ),
    ] {
        assert_eq!(read(text), read(other), "{text}");
    }
    assert_eq!(read("-1.50e1"), Expression::Number(-15.0));
}

#[test]
fn what_is_no_formula_is_refused_with_its_place_and_what_is_allowed() {
    let nested = format!("{}1{}", "(".repeat(70), ")".repeat(70));
    let many = format!("1{}", " + 1".repeat(200));
    for (text, words) in [
        ("", "the end at character 1"),
        ("1 +", "the end at character 4"),
        ("1 + durations_s", "Did you mean duration_s?"),
        ("1 $ 2", "`$` at character 3: allowed is an operator or the end"),
        ("wait_s + num_gpus", "these are seconds and a plain number"),
        (
            "wait_s * wait_s > wait_s",
            "seconds to the power of 2 and seconds",
        ),
        ("num_gpus > 1", "a number, and this is a truth"),
        ("if num_gpus then 1 else 2", "if takes a truth"),
        ("if is_oldest then 1", "allowed is `else`"),
        (
            "if is_oldest then 1 else is_oldest > 0",
            "then and else take numbers",
        ),
        ("num_gpus and 1", "and takes truths"),
        ("1 + if is_oldest then 1 else 2", "stands in parentheses"),
        ("exp(wait_s)", "take its log1p"),
        ("max(1)", "allowed is `,`"),
        ("1e400", "is not within"),
        ("1.2.3", "For example 0.8"),
        ("ünder", "`ünder` at character 1"),
        (&nested, "at most 64 parentheses"),
        (&many, "at most 256"),
        (&"-".repeat(20_000), "at most 16384 bytes"),
    ] {
        let refused = parse(schema(), text).unwrap_err().to_string();
        assert!(refused.contains(words), "{text:.80}: {refused}");
    }
}

#[test]
fn bounds_and_directions_of_a_rule_are_those_that_a_person_works_out() {
    let formula = ScoreFormula::of(
        "mine",
        "if speed_ratio > 0.8 then 10 + log1p(wait_s) / 2 else 5 - num_nodes_ratio / 16",
    )
    .unwrap();
    // Fast: 10 to 10 + ln(1 + 1e8) / 2 = 19.21; slow: 4 to 5.
    let Property::ScoresWithin { min, max } = formula.certify()[0].property else {
        panic!("bounds come first");
    };
    assert!(
        (min - 4.0).abs() < 1e-5 && (max - 19.2103).abs() < 1e-3,
        "{min} {max}"
    );
    let proved: Vec<bool> = formula
        .certify()
        .iter()
        .map(|own| own.verdict == Verdict::Proved)
        .collect();
    assert_eq!(proved, [true, true, true, true]);
    let falls = ScoreFormula::of("mine", "1 - log1p(wait_s)").unwrap();
    let proved: Vec<bool> = falls
        .certify()
        .iter()
        .map(|own| own.verdict == Verdict::Proved)
        .collect();
    assert_eq!(
        proved,
        [true, false, true, false],
        "it falls with waiting, and below 0"
    );
    let switches = ScoreFormula::of("mine", "if wait_s > 3600 then 1 else 2").unwrap();
    assert!(matches!(
        switches.verdict(Property::MonotoneInWaiting),
        Some(Verdict::Open(_))
    ));
    assert_eq!(switches.verdict(Property::LeafIsReached { leaf: 1 }), None);
}

#[test]
fn division_and_logarithms_are_defined_everywhere() {
    assert_eq!(Operation::Divide.of(3.0, 0.0), 3e6);
    assert_eq!(Operation::Divide.of(3.0, -1e-9), -3e6);
    assert_eq!(Operation::Divide.of(1e12, 1e-6), LARGEST);
    assert_eq!(Operation::Log1p.of(-5.0, 0.0), 0.0);
    assert_eq!(Operation::Exp.of(1e12, 0.0), LARGEST);
}

#[test]
fn a_file_by_hand_is_read_and_a_sealed_one_is_checked() {
    let by_hand = r#"{"format": "pleach-formula", "version": 1, "score": "40 - log1p(duration_s)"}"#;
    let formula = ScoreFormula::from_json(by_hand).unwrap();
    assert_eq!(
        (formula.name.as_str(), formula.needs()),
        ("formula", ScoreFormula::needs_by_default())
    );
    let sealed = formula.clone().sealed();
    let text = sealed.to_json();
    let back = ScoreFormula::from_json(&text).unwrap();
    assert_eq!((&back, back.to_json()), (&sealed, text.clone()));
    assert_eq!(back.hash(), formula.hash());
    for (from, to, words) in [
        ("40 - log", "41 - log", "seal.formula_hash"),
        ("\"golden_sha256\":\"", "\"golden_sha256\":\"0", "golden rows"),
        (
            "\"verdict\":\"proved\"",
            "\"verdict\":{\"open\":\"\"}",
            "certificates",
        ),
        ("Log(6.0)", "Log(5.0)", "reads"),
        ("\"version\": 1", "\"version\": 2", "version 2"),
        ("\"tie_key\"", "\"tiekey\"", "unknown field"),
        ("\"fitting\":12", "\"fitting\":65", "needs.heads"),
    ] {
        let spoilt = text.replacen(from, to, 1);
        assert_ne!(spoilt, text, "{from}");
        let refused = ScoreFormula::from_json(&spoilt).unwrap_err().to_string();
        assert!(refused.contains(words), "{to}: {refused}");
        let is_of_seal =
            words == "seal.formula_hash" || spoilt.contains("sha256\":\"0") || spoilt.contains("open");
        assert_eq!(
            ScoreFormula::from_json_unsealed(&spoilt).is_ok(),
            is_of_seal,
            "{to}"
        );
    }
}

#[test]
fn the_largest_positive_score_is_taken_and_the_reason_says_why() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    submit(&mut cluster, 1, 5000.0);
    let shortest = submit(&mut cluster, 2, 300.0);
    let text = "if num_gpus > 3 then -1 else 40 - log1p(duration_s)";
    let mut policy = FormulaPolicy::new(ScoreFormula::of("mine", text).unwrap());
    let needs = policy.needs();
    let mut pass = Pass::new();
    pass.open(&cluster, &needs);
    let action = pass.decide(&cluster, &mut policy).unwrap();
    assert_eq!(pass.candidates().get(action).unwrap().job, Some(shortest));
    let point = crate::policy::DecisionPoint {
        cluster: &cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let reason = policy.reason(point, action).unwrap();
    let score = 40.0 - 301.0_f64.ln();
    assert!(reason.starts_with(&format!("score {score:.2}")), "{reason}");
    for words in [
        "num_gpus > 3 does not hold",
        "score = 40 - log1p(duration_s)",
        "duration_s is 300",
        "log1p(duration_s) adds -5.7",
    ] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    // A job that scores below hold waits; where nothing runs hold is not offered.
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 8, 1));
    submit(&mut cluster, 1, 60.0);
    assert_eq!(pass.open(&cluster, &needs), PassState::Open);
    let start = pass.decide(&cluster, &mut policy).unwrap();
    pass.act(&mut cluster, &needs, start);
    submit(&mut cluster, 4, 60.0);
    assert_eq!(pass.open(&cluster, &needs), PassState::Open);
    assert_eq!(pass.decide(&cluster, &mut policy).unwrap(), 0);
    // A sparing one asks for what it reads and decides alike.
    let sparing = policy.clone().sparing().needs().columns;
    assert!(sparing.contains(column("duration_s").into()) && !sparing.contains(column("wait_s").into()));
}
