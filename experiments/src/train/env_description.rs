//! An environment in words: its id, its cluster and jobs, what a scheduler knows of run times.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, Seed, Source, WorkloadConfig};
use pleach_scheduler::ActionKind;
use pleach_scheduler::policy::CandidateConfig;

/// The registered environment with this workload and this cluster, and the flags that make it so: `--num-jobs 40` where only
/// the number of jobs is another. Candidates, rewards and the length of episodes are a learner's matter and may be others.
#[must_use]
pub fn registered(env: &EnvConfig) -> Option<(&'static str, String)> {
    let Sizes { num_jobs, load } = sizes(&env.workload);
    let ways = [(None, None), (num_jobs, None), (None, load), (num_jobs, load)];
    let found = |(num_jobs, load): (Option<usize>, Option<f64>), id: &'static str| {
        let known = EnvConfig::registered(id).ok()?;
        let workload = known.workload.clone().resized(num_jobs, load);
        let flags = [
            num_jobs.map(|num| format!(" --num-jobs {num}")),
            load.map(|load| format!(" --load {load}")),
        ];
        let is_it = workload == env.workload && known.sim == env.sim;
        is_it.then(|| (id, flags.into_iter().flatten().collect::<String>()))
    };
    let is_alike = |id: &str| {
        let alike = EnvConfig::registered(id).is_ok_and(|known| {
            // A network's contract asks for nothing that the cluster never offers.
            let can = known.sim.capabilities.actions();
            let offered = |config: &CandidateConfig| CandidateConfig {
                actions: config.actions.intersection(can),
                ..*config
            };
            offered(&env.candidates) == offered(&known.candidates)
        });
        u8::from(alike)
    };
    // The fewest flags; where two ids need the same, the one with the same candidates, then the newer, which is listed later.
    let best = |way| {
        let found = EnvConfig::ids().filter_map(|id| found(way, id));
        found.max_by_key(|(id, _)| is_alike(id))
    };
    ways.into_iter().find_map(best)
}

/// One line: `Pleach/Philly-v0: 8 nodes, 64 GPUs, 200 jobs in an episode, load 1.5, run times known exactly`. The cluster is that
/// of one episode; it is left out where episodes differ in it, and where there is no reading the jobs.
#[must_use]
pub fn line(env: &EnvConfig) -> String {
    let name = match (registered(env), &env.workload) {
        (Some((id, flags)), _) => format!("{id}{flags}"),
        (None, WorkloadConfig::Generate(generator)) => format!("{} jobs", generator.name()),
        (None, WorkloadConfig::File { path, .. }) => format!("jobs of {}", path.display()),
        (None, WorkloadConfig::Mixture(parts)) => format!("a mixture of {} workloads", parts.len()),
    };
    let mut words = Vec::new();
    if !matches!(env.workload, WorkloadConfig::Mixture(_)) {
        let episode = Source::open(env).and_then(|source| source.workload(env, Seed(0)));
        if let Ok(episode) = episode {
            let num_nodes: u64 = episode
                .cluster
                .node_groups
                .iter()
                .map(|group| u64::from(group.count))
                .sum();
            words.push(format!("{num_nodes} nodes, {} GPUs", episode.cluster.num_gpus()));
        }
    }
    let sizes = sizes(&env.workload);
    words.extend(sizes.num_jobs.map(|num| format!("{num} jobs in an episode")));
    words.extend(sizes.load.map(|load| format!("load {load}")));
    words.push(match env.sim.estimates {
        EstimateModel::Oracle => "run times known exactly".to_string(),
        EstimateModel::UserLimit { .. } => "of run times only the limits known".to_string(),
        EstimateModel::LogNormal { sigma, bias } => {
            format!("run times known but for an error (lognormal, sigma {sigma}, bias {bias})")
        }
        EstimateModel::History { .. } => "run times guessed from jobs that have ended".to_string(),
    });
    if env.sim.capabilities.can(ActionKind::Preempt) {
        words.push("with preemption".to_string());
    }
    format!("{name}: {}", words.join(", "))
}

/// How a list of one's own is split, in a line; none where there is none, or it cannot be read.
#[must_use]
pub fn split(env: &EnvConfig) -> Option<String> {
    if !env.workload.is_split() {
        return None;
    }
    Source::open(env).ok()?.split_in_words(env)
}

struct Sizes {
    /// Jobs in an episode.
    num_jobs: Option<usize>,
    /// Offered load; none where another key sets how fast jobs arrive.
    load: Option<f64>,
}

/// What is the same for all generators is read from their written form: they share no type.
fn sizes(workload: &WorkloadConfig) -> Sizes {
    let written = serde_json::to_value(workload).unwrap_or_default();
    let table = match workload {
        WorkloadConfig::Generate(_) => &written["generate"],
        WorkloadConfig::File { .. } => &written["file"],
        WorkloadConfig::Mixture(_) => &serde_json::Value::Null,
    };
    let num_jobs = table["num_jobs"].as_u64();
    let has_rate = table["jobs_per_hour"].as_f64().is_some_and(|rate| rate > 0.0);
    Sizes {
        num_jobs: num_jobs.and_then(|num| usize::try_from(num).ok()),
        load: table["load"].as_f64().filter(|load| *load > 0.0 && !has_rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;

    #[test]
    fn an_environment_is_known_by_its_id_and_what_was_changed_in_it() {
        for id in EnvConfig::ids() {
            let env = EnvConfig::registered(id).unwrap();
            assert_eq!(registered(&env), Some((id, String::new())));
        }
        let resized = env_of("Pleach/GavelMulti-v1", Some(40), Some(1.25)).unwrap();
        assert_eq!(
            registered(&resized),
            Some(("Pleach/GavelMulti-v1", " --num-jobs 40 --load 1.25".to_string()))
        );
        // Of two ids that need the same flags, the one with its candidates.
        for id in ["Pleach/GavelMulti-v0", "Pleach/GavelMulti-v1"] {
            let resized = env_of(id, Some(50), Some(2.0)).unwrap();
            assert_eq!(registered(&resized).unwrap().0, id);
        }
        // What a learner may choose among is no other environment; what the cluster can do is.
        let mut other = env_of("Pleach/Philly-v0", None, None).unwrap();
        other.candidates.heads = 5;
        assert_eq!(registered(&other).unwrap().0, "Pleach/Philly-v0");
        other.sim.capabilities.restart_cost_s = 31.0;
        assert_eq!(registered(&other), None);
    }

    #[test]
    fn the_line_says_cluster_jobs_load_and_what_is_known() {
        assert_eq!(
            line(&env_of("Pleach/Philly-v0", Some(50), None).unwrap()),
            "Pleach/Philly-v0 --num-jobs 50: 8 nodes, 64 GPUs, 50 jobs in an episode, load 1.5, run times known exactly"
        );
        let limits = line(&env_of("Pleach/PhillyGang-v1", None, None).unwrap());
        assert!(limits.contains("only the limits known"), "{limits}");
        let nowhere = "[workload.file]\npath = 'nowhere.csv'\nnum_jobs = 9";
        let said = line(&toml::from_str(nowhere).unwrap());
        assert_eq!(
            said,
            "jobs of nowhere.csv: 9 jobs in an episode, run times known exactly"
        );
    }
}
