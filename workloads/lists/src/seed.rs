//! The one source of randomness: a `u64` seed and named, hashed streams drawn from it.
//!
//! Every random number of a run comes from [`Seed::stream`]. Streams are keyed by SHA-256 over (seed, name, index), so
//! neighbouring seeds and indexes share nothing; `seed + i` would make environment 1 of seed 0 equal environment 0 of
//! seed 1. The generator is ChaCha8 by name, never a default that may change with a library version.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Root of all randomness of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The generator of the stream `name`, copy `index`. The same arguments always give the same stream.
    #[must_use]
    pub fn stream(self, name: &str, index: u64) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.digest(name, index))
    }

    /// A new root, independent of this one, for a part of the run that has streams of its own.
    #[must_use]
    pub fn child(self, name: &str, index: u64) -> Seed {
        let digest = self.digest(name, index);
        let mut first = [0_u8; 8];
        first.copy_from_slice(&digest[..8]);
        Seed(u64::from_le_bytes(first))
    }

    fn digest(self, name: &str, index: u64) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"pleach.seed.v1");
        hash.update(self.0.to_le_bytes());
        // The length keeps ("ab", 1) and ("a", ..) apart whatever bytes follow.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(index.to_le_bytes());
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    #[test]
    fn a_stream_repeats_itself_and_differs_from_its_neighbours() {
        let first = Seed(7).stream("arrivals", 0).next_u64();
        assert_eq!(first, Seed(7).stream("arrivals", 0).next_u64());
        assert_ne!(first, Seed(7).stream("arrivals", 1).next_u64());
        assert_ne!(first, Seed(8).stream("arrivals", 0).next_u64());
        assert_ne!(first, Seed(7).stream("durations", 0).next_u64());
    }

    #[test]
    fn child_seeds_do_not_walk_with_their_parent() {
        assert_ne!(Seed(0).child("env", 1), Seed(1).child("env", 0));
    }
}
