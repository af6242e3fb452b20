//! Resident memory of the daemon while jobs pass through it: the program's own `Service` in shadow mode, fed with texts as
//! `squeue` and `sinfo` print them. Prints the peak (`VmHWM`) and the present size (`VmRSS`), MiB, as ever more jobs are over.
//!
//! `memory [NUM_JOBS [POLICY [NUM_NODES]]]`: a million jobs, `sjf` and 500 nodes of four GPUs, if not told.

#[cfg(unix)]
#[path = "../tests/passing/mod.rs"]
mod passing;

use std::error::Error;

/// A line of `/proc/self/status`, MiB.
#[cfg(unix)]
fn size_mib(name: &str) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let words = line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next());
    Ok(words.ok_or("no such line")?.parse::<f64>()? / 1024.0)
}

#[cfg(unix)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let num_jobs: u64 = args.next().as_deref().unwrap_or("1000000").parse()?;
    let policy = args.next().unwrap_or_else(|| "sjf".into());
    let num_nodes: u64 = args.next().as_deref().unwrap_or("500").parse()?;
    let folder = tempfile::tempdir()?;
    let stream = passing::Stream {
        num_nodes,
        num_users: 5000,
        num_users_kept: 2000,
    };
    let mut passing = passing::Passing::new(folder.path(), stream, &policy)?;
    println!("{} jobs run and as many wait", stream.num_jobs());
    let mut next = (num_jobs / 100).max(1);
    let mut num_ended = 0;
    while num_ended < num_jobs {
        num_ended = passing.round()?;
        if num_ended >= next {
            let (peak, now) = (size_mib("VmHWM")?, size_mib("VmRSS")?);
            println!("{num_ended} jobs over: peak {peak:.1} MiB, now {now:.1} MiB");
            next = if next * 10 >= num_jobs {
                num_jobs.max(next + 1)
            } else {
                next * 10
            };
        }
    }
    let mut files: Vec<_> = std::fs::read_dir(folder.path().join("state"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        println!(
            "{} {} bytes",
            file.file_name().to_string_lossy(),
            file.metadata()?.len()
        );
    }
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("the commands of this example are shell scripts");
}
