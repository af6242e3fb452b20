//! Pages and plots that browsers can read.

/// Checks that every tag of `html` is closed in order and that every attribute is quoted.
///
/// # Panics
/// At the first that is not.
pub fn assert_well_formed(html: &str) {
    const VOID: [&str; 4] = ["meta", "br", "hr", "input"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "stray > in {:?}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("an open tag");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
            continue;
        }
        let name = tag.split_whitespace().next().expect("a tag's name").to_string();
        if name == "style" || name == "script" {
            let end = format!("</{name}>");
            let close = rest.find(&end).expect("the end of the style or script");
            rest = &rest[close + end.len()..];
        } else if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}
