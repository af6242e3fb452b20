//! Goodput of elastic jobs (Pollux, OSDI'21): samples a second, times the part of a sample that is useful.

use crate::facts::class::{Iteration, Profile};

/// Batches that are looked at: so many that the best of any is within a hundredth of the best of these.
const NUM_BATCHES: u32 = 200;
/// The simulator's best batch is one of 50 whole ones, within a twentieth of the best of all.
const SLACK: f64 = 1.1;
/// Points of the training at which the noise scale is looked at.
const NUM_NOISES: u32 = 11;

/// The largest ratio, over a training, of goodput on (GPUs, nodes) and on those that the job asked for.
pub(super) fn ratio_max(profile: &Profile, here: (u32, u32), asked: (u32, u32)) -> f64 {
    let ratios = (0..NUM_NOISES).map(|step| {
        let progress = f64::from(step) / f64::from(NUM_NOISES - 1);
        let noise = profile.noise_at_start * power(profile.noise_at_end / profile.noise_at_start, progress);
        match best(profile, asked, noise) {
            0.0 => 0.0,
            asked => best(profile, here, noise) / asked,
        }
    });
    ratios.fold(0.0, f64::max) * SLACK
}

/// Goodput with the best batch, cut as finely as one likes.
fn best(profile: &Profile, (num_gpus, num_nodes): (u32, u32), noise: f64) -> f64 {
    let gpus = f64::from(num_gpus);
    let (least, most) = (
        (profile.min_local_batch * gpus).max(profile.initial_batch),
        profile.max_batch,
    );
    if num_gpus == 0 || least > most {
        return 0.0;
    }
    let goodputs = (0..NUM_BATCHES).map(|step| {
        let total = least * power(most / least, f64::from(step) / f64::from(NUM_BATCHES - 1));
        let steps = (total / gpus / profile.max_local_batch - 1e-9).ceil().max(1.0);
        let seconds = iteration_s(&profile.time, (num_gpus, num_nodes), total / gpus / steps, steps);
        total / seconds * (noise + profile.initial_batch) / (noise + total)
    });
    goodputs.fold(0.0, f64::max)
}

fn iteration_s(time: &Iteration, (num_gpus, num_nodes): (u32, u32), local: f64, steps: f64) -> f64 {
    let grad_s = time.alpha_c + time.beta_c * local;
    let further = f64::from(num_gpus.saturating_sub(2));
    let sync_s = match (num_gpus, num_nodes) {
        (0 | 1, _) => 0.0,
        (_, 0 | 1) => time.alpha_r + time.beta_r * further,
        _ => time.alpha_n + time.beta_n * further,
    };
    let longer = grad_s.max(sync_s);
    let powers = power(grad_s / longer, time.gamma) + power(sync_s / longer, time.gamma);
    (steps - 1.0) * grad_s + longer * power(powers, 1.0 / time.gamma)
}

/// The C library's power: its last bit differs between machines, and bounds here have slack.
#[expect(clippy::disallowed_methods, reason = "no result rests on the last bit")]
pub(super) fn power(base: f64, exponent: f64) -> f64 {
    base.powf(exponent)
}
