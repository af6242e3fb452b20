//! Functions and applications to play with: one assumed law in two steepnesses, and measured tables.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::pow;
use pleach_workloads::embedded::{number, rows};

use super::app::{Graph, Work};
use super::profile::{Configuration, Function};

/// Surfaces by name.
pub const SURFACES: [&str; 3] = ["assumed", "flat", "infless"];

/// Functions of ESG (HPDC'24, as remembered): name, latency of one request on a core and a slice (ms), cold start (ms).
const FUNCTIONS: [(&str, f64, u64); 6] = [
    ("super-resolution", 86.0, 3_503),
    ("segmentation", 293.0, 16_510),
    ("deblur", 319.0, 22_343),
    ("classification", 147.0, 18_299),
    ("background-removal", 1_047.0, 3_729),
    ("depth", 828.0, 16_479),
];
/// 256 configurations, as many as ESG has; which ones is *assumed*.
const BATCHES: [u16; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
const CORES: std::ops::RangeInclusive<u16> = 1..=8;
const SLICES: [u16; 4] = [1, 2, 4, 7];
/// Part of a request's time that cores do. *Assumed.*
const ON_CORES: f64 = 0.15;
/// How much shorter it gets with cores. *Assumed.*
const CORES_EXPONENT: f64 = 0.9;

/// Work on a surface: `assumed` (b^0.8, g^-0.85), `flat` (b^0.47, g^-0.16: the exponents of INFless's ResNet-50), `infless`.
///
/// # Errors
/// A name that is not there.
pub fn work(surface: &str) -> Result<Work, Problem> {
    match surface {
        "assumed" => by_law(0.8, 0.85),
        "flat" => by_law(0.47, 0.16),
        "infless" => measured(),
        _ => Err(Problem::new(
            "surface",
            surface,
            SURFACES.join(", "),
            "Take one of them.",
        )),
    }
}

/// Latency t1·(q·b/c^0.9 + (1−q)·b^e/g^f), *assumed*.
fn by_law(batch_exponent: f64, slices_exponent: f64) -> Result<Work, Problem> {
    let function = |&(name, single_ms, cold_ms): &(&str, f64, u64)| {
        let mut all = Vec::new();
        for batch in BATCHES {
            for cores in CORES {
                for slices in SLICES {
                    let on_cores = f64::from(batch) / pow(f64::from(cores), CORES_EXPONENT);
                    let on_slices =
                        pow(f64::from(batch), batch_exponent) / pow(f64::from(slices), slices_exponent);
                    let ms = single_ms * (ON_CORES * on_cores + (1.0 - ON_CORES) * on_slices);
                    let latency_us = (1e3 * ms) as u64;
                    all.push(Configuration {
                        batch,
                        cores,
                        slices,
                        latency_us,
                    });
                }
            }
        }
        Function::new(name, 1000 * cold_ms, all)
    };
    let functions = FUNCTIONS.iter().map(function).collect::<Result<_, _>>()?;
    let graphs = [
        Graph::chain(
            "image-classification",
            &["super-resolution", "segmentation", "classification"],
        ),
        Graph::chain("depth-recognition", &["deblur", "super-resolution", "depth"]),
        Graph::chain(
            "background-elimination",
            &["super-resolution", "deblur", "background-removal"],
        ),
        Graph::chain(
            "expanded-classification",
            &[
                "deblur",
                "super-resolution",
                "background-removal",
                "segmentation",
                "classification",
            ],
        ),
    ];
    Work::new(functions, &graphs)
}

const MEASURED_BATCHES: [u16; 6] = [1, 2, 4, 8, 16, 32];
/// Cold start of a measured function. *Assumed.*
const MEASURED_COLD_US: u64 = 5_000_000;

/// The traffic pipeline of INFless (ASPLOS'22), and applications of its three functions that are *ours*, one with a fork
/// and a join.
fn measured() -> Result<Work, Problem> {
    let measured: Vec<[&str; 4]> = rows(include_str!("../../data/infless.csv")).collect();
    let function = |name: &str| {
        let own = measured.iter().filter(|[function, ..]| *function == name);
        let all = own.flat_map(|[_, cores, slices, latencies_ms]| {
            let cells = latencies_ms.split(',').map(str::trim).zip(MEASURED_BATCHES);
            let cells = cells.filter(|(ms, _)| !ms.is_empty());
            cells.map(|(ms, batch)| Configuration {
                batch,
                cores: number(cores) as u16,
                slices: number(slices) as u16,
                latency_us: 1000 * number(ms) as u64,
            })
        });
        Function::new(name, MEASURED_COLD_US, all.collect())
    };
    let functions = ["ssd", "resnet-50", "mobilenet"]
        .into_iter()
        .map(function)
        .collect::<Result<_, _>>()?;
    let graphs = [
        Graph::chain("traffic-resnet", &["ssd", "resnet-50"]),
        Graph::chain("traffic-mobilenet", &["ssd", "mobilenet"]),
        Graph::chain("three", &["mobilenet", "ssd", "resnet-50"]),
        Graph {
            name: "fork".into(),
            functions: ["ssd", "resnet-50", "mobilenet", "resnet-50"]
                .map(String::from)
                .to_vec(),
            edges: vec![(0, 1), (0, 2), (1, 3), (2, 3)],
        },
    ];
    Work::new(functions, &graphs)
}
