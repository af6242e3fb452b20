use std::collections::BTreeSet;

use pleach_scheduler::physics::links::Fabric;

use super::table::NAMES;
use super::*;
use crate::generate::{GeneratorConfig, generate};

#[test]
fn every_generator_gives_every_job_the_facts_of_a_class() {
    for name in GeneratorConfig::presets() {
        let config = GeneratorConfig::preset(name).unwrap().with(300, 1.0);
        let mut workload = generate(&config, Seed(3)).unwrap();
        let given = workload.clone();
        let filled = workload.fill_class_facts(true);
        assert_eq!(
            (filled.num_unknown, filled.num_known + filled.num_assumed),
            (0, 300),
            "{name}"
        );
        workload.validate().unwrap();
        let mut states = BTreeSet::new();
        for (job, before) in workload.jobs.iter().zip(&given.jobs) {
            let class = &workload.classes[usize::from(job.class)];
            states.insert(class.state_gib.to_bits());
            assert!(
                class.state_gib > 0.0 && class.gpu_memory_gib > 0.0,
                "{name}: {}",
                class.name
            );
            let smallest = workload.cluster.gpu_types.iter().zip(&class.speed);
            let smallest = smallest
                .filter(|(_, speed)| **speed > 0.0)
                .map(|(gpu, _)| gpu.memory_gib);
            assert!(
                class.gpu_memory_gib <= smallest.fold(f64::INFINITY, f64::min),
                "{name}"
            );
            // What the job is otherwise stays: a gang that spreads loses by links what it lost by a factor for all.
            let was = &given.classes[usize::from(before.class)];
            assert_eq!(
                (&class.speed, class.locality, &class.elastic),
                (&was.speed, was.locality, &was.elastic)
            );
            let same = crate::JobSpec {
                class: before.class,
                ..job.clone()
            };
            assert_eq!(same, *before);
        }
        assert!(states.len() > 2, "{name}: one size for all");
        // Once more changes nothing.
        let once = workload.clone();
        workload.fill_class_facts(true);
        assert!(workload == once, "{name}");
    }
}

#[test]
fn what_a_list_says_stays_and_of_a_strange_name_nothing_is_assumed() {
    let config = GeneratorConfig::preset("synergy-multi").unwrap().with(500, 1.0);
    let mut workload = generate(&config, Seed(1)).unwrap();
    for class in &mut workload.classes {
        class.name = format!("ours {}", class.name);
    }
    workload.classes[0].name = "vgg16".into();
    workload.classes[0].state_gib = 7.0;
    workload.classes[0].restart_cost_s = Some(3.0);
    let given = workload.clone();
    let filled = workload.fill_class_facts(true);
    assert!(filled.num_known > 0 && filled.num_unknown > 0 && filled.num_assumed == 0);
    let vgg = &workload.classes[0];
    assert_eq!((vgg.state_gib, vgg.restart_cost_s), (7.0, Some(3.0)));
    assert!((vgg.host_memory_gib - 16.0 / GIB_GB).abs() < 1e-9);
    assert!(vgg.gpu_memory_gib > 11.0 && vgg.checkpoint_interval_s == Some(1200.0));
    assert_eq!(workload.classes[1..], given.classes[1..]);
}

#[test]
fn names_of_published_lists_find_their_row() {
    for (name, row) in [
        ("ResNet-18 (batch size 64) x1", "resnet18-cifar"),
        ("ResNet-50 (batch size 64) x8", "resnet50-imagenet"),
        ("resnet50-imagenet", "resnet50-imagenet"),
        ("LM (batch size 20) x4", "deepspeech2-asr"),
        ("bert_large", "bert-large"),
        ("GPT2-1.5B", "gpt2-1.5b"),
        ("LLaMA2-7B", "llama-8b"),
        ("eval-70b", "eval-70b"),
        ("G2|T4: dqn-atari", "dqn-atari"),
    ] {
        assert_eq!(facts_of(name).map(|facts| facts.name), Some(row), "{name}");
    }
    assert_eq!(facts_of("any"), None);
    // Every name leads to a row, and so does every model of a mix.
    for [beginning, row] in NAMES.iter().copied() {
        assert_eq!(row_of(row).name, row, "{beginning}");
    }
    for (word, up_to, models) in MIXES.iter() {
        for name in models {
            assert_eq!(row_of(name).name, *name, "{word} {up_to}");
        }
    }
}

#[test]
fn a_checkpoint_has_the_published_size() {
    // BLOOM: 176,000 million parameters, 2.3 TB with 13 bytes; Llama 3 405B at 14: 5.7 TB.
    let of = |name: &str| row_of(name).state_gb();
    assert!((of("llama-405b") - 5682.0).abs() < 1.0);
    assert!((of("llama-8b") - 112.42).abs() < 0.01);
    assert!((of("bert-base") - 1.54).abs() < 0.01);
    assert!((of("llama-8b-lora") - 0.24).abs() < 0.01);
}

#[test]
fn every_generated_list_has_the_links_of_its_site() {
    let fabrics = [
        ("philly-like", Some("philly")),
        ("helios-like", Some("v100-edr")),
        ("itp-like", Some("v100-edr")),
        ("pai-share", Some("ethernet-25")),
        ("openb-like", Some("ethernet-25")),
        ("acme-like", Some("acme-seren")),
        ("synergy-multi", Some("v100-edr")),
        ("gavel-multi", Some("gavel")),
        // Its jobs are elastic, and goodput has its own cost of being spread.
        ("sia-philly", None),
        ("pollux", None),
    ];
    for (name, preset) in fabrics {
        let config = GeneratorConfig::preset(name).unwrap().with(300, 1.0);
        let mut workload = generate(&config, Seed(3)).unwrap();
        workload.fill_class_facts(true);
        let expected = preset.map(|preset| Fabric::from_name(preset).unwrap());
        assert_eq!(workload.cluster.fabric, expected, "{name}");
        let with_step = workload.classes.iter().filter(|class| class.step.is_some());
        assert_eq!(with_step.count() > 0, preset.is_some(), "{name}");
        workload.validate().unwrap();
    }
}

