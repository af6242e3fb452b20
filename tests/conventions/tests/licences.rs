//! Every dependency has a permissive licence, as `.deny.toml` lists them; `cargo deny check` says more where it is installed.

use crate::cargo::metadata;

/// Licences that `.deny.toml` allows for all crates, and pairs of a crate and a licence that it allows for this crate alone.
fn allowed() -> (Vec<String>, Vec<(String, String)>) {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.deny.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let licenses = &table["licenses"];
    let names = |value: &toml::Value| -> Vec<String> {
        let list = value.as_array().unwrap().iter();
        list.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let exceptions = licenses["exceptions"].as_array().unwrap().iter();
    let exceptions = exceptions.flat_map(|entry| {
        let of = entry["crate"].as_str().unwrap().to_owned();
        names(&entry["allow"])
            .into_iter()
            .map(move |name| (of.clone(), name))
    });
    (names(&licenses["allow"]), exceptions.collect())
}

/// Whether an SPDX expression can be met. `AND` binds closer than `OR`; `/` is an old way to write `OR`.
fn is_met(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut text = expression.replace('/', " OR ");
    while let Some(close) = text.find(')') {
        let open = text[..close].rfind('(').unwrap();
        let inner = if is_met(&text[open + 1..close], is_allowed) {
            "MET"
        } else {
            "UNMET"
        };
        text.replace_range(open..=close, inner);
    }
    text.split(" OR ").any(|either| {
        either
            .split(" AND ")
            .map(str::trim)
            .all(|name| name == "MET" || (name != "UNMET" && is_allowed(name)))
    })
}

#[test]
fn licences_of_all_dependencies_are_permissive() {
    let (everybody, exceptions) = allowed();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "only {} packages", packages.len());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        let is_allowed = |known: &str| {
            everybody.iter().any(|allowed| allowed == known)
                || exceptions
                    .iter()
                    .any(|(of, allowed)| of == name && allowed == known)
        };
        assert!(
            is_met(licence, &is_allowed),
            "{name}: {licence} is not in .deny.toml"
        );
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let permissive = |name: &str| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&name);
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Zlib", true),
        ("(GPL-2.0 OR GPL-3.0) AND Zlib", false),
        ("GPL-3.0/MIT", true),
        ("Apache-2.0 WITH LLVM-exception", true),
    ] {
        assert_eq!(is_met(expression, &permissive), met, "{expression}");
    }
}
