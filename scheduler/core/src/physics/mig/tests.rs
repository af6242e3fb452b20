use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const H100: MigGpu = MigGpu::H100_80;
const ONE: usize = 0;
const TWO: usize = 2;
const THREE: usize = 3;
const FOUR: usize = 4;
const SEVEN: usize = 5;

fn built(instances: &[(usize, u8)]) -> MigState {
    let mut state = MigState::EMPTY;
    for (index, start) in instances {
        state.place(H100, *index, *start);
    }
    state
}

#[test]
fn two_3g_fill_the_memory_and_leave_one_compute_slice_that_nothing_can_use() {
    let state = built(&[(THREE, 0), (THREE, 4)]);
    assert_eq!((state.memory_mask(), state.compute_used()), (0xFF, 6));
    assert_eq!(state.room(H100), 0);
}

#[test]
fn a_4g_goes_with_a_3g_but_not_with_another_4g() {
    let state = built(&[(FOUR, 0)]);
    assert_eq!(state.can_place(H100, FOUR), None);
    assert_eq!(state.can_place(H100, THREE), Some(4));
}

#[test]
fn seven_1g_leave_one_memory_slice_unused() {
    let mut state = MigState::EMPTY;
    for _ in 0..7 {
        let start = state.can_place(H100, ONE).unwrap();
        state.place(H100, ONE, start);
    }
    assert_eq!((state.memory_mask(), state.compute_used()), (0b0111_1111, 7));
    assert_eq!(state.room(H100), 0);
}

#[test]
fn a_3g_at_0_blocks_the_1g_starts_0_to_3_only() {
    let state = built(&[(THREE, 0)]);
    let open: Vec<u8> = (0..8)
        .filter(|start| state.can_place_at(H100, ONE, *start))
        .collect();
    assert_eq!(open, [4, 5, 6]);
}

#[test]
fn a_7g_needs_the_whole_gpu() {
    let mut state = built(&[(ONE, 6)]);
    assert_eq!(state.can_place(H100, SEVEN), None);
    assert_eq!(state.remove(H100, 6), ONE);
    assert_eq!(state.can_place(H100, SEVEN), Some(0));
    state.place(H100, SEVEN, 0);
    assert!((0..6).all(|index| state.can_place(H100, index).is_none()));
}

#[test]
fn max_instances_are_what_the_guide_prints_and_what_can_be_packed() {
    let printed = |gpu: MigGpu| -> Vec<u8> {
        gpu.profiles()
            .iter()
            .map(|profile| profile.max_instances)
            .collect()
    };
    assert_eq!(printed(MigGpu::A100_40), [7, 4, 3, 2, 1, 1]);
    assert_eq!(printed(MigGpu::A30), [4, 2, 1]);
    for gpu in MigGpu::ALL {
        for (index, profile) in gpu.profiles().iter().enumerate() {
            let mut state = MigState::EMPTY;
            let mut placed = 0;
            while let Some(start) = state.can_place(gpu, index) {
                state.place(gpu, index, start);
                placed += 1;
            }
            assert_eq!(placed, profile.max_instances, "{} {}", gpu.name(), profile.name);
        }
    }
}

#[test]
fn small_instances_go_where_they_keep_the_large_ones_possible() {
    // 1g on an empty GPU: slice 6 keeps 4g, 3g at 0 and all three 2g starts but 7g; slice 7 is lost to all anyway.
    assert_eq!(MigState::EMPTY.can_place(H100, ONE), Some(6));
    assert_eq!(MigState::EMPTY.can_place(H100, TWO), Some(4));
    assert_eq!(MigState::EMPTY.can_place(H100, THREE), Some(4));
    // The second 1g fills the half that is already broken.
    assert!(built(&[(ONE, 6)]).can_place(H100, ONE).unwrap() >= 4);
}

/// All sets of disjoint placements within the compute slices, by trying every subset.
fn brute_force(gpu: MigGpu) -> BTreeSet<Vec<(usize, u8)>> {
    let mut places = Vec::new();
    for (index, profile) in gpu.profiles().iter().enumerate() {
        for start in (0..8).filter(|start| profile.starts >> start & 1 == 1) {
            places.push((index, start));
        }
    }
    let mut legal = BTreeSet::new();
    'subset: for subset in 0_u32..1 << places.len() {
        let mut count = [0_u8; 8];
        let mut compute = 0;
        let mut chosen: Vec<(usize, u8)> = Vec::new();
        for (bit, (index, start)) in places.iter().enumerate() {
            if subset >> bit & 1 == 0 {
                continue;
            }
            let profile = &gpu.profiles()[*index];
            compute += profile.compute_slices;
            for slice in *start..start + profile.memory_slices {
                count[usize::from(slice)] += 1;
            }
            chosen.push((*index, *start));
        }
        if compute > gpu.compute_slices() || count.iter().any(|used| *used > 1) {
            continue 'subset;
        }
        chosen.sort_by_key(|(_, start)| *start);
        legal.insert(chosen);
    }
    legal
}

#[test]
fn the_incremental_search_finds_exactly_the_layouts_of_brute_force() {
    for gpu in [MigGpu::H100_80, MigGpu::A30] {
        let layouts = gpu.layouts();
        let found: BTreeSet<Vec<(usize, u8)>> =
            layouts.iter().map(|state| state.instances().collect()).collect();
        assert_eq!(found.len(), layouts.len(), "a layout was found twice");
        assert_eq!(found, brute_force(gpu));
        assert!(layouts.iter().all(|state| state.validate(gpu).is_ok()));
    }
}

