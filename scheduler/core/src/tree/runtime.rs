//! The interpreter: a tree as three flat arrays, and the policy that runs it. Allocates nothing per decision.

use super::{Node, Tree, aside};
use crate::error::PolicyError;
use crate::features::{ColumnSet, FeatureSchema, Group};
use crate::heuristics::Ranking;
use crate::observation::ObservationRef;
use crate::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use crate::rows::{Rows, Scorer};

/// Marks a child that is a leaf.
const LEAF: u32 = 1 << 31;

/// Marks a column of the context.
const CONTEXT: u16 = 1 << 15;

/// A tree for walking: splits as arrays, leaves apart from them.
#[derive(Clone, Debug, PartialEq)]
pub struct FlatTree {
    schema: &'static FeatureSchema,
    /// Columns that it needs of a row and of the context.
    widths: (usize, usize),
    /// Column in a joined row. `[num_splits]`
    feature: Vec<u16>,
    /// The same column in its row or, with the mark, in its context: rows are read where they lie. `[num_splits]`
    from: Vec<u16>,
    /// `[num_splits]`
    threshold: Vec<f32>,
    /// Where the condition does not hold and where it does; with the mark, the number of a leaf. `[num_splits]`
    children: Vec<[u32; 2]>,
    root: u32,
    /// `[num_leaves]`
    score: Vec<f32>,
    /// Place of each leaf in [`Tree::nodes`]. `[num_leaves]`
    place: Vec<u32>,
}

impl FlatTree {
    /// The arrays of a tree. Leaves are numbered as they come in [`Tree::nodes`].
    #[must_use]
    pub fn of(tree: &Tree) -> FlatTree {
        let nodes = tree.nodes();
        let (mut num_splits, mut num_leaves) = (0, 0);
        let code: Vec<u32> = nodes
            .iter()
            .map(|node| {
                let (count, mark) = match node {
                    Node::Split { .. } => (&mut num_splits, 0),
                    Node::Leaf { .. } => (&mut num_leaves, LEAF),
                };
                *count += 1;
                (*count - 1) | mark
            })
            .collect();
        let schema = tree.schema();
        let mut flat = FlatTree {
            schema,
            widths: schema.widths(tree.width()),
            feature: Vec::new(),
            from: Vec::new(),
            threshold: Vec::new(),
            children: Vec::new(),
            root: code[0],
            score: Vec::new(),
            place: Vec::new(),
        };
        for (place, node) in nodes.iter().enumerate() {
            match *node {
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let number = usize::from(feature);
                    let mark = match schema.features[number].group {
                        Group::Row => 0,
                        Group::Context => CONTEXT,
                    };
                    flat.feature.push(feature);
                    flat.from.push(schema.place(number) as u16 | mark);
                    flat.threshold.push(threshold);
                    flat.children.push([code[right as usize], code[left as usize]]);
                }
                Node::Leaf { score, .. } => {
                    flat.score.push(score);
                    flat.place.push(place as u32);
                }
            }
        }
        flat
    }

    /// Number of the leaf where a joined row ends. A value that is NaN goes right.
    ///
    /// # Panics
    /// If the row is shorter than the joined row of the schema.
    #[must_use]
    pub fn leaf_of(&self, row: &[f32]) -> usize {
        self.descend(|split| row[usize::from(self.feature[split])])
    }

    /// The leaf at the end of the splits, each of which is given its value.
    #[inline]
    fn descend(&self, value: impl Fn(usize) -> f32) -> usize {
        let mut at = self.root;
        while at & LEAF == 0 {
            let split = at as usize;
            let holds = value(split) <= self.threshold[split];
            at = self.children[split][usize::from(holds)];
        }
        (at ^ LEAF) as usize
    }

    /// Score of a leaf.
    #[must_use]
    pub fn score_of(&self, leaf: usize) -> f32 {
        self.score[leaf]
    }

    /// Place of a leaf in [`Tree::nodes`].
    #[must_use]
    pub fn place_of(&self, leaf: usize) -> usize {
        self.place[leaf] as usize
    }

    /// Number of leaves.
    #[must_use]
    pub fn num_leaves(&self) -> usize {
        self.score.len()
    }

    /// Columns that it needs of a row and of the context.
    #[must_use]
    pub fn widths(&self) -> (usize, usize) {
        self.widths
    }

    /// Calls `visit` with the index and the leaf of each row.
    ///
    /// # Panics
    /// If rows or context are narrower than [`FlatTree::widths`].
    #[inline]
    pub fn walk(&self, rows: &Rows<'_>, mut visit: impl FnMut(usize, usize)) {
        for (index, row) in rows.rows.chunks_exact(rows.width.max(1)).enumerate() {
            let parts = [row, rows.context];
            let leaf = self.descend(|split| {
                let place = self.from[split];
                parts[usize::from(place >> 15)][usize::from(place & !CONTEXT)]
            });
            visit(index, leaf);
        }
    }

    /// That there are so many rows and all columns that the tree reads.
    pub(super) fn check(&self, rows: &Rows<'_>, num_rows: usize) -> Result<(), PolicyError> {
        let (num_row, num_context) = self.widths;
        let (width, found) = (rows.width, rows.rows.len());
        if found != num_rows * width {
            let expected = num_rows * width.max(num_row);
            return Err(PolicyError::Shape { expected, found });
        }
        for (expected, found) in [(num_row, width), (num_context, rows.context.len())] {
            if found < expected {
                return Err(PolicyError::Shape { expected, found });
            }
        }
        Ok(())
    }
}

