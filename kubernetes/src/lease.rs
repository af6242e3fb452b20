//! The Lease of the controller that drives. Whoever does not hold it stands by: it looks, so that its server can answer, and touches
//! nothing.
//!
//! # Source
//! The rules of client-go's leader election: who holds it is believed gone when its record has not changed for as long as the Lease
//! lasts by the clock of whoever looks, for clocks of others may be wrong; each change is for the very version that was read.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;

use crate::api::Cluster;
use crate::config::Settings;
use crate::error::Error;

/// The Lease, as this controller knows it.
#[derive(Debug)]
pub struct Held {
    namespace: String,
    name: String,
    identity: String,
    lasts: Duration,
    /// Holder and version that were last seen, and since when they are the same.
    seen: Option<(String, String, Instant)>,
    /// When it was last renewed by us.
    renewed: Option<Instant>,
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
            seen: None,
            renewed: None,
        })
    }

    /// Takes it or renews it at Unix time `now_s`.
    ///
    /// # Errors
    /// [`Error::StandsBy`] where another one holds it; an API server that refuses or does not answer.
    pub async fn hold(&mut self, cluster: &Cluster, now_s: i64) -> Result<(), Error> {
        // The time before it was asked: what was sent late must not count as longer.
        let began = Instant::now();
        let found = cluster.lease(&self.namespace, &self.name).await?;
        let version = found
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        let spec = found.and_then(|lease| lease.spec).unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if !holder.is_empty() && holder != self.identity && self.lives(&holder, version.as_deref(), began) {
            self.renewed = None;
            return Err(Error::StandsBy {
                lease: format!("{}/{}", self.namespace, self.name),
                holder,
            });
        }
        let sent = cluster
            .take_lease(&self.record(&spec, &holder, version, now_s))
            .await;
        match sent {
            Ok(()) => {
                self.renewed = Some(began);
                Ok(())
            }
            // Somebody else was sooner.
            Err(error) if error.code() == Some(409) => {
                self.renewed = None;
                Err(Error::StandsBy {
                    lease: format!("{}/{}", self.namespace, self.name),
                    holder: "another controller".into(),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it is ours still: two thirds of it are counted, for the last request that is sent has to arrive.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.renewed.is_some_and(|at| at.elapsed() < self.lasts * 2 / 3)
    }

    /// Whether another holder has shown itself lately.
    fn lives(&mut self, holder: &str, version: Option<&str>, now: Instant) -> bool {
        let version = version.unwrap_or_default();
        match &self.seen {
            Some((who, last, since)) if who == holder && last == version => since.elapsed() < self.lasts,
            _ => {
                self.seen = Some((holder.to_owned(), version.to_owned(), now));
                true
            }
        }
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
        if self.renewed.is_none() {
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
