//! A picture of an episode: a strip of GPUs over time, coloured by job, and below it how many jobs wait.

use pleach_scheduler::cluster::Cluster;

/// Size of a picture, pixels; the same for all clusters, as films ask.
pub(crate) const WIDTH: usize = 640;
pub(crate) const HEIGHT: usize = 360;
/// Rows of pixels of the strip; the rest is the queue, below a line.
const STRIP: usize = 270;
/// Moments that are kept; beyond, every second one is forgotten.
const NUM_MOMENTS_MAX: usize = 4096;
const BACKGROUND: [u8; 3] = [250, 250, 250];
const LINE: [u8; 3] = [120, 120, 120];
const QUEUE: [u8; 3] = [200, 90, 60];

/// One instant after a decision.
#[derive(Clone, Debug)]
struct Moment {
    time_s: f64,
    /// Job of each GPU, by its number plus one; 0 is free.
    gpus: Vec<u32>,
    num_pending: usize,
}

/// What has happened in an episode so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strip {
    moments: Vec<Moment>,
}

impl Strip {
    /// Forgets the last episode.
    pub(crate) fn clear(&mut self) {
        self.moments.clear();
    }

    /// Notes the present state. Of several decisions at one instant the last one stays.
    pub(crate) fn note(&mut self, cluster: &Cluster) {
        let time_s = cluster.now().as_secs_f64();
        if self.moments.last().is_some_and(|last| last.time_s == time_s) {
            self.moments.pop();
        }
        if self.moments.len() >= NUM_MOMENTS_MAX {
            let mut number = 0;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        self.moments.push(Moment {
            time_s,
            gpus: cluster
                .gpus()
                .iter()
                .map(|job| job.map_or(0, |job| job.0 + 1))
                .collect(),
            num_pending: cluster.num_pending(),
        });
    }

    /// The picture, row by row, three bytes a pixel. `[HEIGHT, WIDTH, 3]`
    pub(crate) fn draw(&self) -> Vec<u8> {
        let mut pixels = BACKGROUND.repeat(WIDTH * HEIGHT);
        for x in 0..WIDTH {
            set(&mut pixels, x, STRIP, LINE);
        }
        let (Some(first), Some(last)) = (self.moments.first(), self.moments.last()) else {
            return pixels;
        };
        let span_s = (last.time_s - first.time_s).max(1e-6);
        let most = self.moments.iter().map(|moment| moment.num_pending).max();
        let most = most.unwrap_or(0).max(1);
        let mut present = 0;
        for x in 0..WIDTH {
            let time_s = first.time_s + span_s * x as f64 / (WIDTH - 1) as f64;
            while self
                .moments
                .get(present + 1)
                .is_some_and(|next| next.time_s <= time_s)
            {
                present += 1;
            }
            let moment = &self.moments[present];
            let num_gpus = moment.gpus.len().max(1);
            for y in 0..STRIP {
                if let Some(job) = moment.gpus.get(y * num_gpus / STRIP).filter(|job| **job > 0) {
                    set(&mut pixels, x, y, colour(*job));
                }
            }
            let height = moment.num_pending * (HEIGHT - STRIP - 1) / most;
            for y in HEIGHT - height..HEIGHT {
                set(&mut pixels, x, y, QUEUE);
            }
        }
        pixels
    }
}

fn set(pixels: &mut [u8], x: usize, y: usize, colour: [u8; 3]) {
    let at = (y * WIDTH + x) * 3;
    pixels[at..at + 3].copy_from_slice(&colour);
}

/// A colour for each job; neighbours in number are far apart, by the multiplier of Fibonacci hashing (Knuth, volume 3, 6.4).
fn colour(job: u32) -> [u8; 3] {
    let bits = job.wrapping_mul(2_654_435_769);
    [bits >> 24, bits >> 16, bits >> 8].map(|part| 40 + ((part & 0xff) * 160 / 255) as u8)
}
