//! How an input is spoilt: a function of its bytes and of random numbers, so that a seed and a number name each spoilt input.

use pleach_env::Seed;
use rand::{Rng, RngExt as _};

/// What stands in the place of a number or a word.
const VALUES: [&str; 20] = [
    "",
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-308",
    "NaN",
    "inf",
    "-inf",
    "4294967296",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999999999999999999",
    "0.1",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\u{feff}",
];
/// Bytes that text does not hold, or that end what holds it.
const BYTES: [&[u8]; 8] = [
    b"\0",
    b"\xff\xfe",
    b"\xc3",
    b"\"",
    b"\r\n",
    b"|",
    b",",
    b"\xef\xbb\xbf",
];
/// How deep nesting goes: far beyond what a parser that calls itself has a stack for.
const DEPTH: usize = 60_000;
const LONG: usize = 1 << 17;

/// The spoilt input of that number.
pub fn spoilt(seed: &[u8], stream: &str, number: u64) -> Vec<u8> {
    let mut random = Seed(number).stream(stream, 0);
    let mut bytes = seed.to_vec();
    // One fault is found where it is; several meet states that one alone does not reach.
    for _ in 0..[1, 1, 1, 2, 4][random.random_range(0..5)] {
        bytes = once(bytes, &mut random);
    }
    bytes
}

fn once(mut bytes: Vec<u8>, random: &mut impl Rng) -> Vec<u8> {
    let place = random.random_range(0..=bytes.len());
    match random.random_range(0..13_u32) {
        0 if place < bytes.len() => bytes[place] ^= 1 << random.random_range(0..8_u32),
        1 => bytes.truncate(place),
        2 => drop(bytes.drain(..place)),
        3 => lines(&mut bytes, random),
        4..=6 => word(&mut bytes, random),
        7 => insert(&mut bytes, place, BYTES[random.random_range(0..BYTES.len())]),
        8 => insert(
            &mut bytes,
            place,
            VALUES[random.random_range(0..VALUES.len())].as_bytes(),
        ),
        9 => {
            let open = ["[", "{\"a\":", "(", "[[", "-"][random.random_range(0..5)];
            let depth = DEPTH / 10_usize.pow(random.random_range(0..4));
            insert(&mut bytes, place, open.repeat(depth).as_bytes());
        }
        10 => {
            let long = vec![b"a1, "[random.random_range(0..4)]; LONG];
            insert(&mut bytes, place, &long);
        }
        11 => {
            let with = [&b"\r\n"[..], b"\r", b"\n\n", b"\0"][random.random_range(0..4)];
            bytes = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(with);
        }
        _ => {
            // A part again: keys and rows twice, and files that go on behind their end.
            let end = random.random_range(place..=bytes.len().min(place + 400));
            let part = bytes[place.min(end)..end].to_vec();
            insert(&mut bytes, end, &part);
        }
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, place: usize, part: &[u8]) {
    bytes.splice(place..place, part.iter().copied());
}

/// Swaps two lines, or has one twice, or leaves one out.
fn lines(bytes: &mut Vec<u8>, random: &mut impl Rng) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let [one, other] = [(); 2].map(|()| random.random_range(0..lines.len()));
    match random.random_range(0..3_u32) {
        0 => lines.swap(one, other),
        1 => lines.insert(other, lines[one].clone()),
        _ => drop(lines.remove(one)),
    }
    *bytes = lines.join(&b'\n');
}

/// Puts another value in the place of a word or a number.
fn word(bytes: &mut Vec<u8>, random: &mut impl Rng) {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|place| is_of_word(&bytes[*place]) && (*place == 0 || !is_of_word(&bytes[place - 1])))
        .collect();
    if starts.is_empty() {
        return;
    }
    let start = starts[random.random_range(0..starts.len())];
    let length = bytes[start..].iter().take_while(|byte| is_of_word(byte)).count();
    let value = VALUES[random.random_range(0..VALUES.len())];
    bytes.splice(start..start + length, value.bytes());
}

#[test]
fn a_number_names_one_spoilt_input_and_another_number_another() {
    let seed = b"job,gpus\n1,2\n3,4\n";
    let all: Vec<Vec<u8>> = (0..200).map(|number| spoilt(seed, "test", number)).collect();
    assert_eq!(spoilt(seed, "test", 7), all[7]);
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert!(different.len() > 150, "{}", different.len());
    assert!(
        all.iter().any(|bytes| bytes.len() > LONG) && all.iter().any(|bytes| bytes.len() < seed.len() / 2)
    );
}
