//! Requests that come after answers: which comes next, and until when none can come that is not known yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::llm::request::Requests;
use crate::llm::step_time::ps_of_s;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A request comes: when, ps, and its number.
    Comes(u64, usize),
    /// Replicas are to be played up to here, ps: an answer may bring the next request.
    Play(u64),
    /// All have come.
    Ended,
}

/// The loop of a list.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Those that are known to come, soonest first: when, ps, and number.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// The request after each answer and its wait, ps. `[num_requests]`
    then: Vec<Option<(usize, u64)>>,
    /// When each came, ps. `[num_requests]`
    came_ps: Vec<u64>,
    /// Replicas have been played up to here, ps.
    played_ps: u64,
    /// Least wait of all, ps.
    least_ps: u64,
    /// Requests that were sent and have not ended.
    num_open: usize,
}

impl Turns {
    /// Of a list; none where all come at times of their own.
    pub(super) fn of(requests: &Requests) -> Option<Turns> {
        let (rows, after) = (requests.rows(), requests.after());
        if after.iter().all(Option::is_none) {
            return None;
        }
        let mut then = vec![None; rows.len()];
        let mut due = BinaryHeap::new();
        let mut least_ps = u64::MAX;
        for (place, (row, after)) in rows.iter().zip(after).enumerate() {
            match after {
                Some(after) => {
                    let wait_ps = ps_of_s(after.wait_s);
                    least_ps = least_ps.min(wait_ps);
                    then[after.place as usize] = Some((place, wait_ps));
                }
                None => due.push(Reverse((ps_of_s(row.arrival_s), place))),
            }
        }
        Some(Turns {
            due,
            then,
            came_ps: vec![0; rows.len()],
            played_ps: 0,
            least_ps,
            num_open: 0,
        })
    }

    /// What is to be done; what comes is taken.
    pub(super) fn next(&mut self) -> Next {
        let safe_ps = self.played_ps.saturating_add(self.least_ps);
        match self.due.peek().copied() {
            Some(Reverse((at_ps, id))) if at_ps <= safe_ps || self.num_open == 0 => {
                self.due.pop();
                if self.num_open == 0 {
                    self.played(at_ps);
                }
                Next::Comes(at_ps, id)
            }
            None if self.num_open == 0 => Next::Ended,
            _ => Next::Play(safe_ps),
        }
    }

    /// A request was sent.
    pub(super) fn sent(&mut self, id: usize, now_ps: u64) {
        self.came_ps[id] = now_ps;
        self.num_open += 1;
    }

    /// A request was refused: the user goes on as after an answer.
    pub(super) fn refused(&mut self, id: usize, now_ps: u64) {
        self.follow(id, now_ps);
    }

    /// An answer ended; when its request came, ps.
    pub(super) fn answered(&mut self, id: usize, end_ps: u64) -> u64 {
        self.num_open -= 1;
        self.follow(id, end_ps);
        self.came_ps[id]
    }

    /// Replicas were played up to here.
    pub(super) fn played(&mut self, to_ps: u64) {
        self.played_ps = self.played_ps.max(to_ps);
    }

