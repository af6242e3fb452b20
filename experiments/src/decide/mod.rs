//! From a site's files to a decision: import, describe, twin, compare, search, judge, explain, one page that ends in *deploy*,
//! *do not deploy* or *nothing to win here*.
//!
//! The time of the list is cut in three parts that do not overlap: trees and formulas are searched for in the first, which
//! candidate goes on is chosen in the second by the tests of the verdict, and what goes on is judged once in the third. Each step
//! leaves an artefact in the run's folder and names the command that does the same alone; a run that is begun again goes on
//! behind the last artefact.
//!
//! # What is deliberately not here
//! Training of networks (`pleach train`), and deploying: what is written is for a shadow first.

mod candidates;
mod changes;
mod config;
mod formula;
mod found;
mod list;
mod page;
mod parts;
mod run;
mod shadow;
mod site;
mod trials;
mod verdict;

pub use config::{PartsConfig, SearchPart, SiteConfig};
pub use found::{Decided, TwinStep};
pub use list::site_list;
pub use parts::Parts;
pub use run::decide;
pub use shadow::scheduler_config;
pub use site::Site;
pub use verdict::{Choice, Decision, Evidence, Verdict, verdict};
