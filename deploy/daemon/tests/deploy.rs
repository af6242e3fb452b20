//! The files that an operator takes as they are: the dashboard asks for figures that the programs have, and for all of them; the
//! unit starts the program with flags that it has, and the packages bring the same files. deploy/daemon/tests/package_slurm.sh builds them,
//! installs them and drives a Slurm.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use pleach_daemon::leases::LeaseStatus;
use pleach_daemon::metrics::Metrics;
use pleach_daemon::slurm::Slurm;
use pleach_daemon::state::Status;
use pleach_daemon::{BatchSystem, Settings};
use serde_json::Value;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// What a unit says behind a key.
fn key<'a>(unit: &'a str, key: &str) -> &'a str {
    unit.lines().find_map(|line| line.strip_prefix(key)).unwrap()
}

/// Names of samples in a text of metrics.
fn samples(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("pleach_"));
    let name = |line: &str| line.split(['{', ' ']).next().unwrap().to_owned();
    lines.map(name).collect()
}

/// What both programs tell after a round: the daemon for Slurm over its port, the controller for Kubernetes over its server.
fn told() -> BTreeSet<String> {
    let mut slurm = Metrics::new(Slurm::WORDS.left_alone);
    slurm.listen(0).unwrap();
    slurm.publish(&Status::default());
    let mut caller = TcpStream::connect(slurm.address().unwrap()).unwrap();
    caller.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    caller.read_to_string(&mut text).unwrap();
    let mut kubernetes = Metrics::new(("jobs_left_alone", "Jobs that are left to the batch system"));
    kubernetes.publish(&Status {
        leases: Some(LeaseStatus::default()),
        num_unheld: Some(0),
        ..Status::default()
    });
    let mut names = samples(&text);
    assert!(names.len() > 15, "{text}");
    names.extend(samples(&kubernetes.text().lock().unwrap()));
    names
}

/// Names of figures in a text of queries.
fn asked(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("pleach_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_dashboard_asks_for_what_the_programs_tell_and_for_all_of_it() {
    let board: Value = serde_json::from_str(&file("dashboard.json")).unwrap();
    let mut queries = BTreeSet::new();
    let variables = board["templating"]["list"].as_array().unwrap();
    for variable in variables {
        queries.extend(asked(&variable["query"].to_string()));
    }
    for panel in board["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        assert!(
            !targets.is_empty()
                && targets
                    .iter()
                    .all(|target| !asked(&target["expr"].to_string()).is_empty())
        );
        for target in targets {
            queries.extend(asked(target["expr"].as_str().unwrap()));
        }
    }
    let told = told();
    let unknown: Vec<_> = queries.difference(&told).collect();
    assert!(unknown.is_empty(), "nobody tells {unknown:?}: there are {told:?}");
    let unseen: Vec<_> = told.difference(&queries).collect();
    assert!(unseen.is_empty(), "no panel shows {unseen:?}");
}

#[test]
fn the_unit_starts_the_program_with_flags_that_it_has() {
    let flags_of = |unit: &str| {
        let line = key(unit, "ExecStart=");
        let flags = line.strip_prefix("/usr/bin/pleach-scheduler ").unwrap();
        flags.to_owned()
    };
    let run = |flags: &str| {
        // Flags before it are read first: help is given only where all of them are known.
        let words = flags.split(' ').chain(["--help"]);
        Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
            .args(words)
            .output()
            .unwrap()
    };
    let unit = file("pleach-scheduler.service");
    for flags in [flags_of(&unit), flags_of(&file("pleach-capture.service"))] {
        let ran = run(&flags);
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        assert!(!run(&flags.replace(" --", " --no-")).status.success());
    }
    assert!(unit.contains("ExecReload=/bin/kill -HUP $MAINPID") && unit.contains("StateDirectory=pleach\n"));
}

#[test]
fn the_configuration_of_the_packages_is_taken_as_it_is_and_says_the_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/pleach.toml");
    assert_eq!(Settings::load(&path).unwrap(), Settings::default());
    // What is commented out is taken too.
    let lines = file("pleach.toml");
    let whole: Vec<&str> = lines
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| line.starts_with('[') || line.contains(" = "))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pleach.toml");
    std::fs::write(&path, whole.join("\n")).unwrap();
    let settings = Settings::load(&path).unwrap();
    assert_eq!(settings.metrics_port, Some(9817));
    assert_eq!(settings.gpu_types.len(), 1);
}

/// Where a package puts its files: sources of one are in the other at the same places.
fn installed(assets: &[toml::Value], from: &dyn Fn(&toml::Value) -> [String; 2]) -> BTreeSet<[String; 2]> {
    let whole = |[source, place]: [String; 2]| {
        let name = source.rsplit('/').next().unwrap();
        let place = format!("/{}", place.trim_start_matches('/'));
        [
            source.clone(),
            if place.ends_with('/') { place + name } else { place },
        ]
    };
    assets.iter().map(|asset| whole(from(asset))).collect()
}

#[test]
fn both_packages_bring_the_same_files_and_make_the_account_of_the_unit() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest: toml::Value = toml::from_str(&std::fs::read_to_string(manifest).unwrap()).unwrap();
    let metadata = &manifest["package"]["metadata"];
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let list = |name: &str| metadata[name]["assets"].as_array().unwrap().clone();
    let mut deb = installed(&list("deb"), &|asset| [text(&asset[0]), text(&asset[1])]);
    // cargo-deb finds the units itself.
    for unit in metadata["deb"]["systemd-units"].as_array().unwrap() {
        let name = format!("{}.service", text(&unit["unit-name"]));
        deb.insert([
            format!("deploy/{name}"),
            format!("/usr/lib/systemd/system/{name}"),
        ]);
    }
    let rpm = installed(&list("generate-rpm"), &|asset| {
        [text(&asset["source"]), text(&asset["dest"])]
    });
    assert_eq!(deb, rpm);

    let unit = file("pleach-scheduler.service");
    let user = key(&unit, "User=");
    // Forecasts are made from the log of that account, into its folder.
    for other in ["pleach-capture.service", "pleach-forecasts.service"].map(file) {
        assert_eq!(
            (key(&other, "User="), key(&other, "ReadWritePaths=")),
            (user, "/var/lib/pleach")
        );
    }
    let made = format!("useradd --system --user-group --home-dir /var/lib/{user}");
    let scripts = [
        file("deb/postinst"),
        text(&metadata["generate-rpm"]["pre_install_script"]),
    ];
    for script in scripts {
        assert!(
            script.contains(&made) && script.contains(&format!("getent passwd {user}")),
            "{script}"
        );
    }
    let program = key(&unit, "ExecStart=");
    assert!(
        rpm.iter()
            .any(|[_, place]| program.split(' ').next() == Some(place))
    );
}
