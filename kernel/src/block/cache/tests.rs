//! Tests of the page cache against a device that does what it is asked in any order, and fails at times.

use super::*;
use crate::block::{Limits, Statistics, test_memory};
use frame::mm::Reader;
use std::vec;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A device of so many sectors, which does what it is asked when it is told to.
struct Model {
    limits: Limits,
    state: SpinLock<ModelState>,
    room: WaitList,
    statistics: Statistics,
}

struct ModelState {
    content: Vec<u8>,
    waiting: Vec<Request>,
    random: Random,
    /// One of so many requests fails; 0: none.
    fails: u64,
    flushes: usize,
}

const SECTORS: u64 = 2051;
const SIZE: usize = (SECTORS * SECTOR) as usize;

impl Model {
    fn new(seed: u64, fails: u64) -> &'static Self {
        let limits = Limits {
            sectors: SECTORS,
            is_read_only: false,
            has_cache: true,
            logical_block: 512,
            physical_block: 512,
            alignment_offset: 0,
            smallest_io: 512,
            best_io: 0,
            most_frames: 7,
            most_discard: 0,
            most_zeroes: 0,
            depth: 4,
        };
        let mut random = Random(seed);
        let content = (0..SIZE).map(|_| random.next(256) as u8).collect();
        let state = ModelState { content, waiting: Vec::new(), random, fails, flushes: 0 };
        Box::leak(Box::new(Model {
            limits,
            state: SpinLock::new(state),
            room: WaitList::new(),
            statistics: Statistics::default(),
        }))
    }

    /// Does one of the things it was asked for; whether there was any.
    fn work(&self, cx: &Cx) -> bool {
        let mut state = self.state.lock(cx);
        if state.waiting.is_empty() {
            return false;
        }
        let (count, fails) = (state.waiting.len() as u64, state.fails);
        let at = state.random.next(count) as usize;
        let request = state.waiting.swap_remove(at);
        let is_bad = fails > 0 && state.random.next(fails) == 0;
        let mut at = (request.sector * SECTOR) as usize;
        let mut left = request.sectors as usize * SECTOR as usize;
        for frame in &request.frames {
            let len = left.min(PAGE_SIZE);
            let bytes = &mut state.content[at..at + len];
            match request.operation {
                _ if is_bad => {}
                Operation::Read => _ = frame.writer(0..len).write(bytes),
                Operation::Write => _ = frame.reader(0..len).read(bytes),
                _ => {}
            }
            (at, left) = (at + len, left - len);
        }
        state.flushes += usize::from(request.operation == Operation::Flush);
        drop(state);
        request.owner.completed(request.frames, if is_bad { Err(Errno::EIO) } else { Ok(()) }, cx);
        true
    }

    fn content(&self, cx: &Cx) -> Vec<u8> {
        self.state.lock(cx).content.clone()
    }
}

impl BlockDevice for Model {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request, cx: &Cx) -> core::result::Result<(), (Request, Refused)> {
        assert!(request.is_within(&self.limits));
        let mut state = self.state.lock(cx);
        if state.waiting.len() == self.limits.depth {
            return Err((request, Refused::Full));
        }
        state.waiting.push(request);
        Ok(())
    }

    fn room(&self) -> &WaitList {
        &self.room
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl Backing for &'static Model {
    fn size(&self) -> u64 {
        SIZE as u64
    }

    fn locate(&self, index: u32, _cx: &Cx) -> Step<Extent> {
        let sector = u64::from(index) * PAGE_SECTORS;
        Ok(Extent::On { device: *self, sector, pages: (SECTORS - sector).div_ceil(PAGE_SECTORS) as u32 })
    }

    fn device(&self) -> &'static dyn BlockDevice {
        *self
    }
}

/// Runs a step until it no longer waits; the device works meanwhile.
fn complete<T>(device: &Model, cx: &Cx, mut step: impl FnMut() -> Step<T>) -> Step<T> {
    for _ in 0..10_000 {
        match step() {
            Err(Stop::BlockOnDevice | Stop::Absent(_)) => assert!(device.work(cx), "it waits for nothing"),
            Err(Stop::Again) => {}
            other => return other,
        }
    }
    panic!("it waits for ever");
}

