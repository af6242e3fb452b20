//! Same seed, same bytes, also where the C library does without AVX2 and FMA.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::text;

/// Vector units that the GNU C library must do without. The program's own vector code asks the processor itself; a test beside it
/// shows that all its units give the same bits.
const MASKS: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4");
/// The test below, as the test program knows it: without the name of the program, which is the first of its path.
fn digest_test() -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::digest_of_the_c_librarys_exponentials")
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the C library is what is looked at")]
fn digest_of_the_c_librarys_exponentials() {
    let results = (0..100_000).map(|step| (f64::from(step) * 1e-4).exp().to_bits());
    let digest = results.fold(1_u64, |digest, bits| {
        digest.wrapping_mul(0x0000_0100_0000_01b3) ^ bits
    });
    println!("digest {digest:016x}");
}

/// The program, with the masks or without.
fn command(program: &Path, masked: bool) -> Command {
    let mut command = Command::new(program);
    command.env_remove(MASKS.0);
    if masked {
        command.env(MASKS.0, MASKS.1);
    }
    command
}

/// Whether the masks change what the C library gives, without which the test would show nothing.
fn masks_have_an_effect() -> bool {
    let own = std::env::current_exe().unwrap();
    let digest = |masked: bool| {
        let output = command(&own, masked)
            .args(["--exact", &digest_test(), "--nocapture"])
            .output()
            .unwrap();
        let said = text(&output.stdout);
        let line = said
            .lines()
            .find_map(|line| line.split_once("digest "))
            .map(|(_, digest)| digest.to_string());
        line.unwrap_or_else(|| panic!("no digest in {said}"))
    };
    digest(false) != digest(true)
}

#[test]
fn workloads_and_results_have_the_same_bytes_without_avx2_and_fma() {
    let is_effective = masks_have_an_effect();
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if std::is_x86_feature_detected!("fma") {
        assert!(is_effective, "{MASKS:?} has no effect on this C library");
    }
    if !is_effective {
        eprintln!("SKIPPED in part: this machine cannot do without FMA by {MASKS:?}; both runs are alike");
    }
    let folder = tempfile::tempdir().unwrap();
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/PhillyGang-v1.ckpt"
    );
    let lines = [
        "workload write --workload philly-like --num-jobs 20000 --to FILE.csv".to_string(),
        "workload write --workload helios-like --num-jobs 5000 --to FILE.csv".to_string(),
        "workload write --workload gavel-multi --num-jobs 20000 --to FILE.csv".to_string(),
        "workload write --workload sia-philly --num-jobs 160 --to FILE.csv".to_string(),
        format!("evaluate --workload philly-like --num-jobs 200 --seeds 3 --policy fifo,sjf,{reference} --json FILE.json"),
        "evaluate --workload Pleach/Elastic-v1 --num-jobs 60 --seeds 2 --policy sjf,sjf-moldable --json FILE.json".to_string(),
    ];
    for (number, line) in lines.iter().enumerate() {
        let written = [false, true].map(|masked| {
            let name = format!("file-{number}-{masked}");
            let output = command(Path::new(env!("CARGO_BIN_EXE_pleach")), masked)
                .current_dir(folder.path())
                .args(line.replace("FILE", &name).split_whitespace())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
            let end = line.rsplit('.').next().unwrap();
            fs::read(folder.path().join(format!("{name}.{end}"))).unwrap()
        });
        let [plain, masked] = &written;
        let num_other = plain
            .iter()
            .zip(masked)
            .filter(|(one, other)| one != other)
            .count();
        assert!(
            plain == masked,
            "{line}: {num_other} bytes differ without AVX2 and FMA"
        );
    }
}
