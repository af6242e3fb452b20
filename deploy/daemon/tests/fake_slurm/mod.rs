//! The program against a Slurm of shell scripts that keeps its state in files: the order, and every way to end badly.

mod alerts;
mod aside;
mod difference;
mod fake;
mod faults;
mod foretelling;
mod golden;
mod hostile;
mod jumps;
mod kinds;
mod lasting;
mod learning;
mod leaving;
mod nodes;
mod ordering;
mod policies;
mod site;
mod stopping;
