//! Training runs as a whole: what they begin as, that they move, repeat themselves, go on, and keep to their constraints.

use std::path::Path;

use pleach_agents::{Checkpoint, CounterfactualConfig, Learner, TrainConfig};
use pleach_env::WorkloadConfig;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig};
use pleach_network::{LearnedPolicy, NetworkConfig, TrainedNetwork};

use crate::door::{BEST_CHECKPOINT, PolicySpec};
use crate::error::Error;
use crate::evaluate::run::Runner;
use crate::evaluate::workload_source::env_of;
use crate::progress::{Progress, Watcher};
use crate::train::constraint::Constraint;
use crate::train::curriculum::Curriculum;
use crate::train::fine_tuning::network_at;
use crate::train::settings::TrainSettings;
use crate::train::validation::Validation;
use crate::train::{CHECKPOINTS, Trained, train};

const LEARNERS: [Learner; 3] = [Learner::PPO, Learner::EVOLUTION, Learner::COUNTERFACTUAL];

#[test]
fn dagger_asks_the_teacher_about_what_its_clone_runs_into() {
    let mut settings = settings(Learner::PPO);
    settings.prior = "none".into();
    settings.warm_start = "sjf".into();
    settings.warm_start_steps = 40;
    let ratio = |rounds: u32| {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings.clone();
        settings.dagger_rounds = rounds;
        let trained = trained(&settings, folder.path());
        let latest = Checkpoint::latest_good(&folder.path().join(CHECKPOINTS)).unwrap();
        (trained.curve[0].ratio, latest.good.unwrap().1.parameters)
    };
    let ((once, first), (corrected, second)) = (ratio(0), ratio(3));
    assert_ne!(first, second, "three rounds taught nothing");
    assert!(
        corrected.is_finite() && corrected < once * 1.1,
        "{corrected} {once}"
    );
}

fn settings(learner: Learner) -> TrainSettings {
    let plain = TrainSettings::default();
    TrainSettings {
        env: env_of("Pleach/Philly-v0", Some(40), Some(2.0)).unwrap(),
        num_envs: 4,
        prior: "sjf-reserve".into(),
        prior_weight: 0.1,
        num_validation: 3,
        train: TrainConfig {
            learner,
            num_updates: 0,
            group_size: 2,
            num_steps: 64,
            horizon_s: 1e6,
            network: NetworkConfig::default(),
            counterfactual: CounterfactualConfig {
                num_lists: 2,
                fork_every: 3,
                // The oldest forks are forgotten before the end.
                num_kept: 60,
                num_first: 10,
                num_steps: 4,
                minibatch_size: 32,
                ..CounterfactualConfig::default()
            },
            ..plain.train
        },
        ..plain
    }
}

fn trained(settings: &TrainSettings, folder: &Path) -> Trained {
    told(settings, folder).0.unwrap()
}

/// The run, and what it noted.
fn told(settings: &TrainSettings, folder: &Path) -> (Result<Trained, Error>, Vec<String>) {
    let validation = Validation::by(&settings.objective, &settings.env, 1, settings.num_validation).unwrap();
    let (sender, notes) = std::sync::mpsc::channel();
    let watcher = Watcher::new(move |progress| {
        if let Progress::Note(line) = progress {
            sender.send(line.to_string()).unwrap();
        }
    });
    let trained = train(settings, &validation, 1, folder, &|| 0.0, &watcher);
    (trained, notes.try_iter().collect())
}

fn latest(folder: &Path) -> Checkpoint {
    let latest = Checkpoint::latest_good(&folder.join(CHECKPOINTS)).unwrap();
    latest.good.unwrap().1
}

/// A learner that moves in each of a few small updates.
pub(super) fn moving(learner: Learner) -> TrainSettings {
    let mut settings = settings(learner);
    settings.checkpoint_every = 1;
    settings.keep_last = 9;
    settings.validate_every = 0;
    settings.train.num_updates = 4;
    settings.train.value_warmup_updates = 0;
    settings.train.evolution.num_pairs = 3;
    settings.train.evolution.sigma = 2.0;
    settings.train.evolution.num_workloads = 2;
    settings
}

/// Trains, forgets what came after an update, and goes on: the end must be the same.
fn goes_on_from(update: u64, settings: &TrainSettings) -> Checkpoint {
    let folder = tempfile::tempdir().unwrap();
    trained(settings, folder.path());
    let end = latest(folder.path());
    for later in update + 1..=settings.train.num_updates {
        std::fs::remove_file(
            folder
                .path()
                .join(format!("{CHECKPOINTS}/update-{later:08}.ckpt")),
        )
        .unwrap();
    }
    trained(settings, folder.path());
    assert_eq!(latest(folder.path()), end);
    end
}

