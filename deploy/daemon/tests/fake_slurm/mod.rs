//! The program against a Slurm of shell scripts that keeps its state in files: order, placement, and every way to end badly.

mod alerts;
mod aside;
mod difference;
mod fake;
mod faults;
mod golden;
mod heartbeat;
mod hostile;
mod lasting;
mod learning;
mod leaving;
mod order;
mod ordering;
mod policies;
mod refusals;
mod scope;
mod site;
