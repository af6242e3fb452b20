//! When will a job start? A forecast with an interval, and how well such forecasts held.
//!
//! The queue is replayed many times under the site's own policy ([`replay`]), with run times and arrivals that are as likely as each
//! other ([`draws`]). Small trees correct what replays of other jobs missed, intervals are widened until they hold, and where plain
//! history is better, it answers ([`learn`]). All of it is judged on jobs that came, each with what was known then ([`hindcast`]).
//!
//! # What is deliberately not here
//! Holds, dependencies, reservations and maintenance windows that no list states; failures of nodes; preemption that comes.

pub mod boost;
pub mod case;
pub mod draws;
pub mod hindcast;
pub mod learn;
pub mod past;
pub mod record;
pub mod replay;
pub mod score;
