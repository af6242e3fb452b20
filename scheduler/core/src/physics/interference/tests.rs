use super::*;
use crate::settings::Settings as _;
use proptest::prelude::*;

const RULES: Interference = Interference::PACKABLE;

fn job(utilisation: f64) -> Resident {
    Resident {
        class: 0,
        utilisation,
        bandwidth: 0.0,
        memory_gib: 4.0,
        share: 1.0,
    }
}

fn mps(rules: &Interference, one: Resident, others: &[Resident]) -> f64 {
    rules.speed_of(&one, others, 0, Mechanism::Mps, None)
}

#[test]
fn a_job_alone_runs_at_full_speed_under_every_mechanism() {
    for mechanism in [Mechanism::TimeSlice, Mechanism::Mps, Mechanism::Mig] {
        assert_eq!(RULES.speed_of(&job(0.9), &[], 0, mechanism, None), 1.0);
    }
}

#[test]
fn mig_instances_do_not_disturb_each_other() {
    let others = [job(1.0); 6];
    assert_eq!(RULES.speed_of(&job(1.0), &others, 0, Mechanism::Mig, None), 1.0);
}

#[test]
fn time_slices_are_shared_max_min_fairly() {
    let exact = Interference {
        switch_cost: 0.0,
        ..RULES
    };
    let speed =
        |mine: f64, others: &[Resident]| exact.speed_of(&job(mine), others, 0, Mechanism::TimeSlice, None);
    // Two that want everything get half each; one that wants 0.2 gets it and leaves 0.8.
    assert!((speed(1.0, &[job(1.0)]) - 0.5).abs() < 1e-12);
    assert!((speed(0.2, &[job(1.0)]) - 1.0).abs() < 1e-12);
    assert!((speed(1.0, &[job(0.2)]) - 0.8).abs() < 1e-12);
    // 1.0, 0.5 and 0.3: the level is first 1/3, 0.3 is satisfied, 0.7 is left for two, level 0.35: 0.35 / 0.5 = 0.7.
    assert!((speed(0.5, &[job(1.0), job(0.3)]) - 0.7).abs() < 1e-12);
    // With the default switch cost two that fit side by side lose 3 %.
    let both = RULES.speed_of(&job(0.4), &[job(0.4)], 0, Mechanism::TimeSlice, None);
    assert!((both - 0.97).abs() < 1e-12);
}

#[test]
fn under_mps_a_meeting_costs_kappa() {
    // 1 / (1 + 0.4 x 0.5 x 0.8) = 1 / 1.16, the same for both.
    assert!((mps(&RULES, job(0.5), &[job(0.8)]) - 1.0 / 1.16).abs() < 1e-12);
    assert_eq!(
        mps(&RULES, job(0.5), &[job(0.8)]),
        mps(&RULES, job(0.8), &[job(0.5)])
    );
    // Excesses add: 1 / (1 + 0.16 + 0.16).
    assert!((mps(&RULES, job(0.5), &[job(0.8), job(0.8)]) - 1.0 / 1.32).abs() < 1e-12);
}

#[test]
fn bandwidth_cannot_be_had_twice() {
    let hungry = Resident {
        bandwidth: 0.8,
        ..job(0.1)
    };
    assert!((mps(&RULES, hungry, &[hungry]) - 1.0 / 1.6).abs() < 1e-12);
}

#[test]
fn a_cap_slows_its_owner_and_spares_its_neighbour() {
    let capped = Resident {
        share: 0.5,
        ..job(1.0)
    };
    // Alone on half the compute units: 0.5^0.9 = 0.536.
    assert!((mps(&RULES, capped, &[]) - 0.5_f64.powf(0.9)).abs() < 1e-12);
    assert!(mps(&RULES, job(1.0), &[capped]) > mps(&RULES, job(1.0), &[job(1.0)]));
}

