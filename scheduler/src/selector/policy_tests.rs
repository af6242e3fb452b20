//! What a selector chooses: held to the plain heuristics.

use proptest::prelude::*;

use super::file_tests::{leaf, meta, split};
use super::{Selector, SelectorPolicy};
use crate::action_set::{ActionKind, ActionSet};
use crate::candidate::CandidateKind;
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster::{Capabilities, Cluster, Sharing};
use crate::cluster_spec::{ClusterSpec, ModelClass};
use crate::heuristics::tests::world::{cluster_with, events, happen, watched_pass};
use crate::heuristics::{by_name, names};
use crate::pass::{Pass, PassState};
use crate::policy::{DecisionPoint, Needs, Policy};

fn one_leaf(rule: &str) -> SelectorPolicy {
    SelectorPolicy::new(Selector::new(meta(), &[leaf(0, rule)]).unwrap())
}

/// Two rules by what waits.
fn two_leaves(few: &str, many: &str) -> SelectorPolicy {
    let nodes = [split("num_pending", 2.0, 1, 2), leaf(4, few), leaf(7, many)];
    SelectorPolicy::new(Selector::new(meta(), &nodes).unwrap())
}

/// The decisions of one pass of a policy of its own needs.
fn decisions_of(cluster: &mut Cluster, policy: &mut dyn Policy) -> Vec<String> {
    Pass::new().run(cluster, policy).unwrap();
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    decisions
        .iter()
        .map(|decision| format!("{:?} {:?}", decision.row, decision.action))
        .collect()
}

fn any_cluster() -> impl Strategy<Value = Cluster> {
    prop_oneof![
        cluster_with(1, any::<bool>().boxed(), Capabilities::DEFAULT),
        cluster_with(2, any::<bool>().boxed(), Capabilities::DEFAULT),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// In the same pass the same action, and in a life of passes of its own the same decisions: with one rule the union of needs is
    /// that rule's own.
    #[test]
    fn one_leaf_is_the_plain_heuristic(
        mut cluster in any_cluster(),
        events in events(40),
        which in 0..names().len(),
    ) {
        let mut plain = by_name(names()[which]).unwrap();
        let mut policy = one_leaf(names()[which]);
        let own = Needs { observation: true, ..plain.needs() };
        prop_assert_eq!(policy.needs(), own);
        let mut other = cluster.clone();
        let mut chooser = policy.clone();
        for event in events {
            happen(&mut cluster, event);
            happen(&mut other, event);
            prop_assert_eq!(
                decisions_of(&mut other.clone(), &mut policy),
                decisions_of(&mut other, plain.as_mut())
            );
            watched_pass(&mut cluster, &mut policy, |cluster, pass| {
                let (mut one, mut two) = (pass.clone(), pass.clone());
                let choice = one.decide(cluster, &mut chooser).unwrap();
                assert_eq!(choice, two.decide(cluster, plain.as_mut()).unwrap());
                let point = DecisionPoint {
                    cluster,
                    candidates: one.candidates(),
                    observation: one.observation().as_ref(),
                };
                assert_eq!(chooser.leaf(point, choice), Some(0));
            });
            cluster.take_decisions(&mut Vec::new());
            cluster.check();
        }
    }

    /// Of several rules the one of the leaf chooses, and never what it does not ask for itself while it may hold or has another
    /// candidate.
    #[test]
    fn the_rule_of_the_leaf_chooses_and_only_of_what_it_asks_for(
        mut cluster in any_cluster(),
        events in events(40),
        few in 0..names().len(),
        many in 0..names().len(),
    ) {
        let mut policy = two_leaves(names()[few], names()[many]);
        let mut chooser = policy.clone();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, &mut policy, |cluster, pass| {
                let mut own = pass.clone();
                let choice = own.decide(cluster, &mut chooser).unwrap();
                let point = DecisionPoint {
                    cluster,
                    candidates: own.candidates(),
                    observation: own.observation().as_ref(),
                };
                let (rule, id) = if cluster.num_pending() <= 2 { (few, 4) } else { (many, 7) };
                assert_eq!(chooser.leaf(point, choice), Some(id));
                let needs = by_name(names()[rule]).unwrap().needs();
                let chosen = point.candidates.get(choice).unwrap();
                if point.candidates.is_admissible(0) {
                    assert!(super::needs::asks_for(&needs, cluster, chosen), "{chosen:?}");
                }
                let text = chooser.explain(&point, choice).unwrap();
                assert_eq!((text.rule.as_str(), text.num_better), (names()[rule], Some(0)));
            });
            cluster.check();
        }
    }
}

