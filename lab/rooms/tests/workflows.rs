//! Workflows on workers with models in memory: nothing is lost, the best placement and the fewest loads by brute force.

use std::cell::Cell;

use pleach_rooms::workflows::{
    Memory, Model, POLICIES, Placer, Queries, Query, QueryGenerator, Ready, System, View, Workers, Workflow,
    by_name, simulate,
};
use pleach_scheduler::Problem;
use pleach_workloads::Seed;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// 1 kB takes 1 ms, nothing to begin.
fn workers(num: usize, memory_mib: u64) -> Workers {
    Workers {
        num,
        memory_mib,
        link_latency_us: 0,
        link_kb_per_ms: 1,
        refresh_us: 0,
    }
}

fn models(num: usize, load_us: u64) -> Vec<Model> {
    let model = |number: usize| Model {
        name: format!("m{number}"),
        size_mib: 1,
        load_us,
    };
    (0..num).map(model).collect()
}

fn one_query(system: &System) -> Queries {
    let tasks = system.workflows()[0].tasks();
    let run_us = tasks.iter().map(|task| task.run_us).collect();
    Queries::new(
        vec![Query {
            arrival_us: 0,
            workflow: 0,
            entry: 0,
            run_us,
        }],
        system,
    )
    .unwrap()
}

/// Each task on a worker that is given.
struct Fixed(Vec<usize>);

impl Placer for Fixed {
    fn plan(&mut self, _: &View<'_>, _: &Workflow) -> Result<Vec<(usize, u64)>, Problem> {
        Ok(self.0.iter().map(|worker| (*worker, 0)).collect())
    }

    fn place(&mut self, _: &View<'_>, ready: &Ready<'_>) -> Result<usize, Problem> {
        Ok(self.0[ready.task])
    }

    fn memory(&self) -> Memory {
        Memory {
            looks_ahead: true,
            prefetches: true,
        }
    }
}

fn latency_us(system: &System, placer: &mut dyn Placer) -> u64 {
    simulate(system, &one_query(system), true, placer)
        .unwrap()
        .queries[0]
        .finish_us
}

/// A (10 ms) gives 4 kB to B (20 ms) and C (30 ms), both give 4 kB to D (10 ms). On two workers C stays with A: 10-40. B moves:
/// 14-34. D with C: B's output is there at 38, so 40-50. All on one: 10 + 20 + 30 + 10 = 70.
#[test]
fn a_diamond_is_placed_as_worked_by_hand() {
    let models = models(1, 0);
    let tasks: [(&str, &str, u64, u64, &[&str]); 4] = [
        ("a", "m0", 10_000, 4, &[]),
        ("b", "m0", 20_000, 4, &["a"]),
        ("c", "m0", 30_000, 4, &["a"]),
        ("d", "m0", 10_000, 0, &["b", "c"]),
    ];
    let diamond = Workflow::new("diamond", 0, &tasks, &models).unwrap();
    let on = |num| System::new(models.clone(), vec![diamond.clone()], workers(num, 10)).unwrap();
    for policy in ["compass", "heft"] {
        assert_eq!(
            latency_us(&on(2), by_name(policy).unwrap().as_mut()),
            50_000,
            "{policy}"
        );
        assert_eq!(
            latency_us(&on(1), by_name(policy).unwrap().as_mut()),
            70_000,
            "{policy}"
        );
    }
    // B comes first and stays: C 14-44 elsewhere, back at 48.
    assert_eq!(latency_us(&on(2), by_name("jit").unwrap().as_mut()), 58_000);
    assert_eq!(
        latency_us(&on(2), by_name("hash").unwrap().as_mut()),
        70_000,
        "one model, one worker"
    );
    assert_eq!(
        latency_us(&on(2), &mut Fixed(vec![0, 0, 1, 0])),
        58_000,
        "C 14-44 elsewhere, back at 48"
    );
    let outcome = simulate(
        &on(2),
        &one_query(&on(2)),
        true,
        by_name("compass").unwrap().as_mut(),
    )
    .unwrap();
    assert_eq!(
        (
            outcome.queries[0].slowdown(),
            outcome.hit_share(),
            outcome.busy_us
        ),
        (1.0, 1.0, 70_000)
    );
}