/// Lucid's table: pairs by the combined utilisation of the GPU, and the mean speed of their jobs. Combined is
/// 1 - (1 - u)^2 for two equal jobs whose busy times are independent.
#[test]
fn lucids_table_is_met_within_six_percent() {
    let published = [
        (0.45, 1.0),
        (0.55, 0.976),
        (0.65, 0.972),
        (0.75, 0.956),
        (0.85, 0.912),
        (0.95, 0.820),
    ];
    for (combined, speed) in published {
        let each = 1.0 - f64::sqrt(1.0 - combined);
        let model = mps(&RULES, job(each), &[job(each)]);
        assert!(
            (model / speed - 1.0).abs() < 0.06,
            "{combined}: {model} against {speed}"
        );
    }
}

/// Gavel's pairs on a V100 have speeds of .21, .48, .68, .84 and 1.0 at p5, p25, p50, p75 and p95. A mix of 60 %
/// saturating (u = .95), 25 % half-busy (.55) and 15 % light (.2) jobs, paired at random, was fitted to
/// the quartiles.
#[test]
fn gavels_quartiles_are_met_within_ten_percent_and_its_worst_twentieth_is_not() {
    let mix = [(0.95, 0.60), (0.55, 0.25), (0.2, 0.15)];
    let mut speeds: Vec<(f64, f64)> = Vec::new();
    for (mine, weight) in mix {
        for (theirs, other_weight) in mix {
            let speed = mps(&Interference::SATURATING, job(mine), &[job(theirs)]);
            speeds.push((speed, weight * other_weight));
        }
    }
    speeds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let quantile = |wanted: f64| {
        let mut below = 0.0;
        speeds
            .iter()
            .find(|(_, weight)| {
                below += weight;
                below >= wanted
            })
            .map(|(speed, _)| *speed)
            .unwrap()
    };
    for (wanted, published) in [(0.25, 0.48), (0.5, 0.68), (0.75, 0.84), (0.95, 1.0)] {
        let model = quantile(wanted);
        assert!(
            (model / published - 1.0).abs() < 0.10,
            "p{wanted}: {model} against {published}"
        );
    }
    // One class, ResNet-50, slows nearly everyone to a quarter: no utilisation says so, the measured table does.
    assert!(quantile(0.05) > 0.45);
}

#[test]
fn a_measured_pair_outranks_the_rule_and_is_not_symmetric() {
    let classes = [
        "ResNet-18 (batch size 64) x1",
        "ResNet-50 (batch size 16) x1",
        "Mine",
    ];
    let table = PairTable::new(&gavel_v100_pairs(), &["P100", "V100"], &classes).unwrap();
    let of = |class: u16| Resident { class, ..job(0.9) };
    let speed = |one: u16, other: u16, gpu: usize| {
        RULES.speed_of(&of(one), &[of(other)], gpu, Mechanism::Mps, Some(&table))
    };
    assert!((speed(0, 1, 1) - 0.63).abs() < 1e-12);
    assert!((speed(1, 0, 1) - 0.76).abs() < 1e-12);
    // Not measured on the P100, and not for this class: the rule, 1 / (1 + 0.4 x 0.81).
    let rule = 1.0 / (1.0 + 0.4 * 0.81);
    assert!((speed(0, 1, 0) - rule).abs() < 1e-12);
    assert!((speed(0, 2, 1) - rule).abs() < 1e-12);
    // Three on one GPU: excesses of the pairs add.
    let three = RULES.speed_of(&of(0), &[of(1), of(0)], 1, Mechanism::Mps, Some(&table));
    assert!((three - 1.0 / (1.0 / 0.63 + 1.0 / 0.91 - 1.0)).abs() < 1e-12);
}

