//! The calls. What they cannot answer, the system call does.
//!
//! This is user code: `unsafe` here can harm the program that calls, and nobody else.

use core::arch::asm;

use crate::page::{Line, Page, SECOND, Word, nanoseconds};

const CLOCK_GETTIME: usize = 228;
const CLOCK_GETRES: usize = 229;

const REALTIME: i32 = 0;
const MONOTONIC: i32 = 1;
const MONOTONIC_RAW: i32 = 4;
const REALTIME_COARSE: i32 = 5;
const MONOTONIC_COARSE: i32 = 6;
const BOOTTIME: i32 = 7;
const TAI: i32 = 11;

/// Nanoseconds between two values of a coarse clock, as clock_getres(2) says.
const COARSE: i64 = 4_000_000;

/// `struct timespec`, and also `struct timeval` (with microseconds).
#[derive(Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Time {
    seconds: i64,
    fraction: i64,
}

/// `struct timezone`.
#[derive(Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeZone {
    minutes_west: i32,
    daylight_saving: i32,
}

/// The time stamp counter, not before what stands before it in the program.
#[inline(always)]
fn counter() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: only reads the counter. As it may touch memory, for all that the compiler knows, no load moves across it.
    unsafe { asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

#[inline(always)]
fn since_boot(page: &Page) -> u64 {
    nanoseconds(counter(), page.get(Word::Start), page.get(Word::Rate))
}

/// The wall clock, if nobody steers it. The counter is read before the word that is added: if the clock is set meanwhile, this is what the new one
/// showed a moment before.
#[inline(always)]
fn plain_time(page: &Page) -> Option<u64> {
    let boot = since_boot(page);
    let ahead = page.get(Word::Ahead);
    // No shift of the clock has the highest bit: all times that it can show are below 2^63.
    if (ahead as i64) < 0 { None } else { Some(boot.wrapping_add(ahead)) }
}

/// The wall clock, steered or not, and by how much atomic time is ahead of it.
#[cold]
#[inline(never)]
fn steered_times(page: &Page) -> (u64, u64) {
    loop {
        let sequence = page.get(Word::Sequence);
        let line = Line {
            boot: page.get(Word::LineBoot),
            real: page.get(Word::LineReal),
            rate: page.get(Word::LineRate) as i64,
        };
        let tai = page.get(Word::Tai);
        let real = line.real_at(since_boot(page));
        if sequence.is_multiple_of(2) && page.get(Word::Sequence) == sequence {
            return (real, tai);
        }
        core::hint::spin_loop();
    }
}

/// # Safety
/// As the system call, but that a bad pointer is not refused.
#[inline(always)]
pub unsafe fn clock_gettime(page: &Page, clock: i32, time: *mut Time) -> i32 {
    const BOOT: u32 = 1 << MONOTONIC | 1 << MONOTONIC_RAW | 1 << MONOTONIC_COARSE | 1 << BOOTTIME;
    const WALL: u32 = 1 << REALTIME | 1 << REALTIME_COARSE;
    let is_in = |clocks: u32| (clock as u32) < u32::BITS && clocks & 1 << clock != 0;
    // SAFETY: the caller's pointer.
    unsafe {
        if is_in(BOOT) {
            return write_nanoseconds(time, since_boot(page));
        }
        if is_in(WALL)
            && let Some(shown) = plain_time(page)
        {
            return write_nanoseconds(time, shown);
        }
        rare_clock_gettime(page, clock, time)
    }
}

#[inline(always)]
unsafe fn write_nanoseconds(time: *mut Time, shown: u64) -> i32 {
    // SAFETY: the caller's pointer.
    unsafe { time.write(Time { seconds: (shown / SECOND) as i64, fraction: (shown % SECOND) as i64 }) };
    0
}

#[inline(always)]
unsafe fn write_microseconds(time: *mut Time, shown: u64) -> i32 {
    let fraction = (shown % SECOND) as u32 / 1000;
    // SAFETY: the caller's pointer.
    unsafe { time.write(Time { seconds: (shown / SECOND) as i64, fraction: fraction.into() }) };
    0
}

/// Of a wall clock that is steered, of atomic time, and of clocks that only the kernel knows.
#[cold]
#[inline(never)]
unsafe fn rare_clock_gettime(page: &Page, clock: i32, time: *mut Time) -> i32 {
    let shown = match clock {
        REALTIME | REALTIME_COARSE => steered_times(page).0,
        TAI => {
            let (real, ahead) = steered_times(page);
            real.wrapping_add(ahead)
        }
        // SAFETY: the caller's pointer.
        _ => return unsafe { system_call(CLOCK_GETTIME, clock, time) },
    };
    // SAFETY: the caller's pointer.
    unsafe { write_nanoseconds(time, shown) }
}

/// # Safety
/// As the system call, but that a bad pointer is not refused.
#[inline(always)]
pub unsafe fn clock_getres(clock: i32, resolution: *mut Time) -> i32 {
    let fraction = match clock {
        MONOTONIC | MONOTONIC_RAW | BOOTTIME | REALTIME | TAI => 1,
        MONOTONIC_COARSE | REALTIME_COARSE => COARSE,
        // SAFETY: the caller's concern.
        _ => return unsafe { system_call(CLOCK_GETRES, clock, resolution) },
    };
    if !resolution.is_null() {
        // SAFETY: the caller's pointer.
        unsafe { resolution.write(Time { seconds: 0, fraction }) };
    }
    0
}

/// # Safety
/// As the system call, but that a bad pointer is not refused.
#[inline(always)]
pub unsafe fn gettimeofday(page: &Page, time: *mut Time, zone: *mut TimeZone) -> i32 {
    // SAFETY: the caller's pointers.
    unsafe {
        if !zone.is_null() {
            let told = page.get(Word::Zone);
            zone.write(TimeZone { minutes_west: told as i32, daylight_saving: (told >> 32) as i32 });
        }
        if time.is_null() {
            return 0;
        }
        match plain_time(page) {
            Some(shown) => write_microseconds(time, shown),
            None => steered_gettimeofday(page, time),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn steered_gettimeofday(page: &Page, time: *mut Time) -> i32 {
    // SAFETY: the caller's pointer.
    unsafe { write_microseconds(time, steered_times(page).0) }
}

/// # Safety
/// As the system call, but that a bad pointer is not refused.
#[inline(always)]
pub unsafe fn time(page: &Page, seconds: *mut i64) -> i64 {
    let now = page.get(Word::Seconds) as i64;
    if !seconds.is_null() {
        // SAFETY: the caller's pointer.
        unsafe { seconds.write(now) };
    }
    now
}

/// The number of the core: its `TSC_AUX` register, or the limit of a segment that each core has in its own table (as on Linux).
#[inline(always)]
fn core_number() -> u32 {
    let number: u64;
    // SAFETY: both only say which core it is; the kernel takes the image with `rdpid` where the processor has it.
    unsafe {
        #[cfg(ebb_rdpid)]
        asm!("rdpid {}", out(reg) number, options(nomem, nostack, preserves_flags));
        #[cfg(not(ebb_rdpid))]
        asm!("lsl {number}, {segment}", number = out(reg) number, segment = in(reg) 0x7b_u64, options(nomem, nostack));
    }
    number as u32
}

/// # Safety
/// As the system call, but that a bad pointer is not refused.
#[inline(always)]
pub unsafe fn getcpu(core: *mut u32, node: *mut u32) -> i32 {
    // SAFETY: the caller's pointers.
    unsafe {
        if !core.is_null() {
            core.write(core_number());
        }
        // There is one.
        if !node.is_null() {
            node.write(0);
        }
    }
    0
}

/// # Safety
/// As the system call.
#[cold]
#[inline(never)]
unsafe fn system_call(number: usize, clock: i32, time: *mut Time) -> i32 {
    let result: usize;
    // SAFETY: the kernel checks the pointer.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") clock, in("rsi") time,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result as i32
}

/// What programs find by name: `__vdso_NAME`, and weakly `NAME`.
#[cfg(ebb_vdso)]
mod symbols {
    use core::arch::{asm, global_asm};

    use super::{Time, TimeZone};
    use crate::page::Page;
    use crate::random::{self, State};

    global_asm!(
        ".irp name, clock_gettime, clock_getres, gettimeofday, time, getcpu, getrandom",
        ".weak \\name",
        ".type \\name, @function",
        ".set \\name, __vdso_\\name",
        ".endr",
    );

    /// The page of data, which the kernel maps before the shared object.
    #[inline(always)]
    fn page() -> &'static Page {
        let page: *const Page;
        // SAFETY: the kernel has mapped it, for as long as the shared object is there.
        unsafe {
            asm!("lea {}, [rip + ebb_vvar]", out(reg) page, options(pure, nomem, nostack, preserves_flags));
            &*page
        }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_clock_gettime(clock: i32, time: *mut Time) -> i32 {
        // SAFETY: the caller's concern, here and below.
        unsafe { super::clock_gettime(page(), clock, time) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_clock_getres(clock: i32, resolution: *mut Time) -> i32 {
        // SAFETY: as above.
        unsafe { super::clock_getres(clock, resolution) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_gettimeofday(time: *mut Time, zone: *mut TimeZone) -> i32 {
        // SAFETY: as above.
        unsafe { super::gettimeofday(page(), time, zone) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_time(seconds: *mut i64) -> i64 {
        // SAFETY: as above.
        unsafe { super::time(page(), seconds) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_getcpu(core: *mut u32, node: *mut u32, _unused: usize) -> i32 {
        // SAFETY: as above.
        unsafe { super::getcpu(core, node) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __vdso_getrandom(
        buffer: *mut u8,
        len: usize,
        flags: u32,
        state: *mut State,
        state_len: usize,
    ) -> isize {
        // SAFETY: as above.
        unsafe { random::getrandom(page(), buffer, len, flags, state, state_len) }
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;

    use super::*;
    use crate::page::STEERED;

    /// A page of a machine that was started at this value of the counter, at a gigahertz.
    fn page(start: u64) -> Page {
        let page = Page::default();
        page.set(Word::Start, start);
        page.set(Word::Rate, 1 << 32);
        page
    }

    fn shown(page: &Page, clock: i32) -> u64 {
        let mut time = Time::default();
        // SAFETY: the pointer is good.
        assert_eq!(unsafe { clock_gettime(page, clock, &raw mut time) }, 0);
        assert!((0..SECOND as i64).contains(&time.fraction));
        time.seconds as u64 * SECOND + time.fraction as u64
    }

    fn day(page: &Page) -> Time {
        let mut time = Time::default();
        // SAFETY: the pointers are good, or null.
        assert_eq!(unsafe { gettimeofday(page, &raw mut time, null_mut()) }, 0);
        time
    }

    const BOOT: [i32; 4] = [MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME];

    #[test]
    fn clocks_since_boot_count_from_the_start() {
        let page = page(counter());
        let mut last = 0;
        for clock in BOOT {
            let now = shown(&page, clock);
            assert!(now >= last && now < 3600 * SECOND);
            last = now;
        }
    }

    #[test]
    fn the_wall_clock_is_ahead_of_them_and_atomic_time_of_it() {
        let page = page(counter());
        let ahead = 1_700_000_000 * SECOND + 999_999_999;
        page.set(Word::Ahead, ahead);
        page.set(Word::LineReal, ahead);
        page.set(Word::Tai, 37 * SECOND);
        let before = shown(&page, MONOTONIC);
        let wall = shown(&page, REALTIME);
        let seconds = day(&page);
        let coarse = shown(&page, REALTIME_COARSE);
        let atomic = shown(&page, TAI);
        let after = shown(&page, MONOTONIC);
        assert!(before + ahead <= wall && wall <= coarse && coarse <= atomic - 37 * SECOND);
        assert!(atomic - 37 * SECOND <= after + ahead);
        let micros = seconds.seconds as u64 * 1_000_000 + seconds.fraction as u64;
        assert!(wall / 1000 <= micros && micros <= coarse / 1000);
    }

    #[test]
    fn a_steered_clock_goes_along_its_line() {
        let page = page(counter());
        let line = Line { boot: 0, real: 1_700_000_000 * SECOND, rate: i64::MAX / 10 };
        page.set(Word::Ahead, STEERED);
        page.set(Word::LineBoot, line.boot);
        page.set(Word::LineReal, line.real);
        page.set(Word::LineRate, line.rate as u64);
        let before = line.real_at(shown(&page, MONOTONIC));
        let wall = shown(&page, REALTIME);
        let seconds = day(&page);
        let after = line.real_at(shown(&page, MONOTONIC));
        assert!(before <= wall && wall <= after);
        assert!((wall / SECOND..=after / SECOND).contains(&(seconds.seconds as u64)));
    }

    #[test]
    fn who_reads_a_line_while_it_is_changed_waits_for_its_end() {
        let page = page(counter());
        page.set(Word::Ahead, STEERED);
        page.set(Word::Sequence, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for word in [Word::LineReal, Word::LineBoot] {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    page.set(word, if word == Word::LineReal { 1 << 60 } else { 0 });
                }
                page.set(Word::Sequence, 2);
            });
            assert!(shown(&page, REALTIME) >= 1 << 60);
        });
    }

    #[test]
    fn what_it_does_not_know_the_kernel_says() {
        let page = page(0);
        let mut time = Time::default();
        for clock in [10, 12, 31, 32, 33, 99, -1, i32::MIN] {
            // SAFETY: the pointer is good.
            let got = unsafe { clock_gettime(&page, clock, &raw mut time) };
            assert!(got < 0, "{clock}: {got}");
        }
        // Time of this process.
        assert!(shown(&page, 2) > 0);
        // SAFETY: the pointer is good, or null.
        unsafe {
            assert_eq!(clock_getres(99, &raw mut time), -22);
            assert_eq!(clock_getres(MONOTONIC, null_mut()), 0);
            assert_eq!(clock_getres(REALTIME_COARSE, &raw mut time), 0);
        }
        assert_eq!(time, Time { seconds: 0, fraction: COARSE });
    }

    #[test]
    fn seconds_are_what_the_kernel_says() {
        let page = page(0);
        page.set(Word::Seconds, 1_700_000_000);
        let mut stored = 0;
        // SAFETY: the pointer is good, or null.
        unsafe {
            assert_eq!(time(&page, null_mut()), 1_700_000_000);
            assert_eq!(time(&page, &raw mut stored), 1_700_000_000);
        }
        assert_eq!(stored, 1_700_000_000);
    }

    #[test]
    fn the_cores_number_comes_from_the_segment_that_linux_has_too() {
        let (mut core, mut node) = (u32::MAX, u32::MAX);
        // SAFETY: the pointers are good, or null.
        unsafe {
            assert_eq!(getcpu(&raw mut core, &raw mut node), 0);
            assert_eq!(getcpu(null_mut(), null_mut()), 0);
        }
        assert_eq!(node, 0);
        // Linux has the node in the upper bits; the folder has some more entries than there are cores.
        assert!((core & 0xfff) as usize <= std::fs::read_dir("/sys/devices/system/cpu").map_or(4096, Iterator::count));
    }

    #[test]
    fn the_time_zone_is_what_was_told() {
        let page = page(0);
        page.set(Word::Zone, u64::from(-120i32 as u32) | 3 << 32);
        let mut zone = TimeZone::default();
        // SAFETY: the pointer is good, or null.
        assert_eq!(unsafe { gettimeofday(&page, null_mut(), &raw mut zone) }, 0);
        assert_eq!(zone, TimeZone { minutes_west: -120, daylight_saving: 3 });
    }

    #[test]
    fn the_images_are_shared_objects_that_need_nothing_else() {
        for image in [crate::IMAGE, crate::IMAGE_WITH_RDPID] {
            assert_eq!(&image[..6], b"\x7fELF\x02\x01");
            let has = |name: &[u8]| image.windows(name.len()).any(|part| part == name);
            for name in ["__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu", "LINUX_2.6"] {
                assert!(has(name.as_bytes()), "{name}");
            }
            assert!(!has(b"ebb_vvar"), "the page's name is nobody's business");
        }
        assert_ne!(crate::IMAGE, crate::IMAGE_WITH_RDPID);
    }
}