/// A model of 5 ms to load, twice in a chain of 10 ms tasks with another between them; memory for one. Three loads without a
/// prefetch: 15 + 15 + 15; nothing can be loaded ahead, for the memory is in use.
#[test]
fn loads_take_their_time_and_are_hidden_where_memory_allows() {
    let models = models(2, 5_000);
    let tasks: [(&str, &str, u64, u64, &[&str]); 3] = [
        ("a", "m0", 10_000, 0, &[]),
        ("b", "m1", 10_000, 0, &[]),
        ("c", "m0", 10_000, 0, &[]),
    ];
    let chain = Workflow::new("three", 0, &tasks, &models).unwrap();
    let system =
        |memory_mib| System::new(models.clone(), vec![chain.clone()], workers(1, memory_mib)).unwrap();
    let cold = |memory_mib, policy: &str| {
        let system = system(memory_mib);
        let outcome = simulate(
            &system,
            &one_query(&system),
            false,
            by_name(policy).unwrap().as_mut(),
        )
        .unwrap();
        (outcome.queries[0].finish_us, outcome.num_loads)
    };
    assert_eq!(cold(1, "jit"), (45_000, 3));
    assert_eq!(
        cold(2, "jit"),
        (35_000, 2),
        "the second is loaded while the first runs"
    );
    assert_eq!(cold(2, "jit:prefetch=false"), (40_000, 2));
}

/// Up to four tasks in a random graph on two workers that have all models: (run ms, output kB, bits of predecessors).
type Drawn = Vec<(u64, u64, u8)>;

fn toy(drawn: &Drawn) -> System {
    let models = models(1, 0);
    let names = ["a", "b", "c", "d"];
    let after: Vec<Vec<&str>> = drawn
        .iter()
        .enumerate()
        .map(|(number, (_, _, bits))| {
            (0..number)
                .filter(|before| bits & (1 << before) != 0)
                .map(|before| names[before])
                .collect()
        })
        .collect();
    let rows: Vec<(&str, &str, u64, u64, &[&str])> = drawn
        .iter()
        .enumerate()
        .map(|(number, (run_ms, output_kb, _))| {
            (
                names[number],
                "m0",
                run_ms * 1_000,
                *output_kb,
                after[number].as_slice(),
            )
        })
        .collect();
    let workflow = Workflow::new("toy", 0, &rows, &models).unwrap();
    System::new(models, vec![workflow], workers(2, 10)).unwrap()
}

/// No rule is better than the best of all placements. Ranks are a heuristic (HEFT): within Graham's bound of list scheduling
/// for two workers where nothing is moved, and mostly the best.
#[test]
fn placements_by_rank_are_held_to_all_placements() {
    let task = (1_u64..30, 0_u64..4, 0_u8..8);
    let (num, num_best) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner = TestRunner::deterministic();
    runner
        .run(&prop::collection::vec(task, 1..5), |drawn| {
            let system = toy(&drawn);
            let num_tasks = drawn.len();
            let all =
                (0..1_usize << num_tasks).map(|bits| (0..num_tasks).map(|task| bits >> task & 1).collect());
            let best = all
                .map(|placed| latency_us(&system, &mut Fixed(placed)))
                .min()
                .unwrap();
            for policy in ["compass:replan=false", "compass", "heft", "jit"] {
                let ours = latency_us(&system, by_name(policy).unwrap().as_mut());
                // The queue of a worker is in order of readiness, so the best of these placements is the best there is.
                prop_assert!(ours >= best, "{policy} {ours} {best}");
                if drawn.iter().all(|(_, output_kb, _)| *output_kb == 0) {
                    prop_assert!(2 * ours <= 3 * best, "{policy} {ours} {best}");
                }
                if policy == "compass" {
                    num.set(num.get() + 1);
                    num_best.set(num_best.get() + u32::from(ours == best));
                }
            }
            Ok(())
        })
        .unwrap();
    let (num, num_best) = (num.get(), num_best.get());
    assert!(num >= 200 && num_best * 10 >= num * 9, "{num_best} of {num}");
}

