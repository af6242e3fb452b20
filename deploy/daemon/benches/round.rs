//! The daemon's own time of a round, from the text that Slurm printed to the order: read, tables, ranking. Slurm's commands
//! are not in it. One running job on each node, and the jobs that wait; a quarter of the GPUs is free.

use std::fmt::Write;

use criterion::{Criterion, criterion_group, criterion_main};
use pleach_daemon::Settings;
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::slurm::observe::{self as slurm, Texts};

const NOW_S: i64 = 1_795_000_000;
const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checkpoints/reference/");

fn job(number: usize, gpus: usize, minutes: usize, runs_on: Option<usize>) -> String {
    let (state, priority, reason) = match runs_on {
        Some(_) => ("RUNNING", 1, "None"),
        None => ("PENDING", 1, "Priority"),
    };
    let node = runs_on.map_or(String::new(), |node| format!("n{node}"));
    let start_s = runs_on.map_or("N/A".to_owned(), |_| (NOW_S - 500).to_string());
    let submit_s = NOW_S - 1000;
    format!(
        "cpu=1,mem=0,node=1,gres/gpu={gpus}|normal|N/A|N/A|{number}|{state}|{priority}|gres:gpu:{gpus}|N/A|N/A|N/A|1|1|{node}||(null)|{reason}|{minutes}:00|{submit_s}|\
         {start_s}|0|OK|0|(null)|(null)|(null)|(null)|main|ann|(null)|\n"
    )
}

/// What `squeue` and `sinfo` print.
fn texts(num_nodes: usize, num_waiting: usize) -> (String, String) {
    let (mut jobs, mut nodes) = (String::new(), String::new());
    for node in 0..num_nodes {
        jobs += &job(node + 1, 3, 10 + node * 7919 % 1500, Some(node));
        let _ = writeln!(
            nodes,
            "64000|0|1|(null)|n{node}|mixed|gpu:a100:4|gpu:a100:3(IDX:0-2)|1/15/0/16|main*|"
        );
    }
    for row in 0..num_waiting {
        jobs += &job(
            num_nodes + row + 1,
            1 + row * 31 % 4,
            10 + row * 104_729 % 1500,
            None,
        );
    }
    (jobs, nodes)
}

fn printed<'a>(jobs: &'a str, nodes: &'a str) -> Texts<'a> {
    Texts {
        jobs,
        nodes,
        ..Texts::default()
    }
}

fn rounds(criterion: &mut Criterion) {
    let settings = Settings::default().rounds();
    for (num_nodes, num_waiting) in [(1000, 1000), (1000, 5000), (5000, 20_000)] {
        let (jobs, nodes) = texts(num_nodes, num_waiting);
        let size = format!("{num_nodes}x{num_waiting}");
        criterion.bench_function(&format!("read/{size}"), |bencher| {
            bencher.iter(|| slurm::read(&printed(&jobs, &nodes), "main", NOW_S).map(|seen| seen.jobs.len()));
        });
        for (name, policy) in [
            ("sjf", "sjf".to_owned()),
            (
                "tree",
                format!("{REFERENCE}../../tests/trees/PhillyGang-v1-tree.json"),
            ),
            ("network", format!("{REFERENCE}PhillyGang-v1.ckpt")),
            ("index", "index".to_owned()),
        ] {
            let loaded = Loaded::driving(&policy, &settings);
            let fallback = Loaded::driving("easy", &settings);
            let (Ok(mut policy), Ok(mut fallback)) = (loaded, fallback) else {
                println!("{name}: {policy} cannot be read");
                continue;
            };
            criterion.bench_function(&format!("observe to decision/{name}/{size}"), |bencher| {
                bencher.iter(|| {
                    let snapshot = slurm::read(&printed(&jobs, &nodes), "main", NOW_S)?;
                    let mut memory = Memory::default();
                    memory.observe(&snapshot);
                    let mut deciders = Deciders {
                        policy: &mut policy,
                        fallback: &mut fallback,
                    };
                    let plan =
                        round::plan(&snapshot, &memory, &mut deciders, &settings, false, &mut || false)?;
                    assert!(
                        plan.fallback.is_none() && plan.order.is_some(),
                        "nothing was ranked"
                    );
                    Ok::<usize, pleach_daemon::Error>(plan.order.map_or(0, |order| order.num_ranked))
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = rounds
}
criterion_main!(benches);
