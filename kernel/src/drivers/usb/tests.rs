//! A controller that keeps to the rules, and ones that do not.

use std::string::String;
use std::vec::Vec;

use frame::Cx;
use frame::mm::FramePolicy;
use frame::pci::Device;
use refs::WaitList;

use super::controller::{Controller, Failure};
use super::simulated::{Model, Turns};
use super::*;
use crate::drivers::input::{self, show};
use allocators::buddy::FRAMES;

static DRIVER: WaitList = WaitList::new();

fn in_kernel(test: impl FnOnce(&mut Cx)) {
    let _machine = crate::block::test_memory();
    frame::time::stand_at(1_000_000_000);
    frame::with_context(test);
}

/// Begins to use a controller.
fn start_async(cx: &mut Cx, model: &'static Model) -> core::result::Result<Controller, &'static str> {
    let device = Device::claim(|identity| identity.class == CLASS).expect("it is plugged in");
    let interrupt = |device: &Device| device.interrupt(0, 0, interrupted, 0);
    Controller::start_async(cx, &mut Turns(model), device, &DRIVER, interrupt)
}

/// Lets a controller do all that there is to do.
fn settle_async(cx: &mut Cx, controller: &mut Controller, model: &'static Model) -> core::result::Result<(), Failure> {
    for _ in 0..40 {
        controller.turn_async(cx, &mut Turns(model))?;
    }
    Ok(())
}

fn names(cx: &Cx) -> Vec<String> {
    show::all(cx).into_iter().map(|named| named.description.name).collect()
}

fn free_frames() -> usize {
    frame::mm::gather();
    FRAMES.available()
}

#[test]
fn a_keyboard_is_found_and_heard_and_its_lights_are_set() {
    in_kernel(|cx| {
        for context_bytes in [32, 64] {
            let model = Model::plug(context_bytes);
            let mut controller = start_async(cx, model).unwrap();
            settle_async(cx, &mut controller, model).unwrap();
            assert!(controller.is_settled());
            assert_eq!((names(cx), model.configured()), (std::vec!["Somebody Keyboard".into()], 1));
            let all = show::all(cx);
            assert_eq!(all[0].description.phys, "usb-0000:00:01.0-1/input0");
            let file = input::open(64, cx).unwrap();
            for report in [[2, 0, 4, 0, 0, 0, 0, 0], [0; 8], [0; 8]] {
                model.report(report);
            }
            settle_async(cx, &mut controller, model).unwrap();
            let expected = [
                (4, 4, 0x7_00e1),
                (1, 42, 1),
                (4, 4, 0x7_0004),
                (1, 30, 1),
                (0, 0, 0),
                (4, 4, 0x7_00e1),
                (1, 42, 0),
                (4, 4, 0x7_0004),
                (1, 30, 0),
                (0, 0, 0),
            ];
            assert_eq!(input::heard(&*file, cx), expected);
            input::write(&*file, (0x11, 1, 1), cx);
            settle_async(cx, &mut controller, model).unwrap();
            assert_eq!(model.lights(), [2]);
            // More reports than a ring has entries.
            for round in 0..400_u32 {
                model.report([0, 0, 4 + (round & 1) as u8, 0, 0, 0, 0, 0]);
                settle_async(cx, &mut controller, model).unwrap();
            }
            assert!(!input::heard(&*file, cx).is_empty());
            drop(file);
            controller.unplug_all(cx);
            assert!(names(cx).is_empty());
        }
    });
}

#[test]
fn a_key_that_is_held_down_repeats() {
    in_kernel(|cx| {
        let model = Model::plug(32);
        let mut controller = start_async(cx, model).unwrap();
        settle_async(cx, &mut controller, model).unwrap();
        let file = input::open(64, cx).unwrap();
        model.report([0, 0, 4, 0, 0, 0, 0, 0]);
        let begin = Timeline::Boot.now();
        settle_async(cx, &mut controller, model).unwrap();
        let repetitions = input::heard(&*file, cx).into_iter().filter(|&event| event == (1, 30, 2)).count() as u64;
        let time = (Timeline::Boot.now() - begin) / MS;
        assert!(repetitions > 3 && repetitions <= (time - 250) / 33 + 1, "{repetitions} in {time} ms");
        model.report([0; 8]);
        settle_async(cx, &mut controller, model).unwrap();
        input::heard(&*file, cx);
        settle_async(cx, &mut controller, model).unwrap();
        assert_eq!(input::heard(&*file, cx), []);
        controller.unplug_all(cx);
    });
}

#[test]
fn devices_that_come_and_go_leave_nothing_behind() {
    in_kernel(|cx| {
        let model = Model::plug(32);
        let mut controller = start_async(cx, model).unwrap();
        settle_async(cx, &mut controller, model).unwrap();
        let before = free_frames();
        for _ in 0..100 {
            model.disconnect(0);
            settle_async(cx, &mut controller, model).unwrap();
            assert!(names(cx).is_empty());
            model.connect(0);
            settle_async(cx, &mut controller, model).unwrap();
            assert_eq!(names(cx).len(), 1);
        }
        assert_eq!(free_frames(), before);
        controller.unplug_all(cx);
    });
}

#[test]
fn a_controller_that_lies_is_survived_and_leaves_nothing_behind() {
    const SEEDS: u64 = 10_000;
    in_kernel(|cx| {
        // What is made once.
        let before = free_frames();
        let (mut refused, mut cut_off, mut heard) = (0, 0, 0);
        for seed in 0..SEEDS {
            let model = Model::plug(if seed & 1 == 0 { 32 } else { 64 });
            model.lie(seed, [2, 5, 20, 100][seed as usize % 4]);
            let Ok(mut controller) = start_async(cx, model) else {
                refused += 1;
                continue;
            };
            let mut outcome = Ok(());
            let mut file = None;
            for round in 0..12 {
                model.report([2, 0, 4 + round, 0, 0, 0, 0, 0]);
                match round {
                    5 => model.disconnect(0),
                    6 => model.connect(0),
                    _ => {}
                }
                outcome = settle_async(cx, &mut controller, model);
                if outcome.is_err() {
                    break;
                }
                file = file.or_else(|| input::open(64, cx).ok());
                if let Some(file) = &file {
                    heard += u64::from(!input::heard(&**file, cx).is_empty());
                    input::write(&**file, (0x11, 1, i32::from(round & 1)), cx);
                }
            }
            cut_off += u64::from(outcome.is_err());
            controller.unplug_all(cx);
            drop((controller, file));
            assert!(names(cx).is_empty(), "seed {seed}");
            if seed % 1000 == 0 {
                assert!(free_frames() + 64 >= before, "seed {seed}: {} frames of {before}", free_frames());
            }
        }
        assert!(free_frames() + 64 >= before, "{} frames of {before}", free_frames());
        std::eprintln!("{refused} refused, {cut_off} cut off, {heard} times something was heard");
        assert!(refused > 0 && cut_off > 0 && heard > 0 && refused + cut_off < SEEDS);
    });
}