#[test]
fn the_needs_of_two_rules_hold_those_of_both() {
    let of = |name: &str| by_name(name).unwrap().needs();
    let both = two_leaves("fifo", "gpu-time-delay").needs();
    assert_eq!(both.lenses, of("fifo").lenses.union(of("gpu-time-delay").lenses));
    assert_eq!((both.heads, both.fitting), (1, 16));
    assert_eq!(both.actions, ActionSet::of(ActionKind::Reserve));
    assert_eq!(both.tick, of("gpu-time-delay").tick);
    // `gpu-time-delay` lets tenants' jobs overtake each other, and `fifo` alone does not.
    assert!(of("fifo").tenants_in_order && !both.tenants_in_order);
    assert!(both.observation);
}

#[test]
fn a_rule_that_shares_nothing_is_not_offered_a_place_beside_another_job() {
    // One GPU, taken; the newcomer could only go beside, which `sjf-share` asks for and `sjf` does not.
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let class = ModelClass {
        speed: vec![1.0],
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&ClusterSpec::uniform(1, 1, 1), &[class], capabilities).unwrap();
    submit(&mut cluster, 1, 1000.0);
    let mut sjf = by_name("sjf").unwrap();
    Pass::new().run(&mut cluster, sjf.as_mut()).unwrap();
    submit(&mut cluster, 1, 10.0);
    let mut policy = two_leaves("sjf", "sjf-share");
    let mut pass = Pass::new();
    assert_eq!(pass.open(&cluster, &policy.needs()), PassState::Open);
    let beside = pass.candidates().iter().position(|row| row.partner.is_some());
    assert_eq!(pass.decide(&cluster, &mut policy).unwrap(), 0);
    // Left to itself it would take every start that it is shown.
    assert_eq!(Some(pass.decide(&cluster, sjf.as_mut()).unwrap()), beside);
}

#[test]
fn a_decision_is_explained_by_the_clusters_state_and_the_rule() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    submit(&mut cluster, 4, 5000.0);
    submit(&mut cluster, 1, 900.0);
    let third = submit(&mut cluster, 2, 300.0);
    let mut policy = two_leaves("fifo", "sjf");
    let mut pass = Pass::new();
    pass.open(&cluster, &policy.needs());
    let choice = pass.decide(&cluster, &mut policy).unwrap();
    assert_eq!(pass.candidates().get(choice).unwrap().job, Some(third));
    let point = DecisionPoint {
        cluster: &cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let text = policy.explain(&point, choice).unwrap().to_string();
    assert_eq!(
        text,
        "start job 2 on 2 GPUs of 1 node: sjf decides (leaf 7)\n  \
         num_pending > 2 (num_pending is 3): Jobs that wait.\n  \
         sjf: the shortest job that fits\n"
    );
    let starts_of_first = pass
        .candidates()
        .iter()
        .position(|row| row.kind == CandidateKind::Start && row.job.is_some_and(|job| job.0 == 0));
    let text = policy.explain(&point, starts_of_first.unwrap()).unwrap();
    assert!(
        text.to_string().ends_with("  not chosen: sjf puts 1 before it\n"),
        "{text}"
    );
    let text = policy.explain(&point, 0).unwrap().to_string();
    assert!(text.ends_with("  not chosen: it is not allowed now\n"), "{text}");
}

#[test]
fn an_observation_without_features_is_an_error() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    submit(&mut cluster, 1, 1.0);
    let mut pass = Pass::new();
    pass.open(&cluster, &by_name("sjf").unwrap().needs());
    let error = pass
        .decide(&cluster, &mut Unobserved(one_leaf("sjf")))
        .unwrap_err();
    assert!(error.to_string().contains("14"), "{error}");
}

/// Says that it needs no features.
struct Unobserved(SelectorPolicy);

impl Policy for Unobserved {
    fn name(&self) -> &str {
        "unobserved"
    }
    fn needs(&self) -> Needs {
        by_name("sjf").unwrap().needs()
    }
    fn score(
        &mut self,
        point: DecisionPoint<'_>,
        scores: &mut [f32],
    ) -> Result<(), crate::error::PolicyError> {
        let observation = crate::observation::ObservationRef {
            global: &[],
            ..point.observation
        };
        self.0.score(DecisionPoint { observation, ..point }, scores)
    }
}
