//! Searches for formulas, small ones.

use pleach_scheduler::ActionKind;

use super::*;
use crate::door::DOOR;
use crate::evaluate::workload_source::env_of;

fn searched(threads: usize, input: &FormulaInput) -> FoundFormula {
    let mut env = env_of("Pleach/GavelMulti-v1", Some(40), Some(2.0)).unwrap();
    env.candidates.actions = env.candidates.actions.with(ActionKind::WaitForType);
    let config = FormulaSearch {
        simulations: 3_000,
        children: 8,
        accept_lists: 4,
        ..FormulaSearch::default()
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(|| search_formula(&env, &config, input, 3, &Watcher::silent()).unwrap())
}

#[test]
fn a_search_ends_the_same_at_any_number_of_threads_and_is_judged_beside_others() {
    let teacher = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/GavelMultiRealistic-v0.ckpt"
    );
    let input = FormulaInput {
        teacher: Some(DOOR.open_one(teacher).unwrap()),
        formulas: vec![(
            "mine".into(),
            ScoreFormula::of("mine", "30 - log1p(remaining_s)").unwrap(),
        )],
        against: vec![DOOR.open_one("sjf").unwrap()],
    };
    let one = searched(1, &input);
    let two = searched(3, &input);
    assert_eq!(one.formula, two.formula);
    let json = |found: &FoundFormula| serde_json::to_string(&found.report).unwrap();
    assert_eq!(json(&one), json(&two));
    let report = &one.report;
    assert!(report.simulations >= 3_000);
    let sizes: Vec<usize> = report.frontier.iter().map(|row| row.0).collect();
    assert!(
        sizes.is_sorted() && sizes.iter().all(|size| *size <= 40),
        "{sizes:?}"
    );
    assert_eq!(report.rows.len(), 4);
    assert!(report.markdown().contains("Average JCT over sjf's: "));
    // What is kept is sealed, and opens as what was judged.
    let back = ScoreFormula::from_json(&one.formula.to_json()).unwrap();
    assert_eq!(back, one.formula);
    assert!(!back.certificates().is_empty());
}
