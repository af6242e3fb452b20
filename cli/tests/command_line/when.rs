//! `pleach when` as operators install it, and as it asks a running daemon.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use super::{pleach, succeed, text};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");

#[test]
fn the_forecasters_of_the_packages_and_of_the_chart_have_flags_that_the_program_knows() {
    let read = |path: &str| fs::read_to_string(Path::new(DEPLOY).join(path)).unwrap();
    let unit = read("daemon/deploy/pleach-forecasts.service");
    let of_unit = unit.split("ExecStart=/usr/bin/pleach ").nth(1).unwrap();
    let of_unit = of_unit.lines().next().unwrap().replace("${POLICY}", "sjf");
    let component = read("kubernetes/deploy/forecasts/kustomization.yaml");
    let of_component = component.split("args: [when, ").nth(1).unwrap();
    let of_component = of_component.split(']').next().unwrap().replace(',', "");
    // The same, on both.
    assert_eq!(of_unit, format!("when {of_component}"));
    let folder = tempfile::tempdir().unwrap();
    succeed(folder.path(), &format!("{of_unit} --help"));
    assert!(
        !pleach(folder.path(), &format!("{of_unit} --never --help"))
            .status
            .success()
    );
}

/// What `pleach when http://... FLAGS` says where a server answers so: whether it succeeds, its words, and the request.
fn asked(reply: Vec<u8>, flags: &str) -> (bool, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().unwrap();
        let mut request = vec![0; 4096];
        let num = caller.read(&mut request).unwrap();
        // A caller that has enough breaks off.
        let _ = caller.write_all(&reply);
        String::from_utf8(request[..num].to_vec()).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let output = pleach(folder.path(), &format!("when http://{address}/ {flags}"));
    let said = text(&output.stdout) + &text(&output.stderr);
    (output.status.success(), said, server.join().unwrap())
}

#[test]
fn a_running_daemon_is_asked_and_its_answer_is_told_in_the_same_words() {
    let told = r#"{"at_once":0.04,"median_s":11520.0,"within_s":[2400.0,32400.0]}"#;
    let body = format!(
        r#"{{"version":1,"made_s":5,"method":"replay","policy":"sjf","held":0.84,"num_held":300,"jobs":{{"47":{told}}},
        "requests":[{{"gpus":8,"time_s":null,"forecast":{told}}}],"age_s":700,"is_fresh":false,"bucket":null}}"#
    );
    let reply = |body: &str| format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}").into_bytes();
    let (is_well, said, request) = asked(reply(&body), "--job 47");
    assert!(
        is_well && request.starts_with("GET /v1/when?job=47 HTTP/1.0\r\n"),
        "{request} {said}"
    );
    let line = "job 47: starts in 3.2 h   80 %: 40.0 min to 9.0 h   at once: 4 %";
    assert!(said.contains(line) && said.contains("too old"), "{said}");
    assert!(said.contains("84 % of the last 300"), "{said}");
    let (is_well, said, request) = asked(reply(&body), "--gpus 6 --time 12h");
    assert!(
        is_well && request.starts_with("GET /v1/when HTTP/1.0\r\n"),
        "{request} {said}"
    );
    assert!(said.starts_with("8 GPUs: starts in 3.2 h"), "{said}");
    // What no daemon says ends with words and within a bound.
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 5 << 20]].concat();
    for (reply, word) in [
        (b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(), "no forecast"),
        (b"SSH-2.0-x".to_vec(), "HTTP"),
        (reply(&body.replace("0.84", "84")), "not understood"),
        (reply(&body.replace("sjf", "s\\u001b[2Jf")), "not understood"),
        (reply(""), "not understood"),
        (endless, "no answer"),
    ] {
        let (is_well, said, _) = asked(reply, "--job 47");
        assert!(!is_well && said.contains(word), "{word}: {said}");
    }
}

#[test]
fn what_a_daemon_does_not_serve_is_refused_before_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [
        "--gpus 1 --type A100",
        "--hindcast",
        "--job 4%0a7",
        "--gpus 1 --policy sjf",
    ] {
        let output = pleach(folder.path(), &format!("when http://127.0.0.1:9 {flags}"));
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", text(&output.stderr));
    }
    // Nothing listens there.
    let output = pleach(folder.path(), "when http://127.0.0.1:9 --gpus 1");
    assert!(
        text(&output.stderr).contains("no answer"),
        "{}",
        text(&output.stderr)
    );
}
