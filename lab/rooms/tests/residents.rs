//! Two residents of one GPU: latencies by hand, what is conserved, and what each rule is for.

use pleach_rooms::contexts::residents::{
    Arrivals, DEVICES, Device, Kernel, Mix, NETWORKS, Network, Outcome, POLICIES, by_name, network, simulate,
};
use pleach_workloads::Seed;
use proptest::prelude::*;

/// A GPU of one SM: four places.
const ONE_SM: Device = Device {
    name: "one",
    sms: 1,
    flops: 1e12,
    bandwidth: 1e11,
};

fn chain(kernels: &[(u32, f64, f64)]) -> Network {
    let of = |(blocks, compute_ns, memory_ns): &(u32, f64, f64)| Kernel {
        blocks: *blocks,
        at_once: *blocks,
        compute_ns: *compute_ns,
        memory_ns: *memory_ns,
    };
    Network {
        kernels: kernels.iter().map(of).collect(),
    }
}

fn mix(critical: Network, best_effort: Option<Network>) -> Mix {
    Mix {
        critical,
        arrivals: Arrivals::Closed,
        best_effort,
        length_s: 0.01,
        seed: Seed(0),
    }
}

fn play(device: &Device, mix: &Mix, rule: &str) -> Outcome {
    simulate(device, mix, by_name(rule).unwrap()).unwrap()
}

#[test]
fn waves_issue_and_bandwidth_are_as_worked_by_hand() {
    let alone = |kernels: &[(u32, f64, f64)]| {
        let outcome = play(&ONE_SM, &mix(chain(kernels), None), "streams");
        assert!(outcome.critical_ns.iter().all(|ns| *ns == outcome.critical_ns[0]));
        outcome.critical_ns[0]
    };
    // A launch of 5 µs; two blocks issue 0.6 of what the SM can, four 1.2: these take 1.2 times as long.
    assert_eq!(alone(&[(2, 1_000.0, 0.0)]), 6_000);
    assert_eq!(alone(&[(4, 1_000.0, 0.0)]), 6_200);
    // Six blocks: four, then two.
    assert_eq!(alone(&[(6, 1_000.0, 0.0)]), 5_000 + 1_200 + 1_000);
    // Two that live off memory draw twice the bandwidth.
    assert_eq!(alone(&[(2, 1.0, 1_000.0)]), 5_000 + 2_000);
    // Kernels one after another, each with its launch.
    assert_eq!(alone(&[(2, 1_000.0, 0.0), (1, 500.0, 0.0)]), 6_000 + 5_500);
}

#[test]
fn rules_on_one_sm_are_as_worked_by_hand() {
    // Critical: one block of 1,000 ns. Best effort: four of 3,000 ns that fill the SM, for 3,600 ns with each other.
    let both = mix(chain(&[(1, 1_000.0, 0.0)]), Some(chain(&[(4, 3_000.0, 0.0)])));
    let second = |rule: &str| play(&ONE_SM, &both, rule).critical_ns[1];
    // The first runs alone. The second comes at 6,000 and waits for the other network: 8,600, then 6,000.
    assert_eq!(second("sequential"), 8_600 + 6_000);
    // Both begin at 5,000: the critical block has its place, three of the other begin too, and the four issue 1.2: 1,200.
    assert_eq!(play(&ONE_SM, &both, "streams").critical_ns[0], 6_200);
    // The next critical kernel waits for the pair's other one: three until it ends, and then one more.
    assert!(second("barriers") > second("streams"));
    // Two blocks fit beside the critical one, which is as fast as alone.
    assert_eq!(play(&ONE_SM, &both, "miriam:block-us=1").critical_ns[0], 6_000);
}

