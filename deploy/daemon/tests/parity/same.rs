//! Policies and dealers decide the same.

use super::*;

#[test]
fn a_network_sees_and_decides_the_same_in_the_simulator_and_in_the_daemon() {
    let (num, ..) = compare(&|| player(network), 600, 0);
    assert!(num > 500, "{num} decisions were compared");
}

#[test]
fn backfill_and_preemption_decide_the_same_in_the_simulator_and_in_the_daemon() {
    let (num, ..) = compare(&|| by_name("easy"), 600, 0);
    assert!(num > 300, "{num} decisions were compared");
    let (num, num_stopped, _) = compare(&|| by_name("srtf"), 600, 0);
    assert!(
        num > 300 && num_stopped > 20,
        "{num} decisions, {num_stopped} stops were compared"
    );
}

fn by_name(name: &'static str) -> Player {
    player(move || heuristics::by_name(name).unwrap())
}

#[test]
fn dealers_score_and_decide_the_same_in_the_simulator_and_in_the_daemon() {
    for name in RoundDealer::NAMES {
        for num_shared in [0, 3] {
            let (num, num_stopped, _) = compare(&|| dealer(name), 600, num_shared);
            assert!(
                num == 600 && num_stopped > 20,
                "{name}: {num} deals, {num_stopped} stops were compared"
            );
        }
    }
}

#[test]
fn trees_and_networks_over_the_rows_of_a_deal_score_and_deal_the_same_in_the_simulator_and_in_the_daemon() {
    for is_tree in [true, false] {
        for num_shared in [0, 3] {
            let (num, num_stopped, _) = compare(&|| deals(learned_dealer(is_tree)), 600, num_shared);
            assert!(
                num == 600 && num_stopped > 20,
                "tree {is_tree}: {num} deals, {num_stopped} stops were compared"
            );
        }
    }
}

#[test]
fn passes_over_a_cluster_whose_leases_have_ended_are_the_same_in_the_simulator_and_in_the_daemon() {
    let makes: [&dyn Fn() -> Player; 3] = [&|| passes(|| Box::new(tree())), &|| passes(network), &|| {
        passes(|| heuristics::by_name("sjf").unwrap())
    }];
    for make in makes {
        for num_shared in [0, 3] {
            let (num, num_stopped, _) = compare(make, 600, num_shared);
            assert!(
                num == 600 && num_stopped > 20,
                "{num} deals, {num_stopped} stops were compared"
            );
        }
    }
}

#[test]
fn shares_are_decided_the_same_in_the_simulator_and_in_the_daemon() {
    let makes: [&dyn Fn() -> Player; 3] = [&|| player(network), &|| by_name("easy"), &|| by_name("srtf")];
    for make in makes {
        let (num, _, num_beside) = compare(make, 600, 3);
        assert!(
            num > 300 && num_beside > 50,
            "{num} decisions were compared, {num_beside} shares came beside others"
        );
    }
}

#[test]
fn cpus_host_memory_and_rules_are_decided_the_same_in_the_simulator_and_in_the_daemon() {
    let makes: [&dyn Fn() -> Player; 5] = [
        &|| player(network),
        &|| by_name("easy"),
        &|| by_name("srtf"),
        &|| dealer("las-deal"),
        &|| passes(|| heuristics::by_name("sjf").unwrap()),
    ];
    for make in makes {
        for num_shared in [0, 3] {
            let (num, ..) = compare_with(make, 600, (num_shared, true));
            assert!(num > 250, "{num} decisions were compared");
        }
    }
    let (_, num_stopped, _) = compare_with(&|| by_name("srtf"), 600, (0, true));
    assert!(num_stopped > 20, "{num_stopped} stops were compared");
}
