//! Writes a policy file with the smallest useful tree, to try a cluster with: everything before *hold*, the shortest job first.
//!
//! `cargo run -p pleach-daemon --example shortest_first_tree -- tree.json`

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta};
use pleach_scheduler::{ActionSet, Provenance};

fn leaf(id: u32, score: f32) -> Node {
    Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let is_hold = FeatureSchema::current()
        .joined_index("is_hold")
        .ok_or("no such feature")?;
    let split = Node::Split {
        feature: is_hold as u16,
        threshold: 0.5,
        left: 1,
        right: 2,
    };
    let meta = TreeMeta {
        name: "shortest-first".into(),
        tie_key: TieKey::ShortestEstimate,
        key_weights: Vec::new(),
        needs: Needs {
            actions: ActionSet::NONE,
            ..Needs::full()
        },
        estimates: vec![Provenance::UserLimit],
        trained_by: BTreeMap::new(),
    };
    Tree::new(meta, &[split, leaf(0, 1.0), leaf(1, -1.0)])?.save(Path::new(&path))?;
    Ok(())
}
