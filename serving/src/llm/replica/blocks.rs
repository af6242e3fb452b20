//! Prompts in blocks: what a replica holds of them, in use or not, and what of a prompt is there already.
//!
//! A block's id stands for all text up to its end, so a prompt finds the longest run of its first blocks that are held. Blocks in
//! use count once in memory, however many requests use them. Unused blocks stay while there is free memory; the longest unused
//! goes first, of one request the last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::llm::request::{BLOCK_TOKENS, Blocks};

/// How many requests use a block, and its place among the unused blocks.
#[derive(Clone, Copy, Debug)]
struct Held {
    users: u32,
    used: u64,
}

/// The blocks of a replica.
#[derive(Clone, Debug)]
pub(super) struct BlockCache {
    /// Of all requests.
    ids: Arc<[u32]>,
    held: HashMap<u32, Held>,
    /// Unused blocks, by when they were last used.
    unused: BTreeMap<u64, u32>,
    uses: u64,
    /// Users beyond the first, over all blocks.
    num_shared: u64,
}

impl BlockCache {
    pub(super) fn new(ids: Arc<[u32]>) -> BlockCache {
        BlockCache {
            ids,
            held: HashMap::new(),
            unused: BTreeMap::new(),
            uses: 0,
            num_shared: 0,
        }
    }

    /// Of a prompt's first blocks so many are held, and of these so many are in use.
    pub(super) fn found(&self, blocks: Blocks) -> [u32; 2] {
        let [mut num_held, mut num_used] = [0, 0];
        for id in blocks.of(&self.ids) {
            let Some(held) = self.held.get(id) else { break };
            num_held += 1;
            num_used += u32::from(held.users > 0);
        }
        [num_held, num_used]
    }

    /// A request uses blocks `from..to` of its prompt, which are held from now on.
    pub(super) fn hold(&mut self, blocks: Blocks, from: u32, to: u32) {
        for id in &blocks.of(&self.ids)[from as usize..to as usize] {
            let held = self.held.entry(*id).or_insert(Held { users: 0, used: 0 });
            if held.users == 0 {
                self.unused.remove(&held.used);
            } else {
                self.num_shared += 1;
            }
            held.users += 1;
        }
    }

    /// A request uses the first so many blocks of its prompt no longer.
    pub(super) fn release(&mut self, blocks: Blocks, num: u32) {
        for id in blocks.of(&self.ids)[..num as usize].iter().rev() {
            let held = self.held.get_mut(id).expect("somebody uses it");
            held.users -= 1;
            if held.users > 0 {
                self.num_shared -= 1;
                continue;
            }
            self.uses += 1;
            held.used = self.uses;
            self.unused.insert(self.uses, *id);
        }
    }

    /// Lets go of unused blocks until at most `room` tokens of them are left.
    pub(super) fn shrink(&mut self, room: u64) {
        while self.unused.len() as u64 * u64::from(BLOCK_TOKENS) > room
            && let Some((_, id)) = self.unused.pop_first()
        {
            self.held.remove(&id);
        }
    }

    /// Tokens that requests have in common, each counted as often as it is used but once.
    pub(super) fn shared_tokens(&self) -> u64 {
        self.num_shared * u64::from(BLOCK_TOKENS)
    }
}

#[cfg(test)]
mod tests {
    use pleach_workloads::Seed;
    use proptest::prelude::*;

    use super::*;

    /// The slow and obvious one: blocks in a list, the one that was last used at the end, and the requests that use each.
    #[derive(Default)]
    struct Plain {
        blocks: Vec<(u32, Vec<usize>)>,
    }

    impl Plain {
        fn place(&self, id: u32) -> Option<usize> {
            self.blocks.iter().position(|block| block.0 == id)
        }

        fn found(&self, chain: &[u32]) -> [u32; 2] {
            let held = chain.iter().map_while(|id| self.place(*id));
            let users: Vec<usize> = held.map(|place| self.blocks[place].1.len()).collect();
            let num_used = users.iter().filter(|users| **users > 0).count();
            [users.len() as u32, num_used as u32]
        }

        fn take(&mut self, who: usize, ids: &[u32]) {
            for id in ids {
                let place = self.place(*id).unwrap_or_else(|| {
                    self.blocks.push((*id, Vec::new()));
                    self.blocks.len() - 1
                });
                self.blocks[place].1.push(who);
            }
        }

        fn leave(&mut self, who: usize, ids: &[u32]) {
            for id in ids.iter().rev() {
                let (id, mut users) = self.blocks.remove(self.place(*id).unwrap());
                users.retain(|other| *other != who);
                self.blocks.push((id, users));
            }
        }

        fn shrink(&mut self, room: u64) {
            let unused = |blocks: &[(u32, Vec<usize>)]| {
                let tokens = blocks.iter().filter(|block| block.1.is_empty());
                tokens.count() as u64 * u64::from(BLOCK_TOKENS)
            };
            while unused(&self.blocks) > room {
                let first = self.blocks.iter().position(|block| block.1.is_empty());
                self.blocks.remove(first.unwrap());
            }
        }

        fn shared_tokens(&self) -> u64 {
            let more = self
                .blocks
                .iter()
                .map(|block| block.1.len().saturating_sub(1) as u64);
            more.sum::<u64>() * u64::from(BLOCK_TOKENS)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Requests whose prompts have beginnings in common come and go while there is now more and now less room.
        #[test]
        fn a_slow_and_obvious_cache_finds_and_holds_the_same(seed in 0_u64..1_000_000, room_max in 1_u64..40) {
            let mut rng = Seed(seed).stream("blocks", 0);
            // A tree of prompts: each is another's beginning and some blocks of its own.
            let mut chains: Vec<Vec<u32>> = vec![(0..4).collect()];
            let mut next_id = 4;
            for _ in 0..12 {
                let from = &chains[rng.random_range(0..chains.len())];
                let mut chain = from[..rng.random_range(0..=from.len())].to_vec();
                for _ in 0..rng.random_range(0..5) {
                    chain.push(next_id);
                    next_id += 1;
                }
                chains.push(chain);
            }
            let ids: Arc<[u32]> = chains.concat().into();
            let mut first = 0;
            let spans: Vec<Blocks> = chains.iter().map(|chain| {
                let blocks = Blocks { first, num: chain.len() as u32 };
                first += blocks.num;
                blocks
            }).collect();
            let (mut cache, mut plain) = (BlockCache::new(ids), Plain::default());
            let mut here: Vec<(usize, usize)> = Vec::new();
            for who in 0..300 {
                if here.is_empty() || rng.random::<f64>() < 0.55 {
                    let place = rng.random_range(0..chains.len());
                    let (blocks, chain) = (spans[place], &chains[place]);
                    let found = cache.found(blocks);
                    prop_assert_eq!(found, plain.found(chain));
                    cache.hold(blocks, 0, found[0]);
                    plain.take(who, &chain[..found[0] as usize]);
                    cache.hold(blocks, found[0], blocks.num);
                    plain.take(who, &chain[found[0] as usize..]);
                    here.push((who, place));
                } else {
                    let (who, place) = here.swap_remove(rng.random_range(0..here.len()));
                    cache.release(spans[place], spans[place].num);
                    plain.leave(who, &chains[place]);
                }
                let room = rng.random_range(0..room_max) * u64::from(BLOCK_TOKENS) / 2;
                cache.shrink(room);
                plain.shrink(room);
                prop_assert_eq!(cache.shared_tokens(), plain.shared_tokens());
                prop_assert_eq!(cache.held.len(), plain.blocks.len());
            }
        }
    }
}
