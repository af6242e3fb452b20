//! What a training run promises without supervision. It may be killed at any moment, run out of room, or meet a loss that is no
//! number. It then goes on or stops with its last good state, and what it wrote can be read.

#[cfg(unix)]
mod asked_to_end;
mod event_files;
mod extended;
mod kept;
#[cfg(unix)]
mod killed;
#[cfg(unix)]
mod killing;
#[cfg(unix)]
mod no_room;
mod not_finite;
mod threads;
mod tiny_run;
mod units;