/// The fewest loads for a sequence of models, of equal size, over all that may give way.
fn fewest_loads(sequence: &[usize], held: &mut Vec<usize>, places: usize) -> u64 {
    let Some((model, rest)) = sequence.split_first() else {
        return 0;
    };
    if held.contains(model) {
        return fewest_loads(rest, held, places);
    }
    if held.len() < places {
        held.push(*model);
        let loads = 1 + fewest_loads(rest, held, places);
        held.pop();
        return loads;
    }
    (0..places)
        .map(|place| {
            let old = std::mem::replace(&mut held[place], *model);
            let loads = 1 + fewest_loads(rest, held, places);
            held[place] = old;
            loads
        })
        .min()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Belady's rule is the best where all that comes is known; loading ahead changes when, not what.
    #[test]
    fn looking_ahead_loads_as_few_models_as_any_rule_could(
        sequence in prop::collection::vec(0_usize..4, 1..9), places in 1_u64..4,
    ) {
        let models = models(4, 700);
        let names: Vec<String> = (0..sequence.len()).map(|number| format!("t{number}")).collect();
        let rows: Vec<(&str, &str, u64, u64, &[&str])> = sequence.iter().zip(&names).map(|(model, name)| {
            (name.as_str(), models[*model].name.as_str(), 1_000, 0, &[] as &[&str])
        }).collect();
        let workflow = Workflow::new("sequence", 0, &rows, &models).unwrap();
        let system = System::new(models.clone(), vec![workflow], workers(1, places)).unwrap();
        let best = fewest_loads(&sequence, &mut Vec::new(), places as usize);
        let loads = |policy: &str| {
            simulate(&system, &one_query(&system), false, by_name(policy).unwrap().as_mut()).unwrap().num_loads
        };
        prop_assert_eq!(loads("hash"), best);
        prop_assert_eq!(loads("hash:prefetch=false"), best);
        prop_assert!(loads("hash:lookahead=false") >= best);
    }
}

#[test]
fn every_rule_serves_all_once_does_the_same_work_and_repeats_itself() {
    for refresh_us in [0, 200_000, 3_000_000] {
        let system = System::compass(refresh_us).unwrap();
        let generator = QueryGenerator {
            num_queries: 400,
            rate_per_s: 2.0,
            spread: 0.2,
        };
        let list = generator.draw(&system, Seed(1)).unwrap();
        let work_us: u64 = list.rows().iter().flat_map(|row| &row.run_us).sum();
        for policy in POLICIES
            .iter()
            .map(|info| info.name)
            .chain(["compass:lookahead=false:prefetch=false"])
        {
            let play = || simulate(&system, &list, false, by_name(policy).unwrap().as_mut()).unwrap();
            let outcome = play();
            assert_eq!(outcome, play(), "{policy}");
            assert_eq!(outcome.busy_us, work_us, "{policy}");
            assert!(
                outcome.queries.iter().all(|served| served.slowdown() >= 1.0),
                "{policy}"
            );
            assert!(
                (0.0..1.0).contains(&outcome.hit_share()) && outcome.num_loads >= 9,
                "{policy}"
            );
        }
    }
}

/// Alone in the system, warm and where all fits, a query takes its critical path and what is moved.
#[test]
fn a_query_alone_takes_its_critical_path() {
    let system = System::compass(0).unwrap();
    let roomy = Workers {
        memory_mib: 40_000,
        ..*system.workers()
    };
    let system = System::new(system.models().to_vec(), system.workflows().to_vec(), roomy).unwrap();
    for (workflow, moved) in [(0, 1), (1, 0), (2, 0), (3, 1)] {
        let run_us: Vec<u64> = system.workflows()[workflow]
            .tasks()
            .iter()
            .map(|task| task.run_us)
            .collect();
        let list = Queries::new(
            vec![Query {
                arrival_us: 5,
                workflow,
                entry: 1,
                run_us,
            }],
            &system,
        )
        .unwrap();
        let served = simulate(&system, &list, true, by_name("compass").unwrap().as_mut())
            .unwrap()
            .queries[0];
        let over_us = served.finish_us - served.arrival_us - served.critical_us;
        assert!(over_us <= moved * 1_000, "workflow {workflow}: {over_us} us");
    }
}