fn read(cache: &Cache, device: &Model, at: u64, len: usize, keep: Keep<'_>, cx: &Cx) -> Step<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        let count = complete(device, cx, || {
            cache.read(at + done as u64, u64::MAX, &mut Writer::from(&mut bytes[done..]), keep, cx)
        })?;
        if count == 0 {
            break;
        }
        done += count;
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn write(cache: &Cache, device: &Model, at: u64, bytes: &[u8], cx: &Cx) -> Step<usize> {
    let mut done = 0;
    while done < bytes.len() {
        let count =
            complete(device, cx, || cache.write(at + done as u64, u64::MAX, &mut Reader::from(&bytes[done..]), cx))?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

fn sync(cache: &Cache, device: &Model, range: Range<u64>, cx: &Cx) -> Step<()> {
    let mut progress = SyncProgress::default();
    complete(device, cx, || cache.sync(range.clone(), Depth::Kept, &mut progress, None, cx))
}

/// So that the next test finds none.
fn end(cache: StrongRc<Cache>, device: &Model, cx: &mut Cx) {
    while device.work(cx) {}
    while cache.get(cx).forget(0..u64::MAX, true, cx).is_some() {}
    CACHES.lock(cx).clear();
    cache.destroy(cx);
    assert_eq!((clean_pages(), dirty_pages()), (0, 0));
}

#[test]
fn what_is_read_is_what_was_written_and_a_sync_brings_it_to_the_device() {
    let _machine = test_memory();
    for seed in 0..8 {
        frame::with_context(|cx| {
            let device = Model::new(seed, 0);
            let owner = Cache::new(Box::new(device), cx);
            let cache = owner.get(cx);
            let (mut model, ahead) = (device.content(cx), ReadAhead::default());
            let mut random = Random(seed + 100);
            let mut pass = 0;
            for _ in 0..4000 {
                let at = random.next(SIZE as u64 + 10);
                let most = if random.next(4) == 0 { 40_000 } else { 700 };
                let len = 1 + random.next(most) as usize;
                let end = model.len().min(at as usize + len);
                let (first, pages) = ((at / PAGE) as u32, 1 + random.next(9) as usize);
                match random.next(12) {
                    0..=3 => {
                        let keep = if random.next(3) == 0 { Keep::Nothing } else { Keep::Pages(&ahead) };
                        let bytes = read(&cache, device, at, len, keep, cx).unwrap();
                        assert_eq!(bytes, &model[model.len().min(at as usize)..end]);
                    }
                    4..=6 => {
                        let bytes: Vec<u8> = (0..len).map(|_| random.next(256) as u8).collect();
                        let written = write(&cache, device, at, &bytes, cx).unwrap();
                        assert_eq!(written, end.saturating_sub(at as usize));
                        model[end - written..end].copy_from_slice(&bytes[..written]);
                    }
                    7 => {
                        let before = device.state.lock(cx).flushes;
                        sync(&cache, device, at..end as u64, cx).unwrap();
                        assert!(device.state.lock(cx).flushes > before);
                        let content = device.content(cx);
                        assert!(at as usize >= end || content[at as usize..end] == model[at as usize..end]);
                    }
                    8 => _ = give_back(),
                    9 => {
                        let frames: Vec<UFrame> = (0..pages).map(|_| UFrame::zeroed().unwrap()).collect();
                        let mut direct = DirectRead::default();
                        let begin = || Some((first, frames.clone()));
                        let passed =
                            complete(device, cx, || cache.read_past(u64::from(first) * PAGE, begin, &mut direct, cx))
                                .unwrap();
                        for (index, frame) in frames.iter().take(passed as usize).enumerate() {
                            let mut bytes = [0; PAGE_SIZE];
                            frame.reader(0..PAGE_SIZE).read(&mut bytes).unwrap();
                            let at = (first as usize + index) * PAGE_SIZE;
                            assert_eq!(bytes, model[at..at + PAGE_SIZE]);
                        }
                    }
                    10 => {
                        let bytes: Vec<u8> = (0..pages * PAGE_SIZE).map(|_| random.next(256) as u8).collect();
                        let frame = |bytes: &[u8]| {
                            let frame = UFrame::zeroed().unwrap();
                            frame.writer(0..PAGE_SIZE).write(bytes).unwrap();
                            frame
                        };
                        let frames: Vec<UFrame> = bytes.chunks(PAGE_SIZE).map(frame).collect();
                        let passed = complete(device, cx, || cache.write_past(first, frames.clone(), cx)).unwrap();
                        let (at, len) = (first as usize * PAGE_SIZE, passed as usize * PAGE_SIZE);
                        model[at..at + len].copy_from_slice(&bytes[..len]);
                        pass += passed;
                    }
                    _ => {
                        assert_eq!(cache.forget(at..end as u64, false, cx), None);
                        device.work(cx);
                    }
                }
            }
            sync(&cache, device, 0..u64::MAX, cx).unwrap();
            assert!(device.content(cx) == model);
            assert!(pass > 100, "{pass}");
            assert_eq!(dirty_pages(), 0);
            drop(cache);
            end(owner, device, cx);
        });
    }
}

#[test]
fn what_fails_is_told_and_nothing_waits_for_ever() {
    let _machine = test_memory();
    for seed in 0..8 {
        frame::with_context(|cx| {
            let device = Model::new(seed, 3);
            let owner = Cache::new(Box::new(device), cx);
            let cache = owner.get(cx);
            let seen = AtomicU64::new(cache.failures());
            let (mut errors, mut told) = (0, 0);
            let mut random = Random(seed + 200);
            for _ in 0..4000 {
                let (at, len) = (random.next(SIZE as u64), 1 + random.next(20_000) as usize);
                let outcome = match random.next(3) {
                    0 => read(&cache, device, at, len, Keep::Pages(&ReadAhead::default()), cx).map(|_| ()),
                    1 => write(&cache, device, at, &vec![1; len], cx).map(|_| ()),
                    _ => sync(&cache, device, at..at + len as u64, cx),
                };
                match outcome {
                    Ok(()) => {}
                    Err(stop) => {
                        assert_eq!(stop, Stop::Error(Errno::EIO));
                        errors += 1;
                    }
                }
                if cache.check(&seen).is_err() {
                    told += 1;
                    assert_eq!(cache.check(&seen), Ok(()), "once");
                }
                if random.next(4) == 0 {
                    give_back();
                }
            }
            assert!(errors > 100 && told > 100, "{errors} {told}");
            drop(cache);
            end(owner, device, cx);
        });
    }
}

#[test]
fn reading_on_is_read_ahead_and_reading_anywhere_is_not() {
    let _machine = test_memory();
    frame::with_context(|cx| {
        let device = Model::new(1, 0);
        let owner = Cache::new(Box::new(device), cx);
        let cache = owner.get(cx);
        let ahead = ReadAhead::default();
        let (mut waits, mut at) = (0, 0);
        while at < SIZE as u64 {
            let mut byte = [0];
            match cache.read(at, u64::MAX, &mut Writer::from(&mut byte[..]), Keep::Pages(&ahead), cx) {
                Ok(_) => at += PAGE,
                Err(_) => {
                    waits += 1;
                    while device.work(cx) {}
                }
            }
        }
        // Of 257 pages the device takes 7 at a time.
        assert!(waits < 60, "{waits}");
        assert_eq!(cache.forget(0..u64::MAX, false, cx), None);
        assert_eq!(clean_pages(), 0);
        for page in [200, 30, 100, 7] {
            read(&cache, device, page * PAGE, 1, Keep::Pages(&ahead), cx).unwrap();
        }
        assert_eq!(clean_pages(), 4);
        drop(cache);
        end(owner, device, cx);
    });
}

#[test]
fn what_a_busy_device_refuses_to_have_pass_leaves_no_trace_where_pages_were_taken_away() {
    let _machine = test_memory();
    frame::with_context(|cx| {
        let device = Model::new(1, 0);
        let owner = Cache::new(Box::new(device), cx);
        let cache = owner.get(cx);
        read(&cache, device, 0, 7 * PAGE_SIZE, Keep::Pages(&ReadAhead::of_at_most(0)), cx).unwrap();
        while device.work(cx) {}
        while clean_pages() > 0 {
            give_back();
        }
        let frames = || -> Vec<UFrame> { (0..7).map(|_| UFrame::zeroed().unwrap()).collect() };
        for first in [100, 110, 120, 130] {
            assert_eq!(cache.write_past(first, frames(), cx), Ok(7));
        }
        assert!(matches!(cache.write_past(0, frames(), cx), Err(Stop::Absent(_))));
        let mut direct = DirectRead::default();
        assert!(matches!(cache.read_past(0, || Some((0, frames())), &mut direct, cx), Err(Stop::Absent(_))));
        assert!(!direct.is_under_way());
        while device.work(cx) {}
        assert_eq!((clean_pages(), dirty_pages()), (0, 0));
        assert!(cache.is_clean(cx));
        drop(cache);
        end(owner, device, cx);
    });
}

#[test]
fn a_direct_read_learns_how_it_ended_and_is_begun_anew_elsewhere() {
    let _machine = test_memory();
    frame::with_context(|cx| {
        let device = Model::new(1, 0);
        let owner = Cache::new(Box::new(device), cx);
        let cache = owner.get(cx);
        let model = device.content(cx);
        let frame = UFrame::zeroed().unwrap();
        let bytes_at = |index: usize| {
            let mut bytes = [0; PAGE_SIZE];
            frame.reader(0..PAGE_SIZE).read(&mut bytes).unwrap();
            bytes == model[index * PAGE_SIZE..(index + 1) * PAGE_SIZE]
        };
        let mut direct = DirectRead::default();
        let begin = |first: u32| {
            let frame = frame.clone();
            move || Some((first, vec![frame]))
        };
        assert!(matches!(cache.read_past(5 * PAGE, begin(5), &mut direct, cx), Err(Stop::Absent(_))));
        assert!(device.work(cx));
        // Somebody has moved the offset meanwhile.
        assert!(matches!(cache.read_past(9 * PAGE, begin(9), &mut direct, cx), Err(Stop::Absent(_))));
        assert!(device.work(cx));
        assert_eq!(cache.read_past(9 * PAGE, || None, &mut direct, cx), Ok(1));
        assert!(bytes_at(9));

        device.state.lock(cx).fails = 1;
        assert!(matches!(cache.read_past(7 * PAGE, begin(7), &mut direct, cx), Err(Stop::Absent(_))));
        assert!(device.work(cx));
        assert_eq!(cache.read_past(7 * PAGE, begin(7), &mut direct, cx), Ok(0));
        // Whoever reads has gone.
        assert!(matches!(cache.read_past(7 * PAGE, begin(7), &mut direct, cx), Err(Stop::Absent(_))));
        drop(direct);
        assert!(!cache.is_clean(cx));
        assert!(device.work(cx));
        assert!(cache.is_clean(cx));
        drop(cache);
        end(owner, device, cx);
    });
}

#[test]
fn pages_are_cut_at_once_or_not_at_all() {
    let _machine = test_memory();
    frame::with_context(|cx| {
        let device = Model::new(1, 0);
        let owner = Cache::new(Box::new(device), cx);
        let cache = owner.get(cx);
        let before = device.content(cx)[..3 * PAGE_SIZE].to_vec();
        let new: Vec<u8> = before.iter().map(|byte| !byte).collect();
        write(&cache, device, 0, &new, cx).unwrap();
        assert!(matches!(cache.page(3, Wanted::Once(1), cx), Err(Stop::Absent(_))));
        assert!(matches!(cache.cut_at_once(0..4, cx), Err(Stop::Absent(_))), "the device has one");
        assert_eq!(read(&cache, device, 0, new.len(), Keep::Nothing, cx).unwrap(), new, "the others stay");
        complete(device, cx, || cache.cut_at_once(0..4, cx)).unwrap();
        assert_eq!(dirty_pages(), 0);
        assert_eq!(read(&cache, device, 0, new.len(), Keep::Nothing, cx).unwrap(), before);
        assert_eq!(cache.end_to_cut(0..1000, cx), 1000, "there is little");
        drop(cache);
        end(owner, device, cx);
    });
}
