//! What is killed, sixty times a training and some times each of what else goes on: a search, a sweep, a site's run, what serves
//! ([`killing`]).

use std::path::Path;

use pleach_agents::Checkpoint;

use super::killing::{self, Killed, RUN, compare};
use super::tiny_run::{self, SETTINGS};
use crate::command_line::site::{shorten, synthetic_site};

/// A training of what routes, which goes on where it was stopped.
const ROUTED: &str = "train --workload requests --set num_requests=300 --set replicas=3 --set rate_per_s=36 --set refuse=true \
                      --learner evolution --set train.num_updates=6 --set train.evolution.num_pairs=2 \
                      --set train.network.hidden=8 --set train.network.context=8 --set search.judge_lists=2 \
                      --set search.loads=1 --out run --resume --quiet";

/// Updates that the newest checkpoint holds; None before the first.
fn updates_saved(run: &Path) -> Option<u64> {
    let latest = Checkpoint::latest_good(&run.join("checkpoints")).unwrap();
    assert!(latest.passed_over.is_empty(), "{:?}", latest.passed_over);
    latest.good.map(|(_, checkpoint)| checkpoint.update)
}

fn kill_training(settings: &str, num_kills: usize, seed: u64) {
    Killed {
        lay_out: &|_| (),
        command: &|folder| tiny_run::train(folder, RUN, settings),
        look: &updates_saved,
    }
    .ends_the_same(num_kills, seed);
}

/// Of a command that has no settings of its own.
fn kill(lay_out: &dyn Fn(&Path), line: &str, num_kills: usize, seed: u64) {
    Killed {
        lay_out,
        command: &|folder| {
            let mut command = tiny_run::pleach(folder);
            command.args(line.split_whitespace());
            command
        },
        look: &killing::num_whole,
    }
    .ends_the_same(num_kills, seed);
}

#[test]
fn a_run_killed_at_random_moments_ends_in_the_same_bytes() {
    kill_training(SETTINGS, 24, 1);
}

/// And where the network corrects a heuristic instead of replacing it.
#[test]
fn also_where_several_updates_are_lost_with_each_kill_and_episodes_go_on_over_updates() {
    let settings = SETTINGS
        .replace("checkpoint_every = 1", "checkpoint_every = 6")
        .replace("[train]", "[train]\nrestart_every = 3")
        .replace("warm_start =", "prior =")
        .replace("validate_every = 1", "validate_every = 4");
    kill_training(&settings, 16, 2);
}

#[test]
fn also_with_evolution_strategies() {
    kill_training(&tiny_run::evolution(), 10, 3);
}

#[test]
fn also_with_forks_that_a_checkpoint_holds() {
    let own = "num_lists = 2\nnum_first = 10\nnum_kept = 40\nnum_steps = 4";
    let forks = format!("learner = 'counterfactual'\n[train.counterfactual]\n{own}\n[train.ppo]");
    kill_training(&SETTINGS.replace("[train.ppo]", &forks), 10, 9);
}

#[test]
fn also_a_search_for_a_tree() {
    let line = "distill --search --simulations 60 --num-jobs 20 --quiet --resume --out run";
    kill(&|_| (), line, 6, 5);
}

#[test]
fn also_a_sweep() {
    let grid = "name = 's'\nseeds = 4\n[base]\nworkload = 'Pleach/PhillyGang-v1'\nnum_jobs = 100\n[grid]\nload = [2, 4]\n";
    let lay_out = |folder: &Path| {
        std::fs::write(folder.join("grid.toml"), grid).unwrap();
        let plan = "sweep plan --config grid.toml --out run/sweep.json --quiet";
        tiny_run::succeed(tiny_run::pleach(folder).args(plan.split(' ')));
    };
    kill(&lay_out, "sweep run --manifest run/sweep.json --quiet", 8, 6);
}

#[test]
fn also_a_sites_run_from_its_files_to_its_decision() {
    let lay_out = |folder: &Path| {
        synthetic_site::write(folder, 20.0).unwrap();
        let init = "run site.toml --init sacct.txt --nodes nodes.txt --quiet";
        tiny_run::succeed(tiny_run::pleach(folder).args(init.split(' ')));
        shorten(folder);
    };
    kill(&lay_out, "run site.toml --out run --quiet", 6, 7);
}

