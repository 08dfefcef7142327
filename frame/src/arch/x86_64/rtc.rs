//! The real-time clock of the PC (MC146818), for the date at boot.

use super::port;

const INDEX: u16 = 0x70;
const VALUE: u16 = 0x71;
const STATUS_A: u8 = 0x0a;
const STATUS_B: u8 = 0x0b;
const UPDATING: u8 = 1 << 7;
const BINARY: u8 = 1 << 2;
const HOURS_24: u8 = 1 << 1;
const AFTERNOON: u8 = 1 << 7;

fn read(register: u8) -> u8 {
    // SAFETY: the clock does not touch memory. Non-maskable interrupts stay enabled (bit 7 is clear).
    unsafe {
        port::write_u8(INDEX, register);
        port::read_u8(VALUE)
    }
}

/// Seconds since 1970-01-01 UTC, if the clock runs on UTC; 0 if it makes no sense.
pub fn read_seconds() -> u64 {
    // Seconds, minutes, hours, day, month, year: twice the same, so that no change fell between two of them.
    let registers = || [0u8, 2, 4, 7, 8, 9].map(read);
    let mut values = registers();
    for _ in 0..1000 {
        if read(STATUS_A) & UPDATING != 0 {
            continue;
        }
        let again = registers();
        if again == values {
            break;
        }
        values = again;
    }
    let format = read(STATUS_B);
    let afternoon = format & HOURS_24 == 0 && values[2] & AFTERNOON != 0;
    values[2] &= !AFTERNOON;
    let decimal = |value: u8| if format & BINARY != 0 { value } else { (value >> 4) * 10 + (value & 15) };
    let [second, minute, mut hour, day, month, year] = values.map(|value| u64::from(decimal(value)));
    if format & HOURS_24 == 0 {
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return 0;
    }
    ((days_before(2000 + year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second
}

/// Days from 1970-01-01 to the first of a month (Gregorian calendar).
fn days_before(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_day = u64::from(is_leap && month > 2);
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969) + BEFORE[month as usize - 1] + leap_day
}
