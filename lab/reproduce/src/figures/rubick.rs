//! Rubick (MLSys'25): measured steps of one model by plan and placement, bad plans among them, beside the law of plans.

use pleach_env::workload::plans::{Machine, Model, Plan, Training, step_time};
use pleach_scheduler::physics::links::Fabric;
use pleach_scheduler::portable_math::{exp, ln};

use super::figure::show;
use super::{Benchmark, Effort, Figure, Reproduction, Target};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;
use pleach_experiments::evaluate::table::Table;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[Benchmark {
    id: "R1",
    title: "steps of LLaMA-7B under 44 plans and placements",
    source: "Zhang et al., MLSys'25, measurements released with it (AlibabaPAI/reconfigurable-dl-scheduler, simulator/traces)",
    setup: "A800 with 400 GB/s of NVLink and 100 GB/s of RDMA a node; 16 sequences of 2,048 tokens; micro batches of one sequence, \
            nothing computed anew (assumed). One level for all, fitted to the rows on whole nodes",
    run: steps,
}];

/// Part of the peak, for which the law is right in the mean over the rows of whole nodes. *Fitted*.
const LEVEL: f64 = 0.2;

/// (stages, GPUs that share a layer, copies, GPUs on each node, s).
type Row = (u32, u32, u32, u32, f64);

/// # Source
/// `simulator/traces/llama7/placements.csv` of the artifact (Apache-2.0), without its rows with offloading.
#[rustfmt::skip]
const ROWS: [Row; 44] = [
    (2, 4, 8, 8, 0.6729), (2, 8, 4, 8, 0.6957), (4, 2, 8, 8, 0.8107), (4, 4, 4, 8, 0.8410), (1, 8, 8, 8, 0.8590),
    (2, 4, 4, 8, 0.9431), (1, 8, 4, 8, 0.9451), (2, 2, 8, 8, 0.9695), (4, 8, 2, 8, 0.9705), (1, 4, 8, 8, 0.9729),
    (2, 8, 2, 8, 0.9807), (1, 8, 2, 8, 1.1308), (1, 4, 4, 8, 1.1924), (8, 1, 8, 8, 1.2043), (4, 2, 4, 8, 1.2507),
    (4, 1, 8, 8, 1.2508), (8, 2, 4, 8, 1.2726), (2, 2, 4, 8, 1.2892), (2, 4, 2, 8, 1.3459), (4, 4, 2, 8, 1.3750),
    (8, 4, 2, 8, 1.4582), (2, 8, 1, 8, 1.5699), (4, 8, 1, 8, 1.6657), (8, 8, 1, 8, 1.8711),
    (2, 4, 4, 4, 1.2029), (2, 2, 8, 4, 1.2341), (4, 1, 8, 4, 1.4531), (4, 2, 4, 4, 1.4717), (4, 4, 2, 4, 1.5343),
    (1, 4, 8, 4, 1.5869), (2, 4, 2, 4, 1.6486), (2, 2, 4, 4, 1.7043), (1, 4, 4, 4, 1.7197), (8, 1, 4, 4, 2.2445),
    (4, 1, 4, 4, 2.2786), (4, 2, 2, 4, 2.3840), (8, 2, 2, 4, 2.4435), (4, 4, 1, 4, 2.6417), (8, 4, 1, 4, 2.8246),
    (2, 2, 4, 2, 2.2272), (4, 2, 2, 2, 2.6957), (4, 1, 4, 2, 2.7133), (8, 1, 2, 2, 4.4055), (8, 2, 1, 2, 4.8172),
];

/// What the law says of a row, s.
fn law_s(row: &Row) -> Result<f64, Error> {
    let (pipeline, tensor, copies, gpus_per_node, _) = *row;
    let training = Training {
        sequence: 2048,
        ..Training::all(Model::from_name("llama-7b")?, 16)
    };
    let mut fabric = Fabric::from_name("dgx-a100-hdr")?;
    // 400 GB/s are 200 in one direction, of which a ring gets four fifths on A100 (243 of 300).
    fabric.inside.ring_gb_per_s = 160.0;
    fabric.between.nics_per_node = gpus_per_node.min(4);
    let machine = Machine {
        peak: 312e12,
        peak_16: 312e12,
        level: LEVEL,
        attention: 1.0,
        memory_gib: 80.0,
        gpus_per_node,
        fabric,
    };
    let plan = Plan {
        tensor,
        pipeline,
        zero: 0,
        ..Plan::default()
    };
    let num_gpus = pipeline * tensor * copies;
    plan.validate(&training, num_gpus)?;
    Ok(step_time(&training, &plan, num_gpus, &machine).total_s())
}

