use super::super::tests::small_tree;
use super::*;
use std::path::PathBuf;

/// A folder that is gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("pleach-bundle-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn refusal(&self) -> String {
        Bundle::open(&self.0).unwrap_err().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn manifest_of(tree: &Tree, files: &[(&str, String)]) -> String {
    let manifest = Manifest {
        format: BUNDLE_FORMAT.into(),
        version: BUNDLE_VERSION,
        name: tree.meta().name.clone(),
        tree_hash: tree.hash(),
        made_by: "a test".into(),
        commit: None,
        trained_by: tree.meta().trained_by.clone(),
        recorded_on: BTreeMap::new(),
        files: files
            .iter()
            .map(|(name, text)| BundledFile::of(name, text.as_bytes()))
            .collect(),
    };
    serde_json::to_string(&manifest).unwrap()
}

fn bundle(name: &str) -> (Folder, String) {
    let tree = small_tree().with_golden();
    let files = [("tree.json", tree.to_json()), ("tree.txt", tree.to_text())];
    let folder = Folder::new(name);
    files.iter().for_each(|(name, text)| folder.write(name, text));
    let manifest = manifest_of(&tree, &files);
    folder.write(MANIFEST_FILE, &manifest);
    (folder, manifest)
}

#[test]
fn a_whole_bundle_gives_its_tree() {
    let (folder, _) = bundle("whole");
    let found = Bundle::open(&folder.0).unwrap();
    assert_eq!(found.tree, small_tree().with_golden());
    assert_eq!(found.manifest.files.len(), 2);
}

#[test]
fn a_changed_missing_or_additional_file_is_refused_by_its_name() {
    let (folder, _) = bundle("changed");
    folder.write("tree.txt", "another text");
    assert!(
        folder.refusal().contains("tree.txt: it has 12 bytes of SHA-256 "),
        "{}",
        folder.refusal()
    );
    fs::remove_file(folder.0.join("tree.txt")).unwrap();
    assert!(
        folder.refusal().contains("tree.txt: it is missing"),
        "{}",
        folder.refusal()
    );
    folder.write("tree.txt", &small_tree().to_text());
    assert!(Bundle::open(&folder.0).is_ok());
    folder.write("more.txt", "");
    assert!(
        folder
            .refusal()
            .contains("more.txt: the manifest does not list it")
    );
    fs::remove_file(folder.0.join("more.txt")).unwrap();
    fs::create_dir(folder.0.join("more")).unwrap();
    assert!(folder.refusal().contains("more: the manifest does not list it"));
    fs::remove_dir(folder.0.join("more")).unwrap();
    fs::remove_file(folder.0.join(MANIFEST_FILE)).unwrap();
    assert!(folder.refusal().contains("manifest.json: it is missing"));
}

#[test]
fn manifests_that_are_none_are_refused_under_their_key_wherever_they_are_cut() {
    let (folder, good) = bundle("manifest");
    let cases = [
        (
            "pleach-bundle",
            "zip",
            "format = \"zip\": allowed is \"pleach-bundle\"",
        ),
        (
            "\"version\":1",
            "\"version\":2",
            "version = 2: this program reads 1",
        ),
        ("\"version\":1", "\"version\":-1", "invalid value: integer `-1`"),
        (
            "\"tree.txt\"",
            "\"../tree.txt\"",
            "files: \"../tree.txt\": allowed are letters",
        ),
        (
            "\"tree.txt\"",
            "\"/etc/passwd\"",
            "files: \"/etc/passwd\": allowed are letters",
        ),
        ("\"tree.txt\"", "\"a\\\\b\"", "allowed are letters"),
        ("\"tree.txt\"", "\"..\"", "files: \"..\": allowed are letters"),
        ("\"tree.txt\"", "\"\"", "files: \"\": allowed are letters"),
        (
            "\"tree.txt\"",
            "\"tree.json\"",
            "files: tree.json stands there twice",
        ),
        (
            "\"tree.txt\"",
            "\"manifest.json\"",
            "files: manifest.json stands there twice, or is the manifest",
        ),
        (
            "\"tree.json\"",
            "\"three.json\"",
            "tree.json: the manifest does not list it",
        ),
        ("\"size_bytes\":", "\"size_bytes\":9999999999", "at most 16777216"),
        ("\"size_bytes\":", "\"size_bytes\":-", "invalid value: integer `-"),
        ("\"size_bytes\":", "\"size_bytes\":1", "tree.json: it has "),
        ("\"made_by\"", "\"made\"", "unknown field `made`"),
        (
            "\"name\":\"test\"",
            "\"name\":\"best\"",
            "name is not that of tree.json",
        ),
        ("\"seed\":7", "\"seed\":8", "trained_by is not that of tree.json"),
        (
            "\"recorded_on\":{}",
            "\"recorded_on\":{\"a\":1}",
            "recorded_on is not that of tree.json",
        ),
        (
            "\"tree_hash\":\"",
            "\"tree_hash\":\"0",
            "tree_hash is not that of tree.json",
        ),
    ];
    for (from, to, reason) in cases {
        assert!(good.contains(from), "the example has no {from}");
        folder.write(MANIFEST_FILE, &good.replacen(from, to, 1));
        let text = folder.refusal();
        assert!(text.contains(reason), "{from} -> {to}: {text}");
    }
    for length in 0..good.len() {
        folder.write(MANIFEST_FILE, &good[..length]);
        assert!(folder.refusal().contains("manifest.json"), "{length}");
    }
    let tree = small_tree();
    let many: Vec<(String, String)> = (0..65)
        .map(|number| (format!("f{number}"), String::new()))
        .collect();
    let many: Vec<(&str, String)> = many
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    folder.write(MANIFEST_FILE, &manifest_of(&tree, &many));
    assert!(folder.refusal().contains("there are 65, and at most 64 are read"));
    folder.write(MANIFEST_FILE, &" ".repeat(MAX_BYTES as usize + 1));
    assert!(folder.refusal().contains("larger than 1048576 bytes"));
}

#[test]
fn a_tree_that_is_refused_alone_is_refused_in_a_bundle() {
    let tree = small_tree().with_golden();
    let text = tree.to_json().replace("\"rule\":1", "\"rule\":2");
    let folder = Folder::new("tree");
    folder.write(MANIFEST_FILE, &manifest_of(&tree, &[("tree.json", text.clone())]));
    folder.write("tree.json", &text);
    assert!(
        folder
            .refusal()
            .contains("tree.json: policy file: golden.rule = 2"),
        "{}",
        folder.refusal()
    );
    let manifest = manifest_of(&tree, &[]);
    fs::remove_file(folder.0.join("tree.json")).unwrap();
    folder.write(MANIFEST_FILE, &manifest);
    assert!(folder.refusal().contains("files: tree.json is not listed"));
}

#[cfg(unix)]
#[test]
fn links_are_refused_even_to_the_same_content() {
    let (folder, good) = bundle("links");
    let elsewhere = Folder::new("elsewhere");
    for name in ["tree.txt", "tree.json", MANIFEST_FILE] {
        let (inside, outside) = (folder.0.join(name), elsewhere.0.join(name));
        fs::rename(&inside, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        let text = folder.refusal();
        assert!(text.contains(&format!("{name}: it is a link")), "{text}");
        fs::remove_file(&inside).unwrap();
        fs::rename(&outside, &inside).unwrap();
    }
    folder.write(MANIFEST_FILE, &good);
    assert!(Bundle::open(&folder.0).is_ok());
}
