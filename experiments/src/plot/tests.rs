use super::*;
use pleach_tests::assert_well_formed;

fn drawn(plot: &Plot) -> String {
    let html = markup(plot).into_string();
    assert_well_formed(&html);
    for bad in ["NaN", "inf\"", "<script", "<b>"] {
        assert!(!html.contains(bad), "{bad} in {html}");
    }
    html
}

#[test]
fn a_plot_is_well_formed_labelled_and_escaped_whatever_the_names_and_values() {
    let hostile = "</title><script>alert(1)</script><b>\"&\u{1b}";
    let x = Axis::of(hostile).seconds().log();
    let points = [(1.0, 0.0), (f64::NAN, 2.0), (1e9, f64::INFINITY), (60.0, 1.0)];
    type Make = fn(&str, [(f64, f64); 4]) -> Mark;
    let all: [Make; 5] = [
        |name, points| Mark::line(name, points),
        |name, points| Mark::steps(name, points),
        |name, points| Mark::area(name, points),
        |name, points| Mark::dots(name, points),
        |name, points| Mark::boxes(name, points),
    ];
    let marks = all.map(|mark| mark(hostile, points));
    assert!(marks.iter().all(|mark| mark.points.len() <= 2));
    let plot = Plot::new(hostile, x, Axis::of(hostile)).with(marks);
    let html = drawn(&plot.with([Mark::level(hostile, 0.5), Mark::line("", points)]));
    assert!(
        html.contains("role=\"img\" aria-label=\"&lt;/title&gt;"),
        "{html}"
    );
    assert!(html.contains("<figcaption>"));
}

#[test]
fn long_series_are_thinned_and_many_series_are_counted() {
    let long = (0..100_000).map(|at| (f64::from(at), f64::from(at % 7)));
    let of = |place: usize| Mark::line(&format!("series {place}"), long.clone());
    let plot = Plot::new("long", Axis::of("x"), Axis::of("y")).with((0..30).map(of));
    let html = drawn(&plot);
    assert!(html.len() < 200_000, "{}", html.len());
    assert!(html.contains("6 more are in the table"));
}

#[test]
fn rows_have_their_names_and_remarks_and_need_no_legend() {
    let row = |name: &str, mean: f64| {
        let mark = Mark::interval(name, mean, Some((mean - 0.1, mean + 0.1)));
        (name.to_string(), format!("{mean:.2}"), vec![mark])
    };
    let plot = Plot::new("ratios", Axis::of("ratio").log(), Axis::default()).of_policies();
    let plot = plot.with_rows([row("sjf", 0.9), row("tree", 0.8)]);
    let html = drawn(&plot.with([Mark::rule("", (1.0, f64::NEG_INFINITY), (1.0, f64::INFINITY))]));
    assert!(!html.contains("legend") && html.contains(">0.90<") && html.contains(">tree<"));
    // One dot each, the tree in its own colour.
    assert_eq!(html.matches("a4 4 0 1 0 8 0").count(), 2);
    assert!(html.contains("fill=\"var(--s1)\""));
}

#[test]
fn divided_bars_never_grow_over_their_length_and_bars_without_a_part_are_left_out() {
    let bar = |name: &str, parts: [f64; 2]| {
        let parts = ["a", "b"]
            .into_iter()
            .zip(parts)
            .map(|(name, part)| (name.to_string(), part));
        (name.to_string(), "9 h".to_string(), parts.collect::<Vec<_>>())
    };
    let bars = [
        bar("one", [0.75, 0.25]),
        bar("none", [f64::NAN, 0.0]),
        bar("much", [0.9, 0.9]),
    ];
    let plot = Plot::divided("parts", bars).unwrap();
    let names: Vec<&str> = plot.rows.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(names, ["one", "much"]);
    assert_eq!(plot.marks[3].points, [(0.9, 0.0), (1.0, 1.0)]);
    assert!(drawn(&plot).contains("75 %"));
    assert!(Plot::divided("parts", [bar("none", [0.0, 0.0])]).is_none());
}

#[test]
fn bars_skip_what_is_no_number_and_label_every_so_many() {
    let labels = (0..50).map(|number| format!("label-{number}")).collect();
    let values = (0..50)
        .map(|number| if number == 7 { f64::NAN } else { 0.5 })
        .collect();
    let plot = Plot::bars(
        "bars",
        "x",
        Axis::of("part").percent(),
        labels,
        &[("<a>", values)],
    )
    .unwrap();
    let html = drawn(&plot);
    assert_eq!(html.matches("<rect").count(), 49);
    assert!(html.contains(">label-0<") && !html.contains(">label-1<"));
    assert!(Plot::bars("none", "x", Axis::of("y"), Vec::new(), &[]).is_none());
}

#[test]
fn a_distribution_of_one_job_and_of_none() {
    let of = |values: &[f64]| Plot::distribution(("d", "x", "y"), 1.0, [("a", distribution_points(values))]);
    drawn(&of(&[0.0]).unwrap());
    assert!(of(&[]).is_none());
}

#[test]
fn a_plot_reads_back_as_it_was_written() {
    let plot = Plot::new(
        "p",
        Axis::of("x").names(vec!["a".into()]),
        Axis::of("y").percent(),
    );
    let plot = plot.with([Mark::dots("d", [(0.5, 0.25)])]).of_policies();
    let text = serde_json::to_string(&plot).unwrap();
    assert_eq!(serde_json::from_str::<Plot>(&text).unwrap(), plot);
}
