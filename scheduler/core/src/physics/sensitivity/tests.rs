use super::*;
use proptest::prelude::*;

fn share(cores: f64, memory_gib: f64) -> Share {
    Share {
        cores,
        memory_gib,
        storage_mbps: 62.5,
    }
}

#[test]
fn every_published_surface_is_valid_and_1_at_the_fair_share() {
    for row in &SYNERGY_MODELS {
        let surface = row.surface();
        surface.validate().unwrap();
        assert_eq!(surface.speed(Share::SYNERGY), 1.0, "{}", row.name);
    }
}

#[test]
fn demands_are_the_published_ones() {
    let published = [
        ("alexnet", 12.0, 125.0, 2.94),
        ("resnet18", 9.0, 62.5, 2.40),
        ("resnet50", 4.0, 62.5, 1.15),
        ("mobilenet", 6.0, 62.5, 1.55),
        ("shufflenet", 12.0, 125.0, 2.89),
        ("m5", 6.0, 187.5, 2.50),
        ("deepspeech", 3.0, 62.5, 1.0),
        ("gnmt", 1.0, 20.83, 1.0),
        ("lstm", 1.0, 20.83, 1.0),
    ];
    for (name, cores, memory_gib, best) in published {
        let surface = Sensitivity::from_name(name).unwrap();
        let demand = surface.demand(0.0);
        assert_eq!((demand.cores, demand.memory_gib), (cores, memory_gib), "{name}");
        assert_eq!(surface.speed(demand), best, "{name}");
    }
}

#[test]
fn figure_1_is_met() {
    // AlexNet is 3.1x faster on 12 than on 3 cores, ResNet-18 2.3x on 9 than on 3.
    let gain = |name: &str, cores: f64| {
        let surface = Sensitivity::from_name(name).unwrap();
        surface.speed(share(cores, 250.0)) / surface.speed(share(3.0, 250.0))
    };
    assert!((gain("alexnet", 12.0) / 3.1 - 1.0).abs() < 0.06);
    assert!((gain("resnet18", 9.0) / 2.3 - 1.0).abs() < 0.05);
}

#[test]
fn between_levels_the_speed_is_linear_and_beyond_them_it_stays_or_falls_to_0() {
    let surface = Sensitivity::from_name("resnet18").unwrap();
    // Half-way from 6 to 9 cores: (1.75 + 2.40) / 2.
    assert!((surface.speed(share(7.5, 62.5)) - 2.075).abs() < 1e-12);
    assert_eq!(surface.speed(share(48.0, 900.0)), 2.40);
    // Half of the smallest level: half its speed.
    assert!((surface.speed(share(0.5, 62.5)) - 0.185).abs() < 1e-12);
    assert_eq!(surface.speed(share(0.0, 62.5)), 0.0);
    // alexnet, half-way from 9 to 12 cores and from 62.5 to 125 GB: the mean of 2, 2, 2 and 2.94 = 2.235.
    let surface = Sensitivity::from_name("alexnet").unwrap();
    assert!((surface.speed(share(10.5, 93.75)) - 2.235).abs() < 1e-12);
    // Too little memory: 0.1, whatever the cores.
    assert!((surface.speed(share(12.0, 20.83)) - 0.1).abs() < 1e-12);
}

#[test]
fn a_cache_that_holds_half_the_data_halves_what_is_read() {
    // Two cores prepare for each unit of speed, up to 3; what is not cached is read.
    let surface = Sensitivity {
        cores: vec![1.0, 2.0, 4.0, 8.0],
        memory_gib: vec![25.0, 50.0, 100.0],
        speed: [0.5, 1.0, 2.0, 3.0]
            .into_iter()
            .flat_map(|speed| [speed; 3])
            .collect(),
        storage: Some(StorageNeed {
            mbps_at_speed_1: 50.0,
            dataset_gib: 100.0,
        }),
    };
    surface.validate().unwrap();
    // 4 cores prepare for speed 2; a quarter cached: 25 MB/s feed 2/3; half cached: 1; all cached: 2, the cores.
    let at = |memory_gib: f64| Share {
        cores: 4.0,
        memory_gib,
        storage_mbps: 25.0,
    };
    assert!((surface.speed(at(25.0)) - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(surface.speed(at(50.0)), 1.0);
    assert_eq!(surface.speed(at(100.0)), 2.0);
}

#[test]
fn broken_surfaces_are_refused_by_name() {
    let mut surface = Sensitivity::from_name("m5").unwrap();
    surface.speed[3] = 0.01;
    let text = surface.validate().unwrap_err().to_string();
    assert!(text.contains("sensitivity.speed[3]"), "{text}");
    surface.speed.pop();
    assert!(surface.validate().unwrap_err().to_string().contains("9 x 5"));
    surface.cores[1] = 1.0;
    assert!(
        surface
            .validate()
            .unwrap_err()
            .to_string()
            .contains("sensitivity.cores")
    );
    let text = Sensitivity::from_name("vgg").unwrap_err().to_string();
    assert!(text.contains("vgg") && text.contains("alexnet"), "{text}");
}

proptest! {
    #[test]
    fn more_of_anything_is_never_slower(
        index in 0_usize..10, cores in 0.0_f64..30.0, memory_gib in 0.0_f64..300.0, storage_mbps in 0.0_f64..500.0,
        more in 0.0_f64..20.0,
    ) {
        let mut surface = SYNERGY_MODELS[index].surface();
        surface.storage = Some(StorageNeed { mbps_at_speed_1: 60.0, dataset_gib: 140.0 });
        let base = Share { cores, memory_gib, storage_mbps };
        let speed = surface.speed(base);
        prop_assert!(speed >= 0.0 && speed.is_finite());
        for richer in [
            Share { cores: cores + more, ..base },
            Share { memory_gib: memory_gib + more, ..base },
            Share { storage_mbps: storage_mbps + more, ..base },
        ] {
            prop_assert!(surface.speed(richer) >= speed - 1e-12);
        }
    }
}
