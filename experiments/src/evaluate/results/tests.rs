//! Comparisons worked by hand, and a run with one number for the tests of this crate.

use super::*;
use crate::evaluate::metric::{MAIN_METRIC, METRICS};

/// A run with one number, for tests of this crate.
pub(crate) fn run(policy: &str, workload: &str, seed: u64, avg_jct_s: f64) -> PolicyRun {
    PolicyRun {
        policy: policy.to_string(),
        workload: workload.to_string(),
        seed,
        metrics: METRICS
            .iter()
            .map(|metric| (metric.key.to_string(), 0.5))
            .collect(),
        jct_s: (1..=50).map(|job| avg_jct_s * f64::from(job) / 25.5).collect(),
        utilisation: vec![(0.0, 0.25), (100.0, 1.0), (300.0, 0.0)],
    }
    .with(MAIN_METRIC, avg_jct_s)
}

impl PolicyRun {
    pub(crate) fn with(mut self, key: &str, value: f64) -> PolicyRun {
        self.metrics.insert(key.to_string(), value);
        self
    }
}

#[test]
fn means_and_ratios_are_taken_over_pairs_that_every_policy_finished() {
    // fifo alone met seed 2, whose jobs are ten times as long: it must not count.
    let runs = vec![
        run("fifo", "w", 0, 100.0),
        run("fifo", "w", 1, 400.0),
        run("fifo", "w", 2, 4000.0),
        run("tree", "w", 1, 100.0),
        run("tree", "w", 0, 100.0),
    ];
    let results = Results::new("evaluate", runs, Some("fifo")).unwrap();
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["policies"]["fifo"]["avg_jct_s"], 250.0);
    assert_eq!(json["policies"]["tree"]["avg_jct_s"], 100.0);
    // Ratios 1 and 1/4, geometric mean 1/2.
    let ratio = &json["policies"]["tree"]["ratio_vs_reference"];
    assert_eq!(ratio["policy"], "fifo");
    assert!((ratio["mean"].as_f64().unwrap() - 0.5).abs() < 1e-12);
    assert!((ratio["low"].as_f64().unwrap() - 0.25).abs() < 1e-12);
    assert_eq!(json["seeds"], serde_json::json!([0, 1]));
    assert_eq!(json["workloads"], serde_json::json!(["w"]));
    assert_eq!(
        results.policies().map(|(name, _)| name).collect::<Vec<_>>(),
        ["fifo", "tree"]
    );
}

#[test]
fn gaps_are_measured_pair_by_pair_against_the_bound_of_each() {
    // 100 s over a bound of 80 s is 25 %, 300 s over 100 s is 200 %; the mean of the gaps is 112.5 %.
    let bounds = |avg_jct_s| LowerBounds {
        avg_jct_s,
        makespan_s: 0.0,
    };
    let runs = vec![
        run("fifo", "w", 0, 100.0).against(bounds(80.0)).unwrap(),
        run("fifo", "w", 1, 300.0).against(bounds(100.0)).unwrap(),
    ];
    let plain = Results::new("evaluate", vec![run("fifo", "w", 0, 1.0)], None).unwrap();
    assert_eq!(plain.lower_bounds(), None);
    let results = Results::new("evaluate", runs, None).unwrap();
    let json = serde_json::to_value(&results).unwrap();
    assert!((json["policies"]["fifo"]["avg_jct_gap"].as_f64().unwrap() - 1.125).abs() < 1e-12);
    // A bound of zero gives no gap (the value is what the run came with), and half a pair of bounds is none.
    assert_eq!(json["policies"]["fifo"]["makespan_gap"], 0.5);
    assert!(json["lower_bounds"].is_null());
    let both = LowerBounds {
        avg_jct_s: 80.0,
        makespan_s: 50.0,
    };
    let fifo = run("fifo", "w", 0, 100.0).with("makespan_s", 60.0);
    let runs = vec![fifo.against(both).unwrap()];
    let results = Results::new("evaluate", runs, None).unwrap();
    assert_eq!(results.lower_bounds(), Some(both));
    let text = results.csv().unwrap();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with("avg_jct_bound_s,makespan_bound_s"),
        "{text}"
    );
}

