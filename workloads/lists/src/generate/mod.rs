//! Workloads drawn from published figures, so that training and tests need no data files.
//!
//! A [`GeneratorConfig`] names a preset and its parameters; [`generate`] draws a workload from it and one seed. The
//! offered load is met exactly: run times are drawn first, then the arrivals are laid over the span in which that work
//! makes the wanted load. What each preset embeds, from where, and how closely it is held: lab/notes/generator-fits.md.
//!
//! Not here: correlations that no source publishes.

#[cfg(test)]
mod acme_tests;
#[cfg(test)]
mod alibaba_tests;
mod arrivals;
mod draw;
mod even;
mod from_profile;
mod gavel;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod helios_tests;
#[cfg(test)]
mod itp_tests;
mod lay_out;
mod limits;
#[cfg(test)]
mod llm_site_tests;
#[cfg(test)]
#[path = "./tests/measure.rs"]
mod measure;
mod mix;
#[cfg(test)]
mod openb_tests;
mod outcomes;
mod own;
#[cfg(test)]
mod pai_tests;
mod paper;
#[cfg(test)]
mod philly_tests;
mod poisson;
pub mod pollux;
mod presets;
mod profile;
mod profile_config;
mod profile_faults;
mod profile_file;
mod quantiles;
mod rate;
mod require;
mod sia;
mod site;
mod synergy;

pub use gavel::GavelConfig;
pub use own::{OwnConfig, OwnGenerator, own};
pub use paper::Paper;
pub use pollux::PolluxConfig;
pub use presets::{GeneratorConfig, register};
pub use profile::Profile;
pub use profile_config::ProfileConfig;
pub use sia::SiaConfig;
pub use synergy::{SynergyArrivals, SynergyConfig, SynergyRequest};

pub(crate) use draw::unit;

use draw::pick;
use require::{require, span_for};

use super::Workload;
use crate::Error;
use crate::seed::Seed;

