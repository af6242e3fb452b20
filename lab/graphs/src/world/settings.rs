//! What lists of graph jobs are drawn from.

use std::path::PathBuf;
use std::sync::Arc;

use pleach_experiments::Error;
use pleach_scheduler::Problem;
use pleach_scheduler::settings::{Above, OneOf};
use pleach_workloads::Seed;

use crate::board::Offers;
use crate::file;
use crate::generate::{self, Arrivals, Shape};
use crate::graph::Graph;
use crate::list::{List, Machine};

pleach_scheduler::settings! {
    /// Graphs, arrivals and executors.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GraphSettings {
        /// A file of graphs, or an event log of Spark; otherwise graphs are drawn
        pub graphs: Option<PathBuf>;
        /// Shape of drawn graphs
        pub shape: String = "tpch".into(), in OneOf(&["tpch", "alibaba"]);
        /// Drawn graphs
        pub num_graphs: u16 = 150, in 1..=10_000;
        /// Which graphs are drawn: other numbers are other graphs
        pub pool: u32 = 0;
        /// How jobs come: batch, stream, or mixed: a batch and a stream in turn
        pub arrivals: String = "stream".into(), in OneOf(&["batch", "stream", "mixed"]);
        /// Jobs of a list [default: 20 in a batch, 100 in a stream]
        pub jobs: Option<u32>, in 1..=100_000;
        /// Work that comes over what the executors can do, of streams
        pub load: f64 = 0.85, in Above(0.0, 100.0);
        /// Times that load at which policies are compared
        pub loads: Vec<f64> = vec![1.0], in Above(0.0, 100.0);
        /// Rows of a decision: caps, two stages of a job with several numbers of executors; groups, a stage of each of twelve groups
        pub offers: String = "caps".into(), in OneOf(&["caps", "groups"]);
        /// Lists of a comparison
        pub lists: u16 = 20, in 1..=1_000;
        /// Executors, which run one task at a time each
        pub executors: u32 = 50, in 1..=10_000;
        /// Time that an executor takes to another job, ms
        pub moving_ms: u32 = 2_000, in 0..=3_600_000;
        /// Added to an executor's first task, where none such was measured, ms
        pub warmup_ms: u32 = 1_000, in 0..=3_600_000;
    }
}

/// All that lists are drawn from.
#[derive(Clone, Debug)]
pub struct Source {
    graphs: Arc<Vec<Graph>>,
    machine: Machine,
    arrivals: String,
    jobs: Option<u32>,
    load: f64,
}

impl GraphSettings {
    /// Which rows a decision has.
    #[must_use]
    pub fn offers(&self) -> Offers {
        match self.offers.as_str() {
            "groups" => Offers::Groups,
            _ => Offers::Caps,
        }
    }

    /// Reads or draws the graphs.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn source(&self) -> Result<Source, Error> {
        let shape = if self.shape == "alibaba" {
            Shape::Alibaba
        } else {
            Shape::Tpch
        };
        let graphs = match &self.graphs {
            Some(path) => file::read(path)?,
            None => {
                let seed = Seed(u64::from(self.pool)).child(&self.shape, 0);
                generate::graphs(shape, self.num_graphs.into(), seed)?
            }
        };
        Ok(Source {
            graphs: Arc::new(graphs),
            machine: Machine {
                executors: self.executors,
                moving_ms: self.moving_ms.into(),
                warmup_ms: self.warmup_ms.into(),
                mimics_released: false,
            },
            arrivals: self.arrivals.clone(),
            jobs: self.jobs,
            load: self.load,
        })
    }
}

impl Source {
    /// The graphs.
    #[must_use]
    pub fn graphs(&self) -> &[Graph] {
        &self.graphs
    }

    /// A list of a seed at so many times the load; `place` says whether a batch or a stream has its turn.
    ///
    /// # Errors
    /// A number out of range.
    pub fn list(&self, seed: Seed, place: u64, load: f64) -> Result<List, Problem> {
        let is_batch = match self.arrivals.as_str() {
            "batch" => true,
            "stream" => false,
            _ => place.is_multiple_of(2),
        };
        let jobs = |default: usize| self.jobs.map_or(default, |jobs| jobs as usize);
        let arrivals = match is_batch {
            true => Arrivals::Batch { jobs: jobs(20) },
            false => Arrivals::Stream {
                jobs: jobs(100),
                load: self.load * load,
            },
        };
        generate::list(&self.graphs, self.machine, arrivals, seed)
    }
}
