//! Times: local ones in steps of two seconds, with hundredths and the distance to UTC beside them.

/// A time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds, less than 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// The time of a date and time of day, hundredths of a second beyond (up to 199), and a distance to UTC: quarters of an hour in seven bits, and whether it is known. If it is not, UTC is meant.
    pub(crate) fn read(stamp: u32, hundredths: u8, zone: u8) -> Self {
        let field = |from: u32, bits: u32| i64::from(stamp >> from & ((1 << bits) - 1));
        let days = days_since_1970(1980 + field(25, 7), field(21, 4).clamp(1, 12), field(16, 5).max(1));
        let mut seconds = days * 86_400 + field(11, 5) * 3600 + field(5, 6) * 60 + field(0, 5) * 2;
        if zone & 0x80 != 0 {
            // Seven bits with a sign.
            let quarters = i64::from(((zone << 1).cast_signed()) >> 1);
            seconds -= quarters * 15 * 60;
        }
        let hundredths = u32::from(hundredths.min(199));
        Time { seconds: seconds + i64::from(hundredths / 100), nanoseconds: hundredths % 100 * 10_000_000 }
    }
}

/// What entries have of a time: the date and the time of day, hundredths beyond, and the distance to UTC.
pub(crate) type Stamp = (u32, u8, u8);

impl Time {
    /// As entries have it, in UTC; the nearest that they can.
    pub(crate) fn write(self) -> Stamp {
        const FIRST: i64 = 315_532_800;
        const LAST: i64 = 4_354_819_199;
        const UTC: u8 = 0x80;
        let seconds = self.seconds.clamp(FIRST, LAST);
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        // No year ends more than a day from where this says.
        let mut year = 1970 + days / 366;
        while days_since_1970(year + 1, 1, 1) <= days {
            year += 1;
        }
        let month = (1..=12).rev().find(|month| days_since_1970(year, *month, 1) <= days).unwrap_or(1);
        let day = days - days_since_1970(year, month, 1) + 1;
        let date = (year - 1980) << 9 | month << 5 | day;
        let time = ((of_day / 3600) << 11) | ((of_day / 60 % 60) << 5) | (of_day % 60 / 2);
        let hundredths = of_day % 2 * 100 + i64::from(self.nanoseconds / 10_000_000).min(99);
        ((date << 16 | time) as u32, hundredths as u8, UTC)
    }
}

/// Days of a date of the Gregorian calendar, counted from March on so that a leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(year: u32, month: u32, day: u32, hour: u32, minute: u32, second: u32) -> u32 {
        (year - 1980) << 25 | month << 21 | day << 16 | hour << 11 | minute << 5 | (second / 2)
    }

    #[test]
    fn times_are_counted_from_1970_in_utc() {
        assert_eq!(Time::read(stamp(1980, 1, 1, 0, 0, 0), 0, 0).seconds, 315_532_800);
        assert_eq!(Time::read(stamp(2024, 2, 29, 12, 34, 56), 0, 0x80).seconds, 1_709_210_096);
        // Two hours east, one second and a half beyond.
        let time = Time::read(stamp(2024, 2, 29, 14, 34, 56), 150, 0x88);
        assert_eq!(time, Time { seconds: 1_709_210_097, nanoseconds: 500_000_000 });
        // An hour west.
        assert_eq!(Time::read(stamp(2024, 2, 29, 11, 34, 56), 0, 0xfc).seconds, 1_709_210_096);
        for seconds in [315_532_800, 951_782_399, 951_782_400, 1_709_210_097, 4_107_542_399, 4_354_819_199] {
            let time = Time { seconds, nanoseconds: 990_000_000 };
            let (stamp, hundredths, zone) = time.write();
            assert_eq!(Time::read(stamp, hundredths, zone), time);
        }
        assert_eq!(Time::read(Time { seconds: 5, nanoseconds: 0 }.write().0, 0, 0).seconds, 315_532_800);
        // What is no date is some time.
        let _ = Time::read(u32::MAX, 255, 255);
        let _ = Time::read(0, 0, 0);
    }
}