/// Draws a workload; the same configuration and seed give the same workload.
///
/// ```
/// use pleach_workloads::Seed;
/// use pleach_workloads::generate::{GeneratorConfig, generate};
///
/// let config = GeneratorConfig::preset("philly-like")?.with(200, 0.9);
/// let workload = generate(&config, Seed(7))?;
/// assert_eq!(workload.jobs.len(), 200);
/// assert!((workload.offered_load() - 0.9).abs() < 1e-3);
/// # Ok::<(), pleach_workloads::Error>(())
/// ```
///
/// # Errors
/// Parameters out of range, or a load so low that the clock would run out.
pub fn generate(config: &GeneratorConfig, seed: Seed) -> Result<Workload, Error> {
    config.validate()?;
    let mut workload = match config {
        GeneratorConfig::Profile(config) => from_profile::generate(config, seed)?,
        GeneratorConfig::Paper(paper) => paper.generate(seed)?,
    };
    if !matches!(config, GeneratorConfig::Paper(Paper::Own(_))) {
        workload.cluster.site_fabric = config.site_fabric().map(str::to_owned);
    }
    workload.validate()?;
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_read_from_toml_and_unknown_keys_are_refused() {
        let parsed: GeneratorConfig = toml::from_str("preset = \"philly-like\"\nnum_jobs = 7\n").unwrap();
        let GeneratorConfig::Profile(config) = &parsed else {
            panic!("{parsed:?}");
        };
        assert_eq!((config.num_jobs, config.num_nodes), (7, 16));
        assert!(toml::from_str::<GeneratorConfig>("preset = \"philly-like\"\njobs = 7\n").is_err());
        assert!(toml::from_str::<GeneratorConfig>("preset = \"gavel\"\n").is_err());
        for name in GeneratorConfig::presets() {
            let config = GeneratorConfig::preset(name).unwrap();
            assert_eq!(config.name(), name);
            let text = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<GeneratorConfig>(&text).unwrap(), config);
        }
        assert!(GeneratorConfig::preset("x").is_err());
    }

    #[test]
    fn every_preset_repeats_per_seed_and_meets_its_load() {
        for name in GeneratorConfig::presets() {
            let config = GeneratorConfig::preset(name).unwrap().with(300, 0.85);
            let first = generate(&config, Seed(5)).unwrap();
            assert_eq!(first, generate(&config, Seed(5)).unwrap());
            assert_ne!(first, generate(&config, Seed(6)).unwrap());
            assert_eq!(first.jobs.len(), 300);
            // Three classes of Gavel's cannot run on K80, and its lists are laid by the mean over all classes.
            let near = if name.starts_with("gavel") { 5e-3 } else { 1e-3 };
            assert!(
                (first.offered_load() - 0.85).abs() < near,
                "{name} {}",
                first.offered_load()
            );
        }
    }

    #[test]
    fn a_preset_with_a_rate_keeps_it_unless_a_load_is_given() {
        let sia = GeneratorConfig::preset("sia-philly").unwrap();
        let longer = sia.clone().resized(Some(2000), None);
        let hours = generate(&longer, Seed(1)).unwrap().arrival_span_s() / 3600.0;
        assert!(
            (hours / 100.0 - 1.0).abs() < 0.06,
            "2,000 jobs at 20 jobs/h in {hours} h"
        );
        let loaded = generate(&sia.resized(None, Some(2.0)), Seed(1)).unwrap();
        assert_eq!(loaded.jobs.len(), 160);
        assert!((loaded.offered_load() - 2.0).abs() < 1e-3);
    }

    #[test]
    fn without_bursts_and_profile_arrivals_are_poisson() {
        // Of a Poisson process the hourly counts have variance over mean 1 and no correlation.
        let calm = ProfileConfig {
            num_jobs: 30_000,
            bursty: false,
            daily_profile: false,
            ..ProfileConfig::named("itp-like")
        };
        let hours = measure::hourly(&generate(&GeneratorConfig::Profile(calm), Seed(1)).unwrap());
        measure::assert_in("variance over mean", hours.variance_over_mean, 0.9..=1.1);
        measure::assert_in("lag-1 correlation", hours.correlation, -0.05..=0.05);
    }

    #[test]
    fn cuts_of_the_run_time_hold_in_every_preset_that_has_them() {
        for name in GeneratorConfig::presets() {
            let cut = format!("preset = \"{name}\"\nnum_jobs = 400\nrun_time_s_max = 7200.0\n");
            let config: GeneratorConfig = toml::from_str(&cut).unwrap();
            let workload = generate(&config, Seed(2)).unwrap();
            let longest = workload.jobs.iter().map(|job| job.run_time_s).fold(0.0, f64::max);
            assert!(longest <= 7200.0 * 1.000_001, "{name}: {longest}");
        }
    }

    #[test]
    fn only_sites_of_today_know_the_size_of_a_models_state_and_the_links_of_their_cluster() {
        // docs/gpu-model.md and lab/notes/tournament.md say so of all others.
        for name in GeneratorConfig::presets() {
            let workload = generate(&GeneratorConfig::preset(name).unwrap().with(20, 1.0), Seed(1)).unwrap();
            let of_today = ["llm-site", "alibaba-2026"].contains(&name);
            let knows = |class: &pleach_scheduler::cluster_spec::ModelClass| class.state_gib > 0.0;
            assert!(
                workload.classes.iter().all(|class| knows(class) == of_today),
                "{name}"
            );
            assert_eq!(workload.cluster.fabric.is_some(), of_today, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn small_workloads_of_any_preset_are_valid_and_fit_their_cluster(
            preset in 0..GeneratorConfig::presets().count(),
            num_jobs in 1_usize..60,
            load in 0.1_f64..5.0,
            seed in proptest::prelude::any::<u64>(),
        ) {
            let config = GeneratorConfig::preset(GeneratorConfig::presets().nth(preset).unwrap()).unwrap();
            let workload = generate(&config.with(num_jobs, load), Seed(seed)).unwrap();
            proptest::prop_assert_eq!(workload.jobs.len(), num_jobs);
            for job in &workload.jobs {
                let class = &workload.classes[usize::from(job.class)];
                proptest::prop_assert!(site::holds(&workload.cluster, class, job.num_gpus, &job.resources));
            }
        }
    }
}
