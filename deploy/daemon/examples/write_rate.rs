//! How many changes a second the daemon's `scontrol` makes: factors, and nodes that are named and lifted again.
//! `deploy/daemon/tests/rate_slurm.sh` runs it on a Slurm whose jobs all wait and none may start.
//!
//! `cargo run --release -p pleach-daemon --example write_rate -- NODE`

use std::time::Instant;

use pleach_daemon::Settings;
use pleach_daemon::slurm::feed::{Feed, Line};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("name a node")?;
    let commands = Settings {
        command_limit_s: 600.0,
        ..Settings::default()
    }
    .commands();
    let text = commands.run("squeue", &["-h", "-t", "PENDING", "-o", "%i"])?;
    let jobs: Vec<&str> = text.lines().collect();
    let nodes = [node];
    let lines =
        |line: &dyn Fn(&str) -> Option<Line>| jobs.iter().copied().filter_map(line).collect::<Vec<Line>>();
    let mut feed = Feed::default();
    for (what, lines) in [
        ("get a factor", lines(&|job| Line::factor(job, 1000))),
        ("lose it", lines(&|job| Line::factor(job, 0))),
        ("get a node by name", lines(&|job| Line::nodes(job, &nodes))),
        ("lose it", lines(&|job| Line::nodes(job, &[]))),
    ] {
        let began = Instant::now();
        // No more at once than the daemon writes.
        for part in lines.chunks(500) {
            if let Some(first) = feed.carry_out(&commands, part)?.first() {
                return Err(format!("lines were refused: {first}").into());
            }
        }
        let (num, took_s) = (jobs.len(), began.elapsed().as_secs_f64());
        println!(
            "{num} jobs {what} in {took_s:.2} s: {:.0} a second",
            num as f64 / took_s
        );
    }
    Ok(())
}
