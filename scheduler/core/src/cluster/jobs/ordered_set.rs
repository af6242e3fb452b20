//! A sorted set in flat pieces: the orders of the queue and of the running jobs.
//!
//! Looking at the first few members, which every decision does under several orders, reads consecutive memory. A member
//! comes or goes by a binary search and a short move, and pieces that fall empty are kept for later: a set that has
//! once held n members holds any n again without an allocation from [`OrderedSet::reserve`] on.
//!
//! Each piece knows a weight below which it has no member, so a look for light ones passes over whole pieces.

/// Most members of one piece: a move of at most 2 KiB, and a hundred thousand members in about a thousand pieces.
const PIECE_MAX: usize = 128;

/// What an [`OrderedSet`] holds.
pub trait Member: Copy + Ord {
    /// Whether [`OrderedSet`] keeps account of weights; without, it pays nothing for them.
    const WEIGHED: bool = false;

    /// A number by which members can be passed over whatever their order; the order may not depend on it.
    fn weight(&self) -> u32 {
        0
    }
}

impl Member for u32 {}
impl<A: Copy + Ord, B: Copy + Ord> Member for (A, B) {}

/// A sorted set of small values.
#[derive(Clone, Debug)]
pub struct OrderedSet<T> {
    /// Pieces in order, each sorted; none is empty.
    pieces: Vec<Vec<T>>,
    /// No member of each piece weighs less; empty where members are not weighed.
    lightest: Vec<u32>,
    /// Empty pieces, for their memory.
    spare: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for OrderedSet<T> {
    fn default() -> OrderedSet<T> {
        OrderedSet {
            pieces: Vec::new(),
            lightest: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Member> OrderedSet<T> {
    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest member.
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.pieces.first().and_then(|piece| piece.first())
    }

    /// The largest member.
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.pieces.last().and_then(|piece| piece.last())
    }

    /// Whether the member is there.
    #[must_use]
    pub fn contains(&self, member: &T) -> bool {
        let piece = self.pieces.get(self.piece_of(member));
        piece.is_some_and(|piece| piece.binary_search(member).is_ok())
    }

    /// Members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// The last members less than `before`, or of all where it is none: as many as lie together, empty only if there are none.
    pub(crate) fn last_before(&self, before: Option<&T>) -> &[T] {
        let Some(before) = before else {
            return self.pieces.last().map_or(&[], Vec::as_slice);
        };
        let piece = self.piece_of(before);
        let here = self.pieces.get(piece).map_or(&[][..], |piece| {
            &piece[..piece.partition_point(|member| member < before)]
        });
        match piece.checked_sub(1) {
            Some(piece) if here.is_empty() => &self.pieces[piece],
            _ => here,
        }
    }

    /// Members greater than `after`, in order; all of them where it is none.
    pub(crate) fn iter_after(&self, after: Option<T>) -> impl Iterator<Item = &T> {
        let (piece, at) = match &after {
            None => (0, 0),
            Some(after) => {
                let piece = self.piece_of(after);
                let at = self
                    .pieces
                    .get(piece)
                    .map_or(0, |piece| piece.partition_point(|member| member <= after));
                (piece, at)
            }
        };
        self.pieces[piece.min(self.pieces.len())..]
            .iter()
            .flatten()
            .skip(at)
    }

    /// Those among the first `num` members that weigh at most `weight_max`, in order.
    pub(crate) fn lights(&self, num: usize, weight_max: u32) -> impl Iterator<Item = &T> {
        let mut rest = num;
        let pieces = self
            .pieces
            .iter()
            .zip(&self.lightest)
            .map_while(move |(piece, lightest)| {
                let here = &piece[..rest.min(piece.len())];
                rest -= here.len();
                let some = *lightest <= weight_max;
                (!here.is_empty()).then_some(if some { here } else { &[] })
            });
        pieces
            .flatten()
            .filter(move |member| member.weight() <= weight_max)
    }

    /// The first `num` members, or all if there are fewer; `buffer` is used where they do not lie together.
    #[inline]
    pub(crate) fn first_few<'a>(&'a self, num: usize, buffer: &'a mut Vec<T>) -> &'a [T] {
        match self.pieces.first() {
            None => &[],
            Some(piece) if piece.len() >= num => &piece[..num],
            Some(piece) if self.pieces.len() == 1 => piece,
            Some(_) => {
                buffer.clear();
                buffer.extend(self.iter().take(num));
                buffer
            }
        }
    }

    /// The piece in which the member is, if it is anywhere; one past the last if it is greater than all.
    #[inline]
    fn piece_of(&self, member: &T) -> usize {
        match &self.pieces[..] {
            [] => 0,
            [only] => usize::from(only.last().is_none_or(|last| last < member)),
            pieces => pieces.partition_point(|piece| piece.last().is_none_or(|last| last < member)),
        }
    }

    /// Adds a member; false if it is there already.
    pub(crate) fn insert(&mut self, member: T) -> bool {
        let mut index = self.piece_of(&member);
        if index == self.pieces.len() {
            // Greater than all: at the end of the last piece, or of a new one.
            if self.pieces.last().is_none_or(|last| last.len() == PIECE_MAX) {
                let piece = self.spare.pop().unwrap_or_default();
                self.pieces.push(piece);
                if T::WEIGHED {
                    self.lightest.push(u32::MAX);
                }
            }
            index = self.pieces.len() - 1;
        }
        let Err(mut at) = self.pieces[index].binary_search(&member) else {
            return false;
        };
        if self.pieces[index].len() == PIECE_MAX {
            let mut upper = self.spare.pop().unwrap_or_default();
            upper.extend(self.pieces[index].drain(PIECE_MAX / 2..));
            self.pieces.insert(index + 1, upper);
            if T::WEIGHED {
                self.lightest.insert(index + 1, 0);
                self.weigh(index);
                self.weigh(index + 1);
            }
            if at > PIECE_MAX / 2 {
                (index, at) = (index + 1, at - PIECE_MAX / 2);
            }
        }
        self.pieces[index].insert(at, member);
        if T::WEIGHED {
            self.lightest[index] = self.lightest[index].min(member.weight());
        }
        self.len += 1;
        true
    }

    /// Takes a member out; false if it is not there.
    pub(crate) fn remove(&mut self, member: &T) -> bool {
        let index = self.piece_of(member);
        let Some(piece) = self.pieces.get_mut(index) else {
            return false;
        };
        let Ok(at) = piece.binary_search(member) else {
            return false;
        };
        let weight = piece.remove(at).weight();
        let is_empty = piece.is_empty();
        self.len -= 1;
        // A single piece is too short to be worth passing over.
        if T::WEIGHED && !is_empty && self.pieces.len() > 1 && weight == self.lightest[index] {
            self.weigh(index);
        }
        if is_empty {
            let empty = self.pieces.remove(index);
            self.spare.push(empty);
            if T::WEIGHED {
                self.lightest.remove(index);
            }
        } else if self.pieces.len() > 1 {
            self.join(index);
            if index > 0 {
                self.join(index - 1);
            }
        }
        true
    }

    /// Joins a piece with the next one where both together would fill at most half of one. Two neighbours thus always hold
    /// more than that.
    fn join(&mut self, index: usize) {
        let Some([piece, next]) = self.pieces.get_mut(index..index + 2) else {
            return;
        };
        if piece.len() + next.len() <= PIECE_MAX / 2 {
            piece.append(next);
            let empty = self.pieces.remove(index + 1);
            self.spare.push(empty);
            if T::WEIGHED {
                let other = self.lightest.remove(index + 1);
                self.lightest[index] = self.lightest[index].min(other);
            }
        }
    }

    /// Looks for the lightest member of a piece.
    fn weigh(&mut self, index: usize) {
        let weights = self.pieces[index].iter().map(Member::weight);
        self.lightest[index] = weights.min().unwrap_or(u32::MAX);
    }

    /// Makes room, so that no insertion allocates while there are at most `num` members.
    pub(crate) fn reserve(&mut self, num: usize) {
        // Two neighbours hold more than half a piece, see `join`.
        let num_pieces = 2 * (num / (PIECE_MAX / 2 + 1)) + 1;
        let piece_len = num.min(PIECE_MAX);
        for piece in self.pieces.iter_mut().chain(&mut self.spare) {
            piece.reserve(piece_len.saturating_sub(piece.len()));
        }
        let missing = num_pieces.saturating_sub(self.pieces.len() + self.spare.len());
        self.spare
            .extend((0..missing).map(|_| Vec::with_capacity(piece_len)));
        self.pieces.reserve(num_pieces.saturating_sub(self.pieces.len()));
        if T::WEIGHED {
            self.lightest
                .reserve(num_pieces.saturating_sub(self.lightest.len()));
        }
        self.spare.reserve(num_pieces.saturating_sub(self.spare.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[derive(Clone, Copy, Debug)]
    struct Weighed {
        key: u32,
        weight: u32,
    }

    impl Ord for Weighed {
        fn cmp(&self, other: &Weighed) -> std::cmp::Ordering {
            self.key.cmp(&other.key)
        }
    }

    impl PartialOrd for Weighed {
        fn partial_cmp(&self, other: &Weighed) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Weighed {
        fn eq(&self, other: &Weighed) -> bool {
            self.key == other.key
        }
    }

    impl Eq for Weighed {}

    impl Member for Weighed {
        const WEIGHED: bool = true;

        fn weight(&self) -> u32 {
            self.weight
        }
    }

    proptest! {
        #[test]
        fn the_flat_set_behaves_like_a_tree(
            toggles in proptest::collection::vec(0_u32..700, 1..3000), after in 0_u32..710, num in 0_usize..300,
        ) {
            let (mut set, mut oracle, mut buffer) = (OrderedSet::default(), BTreeSet::new(), Vec::new());
            for member in toggles {
                if oracle.insert(member) {
                    prop_assert!(set.insert(member));
                    prop_assert!(!set.insert(member));
                } else {
                    oracle.remove(&member);
                    prop_assert!(set.remove(&member));
                    prop_assert!(!set.remove(&member));
                }
                prop_assert_eq!(set.contains(&after), oracle.contains(&after));
                prop_assert_eq!((set.len(), set.first(), set.last()), (oracle.len(), oracle.first(), oracle.last()));
            }
            prop_assert!(set.pieces.windows(2).all(|pair| pair[0].len() + pair[1].len() > PIECE_MAX / 2));
            prop_assert!(set.iter().eq(&oracle));
            prop_assert!(set.iter().rev().eq(oracle.iter().rev()));
            prop_assert!(set.iter_after(Some(after)).eq(oracle.range(after + 1..)));
            prop_assert!(set.iter_after(None).eq(&oracle));
            let (before, all) = (set.last_before(Some(&after)), set.last_before(None));
            prop_assert!(before.iter().rev().eq(oracle.range(..after).rev().take(before.len())));
            prop_assert!(all.iter().rev().eq(oracle.iter().rev().take(all.len())));
            prop_assert_eq!(before.is_empty(), oracle.range(..after).next().is_none());
            prop_assert_eq!(all.is_empty(), oracle.is_empty());
            prop_assert!(set.first_few(num, &mut buffer).iter().eq(oracle.iter().take(num)));
        }

        #[test]
        fn the_light_among_the_first_members_are_those_that_a_walk_finds(
            toggles in proptest::collection::vec((0_u32..700, 0_u32..40), 1..2000), num in 0_usize..700, weight_max in 0_u32..40,
        ) {
            let (mut set, mut oracle) = (OrderedSet::default(), BTreeMap::new());
            for (key, weight) in toggles {
                match oracle.remove(&key) {
                    Some(weight) => {
                        let member = Weighed { key, weight };
                        prop_assert!(set.remove(&member));
                    }
                    None => {
                        let member = Weighed { key, weight };
                        prop_assert!(set.insert(member));
                        oracle.insert(key, weight);
                    }
                }
            }
            let walked = oracle.iter().take(num).filter(|(_, weight)| **weight <= weight_max);
            let light: Vec<(u32, u32)> = set.lights(num, weight_max).map(|member| (member.key, member.weight)).collect();
            prop_assert_eq!(light, walked.map(|(key, weight)| (*key, *weight)).collect::<Vec<_>>());
            let bounds = set.pieces.iter().zip(&set.lightest);
            prop_assert!(bounds.clone().all(|(piece, least)| piece.iter().all(|member| member.weight >= *least)));
            prop_assert_eq!(bounds.len(), set.pieces.len());
            prop_assert_eq!(set.lightest.len(), set.pieces.len());
        }

        #[test]
        fn room_that_was_made_for_the_most_members_is_enough_for_any_order_of_coming_and_going(
            toggles in proptest::collection::vec(0_u32..1000, 1..4000),
        ) {
            let mut set = OrderedSet::default();
            set.reserve(1000);
            let pieces = set.spare.len();
            for member in (0..1000).chain(toggles) {
                if !set.remove(&member) {
                    set.insert(member);
                }
                prop_assert_eq!(set.pieces.len() + set.spare.len(), pieces, "no piece was added");
            }
            prop_assert!(set.spare.iter().chain(&set.pieces).all(|piece| piece.capacity() == PIECE_MAX));
        }
    }
}
