//! A network that PyTorch wrote, at the commands that play policies. `tests/tests/doors.rs` holds its decisions to one another.

use std::fs;

use serde_json::Value;

use super::succeed;

const NETWORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/networks/pytorch.onnx");

#[cfg(feature = "lab")]
#[test]
fn a_network_of_pytorch_plays_in_comparisons_in_tournaments_and_in_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let on = "--workload Pleach/GavelMulti-v1 --num-jobs 40 --seeds 1 --quiet";
    let policies = format!("--policy sjf,net={NETWORK}");
    succeed(here, &format!("evaluate {on} {policies} --json evaluate.json"));
    succeed(
        here,
        &format!("tournament {on} {policies} --condition ideal --json tournament.json"),
    );
    let grid = format!(
        "name = 's'\n[base]\nworkload = 'Pleach/GavelMulti-v1'\nnum_jobs = 40\n[grid]\npolicy = ['sjf', 'net={NETWORK}']\n"
    );
    fs::write(here.join("grid.toml"), grid).unwrap();
    for _ in 0..2 {
        succeed(here, "sweep plan --config grid.toml");
    }
    succeed(here, "sweep plan --config grid.toml --out s/sweep.json");
    succeed(here, "sweep run --manifest s/sweep.json --quiet");
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(here.join(name)).unwrap()).unwrap() };
    let (evaluated, played) = (read("evaluate.json"), read("tournament.json"));
    let figure = |value: &Value| value["avg_jct_s"].as_f64().unwrap();
    let evaluated = ["sjf", "net"].map(|name| figure(&evaluated["policies"][name]));
    let standings = played["rounds"][0]["standings"].as_array().unwrap();
    let played = ["sjf", "net"].map(|name| {
        let row = standings.iter().find(|row| row["policy"] == name);
        figure(&row.unwrap()["metrics"])
    });
    let swept = [0, 1].map(|unit| figure(&read(&format!("s/units/{unit}/result.json"))["value"]["metrics"]));
    // The network spreads and is a half behind, whichever command plays it; a heuristic in its place would not be.
    for [sjf, net] in [evaluated, played, swept] {
        assert!((1.2 * sjf..3.0 * sjf).contains(&net), "{net} of {sjf}");
    }
}
