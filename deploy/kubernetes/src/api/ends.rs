//! Watches for pods that end, so that a round begins when GPUs become free and not at the next tick.
//!
//! The watch is an alarm clock: whoever is told reads the lists anew. So nothing of an event is read, a watch that breaks loses
//! nothing but time, and without the right to watch the clock of `tick_s` remains.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Request, WatchParams};
use kube::client::Body;
use kube::core::Status;
use kube::{Api, Resource};
use tokio::sync::Notify;

use super::{Cluster, ENDED};
use crate::error::Error;

/// Pause after a watch that could not be had, and after one that somebody between cut at once. *Ours*.
const AGAIN: Duration = Duration::from_secs(30);
const CUT: Duration = Duration::from_secs(1);

impl Cluster {
    /// Tells of pods that end, for as long as it is polled.
    pub async fn tell_ends(&self, changes: &Notify) {
        let mut is_told = false;
        loop {
            let began = Instant::now();
            let Err(error) = self.watch_ends(changes).await else {
                is_told = false;
                tokio::time::sleep(CUT.saturating_sub(began.elapsed())).await;
                continue;
            };
            if !is_told {
                tracing::warn!(
                    "pods that end are not watched, so that rounds begin by tick_s alone (the ClusterRole of \
                     deploy/kubernetes/deploy/shadow/rbac.yaml gives the right): {error}"
                );
            }
            is_told = true;
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// One watch to its end, which the API server sets.
    async fn watch_ends(&self, changes: &Notify) -> Result<(), Error> {
        let what = "watch of pods that end";
        // A connection on which nothing comes for the limit of a request is cut.
        let limit_s = (self.settings.request_limit().as_secs() / 2).clamp(1, 60);
        let pods: Api<Pod> = Api::all(self.client.clone());
        let newest = ListParams::default().limit(1);
        let newest = self.ask(what, pods.list_metadata(&newest)).await?;
        let version = newest.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().fields(ENDED).timeout(limit_s as u32);
        let request = async {
            let request = Request::new(Pod::url_path(&(), None))
                .watch_metadata(&params, &version)
                .map_err(kube::Error::BuildRequest)?;
            self.client.send(request.map(Body::from)).await
        };
        let answer = self.ask(what, request).await?;
        if !answer.status().is_success() {
            let status = Status::failure(answer.status().as_str(), "").with_code(answer.status().as_u16());
            return Err(Error::Api {
                what: what.to_owned(),
                source: Box::new(kube::Error::Api(status.boxed())),
            });
        }
        let mut events = answer.into_body();
        while let Some(Ok(_)) = events.frame().await {
            changes.notify_one();
        }
        Ok(())
    }
}
