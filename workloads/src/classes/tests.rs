use std::collections::BTreeSet;

use super::*;
use crate::generate::{GeneratorConfig, generate};

#[test]
fn every_generator_gives_every_job_the_facts_of_a_class() {
    for name in GeneratorConfig::PRESETS {
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
            // What the job is otherwise stays.
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
    for (beginning, row) in NAMES {
        assert_eq!(row_of(row).name, row, "{beginning}");
    }
    for (word, by_gang) in MIXES {
        for name in by_gang.iter().flat_map(|(_, models)| *models) {
            assert_eq!(row_of(name).name, *name, "{word}");
        }
        assert_eq!(by_gang[by_gang.len() - 1].0, u32::MAX);
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
