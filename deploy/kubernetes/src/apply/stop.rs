//! Stops the pods of a job: all of them or none.

use pleach_daemon::system::NotSent;

use super::Hands;
use crate::error::Error;
use crate::pod::PodSeen;

impl Hands<'_> {
    /// Evicts pods; one that is gone is no error.
    pub(super) async fn evict(&mut self, pods: &[PodSeen]) -> Result<(), Error> {
        for pod in pods {
            let sent = self.cluster.evict(pod).await;
            self.or_gone(sent)?;
        }
        Ok(())
    }

    /// Asks whether all pods of a gang may be evicted: with one of them gone the others would run on without it. Without the right to
    /// look at budgets each pod is asked about alone, and a budget that allows some of them is found half way.
    pub(super) async fn may_be_evicted(&mut self, pods: &[PodSeen]) -> Result<(), NotSent> {
        if pods.len() < 2 {
            return Ok(());
        }
        let against = self.cluster.budget_against(pods).await;
        match self.hear(against) {
            Ok(Some(why)) => return Err(NotSent::refused(why)),
            Err(error) if error.code() != Some(403) => return Err(NotSent::refused(error)),
            Ok(None) | Err(_) => {}
        }
        for pod in pods {
            let answer = self.cluster.could_evict(pod).await;
            self.or_gone(answer).map_err(NotSent::refused)?;
        }
        Ok(())
    }

    /// The answer to a request about a pod, which may be gone.
    fn or_gone(&mut self, answer: Result<(), Error>) -> Result<(), Error> {
        match answer {
            Err(error) if error.code() == Some(404) => Ok(()),
            answer => self.hear(answer),
        }
    }
}
