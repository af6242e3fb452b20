//! Factors worked by hand, and what holds of all of them.

use proptest::prelude::*;

use super::*;

/// Factors after changes.
fn after(present: &[i64], changes: &[(usize, i64)]) -> Vec<i64> {
    let mut factors = present.to_vec();
    for (at, factor) in changes {
        factors[*at] = *factor;
    }
    factors
}

/// The places in which Slurm would start, all other factors being equal; `arrival` has the place by arrival of each.
fn started(factors: &[i64], arrival: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..factors.len()).collect();
    order.sort_by_key(|at| (-factors[*at], arrival[*at]));
    order
}

#[test]
fn only_what_is_in_the_wrong_place_is_written() {
    // No job has a factor yet.
    assert_eq!(changes(&[0, 0, 0], 3, 10), [(0, 30), (1, 20), (2, 10)]);
    assert_eq!(changes(&[30, 20, 10], 3, 10), []);
    // A new one at the head, in the middle, at the end.
    assert_eq!(changes(&[0, 30, 20, 10], 4, 10), [(0, 40)]);
    assert_eq!(changes(&[30, 0, 20, 10], 4, 10), [(1, 25)]);
    assert_eq!(changes(&[30, 20, 10, 0], 4, 10), [(3, 5)]);
    assert_eq!(changes(&[300, 0, 0], 3, 10), [(1, 290), (2, 280)]);
    // The last becomes the first; the first becomes the last.
    assert_eq!(changes(&[10, 30, 20], 3, 10), [(0, 40)]);
    assert_eq!(changes(&[20, 10, 30], 3, 10), [(2, 5)]);
    // Behind the cut all factors are 0: there the job with a larger one is in the way.
    assert_eq!(changes(&[30, 20, 40, 0], 2, 10), [(2, 0)]);
    assert_eq!(changes(&[], 0, 10), []);
}

#[test]
fn where_no_number_is_left_those_above_move_up() {
    assert_eq!(changes(&[30, 0, 29, 10], 4, 10), [(0, 49), (1, 39)]);
    assert_eq!(changes(&[90, 30, 0, 29, 10], 5, 10), [(1, 70), (2, 50)]);
    // Below the last one there is none either.
    assert_eq!(changes(&[30, 1, 0], 3, 10), [(1, 20), (2, 10)]);
}

#[test]
fn near_the_end_of_the_numbers_everybody_is_numbered_from_below_the_last_first() {
    let present = [CEILING + 20, CEILING + 10, 7, 5];
    let changed = changes(&present, 3, 10);
    assert_eq!(changed, [(3, 0), (2, 10), (1, 20), (0, 30)]);
    for num in 0..=changed.len() {
        let factors = after(&present, &changed[..num]);
        assert_eq!(started(&factors, &[0, 1, 2, 3]), [0, 1, 2, 3]);
    }
}

#[test]
fn who_is_not_ranked_keeps_its_place_by_arrival() {
    // By arrival 0 to 5; 1 and 4 cannot be ranked, and of the others the policy wants 5, 3, 2, 0 and ranked the first three.
    let is_ranked = [true, false, true, true, false, true];
    assert_eq!(merged(&is_ranked, &[5, 3, 2, 0], 3), (vec![5, 1, 3, 2, 4, 0], 4));
    assert_eq!(merged(&is_ranked, &[5, 3, 2, 0], 4).1, 6);
    assert_eq!(merged(&[false, false], &[], 0), (vec![0, 1], 0));
}

/// The longest falling sequence by trying all.
fn longest(numbers: &[i64]) -> usize {
    let falls = |mask: u32| {
        let chosen: Vec<i64> = (0..numbers.len())
            .filter(|at| mask >> at & 1 == 1)
            .map(|at| numbers[at])
            .collect();
        (chosen.iter().all(|number| *number > 0) && chosen.windows(2).all(|two| two[0] > two[1]))
            .then_some(chosen.len())
    };
    (0..1_u32 << numbers.len()).filter_map(falls).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn after_all_changes_the_order_is_right_and_after_some_its_head_is(
        jobs in proptest::collection::vec((0_i64..60, any::<u16>()), 0..12),
        cut in 0_usize..=12,
        step in 1_i64..12,
        budget in 1_usize..5,
        scale in prop_oneof![Just(1_i64), Just(1000)],
    ) {
        let cut = cut.min(jobs.len());
        let mut factors: Vec<i64> = jobs.iter().map(|(factor, _)| *factor * scale).collect();
        // Behind the cut by arrival.
        let mut arrival: Vec<usize> = (0..jobs.len()).collect();
        arrival[..cut].sort_by_key(|at| jobs[*at].1);
        let wanted: Vec<usize> = (0..jobs.len()).collect();
        let first = changes(&factors, cut, step);
        // No more is written than has to be, where there is room.
        let kept = longest(&factors[..cut]);
        let behind = factors[cut..].iter().filter(|factor| **factor != 0).count();
        let anew = first.iter().filter(|(at, _)| *at < cut).count();
        prop_assert!(anew >= cut - kept && first.len() == anew + behind);
        if scale > 1 { prop_assert_eq!(anew, cut - kept); }
        let mut num_right = 0;
        for _ in 0..40 {
            let changed = changes(&factors, cut, step);
            if changed.is_empty() { break; }
            let part = &changed[..changed.len().min(budget)];
            factors = after(&factors, part);
            prop_assert!(factors.iter().all(|factor| (0..CEILING).contains(factor)));
            let order = started(&factors, &arrival);
            let right = order.iter().zip(&wanted).take_while(|(is, wanted)| is == wanted).count();
            prop_assert!(right >= num_right.min(cut), "the head that was right stays right: {order:?}");
            num_right = right;
        }
        prop_assert!(changes(&factors, cut, step).is_empty(), "it comes to an end");
        prop_assert_eq!(started(&factors, &arrival), wanted);
    }
}
