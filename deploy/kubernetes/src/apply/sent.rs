//! Requests about single pods and Jobs that are sent side by side: each needs the API server for some milliseconds.

use pleach_daemon::system::NotSent;
use pleach_scheduler::ExternalId;

use super::Hands;
use crate::api::Lift;
use crate::error::Error;
use crate::node::node_of;
use crate::pod::PodSeen;

/// Requests that are under way at once. *Ours*: far less than an API server takes of one client.
const SENT_MAX: usize = 16;

impl Hands<'_> {
    /// Lets a single pod go without waiting for the answer, beside at most [`SENT_MAX`] others: each needs the API server for some
    /// milliseconds, and they have room beside each other.
    pub(super) async fn send(
        &mut self,
        job: ExternalId,
        pod: &PodSeen,
        seat: &str,
        seats: &[(String, u32)],
        now_s: i64,
    ) -> Result<(), NotSent> {
        let node = node_of(seat);
        let hostname = self.hostname(pod, node).map_err(NotSent::refused)?;
        let mark = self.text_of_mark(&pod.uid, seat, seats, now_s);
        let (cluster, of_task) = (self.cluster.clone(), pod.clone());
        let sent = async move {
            let lift = Lift::To {
                hostname: &hostname,
                mark: &mark,
            };
            cluster.lift(&of_task, &lift).await
        };
        self.begin(job, sent).await;
        let entry = self.unbound.entry(node.to_owned()).or_default();
        entry.push((pod.namespace.clone(), pod.name.clone()));
        Ok(())
    }

    /// Begins a request about a job, once fewer than [`SENT_MAX`] are under way.
    pub(super) async fn begin(
        &mut self,
        job: ExternalId,
        request: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        while self.sent.len() >= SENT_MAX {
            self.answer().await;
        }
        self.sent.spawn(async move { (job, request.await) });
    }

    /// Waits for one of those that are under way; whether there was one.
    pub(super) async fn answer(&mut self) -> bool {
        let Some(joined) = self.sent.join_next().await else {
            return false;
        };
        if let Ok((job, answer)) = joined
            && let Err(error) = self.hear(answer)
        {
            self.refused.push((job, NotSent::refused(error)));
        }
        true
    }
}
