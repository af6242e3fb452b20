//! Trains the network of `stage-network`: `cargo run --release -p pleach-graphs --example stage_network -- --out stage.weights`, by exact
//! credit or a policy gradient; `--help` says what else. One thread; the same arguments are the same file.

mod draws;
mod forks;
mod gradient;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use pleach_agents::Adam;
use pleach_graphs::board::Offers;
use pleach_graphs::list::List;
use pleach_graphs::network::{Deciding, Network};
use pleach_graphs::rules::{by_name, play};
use pleach_graphs::{GraphSettings, Source};
use pleach_scheduler::portable_math::{exp, ln};
use pleach_workloads::Seed;

use self::draws::Draws;
use self::forks::Fork;

const HELP: &str =
    "--learner forks|gradient  --messages true|false  --offers caps|groups  --arrivals batch|stream|mixed
--jobs N  --seed N  --updates N  --steps N  --every N  --horizon S  --rate R  --out FILE";
/// Newest forks that are learned from, and those of a step.
const KEPT: usize = 100_000;
const BATCH: usize = 128;
/// What a step leaves of the running mean that is deployed, of forks and of a policy gradient.
const DECAYS: (f32, f32) = (0.995, 0.97);
/// Lists on which the best network is taken: so many, by the mean of the logarithms.
const VALIDATION: u64 = 12;

/// What was asked for.
struct Asked(BTreeMap<String, String>);

impl Asked {
    fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0.get(key).map_or(default, String::as_str)
    }

    fn number(&self, key: &str, default: f64) -> Result<f64, Box<dyn Error>> {
        let text = self.0.get(key).map(|text| text.parse::<f64>());
        Ok(text.transpose()?.unwrap_or(default))
    }
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let known = |key: &str| HELP.split_whitespace().any(|word| word == key);
    let pairs = given.chunks(2).map(|pair| match pair {
        [key, value] if known(key) => Ok((key[2..].to_string(), value.clone())),
        _ => Err(format!("{} is not of\n{HELP}", pair[0])),
    });
    Ok(Asked(pairs.collect::<Result<_, _>>()?))
}

/// CPU time of this thread, s (Linux).
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    1e-9 * ns.unwrap_or(f64::NAN)
}

/// Lists of three kinds in turn: batches, and streams at two loads.
fn list(source: &Source, arrivals: &str, seed: Seed, number: u64) -> Result<Arc<List>, Box<dyn Error>> {
    let place = match arrivals {
        "batch" => 0,
        "stream" => 1 + number % 2,
        _ => number % 3,
    };
    let load = if place == 2 { 0.7 / 0.85 } else { 1.0 };
    Ok(Arc::new(source.list(
        seed.child("list", number),
        place.min(1),
        load,
    )?))
}

