use super::*;
use proptest::prelude::*;

fn spread(num_gpus: u32, num_nodes: u32, tier: Tier) -> Spread {
    Spread {
        num_gpus,
        num_nodes,
        tier,
    }
}

fn cost(compute_s: f64, gradient_mb: f64) -> StepCost {
    StepCost {
        compute_s,
        gradient_bytes: gradient_mb * 1e6,
        gamma: 1.0,
    }
}

#[test]
fn a_ring_sends_twice_all_but_its_own_part() {
    let link = Link {
        gb_per_s: 10.0,
        latency_us: 50.0,
    };
    // 4 members, 1 GB: 2 x 3/4 / 10 = 0.15 s, and 6 messages of 50 us.
    assert!((link.ring_s(4, 1e9, 1) - 0.1503).abs() < 1e-12);
    // Shared by two: the bandwidth halves, the latency stays.
    assert!((link.ring_s(4, 1e9, 2) - 0.3003).abs() < 1e-12);
    assert_eq!(link.ring_s(1, 1e9, 1), 0.0);
}

#[test]
fn one_level_is_the_standard_formula_and_two_levels_add() {
    let fabric = Fabric::gavel();
    let one_node = fabric.all_reduce_s(spread(8, 1, Tier::Island), 1e8, 1);
    assert_eq!(one_node, fabric.island.ring_s(8, 1e8, 1));
    let spread_out = fabric.all_reduce_s(spread(8, 8, Tier::Rack), 1e8, 1);
    assert_eq!(spread_out, fabric.rack.ring_s(8, 1e8, 1));
    let both = fabric.all_reduce_s(spread(8, 2, Tier::Rack), 1e8, 1);
    assert_eq!(
        both,
        fabric.node.ring_s(4, 1e8, 1) + fabric.rack.ring_s(2, 1e8, 1)
    );
    assert!(one_node < both && both < spread_out);
}

#[test]
fn presets_are_valid_and_unknown_names_list_them() {
    for (name, ..) in PRESETS {
        assert!(Link::from_name(name).unwrap().gb_per_s > 0.0);
    }
    for name in ["philly", "gavel", "a100-hdr", "h100-ndr"] {
        let fabric = Fabric::from_name(name).unwrap();
        fabric.validate().unwrap();
        // The fallback of `nominal` is not among these.
        assert!(fabric.cluster.gb_per_s != 1.0 || name == "philly" || name == "gavel");
    }
    assert_eq!(Fabric::a100_hdr().rack.gb_per_s, 20.0);
    let text = Link::from_name("nvlink").unwrap_err().to_string();
    assert!(text.contains("nvlink-h100"), "{text}");
    assert!(
        Fabric::from_name("torus")
            .unwrap_err()
            .to_string()
            .contains("philly")
    );
}

#[test]
fn a_wider_tier_that_is_faster_is_refused() {
    let mut fabric = Fabric::gavel();
    fabric.cluster.gb_per_s = 2.0;
    let text = fabric.validate().unwrap_err().to_string();
    assert!(text.contains("fabric.cluster.gb_per_s"), "{text}");
    assert!(
        cost(0.0, 1.0)
            .validate()
            .unwrap_err()
            .to_string()
            .contains("compute_s")
    );
}

/// Gavel: eight V100s spread over servers run at these steps/s in all, one alone at those. Compute of a step is
/// 1 / alone, a step takes 8 / spread. Sizes in single precision: ResNet-18 11.2 M parameters, ResNet-50 25.6 M, the
/// LSTM language model 14.0 M (two tables of 33,278 x 200 and two layers), Transformer 52 M (assumed). The language
/// model's step is 16 % longer than modelled.
#[test]
fn gavels_spread_gangs_are_met_within_three_percent_but_for_the_language_model() {
    let fabric = Fabric::gavel();
    for (name, alone, all, gradient_mb, tolerance) in [
        ("ResNet-18 b128", 17.99, 61.14, 44.8, 0.03),
        ("ResNet-50 b64", 4.395, 19.76, 102.4, 0.03),
        ("Transformer b64", 8.618, 17.01, 208.0, 0.03),
        ("LM b20", 64.74, 58.89, 56.0, 0.17),
    ] {
        let step = fabric.step_s(cost(1.0 / alone, gradient_mb), spread(8, 8, Tier::Rack), 1);
        let measured = 8.0 / all;
        assert!(
            (step / measured - 1.0).abs() < tolerance,
            "{name}: {step} s against {measured} s"
        );
    }
}

/// The same four as a ratio, spread over consolidated, published .38, ~1, .34, .12. Three are met within 28 %; the
/// other is not a matter of links: its consolidated gang runs at half of eight single GPUs (CPU-bound).
#[test]
fn gavels_ratios_are_met_within_28_percent_except_where_the_tight_gang_starves() {
    let fabric = Fabric::gavel();
    let factor = |alone: f64, gradient_mb: f64| {
        let cost = cost(1.0 / alone, gradient_mb);
        fabric.locality(cost, spread(8, 8, Tier::Rack), spread(8, 1, Tier::Island), 1)
    };
    for (alone, gradient_mb, published) in [(17.99, 44.8, 0.38), (8.618, 208.0, 0.34), (64.74, 56.0, 0.12)] {
        let model = factor(alone, gradient_mb);
        assert!(
            (model / published - 1.0).abs() < 0.28,
            "{model} against {published}"
        );
    }
    assert!(factor(4.395, 102.4) < 0.65);
}