#[test]
fn a_network_that_corrects_a_heuristic_begins_as_that_heuristic_run_for_run() {
    for learner in LEARNERS {
        let (settings, folder) = (settings(learner), tempfile::tempdir().unwrap());
        let network = PolicySpec::network("learned", trained(&settings, folder.path()).policy);
        let both = [PolicySpec::heuristic("sjf-reserve").unwrap(), network];
        let validation = Validation::new(&settings.env, 1, 3).unwrap();
        let runs = Runner::new(&settings.env.sim)
            .run(&validation.instances, &both)
            .unwrap();
        for pair in runs.chunks(2) {
            assert_eq!(pair[0].jct_s, pair[1].jct_s);
        }
    }
}

#[test]
fn the_network_that_is_kept_is_the_best_by_the_objective_whoever_learns() {
    for learner in LEARNERS {
        let mut settings = moving(learner);
        settings.objective = [("makespan_s".to_string(), 1.0), ("utilisation".to_string(), 0.5)].into();
        settings.validate_every = 1;
        let folder = tempfile::tempdir().unwrap();
        let trained = trained(&settings, folder.path());
        let validation =
            Validation::by(&settings.objective, &settings.env, 1, settings.num_validation).unwrap();
        let best = PolicySpec::heuristic(validation.best()).unwrap();
        let kept = PolicySpec::network("network", trained.policy.clone());
        let runs = |one: &PolicySpec| validation.runs(&settings.env, one).unwrap();
        let (kept, base) = (runs(&kept), runs(&best));
        let log_ratios = kept.iter().zip(&base).map(|(own, base)| {
            let ratio = |key: &str| own.metrics[key] / base.metrics[key];
            ratio("makespan_s").ln() - 0.5 * ratio("utilisation").ln()
        });
        let by_hand = (log_ratios.sum::<f64>() / base.len() as f64).exp();
        let said = trained.best().unwrap().ratio;
        // But for the floor under logarithms.
        assert!((said / by_hand - 1.0).abs() < 1e-3, "{said} {by_hand}");
        let least = trained
            .curve
            .iter()
            .map(|point| point.ratio)
            .fold(f64::INFINITY, f64::min);
        assert!(said == least || said == trained.curve[0].ratio);
    }
}

#[test]
fn learners_move_away_from_it_and_repeat_themselves() {
    for learner in LEARNERS {
        let mut settings = settings(learner);
        settings.train.num_updates = 2;
        settings.train.value_warmup_updates = 0;
        settings.train.evolution.num_pairs = 3;
        // So wide that members differ even on a few short lists.
        settings.train.evolution.sigma = 2.0;
        settings.train.evolution.num_workloads = 2;
        let run = || {
            let folder = tempfile::tempdir().unwrap();
            trained(&settings, folder.path());
            let latest = Checkpoint::latest_good(&folder.path().join(CHECKPOINTS)).unwrap();
            latest.good.unwrap().1
        };
        let (first, again) = (run(), run());
        assert_eq!(first, again);
        assert_eq!((first.update, first.contract.prior.is_some()), (2, true));
        // The end of the pointer began at zero, which is no correction at all.
        let layout = pleach_network::Layout::new(first.config.network, first.contract.spaces).unwrap();
        let end = layout
            .entries
            .iter()
            .find(|entry| entry.name == "pointer.out.weight");
        assert!(
            first.parameters[end.unwrap().range.clone()]
                .iter()
                .any(|w| *w != 0.0)
        );
    }
}

#[test]
fn a_curriculum_changes_what_is_learned_and_goes_on_in_its_stage() {
    for learner in LEARNERS {
        let plain = moving(learner);
        let grown = TrainSettings {
            curriculum: Curriculum {
                num_jobs: Some([10, 40]),
                load: Some([0.5, 2.0]),
                num_stages: 3,
                until: 0.75,
            },
            ..plain.clone()
        };
        let grown = goes_on_from(2, &grown);
        assert_ne!(grown.parameters, goes_on_from(2, &plain).parameters);
        // The first stages are a quarter as long, so there is less to decide in them.
        if learner == Learner::EVOLUTION {
            assert!(grown.num_frames < goes_on_from(3, &plain).num_frames);
        }
    }
}

#[test]
fn networks_with_attention_learn_and_go_on_after_a_stop_whoever_learns() {
    for learner in LEARNERS {
        let mut settings = moving(learner);
        settings.train.network.heads = 1;
        assert_ne!(goes_on_from(2, &settings).num_frames, 0);
    }
}

