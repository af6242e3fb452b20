//! Contexts of one GPU: processor sharing by hand, earliest deadline first against theory and brute force, no frame lost, and
//! the rules of SGPRS one by one.

use std::sync::Arc;

use pleach_rooms::contexts::{
    Capacity, Context, Decision, Gpu, Held, Network, Outcome, POLICIES, Run, Stage, Task, by_name, released,
    simulate, timeline,
};
use pleach_workloads::Seed;
use proptest::prelude::*;

/// A network of equal stages that takes so many µs on any number of SMs.
fn network(num_stages: u32, time_us: u64) -> Arc<Network> {
    let stage = |number: u32| Stage {
        name: number.to_string(),
        permille: 1_000 / num_stages + u32::from(number == 0) * (1_000 % num_stages),
        is_high: number + 1 == num_stages,
    };
    let stages = (0..num_stages).map(stage).collect();
    Arc::new(Network::new(stages, &[(1, time_us)]).unwrap())
}

fn task(network: &Arc<Network>, period_us: u64, offset_us: u64) -> Task {
    Task {
        network: Arc::clone(network),
        period_us,
        offset_us,
    }
}

fn one_context(streams: u32, capacity: Capacity) -> Gpu {
    Gpu::new(1, vec![Context { sms: 1, streams }], capacity).unwrap()
}

fn run_us(length_us: u64) -> Run {
    Run {
        length_us,
        warm_up_us: 0,
        spread: 0.0,
        seed: Seed(0),
    }
}

fn play(gpu: &Gpu, tasks: &[Task], rule: &str, run: &Run) -> Outcome {
    simulate(gpu, tasks, by_name(rule).unwrap().as_mut(), run).unwrap()
}

#[test]
fn stages_in_flight_share_the_capacity_as_worked_by_hand() {
    // One stage of 1,000 µs each, the second 400 µs later; two in flight do 1.5 times the work of one. The first is alone until
    // 400, and its 600 left take 800 at 0.75: 1,200. The second has done 600 then, and its 400 left take 400 alone: 1,600.
    let gpu = one_context(2, Capacity::new(vec![(1, 1.0), (2, 1.5)]).unwrap());
    let network = network(1, 1_000);
    let tasks = [task(&network, 1_200, 0), task(&network, 1_199, 400)];
    let outcome = play(&gpu, &tasks, "naive", &run_us(1_000));
    assert_eq!((outcome.released, outcome.met, outcome.late), (2, 1, 1));
    assert_eq!(outcome.response_us, 1_200 + 1_200);
    assert_eq!(outcome.in_flight_max, 2);
    let mut naive = by_name("naive").unwrap();
    let (same, runs) = timeline(&gpu, &tasks, naive.as_mut(), &run_us(1_000)).unwrap();
    assert_eq!(same, outcome);
    let times: Vec<_> = runs
        .iter()
        .map(|run| (run.task, run.start_us, run.end_us, run.due_us))
        .collect();
    assert_eq!(times, [(0, 0, 1_200, 1_200), (1, 400, 1_600, 1_599)]);

    // With one stream the second begins at 1,000 and ends at 2,000.
    let gpu = one_context(1, Capacity::constant());
    let outcome = play(&gpu, &tasks, "naive", &run_us(1_000));
    assert_eq!(outcome.response_us, 1_000 + 1_600);
}

