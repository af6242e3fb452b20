//! Random schedules of jobs of one GPU, which are possible by construction, and one change that is not.

use proptest::prelude::*;

use super::*;

/// A row of two nodes of four GPUs on which jobs of one GPU run one after the other.
fn lanes(spans: &[(u8, u16)]) -> (Facts, Run) {
    let mut facts = facts();
    facts.jobs.clear();
    let mut run = Run {
        nodes: vec!["0".into(), "1".into()],
        ..Run::default()
    };
    let mut free_s = [0.0; 8];
    for (index, (lane, span)) in spans.iter().enumerate() {
        let lane = usize::from(*lane) % free_s.len();
        let (from_s, span_s) = (free_s[lane], f64::from(*span) + 1.0);
        free_s[lane] = from_s + span_s;
        let name = format!("j{index}");
        let job = self::facts().jobs["killed"].clone();
        facts.jobs.insert(
            name.clone(),
            Job {
                work_s: span_s,
                ..job
            },
        );
        run.jobs.push(name);
        run.segments.push(Segment {
            job: index as u32,
            attempt: 1,
            slices: vec![Slice {
                node: (lane / 4) as u32,
                num_nodes: 1,
                gpus: Gpus::Which(1 << (lane % 4)),
            }],
            gpu_milli: 1000,
            gpu_memory_gib: 0.0,
            cpu_cores: 0.0,
            memory_gib: 0.0,
            copies: 0,
            from_s,
            to_s: from_s + span_s,
            rate: 1.0,
            lost_s: 0.0,
            ended: Ended::Completed,
        });
    }
    (facts, run)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lanes_without_overlap_are_possible_and_any_second_job_on_a_gpu_is_found(
        spans in proptest::collection::vec((any::<u8>(), 0_u16..50), 1..40),
        victim in any::<prop::sample::Index>(),
    ) {
        let (facts, mut run) = lanes(&spans);
        let none = Conditions::default();
        prop_assert_eq!(verify(&facts, &none, &run).unwrap().faults, vec![]);
        // Half of the last second of some job goes to another one on its GPU.
        let mut twin = run.segments[victim.index(spans.len())].clone();
        twin.job = run.jobs.len() as u32;
        twin.from_s = twin.to_s - 0.5;
        run.jobs.push("twin".into());
        let mut facts = facts;
        facts.jobs.insert("twin".into(), Job { work_s: 0.5, ..facts.jobs["j0"].clone() });
        run.segments.push(twin);
        let found = verify(&facts, &none, &run).unwrap().faults;
        prop_assert!(found.len() == 1 && found[0].rule == Rule::Gpus, "{:?}", found);
    }

    #[test]
    fn no_record_makes_the_validator_panic(
        spans in proptest::collection::vec((any::<u8>(), 0_u16..50), 1..12),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..8, any::<f64>()), 1..6),
    ) {
        let (facts, mut run) = lanes(&spans);
        for (which, what, value) in changes {
            let index = which.index(run.segments.len());
            let segment = &mut run.segments[index];
            match what {
                0 => segment.from_s = value,
                1 => segment.to_s = value,
                2 => segment.rate = value,
                3 => segment.job = 0,
                4 => segment.attempt = value as u32,
                5 => segment.cpu_cores = value.abs().min(1e6),
                6 => segment.slices[0].gpus = Gpus::Num(1 + value.abs().min(60.0) as u32),
                _ => segment.ended = Ended::ALL[index % Ended::ALL.len()],
            }
        }
        let verdict = verify(&facts, &Conditions { sharing: true, ..Conditions::default() }, &run);
        prop_assert!(verdict.is_ok());
    }
}
