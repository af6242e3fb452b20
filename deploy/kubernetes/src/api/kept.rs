//! Objects of one kind as the API server last showed them, and how sure that is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Resource;
use kube::core::DynamicObject;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::suspended::maker::OTHERS;

/// Time between two life signs of a round that waits for a first list, whose pages have limits of their own.
const WAIT: Duration = Duration::from_secs(1);

/// What is kept of each kind, from the first round that needs it, and the tasks that do so.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) changes: Arc<Notify>,
    tasks: Mutex<JoinSet<()>>,
    pub(super) nodes: OnceLock<Arc<Kept<Node>>>,
    pub(super) pods: OnceLock<Arc<Kept<Pod>>>,
    /// Pods that have ended, where estimates come from history.
    pub(super) ended: OnceLock<Arc<Kept<Pod>>>,
    pub(super) jobs: OnceLock<Arc<Kept<Job>>>,
    pub(super) claims: OnceLock<Arc<Kept<PersistentVolumeClaim>>>,
    pub(super) volumes: OnceLock<Arc<Kept<PersistentVolume>>>,
    pub(super) classes: OnceLock<Arc<Kept<PriorityClass>>>,
    pub(super) quotas: OnceLock<Arc<Kept<ResourceQuota>>>,
    /// Objects of other kinds that may be suspended, in the order of [`OTHERS`].
    pub(super) others: [OnceLock<Arc<Kept<DynamicObject>>>; OTHERS.len()],
}

impl Watched {
    pub(super) fn new(changes: &Arc<Notify>) -> Watched {
        Watched {
            changes: Arc::clone(changes),
            tasks: Mutex::default(),
            nodes: OnceLock::new(),
            pods: OnceLock::new(),
            ended: OnceLock::new(),
            jobs: OnceLock::new(),
            claims: OnceLock::new(),
            volumes: OnceLock::new(),
            classes: OnceLock::new(),
            quotas: OnceLock::new(),
            others: Default::default(),
        }
    }

    /// A task that ends with this.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(task);
    }
}

/// Objects of one kind.
#[derive(Debug)]
pub(super) struct Kept<K> {
    /// The kind in words.
    pub(super) what: &'static str,
    inner: Mutex<Inner<K>>,
    /// Wakes rounds that wait for a first list.
    news: Notify,
}

#[derive(Debug)]
struct Inner<K> {
    /// In the order of a list, with their newest versions: an object stays the very one while what is read of it is the same, as
    /// where a kubelet only lives or the Job controller counts pods.
    objects: BTreeMap<String, (Arc<K>, Option<u64>)>,
    is_filled: bool,
    /// Whether it could ever be watched.
    was_watched: bool,
    is_refused: bool,
    /// The last moment at which the API server is known to have shown all changes.
    proof: Option<Instant>,
    /// What went wrong since.
    why: Option<String>,
}

/// What a round may do with what is kept.
#[derive(Debug)]
pub(super) enum Shown<K> {
    /// All objects.
    All(Vec<Arc<K>>),
    /// Nothing: the API server does not let this program watch the kind, for this reason.
    Refused(String),
}

/// What an event did.
#[derive(Debug)]
pub(super) struct Change<K> {
    /// The object before.
    pub(super) old: Option<Arc<K>>,
    /// The object now.
    pub(super) new: Option<Arc<K>>,
}