#[test]
fn no_stage_is_faster_than_alone_on_the_sms_of_its_context() {
    // 100 µs on four SMs, 300 on two: alone in a context of two it takes 300 although the GPU could do three times as much.
    let stage = Stage {
        name: "all".into(),
        permille: 1_000,
        is_high: false,
    };
    let network = Arc::new(Network::new(vec![stage], &[(2, 300), (4, 100)]).unwrap());
    let capacity = Capacity::new(vec![(1, 1.0), (2, 2.0), (4, 2.0)]).unwrap();
    let gpu = Gpu::equal(4, 2, 1.0, 2, capacity).unwrap();
    let tasks = |num: usize| vec![task(&network, 10_000, 0); num];
    // Speeds are rounded down to whole femtoseconds, hence the microsecond more.
    assert_eq!(play(&gpu, &tasks(1), "naive", &run_us(1)).response_us, 301);
    // Four share twice the GPU: each would have half of it, but a third is the most that two SMs give.
    assert_eq!(play(&gpu, &tasks(4), "naive", &run_us(1)).response_us, 4 * 301);
    // Eight, of which four wait: the first end at 301, the others one turn later.
    let later = play(&gpu, &tasks(8), "naive", &run_us(1));
    assert_eq!((later.response_us, later.in_flight_max), (4 * 301 + 4 * 602, 4));
}

#[test]
fn missed_releases_are_skipped_and_counted() {
    // A frame takes 250 of a period of 100 µs. Released at 0, 100, .. 900. The first ends at 250: the release of 100 is skipped,
    // that of 200 begins at 250 and ends at 500: 300 is skipped, and 400 too, for it is due at 500. So 0, 200, 500, 700.
    let gpu = one_context(1, Capacity::constant());
    let outcome = play(&gpu, &[task(&network(1, 250), 100, 0)], "edf", &run_us(1_000));
    assert_eq!((outcome.released, outcome.met), (10, 0));
    assert_eq!((outcome.late, outcome.skipped), (4, 6));
    assert_eq!(outcome.num_in_window, 3);
    assert!((outcome.missed_share() - 1.0).abs() < 1e-12);
}

