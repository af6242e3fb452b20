//! Scores of every reference network and tree along its own schedule of its environment.

use std::path::Path;

use pleach_env::{Env, EnvConfig, ObservationMut};
use pleach_network::LearnedPolicy;
use pleach_scheduler::policy::Policy;
use pleach_scheduler::tree::{Tree, TreePolicy};

use pleach_tests::golden::{Digest, Row, hold};

use super::columns::reference_files;

const NUM_POINTS: usize = 200;
const SEED: u64 = 11;

fn play(path: &Path) -> Row {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let id = format!(
        "Pleach/{}",
        ["-longer", "-standby", "-tree"]
            .iter()
            .fold(name, |name, end| name.trim_end_matches(end))
    );
    // Networks keep the names of the environments in which they learned.
    let id = id
        .replace("Realistic-v0", "Realistic-v2")
        .replace("LlmSite-v0", "LlmSite-v1");
    let mut policy: Box<dyn Policy> = match name.ends_with("-tree") {
        true => Box::new(TreePolicy::new(Tree::load(path).unwrap())),
        false => Box::new(LearnedPolicy::load(path).unwrap()),
    };
    let mut env = Env::new(EnvConfig::registered(&id).unwrap()).unwrap();
    let spaces = env.spaces();
    let mut global = vec![0.0; spaces.num_global];
    let mut candidates = vec![0.0; spaces.num_candidates * spaces.num_features];
    let mut mask = vec![true; spaces.num_candidates];
    macro_rules! buffers {
        () => {
            ObservationMut {
                global: &mut global,
                candidates: &mut candidates,
                mask: &mut mask,
            }
        };
    }
    env.reset(SEED, buffers!()).unwrap();
    let mut digest = Digest::new();
    let (mut num_holds, mut sum) = (0, 0.0);
    for point in 0..NUM_POINTS {
        let mut scores = vec![0.0; spaces.num_candidates];
        env.scores_of(&mut policy, &mut scores).unwrap();
        let choice = env.choice_of(&mut policy).unwrap();
        digest.f32s(&scores);
        digest.word(choice as u64);
        num_holds += usize::from(choice == 0);
        sum += f64::from(scores[choice]);
        if env.step(choice, buffers!()).unwrap().terminated {
            env.reset(SEED + point as u64, buffers!()).unwrap();
        }
    }
    let figures = format!(
        "{NUM_POINTS} points, {num_holds} holds, mean score of the choice {:.4}",
        sum / NUM_POINTS as f64
    );
    Row::new(name, digest, figures)
}

#[test]
fn every_reference_network_scores_as_it_did() {
    let mut files = reference_files();
    files.retain(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".ckpt") || name.ends_with("-tree.json")
    });
    hold("networks", files.iter().map(|path| play(path)).collect());
}