fn steps(_: &Effort) -> Result<Reproduction, Error> {
    let ours: Vec<f64> = ROWS.iter().map(law_s).collect::<Result<_, _>>()?;
    let rows = || ROWS.iter().zip(&ours);
    let num_gpus = |row: &Row| row.0 * row.1 * row.2;
    // Of the plans on so many GPUs of whole nodes: the fastest, and that which the law takes for the fastest.
    let of = |wanted: u32| rows().filter(move |(row, _)| row.3 == 8 && num_gpus(row) == wanted);
    let least = |times: Vec<(f64, f64)>| {
        times
            .into_iter()
            .min_by(|one, other| one.0.total_cmp(&other.0))
            .map_or((f64::NAN, f64::NAN), |found| found)
    };
    let fastest = |wanted| least(of(wanted).map(|(row, law)| (row.4, *law)).collect());
    let chosen = |wanted| least(of(wanted).map(|(row, law)| (*law, row.4)).collect());
    let spread = |wanted, time: &dyn Fn((&Row, &f64)) -> f64| {
        let times: Vec<f64> = of(wanted).map(time).collect();
        times.iter().copied().fold(0.0, f64::max) / times.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let error_of = |gpus_per_node: u32| {
        let logs = rows().filter(|(row, _)| row.3 == gpus_per_node);
        let logs: Vec<f64> = logs.map(|(row, law)| ln(law / row.4)).collect();
        let squares: Vec<f64> = logs.iter().map(|log| log * log).collect();
        (exp(mean(&logs)), mean(&squares).sqrt())
    };
    let mut figures = Vec::new();
    for (gpus_per_node, nodes) in [
        (8, "whole nodes"),
        (4, "halves of nodes"),
        (2, "quarters of nodes"),
    ] {
        let (ratio, rms) = error_of(gpus_per_node);
        let what = format!("law over measured step on {nodes}, geometric mean");
        figures.push(Figure::exact(
            what,
            ratio,
            Target::Within {
                value: 1.0,
                part: 0.15,
            },
        ));
        let what = format!("root mean square of its logarithm on {nodes}");
        figures.push(Figure::exact(what, rms, Target::Between { low: 0.0, high: 0.2 }));
    }
    for wanted in [64, 32, 16] {
        let what = format!("slowest over fastest plan on {wanted} GPUs");
        let value = spread(wanted, &|(row, _)| row.4);
        let target = Target::Within { value, part: 0.25 };
        figures.push(Figure::exact(what, spread(wanted, &|(_, law)| *law), target));
        let what = format!(
            "measured step of the plan that the law takes for the fastest on {wanted}, over the fastest"
        );
        let lost = chosen(wanted).1 / fastest(wanted).0;
        figures.push(Figure::exact(what, lost, Target::Between { low: 1.0, high: 1.1 }));
    }
    let header = [
        "stages x tensor x copies",
        "GPUs a node",
        "measured (s)",
        "law (s)",
        "law / measured",
    ];
    let mut table = Table {
        header: header.map(String::from).to_vec(),
        ..Table::default()
    };
    for (row, law) in rows() {
        let plan = format!("{}x{}x{}", row.0, row.1, row.2);
        let numbers = [row.3.to_string(), show(row.4), show(*law), show(law / row.4)];
        table.rows.push([plan].into_iter().chain(numbers).collect());
    }
    Ok(Reproduction {
        figures,
        tables: vec![("LLaMA-7B, 16 sequences".into(), table)],
        plots: Vec::new(),
        findings: vec![
            "With a batch of 16 sequences each GPU has little to do, and what a micro batch costs on each stage whatever its size is \
             most of a step. The law has no such cost: it takes 8 stages of 8 GPUs, measured as the slowest plan on 64, for the \
             fastest. Its level of 0.2 is a third of what A100s reach elsewhere with large batches."
                .into(),
            "Rubick's own figure, an average JCT up to 3.2 times lower than under Sia and Synergy, is not run: it comes of a \
             scheduler that changes plans while jobs run, which is not here."
                .into(),
        ],
    })
}
