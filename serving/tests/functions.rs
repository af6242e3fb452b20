//! Functions on slices: queueing theory, chains worked by hand, and nothing lost whatever the rule.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::exp;
use pleach_serving::Reward;
use pleach_serving::functions::{
    Arrivals, Configuration, Dispatcher, Dispatching, Function, Gaps, Graph, Late, Outcome, POLICIES,
    Platform, Sharing, State, Work, by_name, simulate, surface,
};
use pleach_workloads::Seed;
use proptest::prelude::*;

fn function(name: &str, cold_start_us: u64, latencies_us: &[u64]) -> Function {
    let all = latencies_us
        .iter()
        .enumerate()
        .map(|(place, latency_us)| Configuration {
            batch: 1 << place,
            cores: 1,
            slices: 1,
            latency_us: *latency_us,
        });
    Function::new(name, cold_start_us, all.collect()).unwrap()
}

/// One node with one core and one slice, nothing left to chance.
fn one_slot() -> Platform {
    Platform {
        nodes: 1,
        cores: 1,
        slices: 1,
        noise: 0.0,
        fetch_us: 0,
        prewarmed: 1,
        ..Platform::default()
    }
}

fn play(work: &Work, platform: &Platform, arrivals: &Arrivals, policy: &str, seed: u64) -> Outcome {
    let mut dispatcher = by_name(policy, work, platform, arrivals.slo).unwrap();
    simulate(work, platform, arrivals, dispatcher.as_mut(), Seed(seed)).unwrap()
}

fn every(gap_us: f64, num_requests: u32, slo: f64) -> Arrivals {
    Arrivals {
        num_requests,
        gaps: Gaps::Uniform(gap_us, gap_us),
        load: 1.0,
        slo,
    }
}

/// Pollaczek and Khinchine: a wait of rate E[S^2] / (2 (1 - load)), with S fixed and with S log-normal.
#[test]
fn one_slot_waits_as_theory_says() {
    let work = Work::new(vec![function("a", 0, &[10_000])], &[Graph::chain("app", &["a"])]).unwrap();
    for (noise, load) in [(0.0, 0.7), (0.0, 0.9), (0.5, 0.7)] {
        let platform = Platform { noise, ..one_slot() };
        let (mean_us, square) = (
            10_000.0 * exp(noise * noise / 2.0),
            1e8 * exp(2.0 * noise * noise),
        );
        let arrivals = Arrivals {
            num_requests: 400_000,
            gaps: Gaps::Exponential(mean_us / load),
            load: 1.0,
            slo: 10.0,
        };
        let outcome = play(&work, &platform, &arrivals, "fastest", 1);
        let expected_us = mean_us + load / mean_us * square / (2.0 * (1.0 - load));
        let found_us = outcome.latencies.mean_us();
        assert!(
            (found_us / expected_us - 1.0).abs() < 0.03,
            "{noise} {load}: {found_us} for {expected_us}"
        );
        assert_eq!((outcome.batches, outcome.cold_starts), (400_000, 0));
    }
}

/// a takes 10 ms and b 20, on one slot; requests at 15 and 30 ms with 36 ms each.
///
/// 15 a1, 25 b1, 45 b1 ends after 30 ms; 30 a2 waits, 45 a2, 55 b2, 75 b2 ends after 45 ms.
#[test]
fn a_chain_of_two_by_hand() {
    let functions = vec![function("a", 7_000, &[10_000]), function("b", 9_000, &[20_000])];
    let work = Work::new(functions, &[Graph::chain("app", &["a", "b"])]).unwrap();
    let arrivals = every(15_000.0, 2, 1.2);
    let outcome = play(&work, &one_slot(), &arrivals, "fastest", 1);
    assert_eq!(
        (outcome.hits, outcome.late, outcome.batches, outcome.makespan_us),
        (1, 1, 4, 75_000)
    );
    assert_eq!(outcome.latencies.mean_us(), 37_500.0);
    let usd_per_us = (0.034 + 0.67) / 3.6e9;
    assert!((outcome.usd - 60_000.0 * usd_per_us).abs() < 1e-15);

    // At 45 ms 21 of the 30 ms that a2 and b2 take are left.
    let sheds = Platform {
        late: Late::Shed,
        ..one_slot()
    };
    let outcome = play(&work, &sheds, &arrivals, "fastest", 1);
    assert_eq!((outcome.hits, outcome.shed, outcome.makespan_us), (1, 1, 45_000));
    let outcome = play(&work, &sheds, &arrivals, "fastest:shed=0", 1);
    assert_eq!((outcome.hits, outcome.late, outcome.shed), (1, 1, 0));

    // Cold: 15 a1 ends at 32, b1 32 to 61 after 46 ms; a2 is warm then, 61 to 71, b2 71 to 91 after 61 ms.
    let cold = Platform {
        prewarmed: 0,
        ..one_slot()
    };
    let outcome = play(&work, &cold, &arrivals, "fastest", 1);
    assert_eq!(
        (
            outcome.hits,
            outcome.late,
            outcome.cold_starts,
            outcome.makespan_us
        ),
        (0, 2, 2, 91_000)
    );
    assert!((outcome.cold_usd - 16_000.0 * usd_per_us).abs() < 1e-15);
    // Instances of MIG: the slot holds one, so each batch makes its own.
    let mig = Platform {
        sharing: Sharing::Mig,
        ..one_slot()
    };
    let outcome = play(&work, &mig, &arrivals, "fastest", 1);
    assert_eq!(
        (outcome.cold_starts, outcome.makespan_us),
        (4, 15_000 + 2 * (17_000 + 29_000))
    );
    // a2's deadline is at 66 ms, when it waits for b.
    let expires = Platform {
        late: Late::Expire,
        ..cold
    };
    let outcome = play(&work, &expires, &arrivals, "fastest", 1);
    assert_eq!(
        (outcome.late, outcome.expired, outcome.makespan_us),
        (1, 1, 71_000)
    );
}