#[test]
fn an_exact_name_outranks_its_family_in_either_order() {
    let mut entries = gavel_v100_pairs();
    let exact = PairEntry {
        gpu_type: "V100".into(),
        victim: "LM (batch size 5) x1".into(),
        neighbour: "LM (batch size 5) x1".into(),
        speed: 0.5,
    };
    let classes = ["LM (batch size 5) x1", "LM (batch size 80) x1"];
    entries.push(exact.clone());
    let last = PairTable::new(&entries, &["V100"], &classes).unwrap();
    entries.rotate_right(1);
    let first = PairTable::new(&entries, &["V100"], &classes).unwrap();
    for table in [last, first] {
        assert_eq!(table.get(0, 0, 0), Some(0.5));
        assert_eq!(table.get(0, 0, 1), Some(0.64));
        assert_eq!(table.get(1, 0, 0), None);
        assert_eq!(table.get(0, 2, 0), None);
    }
}

#[test]
fn memory_and_measured_failures_forbid_sharing() {
    let (small, large) = (
        job(0.3),
        Resident {
            memory_gib: 13.0,
            ..job(0.3)
        },
    );
    assert!(RULES.can_share(&[small, small], 0, 16.0, None));
    assert!(!RULES.can_share(&[small, large], 0, 16.0, None));
    assert!(!RULES.can_share(&[small; 5], 0, 160.0, None));
    let entry = PairEntry {
        gpu_type: "V100".into(),
        victim: "a".into(),
        neighbour: "b".into(),
        speed: 0.0,
    };
    let table = PairTable::new(&[entry], &["V100"], &["a", "b"]).unwrap();
    let other = Resident { class: 1, ..small };
    assert!(RULES.can_share(&[other, small], 0, 160.0, None));
    assert!(!RULES.can_share(&[other, small], 0, 160.0, Some(&table)));
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let mut rules = RULES;
    rules.kappa = -0.1;
    assert!(
        rules
            .check_at("interference", "")
            .unwrap_err()
            .to_string()
            .contains("interference.kappa")
    );
    let entry = PairEntry {
        gpu_type: "V100".into(),
        victim: "a".into(),
        neighbour: "b".into(),
        speed: 1.2,
    };
    assert!(
        PairTable::new(&[entry], &[], &[])
            .unwrap_err()
            .to_string()
            .contains("pairs[0]")
    );
}

fn residents() -> impl Strategy<Value = Vec<Resident>> {
    let one = (0_u16..4, 0.01_f64..1.0, 0.0_f64..1.0, 0.05_f64..1.0).prop_map(
        |(class, utilisation, bandwidth, share)| Resident {
            class,
            utilisation,
            bandwidth,
            memory_gib: 1.0,
            share,
        },
    );
    prop::collection::vec(one, 2..7)
}

proptest! {
    #[test]
    fn a_neighbour_more_never_makes_anyone_faster(group in residents(), time_slice: bool, kappa in 0.0_f64..2.0) {
        let rules = Interference { kappa, ..RULES };
        let classes = ["ResNet-18", "LM", "A3C", "unknown"];
        let table = PairTable::new(&gavel_v100_pairs(), &["V100"], &classes).unwrap();
        let mechanism = if time_slice { Mechanism::TimeSlice } else { Mechanism::Mps };
        for count in 1..group.len() {
            let fewer = rules.speed_of(&group[0], &group[1..count], 0, mechanism, Some(&table));
            let more = rules.speed_of(&group[0], &group[1..=count], 0, mechanism, Some(&table));
            prop_assert!(more > 0.0 && fewer <= 1.0);
            prop_assert!(more <= fewer + 1e-12, "{fewer} then {more}");
        }
    }

    #[test]
    fn the_order_of_the_neighbours_does_not_matter(group in residents()) {
        let mut turned = group.clone();
        turned[1..].reverse();
        for mechanism in [Mechanism::TimeSlice, Mechanism::Mps] {
            let one = RULES.speed_of(&group[0], &group[1..], 0, mechanism, None);
            let other = RULES.speed_of(&turned[0], &turned[1..], 0, mechanism, None);
            prop_assert!((one - other).abs() < 1e-12);
        }
    }

    #[test]
    fn time_slices_never_hand_out_more_than_the_gpu(group in residents()) {
        let exact = Interference { switch_cost: 0.0, ..RULES };
        let mut used = 0.0;
        for index in 0..group.len() {
            let mut others = group.clone();
            let mine = others.remove(index);
            used += mine.utilisation * exact.speed_of(&mine, &others, 0, Mechanism::TimeSlice, None);
        }
        let wanted: f64 = group.iter().map(|resident| resident.utilisation).sum();
        // Work-conserving: everything wanted, or the whole GPU.
        prop_assert!((used - wanted.min(1.0)).abs() < 1e-9, "{used} of {wanted}");
    }
}

