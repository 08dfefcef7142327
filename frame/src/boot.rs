//! From the first instruction to the first task.

use refs::{Cx, SpinLock};

use crate::mm::{BootModule, FramePolicy, SlabPolicy};

/// What the kernel brings: its policies and where it starts.
pub struct Config {
    /// Which frames are handed out.
    pub frames: &'static dyn FramePolicy,
    /// Which slab a heap object goes to.
    pub slabs: &'static dyn SlabPolicy,
    /// Which task runs next.
    pub tasks: &'static dyn tasks::Policy,
    /// Called once on the boot core when all of `frame` works, before any task runs: it spawns the first task(s).
    pub start: fn(&'static BootInfo),
}

/// What the boot loader told.
pub struct BootInfo {
    /// The kernel's command line.
    pub command_line: &'static str,
    /// How many bytes of memory the machine has, with what nobody can use.
    pub memory_bytes: usize,
    initramfs: SpinLock<Option<BootModule>>,
}

impl BootInfo {
    #[cfg(target_os = "none")]
    pub(crate) fn new(command_line: &'static str, initramfs: Option<BootModule>, memory_bytes: usize) -> Self {
        BootInfo { command_line, memory_bytes, initramfs: SpinLock::new(initramfs) }
    }

    /// The initial ram disk as it was loaded, if there is one that nobody has taken.
    pub fn take_initramfs(&self, cx: &Cx) -> Option<BootModule> {
        self.initramfs.lock(cx).take()
    }
}

/// The image's configuration: what [`kernel_image!`](crate::kernel_image) names.
#[cfg(target_os = "none")]
pub(crate) fn config() -> &'static Config {
    unsafe extern "Rust" {
        safe fn ebb_config() -> &'static Config;
    }
    ebb_config()
}

/// Makes the crate a kernel image: `kernel_image!(&CONFIG)`, once.
#[macro_export]
macro_rules! kernel_image {
    ($config:expr) => {
        /// What `frame` boots.
        // SAFETY: the name is `frame`'s own, and the type is what it declares.
        #[unsafe(no_mangle)]
        fn ebb_config() -> &'static $crate::Config {
            $config
        }
    };
}

/// What a core's worker does when there is nothing to run, and when a task leaves.
#[cfg(target_os = "none")]
pub(crate) struct CoreHooks;

#[cfg(target_os = "none")]
impl tasks::Hooks for CoreHooks {
    fn report(&self, _worker: &tasks::Worker) -> Option<&'static refs::reclaim::Report> {
        Some(&crate::arch::machine::core_block::core_block().report)
    }

    fn idle(&self, _worker: &tasks::Worker) -> core::ops::ControlFlow<()> {
        #[cfg(feature = "check-locks")]
        refs::lock_order::check_none_held();
        #[cfg(feature = "stretch")]
        {
            crate::stretch::end();
            crate::stretch::quiescent_from_here();
        }
        let block = crate::arch::machine::core_block::core_block();
        let report = &block.report;
        block.idles.set(true);
        // SAFETY: a worker that idles runs no task; handlers that come in say that the core is back.
        unsafe { report.leave() };
        crate::arch::machine::instructions::wait_for_interrupt();
        report.come_back();
        block.idles.set(false);
        #[cfg(feature = "stretch")]
        crate::stretch::begin(crate::stretch::Cause::Idle);
        core::ops::ControlFlow::Continue(())
    }

    fn look_again(&self, worker: &tasks::Worker) {
        crate::cpu::dead_are_left(worker.number());
    }

    fn wait_for_others(&self, worker: &tasks::Worker) {
        // A virtual core that halts leaves its processor to the one that it waits for.
        self.look_again(worker);
        let _ = self.idle(worker);
    }

    fn pause(&self, _worker: &tasks::Worker) {
        // SAFETY: nothing is borrowed where this is called.
        unsafe { crate::irq::let_in() };
    }

    #[inline]
    fn leave(&self, _worker: &tasks::Worker) {
        #[cfg(feature = "check-locks")]
        refs::lock_order::check_none_held();
        crate::user::unload();
        #[cfg(feature = "stretch")]
        crate::stretch::switch();
    }
}