proptest! {
    #[test]
    fn no_frame_is_lost_or_counted_twice(
        tasks in prop::collection::vec((1_u32..6, 100_u64..3_000, 500_u64..9_000, 0_u64..20_000), 1..12),
        rule in 0..POLICIES.len(),
        num_contexts in 1_usize..4,
        streams in 1_u32..4,
        spread in prop::sample::select(vec![0.0, 0.2]),
        seed in 0_u64..100,
    ) {
        let tasks: Vec<Task> = tasks
            .iter()
            .map(|(stages, time, period, offset)| task(&network(*stages, *time), *period, *offset))
            .collect();
        let capacity = Capacity::new(vec![(1, 1.0), (3, 1.3), (8, 0.9)]).unwrap();
        let gpu = Gpu::equal(68, num_contexts, 1.0, streams, capacity).unwrap();
        let run = Run { seed: Seed(seed), spread, ..run_us(50_000) };
        let outcome = play(&gpu, &tasks, POLICIES[rule].name, &run);
        let due: u64 = tasks.iter().map(|task| (50_000_u64).saturating_sub(task.offset_us).div_ceil(task.period_us)).sum();
        prop_assert_eq!(outcome.released, due);
        prop_assert_eq!(outcome.met + outcome.late + outcome.skipped, due);
        prop_assert!(outcome.num_in_window <= outcome.met + outcome.late);
        prop_assert!(outcome.in_flight_max <= streams * num_contexts as u32);
        prop_assert_eq!(outcome, play(&gpu, &tasks, POLICIES[rule].name, &run));
    }

    /// Jeffay, Stanat and Martel (1991): earliest deadline first without preemption meets all deadlines of periodic tasks,
    /// whatever their offsets, if the demand fits and no longer task blocks a shorter one for too long.
    #[test]
    fn earliest_deadline_first_meets_all_where_the_demand_fits(
        tasks in prop::collection::vec((20_u64..400, 600_u64..4_000, 0_u64..4_000), 1..7),
    ) {
        let mut sorted = tasks.clone();
        sorted.sort_by_key(|(_, period, _)| *period);
        let demand: f64 = sorted.iter().map(|(time, period, _)| *time as f64 / *period as f64).sum();
        let is_blocked = |place: usize| {
            let (time, period, _) = sorted[place];
            (sorted[0].1 + 1..period).any(|span| {
                let before: u64 = sorted[..place].iter().map(|(time, period, _)| (span - 1) / period * time).sum();
                time + before > span
            })
        };
        prop_assume!(demand <= 1.0 && !(0..sorted.len()).any(is_blocked));
        let tasks: Vec<Task> =
            tasks.iter().map(|(time, period, offset)| task(&network(1, *time), *period, *offset)).collect();
        let gpu = one_context(1, Capacity::constant());
        let outcome = play(&gpu, &tasks, "edf", &run_us(100_000));
        prop_assert_eq!((outcome.late, outcome.skipped), (0, 0));
    }

    /// Equal periods: whatever the order within a period, all that fits is done in it.
    #[test]
    fn equal_periods_are_met_up_to_full_use_and_not_beyond(
        times in prop::collection::vec(50_u64..400, 1..10),
        num_stages in 1_u32..5,
    ) {
        let period: u64 = times.iter().sum();
        let tasks = |period: u64| -> Vec<Task> {
            times.iter().enumerate().map(|(id, time)| task(&network(num_stages, *time), period, 7 * id as u64)).collect()
        };
        let gpu = one_context(1, Capacity::constant());
        // A stage ends at a whole microsecond: each may lose one.
        let slack = u64::from(num_stages) * times.len() as u64;
        let fits = play(&gpu, &tasks(period + slack), "edf:whole=true", &run_us(50 * period));
        prop_assert_eq!((fits.late, fits.skipped), (0, 0));
        let less = play(&gpu, &tasks(period * 9 / 10), "edf", &run_us(50 * period));
        prop_assert!(less.late > 0);
    }

    /// One frame of each task on one stream: no order of all meets more than the best, and where all are released together
    /// earliest deadline first meets all if any order does (Jackson, 1955).
    #[test]
    fn no_rule_beats_brute_force(
        frames in prop::collection::vec((10_u64..100, 0_u64..150, 20_u64..400), 1..6),
        together in any::<bool>(),
        rule in 0..POLICIES.len(),
    ) {
        let frames: Vec<(u64, u64, u64)> = frames
            .into_iter()
            .map(|(time, offset, period)| (time, if together { 0 } else { offset }, period.max(151)))
            .collect();
        let best = most_met(&frames, 0, &mut vec![false; frames.len()]);
        let tasks: Vec<Task> =
            frames.iter().map(|(time, offset, period)| task(&network(1, *time), *period, *offset)).collect();
        let gpu = one_context(1, Capacity::constant());
        let run = run_us(151);
        let met = play(&gpu, &tasks, POLICIES[rule].name, &run).met;
        prop_assert!(met <= best, "{} met {met} of {best}", POLICIES[rule].name);
        if together && best == frames.len() as u64 {
            prop_assert_eq!(play(&gpu, &tasks, "edf", &run).met, best);
        }
    }
}

/// Most frames (time, release, period) that any order meets.
fn most_met(frames: &[(u64, u64, u64)], now_us: u64, is_done: &mut Vec<bool>) -> u64 {
    let mut best = 0;
    for id in 0..frames.len() {
        if !is_done[id] {
            let (time, release, period) = frames[id];
            let end_us = now_us.max(release) + time;
            is_done[id] = true;
            best = best.max(u64::from(end_us <= release + period) + most_met(frames, end_us, is_done));
            is_done[id] = false;
        }
    }
    best
}

#[test]
fn equal_contexts_have_the_published_shares_within_the_bound() {
    let sms = |num, over| {
        Gpu::equal(68, num, over, 2, Capacity::constant())
            .unwrap()
            .contexts()[0]
            .sms
    };
    assert_eq!([1.0, 1.5, 2.0].map(|over| sms(2, over)), [34, 52, 68]);
    assert_eq!([1.0, 1.5, 2.0].map(|over| sms(3, over)), [24, 34, 46]);
    for num in 1..20 {
        for tenths in 10..=10 * num {
            let over = f64::from(tenths) / 10.0;
            let gpu = Gpu::equal(68, num as usize, over, 2, Capacity::constant()).unwrap();
            let sum: u32 = gpu.contexts().iter().map(|context| context.sms).sum();
            // Rounding up to an even number adds less than two SMs, and the whole one less than one.
            assert!(
                f64::from(sum) < 68.0 * over + 3.0 * f64::from(num),
                "{num} {over}: {sum}"
            );
            assert!(gpu.contexts().iter().all(|context| context.sms <= 68));
        }
    }
}