fn with(utilisation: f64, memory_gib: f64, class: u16) -> Resident {
    Resident {
        class,
        utilisation,
        bandwidth: 0.1,
        memory_gib,
        share: 1.0,
    }
}

#[test]
fn guarded_sharing_follows_the_rule_for_light_and_for_heavy_pairs_worked_by_hand() {
    let flat = SharingGuard {
        scatter: 0.0,
        scatter_heavy: 0.0,
        ..SharingGuard::MEASURED
    };
    let rule = Interference {
        guard: Some(flat),
        ..Interference::MEASURED
    };
    for (one, other, expected) in [
        // 1 / (1 + 0.35 x 0.5 x 0.4), and 1 / (1 + 0.5 x 0.99 x 0.7) where 0.99 + 0.7 is more than 1.5.
        (0.5, 0.4, 1.0 / 1.07),
        (0.99, 0.7, 1.0 / 1.3465),
        (0.8, 0.7, 1.0 / 1.196),
    ] {
        let speed = rule.speed_of(
            &with(one, 1.0, 0),
            &[with(other, 1.0, 1)],
            0,
            Mechanism::Mps,
            None,
        );
        assert!((speed - expected).abs() < 1e-12, "{one} {other} {speed}");
    }
    // With scatter a pair has a speed of its own, never above being alone, and not the same for both.
    let table = PairTable::default().scattered(&["a", "b"]);
    let speed = |mine, theirs| {
        let (mine, theirs) = (with(0.6, 1.0, mine), with(0.6, 1.0, theirs));
        Interference::MEASURED.speed_of(&mine, &[theirs], 0, Mechanism::Mps, Some(&table))
    };
    let speeds = [speed(0, 1), speed(1, 0), speed(0, 0)];
    assert!(
        speeds.iter().all(|speed| (0.6..=1.0).contains(speed)),
        "{speeds:?}"
    );
    assert_ne!(speeds[0], speeds[1]);
    assert_eq!(speeds[0], speed(0, 1));
}

#[test]
fn guarded_sharing_takes_a_pair_exactly_where_a_search_over_its_rules_does() {
    let guarded = Interference::MEASURED;
    let mut counts = [0; 4];
    for memory in 0..=20 {
        for beside in 0..=20 {
            for (one, other) in [(0.3, 0.3), (0.3, 0.9), (0.8, 0.8), (0.9, 1.0)] {
                let (mine, theirs) = (f64::from(memory), f64::from(beside));
                let pair = [with(one, mine, 0), with(other, theirs, 1)];
                let found = guarded.can_share(&pair, 0, 24.0, None);
                // 0.85 x 24 = 20.4 GiB hold both and half a GiB for each.
                let fits = mine + theirs + 1.0 <= 20.4;
                let (kind, expected) = match (memory == 0 || beside == 0, one >= 0.8 && other >= 0.8) {
                    (true, _) => (0, false),
                    (false, true) => (1, false),
                    (false, false) => (2 + usize::from(fits), fits),
                };
                counts[kind] += 1;
                assert_eq!(found, expected, "{memory} {beside} {one} {other}");
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
    // A job that has a GPU alone is refused nothing.
    assert!(guarded.can_share(&[with(1.0, 0.0, 0)], 0, 24.0, None));
}
