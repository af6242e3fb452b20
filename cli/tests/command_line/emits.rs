//! `pleach sweep emit`: what is written runs, with names that no shell likes, under fakes of the program and of Slurm and Ray.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::text;

const FOLDER: &str = "it's $(touch pwned) `a` \"b\" #c 100%";

/// A unit that ends with the code in `code.INDEX` of its first tries, one a line, and with 0 after them.
const UNIT: &str = r#"#!/bin/bash
here=$(dirname "$0")/..
case "$*" in *--missing*) exec cat "$here/missing" ;; esac
printf '%s\n' "$@" >> "$here/called"
[ "$2" = unit ] || exit 0
index=${*: -1}
try=$(cat "$here/try.$index" 2>/dev/null || echo 0)
echo $((try + 1)) > "$here/try.$index"
code=$(sed -n "$((try + 1))p" "$here/code.$index" 2>/dev/null)
echo "unit $index says ${code:-0}"
[ "$code" != kill ] || kill -9 $$
exit "${code:-0}"
"#;

/// Slurm: notes what it is called with, and what it is given to read.
const SLURM: &str = r#"#!/bin/bash
here=$(dirname "$0")/..
{ echo "$(basename "$0")"; printf '%s\n' "$@"; } >> "$here/slurm"
[ "$(basename "$0")" = scontrol ] && exit 1
case "$*" in *afterany*) cat > "$here/gather.sh"; echo "8;cluster" ;; *) echo "7;cluster" ;; esac
"#;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(place.path(FOLDER)).unwrap();
        fs::create_dir(place.path("my 'bin'")).unwrap();
        for (name, program) in [("pleach", UNIT), ("sbatch", SLURM), ("scontrol", SLURM)] {
            let path = place.path("my 'bin'").join(name);
            fs::write(&path, program).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(
            place.path("grid.toml"),
            "name = 'load \"x\"'\nseeds = 3\n[grid]\nload = [0.6, 0.8]\n",
        )
        .unwrap();
        let manifest = format!("{FOLDER}/sweep.json");
        let plan = place.pleach(&["plan", "--config", "grid.toml", "--out", &manifest]);
        assert!(plan.status.success(), "{}", text(&plan.stderr));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn pleach(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
        command
            .current_dir(&self.folder)
            .arg("sweep")
            .args(words)
            .output()
            .unwrap()
    }

    fn emit(&self, words: &[&str]) -> Output {
        let manifest = format!("{FOLDER}/sweep.json");
        let shared = ["--manifest", &manifest, "--program", "my 'bin'/pleach"];
        self.pleach(&[&["emit"], words, &shared].concat())
    }

    /// Runs a program with the fakes before all others.
    fn run(&self, program: &Path, words: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let path = format!(
            "{}:{}",
            self.path("my 'bin'").display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .args(words)
            .env("PATH", path)
            .envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!self.path("pwned").exists(), "a name was run as a command");
        (output.status.code().unwrap(), said)
    }
}

#[test]
fn the_script_of_slurm_submits_itself_and_a_job_that_gathers() {
    let place = Place::new();
    let script = format!("{FOLDER}/sweep.sbatch");
    let said = place.emit(&["slurm", "--option=--account=it's"]);
    assert_eq!(
        text(&said.stdout),
        format!("{script}\nto run it: bash {script}\n"),
        "{}",
        text(&said.stderr)
    );
    let bash = Path::new("bash");
    assert_eq!(place.run(bash, &["-n", &script], &[]), (0, String::new()));
    let (code, said) = place.run(bash, &[&script], &[]);
    assert!(
        code == 0 && said.starts_with("array 7: 6 units") && said.contains("\ngather 8: "),
        "{said}"
    );
    assert!(place.path(FOLDER).join("logs").is_dir());
    let log = format!("--output={}/logs/gather-%j.log", FOLDER.replace('%', "%%"));
    let called = place.read("slurm");
    assert!(called.starts_with(&format!(
        "sbatch\n--parsable\n{script}\nsbatch\n--parsable\n--dependency=afterany:7\n"
    )));
    assert!(
        called.contains(&log) && called.contains("\n--account=it's\n"),
        "{called}"
    );
    assert_eq!(place.run(bash, &["gather.sh"], &[]).0, 0);
    assert_eq!(
        place.read("called"),
        format!("sweep\ngather\n--manifest\n{FOLDER}/sweep.json\n--out\n{FOLDER}\n")
    );
}

#[test]
fn a_task_of_slurm_passes_on_its_index_and_is_requeued_so_many_times() {
    let place = Place::new();
    assert!(
        place
            .emit(&["slurm", "--retries", "2", "--file", "s.sbatch"])
            .status
            .success()
    );
    for (index, code) in [("1", "75"), ("2", "2"), ("3", "1"), ("4", "kill"), ("5", "127")] {
        place.write(&format!("code.{index}"), &format!("{code}\n").repeat(9));
    }
    let task = |index: &str, restarts: &str| {
        place.write("slurm", "");
        let variables = [
            ("SLURM_ARRAY_JOB_ID", "7"),
            ("SLURM_ARRAY_TASK_ID", index),
            ("SLURM_RESTART_COUNT", restarts),
        ];
        let (code, said) = place.run(Path::new("bash"), &["s.sbatch"], &variables);
        (code, said, place.read("slurm"))
    };
    let (code, said, called) = task("0", "0");
    assert_eq!((code, said.as_str(), called.as_str()), (0, "unit 0 says 0\n", ""));
    assert!(
        place
            .read("called")
            .ends_with(&format!("--out\n{FOLDER}\n--index\n0\n"))
    );
    // Where Slurm does not take it back by request, RequeueExit=75 may.
    for index in ["1", "4"] {
        let (code, said, called) = task(index, "1");
        assert_eq!(
            (code, called),
            (75, format!("scontrol\nrequeue\n7_{index}\n")),
            "{said}"
        );
        let (code, said, called) = task(index, "2");
        assert!(
            code == 1 && called.is_empty() && said.contains("given up after 2"),
            "{said}"
        );
    }
    for (index, expected) in [("2", 2), ("3", 1), ("5", 127)] {
        let (code, said, called) = task(index, "0");
        assert_eq!((code, called.as_str()), (expected, ""), "{said}");
    }
}

