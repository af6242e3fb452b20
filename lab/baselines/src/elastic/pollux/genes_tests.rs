//! The search against every allocation of tiny instances, and the rules that each individual must keep.

use proptest::prelude::*;
use rand::SeedableRng as _;

use super::*;

/// A job whose speed-up is so many times its GPUs to a power, less a part on several nodes.
fn row(scale: f64, exponent: f64, spread: f64, least: u32, most: u32) -> Row {
    let on = |factor: f64| {
        let speedups = (least..=most).map(|gpus| factor * scale * f64::from(gpus).powf(exponent));
        vec![speedups.collect::<Vec<f64>>()]
    };
    Row {
        current: None,
        restart_factor: 1.0,
        least,
        most,
        one_node: on(1.0),
        several_nodes: on(spread),
    }
}

fn problem(capacity: &[u8], rows: Vec<Row>) -> Problem {
    Problem {
        kinds: vec![0; capacity.len()],
        capacity: capacity.to_vec(),
        rows,
        power: -1.0,
        idle_speedup: 0.01,
        avoid_interference: true,
        mutated_jobs: 2.0,
    }
}

fn effort(population: usize, generations: u32) -> Effort {
    Effort {
        population,
        generations,
        patience: u32::MAX,
        stalled: 0,
    }
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(7)
}

fn keeps_the_rules(problem: &Problem, individual: &[u8]) -> bool {
    let nodes = problem.num_nodes();
    let mut ok = true;
    let mut distributed = vec![0; nodes];
    for (job, row) in problem.rows.iter().enumerate() {
        let gpus = problem.row_of(individual, job);
        let total: u32 = gpus.iter().map(|gpus| u32::from(*gpus)).sum();
        ok &= total == 0 || (row.least..=row.most).contains(&total);
        let on: Vec<usize> = (0..nodes).filter(|node| gpus[*node] > 0).collect();
        ok &= on.iter().all(|node| problem.kinds[*node] == problem.kinds[on[0]]);
        if on.len() > 1 {
            on.iter().for_each(|node| distributed[*node] += 1);
        }
    }
    for (node, num_distributed) in distributed.iter().enumerate() {
        let used: u32 = (0..problem.rows.len())
            .map(|job| u32::from(problem.row_of(individual, job)[node]))
            .sum();
        ok &= used <= u32::from(problem.capacity[node]);
        ok &= !problem.avoid_interference || *num_distributed <= 1;
    }
    ok
}

/// The fittest of all allocations that keep the rules.
fn brute_force(problem: &Problem) -> f64 {
    let size = problem.rows.len() * problem.num_nodes();
    let mut individual = vec![0_u8; size];
    let mut best = 0.0_f64;
    loop {
        if keeps_the_rules(problem, &individual) {
            best = best.max(problem.fitness(&individual));
        }
        // The next matrix, counting with a digit for each entry.
        let Some(at) = (0..size).find(|at| individual[*at] < problem.capacity[at % problem.num_nodes()])
        else {
            return best;
        };
        individual[at] += 1;
        individual[..at].fill(0);
    }
}

#[test]
fn the_fitness_is_the_generalised_mean_of_the_speed_ups() {
    // Speed-ups 2 and 0.5: harmonic mean 2 / (0.5 + 2) = 0.8, arithmetic 1.25.
    let rows = vec![row(1.0, 1.0, 1.0, 1, 4), row(0.5, 1.0, 1.0, 1, 4)];
    let mut problem = problem(&[3], rows);
    assert!((problem.fitness(&[2, 1]) - 0.8).abs() < 1e-12);
    problem.power = 1.0;
    assert!((problem.fitness(&[2, 1]) - 1.25).abs() < 1e-12);
    // A job without GPUs counts 0.01.
    problem.power = -1.0;
    assert!((problem.fitness(&[2, 0]) - 2.0 / (0.5 + 100.0)).abs() < 1e-12);
}