/// Philly, table 4: ResNet-50 on two GPUs of one server 114.8 images/s, of two servers 98.0, a factor of 0.854. At 32
/// images a GPU (assumed) a step takes 0.557 s. The published network is 100 Gb/s, which cannot explain the loss (the
/// model says .99); at the 1 GB/s that software of those years got out of a network (as in Gavel) it is met.
#[test]
fn phillys_two_servers_are_met_by_the_bandwidth_of_their_software_not_of_their_wire() {
    let one_server = spread(2, 1, Tier::Node);
    let resnet = cost(0.557, 102.4);
    let two = |fabric: Fabric| fabric.locality(resnet, spread(2, 2, Tier::Rack), one_server, 1);
    assert!((two(Fabric::gavel()) - 0.854).abs() < 0.02);
    assert!(two(Fabric::philly()) > 0.98);
}

/// Gandiva, 4 GPUs: on one server, 2+2, 1+1+1+1. ResNet-50 780/560/325 images/s, InceptionV3 510/500/285. At 32 images a
/// GPU a step takes 0.164 and 0.251 s. At 1 GB/s the model is too fast by a third and a
/// fifth for 1+1+1+1 (0.7 GB/s would fit both), and too slow for 2+2, which is measured at .72 and .98 against .64 and
/// .74: some of the transfer is hidden there.
#[test]
fn gandivas_fully_spread_gangs_are_met_within_a_third_and_its_pairs_within_a_quarter() {
    let fabric = Fabric::gavel();
    let four = spread(4, 1, Tier::Node);
    let factor = |compute: f64, gradient_mb: f64, nodes: u32| {
        fabric.locality(cost(compute, gradient_mb), spread(4, nodes, Tier::Rack), four, 1)
    };
    let (resnet, inception) = (factor(0.164, 102.4, 4), factor(0.251, 95.2, 4));
    assert!((resnet / 0.42 - 1.0).abs() < 0.33, "{resnet}");
    assert!((inception / 0.56 - 1.0).abs() < 0.20, "{inception}");
    let (resnet, inception) = (factor(0.164, 102.4, 2), factor(0.251, 95.2, 2));
    assert!((resnet / 0.72 - 1.0).abs() < 0.12, "{resnet}");
    assert!((inception / 0.98 - 1.0).abs() < 0.26, "{inception}");
}

/// Philly, table 5: 16 GPUs on 2, 4 and 8 servers are used 43.7, 40.9 and 28.6 % (1, .94, .65). Four servers are met;
/// eight lose more than links explain, because they are shared with other jobs (table 4: 0.66 from neighbours alone).
#[test]
fn phillys_sixteen_gpus_on_four_servers_are_met_and_on_eight_are_not() {
    let fabric = Fabric::gavel();
    let two = spread(16, 2, Tier::Rack);
    let factor = |nodes: u32| fabric.locality(cost(0.557, 102.4), spread(16, nodes, Tier::Rack), two, 1);
    assert!((factor(4) / 0.94 - 1.0).abs() < 0.03, "{}", factor(4));
    assert!(factor(8) > 0.85, "{}", factor(8));
}

proptest! {
    #[test]
    fn a_looser_placement_or_more_sharers_is_never_faster(
        num_gpus in 2_u32..64, nodes in 2_u32..16, sharers in 1_u32..5,
        compute in 1e-3_f64..10.0, gradient_mb in 0.0_f64..3e3, gamma in 1.0_f64..10.0,
    ) {
        let nodes = nodes.min(num_gpus);
        let cost = StepCost { gamma, ..cost(compute, gradient_mb) };
        for fabric in [Fabric::philly(), Fabric::gavel(), Fabric::a100_hdr(), Fabric::h100_ndr()] {
            let tight = spread(num_gpus, 1, Tier::Node);
            let racked = fabric.locality(cost, spread(num_gpus, nodes, Tier::Rack), tight, sharers);
            let wide = fabric.locality(cost, spread(num_gpus, nodes, Tier::Cluster), tight, sharers);
            prop_assert!(racked > 0.0 && racked <= 1.0);
            prop_assert!(wide <= racked + 1e-12);
            let busier = fabric.locality(cost, spread(num_gpus, nodes, Tier::Rack), tight, sharers + 1);
            prop_assert!(busier <= racked + 1e-12);
            // Overlap hides time, never adds it.
            let step = fabric.step_s(cost, spread(num_gpus, nodes, Tier::Rack), sharers);
            let sync = fabric.all_reduce_s(spread(num_gpus, nodes, Tier::Rack), cost.gradient_bytes, sharers);
            prop_assert!(step <= (compute + sync) * (1.0 + 1e-9) && step >= compute.max(sync) * (1.0 - 1e-9));
        }
    }
}