#[test]
fn a_list_keeps_the_links_of_its_site_under_another_name_and_through_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let config = GeneratorConfig::preset("philly-like").unwrap().with(300, 1.0);
    let mut workload = generate(&config, Seed(3)).unwrap();
    workload.name = "acme of ours".into();
    let path = dir.path().join("pai.csv");
    workload.write(&path).unwrap();
    let sidecar = std::fs::read_to_string(dir.path().join("pai.cluster.toml")).unwrap();
    assert!(sidecar.contains("site_fabric = \"philly\"\n"), "{sidecar}");
    let mut read = Workload::read(&path).unwrap();
    read.fill_class_facts(true);
    assert_eq!(read.cluster.fabric, Fabric::from_name("philly").ok());
    // Another cluster stands at the same site.
    let elsewhere = crate::import::ImportOptions {
        cluster: Some(ClusterSpec::uniform(64, 8, 4)),
        ..crate::import::ImportOptions::default()
    };
    let (moved, _) = crate::import::import(&path, &elsewhere).unwrap();
    assert_eq!(moved.cluster.site_fabric.as_deref(), Some("philly"));
    // An older list has the links that its GPUs come with; for an unknown type it has none.
    let sidecar = sidecar.replace("site_fabric = \"philly\"\n", "");
    std::fs::write(dir.path().join("pai.cluster.toml"), &sidecar).unwrap();
    let mut old = Workload::read(&path).unwrap();
    old.fill_class_facts(true);
    assert_eq!(old.cluster.fabric, None);
    // What is no preset is refused where it stands.
    let wrong = sidecar.replace("[cluster]\n", "[cluster]\nsite_fabric = \"phily\"\n");
    std::fs::write(dir.path().join("pai.cluster.toml"), wrong).unwrap();
    let text = Workload::read(&path).unwrap_err().to_string();
    let parts = ["pai.cluster.toml", "site_fabric = phily", "v100-edr", ", philly"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn a_list_that_does_not_say_its_site_has_the_links_that_its_gpus_come_with() {
    let mut cluster = ClusterSpec::uniform(4, 4, 2);
    let mut of = |kind: &str| {
        cluster.gpu_types[0].name = kind.into();
        cluster.node_groups[0].gpu_type = kind.into();
        fabrics::fabric_of(&cluster)
    };
    assert_eq!(of("quantum"), None);
    assert_eq!(of("GB200"), Fabric::from_name("gb200-nvl72").ok());
    // Half a node has half the NICs.
    let half = of("NVIDIA-H100-80GB-HBM3").unwrap();
    assert_eq!((half.between.nics_per_node, half.between.nic_gb_per_s), (4, 50.0));
    assert_eq!(half.inside, Fabric::from_name("hgx-h100-ndr").unwrap().inside);
    cluster.site_fabric = Some("philly".into());
    assert_eq!(fabrics::fabric_of(&cluster), Fabric::from_name("philly").ok());
}

#[test]
fn whoever_shares_with_a_large_image_model_falls_to_what_gavel_measured() {
    let config = GeneratorConfig::preset("philly-like").unwrap().with(300, 1.0);
    let mut workload = generate(&config, Seed(3)).unwrap();
    workload.fill_class_facts(true);
    let speed = |victim: &str, neighbour: &str| {
        let pairs = workload.cluster.pairs.iter();
        let mut found =
            pairs.filter(|pair| pair.victim.ends_with(victim) && pair.neighbour.ends_with(neighbour));
        found.next().map(|pair| pair.speed)
    };
    // 1 / (1 + 0.92 x 4) and 1 / (1 + 0.15 x 4).
    assert!((speed("ncf-recsys", "resnet50-imagenet").unwrap() - 0.213_675).abs() < 1e-6);
    assert_eq!(speed("resnet18-cifar", "resnet50-imagenet"), Some(0.625));
    assert_eq!(speed("ncf-recsys", "resnet18-cifar"), None);
}

#[test]
fn rows_are_those_of_the_published_table() {
    let Some(path) = pleach_tests::data("world/classes.csv") else {
        return;
    };
    let mut rows = csv::Reader::from_path(path).unwrap();
    let header = rows.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|known| known == name).unwrap();
    let numbers = [
        column("params_M"),
        column("file_bytes_per_param"),
        column("typical_gpus"),
        column("gpu_mem_GB"),
        column("host_GB_per_gpu"),
        column("interval_s"),
    ];
    let mut num_rows = 0;
    for row in rows.records() {
        let row = row.unwrap();
        let facts = row_of(&row[0]);
        assert_eq!(facts.name, &row[0]);
        let ours = [
            facts.parameters_m,
            facts.file_bytes,
            f64::from(facts.num_gpus),
            facts.gpu_memory_gb,
            facts.host_memory_gb,
            facts.interval_s,
        ];
        for (own, at) in ours.iter().zip(numbers) {
            let published: f64 = row[at].parse().unwrap();
            assert!(
                (own - published).abs() <= 0.01 * published.abs(),
                "{}, {}: {own}, published {published}",
                facts.name,
                &header[at]
            );
        }
        num_rows += 1;
    }
    assert_eq!(num_rows, CLASSES.len());
}