#[test]
fn without_the_double_memory_1g_there_are_the_19_full_layouts_of_the_guide() {
    // Left half: 4g | 3g | 2g+2g | 2g+1g+1g | 1g+1g+2g | 1g x4; right half: 3g | 2g+1g | 1g x3; or one 7g:
    // 6 x 3 + 1 = 19, counting a layout as full when no further instance fits.
    let plain: Vec<MigState> = H100
        .layouts()
        .into_iter()
        .filter(|state| state.instances().all(|(index, _)| index != 1))
        .collect();
    let full = |state: &&MigState| {
        (0..6).all(|index| index == 1 || state.can_place(H100, index).is_none()) && !state.is_empty()
    };
    assert_eq!(plain.iter().filter(full).count(), 19);
}

#[test]
fn every_mix_that_fits_at_all_fits_when_placed_by_the_rule_from_large_to_small() {
    for gpu in MigGpu::ALL {
        for layout in gpu.layouts() {
            let mut mix: Vec<usize> = layout.instances().map(|(index, _)| index).collect();
            mix.sort_by_key(|index| {
                let profile = &gpu.profiles()[*index];
                std::cmp::Reverse((profile.memory_slices, profile.compute_slices))
            });
            let mut state = MigState::EMPTY;
            for index in &mix {
                let start = state.can_place(gpu, *index);
                assert!(start.is_some(), "{} {mix:?} stuck at {state:?}", gpu.name());
                state.place(gpu, *index, start.unwrap());
            }
        }
    }
}

#[test]
fn the_rule_gets_stuck_less_often_than_the_lowest_start() {
    // Over every order of every mix of three profiles that fits somehow: how many get all three placed?
    let fits = |mix: &[usize], lowest: bool| {
        let mut state = MigState::EMPTY;
        mix.iter().all(|index| {
            let first = (0..8).find(|start| state.can_place_at(H100, *index, *start));
            let start = if lowest {
                first
            } else {
                state.can_place(H100, *index)
            };
            start.map(|start| state.place(H100, *index, start)).is_some()
        })
    };
    let (mut by_rule, mut by_lowest) = (0, 0);
    for code in 0..6_usize.pow(3) {
        let mix = [code % 6, code / 6 % 6, code / 36];
        by_rule += u32::from(fits(&mix, false));
        by_lowest += u32::from(fits(&mix, true));
    }
    assert!(by_rule > by_lowest, "{by_rule} against {by_lowest}");
}

#[test]
fn gromacs_on_slices_of_an_a100_is_met_within_two_percent() {
    // ns/day on 10gb (1g), 20gb (2g), 40gb (3g) and the full GPU, relative to the full one.
    for (slices, published) in [(1.0, 0.365), (2.0, 0.685), (3.0, 0.974), (7.0, 1.0)] {
        let model = mig_speed(slices / 7.0, 0.44);
        assert!((model / published - 1.0).abs() < 0.02, "{slices}: {model}");
    }
}

#[test]
fn the_smallest_profile_holds_what_is_asked() {
    assert_eq!(H100.smallest_profile(1, 15.0), Some(1));
    assert_eq!(H100.smallest_profile(2, 30.0), Some(THREE));
    assert_eq!(H100.smallest_profile(1, 90.0), None);
}

#[test]
fn a_state_whose_sums_do_not_agree_is_refused() {
    let mut state = built(&[(TWO, 0)]);
    state.validate(H100).unwrap();
    state.compute_used = 3;
    assert!(state.validate(H100).is_err());
    state.starting[7] = 4;
    assert!(state.validate(H100).unwrap_err().to_string().contains("slice 7"));
}

proptest! {
    #[test]
    fn placing_and_removing_is_the_identity(
        gpu in 0_usize..6,
        choices in prop::collection::vec((0_usize..6, any::<bool>(), 0_usize..8), 1..40),
    ) {
        let gpu = MigGpu::ALL[gpu];
        let mut state = MigState::EMPTY;
        for (index, remove, which) in choices {
            if remove && !state.is_empty() {
                let instances: Vec<_> = state.instances().collect();
                let (_, start) = instances[which % instances.len()];
                state.remove(gpu, start);
            } else if let Some(start) = state.can_place(gpu, index % gpu.profiles().len()) {
                let before = state;
                state.place(gpu, index % gpu.profiles().len(), start);
                let mut after = state;
                prop_assert_eq!(after.remove(gpu, start), index % gpu.profiles().len());
                prop_assert_eq!(after, before);
            }
            prop_assert!(state.validate(gpu).is_ok());
        }
    }

    #[test]
    fn a_larger_slice_and_a_smaller_job_are_never_slower(
        slices in 1_u8..7, used in 0.01_f64..1.0,
    ) {
        let fraction = f64::from(slices) / 7.0;
        let speed = mig_speed(fraction, used);
        prop_assert!(speed > 0.0 && speed <= 1.0);
        prop_assert!(mig_speed(f64::from(slices + 1) / 7.0, used) >= speed);
        prop_assert!(mig_speed(fraction, used * 0.9) >= speed);
    }
}
