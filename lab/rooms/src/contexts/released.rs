//! What the authors of SGPRS released: times of ResNet-18 and throughputs of an RTX 2080 Ti, and their experiment.
//!
//! # Source
//! A. Babaei and T. Chantem, *SGPRS: Seamless GPU Partitioning Real-Time Scheduler for Periodic Deep Learning Workloads*, DATE'24;
//! its repository, AmirFB/SGPRS: recorded runs, and what its programme does.

use std::sync::Arc;

use pleach_scheduler::Problem;
use pleach_workloads::Seed;
use rand::RngExt as _;

use super::{Capacity, Context, Gpu, Network, Policy, Stage, Task, by_name};

/// SMs of an RTX 2080 Ti.
pub const SMS: u32 = 68;
/// Period of a camera of 30 frames a second, s.
pub const PERIOD_S: f64 = 1.0 / 30.0;
/// Stages in flight in both scenarios.
pub const IN_FLIGHT: u32 = 6;

/// ResNet-18, batch 1, 224 x 224: µs alone by SMs, recorded.
#[rustfmt::skip]
const RESNET18_US: [(u32, u64); 34] = [
    (2, 23_690), (4, 12_622), (6, 8_978), (8, 7_047), (10, 5_904), (12, 5_218), (14, 4_562),
    (16, 4_378), (18, 3_913), (20, 3_674), (22, 3_508), (24, 3_422), (26, 3_189), (28, 2_856),
    (30, 2_876), (32, 2_819), (34, 2_769), (36, 2_706), (38, 2_724), (40, 2_695), (42, 2_549),
    (44, 2_516), (46, 2_525), (48, 2_568), (50, 2_272), (52, 2_217), (54, 2_198), (56, 2_083),
    (58, 2_084), (60, 2_080), (62, 2_097), (64, 2_093), (66, 2_079), (68, 2_031),
];

/// Stages of the released programme. Which are high is theirs; the shares are *assumed*, near those of the operations.
const STAGES: [(&str, u32, bool); 6] = [
    ("stem", 140, false),
    ("layer1", 240, false),
    ("layer2", 210, false),
    ("layer3", 200, false),
    ("layer4", 190, true),
    ("head", 20, true),
];

/// Frames a second of the whole GPU with 5, 10, .. 30 networks in flight, recorded: contexts, over-subscription, the row. Of one
/// context, where several runs were recorded, the middle.
const RECORDED_FPS: [(usize, f64, [f64; 6]); 10] = [
    (1, 1.0, [663.0, 664.5, 623.5, 557.0, 532.5, 522.0]),
    (2, 1.0, [663.0, 624.0, 618.0, 615.0, 629.0, 669.0]),
    (2, 1.5, [685.0, 640.0, 645.0, 633.0, 694.0, 672.0]),
    (2, 2.0, [689.0, 638.0, 631.0, 636.0, 695.0, 672.0]),
    (3, 1.0, [635.0, 652.0, 640.0, 630.0, 697.0, 721.0]),
    (3, 1.5, [696.0, 700.0, 675.0, 748.0, 758.0, 794.0]),
    (3, 2.0, [695.0, 697.0, 674.0, 756.0, 781.0, 793.0]),
    (5, 1.0, [636.0, 620.0, 688.0, 761.0, 782.0, 793.0]),
    (5, 1.5, [676.0, 680.0, 737.0, 802.0, 818.0, 829.0]),
    (5, 2.0, [698.0, 709.0, 747.0, 818.0, 832.0, 838.0]),
];

/// ResNet-18 as its stages.
///
/// # Errors
/// None: the table is in range.
pub fn resnet18() -> Result<Network, Problem> {
    let stage = |(name, permille, is_high): (&str, u32, bool)| Stage {
        name: name.into(),
        permille,
        is_high,
    };
    Network::new(STAGES.map(stage).to_vec(), &RESNET18_US)
}

/// Throughput of one ResNet-18 alone on the whole GPU, frames a second.
fn alone_fps() -> f64 {
    1e6 / RESNET18_US[RESNET18_US.len() - 1].1 as f64
}

/// Capacity as recorded with so many contexts and over-subscription.
///
/// # Errors
/// A pair that was not recorded.
pub fn recorded(contexts: usize, oversubscription: f64) -> Result<Capacity, Problem> {
    let mut rows = RECORDED_FPS.iter();
    let Some((.., fps)) = rows.find(|row| (row.0, row.1) == (contexts, oversubscription)) else {
        let given = format!("{contexts} contexts, {oversubscription}");
        let allowed = "1 context with 1; 2, 3 or 5 with 1, 1.5 or 2";
        return Err(Problem::new(
            "capacity",
            given,
            allowed,
            "Give a table of your own.",
        ));
    };
    let rest = (1..).zip(fps).map(|(place, fps)| (5 * place, fps / alone_fps()));
    Capacity::new([(1, 1.0)].into_iter().chain(rest).collect())
}

/// Capacity that rises from one stage alone to so many frames a second with six in flight.
///
/// # Errors
/// A throughput out of range.
pub fn plateau(fps: f64) -> Result<Capacity, Problem> {
    Capacity::new(vec![(1, 1.0), (IN_FLIGHT, fps / alone_fps())])
}

/// A rule with the contexts on which the authors ran it, and its capacity, that which was recorded unless another one is given:
/// `naive` on contexts with all SMs and no limit of streams; `edf` in one context; `static` in contexts that do not overlap; the
/// others in equal ones. All but `naive` have six stages in flight. Naive has the recorded row of one context: that of two
/// contexts with all SMs does not fall, as the authors' naive runs do.
///
/// # Errors
/// A rule that is not there; contexts out of range, or whose capacity was not recorded.
pub fn set_up(
    rule: &str,
    contexts: usize,
    oversubscription: f64,
    capacity: Option<Capacity>,
) -> Result<(Gpu, Box<dyn Policy>), Problem> {
    let policy = by_name(rule)?;
    let recorded = |contexts, over| capacity.clone().map_or_else(|| recorded(contexts, over), Ok);
    let streams = |contexts: usize| (IN_FLIGHT / contexts.max(1) as u32).max(1);
    let gpu = match rule.split(':').next().unwrap_or_default() {
        "naive" => {
            let context = Context {
                sms: SMS,
                streams: u32::MAX,
            };
            Gpu::new(SMS, vec![context; contexts], recorded(1, 1.0)?)
        }
        "edf" => Gpu::equal(SMS, 1, 1.0, IN_FLIGHT, recorded(1, 1.0)?),
        "static" => Gpu::equal(SMS, contexts, 1.0, streams(contexts), recorded(contexts, 1.0)?),
        _ => {
            let capacity = recorded(contexts, oversubscription)?;
            Gpu::equal(SMS, contexts, oversubscription, streams(contexts), capacity)
        }
    }?;
    Ok((gpu, policy))
}

/// So many cameras at 30 frames a second, each with a ResNet-18, whose first releases are uniform in two periods.
///
/// # Errors
/// None: the settings are in range.
pub fn cameras(num: usize, seed: Seed) -> Result<Vec<Task>, Problem> {
    let network = Arc::new(resnet18()?);
    let mut rng = seed.stream("offsets", 0);
    let task = |_| Task::new(&network, PERIOD_S, rng.random::<f64>() * 2.0 * PERIOD_S);
    (0..num).map(task).collect()
}
