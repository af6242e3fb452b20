//! Leases, which no pass has: rows of a schema of their own through a dataset, CART and the search for trees.

use pleach_env::Seed;
use pleach_scheduler::Rows;
use pleach_scheduler::features::toy::{LEASE, LEASE_1, rows, teacher};
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{FlatTree, Node, Tree, TreeMeta};
use rand::RngExt as _;

use super::moves::changed;
use super::{Draft, Rows as Shown, SearchConfig};
use crate::dagger::fit;
use crate::{Dataset, DistillConfig, Fidelity};

fn recorded(num_points: usize) -> Dataset {
    let mut rng = Seed(3).stream("toy", 0);
    let mut dataset = Dataset::of(&LEASE, LEASE_1, Seed(1), 100_000);
    for _ in 0..num_points {
        let load: f32 = rng.random();
        let rows = rows(|| rng.random());
        let scores: Vec<f32> = rows.chunks_exact(5).map(|row| teacher(row, load)).collect();
        let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let choice = scores.iter().position(|score| *score == best).unwrap();
        let mask = vec![true; scores.len()];
        let rows = Rows {
            schema: &LEASE,
            rows: &rows,
            width: 5,
            context: &[load],
            mask: &mask,
        };
        dataset.offer_rows(&rows, (&scores, choice), |_| [0.0; TieKey::ALL.len()]);
    }
    dataset
}

fn meta() -> TreeMeta {
    TreeMeta {
        name: "leases".into(),
        tie_key: TieKey::Index,
        key_weights: Vec::new(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    }
}

#[test]
fn a_tree_over_rows_of_another_schema_is_grown_and_agrees_with_its_teacher() {
    let dataset = recorded(3_000);
    let (learn, held_out) = dataset.split(0.3);
    let mut config = DistillConfig {
        leaves: vec![8],
        ..DistillConfig::default()
    };
    config.target.centre = crate::Centre::None;
    let (_, grown) = fit(&dataset, &learn, &config).pop().unwrap();
    let tree = Tree::over(dataset.schema(), meta(), &grown.nodes_with(8)).unwrap();
    let flat = FlatTree::of(&tree);
    let fidelity = Fidelity::of(&dataset, &held_out, &flat, TieKey::Index, 8.0);
    assert!(fidelity.agreement > 0.98, "{fidelity:?} of\n{}", tree.to_text());
    assert!((0.05..0.95).contains(&fidelity.hold_share), "{fidelity:?}");
    for name in ["load", "waited", "left"] {
        assert!(tree.features().contains(&name), "{name} is not read");
    }
    let read = Tree::from_json_over(&LEASE, &tree.to_json()).unwrap();
    assert_eq!(read, tree);
}

#[test]
fn the_search_changes_trees_over_rows_of_another_schema_and_reads_only_its_view() {
    let rows = Shown::of(&recorded(300), 2_000);
    assert_eq!((rows.num_rows(), rows.schema()), (1_800, &LEASE));
    let config = SearchConfig::default();
    let mut rng = Seed(5).stream("toy", 1);
    let nodes = [
        Node::Split {
            feature: 0,
            threshold: 0.5,
            left: 1,
            right: 2,
        },
        leaf(0, 1.0),
        leaf(1, 0.0),
    ];
    let mut draft = Draft::of(&Tree::over(&LEASE, meta(), &nodes).unwrap());
    let (mut read, mut num_changed) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..400 {
        let Some((next, _)) = changed(&draft, &rows, &config, &mut rng) else {
            continue;
        };
        let tree = next.tree(&meta(), &rows).unwrap();
        assert_eq!(tree.schema(), &LEASE);
        read.extend(tree.features());
        (draft, num_changed) = (next, num_changed + 1);
    }
    assert!(
        num_changed > 100,
        "{num_changed} of 400 changes came to something"
    );
    let seen: Vec<&str> = read.into_iter().collect();
    assert_eq!(seen, ["is_idle", "is_renew", "left", "load", "waited"]);
}

fn leaf(id: u32, score: f32) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    }
}
