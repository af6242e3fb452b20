use super::super::{GeneratorConfig, generate};
use super::*;
use crate::seed::Seed;

fn text(name: &str) -> &'static str {
    PROFILES.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn every_profile_of_the_folder_is_right_says_its_source_and_draws_jobs() {
    for (name, text) in PROFILES {
        let profile = Profile::of_text(name, text).unwrap();
        assert!(profile.source.len() > 80, "{name}: {}", profile.source);
        let config = GeneratorConfig::preset(name).unwrap().resized(Some(20), None);
        assert_eq!(generate(&config, Seed(1)).unwrap().jobs.len(), 20, "{name}");
    }
}

#[test]
fn a_profile_in_a_file_of_a_sites_own_is_a_preset_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let mine = text("itp-like").replace("num_nodes = 16", "num_nodes = 3");
    std::fs::write(&path, mine).unwrap();
    assert!(Profile::is_file(&path) && !Profile::is_file(folder.path()));
    let name = path.to_str().unwrap();
    let config = GeneratorConfig::preset(name).unwrap();
    assert_eq!((config.name(), config.size()), (name, (1000, 0.8)));
    let workload = generate(&config.clone().resized(Some(30), None), Seed(1)).unwrap();
    assert_eq!((workload.jobs.len(), workload.cluster.num_gpus()), (30, 24));
    // Settings name it by its path, and read back.
    let settings = toml::to_string(&config).unwrap();
    assert_eq!(toml::from_str::<GeneratorConfig>(&settings).unwrap(), config);
    let gone = GeneratorConfig::preset("gone.toml").unwrap_err().to_string();
    assert!(gone.contains("philly-like"), "{gone}");
}

#[test]
fn what_is_wrong_in_a_profile_is_named() {
    let refused = |from: &str, to: &str| {
        let text = text("philly-like");
        assert!(text.contains(from), "{from}");
        Profile::of_text("mine.toml", &text.replacen(from, to, 1))
            .unwrap_err()
            .to_string()
    };
    for (from, to, said) in [
        ("sigma = 1.3", "sigma = -1", "arrivals.sigma: allowed is 0 to 10"),
        ("sigma = 1.3", "sgima = 1.3", "unknown field `sgima`"),
        (
            "num_nodes = 16",
            "num_nodes = 0",
            "defaults: config: generator.num_nodes = 0",
        ),
        ("num_nodes = 16", "nodes = 16", "unknown field `nodes`"),
        ("num_nodes = 16", "num_nodes = \"x\"", "num_nodes: invalid type"),
        (
            "gpus = 1, jobs",
            "gpus = 0, jobs",
            "works.any.mix: allowed is GPUs",
        ),
        (
            "seconds = [\n    1, 15",
            "seconds = [\n    15",
            "works.any.run_times: allowed is rising levels",
        ),
        (
            "{ up_to = 3, of = { killed",
            "{ up_to = 1, of = { killed",
            "works.any.ends",
        ),
        ("[1, 0.7095]", "[1, 0.9]", "works.any.runs"),
        ("{ of = 1.43 }", "{ of = 1.0 }", "works.any.runs"),
        (
            "jobs_up_to = [1, 3, 7, 15]",
            "jobs_up_to = [1, 3, 7]",
            "tenants.rows.jobs",
        ),
        ("[[works]]\nname", "[[works]]\nlabel", "unknown field `label`"),
    ] {
        let found = refused(from, to);
        assert!(
            found.contains(said) && found.contains("mine.toml"),
            "{to}: {found}"
        );
    }
    let line = refused("correlation = 0.2", "correlation = ");
    assert!(line.contains("mine.toml, line 3"), "{line}");
}
