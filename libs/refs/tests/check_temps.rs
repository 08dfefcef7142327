//! The assertion of the feature `check-temps`: what only wrong `unsafe` code can do is found at the next suspension.
#![cfg(not(ebb_loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};

use refs::{Cx, IdTable, StrongRc, TempRc};

struct Session(u32);

#[test]
fn a_borrow_that_wrong_code_holds_across_a_suspension_is_reported_with_its_type_and_place() {
    // SAFETY: the context ends before it.
    let _core = unsafe { refs::reclaim::Core::register() };
    // SAFETY: this thread has no other Cx, and it is registered.
    let mut cx = unsafe { Cx::new(core::ptr::null()) };
    let sessions: IdTable<Session> = IdTable::new();
    sessions.insert(7, StrongRc::new(Session(70)), &cx);
    drop(sessions.get(7, &cx).map(|session| session.clone()));
    refs::reclaim::reclaim(&mut cx);
    let line = line!() + 1;
    let session = sessions.get(7, &cx).unwrap();
    // SAFETY: none, this is the wrong code.
    let held: TempRc<'static, Session> = unsafe { core::mem::transmute(session) };
    let panic = catch_unwind(AssertUnwindSafe(|| refs::reclaim::reclaim(&mut cx))).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("Session>") && text.contains(&format!("tests/check_temps.rs:{line}:")), "{text}");
    assert_eq!(held.0, 70);
    drop(held);
    refs::reclaim::reclaim(&mut cx);
}
