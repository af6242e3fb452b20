//! Product code includes no file from outside its crate: a crate that is published alone has nothing else to compile.
//!
//! A file that users and other crates take from elsewhere is a relative link inside the crate. Cargo packages what it points to.

use crate::sizes::{product_files, product_lines, root};

/// What stands in the brackets of each `include!`, `include_str!` and `include_bytes!`.
fn included(text: &str) -> Vec<&str> {
    let calls = ["include!(", "include_str!(", "include_bytes!("];
    let starts = calls
        .iter()
        .flat_map(|call| text.match_indices(call).map(|(at, call)| at + call.len()));
    let inside = starts.map(|start| {
        let mut depth = 1;
        let end = text[start..].find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        &text[start..start + end.unwrap_or(0)]
    });
    inside.collect()
}

/// Whether a path that is included from a file so many folders below its crate leads out of the crate.
fn leads_out(path: &str, depth: usize) -> bool {
    let is_of_crate = path.contains("CARGO_MANIFEST_DIR");
    path.matches("../").count() > if is_of_crate { 0 } else { depth }
}

#[test]
fn product_code_includes_no_file_from_outside_its_crate() {
    let (mut num_included, mut found) = (0, Vec::new());
    for file in product_files() {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap();
        // `CRATE/src/FILE.rs` lies one folder below its crate.
        let depth = name.matches('/').count() - 1;
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = product_lines(&text).join("\n");
        for path in included(&lines) {
            num_included += 1;
            if leads_out(path, depth) {
                found.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(num_included > 15, "only {num_included} includes were read");
    assert!(
        found.is_empty(),
        "link these into their crates:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_path_leads_out_of_its_crate_where_it_goes_up_further_than_the_file_lies_deep() {
    let text = "include_bytes!(concat!(\"../../../a/\", $name, \".ckpt\")); include_str!(\"../README.md\")";
    let paths = included(text);
    assert_eq!(
        paths,
        ["\"../README.md\"", "concat!(\"../../../a/\", $name, \".ckpt\")"]
    );
    assert!(!leads_out(paths[0], 1) && leads_out(paths[0], 0));
    assert!(!leads_out(paths[1], 3) && leads_out(paths[1], 2));
    assert!(leads_out("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../a\")", 3));
}
