//! Pools of replicas: nothing is lost, one request at a time is served as by one replica, and prompts wait as in a queue.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::ln;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Blocks, Decision, Fleet, Link, Pace, Pooled, Pools, Request, Requests, Router, Server, Targets, by_name,
    ps_of_s, s_of_ps, simulate, simulate_pools,
};
use pleach_workloads::Seed;
use proptest::prelude::*;

use crate::fleet::fleet;

const AT_ONCE: Link = Link {
    transfer_ps: 0,
    token_ps: 0,
};

fn pools(num_prefill: usize, num_decode: usize, link: Link) -> Pools {
    Pools {
        num_prefill,
        num_decode,
        link,
    }
}

fn play(list: &Requests, fleet: &Fleet, pools: &Pools, router: &str) -> Pooled {
    let mut routers = [1, 2].map(|seed| by_name(router, seed).unwrap());
    let [prefill, decode] = &mut routers;
    simulate_pools(list, fleet, pools, [prefill.as_mut(), decode.as_mut()]).unwrap()
}

fn request(arrival_s: f64, prompt_tokens: u32, output_tokens: u32) -> Request {
    Request {
        arrival_s,
        prompt_tokens,
        output_tokens,
        session: 0,
        prefix_tokens: 0,
        blocks: Blocks::default(),
    }
}

/// Far apart, so that each is alone: long prompts of several steps and answers of one token among them.
#[test]
fn one_at_a_time_over_an_infinite_link_is_one_replica_to_the_picosecond() {
    let mut rng = Seed(1).stream("alone", 0);
    let rows = (0..200_u32).map(|place| {
        let tokens = [rng.random_range(1..9_000), rng.random_range(1..600)];
        Request {
            session: place,
            ..request(f64::from(place) * 30.0, tokens[0], tokens[1])
        }
    });
    let list = Requests::new(rows.collect()).unwrap();
    for scrape_s in [0.0, 0.7] {
        let mut router = by_name("least-ttft", 0).unwrap();
        let whole = simulate(&list, &fleet(1, 1, scrape_s), router.as_mut()).unwrap();
        let split = play(&list, &fleet(1, 1, scrape_s), &pools(1, 1, AT_ONCE), "least-ttft");
        assert_eq!(split.outcome.requests, whole.requests);
        assert_eq!(split.outcome.num_steps, whole.num_steps);
        assert_eq!(split.outcome.output_tokens, whole.output_tokens);
    }
}

fn link_of(num_gpus: u32, gb_per_s: f64) -> Result<Link, Problem> {
    Link::of(&Server::of("vllm", "llama-3-8b", "H100", num_gpus)?, gb_per_s)
}

/// A prompt of 1,000 tokens of 131,072 bytes takes 50 us and 2.62144 ms at 50 GB/s, so three later tokens take that longer.
#[test]
fn a_transfer_takes_its_bytes_over_the_link_and_is_between_the_first_two_tokens() {
    let link = link_of(1, 50.0).unwrap();
    let moved_s = 50e-6 + 1_000.0 * 131_072.0 / 50e9;
    assert!((s_of_ps(link.move_ps(1_000)) - moved_s).abs() < 1e-9);
    let halves = link_of(2, 50.0).unwrap();
    assert!((s_of_ps(halves.move_ps(1_000)) - (50e-6 + 500.0 * 131_072.0 / 50e9)).abs() < 1e-9);
    let list = Requests::new(vec![request(0.0, 1_000, 4)]).unwrap();
    let served = |link: Link| {
        let outcome = play(&list, &fleet(2, 1, 0.0), &pools(1, 1, link), "random").outcome;
        outcome.requests[0].unwrap()
    };
    let (slow, fast) = (served(link), served(AT_ONCE));
    assert_eq!(slow.ttft_s, fast.ttft_s);
    assert!((3.0 * (slow.tpot_s - fast.tpot_s) - moved_s).abs() < 1e-9);
    let error = link_of(1, 0.0).unwrap_err().to_string();
    assert!(error.contains("link_gb_s = 0"), "{error}");
}

