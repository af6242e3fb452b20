//! Fleets behind gateways: nothing is lost, facts are as old as they are said to be, and what is known of routing comes out.

use pleach_scheduler::Problem;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Blocks, Decision, Fleet, Outcome, Pace, Request, Requests, Router, Targets, by_name, simulate,
};
use pleach_workloads::Seed;
use proptest::prelude::*;

pub fn fleet(num_replicas: usize, num_gateways: usize, scrape_s: f64) -> Fleet {
    Fleet {
        pace: Pace::of("llama-3-8b", "H100").unwrap(),
        num_replicas,
        num_gateways,
        scrape_s,
        targets: Targets::default(),
        may_refuse: false,
    }
}

fn drawn(num_requests: u32, rate_per_s: f64, turns: f64, seed: u64) -> Requests {
    let generator = RequestGenerator {
        num_requests,
        rate_per_s,
        burst: 0.0,
        turns,
        ..RequestGenerator::default()
    };
    generator.draw(Seed(seed)).unwrap()
}

fn play(list: &Requests, fleet: &Fleet, router: &str) -> Outcome {
    simulate(list, fleet, by_name(router, 1).unwrap().as_mut()).unwrap()
}

#[test]
fn the_same_list_and_router_give_the_same_outcome_and_all_are_served() {
    let list = drawn(4_000, 80.0, 3.0, 1);
    for router in [
        "round-robin",
        "random",
        "two-choices",
        "least-tokens",
        "least-ttft",
        "sessions",
        "weighted",
    ] {
        let fleet = fleet(16, 3, 0.5);
        let outcome = play(&list, &fleet, router);
        assert_eq!(outcome.served().count(), 4_000, "{router}");
        assert_eq!(outcome, play(&list, &fleet, router), "{router}");
    }
}

/// Published of BLIS's and llm-d's gateways, and measured before: a router with old facts alone sends all to one replica.
#[test]
fn old_facts_alone_herd_and_own_requests_counted_do_not() {
    let list = drawn(20_000, 120.0, 1.0, 2);
    let hits = |router: &str, scrape_s: f64| {
        play(&list, &fleet(16, 1, scrape_s), router).hit_share(Targets::default())
    };
    let fresh = hits("least-tokens:own=false", 0.0);
    let (old, own, blind) = (
        hits("least-tokens:own=false", 1.0),
        hits("least-tokens", 1.0),
        hits("round-robin", 1.0),
    );
    assert!(old < 0.3 && own > old + 0.4, "old {old}, own {own}");
    assert!(
        fresh > 0.8 && blind > old + 0.4,
        "fresh {fresh}, round robin {blind}"
    );
}

#[test]
fn who_keeps_a_conversation_where_it_was_computes_less() {
    let list = drawn(8_000, 60.0, 5.0, 3);
    let fleet = fleet(16, 2, 0.2);
    let [sticky, blind] = ["sessions", "round-robin"].map(|router| play(&list, &fleet, router));
    let share = |outcome: &Outcome| outcome.reused_tokens as f64 / outcome.prompt_tokens as f64;
    assert!(
        share(&sticky) > 0.3 && share(&blind) < 0.1,
        "{} {}",
        share(&sticky),
        share(&blind)
    );
}

#[test]
fn refusing_late_requests_serves_more_in_time_where_there_are_too_many() {
    let list = drawn(20_000, 320.0, 1.0, 4);
    let fleet = Fleet {
        may_refuse: true,
        ..fleet(16, 1, 0.0)
    };
    let [plain, sheds] = ["least-ttft", "least-ttft:shed=0.9"].map(|router| play(&list, &fleet, router));
    let targets = Targets::default();
    let [all, some] = [&plain, &sheds].map(|outcome| outcome.hit_share(targets));
    assert!(sheds.refused_share() > 0.0 && plain.refused_share() == 0.0);
    assert!(
        some > all + 0.5,
        "{all} with all of them, {some} with {} refused",
        sheds.refused_share()
    );
}

/// Notes how old facts are and that no replica is known to have had what it was not sent.
struct Witness {
    ages_s: Vec<f64>,
    next: usize,
}

impl Router for Witness {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        self.ages_s.push(decision.facts_age_s);
        self.next += 1;
        Ok(Some(self.next % decision.facts.len()))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn facts_are_never_older_than_the_time_between_two_looks(
        seed in 0_u64..10_000, num_gateways in 1_usize..6, scrape_ms in 1_u32..5_000, gap_s in 0.001_f64..30.0,
    ) {
        let scrape_s = f64::from(scrape_ms) / 1e3;
        let list = drawn(200, 1.0 / gap_s, 2.0, seed);
        let mut witness = Witness { ages_s: Vec::new(), next: 0 };
        let outcome = simulate(&list, &fleet(4, num_gateways, scrape_s), &mut witness).unwrap();
        prop_assert_eq!(outcome.served().count(), 200);
        prop_assert!(witness.ages_s.iter().all(|age_s| (0.0..=scrape_s + 1e-9).contains(age_s)));
        prop_assert!(witness.ages_s.iter().any(|age_s| *age_s > 0.0));
        for (request, served) in list.rows().iter().zip(&outcome.requests) {
            let served = served.unwrap();
            prop_assert!(served.ttft_s > 0.0 && served.latency_s >= served.ttft_s - 1e-9);
            prop_assert!(request.output_tokens > 1 || served.tpot_s == 0.0);
        }
    }
}

#[test]
fn a_request_that_no_replica_can_hold_is_refused_with_its_place() {
    let row = Request {
        arrival_s: 0.0,
        prompt_tokens: 400_000,
        output_tokens: 20_000,
        session: 0,
        prefix_tokens: 0,
        blocks: Blocks::default(),
    };
    let list = Requests::new(vec![row]).unwrap();
    let error = simulate(&list, &fleet(1, 1, 0.0), by_name("random", 0).unwrap().as_mut()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("requests[0] = 400000 + 20000 tokens: allowed is at most 416107"),
        "{error}"
    );
}

#[test]
fn names_and_settings_that_are_not_there_are_refused_with_those_that_are() {
    for (text, expected) in [
        ("least", "round-robin, random"),
        ("least-ttft:shed=x", "0.01 to 1000000"),
        ("random:kv=1", "own, shed, ttft, tpot"),
        ("weighted:cv=1", "own, shed, ttft, tpot, queue, kv, prefix"),
        ("sessions:own=1", "true, false"),
    ] {
        let error = by_name(text, 0).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
