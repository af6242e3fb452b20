//! A replica against itself step by step, against queues whose waits are known, and against hand-worked steps.

use pleach_workloads::Seed;
use proptest::prelude::*;

use super::*;
use crate::llm::request::{BLOCK_TOKENS, Blocks};
use crate::llm::step_time::{PAIR_PARTS, ps_of_s, s_of_ps};

const PACE: Pace = Pace {
    step_ps: 1_000,
    request_ps: 10,
    context_token_ps: 1,
    weights_ps: 0,
    experts_ps: 0,
    experts_left: 0,
    token_ps: 0,
    prompt_token_ps: 5,
    prompt_link_ps: 0,
    prompt_pair_parts: 0,
    before_queue_ps: 0,
    before_queue_token_ps: 0,
    after_first_ps: 0,
    kv_tokens: 1_000,
    batch_max: 4,
    tokens_max: 100,
    keeps_prefixes: true,
};

fn work(id: u32, prompt_tokens: u32, output_tokens: u32) -> Work {
    Work {
        id,
        session: id,
        prompt_tokens,
        output_tokens,
        ..Work::default()
    }
}

fn run(pace: Pace, list: &[(u64, Work)], most: u64) -> (Vec<Told>, Replica) {
    run_on(Replica::new(pace), list, most)
}

fn run_on(mut replica: Replica, list: &[(u64, Work)], most: u64) -> (Vec<Told>, Replica) {
    for (at_ps, work) in list {
        replica.send(*at_ps, *work);
    }
    let mut told = Vec::new();
    replica.advance_by(u64::MAX, &mut told, most);
    (told, replica)
}

/// Step 1: a prompt of 50 tokens, 1,000 + 250 ps. Steps 2 and 3: one request with 51, then 52 tokens: 1,061 and 1,062 ps.
#[test]
fn one_request_takes_what_its_steps_take() {
    let (told, replica) = run(PACE, &[(0, work(7, 50, 3))], u64::MAX);
    assert_eq!(
        told,
        [(7, Event::First, 1_250), (7, Event::Last, 1_250 + 1_061 + 1_062)]
    );
    assert_eq!((replica.num_steps(), replica.context_tokens()), (3, 0));
}

/// A step takes at most 100 tokens. So a prompt of 150 is computed in three parts, beside the prompt and then the answer of
/// another request.
#[test]
fn a_long_prompt_is_cut_and_shares_its_steps_with_answers() {
    let list = [(0, work(0, 50, 5)), (0, work(1, 150, 1))];
    let (told, _) = run(PACE, &list, u64::MAX);
    // Step 1: 50 + 50 tokens. Step 2: request 0 with 51 tokens and the other 99 of 100 left; step 3: one more token.
    let first = 1_000 + 100 * 5;
    let second = first + 1_000 + 10 + 51 + 99 * 5;
    let third = second + 1_000 + 10 + 52 + 5;
    assert_eq!(told[0], (0, Event::First, first));
    assert_eq!(&told[1..3], [(1, Event::First, third), (1, Event::Last, third)]);
}

/// A chunk of 100 tokens has 100 x 101 / 2 pairs, the 50 after it 50 x 100 + 50 x 51 / 2: 5,050 and 6,275 of 2 ps each.
#[test]
fn a_token_of_a_prompt_looks_at_all_before_it() {
    let pace = Pace {
        prompt_pair_parts: 2 * PAIR_PARTS,
        ..PACE
    };
    let (told, _) = run(pace, &[(0, work(7, 150, 1))], u64::MAX);
    let expected = 1_000 + 100 * 5 + 2 * 5_050 + 1_000 + 50 * 5 + 2 * 6_275;
    assert_eq!(told[0], (7, Event::First, expected));
    // Of a prefix that is held the new tokens look at it too: 30 x 60 + 30 x 31 / 2.
    let later = Work {
        session: 0,
        prefix_tokens: 60,
        ..work(1, 90, 1)
    };
    let list = [(0, work(0, 50, 10)), (1_000_000, later)];
    let (told, _) = run(pace, &list, u64::MAX);
    assert_eq!(told[2], (1, Event::First, 1_000_000 + 1_000 + 30 * 5 + 2 * 2_265));
    let forgets = Pace {
        keeps_prefixes: false,
        ..PACE
    };
    let (_, replica) = run(forgets, &list, u64::MAX);
    assert_eq!(replica.reused_tokens(), 0);
}

