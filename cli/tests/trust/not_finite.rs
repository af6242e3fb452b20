//! A loss that is not a number stops the run, and says which update and what to do.

use pleach_agents::Checkpoint;

use super::tiny_run::{self, SETTINGS, words};

/// Rates of learning with which the first update moves nothing that a number of 32 bits could show, and the second moves
/// everything out of sight.
const RATES: &str = "\nlearning_rate = 1e-30\nlearning_rate_final = 1e12";

/// The run of `settings` stops with one line that says what is kept and what to do; what is kept can be used.
fn assert_stops(settings: &str, reason: [&str; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = tiny_run::train(folder.path(), "run", settings).output().unwrap();
    let said = words(&output);
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    for word in reason.into_iter().chain(["run/checkpoints"]) {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    let latest = Checkpoint::latest_good(&run.join("checkpoints")).unwrap();
    assert!(latest.passed_over.is_empty());
    let (_, good) = latest.good.unwrap();
    assert!(
        said.contains(&format!("the state after {} updates is kept", good.update)),
        "{said}"
    );
    assert!(good.update > 0);
    // It is not finished, and the same settings fail in the same way.
    assert!(!run.join("artefacts.json").exists());
    let again = tiny_run::train(folder.path(), "run", settings).output().unwrap();
    assert_eq!(words(&again), said);
    // What was best before can be used.
    let evaluate = [
        "evaluate",
        "--policy",
        "sjf,run/network.ckpt",
        "--num-jobs",
        "20",
        "--seeds",
        "1",
        "--quiet",
    ];
    tiny_run::succeed(tiny_run::pleach(folder.path()).args(evaluate));
}

#[test]
fn a_loss_that_is_not_finite_stops_with_one_line_and_the_last_good_state() {
    let reason = ["pleach: update ", "the loss is not finite", "lower learning_rate"];
    assert_stops(
        &SETTINGS.replace("[train.ppo]", &format!("[train.ppo]{RATES}")),
        reason,
    );
}

#[test]
fn so_do_parameters_that_evolution_has_driven_beyond_all_numbers() {
    let section = "[train.evolution]";
    // A policy whose parameters are out of sight is found out by its scores, before there is a loss.
    let reason = [
        "pleach: network on philly-like",
        "a score that is not finite",
        "the state after",
    ];
    assert_stops(
        &tiny_run::evolution().replace(section, &format!("{section}{RATES}")),
        reason,
    );
}
