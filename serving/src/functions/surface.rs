//! Functions and applications to play with: one assumed law in two steepnesses, and measured tables.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::pow;

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

/// Cores, slices, place of the first batch among [`MEASURED_BATCHES`], latencies (ms).
type Measured = (u16, u16, usize, &'static [u16]);
const MEASURED_BATCHES: [u16; 6] = [1, 2, 4, 8, 16, 32];
/// Cold start of a measured function. *Assumed.*
const MEASURED_COLD_US: u64 = 5_000_000;

/// The traffic pipeline of INFless (ASPLOS'22), and applications of its three functions that are *ours*, one with a fork
/// and a join.
fn measured() -> Result<Work, Problem> {
    let function = |(name, rows): (&str, &[Measured])| {
        let all = rows.iter().flat_map(|&(cores, slices, first, latencies_ms)| {
            latencies_ms
                .iter()
                .zip(&MEASURED_BATCHES[first..])
                .map(move |(ms, batch)| Configuration {
                    batch: *batch,
                    cores,
                    slices,
                    latency_us: 1000 * u64::from(*ms),
                })
        });
        Function::new(name, MEASURED_COLD_US, all.collect())
    };
    let tables = [("ssd", SSD), ("resnet-50", RESNET_50), ("mobilenet", MOBILENET)];
    let functions = tables.into_iter().map(function).collect::<Result<_, _>>()?;
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

// Latencies (ms) of a batch of 1, 2, 4, .. requests by threads and tenths of the multiprocessors of an RTX 2080 Ti under
// MPS, a tenth read as a slice. Source: profiles released with INFless (TankLabTJU/INFless); cells above 5 s, batches
// that the threads could not feed, are left out.
#[rustfmt::skip]
const RESNET_50: &[Measured] = &[
    (2, 0, 0, &[152, 230, 403]), (2, 1, 0, &[60, 72, 112]), (2, 2, 0, &[55, 69, 93]),
    (2, 3, 0, &[50, 64, 87]), (2, 4, 0, &[50, 59, 81]), (2, 5, 0, &[52, 51, 79]),
    (4, 0, 2, &[276, 484]), (4, 1, 2, &[99, 164]), (4, 2, 2, &[88, 138]), (4, 3, 2, &[74, 115]),
    (4, 4, 2, &[73, 158]), (4, 5, 2, &[72, 116]),
    (8, 0, 3, &[317, 581]), (8, 1, 3, &[158, 218]), (8, 2, 3, &[134, 206]), (8, 3, 3, &[122, 215]),
    (8, 4, 3, &[119, 175]), (8, 5, 3, &[115, 168]),
    (12, 0, 4, &[506, 956]),
    (16, 0, 4, &[423, 867]), (16, 1, 4, &[270, 412]), (16, 2, 4, &[220, 357]), (16, 3, 4, &[187, 331]),
    (16, 4, 4, &[176, 306]), (16, 5, 4, &[175, 305]),
];
#[rustfmt::skip]
const SSD: &[Measured] = &[
    (2, 0, 0, &[188, 283, 487]), (2, 1, 0, &[140, 190, 297]), (2, 2, 0, &[129, 180, 293]),
    (2, 3, 0, &[133, 174, 276]), (2, 4, 0, &[126, 175, 276]), (2, 5, 0, &[131, 173, 269]),
    (4, 0, 0, &[164, 209, 308, 558]), (4, 1, 0, &[145, 174, 262, 442]), (4, 2, 0, &[141, 158, 249, 407]),
    (4, 3, 0, &[142, 163, 241, 401]), (4, 4, 0, &[139, 163, 239, 405]), (4, 5, 0, &[139, 157, 240, 394]),
    (8, 0, 0, &[162, 174, 236, 399, 722]), (8, 1, 0, &[157, 221, 355, 509, 894]),
    (8, 2, 0, &[155, 212, 333, 519, 892]), (8, 3, 0, &[153, 214, 327, 528, 888]),
    (8, 4, 0, &[158, 204, 325, 545, 908]), (8, 5, 0, &[157, 208, 334, 556, 950]),
    (16, 0, 0, &[158, 166, 210, 326, 574]),
];
#[rustfmt::skip]
const MOBILENET: &[Measured] = &[
    (2, 0, 0, &[120, 170, 269]), (2, 1, 0, &[91, 104, 133]), (2, 2, 0, &[83, 100, 132]),
    (2, 3, 0, &[86, 100, 129]), (2, 4, 0, &[91, 96, 127]), (2, 5, 0, &[93, 96, 126]),
    (4, 0, 0, &[122, 136, 199, 315]), (4, 1, 0, &[93, 100, 122, 171]), (4, 2, 0, &[94, 99, 119, 160]),
    (4, 3, 0, &[85, 102, 117, 164]), (4, 4, 0, &[86, 98, 121, 165]), (4, 5, 0, &[89, 95, 118, 161]),
    (8, 0, 0, &[115, 128, 166, 236, 387]), (8, 1, 0, &[88, 98, 118, 160, 237]),
    (8, 2, 0, &[84, 94, 119, 151, 228]), (8, 3, 0, &[90, 97, 117, 148, 225]),
    (8, 4, 0, &[85, 101, 116, 152, 219]), (8, 5, 0, &[85, 104, 119, 153, 217]),
    (16, 0, 0, &[106, 122, 143, 201, 328]),
];
