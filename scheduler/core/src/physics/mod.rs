//! The physics of a GPU cluster: what a job's speed is made of, and what moving it costs.
//!
//! A production scheduler believes in the same physics as the simulator, so it lives here and not in the crate above. Every file
//! is one factor: plain data that can be written in a configuration file, `validate`d once, and then evaluated without an
//! allocation. No file knows of jobs, nodes or clocks; callers that own those ask with numbers.
//!
//! # The product
//! The rate of a job on a placement, relative to the job alone on the reference GPU at its tightest placement, is
//!
//! ```text
//! rate = speed(GPU type, gang)                        measured table, crate::cluster_spec::ModelClass
//!      x locality(gang, slowest link)                 links
//!      x sharing(residents of the GPU) or slice(MIG)  interference | mig
//!      x sensitivity(cores, memory, storage)          sensitivity
//! ```
//!
//! Elastic jobs replace the first two factors by [`goodput`], or the first by a table of [`sizes`] ([`pace`]); gangs on mixed types, copies and fused jobs combine the
//! rates of their parts by [`mixed`]; [`overheads`] and [`storage`] are seconds, not rates. The product assumes that the factors do not
//! see each other (a job slowed by its input needs less of a shared GPU). That errs on the slow side, and is ours.
//!
//! # Refused
//! Numbers that are not finite, rates below 0, presets that do not exist: `validate` and `from_name` name the key, the
//! value, what is allowed and the fix. Evaluation of validated data cannot fail.
//!
//! # Sources
//! Synergy (OSDI'22), Philly (ATC'19), Gandiva (OSDI'18), Gavel (OSDI'20), Lucid (ASPLOS'23), Pollux (OSDI'21), Sia
//! (SOSP'23), Shockwave (NSDI'23), Hadar and HadarE (IPDPS'24, arXiv 2503.10918), HFTA (MLSys'21), the NVIDIA MIG user
//! guide. `docs/gpu-model.md` has formula and source of each factor, `lab/notes/gpu-model-fits.md` the errors.

pub mod goodput;
pub mod interference;
pub mod links;
pub mod mig;
pub mod mixed;
pub mod overheads;
pub mod pace;
pub mod sensitivity;
pub mod sizes;
pub mod storage;
