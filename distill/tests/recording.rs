//! What is recorded on the way, and that recording changes nothing.

use crate::world::{self, SmallestFirst, workload};
use pleach_distill::{Dataset, Fidelity, Recording};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::heuristics::by_name;
use pleach_scheduler::policy::Policy;

#[test]
fn recording_a_teacher_leaves_its_schedule_as_it_is() {
    let workload = workload(250, "recording", 0);
    for name in ["easy", "gpu-time", "las"] {
        let plain = simulate(&workload, &SimConfig::default(), by_name(name).unwrap().as_mut()).unwrap();
        let mut teacher = by_name(name).unwrap();
        let mut data = Dataset::new(Seed(0), 100_000);
        let mut recording = Recording::of_teacher(teacher.as_mut(), &mut data, Seed(0).stream("test", 0));
        let recorded = simulate(&workload, &SimConfig::default(), &mut recording).unwrap();
        assert_eq!(plain, recorded, "{name}");
        assert!(data.num_points() > 50, "{name}: {}", data.num_points());
    }
}

#[test]
fn an_actor_decides_and_the_teacher_is_only_asked() {
    let workload = workload(250, "recording", 1);
    let mut sjf = by_name("sjf").unwrap();
    let (mut full, mut data) = (SmallestFirst, Dataset::new(Seed(0), 100_000));
    // The actor is offered the teacher's candidates, so the plain run must be offered them too.
    struct Wide(Box<dyn Policy>);
    impl Policy for Wide {
        fn name(&self) -> &str {
            "wide"
        }
        fn needs(&self) -> pleach_scheduler::policy::Needs {
            SmallestFirst.needs()
        }
        fn choice_rule(&self) -> pleach_scheduler::policy::ChoiceRule<'_> {
            self.0.choice_rule()
        }
        fn score(
            &mut self,
            point: pleach_scheduler::policy::DecisionPoint<'_>,
            scores: &mut [f32],
        ) -> Result<(), pleach_scheduler::PolicyError> {
            self.0.score(point, scores)
        }
    }
    let plain = simulate(
        &workload,
        &SimConfig::default(),
        &mut Wide(by_name("sjf").unwrap()),
    )
    .unwrap();
    let rng = Seed(0).stream("test", 0);
    let mut recording = Recording::of_actor(&mut full, sjf.as_mut(), 0.0, &mut data, rng);
    let recorded = simulate(&workload, &SimConfig::default(), &mut recording).unwrap();
    assert_eq!(plain.jobs, recorded.jobs);
    let differs = (0..data.num_points()).any(|index| {
        let point = data.point(index);
        // The scores are the teacher's and not the actor's: minus a scaled GPU-time.
        point.teacher.iter().any(|score| (-1.5..-0.1).contains(score))
    });
    assert!(differs);
}

#[test]
fn a_full_dataset_keeps_a_uniform_sample_within_its_bound() {
    let mut all = Dataset::new(Seed(3), 1_000_000);
    let mut few = Dataset::new(Seed(3), 3000);
    for data in [&mut all, &mut few] {
        for index in 0..3 {
            let mut teacher = SmallestFirst;
            let mut recording = Recording::of_teacher(&mut teacher, data, Seed(0).stream("test", index));
            simulate(
                &workload(250, "recording", index),
                &SimConfig::default(),
                &mut recording,
            )
            .unwrap();
        }
    }
    assert!(
        few.num_rows() <= 3000 && few.num_rows() > 700,
        "{}",
        few.num_rows()
    );
    assert_eq!(few.num_offered(), all.num_offered());
    assert_eq!(all.num_offered(), all.num_points() as u64, "nothing was dropped");
    // Each kept point is a point that was offered, in the same order and whole.
    let mut next = 0;
    for index in 0..few.num_points() {
        let point = few.point(index);
        let same = |other: usize| {
            let other = all.point(other);
            (other.candidates, other.global, other.teacher, other.choice)
                == (point.candidates, point.global, point.teacher, point.choice)
        };
        next = (next..all.num_points())
            .find(|other| same(*other))
            .expect("it was offered")
            + 1;
    }
    // Early and late points are kept alike: the mean place of the kept is near the middle.
    let (learn, held_out) = few.split(0.25);
    assert_eq!(learn.len() + held_out.len(), few.num_points());
    let share = held_out.len() as f64 / few.num_points() as f64;
    assert!((share - 0.25).abs() < 0.12, "{share}");
}

#[test]
fn fidelity_of_the_teacher_to_itself_is_one() {
    use pleach_scheduler::policy::TieKey;
    use pleach_scheduler::tree::{FlatTree, Node, Tree, TreeMeta, TreePolicy};
    let split = |name: &str, left, right| Node::Split {
        feature: world::index_of(name) as u16,
        threshold: 0.5,
        left,
        right,
    };
    let leaf = |id, score| Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    };
    let tree_of = |low, high| {
        let meta = TreeMeta {
            name: "teacher".into(),
            tie_key: TieKey::Arrival,
            key_weights: Vec::new(),
            needs: SmallestFirst.needs(),
            estimates: vec![],
            trained_by: Default::default(),
        };
        let nodes = [
            split("is_hold", 1, 4),
            split("gpu_time_gpu_s", 2, 3),
            leaf(0, low),
            leaf(1, high),
            leaf(2, -1.0),
        ];
        Tree::new(meta, &nodes).unwrap()
    };
    let (tree, mut data) = (tree_of(1.0, 0.0), Dataset::new(Seed(0), 100_000));
    let mut teacher = TreePolicy::new(tree.clone());
    let mut recording = Recording::of_teacher(&mut teacher, &mut data, Seed(0).stream("test", 0));
    simulate(
        &workload(250, "recording", 4),
        &SimConfig::default(),
        &mut recording,
    )
    .unwrap();
    let points: Vec<usize> = (0..data.num_points()).collect();
    let own = Fidelity::of(&data, &points, &FlatTree::of(&tree), TieKey::Arrival, 30.0);
    assert_eq!(
        (own.agreement, own.agreement_weighted, own.regret),
        (1.0, 1.0, 0.0)
    );
    let opposite = Fidelity::of(
        &data,
        &points,
        &FlatTree::of(&tree_of(0.0, 1.0)),
        TieKey::Arrival,
        30.0,
    );
    assert!(opposite.agreement < 0.9 && opposite.regret > 0.02, "{opposite:?}");
}