#[test]
fn also_a_training_of_what_routes() {
    kill(&|_| (), ROUTED, 6, 8);
}

#[test]
fn checkpoints_amid_episodes_from_which_no_run_goes_on_exactly_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SETTINGS.replace("[train]", "[train]\nrestart_every = 3");
    let output = tiny_run::train(folder.path(), "run", &settings).output().unwrap();
    let said = tiny_run::words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("checkpoint_every = 1") && said.contains("train.restart_every = 3"),
        "{said}"
    );
}

/// A file that is half written when a run is killed may lie in any folder of it.
#[test]
fn half_written_files_go_wherever_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join(RUN);
    let half = |name: &str| {
        let path = run.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"half").unwrap();
    };
    half(".settings.json.7.0.tmp");
    let mut train = tiny_run::pleach(folder.path());
    train.args(ROUTED.split_whitespace());
    tiny_run::succeed(&mut train);
    half(".tree.json.7.1.tmp");
    tiny_run::succeed(&mut train);
    let files = tiny_run::files(&run);
    assert!(
        files
            .iter()
            .all(|file| file.extension().is_none_or(|ending| ending != "tmp")),
        "{files:?}"
    );
    std::fs::remove_dir_all(&run).unwrap();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), RUN, SETTINGS));
    std::fs::remove_file(run.join("artefacts.json")).unwrap();
    half("networks/.network.ckpt.7.0.tmp");
    tiny_run::succeed(&mut tiny_run::train(folder.path(), RUN, SETTINGS));
    let left = tiny_run::files(&run)
        .into_iter()
        .find(|path| path.starts_with(run.join("networks")));
    assert_eq!(left, None);
}

/// Moments that are too short to be met by chance.
#[test]
fn a_kill_before_the_first_checkpoint_or_amid_clearing_up_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let train = |name: &str| tiny_run::succeed(&mut tiny_run::train(folder.path(), name, SETTINGS));
    train("whole");
    train("killed");
    // Validated and logged, half of a line of it, and no checkpoint yet.
    std::fs::remove_file(killed.join("artefacts.json")).unwrap();
    std::fs::remove_dir_all(killed.join("checkpoints")).unwrap();
    for name in ["metrics.jsonl", "histograms.jsonl", "timing.jsonl"] {
        let text = std::fs::read(killed.join(name)).unwrap();
        std::fs::write(killed.join(name), &text[..text.len() - 5]).unwrap();
    }
    std::fs::write(killed.join("network.ckpt.tmp"), b"PLEACHCK").unwrap();
    train("killed");
    compare(&whole, &killed);
    // The last checkpoint written, the one too many not yet removed.
    let (oldest, newest) = (
        "checkpoints/update-00000017.ckpt",
        "checkpoints/update-00000018.ckpt",
    );
    std::fs::copy(killed.join(newest), killed.join(oldest)).unwrap();
    std::fs::write(killed.join("checkpoints/update-00000020.ckpt.tmp"), b"PLEACHCK").unwrap();
    std::fs::remove_file(killed.join("artefacts.json")).unwrap();
    train("killed");
    compare(&whole, &killed);
}

#[test]
fn a_second_process_is_turned_away_with_one_line_until_the_first_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = SETTINGS.replace("num_updates = 20", "num_updates = 1000000");
    let mut first = tiny_run::train(folder.path(), "run", &settings).spawn().unwrap();
    // The process that holds the folder writes this file.
    while !run.join("run.json").exists() {
        assert_eq!(first.try_wait().unwrap(), None, "the first one ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = tiny_run::train(folder.path(), "run", &settings).output().unwrap();
    let said = tiny_run::words(&second);
    assert_eq!(
        (second.status.code(), said.lines().count()),
        (Some(75), 1),
        "{said}"
    );
    assert!(
        said.contains("no other process") && said.contains("--out"),
        "{said}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
    // Nothing has to be cleared away.
    pleach_experiments::run_folder::lock::RunLock::take(&run).unwrap();
}