/// Two nodes: b runs where a did, for its input lies there; where that node is busy it is fetched.
#[test]
fn input_is_fetched_unless_the_step_stays_on_its_node() {
    let functions = vec![function("a", 0, &[10_000]), function("b", 0, &[20_000])];
    let work = Work::new(functions, &[Graph::chain("app", &["a", "b"])]).unwrap();
    let platform = Platform {
        nodes: 2,
        fetch_us: 3_000,
        ..one_slot()
    };
    let alone = play(&work, &platform, &every(100_000.0, 3, 1.0), "fastest", 1);
    assert_eq!((alone.hits, alone.latencies.mean_us()), (3, 30_000.0));
    // a1 at 5 on node 0 to 15, a2 at 10 on node 1 to 20; at 15 a3 comes and, later of deadline, waits: b1 15 to 35, b2 20 to 40.
    // a3 35 to 45, b3 45 to 65: nothing is fetched.
    let three = play(&work, &platform, &every(5_000.0, 3, 1.0), "fastest", 1);
    assert_eq!(three.makespan_us, 65_000);
}

/// Two batches wait for one another's parts: a batch of two takes 15 ms, one 10.
#[test]
fn a_fixed_batch_is_waited_for_until_its_share_is_used_up() {
    let work = Work::new(
        vec![function("a", 0, &[10_000, 15_000])],
        &[Graph::chain("app", &["a"])],
    )
    .unwrap();
    // The target of 30 ms: a batch of two is cheaper. At 4 ms one waits, at 8 both go.
    let outcome = play(
        &work,
        &one_slot(),
        &every(4_000.0, 2, 3.0),
        "edf:batch=2:margin=0",
        1,
    );
    assert_eq!(
        (outcome.batches, outcome.makespan_us, outcome.hits),
        (1, 23_000, 2)
    );
    // Alone it waits until 15 ms before its deadline, and takes the time of one: 30 + 15 + 10.
    let alone = play(
        &work,
        &one_slot(),
        &every(30_000.0, 1, 3.0),
        "edf:batch=2:margin=0",
        1,
    );
    assert_eq!((alone.batches, alone.makespan_us, alone.hits), (1, 55_000, 1));
}

/// Holds the state to its bounds around every pass.
struct Witness {
    inner: Box<dyn Dispatcher>,
    most_waiting: usize,
}

