use super::*;
use crate::tree::tests::{any_tree, keyed_tree, small_tree};
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    Tree::from_json(text).unwrap_err().to_string()
}

fn sealed_tree() -> Tree {
    let tree = small_tree().with_golden();
    tree.with_fallback(Some("easy".into())).unwrap()
}

#[test]
fn a_sealed_tree_is_read_as_it_was_written_and_an_unsealed_one_has_the_bytes_it_had() {
    let (plain, sealed) = (small_tree(), sealed_tree());
    let text = sealed.to_json();
    assert!(
        text.contains("\"version\": 2,\n") && text.contains("  \"fallback\": \"easy\",\n"),
        "{text}"
    );
    let line = format!(
        "  \"golden\": {{\"rule\":1,\"rows\":1006,\"sha256\":\"{}\"}}\n}}\n",
        plain.golden().sha256
    );
    assert!(text.ends_with(&line), "{text}");
    let back = Tree::from_json(&text).unwrap();
    assert_eq!(
        (&back, back.to_json(), back.fallback()),
        (&sealed, text, Some("easy"))
    );
    assert_eq!(back.hash(), plain.hash(), "what decides is the same");
    assert!(plain.to_json().contains("\"version\": 1,\n") && !plain.is_sealed());
    let certified = sealed.with_certificates(plain.certify());
    assert_eq!(Tree::from_json(&certified.to_json()).unwrap(), certified);
}

#[test]
fn what_is_wrong_with_golden_vectors_or_fallback_is_refused_under_its_key() {
    let good = sealed_tree().to_json();
    let hash = small_tree().golden().sha256;
    let cases = [
        (
            "\"rule\":1",
            "\"rule\":2",
            "golden.rule = 2: allowed is 1, the rule of such a tree",
        ),
        (
            "\"rule\":1",
            "\"rule\":-1",
            "golden: invalid value: integer `-1`, expected u64 at line ",
        ),
        (
            "\"rows\":1006",
            "\"rows\":999",
            "golden.rows = 999: allowed is 1000 to 10000",
        ),
        (
            "\"rows\":1006",
            "\"rows\":10001",
            "golden.rows = 10001: allowed is 1000 to 10000",
        ),
        (
            "\"rows\":1006",
            "\"rows\":1e300",
            "golden: invalid type: floating point",
        ),
        ("\"rows\":1006", "\"rows\":NaN", "expected value at line "),
        (
            "\"rows\":1006",
            "\"rows\":99999999999999999999",
            "golden: invalid type: floating point",
        ),
        // Other rows, another hash.
        ("\"rows\":1006", "\"rows\":1007", "golden.sha256 = "),
        (hash.as_str(), "beef", "golden.sha256 = beef: allowed is "),
        // A tree that was edited since.
        (
            "\"score\":0.25",
            "\"score\":0.5",
            "make it anew with pleach distill seal FILE",
        ),
        ("\"leaf\":2", "\"leaf\":7", "golden.sha256 = "),
        ("\"sha256\"", "\"sha\"", "golden: unknown field `sha`"),
        ("{\"rule\":1,\"rows\":1006,", "{", "golden: missing field `rule`"),
        (
            "\"fallback\": \"easy\"",
            "\"fallback\": \"esay\"",
            "fallback = \"esay\": allowed is one of fifo, ",
        ),
        (
            "\"fallback\": \"easy\"",
            "\"fallback\": 3",
            "fallback: invalid type: integer `3`",
        ),
        (
            "\"fallback\": \"easy\"",
            "\"fallback\": null",
            "fallback: invalid type: null",
        ),
        (
            "\"version\": 2",
            "\"version\": 1",
            "fallback = given: allowed is none in a file of version 1",
        ),
    ];
    for (from, to, reason) in cases {
        assert!(good.contains(from), "the example has no {from}");
        let text = refusal(&good.replacen(from, to, 1));
        assert!(text.contains(reason), "{from} -> {to}: {text}");
    }
    let golden_alone = small_tree().with_golden().to_json();
    let text = refusal(&golden_alone.replace("\"version\": 2", "\"version\": 1"));
    assert!(
        text.contains("golden = given: allowed is none in a file of version 1"),
        "{text}"
    );
}

