//! Checks the record of a schedule against its cluster and its jobs.
//!
//! Written apart from the simulator: own readers of the two files, own counting, no crate of ours but the one that reads files.
//! What both believe wrongly would have to be believed twice.
//!
//! ```
//! use pleach_tables::schedule::Record;
//! use pleach_verify::{Conditions, Facts, verify};
//!
//! let cluster = "[cluster]\ngpu_types = [{ name = 'A', memory_gib = 40.0 }]\ntenants = [{ name = 't', quota_gpus = 8 }]\n\
//!     node_groups = [{ count = 1, gpus_per_node = 8, gpu_type = 'A', nodes_per_rack = 1 }]";
//! let folder = std::env::temp_dir().join("pleach-verify-example");
//! std::fs::create_dir_all(&folder)?;
//! let (jobs, record) = (folder.join("jobs.csv"), folder.join("record.csv"));
//! std::fs::write(&jobs, "job_id,submit_s,num_gpus,run_time_s\na,0,2,100\n")?;
//! std::fs::write(&record, "job_id,nodes,from_s,to_s,rate,ended\na,0:0,5,105,1,completed\n")?;
//! let facts = Facts::read(&jobs, cluster)?;
//! let verdict = verify(&facts, &Conditions::default(), &Record::read(&record)?.runs[0])?;
//! assert!(verdict.faults[0].to_string().contains("holds 1 GPUs and asked for 2"));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is deliberately not here
//! Whether a schedule is good, and whether a policy would have made it: `pleach verify --replay` plays the policy again. Rates are
//! held to an upper bound: what neighbours on a GPU or a link take is left to the record.

mod check;
mod conditions;
mod facts;
mod fault;
mod law;

pub use check::{FAULTS_MAX, Verdict, verify};
pub use conditions::{Closed, Conditions, Failures};
pub use facts::{Facts, Job, Node, Tenant};
pub use fault::{Fault, Party, Rule};
pub use law::Starts;
pub use pleach_tables::Problem;
