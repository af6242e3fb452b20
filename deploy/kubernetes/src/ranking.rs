//! Tells Kueue the order of the workloads that wait, by their priorities.
//!
//! Kueue admits them, by all of its own rules. Nothing is held, so a controller that ends anywhere leaves a queue that goes on. A
//! priority that was not written is seen in the next round, which reads all of them anew.

use pleach_daemon::factors;
use pleach_daemon::order::Order;
use pleach_scheduler::ExternalId;

use crate::api::Cluster;
use crate::error::Error;
use crate::workload_queue::Place;

/// Requests without an answer, one after the other, after which a round sends no more.
const SILENCE_MAX: u32 = 3;

/// Writes the priorities that are wrong, at most `updates_max`, and notes them in the order; what an operator should know of it.
pub(crate) async fn tell(
    cluster: &Cluster,
    places: &[Place],
    order: &mut Order,
    (step, updates_max): (i64, usize),
) -> Vec<String> {
    let changed = changes(places, order, step);
    order.num_left = changed.len();
    let (mut notes, mut silence) = (Vec::new(), 0);
    for (at, priority) in changed.into_iter().take(updates_max) {
        let place = &places[at];
        match cluster.rank(place, priority).await {
            Ok(true) => {
                order.num_left -= 1;
                let name = format!("{}/{}", place.namespace, place.name);
                order.written.insert(name, i64::from(priority));
                silence = 0;
            }
            // Admitted, or gone, in the meantime.
            Ok(false) => order.num_left -= 1,
            Err(error) => {
                silence = match error {
                    Error::Deadline { .. } => silence + 1,
                    _ => 0,
                };
                if notes.len() < 3 {
                    notes.push(error.to_string());
                }
                if silence >= SILENCE_MAX {
                    break;
                }
            }
        }
    }
    notes
}

/// Gives workloads the priorities of their classes back: how many, and what was refused.
pub(crate) async fn take_back(cluster: &Cluster, places: &[Place]) -> (u64, Vec<String>) {
    let (mut num, mut refused) = (0, Vec::new());
    for place in places.iter().filter(|place| place.priority != place.class) {
        match cluster.rank(place, place.class).await {
            Ok(is_done) => num += u64::from(is_done),
            Err(error) => refused.push(error.to_string()),
        }
    }
    (num, refused)
}

