//! Times of day as files write them, as seconds since 1970 in UTC: formats, zones, summer time. No clock is read here.

mod civil;
mod format;
mod zone;

pub use civil::{Civil, day_text};
pub use format::{TimeFormat, guess};
pub use zone::Zone;

/// Latest time that is read, s: the year 4000; the earliest is its negative.
const UNIX_S_MAX: f64 = 64e9;