#[test]
fn who_makes_certificates_anew_keeps_what_still_is_of_the_tree() {
    let good = sealed_tree().to_json();
    assert_eq!(Tree::from_json_uncertified(&good).unwrap(), sealed_tree());
    let edited = Tree::from_json_uncertified(&good.replace("\"score\":0.25", "\"score\":0.5")).unwrap();
    assert_eq!(edited.fallback(), Some("easy"));
    assert!(!edited.to_json().contains("golden"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_sealed_tree_is_read_as_it_was_written(tree in any_tree()) {
        let sealed = tree.with_golden();
        prop_assert_eq!(&Tree::from_json(&sealed.to_json()).unwrap(), &sealed);
        // A weight of the key is part of what is compared.
        let _ = keyed_tree();
    }
}

fn visited_tree() -> Tree {
    let mut visits = Visits::none(3);
    for number in 0..200 {
        visits.add(&[0, 1, 1, if number % 2 == 0 { 2 } else { 0 }]);
    }
    visits.recorded_on.insert("lists".into(), serde_json::json!(4));
    small_tree().with_visits(visits).unwrap()
}

#[test]
fn visits_are_in_the_file_by_the_ids_of_leaves_and_are_read_as_they_were_written() {
    let (tree, plain) = (visited_tree(), small_tree());
    let text = tree.to_json();
    let line = format!(
        "  \"visits\": {{\"tree_hash\":\"{}\",\"decisions\":200,\"leaves\":[{{\"leaf\":1,\"offered\":300}},\
         {{\"leaf\":2,\"offered\":400}},{{\"leaf\":0,\"offered\":100}}],\"recorded_on\":{{\"lists\":4}}}}\n}}\n",
        plain.hash()
    );
    assert!(text.ends_with(&line), "{text}");
    assert_eq!(Tree::from_json(&text).unwrap(), tree);
    // Under other guards it meets other candidates.
    let guards = crate::guards::Guards {
        overdue_after_s: Some(3600.0),
        ..crate::guards::Guards::NONE
    };
    assert!(tree.clone().with_guards(guards).unwrap().visits().is_none());
    assert!(
        tree.clone()
            .with_guards(tree.guards())
            .unwrap()
            .visits()
            .is_some()
    );
}

#[test]
fn histograms_that_are_none_or_of_another_tree_are_refused_under_their_key() {
    let good = visited_tree().to_json();
    let hash = small_tree().hash();
    let last = "{\"leaf\":0,\"offered\":100}";
    let cases = [
        (
            last,
            "{\"leaf\":0,\"offered\":-1}",
            "visits: invalid value: integer `-1`, expected u64 at line ",
        ),
        (last, "{\"leaf\":0,\"offered\":NaN}", "expected value at line "),
        (
            last,
            "{\"leaf\":0,\"offered\":1.5}",
            "visits: invalid type: floating point `1.5`",
        ),
        (
            last,
            "{\"leaf\":0,\"offered\":1e400}",
            "visits: number out of range",
        ),
        (
            last,
            "{\"leaf\":0,\"offered\":99999999999999999999}",
            "visits: invalid type: floating point",
        ),
        (
            last,
            "{\"leaf\":0,\"offered\":18446744073709551615}",
            "visits.leaves = 18446744073709552315: allowed is 200 to ",
        ),
        (
            last,
            "{\"leaf\":7,\"offered\":100}",
            "visits.leaves = leaf 7: allowed is ids of leaves of this tree",
        ),
        (
            last,
            "{\"leaf\":1,\"offered\":100}",
            "visits.leaves = leaf 1: allowed is each leaf once",
        ),
        (
            ",{\"leaf\":0,\"offered\":100}",
            "",
            "visits.leaves = 2: allowed is 3, one for each leaf",
        ),
        (
            last,
            "{\"leaf\":0,\"chosen\":100}",
            "visits: unknown field `chosen`",
        ),
        (
            "\"decisions\":200",
            "\"decisions\":99",
            "visits.decisions = 99: allowed is 100 to ",
        ),
        (
            "\"decisions\":200",
            "\"decisions\":9007199254740993",
            "visits.decisions = 9007199254740993: allowed is 100 to ",
        ),
        // Fewer candidates than decisions.
        (
            "\"decisions\":200",
            "\"decisions\":801",
            "visits.leaves = 800: allowed is 801 to ",
        ),
        ("\"score\":0.25", "\"score\":0.5", "visits.tree_hash = "),
        (hash.as_str(), "beef", "visits.tree_hash = beef: allowed is "),
        (
            "\"version\": 2",
            "\"version\": 1",
            "visits = given: allowed is none in a file of version 1",
        ),
        (
            "\"recorded_on\":{\"lists\":4}",
            "\"recorded_on\":4",
            "visits: invalid type: integer `4`, expected a map",
        ),
        (
            "\"visits\": {",
            "\"visits\": null, \"x\": {",
            "visits: invalid type: null",
        ),
    ];
    for (from, to, reason) in cases {
        assert!(good.contains(from), "the example has no {from}");
        let text = refusal(&good.replacen(from, to, 1));
        assert!(text.contains(reason), "{from} -> {to}: {text}");
    }
    let edited = good.replace("\"score\":0.25", "\"score\":0.5");
    assert!(Tree::from_json_uncertified(&edited).unwrap().visits().is_none());
    assert!(Tree::from_json_uncertified(&good).unwrap().visits().is_some());
}