#[test]
fn a_file_that_people_may_have_changed_is_kept_unless_they_say_otherwise() {
    let place = Place::new();
    let emit = ["ray", "--file", "driver.py"];
    assert!(place.emit(&emit).status.success());
    assert!(place.emit(&emit).status.success(), "the same words again");
    place.write("driver.py", "# mine\n");
    let refused = place.emit(&emit);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--force"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(place.read("driver.py"), "# mine\n");
    assert!(place.emit(&[&emit[..], &["--force"]].concat()).status.success());
    assert_ne!(place.read("driver.py"), "# mine\n");
}

#[test]
fn a_job_of_kubernetes_finds_the_manifest_in_its_volume() {
    let place = Place::new();
    let refused = place.emit(&["kubernetes", "--image", "pleach:1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--claim"),
        "{}",
        text(&refused.stderr)
    );
    let words = [
        "kubernetes",
        "--image",
        "pleach:1",
        "--claim",
        "results",
        "--file",
        "-",
    ];
    let said = place.emit(&words);
    let said = (said.status.code(), text(&said.stdout));
    assert_eq!(said.0, Some(0));
    assert!(
        said.1.contains("- \"/sweep/sweep.json\"\n") && said.1.contains("completions: 6\n"),
        "{}",
        said.1
    );
}

/// As much of Ray as the driver uses. Unit 5 loses its worker once.
const RAY: &str = r#"
lost = []
class _Task:
    def __init__(self, function): self.function = function
    def options(self, **options):
        assert options == {"num_cpus": 1, "max_retries": 0}, options
        return self
    def remote(self, *words):
        assert len(running) < 2, "more at a time than were asked for"
        running.append(words[1])
        return _Reference(self.function, words)
class _Reference:
    def __init__(self, function, words): self.function, self.words = function, words
running = []
def init(address, log_to_driver): print("ray at", address)
def shutdown(): print("ray is down")
def remote(function): return _Task(function)
def wait(references, num_returns): return references[:num_returns], references[num_returns:]
def get(reference):
    function, words = reference.function, reference.words
    running.remove(words[1])
    if words[1] == 5 and not lost:
        lost.append(5)
        raise RuntimeError("the worker is gone")
    return function(*words)
"#;

fn drive(place: &Place, python: &Path) -> (i32, String) {
    let modules = place.path("modules");
    place.run(
        python,
        &["driver.py", "--address", "auto"],
        &[("PYTHONPATH", modules.to_str().unwrap())],
    )
}

#[test]
fn the_driver_of_ray_leaves_out_what_is_done_tries_again_and_gathers() {
    let Some(python) = pleach_tests::program(&["python3"]) else {
        return;
    };
    let place = Place::new();
    assert!(
        place
            .emit(&["ray", "--retries", "2", "--parallel", "2", "--file", "driver.py"])
            .status
            .success()
    );
    fs::create_dir(place.path("modules")).unwrap();
    place.write("modules/ray.py", RAY);
    place.write("missing", "0-2,5\n");
    place.write("code.1", "75\n75\n");
    place.write("code.2", "kill\n");
    let (code, said) = drive(&place, &python);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.starts_with("4 of 6 units to run\n")
            && said.contains("ray at auto")
            && said.contains("ray is down")
    );
    assert!(
        said.contains("unit 2 ended with 137, try 2") && said.contains("the worker is gone"),
        "{said}"
    );
    let tries: Vec<String> = [0, 1, 2, 3, 4, 5]
        .map(|index| place.read(&format!("try.{index}")))
        .into();
    assert_eq!(tries, ["1\n", "3\n", "2\n", "", "", "1\n"]);
    assert!(place.read("called").contains("\ngather\n"));
}

#[test]
fn the_driver_of_ray_tells_what_failed_by_its_exit_code() {
    let Some(python) = pleach_tests::program(&["python3"]) else {
        return;
    };
    let place = Place::new();
    assert!(
        place
            .emit(&["ray", "--retries", "1", "--parallel", "2", "--file", "driver.py"])
            .status
            .success()
    );
    fs::create_dir(place.path("modules")).unwrap();
    place.write("modules/ray.py", RAY);
    place.write("missing", "0-1\n");
    place.write("code.1", "75\n75\n75\n");
    let (code, said) = drive(&place, &python);
    assert!(
        code == 75 && said.contains("unit 1 FAILED with 75") && place.read("try.1") == "2\n",
        "{said}"
    );
    assert!(!place.read("called").contains("gather"));
    place.write("code.0", "0\n2\n");
    let (code, said) = drive(&place, &python);
    assert!(
        code == 1 && said.contains("unit 0 FAILED with 2") && place.read("try.0") == "2\n",
        "{said}"
    );
    // Without anything to run there is no Ray; without a program there is an answer.
    place.write("missing", "\n");
    let (code, said) = drive(&place, &python);
    assert!(code == 0 && !said.contains("ray at"), "{said}");
    fs::remove_file(place.path("my 'bin'/pleach")).unwrap();
    let (code, said) = drive(&place, &python);
    assert!(code == 2 && said.contains("--program"), "{said}");
}
