//! Requests to language models: routers choose replicas. What is to be much is the share of requests within both targets; refused ones
//! are misses.

mod deploy;
mod describe;
mod latencies;
mod list;
mod rivals;
mod settings;
mod starts;
#[cfg(test)]
mod tests;

use std::path::Path;

use pleach_distill::search::SearchConfig;
use pleach_env::Seed;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Fleet, Lists, Outcome, Pools, ROUTING_2, Requests, Router, Routing, SCHEMA, ScorerRouter, Served,
    by_name, simulate, simulate_pools,
};
use pleach_serving::{Environment, Reward};

use self::list::{cut, lines_of};
use super::world::{Description, Draw, Habits, Loss, Player, Turn, Verb, Without, World};
use crate::error::Error;
use crate::evaluate::gain::Gain;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::Results;
use crate::figures;
use crate::plot::{Plot, distribution_points};
use crate::workload_report::spread::sorted;

pub use deploy::DeploymentConfig;
pub use describe::RequestsDescription;
pub use list::{read, write};
pub use pleach_serving::llm::deploy::EndpointPicker;
pub use settings::RequestsSettings;
pub(super) use settings::extrapolation;

/// Shortest latency that has a place of its own in a plot, s.
const LOW_S: f64 = 0.01;

/// Requests of the lists of which a search or a training plays thousands.
const SHORT: u32 = 20_000;

figures! {
    |world: &RequestsWorld, outcome: &Outcome|
    "hits_pct", "hits %", 2, Higher, Points, "requests within both targets"
        => 100.0 * outcome.hit_share(world.fleet.targets);
    "ttft_hits_pct", "by TTFT %", 2, Higher, Points, "requests within the target of the time to the first token"
        => within(outcome, |served| served.ttft_s <= world.fleet.targets.ttft_s);
    "tpot_hits_pct", "by TPOT %", 2, Higher, Points, "requests within the target of the time between tokens"
        => within(outcome, |served| served.tpot_s <= world.fleet.targets.tpot_s);
    "reused_pct", "held %", 1, Neither, Points, "tokens of prompts that were held already"
        => 100.0 * outcome.reused_tokens as f64 / outcome.prompt_tokens.max(1) as f64;
    "refused_pct", "refused %", 2, Neither, Points, "requests that were refused"
        => 100.0 * outcome.refused_share();
    "ttft_p50_ms", "TTFT p50 ms", 0, Lower, Points, "median of the time to the first token"
        => 1e3 * outcome.quantile(0.5, |served| served.ttft_s);
    "ttft_p99_ms", "TTFT p99 ms", 0, Lower, Points, "99th percentile of the same"
        => 1e3 * outcome.quantile(0.99, |served| served.ttft_s);
    "tpot_p99_ms", "TPOT p99 ms", 1, Lower, Points, "99th percentile of the time between tokens"
        => 1e3 * outcome.quantile(0.99, |served| served.tpot_s);
}

/// Share of requests that were served so, %.
fn within(outcome: &Outcome, is_hit: impl Fn(&Served) -> bool) -> f64 {
    let hits = outcome.served().filter(|served| is_hit(served)).count();
    100.0 * hits as f64 / outcome.requests.len() as f64
}

/// What a world without something is without.
type Change = fn(&mut Fleet);

/// Requests to replicas of a language model.
#[derive(Clone)]
pub struct RequestsWorld {
    settings: RequestsSettings,
    fleet: Fleet,
    pools: Vec<Pools>,
    /// The list that is given, with the lines about it.
    given: Option<(Requests, Vec<String>)>,
}

impl RequestsWorld {
    /// Of settings.
    ///
    /// # Errors
    /// A setting that cannot be used, a list that cannot be read.
    pub fn new(settings: RequestsSettings) -> Result<RequestsWorld, Error> {
        let given = settings.requests.as_deref().map(read).transpose()?;
        Ok(RequestsWorld {
            fleet: settings.fleet()?,
            pools: settings.split()?,
            given: given.map(|read| {
                let lines = lines_of(&read);
                (read.requests, lines)
            }),
            settings,
        })
    }

    /// Part of a given list, so many shares of the way along it, that a stream plays.
    fn part_of(verb: Verb, stream: &str) -> (f64, f64) {
        match (verb, stream) {
            (Verb::Compare, _) => (0.0, 1.0),
            (Verb::Search, "tune") => (0.0, 0.2),
            (Verb::Search, "race") => (0.2, 0.6),
            (Verb::Search, "choice") => (0.6, 0.8),
            (Verb::Train, "validation") => (0.5, 0.65),
            (Verb::Train, "choice") => (0.65, 0.8),
            (_, "judge") => (0.8, 1.0),
            _ => (0.0, 0.5),
        }
    }

