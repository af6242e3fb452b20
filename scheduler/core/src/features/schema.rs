//! A schema as a value: what reads columns without writing them needs no more, whatever the rows are about.

use std::fmt;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::feature::{Among, Feature, Group, RowKind, Scale};
use super::law::Law;

/// Most columns of a schema. *Assumed*; trees number them in fifteen bits.
const MAX_FEATURES: usize = 128;

/// A frozen beginning of a schema's list of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name, in configurations and files.
    pub name: &'static str,
    /// Columns, of rows and context together.
    pub len: usize,
    /// Those of a row.
    pub num_row: usize,
    /// Those of the context.
    pub num_context: usize,
}

impl View {
    /// The first `len` columns of a list.
    #[must_use]
    pub const fn of(name: &'static str, features: &[Feature], len: usize) -> View {
        let (num_row, num_context) = widths(features, len);
        View {
            name,
            len,
            num_row,
            num_context,
        }
    }
}

/// All columns of one kind of decision, and their order.
pub struct FeatureSchema {
    /// Its name.
    pub name: &'static str,
    /// Kinds of rows; a set of them is [`Kinds`](super::Kinds).
    pub kinds: &'static [RowKind],
    /// All columns, by their numbers. At most 128.
    pub features: &'static [Feature],
    /// What holds between them.
    pub laws: &'static [Law],
    /// Frozen beginnings, the oldest and shortest first; at least one.
    pub views: &'static [View],
    hashes: OnceLock<Vec<String>>,
}

impl PartialEq for FeatureSchema {
    /// Schemas are statics: each is itself alone.
    fn eq(&self, other: &FeatureSchema) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for FeatureSchema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "FeatureSchema({}, {} columns)",
            self.name,
            self.features.len()
        )
    }
}

/// Columns of rows and of the context among the first `len`.
pub(super) const fn widths(features: &[Feature], len: usize) -> (usize, usize) {
    let (mut num_row, mut at) = (0, 0);
    while at < len {
        num_row += matches!(features[at].group, Group::Row) as usize;
        at += 1;
    }
    (num_row, len - num_row)
}

/// Place of a column in its row or context: the columns of its group before it.
pub(super) const fn place_of(features: &[Feature], index: usize) -> usize {
    let (num_row, num_context) = widths(features, index);
    match features[index].group {
        Group::Row => num_row,
        Group::Context => num_context,
    }
}

