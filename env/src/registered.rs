//! The registered environments. A change that alters results bumps the version in the id.
//!
//! Those of version 1 are the tasks of the suite: clusters with a queue, where order and placement matter. Those that are
//! realistic are the same tasks in the world that is measured ([`SimConfig::realistic`](crate::SimConfig::realistic)).

use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::heuristics::nearest_of;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ActionKind, Problem};

use crate::config::{EnvConfig, WorkloadConfig};
use crate::error::Error;
use pleach_workloads::estimates::EstimateModel;
use pleach_workloads::generate::{
    GavelConfig, GeneratorConfig, Paper, PolluxConfig, ProfileConfig, SiaConfig, SynergyConfig,
};

/// Lets policies choose one kind of action more.
fn offer(config: &mut EnvConfig, kind: ActionKind) {
    config.candidates.actions = config.candidates.actions.with(kind);
}

type Registered = (&'static str, &'static str, fn() -> EnvConfig);

/// All of them: id, one line, settings.
const ALL: [Registered; 22] = [
    (
        "Pleach/Philly-v0",
        "philly-like gangs on 64 GPUs, offered load 1.5, no preemption",
        philly,
    ),
    (
        "Pleach/PhillyPreempt-v0",
        "the same with preemption at a cost of 30 s",
        philly_preempt,
    ),
    (
        "Pleach/PhillyShare-v0",
        "the same without preemption, but two jobs may run on the same GPUs (MPS)",
        philly_share,
    ),
    (
        "Pleach/GavelMulti-v0",
        "gangs of the Gavel mix on three GPU types, no preemption",
        gavel_multi,
    ),
    (
        "Pleach/PhillyGang-v1",
        "philly-like gangs on 64 GPUs with a queue, of which only the time limits are known, no preemption",
        philly_gang,
    ),
    (
        "Pleach/HeliosTenants-v1",
        "helios-like gangs of five tenants with quotas on 128 GPUs, no preemption",
        helios_tenants,
    ),
    (
        "Pleach/GavelMulti-v1",
        "the Gavel mix on three GPU types with a queue, no preemption",
        gavel_queue,
    ),
    (
        "Pleach/GavelShare-v1",
        "the same, and two jobs may run on the same GPUs (MPS) as Gavel measured them",
        gavel_share,
    ),
    (
        "Pleach/PhillyShare-v1",
        "philly-like gangs with a queue; two jobs may run on the same GPUs (MPS), no preemption",
        philly_share_queue,
    ),
    (
        "Pleach/Synergy-v1",
        "jobs that differ in the CPU cores they can use, no preemption",
        synergy,
    ),
    (
        "Pleach/Elastic-v1",
        "jobs of Pollux that run on any number of GPUs, chosen at their start, no preemption",
        elastic,
    ),
    (
        "Pleach/MixedIdeal-v0",
        "one of six kinds of jobs at load 2, stopped and moved at no cost, sharing GPUs (MPS); run times are known",
        mixed_ideal,
    ),
    (
        "Pleach/MixedRealistic-v3",
        "the same in the realistic world: starts, memory and checkpoints by the model, failures, guessed run times",
        || realistic(mixed_ideal()),
    ),
    (
        "Pleach/PhillyGangRealistic-v2",
        "Pleach/PhillyGang-v1 in the realistic world: links, starts and memory by the model, failures, wrong speeds",
        || realistic(philly_gang()),
    ),
    (
        "Pleach/HeliosTenantsRealistic-v2",
        "Pleach/HeliosTenants-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(helios_tenants()),
    ),
    (
        "Pleach/GavelMultiRealistic-v2",
        "Pleach/GavelMulti-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(gavel_queue()),
    ),
    (
        "Pleach/GavelShareRealistic-v2",
        "Pleach/GavelShare-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(gavel_share()),
    ),
    (
        "Pleach/PhillyShareRealistic-v2",
        "Pleach/PhillyShare-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(philly_share_queue()),
    ),
    (
        "Pleach/SynergyRealistic-v2",
        "Pleach/Synergy-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(synergy()),
    ),
    (
        "Pleach/ElasticRealistic-v2",
        "Pleach/Elastic-v1 in the realistic world: links, starts and memory by the model, failures, guessed run times",
        || realistic(elastic()),
    ),
    (
        "Pleach/LlmSite-v1",
        "large-model jobs on 256 H100 with rails, starts and memory by the model, nodes that fail; run times are guessed",
        || llm_site("h100"),
    ),
    (
        "Pleach/LlmSiteTypes-v1",
        "the same on 128 B200 and 128 H200, starts and memory by the model",
        llm_site_types,
    ),
];

