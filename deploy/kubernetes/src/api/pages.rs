//! How many objects a page of a list has: as many as fit the answer that is read, and the time that it may take.
//!
//! Users decide how large a pod is, up to a megabyte and a half. So a page that is too large is asked for again, half as long, and
//! what was found is kept for the next lists of that kind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Complete lists after which a page is tried that is twice as long. *Ours*: two minutes of rounds, for a page that is too large
/// costs the time to read it.
const LISTS_UNTIL_GROWTH: u32 = 64;

/// The page of each kind of list that has become shorter than the settings say; a clone is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(Arc<Mutex<BTreeMap<String, Page>>>);

#[derive(Clone, Copy, Debug)]
struct Page {
    size: u32,
    num_lists: u32,
}

impl Pages {
    fn shorter(&self) -> MutexGuard<'_, BTreeMap<String, Page>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Objects of a page of a list; `most` is what the settings say.
    pub(super) fn size(&self, list: &str, most: u32) -> u32 {
        self.shorter().get(list).map_or(most, |page| page.size.min(most))
    }

    /// A page of so many objects was too large: half of it, which is remembered; none where it was one object.
    pub(super) fn halve(&self, list: &str, size: u32) -> Option<u32> {
        let size = Some(size / 2).filter(|half| *half > 0)?;
        let page = Page { size, num_lists: 0 };
        self.shorter().insert(list.to_owned(), page);
        Some(size)
    }

    /// A list was read to its end.
    pub(super) fn complete(&self, list: &str, most: u32) {
        let mut shorter = self.shorter();
        let Some(page) = shorter.get_mut(list) else { return };
        page.num_lists += 1;
        if page.num_lists >= LISTS_UNTIL_GROWTH {
            page.size = page.size.saturating_mul(2);
            page.num_lists = 0;
        }
        if page.size >= most {
            shorter.remove(list);
        }
    }
}

/// Whether an answer was longer than what is read of one.
pub(super) fn is_too_long(error: &Error) -> bool {
    let mut at: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = at {
        if error.is::<http_body_util::LengthLimitError>() || error.to_string().contains(TOO_LONG) {
            return true;
        }
        at = error.source();
    }
    false
}

/// What [`http_body_util::LengthLimitError`] says, for errors on the way that keep the words alone.
const TOO_LONG: &str = "length limit exceeded";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_halved_down_to_one_object_and_grows_again_after_many_lists() {
        let pages = Pages::default();
        let mut size = pages.size("pods", 500);
        let mut sizes = vec![size];
        while let Some(half) = pages.halve("pods", size) {
            sizes.push(half);
            size = pages.size("pods", 500);
        }
        assert_eq!(sizes, [500, 250, 125, 62, 31, 15, 7, 3, 1]);
        assert_eq!((pages.size("pods", 500), pages.size("nodes", 500)), (1, 500));
        for _ in 0..LISTS_UNTIL_GROWTH {
            pages.complete("pods", 500);
        }
        assert_eq!(pages.size("pods", 500), 2);
        for _ in 0..8 * LISTS_UNTIL_GROWTH {
            pages.complete("pods", 500);
        }
        assert_eq!(pages.size("pods", 500), 500);
    }
}