impl FeatureSchema {
    /// A schema of these columns.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kinds: &'static [RowKind],
        features: &'static [Feature],
        laws: &'static [Law],
        views: &'static [View],
    ) -> FeatureSchema {
        assert!(features.len() <= MAX_FEATURES && kinds.len() <= 16 && !views.is_empty());
        FeatureSchema {
            name,
            kinds,
            features,
            laws,
            views,
            hashes: OnceLock::new(),
        }
    }

    /// Hex SHA-256 over the canonical text of the first view.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hashes()[0]
    }

    /// The same of each view.
    fn hashes(&self) -> &[String] {
        self.hashes.get_or_init(|| {
            let views = self.views.iter();
            views.map(|view| hash_of(&self.canonical_of(view.len))).collect()
        })
    }

    /// The hash of a view of this schema; the first view's for one that is not.
    #[must_use]
    pub fn hash_of(&self, view: &View) -> &str {
        let place = self.views.iter().position(|own| own == view);
        &self.hashes()[place.unwrap_or(0)]
    }

    /// The view with a hash.
    #[must_use]
    pub fn view_of_hash(&self, hash: &str) -> Option<&'static View> {
        self.views.get(self.hashes().iter().position(|own| own == hash)?)
    }

    /// The view with a name.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<&'static View> {
        self.views.iter().find(|view| view.name == name)
    }

    /// The view with a name.
    ///
    /// # Errors
    /// The names of all views, for a name that none has.
    pub fn view_named(&self, name: &str) -> Result<&'static View, String> {
        let known = || self.views.iter().map(|view| view.name);
        self.view(name)
            .ok_or_else(|| known().collect::<Vec<_>>().join(", "))
    }

    /// Columns of a candidate, in the order of its row. `[F]`
    pub fn of_rows(&self) -> impl Iterator<Item = &'static Feature> {
        self.features.iter().filter(|feature| feature.group == Group::Row)
    }

    /// Columns of the cluster and its queue, in their order. `[G]`
    pub fn of_context(&self) -> impl Iterator<Item = &'static Feature> {
        self.features
            .iter()
            .filter(|feature| feature.group == Group::Context)
    }

    /// Number of a column: its index in a joined row.
    #[must_use]
    pub fn joined_index(&self, name: &str) -> Option<usize> {
        self.features.iter().position(|feature| feature.name == name)
    }

    /// The column with a number; none beyond the last.
    #[must_use]
    pub fn joined(&self, index: usize) -> Option<&'static Feature> {
        self.features.get(index)
    }

    /// Name of the column with a number; `?` beyond the last.
    #[must_use]
    pub fn joined_name(&self, index: usize) -> &'static str {
        self.joined(index).map_or("?", |feature| feature.name)
    }

    /// Place of a column in its row or context.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn place(&self, index: usize) -> usize {
        place_of(self.features, index)
    }

    /// Columns that a joined row needs in order to hold this one: those of the first view, or all up to it. It does not change when
    /// columns are added.
    #[must_use]
    pub fn width_to(&self, index: usize) -> usize {
        self.views[0].len.max(index + 1)
    }

    /// Columns of a row and of the context in a joined row of that width.
    #[must_use]
    pub fn widths(&self, width: usize) -> (usize, usize) {
        widths(self.features, width)
    }

    /// Joins a row and its context by the numbers of the columns, as many as `joined` has room for.
    ///
    /// # Panics
    /// If row or context lack one of those columns.
    pub fn join(&self, row: &[f32], context: &[f32], joined: &mut [f32]) {
        let (mut rows, mut contexts) = (row.iter(), context.iter());
        for (value, feature) in joined.iter_mut().zip(self.features) {
            let next = match feature.group {
                Group::Row => rows.next(),
                Group::Context => contexts.next(),
            };
            *value = *next.expect("a row has all columns of its view");
        }
    }

    /// The same in one piece, all columns that the two have.
    #[must_use]
    pub fn joined_row(&self, row: &[f32], context: &[f32]) -> Vec<f32> {
        let mut joined = vec![0.0; row.len() + context.len()];
        self.join(row, context, &mut joined);
        joined
    }

    /// The schema as a Markdown page, `features.md` of the site.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "# Features\n\nWhat a network or a tree may read. This page is the output of `pleach policies --features`.\n\
             The number of a column never changes: lines are added at the end only, and a joined row has the columns by \
             their numbers.\nA raw value is clamped to its range and then scaled: *linear d* is raw / d, *log d* is log10(1 + raw) \
             / d.\nA column is 0 in rows of other kinds than those that are named. It stands equal, up or down where the same job \
             has waited\nlonger, and where its estimate is shorter, all else being equal.\n\n",
        );
        let views = self.views.iter().zip(self.hashes());
        for (view, hash) in views.filter(|(view, _)| !is_of_tests(view.name)) {
            let View {
                name,
                num_row,
                num_context,
                ..
            } = view;
            text.push_str(&format!(
                "View `{name}`: the first {num_row} columns of a candidate and {num_context} of the cluster.\nSchema hash: `{hash}`\n"
            ));
        }
        for (title, group) in [
            ("Of a candidate", Group::Row),
            ("Of the cluster and its queue", Group::Context),
        ] {
            text.push_str(&self.table(title, |number| self.features[number].group == group));
        }
        text
    }

    /// Some columns, by their numbers, under a title of the second level.
    #[must_use]
    pub fn table(&self, title: &str, has: impl Fn(usize) -> bool) -> String {
        let mut text = format!(
            "\n## {title}\n\n| # | name | unit | range | scale | in rows that | waited longer | shorter estimate | who controls it | meaning |\n\
             |---|---|---|---|---|---|---|---|---|---|\n"
        );
        let all = self.features.iter().enumerate();
        for (index, feature) in all.filter(|(number, feature)| has(*number) && !is_of_tests(feature.name)) {
            let Feature {
                name,
                unit,
                min,
                max,
                doc,
                ..
            } = feature;
            let scale = match feature.scale {
                Scale::Linear(divisor) => format!("linear {divisor}"),
                Scale::Log(divisor) => format!("log {divisor}"),
            };
            let [waiting, estimate, _] = feature
                .moves
                .map(|relation| format!("{relation:?}").to_lowercase());
            let control = format!("{:?}", feature.control).to_lowercase();
            let kinds = self.among_in_words(feature);
            text.push_str(&format!(
                "| {index} | `{name}` | {unit} | {min} to {max} | {scale} | {kinds} | {waiting} | {estimate} | {control} | {doc} |\n"
            ));
        }
        text
    }

    fn among_in_words(&self, feature: &Feature) -> String {
        let has = |kind: usize| match feature.among {
            Among::Flag(own) => own == kind,
            Among::Varies(kinds) => kinds.has(kind),
        };
        let kinds = (0..self.kinds.len()).filter(|kind| has(*kind));
        let names: Vec<&str> = kinds.map(|kind| self.kinds[kind].name).collect();
        if names.len() == self.kinds.len() {
            "all".into()
        } else {
            names.join(", ")
        }
    }

    /// The canonical text of the first view: one line for each column, everything that changes a policy's input.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.canonical_of(self.views[0].len)
    }

    /// The same of the first `len` columns, those of rows first.
    #[must_use]
    pub fn canonical_of(&self, len: usize) -> String {
        let mut text = String::from("pleach features 1\n");
        for group in [Group::Row, Group::Context] {
            let features = self.features[..len].iter();
            for feature in features.filter(|feature| feature.group == group) {
                text.push_str(&feature.line());
                text.push('\n');
            }
        }
        text
    }
}

/// Columns and views that builds with debug assertions have beside the others.
fn is_of_tests(name: &str) -> bool {
    cfg!(debug_assertions) && name.starts_with("test")
}

/// Hex SHA-256 of a text.
pub(crate) fn hash_of(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
