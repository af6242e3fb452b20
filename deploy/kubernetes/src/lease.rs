//! The Lease of the controller that drives. A controller that does not hold it stands by: it looks, so that its server can
//! answer, and touches nothing.
//!
//! It is renewed beside the rounds, however long their lists take, for as long as rounds go on: a loop that hangs leaves it to
//! another controller.
//!
//! # Source
//! The rules of client-go's leader election. A holder is believed gone when its record has not changed for as long as the Lease
//! lasts, by the clock of the controller that looks, for clocks of others may be wrong. Each change is for the very version that
//! was read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use pleach_daemon::pulse::{Pulse, STUCK};

use crate::api::Cluster;
use crate::config::Settings;
use crate::error::Error;

/// The Lease, as this controller knows it; a clone is the same.
#[derive(Clone, Debug)]
pub struct Held {
    namespace: String,
    name: String,
    identity: String,
    lasts: Duration,
    /// When it was last renewed by us.
    renewed: Arc<Mutex<Option<Instant>>>,
    /// One request after the other, whichever task sends it.
    turn: Arc<tokio::sync::Mutex<Turn>>,
}

#[derive(Debug, Default)]
struct Turn {
    /// Holder and version that were last seen, and since when they are the same.
    seen: Option<(String, String, Instant)>,
    /// It was given back, and is not taken again.
    is_over: bool,
}

impl Held {
    /// That of the settings; none where there is none.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Held> {
        let (namespace, name) = settings.lease.as_ref()?.split_once('/')?;
        Some(Held {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: settings.identity.clone(),
            lasts: Duration::from_secs(u64::from(settings.lease_s)),
            renewed: Arc::default(),
            turn: Arc::default(),
        })
    }

    fn renewed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time between two renewals: two may fail.
    fn period(&self) -> Duration {
        self.lasts / 5
    }

    /// Takes it or renews it at Unix time `now_s`, unless that was done a moment ago.
    ///
    /// # Errors
    /// [`Error::StandsBy`] where another one holds it; an API server that refuses or does not answer.
    pub async fn hold(&self, cluster: &Cluster, now_s: i64) -> Result<(), Error> {
        let mut turn = self.turn.lock().await;
        let is_fresh = self.renewed().is_some_and(|at| at.elapsed() < self.period());
        if is_fresh || turn.is_over {
            return Ok(());
        }
        // The time before it was asked: what was sent late must not count as longer.
        let began = Instant::now();
        let found = cluster.lease(&self.namespace, &self.name).await?;
        let version = found
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        let spec = found.and_then(|lease| lease.spec).unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let is_other = !holder.is_empty() && holder != self.identity;
        if is_other && turn.lives(self.lasts, &holder, version.as_deref(), began) {
            *self.renewed() = None;
            return Err(Error::StandsBy {
                lease: format!("{}/{}", self.namespace, self.name),
                holder,
            });
        }
        let record = self.record(&spec, &holder, version, now_s);
        match cluster.take_lease(&record).await {
            Ok(()) => {
                *self.renewed() = Some(began);
                Ok(())
            }
            // Another controller was sooner.
            Err(error) if error.code() == Some(409) => {
                *self.renewed() = None;
                Err(Error::StandsBy {
                    lease: format!("{}/{}", self.namespace, self.name),
                    holder: "another controller".into(),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Renews it for as long as this is polled and the loop of `pulse` gives life signs. What goes wrong the next round tells.
    pub async fn renew(&self, cluster: &Cluster, pulse: &Pulse, now_s: impl Fn() -> i64) {
        loop {
            tokio::time::sleep(self.period()).await;
            // It is for a round to take it.
            if self.is_ours() && pulse.lives(STUCK) {
                let _ = self.hold(cluster, now_s()).await;
            }
        }
    }

    /// Whether it is ours still: two thirds of it are counted, for the last request that is sent has to arrive.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.renewed().is_some_and(|at| at.elapsed() < self.lasts * 2 / 3)
    }

    fn record(&self, before: &LeaseSpec, holder: &str, version: Option<String>, now_s: i64) -> Lease {
        let now = Timestamp::from_second(now_s).ok().map(MicroTime);
        let is_new = holder != self.identity;
        let transitions = before.lease_transitions.unwrap_or(0);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(self.lasts.as_secs()).ok(),
                acquire_time: if is_new {
                    now.clone()
                } else {
                    before.acquire_time.clone()
                },
                renew_time: now,
                lease_transitions: Some(transitions.saturating_add(i32::from(is_new))),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Gives it back, so that another one need not wait until it ends.
    ///
    /// # Errors
    /// An API server that refuses or does not answer.
    pub async fn give_back(&self, cluster: &Cluster) -> Result<(), Error> {
        let mut turn = self.turn.lock().await;
        turn.is_over = true;
        if self.renewed().take().is_none() {
            return Ok(());
        }
        let found = cluster.lease(&self.namespace, &self.name).await?;
        let Some(mut lease) = found else { return Ok(()) };
        let Some(spec) = &mut lease.spec else {
            return Ok(());
        };
        if spec.holder_identity.as_deref() != Some(&self.identity) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        cluster.take_lease(&lease).await
    }
}

impl Turn {
    /// Whether another holder has shown itself lately.
    fn lives(&mut self, lasts: Duration, holder: &str, version: Option<&str>, now: Instant) -> bool {
        let version = version.unwrap_or_default();
        match &self.seen {
            Some((who, last, since)) if who == holder && last == version => since.elapsed() < lasts,
            _ => {
                self.seen = Some((holder.to_owned(), version.to_owned(), now));
                true
            }
        }
    }
}
