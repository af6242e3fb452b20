//! No files import each other in a circle, in any crate: what one file needs from another, that other never needs back,
//! not even by way of a third.
//!
//! Read from the text of the sources: `use` declarations and paths in the code, followed through re-exports to the file
//! that defines the name. Test modules are left out. A module's own `mod` and `pub use` lines are doors, not needs.

mod graph;
mod imports;
mod modules;

use graph::circles;
use modules::Modules;

use crate::cargo::crate_folders;

const CRATES_MIN: usize = 5;

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut crates = crate_folders();
    crates.retain(|folder| folder.join("src").is_dir());
    assert!(crates.len() >= CRATES_MIN, "the crates lie beside this one");
    let mut found = Vec::new();
    let mut num_arrows = 0;
    for folder in &crates {
        let modules = Modules::read(&folder.join("src"));
        let arrows = modules.arrows();
        num_arrows += arrows.len();
        for circle in circles(&arrows) {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            found.push(format!("{name}: {} files", circle.len()));
            for ((from, to), names) in &arrows {
                if circle.contains(from) && circle.contains(to) {
                    let names: Vec<_> = names.iter().cloned().collect();
                    found.push(format!("  {from} -> {to}: {}", names.join(", ")));
                }
            }
        }
    }
    assert!(
        num_arrows > 1000,
        "only {num_arrows} arrows were read: the reader of imports is broken"
    );
    assert!(found.is_empty(), "circles of files:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_and_a_door_is_none() {
    let modules = Modules::of(&[
        ("lib.rs", "pub mod a;\nmod b;\npub use b::Thing;"),
        ("a/mod.rs", "mod inner;\npub use inner::Small;\npub struct Large;"),
        ("a/inner.rs", "use super::Large;\npub struct Small;"),
        ("b.rs", "use crate::a::Small;\npub struct Thing;"),
    ]);
    assert!(circles(&modules.arrows()).is_empty(), "doors are no circles");

    let modules = Modules::of(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "use crate::b::{self, Second};\npub struct First; fn f() { b::run() }",
        ),
        (
            "b.rs",
            "pub struct Second; pub fn run() { let _: crate::a::First; }",
        ),
    ]);
    let found = circles(&modules.arrows());
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].iter().map(String::as_str).collect::<Vec<_>>(),
        ["a.rs", "b.rs"]
    );

    let modules = Modules::of(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "use crate::b::Second;"),
        (
            "b.rs",
            "pub struct Second; // crate::a::First\n#[cfg(test)]\nmod tests { use crate::a::First; }",
        ),
    ]);
    assert!(
        circles(&modules.arrows()).is_empty(),
        "comments and tests are no needs"
    );
}
