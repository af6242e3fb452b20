//! Requests, replicas and what users expect: the settings of the world.

use std::path::PathBuf;

use pleach_scheduler::Problem;
use pleach_scheduler::settings::{Above, OneOf};
use pleach_serving::llm::generate::{RequestGenerator, Sessions};
use pleach_serving::llm::{Fleet, GPU_NAMES, Link, MODEL_NAMES, Pools, REQUESTS_MAX, Server, Targets};

crate::worlds::server::settings! {
    /// Requests, replicas and what users expect.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RequestsSettings {
        /// A list of requests: ours, Azure's or Mooncake's (docs/serving.md) [default: drawn]
        pub requests: Option<PathBuf>;
        /// Requests of a drawn list [default: those of an hour; in searches and trainings 20,000]
        pub num_requests: Option<u32>, in 1..=10_000_000;
        /// Requests a second of a drawn list
        pub rate_per_s: f64 = 260.0, in Above(0.0, 1e12);
        /// Spread of the logarithm of the rate from minute to minute; 0: a Poisson process
        pub burst: f64 = 0.3, in 0.0..=3.0;
        /// Mean requests of a conversation; each later prompt begins with what was said before
        pub turns: f64 = 1.0, in 1.0..=100.0;
        /// When the next request of a conversation comes: at a time that is drawn (open), when a user has read the answer and thought
        /// (closed), or when a program has run a tool (agents)
        pub sessions: String = "open".into(), in OneOf(Sessions::NAMES);
        /// Mean time of thinking, or of a tool, s
        pub think_s: f64 = 30.0, in 0.0..=1e5;
        /// Play a list of requests so many times as fast
        pub faster: f64 = 1.0, in Above(0.0, 1e12);
        /// Times the rate of the requests at which policies are compared, a list
        pub loads: Vec<f64> = vec![1.0], in Above(0.0, 1e12);
        /// Lists to draw, or consecutive parts into which a file is cut [default: 5; 4 where each is an hour]
        pub lists: Option<u16>, in 1..=1000;
        /// Language model
        pub model: String = "llama-3-8b".into(), in OneOf(&MODEL_NAMES);
        /// GPU type of a replica
        pub gpu: String = "H100".into(), in OneOf(&GPU_NAMES);
        /// GPUs of a replica, among which the model is split: 1, 2, 4, 8
        pub replica_gpus: u32 = 1, in 1..=8;
    } and {
        /// Measured latencies of a server, to which `workload describe` fits the last two (docs/serving.md)
        pub latencies: Option<PathBuf>;
        /// Replicas
        pub replicas: u16 = 16, in 1..=4096;
        /// Gateways; each knows of its own requests only
        pub gateways: u16 = 1, in 1..=4096;
        /// Time between two looks of a gateway at all replicas, s; 0: it looks at each request
        pub scrape_s: f64 = 1.0, in 0.0..=1e12;
        /// Whether a router may refuse requests
        pub refuse: bool;
        /// Target of the time to the first token, s
        pub ttft_s: f64 = 0.5, in Above(0.0, 1e12);
        /// Target of the mean time between two later tokens, s
        pub tpot_s: f64 = 0.03, in Above(0.0, 1e12);
        /// Also split the replicas into pools: so many compute prompts and so many decode, a list such as ["6:10"]
        pub pools: Vec<String>;
        /// What a GPU moves of keys and values from pool to pool, GB/s: NVLink 600, PCIe 64, InfiniBand 50
        pub link_gb_s: f64 = 50.0, in Above(0.0, 1e12);
    }
}

impl RequestsSettings {
    /// The replicas and gateways.
    ///
    /// # Errors
    /// A model or GPU that is not there, a number out of range.
    pub fn fleet(&self) -> Result<Fleet, Problem> {
        let fleet = Fleet {
            pace: self.server()?.pace()?,
            num_replicas: usize::from(self.replicas),
            num_gateways: usize::from(self.gateways),
            scrape_s: self.scrape_s,
            targets: Targets {
                ttft_s: self.ttft_s,
                tpot_s: self.tpot_s,
            },
            may_refuse: self.refuse,
        };
        fleet.check()?;
        Ok(fleet)
    }

    /// # Errors
    /// Measured latencies, which one verb alone reads.
    pub(in crate::worlds) fn refuse_latencies(&self) -> Result<(), Problem> {
        match &self.latencies {
            None => Ok(()),
            Some(path) => {
                let hint = "It says which overhead_level and efficiency_level to set.";
                Err(Problem::new(
                    "latencies",
                    path.display(),
                    "pleach workload describe alone",
                    hint,
                ))
            }
        }
    }

    /// Lists to draw, or parts to cut.
    pub(in crate::worlds) fn num_lists(&self) -> usize {
        let is_hour = self.requests.is_none() && self.num_requests.is_none();
        usize::from(self.lists.unwrap_or(if is_hour { 4 } else { 5 }))
    }

    /// What draws lists of an hour, where nothing else is said.
    pub(super) fn generator(&self) -> RequestGenerator {
        RequestGenerator {
            num_requests: self.num_requests.unwrap_or(REQUESTS_MAX as u32),
            span_s: self.num_requests.is_none().then_some(3600.0),
            rate_per_s: self.rate_per_s,
            burst: self.burst,
            turns: self.turns,
            sessions: Sessions::by_name(&self.sessions).unwrap_or_default(),
            think_s: self.think_s,
            ..RequestGenerator::default()
        }
    }

    /// The pools, of as many replicas as the fleet has.
    ///
    /// # Errors
    /// No two numbers, more or fewer replicas, a link out of range.
    pub(super) fn split(&self) -> Result<Vec<Pools>, Problem> {
        let link = Link::of(&self.server()?, self.link_gb_s)?;
        let read = |text: &String| {
            let parts = text.split_once(':').map(|(prefill, decode)| [prefill, decode]);
            let numbers = parts.map(|parts| parts.map(|part| part.trim().parse().unwrap_or(0_usize)));
            match numbers {
                Some([num_prefill, num_decode])
                    if num_prefill.min(num_decode) > 0
                        && num_prefill.saturating_add(num_decode) == usize::from(self.replicas) =>
                {
                    Ok(Pools {
                        num_prefill,
                        num_decode,
                        link,
                    })
                }
                _ => {
                    let allowed = format!("P:D with P + D = {}, the replicas", self.replicas);
                    let prefill = (self.replicas / 2).max(1);
                    let hint = format!("Try {prefill}:{}.", self.replicas.saturating_sub(prefill).max(1));
                    Err(Problem::new("pools", text, allowed, hint))
                }
            }
        };
        self.pools.iter().map(read).collect()
    }
}

/// What of a server no published measurement stands behind, as a line for the reader.
pub(in crate::worlds) fn extrapolation(server: &Server) -> Option<String> {
    let of = server.unmeasured();
    (!of.is_empty()).then(|| format!("an extrapolation, measured nowhere: {}", of.join(", ")))
}