#[test]
fn a_job_that_moves_pays_for_its_restart_and_one_that_waits_does_not() {
    let mut running = row(1.0, 1.0, 1.0, 1, 4);
    (running.current, running.restart_factor) = (Some(vec![1, 0]), 0.25);
    let problem = problem(&[2, 2], vec![running, row(1.0, 1.0, 1.0, 1, 4)]);
    assert_eq!(problem.speedup(0, &[1, 0]), 1.0);
    assert_eq!(problem.speedup(0, &[2, 0]), 0.5);
    assert_eq!(problem.speedup(0, &[0, 1]), 0.25);
    assert_eq!(problem.speedup(1, &[2, 0]), 2.0);
}

#[test]
fn fair_shares_are_dealt_in_turn_and_tightly() {
    // Two nodes of 4, three jobs: 8 / 3 = 2 GPUs each; the rigid gang of 3 gets its 3.
    let rows = vec![
        row(1.0, 1.0, 1.0, 1, 8),
        row(1.0, 1.0, 1.0, 3, 3),
        row(1.0, 1.0, 1.0, 1, 8),
    ];
    assert_eq!(problem(&[4, 4], rows).fair(), [2, 0, 0, 3, 2, 0]);
}

#[test]
fn the_same_stream_finds_the_same_population() {
    let rows = || {
        (1..6)
            .map(|at| row(1.0, 0.9 / f64::from(at), 0.8, 1, 8))
            .collect()
    };
    let found = || problem(&[4, 4, 4], rows()).search(Vec::new(), effort(20, 10), &mut rng());
    assert_eq!(found(), found());
}

#[test]
fn gangs_are_found_among_elastic_jobs() {
    let mut rows: Vec<Row> = (0..3).map(|_| row(1.0, 0.7, 0.8, 1, 8)).collect();
    rows.push(row(1.0, 0.0, 1.0, 6, 6));
    let problem = problem(&[4, 4, 4], rows);
    let (found, _) = problem.search(Vec::new(), effort(100, 100), &mut rng());
    let gang: u32 = problem
        .row_of(&found[0], 3)
        .iter()
        .map(|gpus| u32::from(*gpus))
        .sum();
    assert_eq!(gang, 6);
}

#[test]
fn a_search_that_has_stalled_does_nothing_until_the_problem_changes() {
    let rows = vec![row(1.0, 1.0, 1.0, 1, 4), row(1.0, 1.0, 1.0, 1, 4)];
    let problem = problem(&[4], rows);
    let impatient = Effort {
        patience: 5,
        ..effort(20, 100)
    };
    // Two GPUs each are the fair shares, and the best: nothing fitter is ever found.
    let (found, stalled) = problem.search(Vec::new(), impatient, &mut rng());
    assert_eq!((found[0].as_slice(), stalled), ([2, 2].as_slice(), 5));
    let (again, _) = problem.search(found.clone(), Effort { stalled, ..impatient }, &mut rng());
    assert_eq!(again[0], found[0]);
}

fn tiny() -> impl Strategy<Value = Problem> {
    let job = (0.2_f64..3.0, 0.0_f64..1.1, 0.3_f64..1.0, 1_u32..3, 0_u32..4);
    let jobs = proptest::collection::vec(job, 1..4);
    (
        jobs,
        proptest::collection::vec(1_u8..3, 1..4),
        proptest::bool::ANY,
    )
        .prop_map(|(jobs, capacity, avoid)| {
            let rows = jobs.into_iter().map(|(scale, exponent, spread, least, more)| {
                row(scale, exponent, spread, least, least + more)
            });
            let mut problem = problem(&capacity, rows.collect());
            problem.avoid_interference = avoid;
            problem
        })
}

proptest! {
    #[test]
    fn the_search_is_never_worse_than_fair_and_close_to_the_best_of_all(problem in tiny()) {
        let best = brute_force(&problem);
        let (found, _) = problem.search(Vec::new(), effort(100, 100), &mut rng());
        prop_assert!(found.iter().all(|individual| keeps_the_rules(&problem, individual)));
        let fitness = problem.fitness(&found[0]);
        prop_assert!(fitness <= best + 1e-12);
        prop_assert!(fitness >= 0.97 * best, "{fitness} of {best}");
        let fair = problem.fair();
        if keeps_the_rules(&problem, &fair) {
            prop_assert!(fitness >= problem.fitness(&fair));
        }
    }
}