#[test]
fn a_mixture_is_trained_on_and_judged_part_by_part() {
    let part = |num_nodes: u32, load: f64| {
        let config = ProfileConfig {
            num_nodes,
            ..ProfileConfig::default()
        };
        WorkloadConfig::Generate(GeneratorConfig::Profile(config).with(20, load))
    };
    let mut settings = moving(Learner::EVOLUTION);
    settings.env.workload = WorkloadConfig::Mixture(vec![part(2, 1.5), part(6, 3.0)]);
    settings.num_validation = 8;
    let folder = tempfile::tempdir().unwrap();
    trained(&settings, folder.path());
    let validation = Validation::new(&settings.env, 1, 8).unwrap();
    let nodes = validation
        .instances
        .iter()
        .map(|instance| instance.workload.cluster.num_gpus() / 8);
    let expected = validation.parts.iter().map(|part| [2, 6][*part]);
    assert!(nodes.eq(expected), "{:?}", validation.parts);
    assert!(validation.parts.contains(&0) && validation.parts.contains(&1));
    let best = PolicySpec::heuristic(validation.best()).unwrap();
    let (ratio, means) = validation.judge(&settings.env, best).unwrap();
    assert_eq!(ratio, 1.0);
    for part in 0..2 {
        assert_eq!(means[&format!("ratio_to_best_heuristic_part_{part}")], 1.0);
    }
    let metrics = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert!(metrics.contains("eval/ratio_to_best_heuristic_part_1"));
}

#[test]
fn a_network_that_breaks_the_constraint_is_not_kept_and_the_multiplier_grows() {
    let mut settings = moving(Learner::EVOLUTION);
    settings.validate_every = 1;
    settings.constraint = Constraint {
        metrics: [("p99_jct_s".to_string(), 0.5)].into(),
        step: 2.0,
        ..Constraint::default()
    };
    settings.train.num_updates = 1;
    let folder = tempfile::tempdir().unwrap();
    // No network halves the tail of the heuristic that it begins as.
    let (result, _) = told(&settings, folder.path());
    let said = result.unwrap_err().to_string();
    assert!(said.contains("no network kept to the constraint"), "{said}");
    assert!(!folder.path().join(BEST_CHECKPOINT).exists());
    // The present policy of the first generation is the baseline itself: an excess of -ln 0.5 in steps of 2.
    assert_eq!(latest(folder.path()).multipliers, [-2.0 * 0.5_f64.ln()]);
    let metrics = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
    assert!(metrics.contains("losses/multiplier_p99_jct_s") && metrics.contains("eval/excess_p99_jct_s"));
    // The heuristic keeps to its own tail, and what comes after it does so too where it is kept.
    settings.constraint.metrics = [("p99_jct_s".to_string(), 1.0)].into();
    settings.train.num_updates = 4;
    let kept = trained(&settings, tempfile::tempdir().unwrap().path());
    assert_eq!(kept.curve[0].excess, Some(0.0));
    assert!(kept.best().unwrap().excess.unwrap() <= 0.0);
    let end = goes_on_from(2, &settings);
    assert_eq!(end.multipliers.len(), 1);
}

