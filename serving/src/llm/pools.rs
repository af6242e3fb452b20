//! Pools: some replicas compute prompts, the others decode, and keys and values move between them.
//!
//! A router sends a request to a prefill replica, which gives its first token. A second router then sends it to a decode
//! replica, by facts of the same age of *those*; its keys and values move there, and it joins the batch as soon as they fit.
//! Prefill replicas know nothing of decode replicas, so the pools are played one after the other.
//!
//! # Source
//! DistServe (Zhong et al., OSDI'24) and Splitwise (Patel et al., ISCA'24). The link is that of BLIS: a time for each transfer
//! and one for each byte.
//!
//! # What is assumed
//! The decode replica is chosen when the prompt is computed (Splitwise chooses both at once). Transfers share no link, each GPU
//! moves its own heads. What has come and does not fit waits in the memory of the host, which has no bound. Where keys and
//! values run out, the decode replica computes the youngest anew itself. A decode replica holds no prefixes for others, so
//! whole prompts move.

use std::borrow::Cow;

use pleach_scheduler::Problem;

use crate::llm::fleet::Fleet;
use crate::llm::link::Link;
use crate::llm::outcome::Outcome;
use crate::llm::request::{Request, Requests};
use crate::llm::router::Router;
use crate::llm::simulate::Run;

/// Replicas that compute prompts, replicas that decode, and the link between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// At least 1.
    pub num_prefill: usize,
    /// At least 1.
    pub num_decode: usize,
    /// From the former to the latter.
    pub link: Link,
}

/// What became of a list on pools.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    /// Of all requests; a time between tokens has the way of the keys and values in it.
    pub outcome: Outcome,
    /// Requests whose keys and values moved: those with a second token.
    pub num_moved: u64,
    /// Time of all transfers, ps.
    pub moved_ps: u64,
}

/// Plays a list on pools, with a router for either; the fleet's own number of replicas is not read. Only the first may refuse,
/// where the fleet allows it.
///
/// # Errors
/// A fleet out of range; a request that fits into no replica; a router that fails.
pub fn simulate_pools(
    requests: &Requests,
    fleet: &Fleet,
    pools: &Pools,
    [prefill, decode]: [&mut dyn Router; 2],
) -> Result<Pooled, Problem> {
    requests.no_loop("pools")?;
    let of = |num_replicas: usize| Fleet {
        num_replicas,
        ..fleet.clone()
    };
    // A whole request needs at least the room of its prompt. So the pool that decodes is checked before anything is played.
    let mut run = Run::of_decodes(requests, of(pools.num_decode), pools.link)?;
    let (first_ps, prompts) = compute(requests, of(pools.num_prefill), prefill)?;
    let mut order: Vec<usize> = (0..first_ps.len()).filter(|id| first_ps[*id] > 0).collect();
    order.sort_by_key(|id| first_ps[*id]);

    let rows = requests.rows();
    run.computed(first_ps.clone());
    let (mut num_moved, mut moved_ps) = (0, 0);
    for id in order {
        if rows[id].output_tokens > 1 {
            run.meet_again(id, rows[id], first_ps[id]);
            let chosen = decode.route(&run.decision())?;
            run.send(chosen);
            num_moved += 1;
            moved_ps += pools.link.move_ps(rows[id].prompt_tokens);
        }
    }
    run.advance(u64::MAX);
    let outcome = joined(prompts, run.into_outcome());
    Ok(Pooled {
        outcome,
        num_moved,
        moved_ps,
    })
}

/// The first token of each request: when, ps, and what became of the prompts, as requests of one token.
fn compute(
    requests: &Requests,
    fleet: Fleet,
    router: &mut dyn Router,
) -> Result<(Vec<u64>, Outcome), Problem> {
    let rows = requests.rows().iter().map(|row| Request {
        output_tokens: 1,
        ..*row
    });
    let prompts = requests.of_rows(rows.collect())?;
    let mut run = Run::new(Cow::Owned(prompts), Cow::Owned(fleet))?;
    while run.meet() {
        let chosen = router.route(&run.decision())?;
        run.send(chosen);
    }
    Ok((run.first_ps().to_vec(), run.into_outcome()))
}

/// Requests that ended with their first token, and those that were decoded.
fn joined(prompts: Outcome, decodes: Outcome) -> Outcome {
    let ended = prompts.requests.iter().zip(&decodes.requests);
    let requests = ended.map(|(prompt, decode)| decode.or(*prompt)).collect();
    let num_served = prompts.requests.iter().flatten().count() as u64;
    let num_decoded = decodes.requests.iter().flatten().count() as u64;
    Outcome {
        requests,
        makespan_s: prompts.makespan_s.max(decodes.makespan_s),
        output_tokens: num_served - num_decoded + decodes.output_tokens,
        prompt_tokens: prompts.prompt_tokens,
        reused_tokens: prompts.reused_tokens + decodes.reused_tokens,
        num_recomputed: prompts.num_recomputed + decodes.num_recomputed,
        num_steps: prompts.num_steps + decodes.num_steps,
    }
}