    fn seed_of(draw: &Draw<'_>) -> Seed {
        let root = Seed(draw.seed).child("serving", draw.verb as u64);
        let of_stream = root.child(draw.stream, (draw.load * 1e6) as u64);
        match draw.verb {
            Verb::Compare => root,
            Verb::Search => of_stream,
            Verb::Train => of_stream.child("number", draw.number),
        }
    }

    pub(super) fn generator(&self, load: f64) -> RequestGenerator {
        RequestGenerator {
            rate_per_s: self.settings.rate_per_s * self.settings.faster * load,
            ..self.settings.generator()
        }
    }

    fn first(&self, seed: u64) -> Result<Requests, Error> {
        let mut lists = self.draw(Draw {
            verb: Verb::Compare,
            seed,
            stream: "compare",
            number: 0,
            load: self.settings.loads.first().copied().unwrap_or(1.0),
            num: self.settings.num_lists(),
        })?;
        Ok(lists.swap_remove(0))
    }
}

fn router(player: Player<'_>, seed: u64) -> Result<Box<dyn Router>, Error> {
    Ok(match player {
        Player::Rule(name) => by_name(name, seed)?,
        Player::Scorer(scorer) => Box::new(ScorerRouter::new(scorer)?),
        Player::Keyed(scorer, tree) => Box::new(ScorerRouter::keyed(scorer, tree)?),
    })
}