#[test]
fn alone_all_rules_are_one() {
    for name in NETWORKS {
        let critical = network(name, &DEVICES[0]).unwrap();
        let alone = Mix {
            length_s: 0.2,
            ..mix(critical, None)
        };
        let latencies: Vec<f64> = POLICIES
            .iter()
            .map(|info| play(&DEVICES[0], &alone, info.name).critical_ms())
            .collect();
        assert!(
            latencies.iter().all(|ms| *ms == latencies[0]),
            "{name}: {latencies:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_rule_does_more_than_the_sms_can_issue_and_the_memory_can_bring(
        critical in prop::collection::vec((1_u32..40, 1.0_f64..90_000.0, 1.0_f64..90_000.0), 1..4),
        best_effort in prop::collection::vec((1_u32..40, 1.0_f64..90_000.0, 1.0_f64..90_000.0), 1..4),
        rule in 0..POLICIES.len(),
        rate_hz in prop::sample::select(vec![0.0, 100.0, 3_000.0]),
        seed in 0_u64..50,
    ) {
        let arrivals = if rate_hz > 0.0 { Arrivals::Poisson(rate_hz) } else { Arrivals::Closed };
        let device = Device { sms: 3, ..ONE_SM };
        let both = Mix { arrivals, length_s: 0.05, seed: Seed(seed), ..mix(chain(&critical), Some(chain(&best_effort))) };
        let outcome = play(&device, &both, POLICIES[rule].name);
        let num = [outcome.critical_ns.len() as f64, outcome.num_best_effort as f64];
        let sum = |figure: fn(&Kernel) -> f64| {
            let of = |network: &Network| -> f64 {
                network.kernels.iter().map(|kernel| f64::from(kernel.blocks) * figure(kernel) * kernel.alone_ns()).sum()
            };
            num[0] * of(&both.critical) + num[1] * of(both.best_effort.as_ref().unwrap())
        };
        let most = 3.0 * 0.05 * 1e9 * (1.0 + 1e-3);
        prop_assert!(sum(Kernel::issue) <= most && sum(Kernel::draw) <= most);
        prop_assert!(outcome.critical_ns.len() as u64 <= outcome.num_arrived);
        prop_assert_eq!(outcome, play(&device, &both, POLICIES[rule].name));
    }
}

#[test]
fn what_is_out_of_range_is_refused_with_its_name_and_value() {
    let alone = mix(chain(&[(1, 1_000.0, 0.0)]), None);
    let said = |mix: Mix| {
        simulate(&ONE_SM, &mix, by_name("streams").unwrap())
            .unwrap_err()
            .to_string()
    };
    let long = said(Mix {
        length_s: -1.0,
        ..alone.clone()
    });
    assert!(long.contains("length_s") && long.contains("-1"), "{long}");
    let often = said(Mix {
        arrivals: Arrivals::Poisson(0.0),
        ..alone
    });
    assert!(often.contains("rate_hz") && often.contains('0'), "{often}");
    let unknown = network("vgg", &DEVICES[0]).unwrap_err().to_string();
    assert!(unknown.contains("vgg") && unknown.contains("resnet"), "{unknown}");
    let unknown = by_name("miriam:block-us=0").unwrap_err().to_string();
    assert!(unknown.contains("block-us") && unknown.contains('0'), "{unknown}");
}

/// Two ResNets in closed loops on the smaller device.
fn resnets(rule: Option<&str>) -> Outcome {
    let resnet = network("resnet", &DEVICES[1]).unwrap();
    let best_effort = rule.map(|_| resnet.clone());
    let both = Mix {
        length_s: 2.0,
        ..mix(resnet, best_effort)
    };
    play(&DEVICES[1], &both, rule.unwrap_or("streams"))
}

#[test]
fn miriam_keeps_the_critical_latency_and_gains_what_streams_gain() {
    let alone = resnets(None);
    let [miriam, sequential, streams] = ["miriam", "sequential", "streams"].map(|rule| resnets(Some(rule)));
    assert!(miriam.critical_ms() < 1.1 * alone.critical_ms());
    assert!(streams.critical_ms() > 1.3 * alone.critical_ms());
    assert!((sequential.critical_ms() / alone.critical_ms() - 2.0).abs() < 0.01);
    assert!(miriam.throughput() > 1.4 * sequential.throughput());
    assert!(streams.throughput() > 1.4 * sequential.throughput());
}
