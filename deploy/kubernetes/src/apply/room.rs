//! Whether a node has room for pods that are to go there, beside GPUs, and whether those before them are bound.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Hands;
use crate::asks::{self, Amounts, HostPort};
use crate::node::node_of;
use crate::pod::PodSeen;

/// Pause between two looks whether a pod is bound.
const LOOK: Duration = Duration::from_millis(20);

impl Hands<'_> {
    /// The first node that lacks something for pods that go there, and what; the tables do not know of it.
    pub(super) fn lacking<'b>(
        &self,
        places: impl Iterator<Item = (&'b PodSeen, &'b str)>,
    ) -> Option<(String, String)> {
        let mut needed: BTreeMap<&str, (Amounts, Vec<&PodSeen>)> = BTreeMap::new();
        for (pod, seat) in places {
            let (amounts, pods) = needed.entry(node_of(seat)).or_default();
            for (name, amount) in &pod.asks {
                let sum = amounts.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
            pods.push(pod);
        }
        for (node, (amounts, pods)) in needed {
            let Some(host) = self.hosts.get(node) else {
                return Some((node.to_owned(), format!("{node} is not there")));
            };
            if self.emptied.contains(node) {
                continue;
            }
            if let Some((name, has, asked)) = asks::lacking(&host.free, &amounts) {
                let (has, asked) = (asks::words(name, has), asks::words(name, asked));
                return Some((
                    node.to_owned(),
                    format!("{node} has {has}, and {asked} are asked for"),
                ));
            }
            let is_taken = |port: &HostPort| host.ports.iter().any(|other| port.meets(other));
            if pods.iter().flat_map(|pod| &pod.ports).any(is_taken) {
                return Some((node.to_owned(), format!("{node} has a host port of it in use")));
            }
        }
        None
    }

    /// Waits until the pods that were let go to a node before are bound; a pod that is not.
    pub(super) async fn is_waited_for(&mut self, node: &str) -> Option<String> {
        if self.settings.bind_wait_s <= 0.0 || self.emptied.contains(node) {
            return None;
        }
        while let Some((namespace, name)) = self.unbound.get(node).and_then(|list| list.last()).cloned() {
            let began = Instant::now();
            let shown = format!("{namespace}/{name}");
            let is_bound = match self.cluster.pod(&namespace, &name).await {
                Ok(None) => true,
                Ok(Some(pod)) => pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()),
                Err(_) => return Some(shown),
            };
            if is_bound {
                if let Some(list) = self.unbound.get_mut(node) {
                    list.pop();
                }
                continue;
            }
            if self.wait_left.is_zero() {
                return Some(shown);
            }
            tokio::time::sleep(LOOK).await;
            self.wait_left = self.wait_left.saturating_sub(began.elapsed());
        }
        None
    }
}
