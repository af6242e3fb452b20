//! Cuts of graphs: by hand, and chains by counting paths against all paths.

use proptest::prelude::*;

use super::*;
use crate::functions::surface;

fn function(name: &str, latency_us: u64) -> Function {
    let k = Configuration {
        batch: 1,
        cores: 1,
        slices: 1,
        latency_us,
    };
    Function::new(name, 1, vec![k]).unwrap()
}

fn functions() -> Vec<Function> {
    [("a", 100), ("b", 200), ("c", 50), ("d", 150)]
        .map(|(name, us)| function(name, us))
        .to_vec()
}

fn graph(names: &str, edges: &[(usize, usize)]) -> Graph {
    Graph {
        name: "app".into(),
        functions: names.chars().map(String::from).collect(),
        edges: edges.to_vec(),
    }
}

#[test]
fn graphs_that_cannot_be_are_refused_by_name() {
    for (graphs, part) in [
        (vec![], "apps = 0"),
        (vec![graph("", &[])], "apps.app = 0 functions: allowed is 1 to 8"),
        (vec![graph("abx", &[])], "apps.app = x: allowed is a, b, c, d"),
        (vec![graph("ab", &[(0, 2)])], "apps.app = 0 -> 2"),
        (vec![graph("ab", &[(0, 1), (0, 1)])], "apps.app = 0 -> 1"),
        (
            vec![graph("abc", &[(0, 1), (1, 2), (2, 1)])],
            "a cycle before or among stages 1, 2",
        ),
    ] {
        let said = Work::new(functions(), &graphs).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_chain_is_cut_into_threes_and_shares_are_of_the_time_left() {
    let work = Work::new(functions(), &[Graph::chain("app", &["a", "b", "c", "d"])]).unwrap();
    let groups: Vec<&[usize]> = work.steps.iter().map(|step| &step.group[..]).collect();
    assert_eq!(groups, [&[0, 1, 2][..], &[1, 2], &[2], &[3]]);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    near(work.steps[0].group_share, 350.0 / 500.0);
    near(work.steps[1].group_share, 250.0 / 400.0);
    near(work.steps[2].group_share, 50.0 / 200.0);
    near(work.steps[3].group_share, 1.0);
    near(work.steps[1].rest_share, 200.0 / 400.0);
    near(work.steps[1].share, 200.0 / 500.0);
    assert_eq!(
        (
            work.apps[0].base_us,
            work.steps[1].rest_us,
            work.steps[3].fastest_us
        ),
        (500, 400, 150)
    );
    assert_eq!(
        work.steps[0].after,
        [Point {
            latency_us: 250,
            usd: work.steps[0].after[0].usd
        }]
    );
}

/// a, then b beside c and d in a row, then a: the branches are 200 long both, and c's is 50 of them.
#[test]
fn branches_are_stretched_to_the_longest_and_cut_by_themselves() {
    let edges = [(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)];
    let work = Work::new(functions(), &[graph("abcda", &edges)]).unwrap();
    let groups: Vec<&[usize]> = work.steps.iter().map(|step| &step.group[..]).collect();
    assert_eq!(groups, [&[0][..], &[1], &[2, 3], &[3], &[4]]);
    let shares: Vec<f64> = work.steps.iter().map(|step| step.share).collect();
    for (found, expected) in shares.iter().zip([0.25, 0.5, 0.125, 0.375, 0.25]) {
        assert!((found - expected).abs() < 1e-12, "{shares:?}");
    }
    // A branch of half the length has the same time: c alone beside b.
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3)];
    let work = Work::new(functions(), &[graph("abca", &edges)]).unwrap();
    assert!((work.steps[2].share - work.steps[1].share).abs() < 1e-12);
    assert!((work.steps[2].group_share - 200.0 / 300.0).abs() < 1e-12);
}

#[test]
fn surfaces_are_whole_and_as_large_as_they_are_said_to_be() {
    for (name, configurations, applications) in [("assumed", 256, 4), ("flat", 256, 4), ("infless", 77, 4)] {
        let work = surface::work(name).unwrap();
        assert_eq!(work.functions[0].configurations().len(), configurations, "{name}");
        assert_eq!(work.apps.len(), applications, "{name}");
        assert!(
            work.functions
                .iter()
                .all(|function| function.pareto().len() < configurations)
        );
    }
    assert_eq!(surface::work("assumed").unwrap().apps[0].base_us, 526_000);
    assert!(
        surface::work("steep")
            .unwrap_err()
            .to_string()
            .contains("assumed, flat, infless")
    );
}

fn paths(next: &[Vec<usize>], stage: usize, so_far: &[usize], all: &mut Vec<Vec<usize>>) {
    let path = [so_far, &[stage]].concat();
    if next[stage].is_empty() {
        all.push(path);
    } else {
        next[stage].iter().for_each(|to| paths(next, *to, &path, all));
    }
}

proptest! {
    #[test]
    fn what_stands_in_the_chain_is_on_every_path(num in 1_usize..8, bits in any::<u64>()) {
        let mut next = vec![Vec::new(); num];
        let pairs = (0..num).flat_map(|from| (from + 1..num).map(move |to| (from, to)));
        for (place, (from, to)) in pairs.enumerate() {
            if bits >> place & 1 == 1 {
                next[from].push(to);
            }
        }
        let mut all = Vec::new();
        let firsts = (0..num).filter(|stage| !next.iter().any(|to| to.contains(stage)));
        firsts.for_each(|first| paths(&next, first, &[], &mut all));
        let on_all: Vec<usize> = (0..num).filter(|stage| all.iter().all(|path| path.contains(stage))).collect();
        let stages: Vec<usize> = (0..num).collect();
        prop_assert_eq!(on_every_path(&next, &stages), on_all);

        // Every step has a group that begins with itself, shares from 0 to 1, and no way is longer than the target.
        let edges = next.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to)));
        let names: String = (0..num).map(|stage| "abcd".as_bytes()[stage % 4] as char).collect();
        let work = Work::new(functions(), &[graph(&names, &edges.collect::<Vec<_>>())]).unwrap();
        for (at, step) in work.steps.iter().enumerate() {
            prop_assert!(step.group[0] == at && step.group.len() <= GROUP_MAX);
            prop_assert!(step.group_share > 0.0 && step.group_share <= 1.0 + 1e-9);
        }
        for path in all {
            let share: f64 = path.iter().map(|stage| work.steps[*stage].share).sum();
            prop_assert!(share <= 1.0 + 1e-9);
        }
    }
}