/// Two of 400 + 200 tokens do not fit into 1,000: the younger gives up its place where 1,000 is reached, and still has all its
/// tokens.
#[test]
fn the_youngest_gives_up_its_place_where_memory_runs_out() {
    let pace = Pace {
        tokens_max: 1_000,
        ..PACE
    };
    let list = [(0, work(0, 400, 200)), (0, work(1, 400, 200))];
    let (told, replica) = run(pace, &list, u64::MAX);
    assert_eq!(replica.num_recomputed(), 1);
    let who: Vec<_> = told.iter().map(|(id, event, _)| (*id, *event)).collect();
    assert_eq!(
        who,
        [
            (0, Event::First),
            (1, Event::First),
            (0, Event::Last),
            (1, Event::Last)
        ]
    );
    // 200 tokens each; the younger had 100 and was computed anew after the older had ended.
    assert!(replica.num_steps() >= 200 + 100, "{}", replica.num_steps());
}

#[test]
fn a_prefix_that_is_held_is_not_computed() {
    let later = Work {
        session: 0,
        prefix_tokens: 60,
        ..work(1, 90, 1)
    };
    let list = [(0, work(0, 50, 10)), (1_000_000, later)];
    let (told, replica) = run(PACE, &list, u64::MAX);
    assert_eq!(replica.reused_tokens(), 60);
    assert_eq!(told[2], (1, Event::First, 1_000_000 + 1_000 + 30 * 5));
}

/// 700 ps and 3 for each token: 90 tokens are in the queue at 970, ten of a later request at 930. Their step lasts 1,000 + 50, and
/// ends before the others are taken up, for 1,000 + 10 + 11 + 450 beside the batch.
#[test]
fn a_long_prompt_is_longer_on_its_way_to_the_queue() {
    let pace = Pace {
        before_queue_ps: 700,
        before_queue_token_ps: 3,
        ..PACE
    };
    let (told, _) = run(pace, &[(0, work(0, 90, 1)), (200, work(1, 10, 3))], u64::MAX);
    assert_eq!(told[0], (1, Event::First, 930 + 1_050));
    assert_eq!(told[1], (0, Event::First, 930 + 1_050 + 1_000 + 10 + 11 + 450));
}

/// A prompt of 50 tokens that was computed elsewhere, with its first token, costs no step: two more tokens with 51, then 52 in
/// context.
#[test]
fn a_prompt_that_was_computed_elsewhere_joins_the_batch_with_its_first_token() {
    let moved = Work {
        is_computed: true,
        ..work(7, 50, 3)
    };
    let (told, replica) = run(PACE, &[(400, moved)], u64::MAX);
    assert_eq!(told, [(7, Event::Last, 400 + 1_061 + 1_062)]);
    assert_eq!((replica.num_steps(), replica.computed_tokens()), (2, 0));
    // A later request whose keys and values are there sooner is not held up by it.
    let sooner = Work { id: 8, ..moved };
    let mut replica = Replica::new(PACE);
    replica.send(5_000, moved);
    replica.send(10, sooner);
    let mut told = Vec::new();
    replica.advance(u64::MAX, &mut told);
    assert_eq!(told[0], (8, Event::Last, 10 + 1_061 + 1_062));
}

/// Two prompts of 1,100 tokens with their first block of 512 in common. The second comes when the first is computed: it computes
/// 588 tokens, and while both run the block is there once. A third begins alike when no other request is left.
#[test]
fn a_block_that_is_held_is_not_computed_and_is_there_once() {
    let pace = Pace {
        kv_tokens: 2_000,
        tokens_max: 2_000,
        ..PACE
    };
    let ids = Arc::from([0, 1, 0, 2]);
    let of = |id: u32, first: u32, output_tokens: u32| Work {
        blocks: Blocks { first, num: 2 },
        ..work(id, 1_100, output_tokens)
    };
    // The first takes 1,000 + 1,100 x 5 = 6,500 ps.
    let list = [(0, of(0, 0, 90)), (6_400, of(1, 2, 3)), (500_000, of(2, 0, 1))];
    let (told, replica) = run_on(Replica::with_blocks(pace, &ids), &list, u64::MAX);
    assert_eq!(replica.reused_tokens(), 512 + 1_024);
    assert_eq!(told[0], (0, Event::First, 6_500));
    // With 1,101 and 1,102 tokens in the context of the first: taken up after its first token, at the end of the first step.
    assert_eq!(told[1], (1, Event::First, 6_500 + 1_000 + 10 + 1_101 + 588 * 5));
    let third = told.iter().find(|told| told.0 == 2);
    assert_eq!(third, Some(&(2, Event::First, 500_000 + 1_000 + 76 * 5)));
    // 1,100 + 1,100 tokens fit into 2,000 as 512 of them are one block; without blocks the second waits for the first.
    assert_eq!(replica.num_recomputed(), 0);
    let (alone, _) = run(pace, &list, u64::MAX);
    assert_eq!(alone[1].0, 0, "{alone:?}");
}