impl World for RequestsWorld {
    type List = Requests;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "requests"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn columns(&self, results: &Results) -> Vec<&'static str> {
        let holds_blocks = self
            .given
            .as_ref()
            .is_some_and(|(list, _)| !list.block_ids().is_empty());
        let is_shown = |key: &str| match key {
            "ttft_hits_pct" | "tpot_hits_pct" => !self.pools.is_empty(),
            "reused_pct" => holds_blocks,
            _ => true,
        };
        let keys = results.known().iter().map(|metric| metric.key);
        keys.filter(|key| is_shown(key)).collect()
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, ROUTING_2)
    }

    fn policies(&self) -> Vec<String> {
        let names = [
            "round-robin",
            "two-choices",
            "least-requests",
            "least-tokens",
            "least-ttft",
            "headroom",
            "sessions",
            "weighted",
        ];
        names.map(str::to_string).to_vec()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (self.settings.loads.clone(), self.settings.num_lists())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Requests>, Error> {
        self.settings.refuse_latencies()?;
        if let Some((list, _)) = &self.given {
            let faster = self.settings.faster * draw.load;
            return cut(
                &list.faster(faster)?,
                RequestsWorld::part_of(draw.verb, draw.stream),
                draw.num,
            );
        }
        let mut generator = self.generator(draw.load);
        if draw.verb != Verb::Compare && generator.span_s.take().is_some() {
            generator.num_requests = SHORT;
        }
        let seed = RequestsWorld::seed_of(&draw);
        let lists = (0..draw.num).map(|list| generator.draw(seed.child("list", list as u64)));
        Ok(lists.collect::<Result<_, _>>()?)
    }

    fn forms(&self) -> Vec<String> {
        let pools = self.pools.iter();
        let pools = pools.map(|pools| format!("{}:{}", pools.num_prefill, pools.num_decode));
        std::iter::once(String::new()).chain(pools).collect()
    }

    fn play(&self, list: &Requests, turn: Turn<'_>, player: Player<'_>) -> Result<Outcome, Error> {
        let seed = Seed(turn.seed);
        let mut first = router(player, seed.child("router", turn.place).0)?;
        let (Some(pools), Some(second)) = (turn.form.checked_sub(1), turn.second) else {
            return Ok(simulate(list, &self.fleet, first.as_mut())?);
        };
        let mut second = router(second, seed.child("decode", 0).0)?;
        let pools = &self.pools[pools];
        let pooled = simulate_pools(list, &self.fleet, pools, [first.as_mut(), second.as_mut()])?;
        Ok(pooled.outcome)
    }

    fn figures(&self, outcome: &Outcome) -> Vec<(&'static str, f64)> {
        figures_of(self, outcome)
    }

    fn loss(&self, outcome: &Outcome) -> Loss {
        let p99_s = outcome.quantile(0.99, |served| served.ttft_s);
        Loss {
            misses: 1.0 - outcome.hit_share(self.fleet.targets),
            // A long one where none was served.
            tail_s: if p99_s.is_finite() { p99_s } else { 1e6 },
            cost: 0.0,
        }
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![0.9, 1.0, 1.1],
            tune_lists: (27, 1),
            choice_lists: 27,
            first_of_choice: 3,
            judge_lists: 20,
            search: SearchConfig {
                simulations: 6_000,
                rungs: vec![3, 9, 24],
                starts: 8,
                leaves_max: 16,
                // A miss is a miss, however late it is.
                tail_weight: 0.0,
                ..SearchConfig::default()
            },
        }
    }

    fn rivals(&self) -> Vec<Vec<String>> {
        vec![rivals::rivals(self.fleet.may_refuse)]
    }

    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        starts::starts(&self.fleet, without)
    }

    fn environments(&self, draw: Draw<'_>, num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        self.settings.refuse_latencies()?;
        let lists = match self.given {
            Some(_) => Lists::Given(self.draw(draw)?),
            None => Lists::Drawn(RequestGenerator {
                num_requests: num_steps as u32,
                span_s: None,
                ..self.generator(draw.load)
            }),
        };
        let env = || {
            Ok(Box::new(Routing::new(
                self.fleet.clone(),
                lists.clone(),
                Reward::default(),
            )?) as _)
        };
        (0..draw.num).map(|_| env()).collect()
    }

    fn row_name(&self, row: usize, _num_rows: usize) -> String {
        match row < self.fleet.num_replicas {
            true => format!("replica {row}"),
            false => "refusing".into(),
        }
    }

    fn without<'a>(
        &'a self,
        _lists: &'a [Requests],
    ) -> Box<dyn Iterator<Item = Without<RequestsWorld>> + 'a> {
        let all: [(&str, Change); 3] = [
            ("no refusals", |fleet| fleet.may_refuse = false),
            ("one gateway", |fleet| fleet.num_gateways = 1),
            ("gateways look at each request", |fleet| fleet.scrape_s = 0.0),
        ];
        let of = |(words, change): (&'static str, Change)| {
            let mut world = self.clone();
            change(&mut world.fleet);
            (world.fleet != self.fleet).then_some(Without {
                words,
                world,
                lists: None,
            })
        };
        Box::new(all.into_iter().filter_map(of))
    }

    fn account(&self) -> Vec<String> {
        self.given
            .as_ref()
            .map(|(_, lines)| lines.clone())
            .unwrap_or_default()
    }

    fn notes(&self, results: &Results) -> Vec<String> {
        let targets = self.fleet.targets;
        let mut notes = vec![format!(
            "hits: TTFT within {} s and TPOT within {} s; refused requests are misses",
            targets.ttft_s, targets.tpot_s
        )];
        notes.extend(
            self.settings
                .server()
                .ok()
                .and_then(|server| extrapolation(&server)),
        );
        let best = |is_pools: bool| {
            let policies = results
                .policies()
                .filter(|(name, _)| name.contains(", ") == is_pools);
            policies
                .max_by(|(_, one), (_, other)| one.metrics["hits_pct"].total_cmp(&other.metrics["hits_pct"]))
        };
        if let (false, Some((pools, _)), Some((whole, _))) = (self.pools.is_empty(), best(true), best(false))
        {
            let hits = |name: &str| results.values(name, "hits_pct");
            let gain = Gain::of(&hits(pools), &hits(whole));
            notes.push(format!(
                "best pools: {pools}, {gain} points over {whole} on whole replicas"
            ));
        }
        notes
    }

    fn plots(&self, names: &[String], outcomes: &[Vec<Outcome>]) -> Vec<Plot> {
        let latencies = |what: &str, of: fn(&Served) -> f64| {
            let curves = names.iter().zip(outcomes).map(|(name, lists)| {
                let all = lists.iter().flat_map(Outcome::served).map(|served| of(&served));
                (name.as_str(), distribution_points(&sorted(all)))
            });
            let (title, x) = (
                format!("Distribution of the {what}"),
                format!("{what} (log scale)"),
            );
            let words = (title.as_str(), x.as_str(), "requests within this time");
            Some(Plot::distribution(words, LOW_S, curves)?.of_policies())
        };
        let plots = [
            latencies("time to the first token", |served| served.ttft_s),
            latencies("time between tokens", |served| served.tpot_s),
        ];
        plots.into_iter().flatten().collect()
    }

    fn describe(&self, seed: u64) -> Result<Description, Error> {
        if let Some(path) = &self.settings.latencies {
            return latencies::describe(self.settings.server()?, path);
        }
        let found = match &self.given {
            Some((list, lines)) => RequestsDescription::of(list).noted(lines),
            None => RequestsDescription::of(&self.first(seed)?),
        };
        found.shown()
    }

    fn write(&self, path: &Path, seed: u64) -> Result<String, Error> {
        let list = match &self.given {
            Some((list, _)) => list.clone(),
            None => self.first(seed)?,
        };
        write(path, &list)?;
        Ok(format!(
            "{} requests, {:.1} a second",
            list.rows().len(),
            list.rate_per_s()
        ))
    }
}