impl EnvConfig {
    /// What speed is measured in: philly-like gangs at load 1.5 on 256 GPUs, so that the queue grows; not registered,
    /// because no policy is trained in it. With preemption decision points offer many candidates.
    #[must_use]
    pub fn busy(preemption: bool) -> EnvConfig {
        let mut config = EnvConfig {
            workload: WorkloadConfig::Generate(GeneratorConfig::Profile(ProfileConfig {
                num_jobs: 2000,
                num_nodes: 32,
                load: 1.5,
                run_time_s_max: 86_400.0,
                ..ProfileConfig::default()
            })),
            ..EnvConfig::default()
        };
        config.sim.capabilities.grant(ActionKind::Preempt, preemption);
        config
    }

    /// The settings registered under an id.
    ///
    /// # Errors
    /// An unknown id; the error lists the known ones.
    pub fn registered(id: &str) -> Result<EnvConfig, Error> {
        match ALL.iter().find(|(known, ..)| *known == id) {
            Some((_, _, config)) => Ok(config()),
            None => {
                let known: Vec<&str> = EnvConfig::ids().collect();
                let nearest = nearest_of(&known, id).unwrap_or_default();
                let hint = format!("did you mean {nearest}?");
                Err(Error::Problem(Problem::new("env id", id, known.join(", "), hint)))
            }
        }
    }

    /// All registered ids.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(id, ..)| *id)
    }

    /// What a registered environment is, in one line.
    #[must_use]
    pub fn describe(id: &str) -> Option<&'static str> {
        ALL.iter()
            .find(|(known, ..)| *known == id)
            .map(|(_, line, _)| *line)
    }
}

fn philly_jobs() -> ProfileConfig {
    ProfileConfig {
        num_jobs: 200,
        num_nodes: 8,
        gpus_per_node: 8,
        nodes_per_rack: 4,
        load: 1.5,
        run_time_s_max: 86_400.0,
        ..ProfileConfig::default()
    }
}

fn philly() -> EnvConfig {
    EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Profile(philly_jobs())),
        ..EnvConfig::default()
    }
}

fn philly_preempt() -> EnvConfig {
    let mut config = philly();
    config.sim.capabilities.grant(ActionKind::Preempt, true);
    config
}

fn philly_share() -> EnvConfig {
    let mut config = philly();
    config.sim.capabilities.sharing = Sharing::Mps;
    offer(&mut config, ActionKind::Share);
    config
}

fn gavel_multi() -> EnvConfig {
    EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig {
            num_jobs: 200,
            load: 1.0,
            ..GavelConfig::default()
        }))),
        ..EnvConfig::default()
    }
}

fn philly_queue() -> WorkloadConfig {
    WorkloadConfig::Generate(GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 300,
        load: 2.5,
        ..philly_jobs()
    }))
}

fn philly_gang() -> EnvConfig {
    let mut config = EnvConfig {
        workload: philly_queue(),
        ..EnvConfig::default()
    };
    config.sim.estimates = EstimateModel::UserLimit { default_s: 86_400.0 };
    config
}

fn helios_tenants() -> EnvConfig {
    EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Profile(ProfileConfig {
            num_jobs: 300,
            load: 1.5,
            run_time_s_max: 604_800.0,
            ..ProfileConfig::named("helios-like")
        })),
        ..EnvConfig::default()
    }
}

fn gavel_queue() -> EnvConfig {
    let mut config = EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig {
            num_jobs: 300,
            load: 1.5,
            ..GavelConfig::default()
        }))),
        ..EnvConfig::default()
    };
    offer(&mut config, ActionKind::WaitForType);
    config
}

fn philly_share_queue() -> EnvConfig {
    let mut config = EnvConfig {
        workload: philly_queue(),
        ..EnvConfig::default()
    };
    config.sim.capabilities.sharing = Sharing::Mps;
    offer(&mut config, ActionKind::Share);
    config
}

fn gavel_share() -> EnvConfig {
    let mut config = gavel_queue();
    config.sim.capabilities.sharing = Sharing::Mps;
    offer(&mut config, ActionKind::Share);
    config
}

fn synergy() -> EnvConfig {
    let mut config = EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Paper(Paper::SynergyMulti(SynergyConfig {
            num_jobs: 300,
            num_nodes: 8,
            load: 2.0,
            ..SynergyConfig::default()
        }))),
        ..EnvConfig::default()
    };
    offer(&mut config, ActionKind::GrantCores);
    config
}

fn elastic() -> EnvConfig {
    let mut config = EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Paper(Paper::Pollux(PolluxConfig {
            jobs_per_hour: None,
            load: 1.5,
            ..PolluxConfig::default()
        }))),
        ..EnvConfig::default()
    };
    offer(&mut config, ActionKind::Sizes);
    config
}