impl<K: Clone + PartialEq + Resource> Kept<K> {
    pub(super) fn new(what: &'static str) -> Kept<K> {
        Kept {
            what,
            inner: Mutex::new(Inner {
                objects: BTreeMap::new(),
                is_filled: false,
                was_watched: false,
                is_refused: false,
                proof: None,
                why: None,
            }),
            news: Notify::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces all by a list that was asked for at that moment.
    pub(super) fn fill(&self, objects: Vec<K>, asked: Instant) {
        {
            let mut inner = self.inner();
            let before = std::mem::take(&mut inner.objects);
            let named = |object: K| {
                let name = key(&object)?;
                let entry = entry(object, before.get(&name));
                Some((name, entry))
            };
            inner.objects = objects.into_iter().filter_map(named).collect();
            inner.is_filled = true;
        }
        self.confirm(asked);
    }

    /// The API server has begun to tell of changes since that moment.
    pub(super) fn begin(&self, at: Instant) {
        self.inner().was_watched = true;
        self.confirm(at);
    }

    /// The API server showed at that moment that it tells of changes.
    pub(super) fn confirm(&self, at: Instant) {
        let mut inner = self.inner();
        inner.proof = inner.proof.max(Some(at));
        (inner.why, inner.is_refused) = (None, false);
        drop(inner);
        self.news.notify_waiters();
    }

    /// A list or a watch failed; whether one was begun before.
    pub(super) fn fail(&self, error: &Error) -> bool {
        let mut inner = self.inner();
        inner.why = Some(error.to_string());
        inner.is_refused = error.code() == Some(403);
        let was_watched = inner.was_watched;
        drop(inner);
        self.news.notify_waiters();
        was_watched
    }

    /// An event shows an object, or that it is gone. What is kept of it may be newer, by an answer to this program.
    ///
    /// # Errors
    /// An object without a name or a version that is a number; more than `most`.
    pub(super) fn take(&self, object: K, is_there: bool, most: u32) -> Result<Change<K>, Error> {
        let strange = || Error::Strange {
            what: format!("watch of {}", self.what),
        };
        let name = key(&object).ok_or_else(strange)?;
        let new = version(&object).ok_or_else(strange)?;
        let mut inner = self.inner();
        let known = inner.objects.get(&name);
        let old = known.map(|(old, _)| Arc::clone(old));
        if known.and_then(|(_, version)| *version) > Some(new) {
            return Ok(Change {
                new: old.clone(),
                old,
            });
        }
        let new = is_there.then(|| entry(object, known));
        match &new {
            Some(new) => inner.objects.insert(name, new.clone()),
            None => inner.objects.remove(&name),
        };
        let new = new.map(|(new, _)| new);
        if inner.objects.len() > most as usize {
            let what = format!("watch of {}", self.what);
            return Err(Error::TooMany { what, most });
        }
        Ok(Change { old, new })
    }

    /// An answer to this program shows an object: it is kept at once, unless the object is gone or newer already.
    pub(super) fn answered(&self, object: K) {
        let Some(name) = key(&object) else { return };
        let mut inner = self.inner();
        let Some(old) = inner.objects.get_mut(&name) else {
            return;
        };
        let is_same = old.0.meta().uid == object.meta().uid;
        if is_same && version(&object) > old.1 {
            *old = entry(object, Some(old));
        }
    }

    /// The newest version of an object that reads as this one.
    pub(super) fn newest(&self, object: (&str, &str, &str), own: &str) -> String {
        let (namespace, name, uid) = object;
        let inner = self.inner();
        let known = inner.objects.get(&format!("{namespace}/{name}"));
        let is_it = |(kept, _): &&(Arc<K>, Option<u64>)| {
            let meta = kept.meta();
            meta.uid.as_deref() == Some(uid) && meta.resource_version.as_deref() == Some(own)
        };
        let newest = known.filter(is_it).and_then(|(_, version)| *version);
        newest.map_or_else(|| own.to_owned(), |version| version.to_string())
    }

    /// All objects, once there was a first list; `still` is called while a round waits for it.
    ///
    /// # Errors
    /// A first list that failed; no word of the API server for longer than `age_max`.
    pub(super) async fn shown(&self, age_max: Duration, still: impl Fn()) -> Result<Shown<K>, Error> {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // From here on no news is missed.
            news.as_mut().enable();
            if let Some(shown) = self.now(age_max)? {
                return Ok(shown);
            }
            let _ = timeout(WAIT, news).await;
            still();
        }
    }

    /// The same at once; none before the first list.
    fn now(&self, age_max: Duration) -> Result<Option<Shown<K>>, Error> {
        let inner = self.inner();
        // An API server that has just begun knows no rights yet and refuses everything: what is fresh counts on.
        let is_fresh = inner.was_watched && inner.proof.is_some_and(|proof| proof.elapsed() <= age_max);
        match (&inner.why, inner.proof) {
            (Some(why), _) if inner.is_refused && !is_fresh => Ok(Some(Shown::Refused(why.clone()))),
            (why, Some(proof)) if inner.is_filled && proof.elapsed() > age_max => Err(Error::Stale {
                what: self.what,
                age_s: proof.elapsed().as_secs(),
                reason: why.clone().unwrap_or_else(|| "it gives no answer".into()),
            }),
            _ if inner.is_filled => Ok(Some(Shown::All({
                let objects = inner.objects.values();
                objects.map(|(object, _)| Arc::clone(object)).collect()
            }))),
            (Some(why), _) => Err(Error::Unfilled { reason: why.clone() }),
            (None, _) => Ok(None),
        }
    }
}

/// An object with its version: the one that is kept, where all but the version is the same.
fn entry<K: Clone + PartialEq + Resource>(
    mut object: K,
    known: Option<&(Arc<K>, Option<u64>)>,
) -> (Arc<K>, Option<u64>) {
    let own = object.meta().resource_version.clone();
    let version = version(&object);
    if let Some((old, _)) = known {
        object
            .meta_mut()
            .resource_version
            .clone_from(&old.meta().resource_version);
        if object == **old {
            return (Arc::clone(old), version);
        }
        object.meta_mut().resource_version = own;
    }
    (Arc::new(object), version)
}

/// Namespace and name, in the order in which the API server lists.
fn key<K: Resource>(object: &K) -> Option<String> {
    let meta = object.meta();
    let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
    Some(format!(
        "{}/{name}",
        meta.namespace.as_deref().unwrap_or_default()
    ))
}

/// The version of an object.
///
/// # Source
/// "Resource versions" of the Kubernetes documentation: versions of one kind are whole numbers, and a later one is larger.
pub(super) fn version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
