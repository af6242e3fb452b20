//! A cluster, a day of requests and the jobs beside them: the settings of the world.

use std::path::PathBuf;

use pleach_scheduler::settings::{Above, OneOf};
use pleach_serving::llm::{GPU_NAMES, MODEL_NAMES};

crate::worlds::server::settings! {
    /// A cluster, a day of requests and the jobs beside them.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServiceSettings {
        /// A list of requests, from midnight on [default: drawn]
        pub requests: Option<PathBuf>;
        /// A list of jobs beside the service, with its own cluster [default: jobs that always wait, on the nodes below]
        pub jobs: Option<String>;
        /// Cluster of that list: a description, or nodes x GPUs : type [default: its own]
        pub cluster: Option<PathBuf>;
        /// Time to play from midnight on, h
        pub hours: f64 = 24.0, in Above(0.0, 1e12);
        /// Requests a second, mean of the day; they follow the hours of the day
        pub rate_per_s: f64 = 36.0, in Above(0.0, 1e12);
        /// Spread of the logarithm of the rate from minute to minute
        pub burst: f64 = 0.22, in 0.0..=3.0;
        /// Days to draw
        pub lists: u16 = 3, in 1..=100;
        /// Language model
        pub model: String = "llama-3-8b".into(), in OneOf(&MODEL_NAMES);
        /// GPU type of the cluster
        pub gpu: String = "H100".into(), in OneOf(&GPU_NAMES);
        /// GPUs of a replica, all of one node
        pub replica_gpus: u8 = 1, in 1..=8;
    } and {
        /// Router by name with settings after colons
        pub router: String = "least-tokens".into();
        /// Time between two looks of the gateway at all replicas, s
        pub scrape_s: f64 = 1.0, in 0.0..=1e12;
        /// From the grant of a GPU until its replica takes requests, s
        pub load_s: f64 = 60.0, in 0.0..=1e12;
        /// What a replica that is taken back is given to serve what it has, s
        pub grace_s: f64 = 30.0, in 0.0..=1e12;
        /// Target of the time to the first token, s
        pub ttft_s: f64 = 1.0, in Above(0.0, 1e12);
        /// Target of the mean time between two later tokens, s
        pub tpot_s: f64 = 0.05, in Above(0.0, 1e12);
        /// Nodes
        pub nodes: u32 = 2, in 1..=512;
        /// GPUs of each node
        pub gpus_per_node: u32 = 8, in 1..=8;
        /// GPUs of each training job
        pub gang: u32 = 1, in 1..=4096;
        /// What a restart costs a job, s
        pub restart_s: f64 = 60.0, in 0.0..=1e12;
        /// Work between two checkpoints, s: a job that is stopped loses what it did since [default: it saves first]
        pub checkpoint_s: Option<f64>, in Above(0.0, 1e12);
        /// Scheduler of the jobs on the GPUs that are left: a heuristic by name
        pub policy: String = "fifo".into();
        /// Share of requests within both targets at which a search compares training, %
        pub hits_pct: f64 = 99.9, in 1.0..=99.999;
        /// GPU time of training that a miss costs a learner that steps, GPU s; about what a miss is worth to rules at 99.9 %
        pub price_gpu_s: f64 = 18.0, in 0.0..=1e6;
    }
}
