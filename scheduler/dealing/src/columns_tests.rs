//! The columns of a deal: held to the rows themselves, and what their machinery shares with that of decisions.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::features::{Relation, Stimulus};
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};
use pleach_scheduler::{GpuTypeId, JobId, Time};
use serde_json::json;

use super::columns::{self, Stage, StepFacts, deal_schema, numbers_of};
use super::{DealingRules, Formula, FormulaOrder, Order, Step, Trust};
use crate::test_clusters::{multi_type_cluster, place, submit};

struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A formula in which every column weighs something.
fn all() -> Formula {
    let weights = deal_schema()
        .of_rows()
        .map(|feature| (feature.name.to_string(), 1.0));
    Formula::of(DealingRules::default(), weights.collect(), "a test")
}

/// All columns of a job on a type, by their numbers, and the kind of row.
fn row(cluster: &Cluster, id: JobId, kind: GpuTypeId, step: &Step) -> (Vec<f64>, &'static str) {
    let trust = Trust {
        num_ended: 4,
        error: 3.0,
    };
    let mut order = FormulaOrder::new(&all()).trusting(trust);
    order.look(cluster, &[]).unwrap();
    let job = cluster.job(id);
    let facts = StepFacts {
        cluster,
        job,
        step,
        load: order.facts.of_job(cluster, id).load,
    };
    let mut values = vec![0.0; deal_schema().features.len()];
    let mut put = |stage, read: &[f64]| {
        for (number, value) in numbers_of(stage).zip(read) {
            values[number] = *value;
        }
    };
    put(Stage::Job, &columns::read_job(&order.facts.of_job(cluster, id)));
    put(
        Stage::OnType,
        &columns::read_type(&order.facts.of_type(cluster, id, kind)),
    );
    put(Stage::Step, &columns::read_step(&facts));
    let what = match job.state == JobState::Running {
        false => "waits",
        true if job.gpu_type == kind => "stays",
        true => "moves",
    };
    (values, what)
}

