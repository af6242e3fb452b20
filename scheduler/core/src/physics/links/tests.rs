use super::*;
use proptest::prelude::*;

pub(super) fn spread(num_gpus: u32, num_nodes: u32) -> Spread {
    let on_a_node = num_gpus / num_nodes;
    Spread {
        num_gpus,
        num_domains: num_nodes,
        domain_gpus_min: on_a_node,
        domain_nics_min: on_a_node,
        is_one_island: true,
        is_one_rack: true,
        share: 1.0,
    }
}

fn cost(compute_s: f64, gradient_mb: f64) -> StepCost {
    StepCost {
        compute_s,
        gradient_bytes: gradient_mb * 1e6,
        gamma: 1.0,
    }
}

pub(super) fn preset(name: &str) -> Fabric {
    Fabric::from_name(name).unwrap()
}

/// Speed at a spread relative to another.
fn ratio(fabric: &Fabric, cost: StepCost, spread: Spread, tightest: Spread) -> f64 {
    fabric.step_s(cost, tightest) / fabric.step_s(cost, spread)
}

/// Each line by hand: latency, volume over bandwidth, root; beside it what was measured.
#[test]
fn all_reduces_worked_by_hand() {
    let gib = f64::from(1 << 30);
    for (name, num_gpus, domains, nics, bytes, by_hand_ms, measured_ms) in [
        // W = 1.879e9: 0.033 + 1.879e9 / 491e9 + 5.3 us x root 1879.
        ("hgx-h100-ndr", 8, 1, 8, gib, 0.033 + 3.827 + 0.2297, 4.03),
        // W = 17.00e9, 12 nodes: 0.05 + 11 x 0.002, 0.97 x 400 GB/s, 8 us x root 17001.
        (
            "hgx-h100-ndr",
            96,
            12,
            8,
            8.0 * gib,
            0.072 + 43.817 + 1.0431,
            43.98,
        ),
        // W = 2.080e9, 4 nodes: 0.34 + 3 x 0.004, 388 GB/s, 18 us x root 2080.
        ("aws-p6-b200", 32, 4, 8, gib, 0.352 + 5.3618 + 0.8210, 5.75),
        // W = 16.94e9 in one domain of 18 trays: 13 + 70 x 1.1 us, 940 GB/s, 2.6 + 70 x 0.19 = 15.9 us x root 16941.
        ("gb200-nvl72", 72, 1, 72, 8.0 * gib, 0.09 + 18.0226 + 2.0695, 20.3),
        // W = 16.11e9 on two nodes, a tree: 0.05 + 0.002, 0.93 x 491 GB/s, 8 us x root 16106.
        (
            "hgx-h100-ndr",
            16,
            2,
            8,
            8.0 * gib,
            0.052 + 35.272 + 1.0153,
            36.56,
        ),
    ] {
        let spread = Spread {
            domain_gpus_min: num_gpus / domains,
            domain_nics_min: nics,
            ..spread(num_gpus, domains)
        };
        let ms = preset(name).all_reduce_s(spread, bytes) * 1e3;
        assert!(
            (ms / by_hand_ms - 1.0).abs() < 1e-3,
            "{name}: {ms} ms by hand {by_hand_ms}"
        );
        let error = (ms / measured_ms - 1.0_f64).abs();
        assert!(error < 0.15, "{name}: {ms} ms, measured {measured_ms}");
    }
    assert_eq!(preset("gavel").all_reduce_s(spread(1, 1), 1e9), 0.0);
}

