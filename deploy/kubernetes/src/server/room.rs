//! Which connections may stay. A connection takes one of `connections_max` places once its client has proved its identity. Before
//! that it is a guest. There is room for so many guests; when it is full, a new one takes the place of the one that came first.
//! So a client that connects and says nothing keeps no other out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Most guests at once. A client that is honest is one for the milliseconds of a handshake; for it to lose its place, so many others
/// have to connect in that time. Assumed.
const GUESTS_MAX: usize = 256;

/// Guests by the order in which they came.
#[derive(Debug, Default)]
struct Guests {
    next: u64,
    tasks: BTreeMap<u64, AbortHandle>,
}

/// The guests and the places of those that stay.
#[derive(Clone, Debug)]
pub(super) struct Room {
    guests: Arc<Mutex<Guests>>,
    places: Arc<Semaphore>,
}

impl Room {
    /// With so many places for those that stay.
    pub(super) fn new(connections_max: usize) -> Room {
        Room {
            guests: Arc::default(),
            places: Arc::new(Semaphore::new(connections_max)),
        }
    }

    /// Serves a client that has come; it is a guest.
    pub(super) fn enter<F>(&self, serve: impl FnOnce(Arc<Guest>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.lock().tasks.len() >= GUESTS_MAX {
            self.make_space();
        }
        let mut guests = self.lock();
        let number = guests.next;
        guests.next += 1;
        let guest = Arc::new(Guest {
            room: self.clone(),
            number,
            place: OnceLock::new(),
        });
        // It leaves the list under the same lock, so it cannot do so before it stands there.
        let task = tokio::spawn(serve(guest));
        guests.tasks.insert(number, task.abort_handle());
    }

    /// Ends the connection of the guest that came first.
    pub(super) fn make_space(&self) {
        let first = self.lock().tasks.pop_first();
        if let Some((_, task)) = first {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Guest {
    room: Room,
    number: u64,
    /// Once it is no guest any more.
    place: OnceLock<OwnedSemaphorePermit>,
}

impl Guest {
    /// Its client has proved its identity: it takes a place, or waits for one up to a limit. Whether it has one.
    pub(super) async fn stay(&self, limit: Duration) -> bool {
        if self.place.get().is_some() {
            return true;
        }
        let place = Arc::clone(&self.room.places).acquire_owned();
        let Ok(Ok(place)) = tokio::time::timeout(limit, place).await else {
            return false;
        };
        self.room.lock().tasks.remove(&self.number);
        self.place.set(place).is_ok()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.room.lock().tasks.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts itself when its connection ends.
    struct Count(Arc<AtomicUsize>);

    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn who_comes_first_goes_first_and_who_stays_is_no_guest_any_more() {
        let room = Room::new(1);
        let left = Arc::new(AtomicUsize::new(0));
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        // The first one stays at once, the second finds no place, the others are silent.
        for number in 0..GUESTS_MAX + 3 {
            let (told, left) = (told.clone(), Arc::clone(&left));
            room.enter(|guest| async move {
                let _count = Count(left);
                if number < 2 {
                    told.send(guest.stay(Duration::ZERO).await).unwrap();
                }
                std::future::pending::<()>().await;
            });
            if number < 2 {
                assert_eq!(heard.recv().await, Some(number == 0));
            }
            tokio::task::yield_now().await;
        }
        // All but the one that stays are guests: two too many, and those are the ones that came first.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            (left.load(Ordering::SeqCst), room.lock().tasks.len()),
            (2, GUESTS_MAX)
        );
        let numbers: Vec<u64> = room.lock().tasks.keys().copied().collect();
        assert_eq!((numbers[0], numbers.len()), (3, GUESTS_MAX));
        for _ in 0..GUESTS_MAX {
            room.make_space();
        }
        assert_eq!(room.lock().tasks.len(), 0);
    }
}
