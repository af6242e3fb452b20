//! Requests on their way through a replica, and the events that it reports of them.

use crate::llm::request::Blocks;

/// A request on its way through a replica.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Whose it is, for the caller.
    pub id: u32,
    /// Conversation.
    pub session: u32,
    /// Prompt, and what had been answered where it is computed anew.
    pub prompt_tokens: u32,
    /// Of which the replica may hold so many already.
    pub prefix_tokens: u32,
    /// Tokens still to come, at least 1.
    pub output_tokens: u32,
    /// Whole blocks of the prompt: they take the place of conversation and prefix in a replica that knows blocks.
    pub blocks: Blocks,
    /// Prompt and first token were computed elsewhere, and their keys and values come along.
    pub is_computed: bool,
}

/// What a replica tells of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first token is there.
    First,
    /// The last token is there.
    Last,
}

/// A reported event: the request's number, what happened, when (ps).
pub type Told = (u32, Event, u64);

/// A request whose prompt is being computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefill {
    pub work: Work,
    pub left_tokens: u32,
    /// Of its blocks so many were held when it was taken up, and are in use since.
    pub held_blocks: u32,
    /// It has had its first token before.
    pub is_anew: bool,
}
