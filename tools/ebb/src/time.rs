//! Lengths of time on the command line.

use std::time::Duration;

/// Reads `30s`, `500ms`, `2m`, `1h`, `50us` (or `50µs`, as it is printed), or a bare number of seconds; fractions are fine.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time like 30s, 500ms or 2m".to_owned();
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "us" | "µs" => 0.000_001,
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    Duration::try_from_secs_f64(number * unit)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "no such length of time".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_time("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(parse_time("0.5µs"), Ok(Duration::from_nanos(500)));
        assert_eq!(parse_time("2"), Ok(Duration::from_secs(2)));
        for bad in ["", "s", "-1s", "0", "1e300h", "NaN", "5 s", "3d", "5ns", "1µ"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_that_was_printed_can_be_read_again() {
        for micros in [1, 111, 999, 1000, 2315, 1_000_000, 59_000_001] {
            let time = Duration::from_micros(micros);
            assert_eq!(parse_time(&format!("{time:?}")), Ok(time));
        }
    }
}
