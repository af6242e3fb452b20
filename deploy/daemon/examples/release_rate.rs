//! How many jobs a second the daemon's `scontrol` holds, releases, and starts on named nodes: `deploy/daemon/tests/rate_slurm.sh` runs it on a
//! Slurm whose jobs all wait and none may start.
//!
//! `cargo run --release -p pleach-daemon --example release_rate -- NODE`

use std::time::Instant;

use pleach_daemon::Settings;
use pleach_daemon::slurm::command::Commands;
use pleach_daemon::slurm::feed::{Feed, Line};
use pleach_daemon::slurm::mark::Mark;

/// Jobs of one list, as in a round.
const LIST: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).ok_or("name a node")?;
    let commands = Settings {
        command_limit_s: 600.0,
        ..Settings::default()
    }
    .commands();
    let text = commands.run("squeue", &["-h", "-t", "PENDING", "-o", "%i"])?;
    let jobs: Vec<&str> = text.lines().collect();
    let lists =
        |line: &dyn Fn(&[&str]) -> Option<Line>| jobs.chunks(LIST).filter_map(line).collect::<Vec<Line>>();
    let hold = lists(&|part| Line::hold(part, Mark::HELD));
    let release = lists(&|part| Line::release_all(part));
    let mark = Mark::Decided { since_s: 1, tries: 0 };
    let nodes = [node];
    let named: Vec<Line> = jobs
        .iter()
        .filter_map(|job| Line::decided(job, &nodes, mark, "", false))
        .collect();
    let mut feed = Feed::default();
    for (what, parts) in [
        ("held and marked", [hold.as_slice(), &[]]),
        ("released", [release.as_slice(), &[]]),
        ("held again", [hold.as_slice(), &[]]),
        (
            "named a node, marked and released",
            [named.as_slice(), release.as_slice()],
        ),
    ] {
        let took_s = carry_out(&mut feed, &commands, parts)?;
        let num = jobs.len();
        println!(
            "{num} jobs {what} in {took_s:.2} s: {:.0} a second",
            num as f64 / took_s
        );
    }
    Ok(())
}

/// Time for the lines, s. Whatever is refused is an error.
fn carry_out(
    feed: &mut Feed,
    commands: &Commands,
    parts: [&[Line]; 2],
) -> Result<f64, Box<dyn std::error::Error>> {
    let began = Instant::now();
    for part in parts {
        // No more at once than the daemon writes.
        for lines in part.chunks(LIST) {
            let said = feed.carry_out(commands, lines)?;
            if let Some(first) = said.first() {
                return Err(format!("{} lines were refused: {first}", said.len()).into());
            }
        }
    }
    Ok(began.elapsed().as_secs_f64())
}