fn random_list(seed: u64, num: u32, gap_ps: u64, prompt: u32, output: u32) -> Vec<(u64, Work)> {
    let (mut rng, mut at_ps) = (Seed(seed).stream("list", 0), 0);
    let mut list = Vec::new();
    for id in 0..num {
        at_ps += rng.random_range(0..=2 * gap_ps);
        let mut work = work(id, rng.random_range(1..=prompt), rng.random_range(1..=output));
        work.session = rng.random_range(0..num / 2 + 1);
        work.prefix_tokens = rng.random_range(0..work.prompt_tokens);
        list.push((at_ps, work));
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Sums of steps are the steps, to the picosecond. No request is lost or served twice, whatever runs out.
    #[test]
    fn many_steps_at_once_are_the_steps_one_by_one(
        seed in 0_u64..1_000_000, gap_ps in 0_u64..40_000, kv_tokens in 300_u64..3_000, batch_max in 1_u32..20,
    ) {
        let pace = Pace {
            kv_tokens, batch_max, weights_ps: 200, experts_ps: 900, experts_left: 1 << 31, token_ps: 150, prompt_link_ps: 3,
            prompt_pair_parts: 700, ..PACE
        };
        let list = random_list(seed, 60, gap_ps, 200, 100);
        let (one_by_one, slow) = run(pace, &list, 1);
        let (at_once, fast) = run(pace, &list, u64::MAX);
        prop_assert_eq!(&one_by_one, &at_once);
        prop_assert_eq!((slow.num_steps(), slow.num_recomputed()), (fast.num_steps(), fast.num_recomputed()));
        for (id, (arrival_ps, _)) in list.iter().enumerate() {
            let of: Vec<_> = at_once.iter().filter(|told| told.0 == id as u32).collect();
            prop_assert_eq!(of.len(), 2);
            prop_assert!(of[0].1 == Event::First && of[0].2 > *arrival_ps && of[1].2 >= of[0].2);
        }
        prop_assert_eq!(fast.context_tokens() + fast.prompt_tokens_left() + fast.num_running() + fast.num_waiting(), 0);
        prop_assert!(fast.slots.iter().all(Option::is_none) && fast.ends.is_empty());
    }

    /// The same where some prompts, or all, were computed elsewhere; these are computed here only where memory ran out.
    #[test]
    fn computed_prompts_join_step_by_step_as_in_sums(
        seed in 0_u64..1_000_000, gap_ps in 0_u64..40_000, kv_tokens in 300_u64..3_000, every in 1_u32..4,
    ) {
        let pace = Pace { kv_tokens, ..PACE };
        let mut list = random_list(seed, 60, gap_ps, 200, 100);
        for (_, work) in &mut list {
            work.is_computed = work.id % every == 0;
        }
        let (one_by_one, _) = run(pace, &list, 1);
        let (at_once, fast) = run(pace, &list, u64::MAX);
        prop_assert_eq!(&one_by_one, &at_once);
        let count = |event: Event| at_once.iter().filter(|told| told.1 == event).count();
        prop_assert_eq!(count(Event::Last), 60);
        prop_assert_eq!(count(Event::First), list.iter().filter(|(_, work)| !work.is_computed).count());
        prop_assert!(every > 1 || fast.num_recomputed() > 0 || fast.computed_tokens() == 0);
        prop_assert_eq!(fast.context_tokens() + fast.prompt_tokens_left() + fast.num_running() + fast.num_waiting(), 0);
    }

    /// The same where prompts begin alike, block by block, and memory has room for a few.
    #[test]
    fn prompts_in_blocks_are_the_same_step_by_step_and_leave_nothing_in_use(
        seed in 0_u64..1_000_000, gap_ps in 0_u64..400_000, kv_tokens in 3_600_u64..20_000,
    ) {
        let pace = Pace { kv_tokens, tokens_max: 2_048, ..PACE };
        let mut rng = Seed(seed).stream("blocks", 0);
        let (mut ids, mut list) = (Vec::new(), random_list(seed, 60, gap_ps, 3_000, 100));
        for (_, work) in &mut list {
            let blocks = Blocks { first: ids.len() as u32, num: work.prompt_tokens / BLOCK_TOKENS };
            // One of three texts up to some block, then its own.
            let (text, own) = (rng.random_range(0..3_u32), rng.random_range(0..=blocks.num));
            ids.extend((0..blocks.num).map(|place| if place < own { 10 * text + place } else { 1_000 + 10 * work.id + place }));
            work.blocks = blocks;
        }
        let ids: Arc<[u32]> = Arc::from(ids);
        let (one_by_one, slow) = run_on(Replica::with_blocks(pace, &ids), &list, 1);
        let (at_once, fast) = run_on(Replica::with_blocks(pace, &ids), &list, u64::MAX);
        prop_assert_eq!(&one_by_one, &at_once);
        prop_assert_eq!(slow.reused_tokens(), fast.reused_tokens());
        prop_assert_eq!(at_once.len(), 120);
        prop_assert_eq!(fast.context_tokens() + fast.kept.shared_tokens() + fast.kv_used(), 0);
    }

    /// Looking in between changes nothing but for the steps in which requests are seen.
    #[test]
    fn stops_on_the_way_change_nothing(seed in 0_u64..1_000_000, stop_ps in 1_u64..50_000) {
        let list = random_list(seed, 40, 5_000, 200, 50);
        let (whole, _) = run(PACE, &list, u64::MAX);
        let mut replica = Replica::new(PACE);
        let mut told = Vec::new();
        for (at_ps, work) in &list {
            replica.send(*at_ps, *work);
        }
        for stop in 1..100 {
            replica.advance(stop * stop_ps, &mut told);
            prop_assert!(replica.context_tokens() <= PACE.kv_tokens + u64::from(PACE.batch_max));
        }
        replica.advance(u64::MAX, &mut told);
        prop_assert_eq!(whole, told);
    }
}

/// One at a time with one token: a queue with a single server. Mean wait by Pollaczek and Khinchine: rate x E[S²] / (2 (1 −
/// load)).
#[test]
fn one_at_a_time_waits_as_a_queue_with_one_server_does() {
    let pace = Pace {
        step_ps: 0,
        request_ps: 0,
        context_token_ps: 0,
        prompt_token_ps: ps_of_s(1e-3),
        batch_max: 1,
        tokens_max: 1_000_000,
        kv_tokens: 1_000_000,
        ..PACE
    };
    for (name, is_fixed) in [("M/D/1", true), ("M/M/1", false)] {
        let (mut rng, mut at_s, num) = (Seed(11).stream(name, 0), 0.0, 400_000);
        let mut list = Vec::new();
        for id in 0..num {
            at_s += -f64::ln(1.0 - rng.random::<f64>()) / 0.7;
            let tokens = if is_fixed {
                1_000.0
            } else {
                (-f64::ln(1.0 - rng.random::<f64>()) * 1_000.0).max(1.0)
            };
            list.push((ps_of_s(at_s), work(id, tokens as u32, 1)));
        }
        let (told, _) = run(pace, &list, u64::MAX);
        let ends = told.iter().filter(|told| told.1 == Event::Last);
        let total: f64 = ends
            .map(|(id, _, at_ps)| s_of_ps(at_ps - list[*id as usize].0))
            .sum();
        let wait_s = total / f64::from(num) - 1.0;
        let second_moment = if is_fixed { 1.0 } else { 2.0 };
        let expected_s = 0.7 * second_moment / (2.0 * 0.3);
        assert!(
            (wait_s / expected_s - 1.0).abs() < 0.03,
            "{name}: {wait_s} s, expected {expected_s} s"
        );
    }
}

/// A step that takes a time for each request gives all the same share: mean time in the system E[S] / (1 − load), whatever the
/// lengths.
#[test]
fn a_batch_that_costs_by_request_shares_the_processor() {
    let pace = Pace {
        step_ps: 0,
        request_ps: ps_of_s(1e-3),
        context_token_ps: 0,
        prompt_token_ps: 1,
        batch_max: 100_000,
        tokens_max: 1_000_000,
        kv_tokens: 1_000_000_000,
        ..PACE
    };
    let (mut rng, mut at_s, num) = (Seed(5).stream("sharing", 0), 0.0, 100_000);
    let mut list = Vec::new();
    for id in 0..num {
        at_s += -f64::ln(1.0 - rng.random::<f64>()) / 0.6;
        // Half of all are short, half long, 1 s in the mean: 1,000 tokens of 1 ms.
        let tokens = if rng.random::<f64>() < 0.5 { 200 } else { 1_800 };
        list.push((ps_of_s(at_s), work(id, 1, tokens)));
    }
    let (told, _) = run(pace, &list, u64::MAX);
    let ends = told.iter().filter(|told| told.1 == Event::Last);
    let total: f64 = ends
        .map(|(id, _, at_ps)| s_of_ps(at_ps - list[*id as usize].0))
        .sum();
    let (mean_s, expected_s) = (total / f64::from(num), 1.0 / (1.0 - 0.6));
    assert!(
        (mean_s / expected_s - 1.0).abs() < 0.03,
        "{mean_s} s, expected {expected_s} s"
    );
}