    fn follow(&mut self, id: usize, end_ps: u64) {
        if let Some((next, wait_ps)) = self.then[id] {
            self.due.push(Reverse((end_ps + wait_ps, next)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::generate::{RequestGenerator, Sessions};
    use crate::llm::request::{After, Blocks, Request};
    use crate::llm::{Decision, Fleet, Outcome, Pace, Router, Targets, by_name, simulate};
    use pleach_scheduler::Problem;
    use pleach_workloads::Seed;

    fn fleet(num_replicas: usize) -> Fleet {
        Fleet {
            pace: Pace::of("llama-3-8b", "H100").unwrap(),
            num_replicas,
            num_gateways: 1,
            scrape_s: 1.0,
            targets: Targets {
                ttft_s: 0.5,
                tpot_s: 0.03,
            },
            may_refuse: true,
        }
    }

    fn asked(arrival_s: f64, session: u32, output_tokens: u32) -> Request {
        Request {
            arrival_s,
            prompt_tokens: 500,
            output_tokens,
            session,
            prefix_tokens: 0,
            blocks: Blocks::default(),
        }
    }

    fn played(list: &Requests, num_replicas: usize, rule: &str) -> Outcome {
        let mut router = by_name(rule, 1).unwrap();
        simulate(list, &fleet(num_replicas), router.as_mut()).unwrap()
    }

    #[test]
    fn the_next_request_comes_a_wait_after_the_answer_however_late_that_is() {
        for output_tokens in [10, 1000] {
            let rows = vec![asked(0.0, 1, output_tokens), asked(1.0, 1, 20)];
            let after = After {
                place: 0,
                wait_s: 7.0,
            };
            let list = Requests::in_a_loop(rows, vec![None, Some(after)]).unwrap();
            let outcome = played(&list, 1, "least-tokens");
            let [first, second] = [0, 1].map(|id: usize| outcome.requests[id].unwrap().latency_s);
            let by_hand = first + 7.0 + second;
            assert!((outcome.makespan_s - by_hand).abs() < 1e-9, "{by_hand}");
        }
    }

    /// In two seconds no conversation comes to its second request.
    #[test]
    fn a_loop_in_which_nothing_comes_after_an_answer_is_an_open_list() {
        let rows = vec![asked(0.0, 1, 10), asked(1.0, 2, 20)];
        let list = Requests::in_a_loop(rows.clone(), vec![None, None]).unwrap();
        let open = Requests::new(rows).unwrap();
        assert_eq!(played(&list, 1, "least-tokens"), played(&open, 1, "least-tokens"));
    }

    /// A request that is refused counts as a miss; its conversation goes on a wait later.
    #[test]
    fn after_a_refusal_the_conversation_goes_on() {
        struct First(u64);
        impl Router for First {
            fn route(&mut self, _: &Decision<'_>) -> Result<Option<usize>, Problem> {
                self.0 += 1;
                Ok((self.0 > 1).then_some(0))
            }
        }
        let rows = vec![asked(2.0, 1, 10), asked(3.0, 1, 20)];
        let after = After {
            place: 0,
            wait_s: 7.0,
        };
        let list = Requests::in_a_loop(rows, vec![None, Some(after)]).unwrap();
        let outcome = simulate(&list, &fleet(1), &mut First(0)).unwrap();
        assert_eq!(outcome.requests[0], None);
        let second = outcome.requests[1].unwrap();
        assert!((outcome.makespan_s - (2.0 + 7.0 + second.latency_s)).abs() < 1e-9);
    }

    #[test]
    fn a_closed_loop_slows_down_where_an_open_one_piles_up_and_one_request_of_each_conversation_is_open() {
        let open = RequestGenerator {
            num_requests: 1_500,
            rate_per_s: 30.0,
            turns: 5.0,
            think_s: 2.0,
            burst: 0.0,
            ..RequestGenerator::default()
        };
        let wait_s = |sessions: Sessions| {
            let generator = RequestGenerator {
                sessions,
                ..open.clone()
            };
            let outcome = played(&generator.draw(Seed(5)).unwrap(), 1, "least-tokens");
            assert!(outcome.requests.iter().all(Option::is_some));
            outcome.quantile(0.9, |served| served.ttft_s)
        };
        let [open_s, closed_s] = [Sessions::Open, Sessions::Closed].map(wait_s);
        eprintln!("90 % of first tokens within {open_s} s in an open loop, {closed_s} s in a closed one");
        assert!(closed_s < 0.8 * open_s, "{closed_s} {open_s}");
    }

    /// How far replicas are played at once follows from the least wait; nothing else may.
    #[test]
    fn another_least_wait_changes_nothing_for_the_others() {
        let generator = RequestGenerator {
            num_requests: 600,
            rate_per_s: 20.0,
            turns: 4.0,
            think_s: 3.0,
            sessions: Sessions::Closed,
            ..RequestGenerator::default()
        };
        let list = generator.draw(Seed(2)).unwrap();
        let last_s = list.rows().last().unwrap().arrival_s + 1e5;
        // A conversation long after all others, whose second request waits 0.05 s or 500.
        let [short, long] = [0.05, 500.0].map(|wait_s| {
            let mut rows = list.rows().to_vec();
            let mut after = list.after().to_vec();
            rows.extend([asked(last_s, 1 << 30, 5), asked(last_s + 1.0, 1 << 30, 5)]);
            let place = rows.len() as u32 - 2;
            after.extend([None, Some(After { place, wait_s })]);
            // With none shorter than a second among the others.
            for after in after.iter_mut().take(list.rows().len()).flatten() {
                after.wait_s = after.wait_s.max(1.0);
            }
            let list = Requests::in_a_loop(rows, after).unwrap();
            played(&list, 2, "least-requests").requests[..list.rows().len() - 2].to_vec()
        });
        assert_eq!(short, long);
    }
}
