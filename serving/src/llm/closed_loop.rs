//! Users in a closed loop: each asks again when its answer has ended. What benchmarks of servers measure.

use super::replica::{Event, Replica, Work};
use super::step_time::{Pace, s_of_ps};

/// How far the replica goes between two looks at what has ended, ps.
const LOOK_PS: u64 = 100_000_000;
/// Answers of each user.
const ANSWERS: f64 = 10.0;

/// Mean time to the first token and between later ones, s, of so many users with ten answers each. `length` gives the tokens of each
/// prompt and answer, at least 1.
///
/// # Panics
/// Where a request never fits ([`Replica::takes`]).
#[must_use]
pub fn closed_loop(pace: &Pace, num_users: u32, mut length: impl FnMut() -> (u32, u32)) -> [f64; 2] {
    let (mut replica, mut told, mut sent) = (Replica::new(*pace), Vec::new(), Vec::new());
    let mut send = |replica: &mut Replica, at_ps: u64, sent: &mut Vec<(u64, u64, u32)>| {
        let (prompt_tokens, output_tokens) = length();
        let id = sent.len() as u32;
        let work = Work {
            id,
            session: id,
            prompt_tokens,
            output_tokens,
            ..Work::default()
        };
        sent.push((at_ps, 0, output_tokens));
        replica.send(at_ps, work);
    };
    for _ in 0..num_users {
        send(&mut replica, 0, &mut sent);
    }
    let (mut sums, mut num) = ([0.0; 2], 0.0);
    while num < ANSWERS * f64::from(num_users) {
        replica.advance(replica.now_ps() + LOOK_PS, &mut told);
        for (id, event, at_ps) in told.drain(..) {
            let (sent_ps, first_ps, output) = &mut sent[id as usize];
            if event == Event::First {
                *first_ps = at_ps;
                sums[0] += s_of_ps(at_ps + pace.after_first_ps - *sent_ps);
                continue;
            }
            sums[1] += s_of_ps(at_ps - *first_ps) / f64::from(*output - 1).max(1.0);
            num += 1.0;
            send(&mut replica, at_ps + pace.after_first_ps, &mut sent);
        }
    }
    sums.map(|sum| sum / num)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user alone waits for its prompt and then for single steps.
    #[test]
    fn one_user_waits_for_its_prompt_and_then_for_steps_of_one() {
        let pace = Pace::of("llama-3-8b", "H100").unwrap();
        let [ttft_s, tpot_s] = closed_loop(&pace, 1, || (100, 11));
        let alone_s = pace.first_token_s(100, 0, 0, 0, 0);
        assert!((ttft_s / alone_s - 1.0).abs() < 0.02, "{ttft_s} beside {alone_s}");
        let step_s = pace.token_s(1, 106);
        assert!((tpot_s / step_s - 1.0).abs() < 0.01, "{tpot_s} beside {step_s}");
        let [_, of_many_s] = closed_loop(&pace, 256, || (500, 11));
        assert!(of_many_s > 1.2 * tpot_s, "{of_many_s} beside {tpot_s}");
    }
}