#[test]
fn a_planner_is_imitated_where_candidates_can_show_its_plans_and_refused_where_they_cannot() {
    let mut settings = settings(Learner::PPO);
    settings.prior = "none".into();
    // More at once than the cluster holds, so that orders differ.
    settings.env = env_of("Pleach/GavelMulti-v0", Some(80), Some(10.0)).unwrap();
    // A planner plays on by itself where a clone would be corrected.
    (settings.warm_start_steps, settings.dagger_rounds) = (150, 1);
    let with = |name: &str| TrainSettings {
        warm_start: name.into(),
        ..settings.clone()
    };
    let folders = ["conservative", "sjf"].map(|name| {
        let folder = tempfile::tempdir().unwrap();
        let trained = trained(&with(name), folder.path());
        assert!(trained.curve[0].ratio < 2.0, "{name} {}", trained.curve[0].ratio);
        folder
    });
    let [taught, other] = folders.each_ref().map(|folder| latest(folder.path()).parameters);
    assert_ne!(taught, other);
    for (name, word) in [("las-deal", "stops running jobs"), ("sjff", "sjf")] {
        let said = with(name).validate().unwrap_err().to_string();
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_damaged_checkpoint_that_is_passed_over_is_noted_in_one_line() {
    let (settings, folder) = (moving(Learner::EVOLUTION), tempfile::tempdir().unwrap());
    let (_, notes) = told(&settings, folder.path());
    assert!(notes.is_empty(), "{notes:?}");
    let end = latest(folder.path());
    let newest = folder.path().join(format!("{CHECKPOINTS}/update-00000004.ckpt"));
    std::fs::write(newest, b"PLEACHCK").unwrap();
    let (result, notes) = told(&settings, folder.path());
    assert_eq!((result.is_ok(), notes.len()), (true, 1), "{notes:?}");
    let names = ["update-00000004.ckpt", "cut short", "update-00000003.ckpt"];
    assert!(names.iter().all(|name| notes[0].contains(name)), "{notes:?}");
    assert!(!notes[0].contains('\n'));
    assert_eq!(latest(folder.path()), end);
}

#[test]
fn the_network_that_is_kept_does_not_read_what_never_varied() {
    let (settings, folder) = (moving(Learner::EVOLUTION), tempfile::tempdir().unwrap());
    let before = trained(&settings, folder.path()).policy;
    let path = folder.path().join(BEST_CHECKPOINT);
    let kept = TrainedNetwork::load(&path).unwrap();
    let (h, f) = (before.layout().config.hidden, before.layout().num_features);
    let unread = |parameters: &[f32]| {
        let rows = parameters[..f * h].chunks(h);
        rows.filter(|row| row.iter().all(|weight| *weight == 0.0)).count()
    };
    // One GPU type, no sharing, nothing elastic: some features must be constant there, others cannot be.
    let num_unread = unread(&kept.parameters);
    assert!(num_unread > 0 && num_unread < f, "{num_unread} of {f}");
    assert_eq!(unread(&latest(folder.path()).parameters), 0);
    let again = trained(&settings, folder.path());
    assert_eq!(again.curve.len(), 2);
    assert_eq!(TrainedNetwork::load(&path).unwrap(), kept);
}

#[test]
fn a_network_that_has_met_one_gpu_type_leaves_clusters_with_several_to_the_heuristic() {
    let (settings, folder) = (moving(Learner::EVOLUTION), tempfile::tempdir().unwrap());
    trained(&settings, folder.path());
    // Weights that are large enough to be heard above the heuristic.
    let mut moved = network_at(folder.path()).unwrap();
    moved.parameters = latest(folder.path()).parameters;
    moved.parameters.iter_mut().for_each(|weight| *weight *= 4.0);
    assert!(moved.parameters != network_at(folder.path()).unwrap().parameters);
    assert!(network_at(folder.path()).unwrap().contract.one_type);
    let mut played = |workload: &str, one_type: bool| {
        let env = env_of(workload, Some(40), Some(2.0)).unwrap();
        let validation = Validation::new(&env, 1, 3).unwrap();
        moved.contract.one_type = one_type;
        let network = LearnedPolicy::from_network(&moved).unwrap();
        [
            PolicySpec::heuristic(&settings.prior).unwrap(),
            PolicySpec::network("learned", network),
        ]
        .map(|one| {
            let runs = validation.runs(&env, &one).unwrap();
            runs.into_iter().map(|run| run.jct_s).collect::<Vec<_>>()
        })
    };
    for (workload, one_type, steps_aside) in [
        ("Pleach/GavelMulti-v0", true, true),
        ("Pleach/GavelMulti-v0", false, false),
        ("Pleach/Philly-v0", true, false),
    ] {
        let [heuristic, network] = played(workload, one_type);
        assert_eq!(heuristic == network, steps_aside, "{workload} {one_type}");
    }
}

#[test]
fn a_clone_learns_from_forks_the_same_on_any_number_of_threads() {
    let mut settings = moving(Learner::COUNTERFACTUAL);
    settings.prior = "none".into();
    settings.warm_start = "sjf".into();
    settings.warm_start_steps = 40;
    let on = |num_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads);
        let folder = tempfile::tempdir().unwrap();
        pool.build()
            .unwrap()
            .install(|| trained(&settings, folder.path()));
        let file = folder.path().join(format!("{CHECKPOINTS}/update-00000004.ckpt"));
        // It is a policy too, whatever else is in it.
        let network = TrainedNetwork::load(&file).unwrap();
        assert_eq!(network.parameters, latest(folder.path()).parameters);
        std::fs::read(file).unwrap()
    };
    assert!(on(1) == on(3));
    assert_ne!(goes_on_from(1, &settings).num_frames, 0);
}

#[test]
fn ppo_ends_where_draws_are_no_longer_what_is_deployed() {
    let mut settings = settings(Learner::PPO);
    settings.train.num_updates = 3;
    settings.train.ppo.temperature = 1e3;
    let (folder, env) = (tempfile::tempdir().unwrap(), settings.env.clone());
    let ended = trained(&settings, folder.path());
    assert_eq!((ended.curve.len(), latest(folder.path()).update), (1, 0));
    let validation = Validation::by(&settings.objective, &env, 1, settings.num_validation).unwrap();
    let said = ended.verdict(&settings, &validation).unwrap();
    for words in [
        "Ended after 0 of 3 updates",
        "more than 3 % apart",
        "train.ppo.apart_max",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // Nothing is judged anew where it goes on.
    assert_eq!(trained(&settings, folder.path()).curve, ended.curve);
    settings.train.ppo.apart_max = 0.0;
    let folder = tempfile::tempdir().unwrap();
    trained(&settings, folder.path());
    assert_eq!(latest(folder.path()).update, 3);
}