/// Gathers and all-to-alls, each line by hand; measured gathers on 8 H200 reach 361 to 363 GB/s.
#[test]
fn gathers_and_all_to_alls_worked_by_hand() {
    let h100 = preset("hgx-h100-ndr");
    let near = |found: f64, by_hand: f64| assert!((found / by_hand - 1.0).abs() < 1e-4, "{found} {by_hand}");
    // A node: 7/8 of 8 GB over 367 GB/s, 33 us, 5.3 us x root 7000. No switch helps.
    near(
        h100.gather_s(spread(8, 1), 8e9),
        0.033e-3 + 19.0736e-3 + 0.443_43e-3,
    );
    assert!(h100.gather_s(spread(8, 1), 8e9) > h100.all_reduce_s(spread(8, 1), 4e9));
    // Four nodes: 31/32 of 8 GB at the 367 GB/s of the ring inside, 56 us, 8 us x root 7750; an eighth of the NICs gives 48.5.
    near(
        h100.gather_s(spread(32, 4), 8e9),
        0.056e-3 + 21.1172e-3 + 0.704_27e-3,
    );
    let beside = Spread {
        share: 0.125,
        ..spread(32, 4)
    };
    near(h100.gather_s(beside, 8e9), 0.056e-3 + 159.794e-3 + 0.704_27e-3);
    // Twenty racks of trays get 445 GB/s, not 0.97 x 3600.
    let racks = Spread {
        domain_gpus_min: 72,
        domain_nics_min: 72,
        ..spread(1440, 20)
    };
    let volume = 1439.0 / 1440.0 * 1e10_f64;
    let by_hand = 440e-6 + 19.0 * 200e-6 + volume / 445e9 + 14e-6 * (volume / 1e6).sqrt();
    near(preset("gb200-nvl72").gather_s(racks, 1e10), by_hand);
    // All to all: 7/8 of 1 GB inside; over four nodes 24/32 of it over the 50 GB/s of each GPU's NIC.
    near(h100.all_to_all_s(spread(8, 1), 1e9), 33e-6 + 0.875 / 367.0);
    near(h100.all_to_all_s(spread(32, 4), 1e9), 56e-6 + 0.75 / 50.0);
    assert_eq!(
        (
            h100.gather_s(spread(1, 1), 1e9),
            h100.all_to_all_s(spread(1, 1), 1e9)
        ),
        (0.0, 0.0)
    );
}

#[test]
fn switches_add_up_only_for_gangs_that_fill_most_of_their_domain() {
    let inside = preset("hgx-h100-ndr").inside;
    let speeds = [2, 4, 5, 6, 7, 8].map(|num_gpus| inside.gb_per_s(num_gpus, true));
    assert_eq!(speeds, [367.0, 367.0, 398.0, 429.0, 460.0, 491.0]);
    // Without NVLink across the node a ring goes over PCIe.
    assert_eq!(preset("gavel").inside.gb_per_s(8, false), 12.8);
}

#[test]
fn rails_shares_and_lost_paths_divide_what_the_network_gives() {
    let mut fabric = preset("dgx-a100-hdr");
    // 32 GPUs on 4 nodes of 8 NICs of 25 GB/s: W / B is 1.9375 GB / (0.97 x 200 GB/s) = 9.987 ms.
    let whole = spread(32, 4);
    let ms = |fabric: &Fabric, spread| {
        let all = fabric.all_reduce_s(spread, 1e9) * 1e3;
        // Latency 0.05 + 3 x 0.002, root 8 us x root 1937.5.
        all - 0.056 - 0.35213
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found} {expected}");
    near(ms(&fabric, whole), 9.987);
    let one_rail = Spread {
        domain_nics_min: 1,
        ..whole
    };
    near(ms(&fabric, one_rail), 8.0 * 9.987);
    let shared = Spread { share: 0.5, ..whole };
    near(ms(&fabric, shared), 2.0 * 9.987);
    fabric.between.hash_loss = 0.2;
    near(ms(&fabric, whole), 9.987);
    let beyond = Spread {
        is_one_rack: false,
        ..whole
    };
    near(ms(&fabric, beyond), 9.987 / 0.8);
    fabric.between.tuned = 0.6;
    near(ms(&fabric, beyond), 9.987 / 0.8 / 0.6);
    // Racks of trays: whatever their NICs, many racks get 445 GB/s.
    let racks = Spread {
        domain_gpus_min: 72,
        domain_nics_min: 72,
        ..spread(1440, 20)
    };
    let s = preset("gb200-nvl72").all_reduce_s(racks, 1e10);
    let volume = 2.0 * 1439.0 / 1440.0 * 1e10_f64;
    let by_hand = 440e-6 + 19.0 * 200e-6 + volume / 445e9 + 14e-6 * (volume / 1e6).sqrt();
    assert!((s / by_hand - 1.0).abs() < 1e-12, "{s} {by_hand}");
}

