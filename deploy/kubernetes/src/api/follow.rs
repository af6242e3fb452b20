//! One list and then one watch after the other, for as long as the task runs.
//!
//! A watch is short: the API server ends it within [`Follow::watch_s`], and the next one goes on from the last version that was
//! seen. So a connection that died in silence is found, and what is kept is known to be fresh or known to be old.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Cluster;
use super::kept::{Change, Kept, version};
use crate::error::Error;

/// Least time between the beginnings of two watches. *Ours*.
const CUT: Duration = Duration::from_secs(1);
/// Pause after an error, doubled by each further one up to the other. *Ours*.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
/// Pause where the right to watch is missing. *Ours*.
const REFUSED: Duration = Duration::from_secs(30);
/// Errors one after the other after which all is listed anew. *Ours*.
const ERRORS: u32 = 3;

/// One kind that is followed.
pub(super) struct Follow<K: Resource> {
    pub(super) cluster: Cluster,
    /// What it is to the client.
    pub(super) of: K::DynamicType,
    pub(super) kept: Arc<Kept<K>>,
    /// Selects objects by their fields; empty: all.
    pub(super) fields: &'static str,
    /// Takes off what no round reads.
    pub(super) trim: fn(&Cluster, &mut K),
    /// Whether a change is a reason for a round.
    pub(super) wakes: fn(&Cluster, &Change<K>) -> bool,
    pub(super) changes: Arc<Notify>,
}

impl<K> Follow<K>
where
    K: Clone + PartialEq + std::fmt::Debug + DeserializeOwned + Resource,
{
    /// How long a watch lasts, s: half of what a request may take, so that a silent connection is not cut before.
    pub(super) fn watch_s(cluster: &Cluster) -> u32 {
        let half_s = cluster.settings.request_limit().as_secs() / 2;
        u32::try_from(half_s.clamp(1, 60)).unwrap_or(60)
    }

    /// Goes on for ever.
    pub(super) async fn run(self) {
        let (mut version, mut num_errors) = (None, 0);
        loop {
            let began = Instant::now();
            let went = match &mut version {
                None => self.fill().await.map(|new| version = Some(new)),
                Some(version) => self.watch(version).await.map(|()| num_errors = 0),
            };
            let Err(error) = went else {
                sleep_until(began + CUT.min(self.cluster.settings.request_limit())).await;
                continue;
            };
            let was_watched = self.kept.fail(&error);
            num_errors += 1;
            let is_refused = error.code() == Some(403);
            if is_gone(&error) || !is_refused && num_errors % ERRORS == 0 {
                version = None;
            }
            let doubled = AGAIN.0 * 2_u32.pow((num_errors - 1).min(3));
            let may_not = is_refused && !was_watched;
            sleep(if may_not { REFUSED } else { doubled.min(AGAIN.1) }).await;
        }
    }

    /// Lists all; the version of the list.
    async fn fill(&self) -> Result<u64, Error> {
        let asked = Instant::now();
        let params = match self.fields {
            "" => ListParams::default(),
            fields => ListParams::default().fields(fields),
        };
        let trim = |object: &mut K| (self.trim)(&self.cluster, object);
        let api: Api<K> = Api::all_with(self.cluster.client.clone(), &self.of);
        let listed = self.cluster.list_of(&api, self.kept.what, params, trim);
        let (objects, version) = listed.await?;
        let version = version.parse().map_err(|_| Error::Strange {
            what: format!("list of {}", self.kept.what),
        })?;
        self.kept.fill(objects, asked);
        self.changes.notify_one();
        Ok(version)
    }

    /// One watch to its end.
    async fn watch(&self, version: &mut u64) -> Result<(), Error> {
        let what = format!("watch of {}", self.kept.what);
        let limit_s = Self::watch_s(&self.cluster);
        let mut params = WatchParams::default().timeout(limit_s);
        if !self.fields.is_empty() {
            params = params.fields(self.fields);
        }
        let limit = Duration::from_secs(u64::from(limit_s)) + self.cluster.settings.request_limit();
        let began = Instant::now();
        let api: Api<K> = Api::all_with(self.cluster.client.clone(), &self.of);
        let events = self
            .cluster
            .ask(&what, api.watch(&params, &version.to_string()))
            .await?;
        self.kept.begin(began);
        let mut events = pin!(events);
        loop {
            let event = timeout_at(began + limit, events.try_next()).await;
            let event = event.map_err(|_| Error::Deadline {
                what: what.clone(),
                limit,
            })?;
            match event.map_err(|source| api_error(&what, source))? {
                Some(event) => self.take(event, &what, version)?,
                None => return Ok(()),
            }
        }
    }

    fn take(&self, event: WatchEvent<K>, what: &str, last: &mut u64) -> Result<(), Error> {
        let (mut object, is_there) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(mark) => {
                // One that says no version, or an old one, still shows that the API server is there.
                *last = mark
                    .metadata
                    .resource_version
                    .parse()
                    .map_or(*last, |new: u64| new.max(*last));
                self.kept.confirm(Instant::now());
                return Ok(());
            }
            WatchEvent::Error(status) => return Err(api_error(what, kube::Error::Api(status))),
        };
        let new = version(&object).ok_or_else(|| Error::Strange {
            what: what.to_owned(),
        })?;
        // Shown before: it would bring back what is gone.
        if new <= *last {
            return Ok(());
        }
        (self.trim)(&self.cluster, &mut object);
        let change = self
            .kept
            .take(object, is_there, self.cluster.settings.objects_max)?;
        *last = new;
        self.kept.confirm(Instant::now());
        if (self.wakes)(&self.cluster, &change) {
            self.changes.notify_one();
        }
        Ok(())
    }
}

fn api_error(what: &str, source: kube::Error) -> Error {
    Error::Api {
        what: what.to_owned(),
        source: Box::new(source),
    }
}

/// Whether the API server no longer has what came after a version: 410, or a version that it has not reached, as after a restored
/// backup (504 with words of its own, which errors one after the other find too).
fn is_gone(error: &Error) -> bool {
    error.code() == Some(410)
}