/// A router that fails would be asked for the first prompt.
#[test]
fn who_decodes_is_checked_before_a_prompt_is_played() {
    struct Failing;
    impl Router for Failing {
        fn route(&mut self, _: &Decision<'_>) -> Result<Option<usize>, Problem> {
            Err(Problem::new("router", "asked", "nothing", "Check first."))
        }
    }
    let refused = |list: Vec<Request>, num_decode: usize| {
        let (list, fleet) = (Requests::new(list).unwrap(), fleet(1, 1, 0.0));
        let pools = pools(1, num_decode, AT_ONCE);
        let played = simulate_pools(&list, &fleet, &pools, [&mut Failing, &mut Failing]);
        played.unwrap_err().to_string()
    };
    let none = refused(vec![request(0.0, 10, 2)], 0);
    assert!(none.contains("num_replicas = 0"), "{none}");
    let kv_tokens = Pace::of("llama-3-8b", "H100").unwrap().kv_tokens as u32;
    let long = refused(vec![request(0.0, 10, 2), request(1.0, 10, kv_tokens)], 1);
    assert!(long.contains("requests[1]"), "{long}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// No request is lost or served twice (the engine panics at that), whatever runs out; transfers add up. The longest prompt
    /// that is drawn has 28,000 tokens.
    #[test]
    fn all_are_served_once_and_their_transfers_add_up(
        seed in 0_u64..10_000, num_prefill in 1_usize..5, num_decode in 1_usize..5, num_gateways in 1_usize..4,
        scrape_ms in 0_u32..2_000, kv_tokens in 31_000_u64..70_000, rate_per_s in 5.0_f64..120.0,
        router in prop_oneof![Just("random"), Just("least-tokens"), Just("headroom"), Just("sessions")],
    ) {
        let generator = RequestGenerator { num_requests: 400, rate_per_s, turns: 2.0, ..RequestGenerator::default() };
        let list = generator.draw(Seed(seed)).unwrap();
        let mut fleet = fleet(1, num_gateways, f64::from(scrape_ms) / 1e3);
        fleet.pace.kv_tokens = kv_tokens;
        let link = Link { transfer_ps: ps_of_s(1e-3), token_ps: ps_of_s(1e-5) };
        let found = play(&list, &fleet, &pools(num_prefill, num_decode, link), router);
        prop_assert_eq!(&found, &play(&list, &fleet, &pools(num_prefill, num_decode, link), router));
        prop_assert_eq!(found.outcome.served().count(), 400);
        let rows = list.rows();
        let moved = rows.iter().filter(|row| row.output_tokens > 1);
        prop_assert_eq!(found.num_moved, moved.clone().count() as u64);
        prop_assert_eq!(found.moved_ps, moved.map(|row| link.move_ps(row.prompt_tokens)).sum::<u64>());
        prop_assert_eq!(found.outcome.output_tokens, rows.iter().map(|row| u64::from(row.output_tokens)).sum::<u64>());
        prop_assert_eq!(found.outcome.prompt_tokens, rows.iter().map(|row| u64::from(row.prompt_tokens)).sum::<u64>());
        for (row, served) in rows.iter().zip(&found.outcome.requests) {
            let served = served.unwrap();
            let later_s = if row.output_tokens > 1 { s_of_ps(link.move_ps(row.prompt_tokens)) } else { 0.0 };
            prop_assert!(served.latency_s >= served.ttft_s + later_s - 1e-9);
        }
    }
}

/// Prompts one at a time that all take 1 s: the wait of M/D/1, load / (2 (1 - load)) s, whatever decodes behind.
#[test]
fn prompts_wait_as_in_a_queue_with_one_server() {
    let mut fleet = fleet(1, 1, 0.0);
    fleet.pace = Pace {
        context_token_ps: 1,
        prompt_token_ps: ps_of_s(1e-3),
        kv_tokens: 1_000_000,
        batch_max: 1,
        tokens_max: 1_000_000,
        ..Pace::default()
    };
    let (mut rng, mut at_s) = (Seed(3).stream("prompts", 0), 0.0);
    let rows = (0..300_000).map(|_| {
        at_s += -ln(1.0 - rng.random::<f64>()) / 0.7;
        request(at_s, 1_000, 3)
    });
    let list = Requests::new(rows.collect()).unwrap();
    let found = play(&list, &fleet, &pools(1, 2, AT_ONCE), "round-robin");
    let wait_s = found.outcome.mean(|served| served.ttft_s) - 1.0;
    let expected_s = 0.7 / (2.0 * 0.3);
    assert!(
        (wait_s / expected_s - 1.0).abs() < 0.03,
        "{wait_s} s, expected {expected_s} s"
    );
}

/// What is published of pools (DistServe, OSDI'24), in our world: prompts in the same steps stretch the time between tokens, so
/// under a tight target of that pools serve three times as many in time. Where that target is loose they gain nothing, and near
/// capacity, with a tight target of the first token, the same GPUs serve more whole: no split fits both phases.
#[test]
fn pools_win_where_tokens_must_come_fast_and_lose_near_capacity_where_they_need_not() {
    let link = link_of(1, 50.0).unwrap();
    // Of whole replicas, and of the best of six pools.
    let hits = |rate_per_s: f64, ttft_s: f64, tpot_s: f64| {
        let generator = RequestGenerator {
            num_requests: 6_000,
            rate_per_s,
            burst: 0.0,
            ..RequestGenerator::default()
        };
        let list = generator.draw(Seed(1)).unwrap();
        let fleet = Fleet {
            targets: Targets { ttft_s, tpot_s },
            ..fleet(8, 1, 0.0)
        };
        let mut router = by_name("least-tokens", 1).unwrap();
        let whole = simulate(&list, &fleet, router.as_mut()).unwrap();
        let split = (1..7).map(|num_prefill| {
            let split = pools(num_prefill, 8 - num_prefill, link);
            let found = play(&list, &fleet, &split, "least-tokens");
            found.outcome.hit_share(fleet.targets)
        });
        let split: Vec<f64> = split.collect();
        let whole = whole.hit_share(fleet.targets);
        println!("{rate_per_s}/s, TTFT {ttft_s}, TPOT {tpot_s} s: whole {whole:.3}, pools {split:.3?}");
        (whole, split.into_iter().fold(0.0, f64::max))
    };
    let tight = hits(85.0, 0.5, 0.0115);
    assert!(tight.1 > 0.9 && tight.0 < tight.1 / 2.0, "{tight:?}");
    let loose = hits(90.0, 0.5, 0.03);
    assert!((loose.0 - loose.1).abs() < 0.01, "{loose:?}");
    let full = hits(160.0, 0.2, 0.05);
    assert!(full.0 > full.1 + 0.05, "{full:?}");
}
