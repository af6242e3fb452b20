//! What a network policy file knows of its network, in words.

use pleach_env::EnvConfig;
use pleach_network::TrainedNetwork;
use pleach_scheduler::policy::CandidateConfig;

use crate::train::env_description;

/// Characters of an environment that this version cannot read.
const TEXT_LEN_MAX: usize = 200;

/// Some lines: where it was trained, what it chooses among, which policy it corrects, its size, and how it was learnt.
#[must_use]
pub fn text(trained: &TrainedNetwork) -> String {
    let (contract, provenance) = (&trained.contract, &trained.provenance);
    let trained_on = match serde_json::from_str::<EnvConfig>(&contract.trained_on) {
        Ok(env) => env_description::line(&env),
        Err(_) => contract.trained_on.chars().take(TEXT_LEN_MAX).collect(),
    };
    let decides = match &contract.prior {
        Some(prior) => format!("corrects {} (prior_weight {})", prior.policy, prior.weight),
        None => "alone".to_string(),
    };
    let standby = contract.standby.as_ref().map(|standby| {
        let (policy, ratio) = (&standby.policy, standby.pending_gpus_ratio);
        format!("; {policy} decides while the queue asks for less than {ratio} x all GPUs")
    });
    let wide_gangs = contract.wide_gangs.as_ref().map(|wide| format!("; {wide}"));
    let unopposed = if contract.unopposed_starts {
        "; makes unopposed starts"
    } else {
        ""
    };
    let decides = [
        decides,
        standby.unwrap_or_default(),
        wide_gangs.unwrap_or_default(),
        unopposed.to_owned(),
    ]
    .concat();
    let elsewhere = match (contract.one_type, &contract.prior) {
        (true, Some(prior)) => format!("no: it has met one, and leaves several to {}", prior.policy),
        (true, None) => "no: it has met one".to_string(),
        (false, _) => "yes".to_string(),
    };
    let network = trained.config;
    let learner = match provenance.learner.as_str() {
        "ppo" => "PPO",
        "evolution" => "evolution strategies",
        "" => "unknown",
        other => other,
    };
    [
        ("trained on", trained_on),
        ("decides", decides),
        ("candidates", candidates(&contract.candidates)),
        ("several GPU types", elsewhere),
        (
            "network",
            match &trained.graph {
                None => format!(
                    "hidden {}, context {}, heads {}; {} parameters",
                    network.hidden,
                    network.context,
                    network.heads,
                    trained.parameters.len()
                ),
                Some(graph) => format!(
                    "{} operators; {} parameters",
                    graph.nodes.len(),
                    trained.parameters.len()
                ),
            },
        ),
        (
            "learner",
            format!(
                "{learner}, {} of {} updates, {} decisions, seed {}",
                provenance.update, provenance.num_updates, provenance.num_frames, provenance.seed
            ),
        ),
        ("feature schema", contract.schema_hash.clone()),
    ]
    .map(|(name, value)| format!("{name}: {value}"))
    .join("\n")
}

/// What it chooses among.
fn candidates(config: &CandidateConfig) -> String {
    let jobs = format!(
        "the first {} jobs of each order, the first {} that fit",
        config.heads, config.fitting
    );
    let mut words = vec![jobs];
    words.extend(config.templates.then(|| "all placements".to_owned()));
    words.extend(config.actions.iter().map(|kind| kind.phrase().to_owned()));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::train::fine_tuning::network_at;

    #[test]
    fn a_reference_network_says_where_it_comes_from_and_what_it_is() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference");
        let said = text(&network_at(&folder.join("PhillyGang-v1.ckpt")).unwrap());
        for words in [
            "trained on: Pleach/PhillyGang-v1: 8 nodes, 64 GPUs, 300 jobs",
            "decides: corrects ",
            "; gpu-time-reserve (gpu-time where run times are guessed) decides where jobs have more than 8 nodes, or more than 20 % of all GPUs",
            "; makes unopposed starts",
            "candidates: the first ",
            "several GPU types: no: it has met one",
            "hidden 16, context 16, heads 0; ",
            "learner: evolution strategies, ",
            "feature schema: ",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