/// A decision of the middle stage of three, over two contexts.
fn decision<'a>(held: &'a [Held], occupied_us: &'a [u64], gpu: &'a Gpu) -> Decision<'a> {
    Decision {
        now_us: 1_000,
        task: 3,
        stage: 1,
        is_last: false,
        is_high: false,
        was_held: false,
        release_us: 0,
        due_us: 4_000,
        virtual_due_us: 2_400,
        budget_us: 500,
        rest_us: 900,
        occupied_us,
        held,
        gpu,
    }
}

#[test]
fn sgprs_takes_an_empty_context_in_time_else_the_first_to_finish() {
    let gpu = Gpu::equal(68, 3, 1.5, 2, Capacity::constant()).unwrap();
    let held = |running: u32, waiting: u32, occupied_us: u64, head_us: u64| Held {
        running,
        waiting,
        occupied_us,
        head_us,
    };
    let empty = Held::default();
    let choose = |held: &[Held], occupied_us: &[u64]| {
        let decision = decision(held, occupied_us, &gpu);
        by_name("sgprs").unwrap().choose(&decision).unwrap()
    };
    // Empty and in time: the first, although the other would finish sooner.
    assert_eq!(choose(&[held(1, 0, 10, 995), empty, empty], &[10, 900, 800]), 1);
    // Empty, the first not in time: the other.
    assert_eq!(choose(&[empty, empty, empty], &[1_500, 1_400, 1_300]), 1);
    // None in time: the empty one that is first to finish.
    assert_eq!(
        choose(&[empty, empty, held(1, 0, 10, 995)], &[1_900, 1_800, 10]),
        1
    );
    // None empty: the head's start, what is held, and the stage: 900 + 700 + 100, 800 + 750 + 100, 990 + 650 + 100.
    let busy = [held(1, 1, 700, 900), held(2, 0, 750, 800), held(1, 2, 650, 990)];
    assert_eq!(choose(&busy, &[100, 100, 100]), 1);
}

#[test]
fn sgprs_holds_a_stage_back_that_is_a_budget_ahead_of_its_schedule_unless_a_context_is_empty() {
    let gpu = Gpu::equal(68, 2, 1.5, 2, Capacity::constant()).unwrap();
    let busy = Held {
        running: 1,
        occupied_us: 100,
        head_us: 900,
        ..Held::default()
    };
    let not_before = |rule: &str, held: &[Held], is_high: bool, is_last: bool| {
        let decision = Decision {
            is_high,
            is_last,
            ..decision(held, &[100, 100], &gpu)
        };
        by_name(rule).unwrap().not_before_us(&decision)
    };
    assert_eq!(not_before("sgprs", &[busy, busy], false, false), 1_400);
    assert_eq!(not_before("sgprs", &[busy, Held::default()], false, false), 0);
    assert_eq!(not_before("sgprs", &[busy, busy], true, false), 0);
    assert_eq!(not_before("sgprs", &[busy, busy], false, true), 0);
    assert_eq!(not_before("sgprs:brake=false", &[busy, busy], false, false), 0);
}