impl Dispatcher for Witness {
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem> {
        let waiting = state.queues().iter().map(|queue| queue.waiting.len()).sum();
        self.most_waiting = self.most_waiting.max(waiting);
        self.inner.pass(state)?;
        let platform = state.platform();
        let mut free = (0, 0);
        for node in 0..state.num_nodes() {
            let (cores, slices) = state.free_of(node);
            assert!(
                cores <= platform.cores && slices <= platform.slices,
                "node {node}"
            );
            free = (free.0 + u32::from(cores), free.1 + u32::from(slices));
        }
        assert_eq!(free, state.free());
        for queue in state.queues() {
            let deadlines: Vec<u64> = queue.waiting.iter().map(|waiting| waiting.deadline_us).collect();
            assert!(deadlines.is_sorted());
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_request_is_lost_or_served_twice_whatever_the_rule(
        seed in any::<u64>(), place in 0_usize..9, load in 0.2_f64..4.0, late in 0_usize..3, is_mig in any::<bool>(),
        nodes in 1_u16..20, prewarmed in 0_u16..4, surface in 0_usize..2, keeps in any::<bool>(),
    ) {
        let work = surface::work(["assumed", "infless"][surface]).unwrap();
        let platform = Platform {
            nodes,
            prewarmed,
            late: [Late::Serve, Late::Expire, Late::Shed][late],
            sharing: if is_mig { Sharing::Mig } else { Sharing::Mps },
            ..Platform::default()
        };
        let mut arrivals = Arrivals::of_setting("moderate-normal", ["assumed", "infless"][surface], 300).unwrap();
        arrivals.load = load;
        // With `cold=false` a rule makes no container while the function has others. It gets one all the same where those never
        // take the batch.
        let name = &format!("{}{}", POLICIES[place].name, if keeps { ":warm=true:cold=false" } else { "" });
        let inner = by_name(name, &work, &platform, arrivals.slo).unwrap();
        let mut witness = Witness { inner, most_waiting: 0 };
        let outcome = simulate(&work, &platform, &arrivals, &mut witness, Seed(seed)).unwrap();
        prop_assert_eq!(outcome.num_requests, 300);
        prop_assert_eq!(outcome.hits + outcome.late + outcome.shed + outcome.expired, 300, "{}", name);
        prop_assert!(late > 0 || outcome.shed + outcome.expired == 0, "{name} left requests waiting");
        prop_assert!(late > 1 || outcome.shed == 0);
        let few = work.apps.iter().map(|app| app.steps.len() as u64).min().unwrap();
        prop_assert!(outcome.batched <= 300 * 5 && outcome.batched >= (outcome.hits + outcome.late) * few);
        prop_assert!(outcome.batches <= outcome.batched && outcome.in_flight_max <= 300);
        prop_assert!(outcome.cold_usd <= outcome.usd);
        let again = play(&work, &platform, &arrivals, name, seed);
        prop_assert_eq!(again, outcome);
    }

    #[test]
    fn each_request_runs_once_at_each_function_of_any_graph(
        seed in any::<u64>(), num in 1_usize..8, bits in any::<u64>(), place in 0_usize..9,
    ) {
        let pairs = (0..num).flat_map(|from| (from + 1..num).map(move |to| (from, to)));
        let edges = pairs.enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, pair)| pair).collect();
        let functions = vec![function("a", 100, &[1_000, 1_500]), function("b", 200, &[2_000, 2_500, 4_000])];
        let names = (0..num).map(|stage| ["a", "b"][stage % 2].to_string()).collect();
        let work = Work::new(functions, &[Graph { name: "app".into(), functions: names, edges }]).unwrap();
        let arrivals = Arrivals { num_requests: 200, gaps: Gaps::Exponential(3_000.0), load: 1.0, slo: 2.0 };
        for late in [Late::Serve, Late::Shed] {
            let platform = Platform { nodes: 2, cores: 3, slices: 3, late, ..Platform::default() };
            let outcome = play(&work, &platform, &arrivals, POLICIES[place].name, seed);
            let served = outcome.hits + outcome.late;
            prop_assert!(outcome.batched >= served * num as u64);
            prop_assert!(late == Late::Shed || (served == 200 && outcome.batched == 200 * num as u64));
        }
    }
}

#[test]
fn settings_out_of_range_and_names_that_are_not_there_are_refused() {
    let work = surface::work("infless").unwrap();
    let refused = |text: &str| {
        by_name(text, &work, &Platform::default(), 1.0)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refused("fifo").contains("esg, infless, fast-gshare"));
    assert!(refused("esg:margin=1").contains("0 to 0.9"));
    for text in ["esg:warm=false:cold=false", "infless:cold=false"] {
        let said = refused(text);
        assert!(
            said.contains(text) && said.contains("cold = false") && said.contains("`warm=true`"),
            "{said}"
        );
    }
    assert!(refused("nexus:wait=true").contains("margin, shed, warm, cold"));
    let small = Platform {
        cores: 8,
        ..Platform::default()
    };
    let mut esg = by_name("esg", &work, &small, 1.0).unwrap();
    let arrivals = Arrivals::of_setting("strict-light", "infless", 1).unwrap();
    let error = simulate(&work, &small, &arrivals, esg.as_mut(), Seed(0))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("functions.ssd") && error.contains("a node of 8 cores and 7 slices"),
        "{error}"
    );
    let none = Platform {
        nodes: 0,
        ..Platform::default()
    };
    let error = simulate(&work, &none, &arrivals, esg.as_mut(), Seed(0))
        .unwrap_err()
        .to_string();
    assert!(error.contains("nodes = 0: allowed is 1 to 1024"), "{error}");
    let ages = Arrivals {
        num_requests: 100_000_000,
        load: 1e-3,
        ..every(1e9, 1, 1.0)
    };
    let error = simulate(&work, &Platform::default(), &ages, esg.as_mut(), Seed(0))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("num_requests * gaps / load = 100000000000000000000"),
        "{error}"
    );
    for loads in [(1e-9, 1.0), (0.5, 1e3 + 1.0)] {
        let env = Dispatching::new(
            work.clone(),
            Platform::default(),
            arrivals,
            loads,
            Reward::default(),
        );
        let error = env.err().unwrap().to_string();
        assert!(
            error.contains("load = ") && error.contains("0.001 to 1000"),
            "{error}"
        );
    }
    assert!(
        Arrivals::of_setting("light", "assumed", 1)
            .unwrap_err()
            .to_string()
            .contains("strict-light")
    );
}