#[test]
fn presets_are_valid_and_unknown_names_list_them() {
    for name in Fabric::names() {
        preset(name).validate().unwrap();
    }
    let text = Fabric::from_name("torus").unwrap_err().to_string();
    assert!(text.contains("philly") && text.contains("gb200-nvl72"), "{text}");
    for (former, now) in [("a100-hdr", "dgx-a100-hdr"), ("h100-ndr", "hgx-h100-ndr")] {
        let text = Fabric::from_name(former).unwrap_err().to_string();
        assert!(text.contains(&format!("{now} has all of them")), "{text}");
    }
}

#[test]
fn files_name_a_preset_change_keys_of_one_or_give_all_and_are_refused_by_line_and_key() {
    #[derive(serde::Deserialize)]
    struct File {
        fabric: Fabric,
    }
    let read = |text: &str| toml::from_str::<File>(text).map(|file| file.fabric);
    let named = read("fabric = \"dgx-a100-hdr\"").unwrap();
    assert_eq!(named, preset("dgx-a100-hdr"));
    let changed =
        read("[fabric]\npreset = \"dgx-a100-hdr\"\nbetween.nics_per_node = 4\nbetween.tuned = 0.8").unwrap();
    assert_eq!((changed.between.nics_per_node, changed.between.tuned), (4, 0.8));
    assert_eq!(changed.inside, named.inside);
    let own = "[fabric.inside]\nring_gb_per_s = 10.0\nlatency_us = 5.0\n[fabric.between]\nnics_per_node = 1\nnic_gb_per_s = 2.0\nlatency_us = 30.0";
    let own = read(own).unwrap();
    assert_eq!(
        (own.between.rack_oversubscription, own.inside.nodes_per_domain),
        (1.0, 1)
    );
    // What is written is read again, whichever way it came.
    for fabric in [named, changed, own, preset("gb200-nvl72"), preset("gavel")] {
        let text = serde_json::to_string(&fabric).unwrap();
        assert_eq!(serde_json::from_str::<Fabric>(&text).unwrap(), fabric);
    }
    let between = "[fabric]\npreset = \"dgx-a100-hdr\"\n[fabric.between]\n";
    for (text, parts) in [
        ("fabric = \"h100-ndr\"", vec!["line 1", "hgx-h100-ndr has all"]),
        (
            "[fabric.inside]\nring_gb_per_s = 1.0\nlatency_us = 1.0",
            vec!["fabric.between = nothing", "preset"],
        ),
        (
            "[fabric.between]\nnics_per_node = 1",
            vec!["fabric.inside = nothing", "ring_gb_per_s"],
        ),
        (
            "[fabric]\ninside = { ring_gb_per_s = 1.0 }\nbetween = {}",
            vec!["fabric.inside.latency_us = nothing", "a number"],
        ),
        (
            &format!("{between}nic_gb_per_s = -1.0"),
            vec!["fabric.between.nic_gb_per_s = -1", "0.001 to 100000"],
        ),
        (
            &format!("{between}nic_gb_per_s = nan"),
            vec!["nic_gb_per_s = NaN"],
        ),
        (
            &format!("{between}rack_oversubscription = 0.5"),
            vec!["rack_oversubscription = 0.5", "1 to 1000"],
        ),
        (
            &format!("{between}hash_loss = 1.0"),
            vec!["hash_loss = 1", "0 to 0.9"],
        ),
        (
            &format!("{between}nics_per_node = 0"),
            vec!["nics_per_node = 0", "1 to 64"],
        ),
        (
            &format!("{between}rails = 8"),
            vec!["line 4", "unknown field `rails`", "nics_per_node"],
        ),
        (
            "[fabric]\npreset = \"hgx-h100-ndr\"\ninside = { switch = { gb_per_s = 9.0, from_gpus = 5, full_gpus = 8 } }",
            vec!["switch.gb_per_s = 9", "at least"],
        ),
        ("fabric = 3", vec!["the name of a fabric, or a table"]),
    ] {
        let error = read(text).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

/// Gavel: eight V100s spread over servers run at these steps/s in all, one alone at those. Compute of a step is
/// 1 / alone, a step takes 8 / spread. Sizes in single precision: ResNet-18 11.2 M parameters, ResNet-50 25.6 M, the
/// LSTM language model 14.0 M (two tables of 33,278 x 200 and two layers), Transformer 52 M (assumed). The language
/// model's step is 16 % longer than modelled.
#[test]
fn gavels_spread_gangs_are_met_within_three_percent_but_for_the_language_model() {
    let fabric = preset("gavel");
    for (name, alone, all, gradient_mb, tolerance) in [
        ("ResNet-18 b128", 17.99, 61.14, 44.8, 0.03),
        ("ResNet-50 b64", 4.395, 19.76, 102.4, 0.03),
        ("Transformer b64", 8.618, 17.01, 208.0, 0.03),
        ("LM b20", 64.74, 58.89, 56.0, 0.17),
    ] {
        let step = fabric.step_s(cost(1.0 / alone, gradient_mb), spread(8, 8));
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
    let fabric = preset("gavel");
    let factor = |alone: f64, gradient_mb: f64| {
        let cost = cost(1.0 / alone, gradient_mb);
        ratio(&fabric, cost, spread(8, 8), spread(8, 1))
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
    let one_server = spread(2, 1);
    let resnet = cost(0.557, 102.4);
    let two = |fabric: Fabric| ratio(&fabric, resnet, spread(2, 2), one_server);
    assert!((two(preset("gavel")) - 0.854).abs() < 0.02);
    assert!(two(preset("philly")) > 0.98);
}

/// Gandiva, 4 GPUs: on one server, 2+2, 1+1+1+1. ResNet-50 780/560/325 images/s, InceptionV3 510/500/285. At 32 images a
/// GPU a step takes 0.164 and 0.251 s. At 1 GB/s the model is too fast by a third and a
/// fifth for 1+1+1+1 (0.7 GB/s would fit both), and too slow for 2+2, which is measured at .72 and .98 against .64 and
/// .74: some of the transfer is hidden there.
#[test]
fn gandivas_fully_spread_gangs_are_met_within_a_third_and_its_pairs_within_a_quarter() {
    let fabric = preset("gavel");
    let four = spread(4, 1);
    let factor = |compute: f64, gradient_mb: f64, nodes: u32| {
        ratio(&fabric, cost(compute, gradient_mb), spread(4, nodes), four)
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
    let fabric = preset("gavel");
    let two = spread(16, 2);
    let factor = |nodes: u32| ratio(&fabric, cost(0.557, 102.4), spread(16, nodes), two);
    assert!((factor(4) / 0.94 - 1.0).abs() < 0.03, "{}", factor(4));
    assert!(factor(8) > 0.85, "{}", factor(8));
}

proptest! {
    #[test]
    fn more_nodes_racks_or_sharers_are_never_faster_and_overlap_hides_time(
        number in 0_usize..30, on_a_node in 1_u32..9, nodes in 3_u32..40, share in 0.01_f64..1.0,
        compute in 1e-3_f64..10.0, gradient_mb in 0.0_f64..3e3, gamma in 1.0_f64..10.0, hash_loss in 0.0_f64..0.3,
    ) {
        let names: Vec<&str> = Fabric::names().collect();
        let mut fabric = preset(names[number % names.len()]);
        fabric.between.hash_loss = hash_loss;
        let cost = StepCost { gamma, ..cost(compute, gradient_mb) };
        let step = |spread| fabric.step_s(cost, spread);
        let wide = spread(on_a_node * nodes, nodes);
        // The same number on more nodes reaches fewer NICs on each; the ring was measured slower on more.
        let wider = Spread { num_domains: nodes + 1, domain_nics_min: 1, ..wide };
        prop_assert!(step(wide) <= step(wider) * (1.0 + 1e-12));
        let beyond = Spread { is_one_rack: false, ..wide };
        prop_assert!(step(wide) <= step(beyond) * (1.0 + 1e-12));
        let busy = Spread { share, ..beyond };
        prop_assert!(step(beyond) <= step(busy) * (1.0 + 1e-12));
        let sync = fabric.all_reduce_s(beyond, cost.gradient_bytes);
        let both = step(beyond);
        prop_assert!(both <= (compute + sync) * (1.0 + 1e-9) && both >= compute.max(sync) * (1.0 - 1e-9));
    }
}