impl Scorer for FlatTree {
    fn schema(&self) -> &'static FeatureSchema {
        self.schema
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.check(&rows, scores.len())?;
        self.walk(&rows, |index, leaf| scores[index] = self.score[leaf]);
        Ok(())
    }
}

/// A tree that decides.
#[derive(Clone, Debug)]
pub struct TreePolicy {
    tree: Tree,
    flat: FlatTree,
    /// What decides where it steps aside.
    rankings: Vec<Ranking>,
    /// Columns that it asks for.
    columns: ColumnSet,
}

impl TreePolicy {
    /// Makes a tree ready to run.
    #[must_use]
    pub fn new(tree: Tree) -> TreePolicy {
        TreePolicy {
            flat: FlatTree::of(&tree),
            rankings: tree.rankings(),
            columns: ColumnSet::ALL,
            tree,
        }
    }

    /// The same, which asks for no columns but those that it reads: for simulations by the thousand, whose observations nothing
    /// else reads. It decides alike. A tree with guards, or that steps aside, asks for all, because those read more.
    #[must_use]
    pub fn sparing(mut self) -> TreePolicy {
        if self.rankings.is_empty() && self.tree.guards().is_none() {
            let splits = self.flat.feature.iter();
            let weights = self.tree.meta().key_weights.iter();
            let read = splits.copied().chain(weights.map(|term| term.feature));
            self.columns = read.map(usize::from).collect();
        }
        self
    }

    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The tree as flat arrays.
    #[must_use]
    pub fn flat(&self) -> &FlatTree {
        &self.flat
    }

    /// Whether another decides on this cluster.
    pub(super) fn steps_aside(&self, point: &DecisionPoint<'_>) -> bool {
        self.tree.decider(point.cluster).is_some()
    }

    /// A candidate's features joined with the global ones.
    pub(super) fn joined_row(&self, point: &DecisionPoint<'_>, index: usize) -> Vec<f32> {
        let observation = &point.observation;
        self.tree
            .schema()
            .joined_row(observation.row(index), observation.global)
    }

    /// That an observation has so many rows and all columns that the tree reads.
    pub(super) fn check_shape(
        &self,
        observation: &ObservationRef<'_>,
        num_rows: usize,
    ) -> Result<(), PolicyError> {
        self.flat.check(&observation.as_rows(), num_rows)
    }

    /// Writes the leaf number of each candidate, whatever the cluster.
    ///
    /// # Errors
    /// As [`Policy::score`].
    pub fn leaves(&self, observation: &ObservationRef<'_>, leaves: &mut [u32]) -> Result<(), PolicyError> {
        self.check_shape(observation, leaves.len())?;
        self.flat
            .walk(&observation.as_rows(), |index, leaf| leaves[index] = leaf as u32);
        Ok(())
    }
}

impl Policy for TreePolicy {
    fn name(&self) -> &str {
        "tree"
    }

    fn needs(&self) -> Needs {
        Needs {
            columns: self.columns,
            ..self.tree.meta().needs
        }
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            key_weights: &self.tree.meta().key_weights,
            tie_key: self.tree.meta().tie_key,
            guards: self.tree.guards(),
            unopposed_starts: false,
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let rows = point.observation.as_rows();
        self.flat.check(&rows, scores.len())?;
        if let Some(name) = self.tree.decider(point.cluster)
            && let Some(ranking) = self.rankings.iter_mut().find(|own| own.name() == name)
        {
            return aside::score(ranking, point, scores);
        }
        self.flat
            .walk(&rows, |index, leaf| scores[index] = self.flat.score[leaf]);
        Ok(())
    }

