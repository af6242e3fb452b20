//! The bytes that every preset draws, with its defaults and with each of its keys turned.

use pleach_tests::golden::{Digest, Row, hold};

use super::{GeneratorConfig, generate};
use crate::seed::Seed;

/// Preset, and settings beside its defaults.
const CASES: [(&str, &str); 41] = [
    ("philly-like", ""),
    (
        "philly-like",
        "num_nodes = 3\ngpus_per_node = 4\nnodes_per_rack = 2\nrun_time_s_max = 86400.0\n",
    ),
    (
        "philly-like",
        "borrowing = false\nnum_tenants = 11\nnum_nodes = 100\nload = 1.7\n",
    ),
    (
        "philly-like",
        "bursty = false\ndaily_profile = false\nuser_limits = false\n",
    ),
    (
        "philly-like",
        "gang_max = 4\nrun_length_max = 3\nlocality = { more_nodes = 0.5, cross_rack = 0.25 }\n",
    ),
    ("helios-like", ""),
    (
        "helios-like",
        "num_nodes = 133\nnum_tenants = 15\nload = 0.78\nnum_jobs = 3000\n",
    ),
    (
        "helios-like",
        "cpu_requests = false\nborrowing = false\nnum_nodes = 10\nnum_tenants = 15\n",
    ),
    (
        "helios-like",
        "bursty = false\ndaily_profile = false\nuser_limits = false\ngang_max = 8\nrun_time_s_max = 7200.0\n",
    ),
    ("itp-like", ""),
    (
        "itp-like",
        "num_nodes = 2\ngpus_per_node = 2\nload = 2.0\nrun_time_s_max = 7200.0\n",
    ),
    (
        "itp-like",
        "bursty = false\ndaily_profile = false\nuser_limits = false\ngang_max = 8\n",
    ),
    ("pai-share", ""),
    ("pai-share", "sharing = false\nnum_nodes = 1814\nbursty = false\n"),
    (
        "pai-share",
        "num_nodes = 1\nuser_limits = false\nrun_time_s_max = 7200.0\ndaily_profile = false\n",
    ),
    ("openb-like", ""),
    ("openb-like", "typed_share = 0.0\nnum_nodes = 1213\n"),
    (
        "openb-like",
        "typed_share = 1.0\nnum_nodes = 5\nbursty = false\nuser_limits = false\n",
    ),
    (
        "openb-like",
        "run_time_s_max = 7200.0\ndaily_profile = false\nnodes_per_rack = 3\n",
    ),
    ("acme-like", ""),
    (
        "acme-like",
        "num_nodes = 2\nbursty = false\ndaily_profile = false\n",
    ),
    (
        "acme-like",
        "gang_max = 16\nuser_limits = false\nrun_time_s_max = 7200.0\nload = 1.2\n",
    ),
    ("llm-site", ""),
    (
        "llm-site",
        "gpus = \"h100\"\nelastic = true\npod_oversubscription = 8.0\n",
    ),
    (
        "llm-site",
        "gpus = \"mixed\"\nbursty = false\nuser_limits = false\n",
    ),
    (
        "llm-site",
        "num_nodes = 2\ndaily_profile = false\nrun_time_s_max = 7200.0\ngang_max = 8\n",
    ),
    ("llm-site", "num_jobs = 10000\ngpus = \"h100\"\n"),
    ("alibaba-2026", ""),
    ("alibaba-2026", "num_nodes = 4272\nnum_jobs = 3000\n"),
    (
        "alibaba-2026",
        "num_nodes = 60\nbursty = false\nuser_limits = false\nload = 2.0\n",
    ),
    (
        "alibaba-2026",
        "num_nodes = 3\nrun_time_s_max = 7200.0\ndaily_profile = false\ngang_max = 2\n",
    ),
    ("gavel-multi", ""),
    ("gavel-multi", "run_time_s_max = 86400.0\njobs_per_hour = 3.0\n"),
    ("gavel-single", ""),
    ("synergy-multi", ""),
    ("synergy-single", ""),
    ("sia-philly", ""),
    ("sia-helios", ""),
    ("sia-newtrace", ""),
    ("pollux", ""),
    (
        "pollux",
        "heterogeneous = true\nncf = false\njobs_per_hour = 0.0\nload = 1.5\n",
    ),
];

fn parsed(preset: &str, settings: &str) -> GeneratorConfig {
    toml::from_str(&format!("preset = \"{preset}\"\n{settings}")).unwrap()
}

#[test]
fn every_preset_draws_the_bytes_of_its_golden_file() {
    let mut rows = Vec::new();
    for (preset, settings) in CASES {
        let config = parsed(preset, settings);
        let words = settings.replace('\n', " ").replace('|', "/");
        for seed in [1, 2, 7] {
            let mut workload = generate(&config, Seed(seed)).unwrap();
            if !settings.contains("num_jobs") {
                workload = generate(&config.clone().resized(Some(400), None), Seed(seed)).unwrap();
            }
            let mut digest = Digest::new();
            digest.text(&serde_json::to_string(&workload).unwrap());
            let figures = format!("{} jobs, {} classes", workload.jobs.len(), workload.classes.len());
            rows.push(Row::new(format!("{preset} {words}seed {seed}"), digest, figures));
        }
        let mut digest = Digest::new();
        let text = serde_json::to_string(&config).unwrap();
        digest.text(&text);
        digest.text(&toml::to_string(&config).unwrap());
        rows.push(Row::new(format!("{preset} {words}settings"), digest, text));
    }
    hold("generators", rows);
}