/// The mean logarithm of the completion times over those of the index.
fn loss(network: &Network, lists: &[(Arc<List>, f64)]) -> Result<f64, Box<dyn Error>> {
    let mut sum = 0.0;
    for (list, index_s) in lists {
        let mut deciding = Deciding::new(network.clone());
        sum += ln(play(Arc::clone(list), &mut deciding)?.mean_jct_s() / index_s);
    }
    Ok(sum / lists.len() as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = asked()?;
    let seed = Seed(asked.number("seed", 1.0)? as u64);
    let offers = match asked.text("offers", "caps") {
        "groups" => Offers::Groups,
        _ => Offers::Caps,
    };
    let settings = GraphSettings {
        arrivals: "mixed".into(),
        jobs: asked.0.get("jobs").map(|jobs| jobs.parse()).transpose()?,
        ..GraphSettings::default()
    };
    let (source, arrivals) = (settings.source()?, asked.text("arrivals", "mixed"));
    let validation = (0..VALIDATION).map(|number| {
        let list = list(&source, arrivals, seed.child("validation", 0), number)?;
        let index_s = play(Arc::clone(&list), by_name("stage-index", &list, 0)?.as_mut())?.mean_jct_s();
        Ok((list, index_s))
    });
    let validation = validation.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let mut draws = Draws(seed.child("draws", 0).0);
    let first = Network::new(asked.text("messages", "true") == "true", offers, || draws.even());
    let mut learner = Learner::new(&asked, first)?;
    let mut best = (f64::INFINITY, learner.mean.clone());
    let updates = asked.number("updates", if learner.is_forks { 15.0 } else { 30.0 })? as u64;
    for update in 0..=updates {
        if update % 5 == 0 || update == updates {
            let loss = loss(&learner.mean, &validation)?;
            println!(
                "update {update}: {:.4} of the index, {:.0} CPU s, {}",
                exp(loss),
                cpu_s(),
                learner.said
            );
            if loss < best.0 {
                best = (loss, learner.mean.clone());
            }
        }
        if update < updates {
            let lists = (0..3).map(|number| list(&source, arrivals, seed.child("update", update), number));
            let lists = lists.collect::<Result<Vec<_>, _>>()?;
            let rate = learner.rate * (1.0 - 0.9 * update as f64 / updates as f64);
            learner.update(&lists, rate, &mut draws);
        }
    }
    if let Some(path) = asked.0.get("out") {
        std::fs::write(path, serde_json::to_string(&best.1)?)?;
    }
    Ok(())
}

/// What learns.
struct Learner {
    is_forks: bool,
    steps: usize,
    every: f64,
    horizon_ms: u64,
    rate: f64,
    network: Network,
    /// What is deployed: the running mean of the parameters.
    mean: Network,
    adam: Adam,
    forks: Vec<Fork>,
    said: String,
}

impl Learner {
    fn new(asked: &Asked, network: Network) -> Result<Learner, Box<dyn Error>> {
        let is_forks = asked.text("learner", "forks") == "forks";
        Ok(Learner {
            is_forks,
            steps: asked.number("steps", 8.0)? as usize,
            every: asked.number("every", 4.0)?,
            horizon_ms: (1e3 * asked.number("horizon", 30.0)?) as u64,
            // A fork says little: with ten times the rate the network gets worse.
            rate: asked.number("rate", if is_forks { 1e-4 } else { 1e-3 })?,
            adam: Adam::new(network.parameters.len()),
            mean: network.clone(),
            network,
            forks: Vec::new(),
            said: String::new(),
        })
    }

    fn update(&mut self, lists: &[Arc<List>], rate: f64, draws: &mut Draws) {
        let mut deciding = Deciding::new(self.network.clone());
        if !self.is_forks {
            for list in lists {
                let kept = (3.0 / list.jobs().len() as f64).min(1.0);
                let gradient = gradient::of_list(&mut deciding, list, kept, 0.01, draws);
                self.step(gradient, rate);
                deciding.network.clone_from(&self.network);
            }
            return;
        }
        for list in lists {
            self.forks.extend(forks::forks_of(
                &mut deciding,
                list,
                self.every,
                self.horizon_ms,
                draws,
            ));
        }
        let old = self.forks.len().saturating_sub(KEPT);
        self.forks.drain(..old);
        let scale = forks::scale(&self.forks);
        self.said = format!("{} forks of {scale:.2} job s", self.forks.len());
        for _ in 0..self.steps {
            let drawn = (0..BATCH).map(|_| (draws.even() * self.forks.len() as f64) as usize);
            let drawn: Vec<&Fork> = drawn.map(|fork| &self.forks[fork]).collect();
            let gradient = forks::gradient(&self.network, &drawn, scale);
            self.step(gradient, rate);
        }
    }

    fn step(&mut self, mut gradient: Vec<f32>, rate: f64) {
        let length = gradient.iter().map(|by| by * by).sum::<f32>().sqrt();
        gradient.iter_mut().for_each(|by| *by /= length.max(1.0));
        self.adam.step(&mut self.network.parameters, &gradient, rate);
        let decay = if self.is_forks { DECAYS.0 } else { DECAYS.1 };
        for (mean, own) in self.mean.parameters.iter_mut().zip(&self.network.parameters) {
            *mean = decay * *mean + (1.0 - decay) * own;
        }
    }
}