#[test]
fn a_run_below_its_bound_is_an_error_and_rounding_is_none() {
    let bounds = LowerBounds {
        avg_jct_s: 100.0,
        makespan_s: 60.0,
    };
    let of = |avg_jct_s: f64, makespan_s: f64| {
        run("hadar", "w", 7, avg_jct_s)
            .with("makespan_s", makespan_s)
            .against(bounds)
    };
    for (broken, key) in [
        (of(99.9, 61.0), "avg_jct_s is 99.9"),
        (of(101.0, 50.0), "makespan_s is 50"),
    ] {
        let said = broken.unwrap_err().to_string();
        assert!(
            said.contains("hadar on w with seed 7") && said.contains(key),
            "{said}"
        );
    }
    let rounded = of(100.0 * (1.0 - 1e-8), 60.0).unwrap();
    assert_eq!(rounded.metrics["avg_jct_gap"], 0.0);
}

#[test]
fn one_pair_writes_null_for_the_interval() {
    let runs = vec![run("a", "w", 0, 1.0), run("b", "w", 0, 2.0)];
    let json = serde_json::to_value(Results::new("evaluate", runs, Some("a")).unwrap()).unwrap();
    assert!(json["policies"]["b"]["ratio_vs_reference"]["low"].is_null());
}

#[test]
fn runs_that_cannot_be_compared_are_refused() {
    let refused =
        |runs: Vec<PolicyRun>, reference| Results::new("evaluate", runs, reference).unwrap_err().to_string();
    assert!(refused(vec![], None).contains("no pair"));
    assert!(refused(vec![run("a", "w", 0, 1.0), run("b", "w", 1, 1.0)], None).contains("no pair"));
    assert!(refused(vec![run("a", "w", 0, 1.0), run("a", "w", 0, 1.0)], None).contains("twice"));
    assert!(refused(vec![run("a", "w", 0, f64::NAN)], None).contains("avg_jct_s is NaN"));
    assert!(refused(vec![run("a", "w", 0, 1.0)], Some("fifo")).contains("allowed is a"));
    let mut busy = run("a", "w", 0, 1.0);
    busy.utilisation = vec![(0.0, 12.0)];
    assert!(refused(vec![busy], None).contains("0 to 1"));
}

#[test]
fn the_csv_has_one_row_for_each_run_and_quotes_names() {
    let runs = vec![
        run("a, b", "w", 0, 1.5),
        run("c", "w", 0, 2.0).with("extra_s", 9.0),
    ];
    let text = Results::new("evaluate", runs, None).unwrap().csv().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("policy,workload,seed,avg_jct_s,avg_jct_gap,p50_jct_s"));
    assert!(lines[0].ends_with("num_jobs,extra_s"));
    assert!(lines[1].starts_with("\"a, b\",w,0,1.5,") && lines[1].ends_with(','));
    assert!(lines[2].ends_with(",9"));
}

#[test]
fn another_metric_is_compared_pair_by_pair_and_more_of_some_is_better() {
    let with = |policy: &str, seed: u64, key: &str, value: f64| run(policy, "w", seed, 1.0).with(key, value);
    let used = |half: f64| {
        vec![
            with("a", 0, "utilisation", 0.25),
            with("a", 1, "utilisation", 0.25),
            with("b", 0, "utilisation", 0.5),
            with("b", 1, "utilisation", half),
        ]
    };
    let metric = Metric::find("utilisation").unwrap();
    let results = Results::by(metric, "evaluate", used(0.125), Some("a")).unwrap();
    let versus = results.policies["b"].ratio_vs_reference.clone().unwrap();
    // Twice in one pair and half in the other.
    assert_eq!((versus.metric, versus.ratio.num_better), ("utilisation", 1));
    assert!((versus.ratio.mean - 1.0).abs() < 1e-12);
    let table = crate::evaluate::table::Table::compare(&results, &["avg_jct_s"]).to_terminal();
    assert!(
        table.contains("util vs a") && table.contains("above 1 is"),
        "{table}"
    );
    // Nothing is so many times nothing.
    let none = Results::by(metric, "evaluate", used(0.0), Some("a")).unwrap();
    assert!(none.policies["b"].ratio_vs_reference.is_none());
}