    fn leaf(&self, point: DecisionPoint<'_>, choice: usize) -> Option<u32> {
        if self.steps_aside(&point) {
            return None;
        }
        let mut found = 0;
        let all = point.observation.as_rows();
        let rows = Rows {
            rows: all.row(choice),
            ..all
        };
        self.flat.walk(&rows, |_, leaf| found = leaf);
        match self.tree.nodes()[self.flat.place_of(found)] {
            Node::Leaf { id, .. } => Some(id),
            Node::Split { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TreeMeta;
    use super::super::tests::{any_tree, keyed_tree, leaf, meta, small_tree};
    use super::*;
    use crate::actions::ActionKind;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::features::decision::FEATURES;
    use crate::features::{CONTEXT_WIDTH, ROW_WIDTH};
    use crate::heuristics::tests::world::{cluster, events, happen};
    use crate::pass::Pass;
    use proptest::prelude::*;

    #[test]
    fn a_tree_with_one_leaf_scores_everything_alike() {
        let tree = Tree::new(meta(), &[leaf(3, 0.5)]).unwrap();
        let flat = FlatTree::of(&tree);
        assert_eq!(flat.leaf_of(&[0.0; FEATURES.len()]), 0);
        assert_eq!((flat.score_of(0), flat.num_leaves()), (0.5, 1));
    }

    #[test]
    fn a_tree_decides_in_a_pass_and_ties_go_to_the_shortest_job() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        submit(&mut cluster, 4, 5000.0);
        submit(&mut cluster, 1, 900.0);
        let shortest = submit(&mut cluster, 2, 300.0);
        let mut policy = TreePolicy::new(small_tree());
        let needs = policy.needs();
        let mut pass = Pass::new();
        pass.open(&cluster, &needs);
        let action = pass.decide(&cluster, &mut policy).unwrap();
        assert_eq!(pass.candidates().get(action).unwrap().job, Some(shortest));
        // The record of the decision names the leaf by which it was taken.
        let observation = pass.observation().as_ref();
        let mut leaves = vec![0; pass.candidates().len()];
        policy.leaves(&observation, &mut leaves).unwrap();
        let place = policy.flat().place_of(leaves[action] as usize);
        let Node::Leaf { id, .. } = policy.tree().nodes()[place] else {
            panic!("{place} is a leaf");
        };
        pass.act(&mut cluster, &needs, action);
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        assert_eq!((decisions[0].row, decisions[0].leaf), (shortest, Some(id)));
    }

    /// The slow and obvious choice: every candidate's score and key in a list, sorted.
    fn slow_choice(tree: &Tree, rows: &ObservationRef<'_>, jobs: &[Option<f64>]) -> usize {
        let mut order: Vec<usize> = (0..jobs.len()).filter(|index| rows.mask[*index]).collect();
        let rank = |index: &usize| {
            let row = tree.schema().joined_row(rows.row(*index), rows.global);
            let Node::Leaf { score, .. } = tree.nodes()[tree.walk(&row)] else {
                panic!("a walk ended in a split");
            };
            // Hold, which is about no job, comes last of its tier.
            let terms = tree.meta().key_weights.iter();
            let products =
                terms.map(|term| f64::from(term.weight) * f64::from(row[usize::from(term.feature)]));
            let sum = products.fold(0.0, |sum, product| sum + product);
            let key = jobs[*index].map_or((f64::INFINITY, f64::INFINITY), |rest_s| (sum, rest_s));
            (-score, key.0, key.1, *index)
        };
        order.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap());
        order[0]
    }

    fn holds_what_the_slow_one_chooses(tree: Tree, draws: &[u32]) -> Vec<usize> {
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 1));
        let mut policy = TreePolicy::new(tree);
        let (needs, mut pass, mut chosen) = (policy.needs(), Pass::new(), Vec::new());
        for (instant, draw) in draws.iter().enumerate() {
            cluster.advance(crate::ids::Time::from_secs_f64(instant as f64 * 250.0));
            submit(&mut cluster, 1 + draw % 11, f64::from(200 + draw % 7919));
            let mut state = pass.open(&cluster, &needs);
            while state == crate::pass::PassState::Open {
                let action = pass.decide(&cluster, &mut policy).unwrap();
                let rest_s = |index: usize| {
                    let job = pass.candidates().get(index).unwrap().job?;
                    Some(cluster.job(job).remaining_s_at(cluster.now()))
                };
                let jobs: Vec<Option<f64>> = (0..pass.candidates().len()).map(rest_s).collect();
                assert_eq!(
                    action,
                    slow_choice(policy.tree(), &pass.observation().as_ref(), &jobs)
                );
                chosen.push(action);
                state = pass.act(&mut cluster, &needs, action);
            }
        }
        chosen
    }

    #[test]
    fn a_key_changes_what_is_chosen_inside_a_tier() {
        let draws: Vec<u32> = (0..30).map(|number| number * 7919 % 20_011).collect();
        let plain = holds_what_the_slow_one_chooses(small_tree(), &draws);
        let keyed = holds_what_the_slow_one_chooses(keyed_tree(), &draws);
        assert_ne!(plain, keyed);
    }

    #[test]
    fn an_observation_that_was_not_filled_is_an_error() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        submit(&mut cluster, 1, 1.0);
        let mut policy = TreePolicy::new(small_tree());
        let mut pass = Pass::new();
        pass.open(&cluster, &policy.needs());
        let observation = ObservationRef {
            global: &[0.0; CONTEXT_WIDTH],
            candidates: &[],
            width: ROW_WIDTH,
            mask: &[true; 2],
        };
        let point = DecisionPoint {
            cluster: &cluster,
            candidates: pass.candidates(),
            observation,
        };
        let error = policy.score(point, &mut [0.0; 2]).unwrap_err();
        let expected = 2 * ROW_WIDTH;
        assert_eq!(error, PolicyError::Shape { expected, found: 0 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_sparing_tree_decides_as_one_that_is_shown_everything(
            tree in any_tree(),
            mut cluster in cluster(2, any::<bool>().boxed()),
            events in events(40),
            wait_for_type in any::<bool>(),
        ) {
            let needs = tree.meta().needs;
            let actions = needs.actions.set(ActionKind::WaitForType, wait_for_type);
            let meta = TreeMeta { needs: Needs { actions, ..needs }, ..tree.meta().clone() };
            let tree = Tree::new(meta, tree.nodes()).unwrap();
            let (mut all, mut sparing) = (TreePolicy::new(tree.clone()), TreePolicy::new(tree).sparing());
            prop_assert!(sparing.needs().columns != ColumnSet::ALL);
            let (mut pass, mut spared) = (Pass::new(), Pass::of_one_cluster());
            for event in events {
                happen(&mut cluster, event);
                let mut other = cluster.clone();
                pass.run(&mut cluster, &mut all).unwrap();
                spared.run(&mut other, &mut sparing).unwrap();
                let (mut made, mut made_by_other) = (Vec::new(), Vec::new());
                cluster.take_decisions(&mut made);
                other.take_decisions(&mut made_by_other);
                prop_assert_eq!(made, made_by_other);
            }
        }

        #[test]
        fn what_is_chosen_is_the_first_of_the_sorted_list(tree in any_tree(), draws in prop::collection::vec(any::<u32>(), 1..12)) {
            holds_what_the_slow_one_chooses(tree, &draws);
        }
    }

    proptest! {
        #[test]
        fn the_flat_walk_ends_where_the_slow_walk_ends(
            tree in any_tree(),
            rows in prop::collection::vec(prop::collection::vec(-0.2..1.2_f32, FEATURES.len()), 1..20),
        ) {
            let flat = FlatTree::of(&tree);
            for mut row in rows {
                // Some values exactly on a threshold.
                if let Some(Node::Split { feature, threshold, .. }) = tree.nodes().first()
                    && row[0] > 0.5
                {
                    row[usize::from(*feature)] = *threshold;
                }
                let place = tree.walk(&row);
                let found = flat.leaf_of(&row);
                prop_assert_eq!(flat.place_of(found), place);
                let part = |group: Group| -> Vec<f32> {
                    let of_group = FEATURES.iter().zip(&row).filter(|(feature, _)| feature.group == group);
                    of_group.map(|(_, value)| *value).collect()
                };
                let (of_row, of_context) = (part(Group::Row), part(Group::Context));
                let apart = Rows {
                    schema: tree.schema(),
                    rows: &of_row,
                    width: of_row.len(),
                    context: &of_context,
                    mask: &[true],
                };
                flat.walk(&apart, |_, leaf| assert_eq!(leaf, found));
                match tree.nodes()[place] {
                    Node::Leaf { score, .. } => prop_assert_eq!(score, flat.score_of(found)),
                    Node::Split { .. } => prop_assert!(false, "a walk ended in a split"),
                }
            }
        }
    }
}
