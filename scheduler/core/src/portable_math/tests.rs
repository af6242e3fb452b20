use super::*;

/// Numbers from 0 to 1 in an order of no meaning.
fn numbers(num: usize) -> impl Iterator<Item = f64> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    })
    .take(num)
}

fn pairs(num: usize) -> Vec<(f64, f64)> {
    let of: Vec<f64> = numbers(2 * num).collect();
    of.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

fn assert_near(what: &str, num: usize, cases: impl Iterator<Item = (f64, f64)>) {
    let mut num_other = 0;
    for (own, other) in cases {
        let apart = (own.to_bits() as i64 - other.to_bits() as i64).abs();
        assert!(apart <= 1, "{what}: {own:?}, and {other:?} from the C library");
        num_other += apart;
    }
    assert!(
        num_other * 100 <= num as i64,
        "{what}: {num_other} of {num} differ in the last place"
    );
}

#[test]
fn nearly_all_results_are_those_of_the_c_library_and_none_is_further_off_than_a_last_place() {
    const NUM: usize = 100_000;
    let arguments = || pairs(NUM).into_iter();
    let of = |x: f64| (x - 0.5) * 1390.0;
    assert_near("exp", NUM, arguments().map(|(x, _)| (exp(of(x)), of(x).exp())));
    let of = |x: f64| x * 4.0 - 2.0;
    assert_near("exp", NUM, arguments().map(|(x, _)| (exp(of(x)), of(x).exp())));
    let of = |x: f64| 0.9 + x * 0.2;
    assert_near("ln", NUM, arguments().map(|(x, _)| (ln(of(x)), of(x).ln())));
    let of = |x: f64| (x * 300.0).exp();
    assert_near("ln", NUM, arguments().map(|(x, _)| (ln(of(x)), of(x).ln())));
    let of = |(x, y): (f64, f64)| (x * 5.0, y * 20.0 - 10.0);
    assert_near(
        "pow",
        NUM,
        arguments().map(of).map(|(x, y)| (pow(x, y), x.powf(y))),
    );
    let of = |(x, y): (f64, f64)| (0.99 + x * 0.02, y * 30_000.0);
    assert_near(
        "pow",
        NUM,
        arguments().map(of).map(|(x, y)| (pow(x, y), x.powf(y))),
    );
    let of = |x: f64| x as f32 * -20.0;
    let same = |x: f64| exp_f32(of(x)) == of(x).exp();
    let num_same = arguments().filter(|(x, _)| same(*x)).count();
    assert!(num_same > NUM - NUM / 50, "{num_same}");
}

/// The promise itself: every machine computes these bits. A digest of 600,000 results, first made with the module.
#[test]
fn results_have_the_bits_that_they_have_on_other_machines() {
    let mut digest = 1_u64;
    let mut take = |result: f64| digest = digest.wrapping_mul(0x0000_0100_0000_01b3) ^ result.to_bits();
    for (x, y) in pairs(100_000) {
        take(exp((x - 0.5) * 1500.0));
        take(ln(x * 1e6));
        take(ln(0.95 + y * 0.1));
        take(pow(x * 10.0, y * 8.0 - 4.0));
        take(f64::from(exp_f32(-16.0 * x as f32)) + f64::from(ln_f32(y as f32)));
        take(log10(x * 1e4) + sin(y * 7.0) + cos(x * 7.0));
    }
    assert_eq!(digest, 13_973_487_153_289_460_177);
}

#[test]
fn known_values_come_out_exactly() {
    use std::f64::consts::{E, LN_2, LN_10, SQRT_2};
    assert_eq!((exp(0.0), exp(1.0), ln(1.0)), (1.0, E, 0.0));
    assert_eq!((ln(2.0), ln(10.0), pow(2.0, 0.5)), (LN_2, LN_10, SQRT_2));
    for power in 0..=22 {
        assert_eq!(pow(10.0, f64::from(power)), 10_f64.powi(power));
        assert_eq!(log10(10_f64.powi(power)), f64::from(power));
    }
    for power in -1000..=1000 {
        assert_eq!(pow(2.0, f64::from(power)), 2_f64.powi(power), "2^{power}");
    }
}

#[test]
fn the_ends_of_the_range_are_those_of_the_c_library() {
    let ends = [
        0.0,
        -0.0,
        -1.0,
        -3.5,
        1.0,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        700.0,
        -708.5,
        -745.0,
        -746.0,
        709.7,
        710.0,
        1e100,
        1e-300,
        3.0,
    ];
    let same = |own: f64, other: f64| {
        own == other || (own.is_nan() && other.is_nan()) || (own / other - 1.0).abs() < 1e-15
    };
    for x in ends {
        assert!(same(exp(x), x.exp()), "exp({x})");
        assert!(same(ln(x), x.ln()), "ln({x}) is {}", ln(x));
        for y in ends {
            assert!(same(pow(x, y), x.powf(y)), "pow({x}, {y}) is {}", pow(x, y));
        }
    }
}
