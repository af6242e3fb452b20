//! From which minibatch on a device pays: the same gradients on every device that is there.
//!
//! A gradient is what PPO and imitation take for a minibatch, from observations in main memory to numbers in main memory, so
//! copies to the device and back are in it. Rollouts are not: they stay on the CPU, see the part `ppo`.

use pleach_agents::gradients::{Workspace, sum_of_gradients};
use pleach_agents::{Device, initial_parameters};
use pleach_env::{EnvConfig, Seed};
use pleach_network::{DecisionBatch, Layout, NetworkConfig};
use rand::Rng;

use super::BenchArgs;
use super::rate::{NUM_REPEATS, rate};
use pleach_experiments::command::Context;
use pleach_experiments::error::Error;

/// Widths of both parts of the network: the default one, and one that is worth a GPU.
const WIDTHS: [usize; 2] = [32, 256];
/// Decisions in a minibatch.
const MINIBATCHES: [usize; 4] = [256, 1024, 4096, 16_384];
/// A decision has 5 to 35 candidates, 20 in the mean.
const CANDIDATES: (usize, usize) = (5, 31);

/// A gradient that would take more than so many times the time of the part is left out.
const TIMES_MAX: f64 = 10.0;

/// One device, width and minibatch.
pub(super) struct Point {
    /// All three in words.
    pub name: String,
    /// Decisions whose gradient is taken in a second.
    pub per_s: f64,
}

/// Measures every device that this build has and this machine can use.
///
/// # Errors
/// A device that fails after its first use.
pub(super) fn measure(args: &BenchArgs, context: &mut Context<'_>) -> Result<Vec<Point>, Error> {
    let mut devices = Vec::new();
    for device in Device::ALL {
        match device.probe() {
            Ok(description) if !args.report.quiet() => {
                context.say(&format!("{}: {description}", device.name()))?
            }
            Ok(_) => {}
            Err(error) => {
                if !args.report.quiet() {
                    context.say(&error.to_string())?;
                }
                continue;
            }
        }
        devices.push(device);
    }
    let rows = recorded(args)?;
    let share_s = args.seconds / (WIDTHS.len() * MINIBATCHES.len() * devices.len().max(1)) as f64;
    let mut points = Vec::new();
    for width in WIDTHS {
        // Decisions per second with the minibatch before, by device.
        let mut last_per_s = vec![f64::INFINITY; devices.len()];
        for minibatch in MINIBATCHES {
            for (device, last_per_s) in devices.iter().zip(&mut last_per_s) {
                let name = format!("{}, width {width}, minibatch {minibatch}", device.name());
                let likely_s = minibatch as f64 / *last_per_s;
                if likely_s > TIMES_MAX * args.seconds {
                    if !args.report.quiet() {
                        let why = format!("left out, for one gradient may take {likely_s:.0} s");
                        context.say(&format!("{name}: {why}; more --seconds measure it"))?;
                    }
                    continue;
                }
                let point = (width, minibatch);
                let per_s = gradients((&rows.0, &rows.1), *device, point, (args, share_s), context)?;
                *last_per_s = per_s;
                if !args.report.quiet() {
                    context.say(&format!("{name}: {per_s:.0} decisions/s"))?;
                }
                points.push(Point { name, per_s });
            }
        }
    }
    Ok(points)
}

/// Observations of the largest minibatch, of the shape of `Pleach/Philly-v0`'s and with random numbers.
fn recorded(args: &BenchArgs) -> Result<(EnvConfig, DecisionBatch), Error> {
    let env = EnvConfig::registered("Pleach/Philly-v0")?;
    let spaces = env.spaces();
    let mut random = Seed(args.report.seed()).stream("bench", 1);
    let mut rows = DecisionBatch::new(spaces);
    for decision in 0..MINIBATCHES[MINIBATCHES.len() - 1] {
        let mut draw = |num: usize| -> Vec<f32> {
            let unit = |draw: u32| draw as f32 / u32::MAX as f32;
            (0..num).map(|_| unit(random.next_u32())).collect()
        };
        let num_candidates = CANDIDATES.0 + decision * 7 % CANDIDATES.1;
        let (global, candidates) = (
            draw(spaces.num_global),
            draw(num_candidates * spaces.num_features),
        );
        rows.push(&global, &candidates, &vec![true; num_candidates]);
    }
    Ok((env, rows))
}

/// Decisions per second, within about `share_s`: gradients that take longer than that are measured once, the first time, on a CPU,
/// where it is like any other. On other devices the first one also compiles what they run.
fn gradients(
    (env, rows): (&EnvConfig, &DecisionBatch),
    device: Device,
    (width, minibatch): (usize, usize),
    (args, share_s): (&BenchArgs, f64),
    context: &Context<'_>,
) -> Result<f64, Error> {
    let config = NetworkConfig {
        hidden: width,
        context: width,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, env.spaces())?;
    let parameters = initial_parameters(&layout, Seed(args.report.seed()));
    let decisions: Vec<usize> = (0..minibatch).collect();
    let mut workspace = Workspace::default();
    let mut step = || -> Result<u64, Error> {
        let loss = |_: usize, logits: &[f32], value: f32, by_logits: &mut [f32]| {
            by_logits.copy_from_slice(logits);
            (value, [])
        };
        let on = (&layout, device, &mut workspace);
        let gradient = sum_of_gradients(on, &parameters, rows, &decisions, loss);
        std::hint::black_box(gradient?.0);
        Ok(minibatch as u64)
    };
    let start_s = (context.clock)();
    let num = step()?;
    let first_s = (context.clock)() - start_s;
    if first_s * NUM_REPEATS as f64 > share_s && device == Device::Cpu {
        return Ok(num as f64 / first_s.max(1e-9));
    }
    let within_share = BenchArgs {
        seconds: share_s,
        ..args.clone()
    };
    rate(&within_share, context, step)
}
