//! Decisions and task ends for each second of CPU time (Linux): `cargo run --release -p pleach-graphs --example graph_speed`.

use std::sync::Arc;

use pleach_graphs::board::Board;
use pleach_graphs::engine::Engine;
use pleach_graphs::generate::{Arrivals, Shape, graphs, list};
use pleach_graphs::list::Machine;
use pleach_graphs::rules::{Rule, by_name, play};
use pleach_scheduler::Problem;
use pleach_workloads::Seed;

/// Seconds of each figure.
const MEASURED_S: f64 = 2.0;

/// CPU time of this thread, s.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    1e-9 * ns.unwrap_or(f64::NAN)
}

fn main() -> Result<(), Problem> {
    let drawn = Arc::new(graphs(Shape::Tpch, 150, Seed(0))?);
    let lists = [
        ("batch of 20", Arrivals::Batch { jobs: 20 }),
        (
            "stream of 200 at load 0.85",
            Arrivals::Stream {
                jobs: 200,
                load: 0.85,
            },
        ),
    ];
    for (name, arrivals) in lists {
        let list = Arc::new(list(&drawn, Machine::default(), arrivals, Seed(1))?);
        for rule in ["stage-fair", "sjf-cp", "srpt-cap", "stage-index", "stage-random"] {
            let (began, mut decisions, mut tasks) = (cpu_s(), 0, 0);
            while cpu_s() - began < MEASURED_S {
                let outcome = play(Arc::clone(&list), by_name(rule, &list, 1)?.as_mut())?;
                decisions += outcome.num_decisions;
                tasks += outcome.num_tasks;
            }
            let per_s = 1.0 / (cpu_s() - began);
            let (decisions, tasks) = (decisions as f64 * per_s, tasks as f64 * per_s);
            println!("{name}, {rule}: {decisions:.0} decisions, {tasks:.3e} task ends a CPU s");
        }
        let (began, mut decisions, mut rows) = (cpu_s(), 0, 0);
        let mut board = Board::default();
        let mut random = by_name("stage-random", &list, 1)?;
        while cpu_s() - began < MEASURED_S {
            let (found, num) = observed(Engine::new(Arc::clone(&list)), &mut board, random.as_mut());
            decisions += found;
            rows += num;
        }
        let per_s = decisions as f64 / (cpu_s() - began);
        let rows = rows as f64 / decisions as f64;
        println!(
            "{name}, random rows with the observation written: {per_s:.0} decisions a CPU s, {rows:.0} rows each"
        );
    }
    Ok(())
}

/// Takes any of the rows at each decision, all of them written; decisions and rows.
fn observed(mut engine: Engine, board: &mut Board, random: &mut dyn Rule) -> (u64, u64) {
    let (mut decisions, mut rows) = (0, 0);
    while !engine.is_over() {
        board.look(&engine);
        let num = board.choices().len();
        let drawn = random
            .choose(&engine)
            .map_or(0, |(stage, num)| stage.0 as usize * 31 + num as usize);
        engine.decide(board.choices()[drawn % num]);
        decisions += 1;
        rows += num as u64;
    }
    (decisions, rows)
}