/// Places whose priorities are wrong, and what they have to be, those first that matter most.
fn changes(places: &[Place], order: &Order, step: i64) -> Vec<(usize, i32)> {
    let jobs: Vec<Option<ExternalId>> = places.iter().map(|place| place.job).collect();
    let (merged, cut) = factors::wanted(&jobs, order);
    let mut wanted: Vec<(usize, bool)> = merged
        .into_iter()
        .enumerate()
        .map(|(number, at)| (at, number < cut))
        .collect();
    // Classes go before the policy.
    wanted.sort_by_key(|(at, _)| std::cmp::Reverse(places[*at].class));
    let cut = wanted
        .iter()
        .rposition(|(_, is_before)| *is_before)
        .map_or(0, |last| last + 1);
    // A new workload has what its class gives: those of ours of the lowest class are above that.
    let floor = cut
        .checked_sub(1)
        .map_or(0, |last| i64::from(places[wanted[last].0].class));
    let present = |(number, (at, _)): (usize, &(usize, bool))| {
        let place = &places[*at];
        match i64::from(place.priority) - floor {
            _ if number >= cut && place.priority == place.class => 0,
            0 if number >= cut => 1,
            above => above,
        }
    };
    let present: Vec<i64> = wanted.iter().enumerate().map(present).collect();
    let changed = factors::changes(&present, cut, step).into_iter();
    changed
        .filter_map(|(number, factor)| {
            let at = wanted[number].0;
            let priority = match number < cut {
                true => i32::try_from(floor + factor).unwrap_or(i32::MAX),
                false => places[at].class,
            };
            (priority != places[at].priority).then_some((at, priority))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64, priority: i32, class: i32) -> Place {
        Place {
            namespace: "team".into(),
            name: format!("w-{number}"),
            uid: number.to_string(),
            resource_version: "1".into(),
            job: Some(ExternalId::number(number)),
            priority,
            class,
        }
    }

    fn order(jobs: &[u64], num_ranked: usize) -> Order {
        Order {
            jobs: jobs.iter().copied().map(ExternalId::number).collect(),
            num_jobs: jobs.len(),
            num_ranked,
            ..Order::default()
        }
    }

    /// Numbers in the order in which Kueue admits them: by priority, then by arrival.
    fn line(places: &[Place]) -> Vec<u64> {
        let mut line: Vec<(i64, usize)> = places
            .iter()
            .enumerate()
            .map(|(at, place)| (-i64::from(place.priority), at))
            .collect();
        line.sort_unstable();
        line.into_iter()
            .map(|(_, at)| places[at].uid.parse().unwrap())
            .collect()
    }

    fn write(places: &mut [Place], order: &Order) -> usize {
        let changed = changes(places, order, 1000);
        for (at, priority) in &changed {
            places[*at].priority = *priority;
        }
        changed.len()
    }

    #[test]
    fn those_that_are_ranked_go_in_the_order_and_the_longest_part_that_is_right_stays() {
        let mut places: Vec<Place> = (0..6).map(|number| place(number, 0, 0)).collect();
        assert_eq!(write(&mut places, &order(&[3, 1, 4, 0, 2, 5], 4)), 4);
        assert_eq!(line(&places), [3, 1, 4, 0, 2, 5]);
        // The last two keep what a new one has.
        assert_eq!((places[2].priority, places[5].priority), (0, 0));
        assert_eq!(write(&mut places, &order(&[3, 1, 4, 0, 2, 5], 4)), 0);
        // One job moves, one number is written; a new one stands behind those that are ranked until it is.
        places.push(place(6, 0, 0));
        assert_eq!(line(&places), [3, 1, 4, 0, 2, 5, 6]);
        assert_eq!(write(&mut places, &order(&[3, 6, 1, 4, 0, 2, 5], 5)), 1);
        assert_eq!(line(&places), [3, 6, 1, 4, 0, 2, 5]);
    }

    #[test]
    fn nobody_is_put_before_a_workload_of_a_higher_class() {
        // Classes of 100 and -5; the policy would have the urgent ones last.
        let mut places = vec![
            place(0, 0, 0),
            place(1, 100, 100),
            place(2, 0, 0),
            place(3, 100, 100),
            place(4, -5, -5),
        ];
        write(&mut places, &order(&[4, 2, 0, 3, 1], 5));
        assert_eq!(line(&places), [3, 1, 2, 0, 4]);
        assert_eq!(write(&mut places, &order(&[4, 2, 0, 3, 1], 5)), 0);
        // Workloads that are not ranked have what their class gives.
        write(&mut places, &order(&[3, 1, 0, 2, 4], 0));
        let priorities: Vec<i32> = places.iter().map(|place| place.priority).collect();
        assert_eq!(priorities, [0, 100, 0, 100, -5]);
    }

    /// A workload outside the policy's tables keeps its place by arrival, and its priority is written where that is needed.
    #[test]
    fn who_is_left_to_kueue_is_not_pushed_back() {
        let mut places: Vec<Place> = (0..4).map(|number| place(number, 0, 0)).collect();
        places[1].job = None;
        write(&mut places, &order(&[3, 2, 0], 3));
        assert_eq!(line(&places), [3, 1, 2, 0]);
    }

    /// All orders of five workloads with two classes, from all numbers that another order left.
    #[test]
    fn any_order_is_reached_from_any_other_within_classes() {
        let orders = permutations(&[0, 1, 2, 3, 4]);
        let class = |number: u64| if number == 2 { 50 } else { 0 };
        for before in orders.iter().step_by(7) {
            for (index, after) in orders.iter().enumerate() {
                let mut places: Vec<Place> = (0..5)
                    .map(|number| place(number, class(number), class(number)))
                    .collect();
                write(&mut places, &order(before, 5));
                let num_ranked = index % 6;
                write(&mut places, &order(after, num_ranked));
                let mut wanted: Vec<u64> = after[..num_ranked].to_vec();
                let rest = (0..5).filter(|number| !after[..num_ranked].contains(number));
                wanted.extend(rest);
                wanted.sort_by_key(|number| std::cmp::Reverse(class(*number)));
                assert_eq!(line(&places), wanted, "{before:?} {after:?} {num_ranked}");
            }
        }
    }

    fn permutations(of: &[u64]) -> Vec<Vec<u64>> {
        let mut found = Vec::new();
        for (at, first) in of.iter().enumerate() {
            let rest = [&of[..at], &of[at + 1..]].concat();
            for mut tail in permutations(&rest) {
                tail.insert(0, *first);
                found.push(tail);
            }
        }
        if of.is_empty() {
            found.push(Vec::new());
        }
        found
    }
}