/// The rows of the same job before and after a stimulus, in otherwise equal clusters.
fn pair(draws: &mut Draws, stimulus: Stimulus) -> [Vec<(Vec<f64>, &'static str)>; 2] {
    let mut cluster = multi_type_cluster(&[1.0, 2.0], 4);
    for _ in 0..draws.below(3) {
        submit(&mut cluster, 1 + draws.below(2) as u32, 1e4);
    }
    let (num_gpus, run_s) = (1 + draws.below(4) as u32, 200.0 + draws.below(20_000) as f64);
    let (earlier_s, shorter_s) = (
        1 + draws.below(5_000),
        run_s * (1 + draws.below(99)) as f64 / 100.0,
    );
    let (runs, ran_s) = (draws.below(2) == 0, draws.below(3_000) as f64);
    let step = Step {
        after: 1,
        num_gpus: 1 + draws.below(8) as u32,
        marginal: (1 + draws.below(20)) as f64 / 10.0,
        grows: draws.below(2) == 0,
    };
    let of = |is_after: bool| {
        let mut cluster = cluster.clone();
        let (submit_s, run_s) = match stimulus {
            Stimulus::Waiting if is_after => (5_001.0 - earlier_s as f64, run_s),
            Stimulus::Estimate if is_after => (5_001.0, shorter_s),
            _ => (5_001.0, run_s),
        };
        cluster.advance(Time::from_secs_f64(submit_s));
        let own = submit(&mut cluster, num_gpus, run_s);
        cluster.advance(Time::from_secs_f64(6_000.0));
        if runs {
            place(&mut cluster, own);
        }
        cluster.advance(Time::from_secs_f64(6_000.0 + ran_s));
        [0, 1]
            .map(|kind| row(&cluster, own, GpuTypeId(kind), &step))
            .into()
    };
    [of(false), of(true)]
}

#[test]
fn every_column_moves_as_the_table_says_and_stays_in_its_range() {
    let schema = deal_schema();
    let mut draws = Draws(5);
    for stimulus in [Stimulus::Waiting, Stimulus::Estimate] {
        let mut has_moved = vec![false; schema.features.len()];
        let mut seen = BTreeMap::new();
        for _ in 0..300 {
            let [before, after] = pair(&mut draws, stimulus);
            for ((first, what), (second, _)) in before.iter().zip(&after) {
                *seen.entry(*what).or_insert(0) += 1;
                let kind = schema.kinds.iter().position(|kind| kind.name == *what).unwrap();
                for (number, feature) in schema.features.iter().enumerate() {
                    let (first, second) = (first[number], second[number]);
                    let holds = match feature.relation(stimulus) {
                        Relation::Equal => first == second,
                        Relation::Up => first <= second,
                        Relation::Down => first >= second,
                        Relation::Any => true,
                    };
                    let name = feature.name;
                    assert!(holds, "{name} under {stimulus:?}: {first}, then {second}, {what}");
                    has_moved[number] |= first != second;
                    let (low, high) = feature.range_among(kind);
                    for value in [first, second] {
                        let is_in = (f64::from(low)..=f64::from(high)).contains(&value);
                        assert!(is_in, "{name} = {value}, {what}: not {low} to {high}");
                    }
                }
            }
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
        for (feature, has_moved) in schema.features.iter().zip(has_moved) {
            let is_still = feature.relation(stimulus) == Relation::Equal;
            assert!(
                is_still != has_moved,
                "{} never moved under {stimulus:?}",
                feature.name
            );
        }
    }
}

#[test]
fn the_first_view_of_a_deal_is_what_it_was() {
    assert_eq!(
        deal_schema().hash(),
        "a1396c605d5146eda2130dde4413b7b18e5c50a762137b8e8af4a2056fefa1d9"
    );
    assert_eq!(deal_schema().views[0].len, 31);
}

#[test]
fn a_formula_lists_the_columns_that_it_reads_and_is_refused_for_those_alone() {
    let weights = [("age", 0.5), ("service", -1.0), ("wait", 0.0)];
    let weights = weights.map(|(name, weight)| (name.to_string(), weight)).into();
    let formula = Formula::of(DealingRules::default(), weights, "");
    let lines = [
        "candidate age [ln s] 4 25 Linear(1.0)",
        "candidate service [ln s] 4 25 Linear(1.0)",
    ];
    assert_eq!(
        (formula.version, &formula.reads[..]),
        (2, &lines.map(String::from)[..])
    );
    formula.validate("mine").unwrap();
    let refusal = |change: &dyn Fn(&mut Formula)| {
        let mut other = formula.clone();
        change(&mut other);
        other.validate("mine").unwrap_err().to_string()
    };
    let other = refusal(&|formula| formula.reads[1] = lines[1].replace("25", "24"));
    assert!(
        other.contains("only in the file:    candidate service [ln s] 4 24")
            && other.contains("only in the program: candidate service [ln s] 4 25"),
        "{other}"
    );
    let missing = refusal(&|formula| formula.reads.truncate(1));
    assert!(
        missing.contains("candidate service") && !missing.contains("candidate age"),
        "{missing}"
    );
    let unknown = refusal(&|formula| {
        formula.weights.insert("servise".into(), 1.0);
    });
    assert!(
        unknown.contains("servise") && unknown.contains("service has the nearest name"),
        "{unknown}"
    );
    let old = refusal(&|formula| formula.version = 1);
    assert!(old.contains("none in version 1"), "{old}");
}

/// Files, words and checks of trees know no more of a schema than its value.
#[test]
fn a_tree_over_the_columns_of_a_deal_is_written_and_read() {
    let schema = deal_schema();
    let leaf = |id, score| Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    };
    let number = schema.joined_index("stays_run").unwrap() as u16;
    let split = Node::Split {
        feature: number,
        threshold: 7.5,
        left: 1,
        right: 2,
    };
    let meta = TreeMeta {
        name: "deals".into(),
        tie_key: TieKey::Index,
        key_weights: Vec::new(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    };
    let tree = Tree::over(schema, meta, &[split, leaf(0, 0.0), leaf(1, 1.0)]).unwrap();
    let text = tree.to_json();
    assert_eq!(Tree::from_json_over(schema, &text).unwrap(), tree);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value["reads"],
        json!(["candidate stays_run [ln s] 0 25 Linear(1.0)"])
    );
    assert!(tree.to_text().contains("stays_run"), "{}", tree.to_text());
    let unknown = text.replace("stays_run", "stays_rum");
    let refused = Tree::from_json_over(schema, &unknown).unwrap_err().to_string();
    assert!(
        refused.contains("the nearest name in the program is stays_run"),
        "{refused}"
    );
}