/// The kinds of jobs and the conditions of the tournament, 200 jobs at load 2, with all that a policy may do.
fn mixed_ideal() -> EnvConfig {
    let kinds = [
        GeneratorConfig::Profile(philly_jobs()),
        GeneratorConfig::Profile(ProfileConfig::named("helios-like")),
        GeneratorConfig::Paper(Paper::SiaPhilly(SiaConfig::default())),
        GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig::default())),
        GeneratorConfig::Paper(Paper::SynergyMulti(SynergyConfig::default())),
        GeneratorConfig::Paper(Paper::Pollux(PolluxConfig::default())),
    ];
    let parts = kinds.map(|kind| WorkloadConfig::Generate(kind.resized(Some(200), Some(2.0))));
    let mut config = EnvConfig {
        workload: WorkloadConfig::Mixture(parts.into()),
        ..EnvConfig::default()
    };
    let can = &mut config.sim.capabilities;
    can.grant(ActionKind::Preempt, true);
    can.sharing = Sharing::Mps;
    can.overheads = Some(Overheads::ZERO);
    for kind in [
        ActionKind::Share,
        ActionKind::WaitForType,
        ActionKind::GrantCores,
        ActionKind::Sizes,
    ] {
        offer(&mut config, kind);
    }
    config
}

/// A site of today with a queue. Half of the GPU time of `llm-site` is that of a few long jobs, which a list of some hours mostly
/// lacks. So the load is 5 by the profile's mean job, with which these lists fill the cluster while jobs come.
fn llm_site(gpus: &str) -> EnvConfig {
    EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::Profile(ProfileConfig {
            num_jobs: 600,
            num_nodes: 32,
            gpus: gpus.into(),
            gang_max: Some(128),
            load: 5.0,
            run_time_s_max: 86_400.0,
            ..ProfileConfig::named("llm-site")
        })),
        sim: EnvConfig::default().sim.realistic(false),
        ..EnvConfig::default()
    }
}

fn llm_site_types() -> EnvConfig {
    let mut config = llm_site("b200-h200");
    offer(&mut config, ActionKind::WaitForType);
    config
}

/// The same in the world that is measured.
fn realistic(mut config: EnvConfig) -> EnvConfig {
    config.sim = config.sim.realistic(false);
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use pleach_scheduler::cluster::moved;
    use pleach_scheduler::physics::storage::Storage;
    use pleach_workloads::generate::generate;

    #[test]
    fn a_start_costs_what_the_words_of_its_environment_say() {
        let mut num_costs = 0;
        for (id, words, config) in ALL {
            let EnvConfig { workload, sim, .. } = config();
            if sim.capabilities.overheads == Some(Overheads::ByClass) {
                assert!(words.contains("by the model"), "{id}: {words}");
                num_costs += 1;
                continue;
            }
            let (Some(overheads), WorkloadConfig::Mixture(kinds)) = (sim.capabilities.overheads, workload)
            else {
                continue;
            };
            for kind in kinds {
                let WorkloadConfig::Generate(kind) = kind else {
                    panic!("{id} has another source than generators")
                };
                for class in generate(&kind, Seed(1)).unwrap().classes {
                    assert_eq!(class.restart_cost_s, None, "{id}: {}", class.name);
                    let job = moved(&class, 1, Storage::SHARED);
                    let said = match overheads.start_s(job) {
                        0.0 => "at no cost".to_string(),
                        cost_s => format!("each start costs {cost_s} s"),
                    };
                    assert!(words.contains(&said), "{id}: {words}; {} {said}", class.name);
                    assert_eq!(overheads.migration_s(job, 0), overheads.start_s(job), "{id}");
                    num_costs += 1;
                }
            }
        }
        assert!(num_costs > 40, "only {num_costs} classes were looked at");
    }

    #[test]
    fn a_name_that_is_misspelt_is_refused_with_the_nearest_id() {
        for (name, nearest) in [
            ("Pleach/GavelMulti-v9", "Pleach/GavelMulti-v0"),
            ("gavelshare", "Pleach/GavelShare-v1"),
            ("Pleach/philly-v0", "Pleach/Philly-v0"),
            ("Pleach/GavelMultiRealistic-v1", "Pleach/GavelMultiRealistic-v2"),
            ("Pleach/MixedRealistic-v2", "Pleach/MixedRealistic-v3"),
        ] {
            let text = EnvConfig::registered(name).unwrap_err().to_string();
            assert!(text.contains(&format!("did you mean {nearest}?")), "{text}");
        }
    }

    #[test]
    fn every_registered_environment_is_the_same_after_a_file() {
        for (id, _, config) in ALL {
            let text = toml::to_string(&config()).unwrap();
            assert_eq!(toml::from_str::<EnvConfig>(&text).unwrap(), config(), "{id}");
        }
    }
}
