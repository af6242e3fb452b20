//! What a replica keeps of prompts: by block where the list tells blocks, else by conversation.
//!
//! Two mechanisms, for they count differently: a conversation's context is one piece of tokens, an answer's among them, that goes
//! whole and moves into the request that uses it; blocks go one by one, and requests share them.

use std::sync::Arc;

use super::blocks::BlockCache;
use super::prefixes::Prefixes;
use super::work::Work;
use crate::llm::request::{BLOCK_TOKENS, Blocks};

/// See the front page of this file.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    ByConversation(Prefixes),
    ByBlock(BlockCache),
    /// What has ended goes at once.
    Nothing,
}

impl Kept {
    /// By these blocks, or by conversation where there are none.
    pub(super) fn of(ids: &Arc<[u32]>) -> Kept {
        if ids.is_empty() {
            Kept::ByConversation(Prefixes::default())
        } else {
            Kept::ByBlock(BlockCache::new(Arc::clone(ids)))
        }
    }

    /// Blocks of a prompt that are held, and the tokens of those that others use.
    pub(super) fn find(&self, work: &Work) -> (u32, u64) {
        match self {
            Kept::ByConversation(_) | Kept::Nothing => (0, 0),
            Kept::ByBlock(blocks) => {
                let [num_held, num_used] = blocks.found(work.blocks);
                (num_held, u64::from(num_used) * u64::from(BLOCK_TOKENS))
            }
        }
    }

    /// A request uses blocks `from..to` of its prompt.
    pub(super) fn hold(&mut self, blocks: Blocks, from: u32, to: u32) {
        if let Kept::ByBlock(cache) = self {
            cache.hold(blocks, from, to);
        }
    }

    /// A request uses the first so many blocks of its prompt no longer.
    pub(super) fn release(&mut self, blocks: Blocks, num: u32) {
        if let Kept::ByBlock(cache) = self {
            cache.release(blocks, num);
        }
    }

    /// Tokens of a prompt that need not be computed; the last one always is.
    pub(super) fn reuse(&mut self, work: &Work, held_blocks: u32) -> u32 {
        match self {
            Kept::ByConversation(prefixes) => prefixes.take(work.session).min(work.prefix_tokens),
            Kept::ByBlock(_) => (held_blocks * BLOCK_TOKENS).min(work.prompt_tokens - 1),
            Kept::Nothing => 0,
        }
    }

    /// A request has ended: its conversation's context stays. Its blocks were released.
    pub(super) fn keep(&mut self, work: &Work) {
        if let Kept::ByConversation(prefixes) = self {
            prefixes.keep(work.session, work.prompt_tokens + work.output_tokens);
        }
    }

    /// Frees memory until at most `room` unused tokens are left.
    pub(super) fn shrink(&mut self, room: u64) {
        match self {
            Kept::ByConversation(prefixes) => prefixes.shrink(room),
            Kept::ByBlock(blocks) => blocks.shrink(room),
            Kept::Nothing => {}
        }
    }

    /// The same of blocks alone, when contexts grow; conversations' contexts go when a request is taken up or has ended.
    pub(super) fn shrink_blocks(&mut self, room: u64) {
        if let Kept::ByBlock(blocks) = self {
            blocks.shrink(room);
        }
    }

    /// Tokens that are counted more often than they are there.
    pub(super) fn shared_tokens(&self) -> u64 {
        match self {
            Kept::ByConversation(_) | Kept::Nothing => 0,
            Kept::ByBlock(blocks) => blocks.shared_tokens(),
        }
    }
}
