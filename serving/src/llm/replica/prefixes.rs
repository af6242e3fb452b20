//! Contexts of conversations whose requests have ended: they stay while there is free memory, and the longest unused goes first.

use std::collections::{BTreeMap, HashMap};

/// Tokens of conversations, by when they were last used.
#[derive(Clone, Debug, Default)]
pub(super) struct Prefixes {
    /// Tokens, and when it was used.
    sessions: HashMap<u32, (u32, u64)>,
    by_use: BTreeMap<u64, u32>,
    tokens: u64,
    uses: u64,
}

impl Prefixes {
    /// Keeps the context of a conversation; an older one of it goes.
    pub(super) fn keep(&mut self, session: u32, tokens: u32) {
        self.take(session);
        self.uses += 1;
        self.sessions.insert(session, (tokens, self.uses));
        self.by_use.insert(self.uses, session);
        self.tokens += u64::from(tokens);
    }

    /// Takes a conversation's context out: its next request has it now. 0 where there is none.
    pub(super) fn take(&mut self, session: u32) -> u32 {
        let Some((tokens, used)) = self.sessions.remove(&session) else {
            return 0;
        };
        self.by_use.remove(&used);
        self.tokens -= u64::from(tokens);
        tokens
    }

    /// Lets go until at most `room` tokens are left.
    pub(super) fn shrink(&mut self, room: u64) {
        while self.tokens > room
            && let Some((_, session)) = self.by_use.first_key_value()
        {
            let session = *session;
            self.take(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_conversation_goes_first() {
        let mut prefixes = Prefixes::default();
        prefixes.keep(1, 100);
        prefixes.keep(2, 100);
        prefixes.keep(1, 150);
        prefixes.shrink(200);
        assert_eq!(
            (prefixes.take(2), prefixes.take(1), prefixes.take(1)),
            (0, 150, 0)
        );
        assert_eq!(prefixes.tokens, 0);
    }
}
