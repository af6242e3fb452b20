//! How ids are hashed: they are numbers that a cluster or a batch system gave out, so no user can choose them to fall together, and a
//! round looks up thousands. Texts of users keep the standard library's hash.
//!
//! # Source
//! Multiplication by an odd constant near 2^64 divided by the golden ratio, Knuth, The Art of Computer Programming 3, section 6.4.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hashes of maps and sets by id.
pub type IdHash = BuildHasherDefault<IdHasher>;

/// A hash of numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;
    use crate::ExternalId;

    #[test]
    fn numbers_in_a_row_and_tasks_of_an_array_fall_apart_in_both_ends_of_the_hash() {
        let ids = (0..4000).map(ExternalId::number);
        let ids = ids.chain((0..4000).map(|task| ExternalId::task(7, task)));
        let hashes: Vec<u64> = ids.map(|id| IdHash::default().hash_one(id)).collect();
        let num = |part: &dyn Fn(u64) -> u64| {
            let parts: HashSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
            parts.len()
        };
        assert_eq!(num(&|hash| hash), 8000);
        // Of 8,192 places 5,108 are taken by chance, and all 128 tags.
        assert!(num(&|hash| hash & 0x1fff) > 4500);
        assert_eq!(num(&|hash| hash >> 57), 128);
    }
}