#[test]
fn what_is_out_of_range_is_refused_with_its_name_and_value() {
    let network = network(2, 100);
    let stages = |permille| {
        vec![Stage {
            name: "stem".into(),
            permille,
            is_high: false,
        }]
    };
    let said = [
        Task::new(&network, -0.1, 0.0).unwrap_err(),
        Task::new(&network, f64::NAN, 0.0).unwrap_err(),
        Task::new(&network, 0.1, -2.0).unwrap_err(),
        Network::new(stages(900), &[(1, 10)]).unwrap_err(),
        Network::new(stages(1_000), &[(4, 10), (2, 20)]).unwrap_err(),
        Network::new(stages(1_000), &[(2, 0)]).unwrap_err(),
        Capacity::new(vec![(2, 1.0)]).unwrap_err(),
        Capacity::new(vec![(1, -1.0)]).unwrap_err(),
        Gpu::equal(68, 2, 2.5, 3, Capacity::constant()).unwrap_err(),
        Gpu::equal(68, 2, 2.0, 0, Capacity::constant()).unwrap_err(),
        released::recorded(4, 1.0).unwrap_err(),
        Run::new(1.0, 2.0, Seed(0)).unwrap_err(),
        Run::new(1.0, 0.0, Seed(0)).unwrap().with_spread(3.0).unwrap_err(),
        by_name("sgprs:speed=3").map(|_| ()).unwrap_err(),
    ];
    let named = [
        ["period_s", "-0.1"],
        ["period_s", "NaN"],
        ["offset_s", "-2"],
        ["permille", "900"],
        ["SMs", "(2, 20)"],
        ["times_us[2 SMs]", "0"],
        ["in flight", "[2]"],
        ["capacity[1]", "-1"],
        ["oversubscription", "2.5"],
        ["contexts[0]: streams", "0"],
        ["capacity", "4 contexts"],
        ["warm_up_s", "2"],
        ["spread", "3"],
        ["sgprs", "speed"],
    ];
    for (error, parts) in said.iter().zip(named) {
        let said = error.to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}: {parts:?}");
    }
}

/// Two seconds of so many cameras in three contexts of 34 SMs.
fn cameras(rule: &str, num: usize) -> Outcome {
    let (gpu, mut policy) = released::set_up(rule, 3, 1.5, None).unwrap();
    let tasks = released::cameras(num, Seed(1)).unwrap();
    let run = Run::new(2.0, 0.1, Seed(1)).unwrap();
    simulate(&gpu, &tasks, policy.as_mut(), &run).unwrap()
}

#[test]
fn a_limit_of_stages_in_flight_keeps_what_naive_loses() {
    assert_eq!(cameras("naive", 20).missed_share(), 0.0);
    assert!(cameras("naive", 30).fps() < 0.9 * cameras("naive", 21).fps());
    assert_eq!(cameras("naive", 30).in_flight_max, 30);
    for rule in ["sgprs", "limit"] {
        assert_eq!(cameras(rule, 23).missed_share(), 0.0, "{rule}");
        assert!(cameras(rule, 30).fps() > 0.99 * cameras(rule, 24).fps(), "{rule}");
        assert_eq!(cameras(rule, 30).in_flight_max, 6);
    }
}

#[test]
fn who_goes_first_decides_what_is_missed_when_not_all_can_be_met() {
    // 24 cameras want 3 % more than the GPU can do. By deadline nearly all are a little late, by number one or two are starved.
    let most_fps = 697.0;
    let least_missed = 1.0 - most_fps / 720.0;
    let [by_deadline, by_number] = ["sgprs", "fixed"].map(|rule| cameras(rule, 24).missed_share());
    assert!(by_deadline > 0.5, "{by_deadline}");
    assert!((least_missed..0.12).contains(&by_number), "{by_number}");
    // To give up what would be late frees the GPU for what would not.
    assert!(cameras("sgprs:give-up=true", 24).missed_share() < 0.5 * by_deadline);
}

#[test]
fn twenty_four_cameras_tell_all_rules_apart() {
    let mut seen: Vec<(u64, u64, u64)> = POLICIES
        .iter()
        .map(|info| cameras(info.name, 24))
        .map(|outcome| (outcome.met, outcome.num_in_window, outcome.response_us))
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), POLICIES.len());
}
