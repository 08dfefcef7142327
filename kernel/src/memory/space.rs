//! [`AddressSpace`]: what a process can see of memory: its VMAs, and the page tables that follow from them.
//!
//! ```text
//!   mmap(2), brk(2), ... (map.rs)      a fault (fault.rs)
//!            |                                |
//!            v                                v
//!        Layout: VMAs, brk  -- allows -->  Pages of an object, or a fresh frame
//!            |                                |
//!            `--- unmap, protect --> VmSpace <-- map
//! ```
//!
//! Pages are mapped only on a fault. The page tables never allow more than the VMAs do, and are changed only with the layout's lock
//! held. Lock order: layout, then locks of a mapped object, then page tables. A child's layout is locked after its parent's.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use frame::Cx;
use frame::mm::{Access, PAGE_SIZE, Prot, VmSpace};
use refs::{NoSuspend, SpinLock, StrongRc, WaitList, WeakRc};

use super::BadAccess;
use super::backing::{Backing, BackingObject, with_pages};
use super::fault::page_of;
use super::layout::Layout;
use super::madvise::Lock;
use super::vma::VmaFlags;
use crate::error::{Errno, Result};
use crate::reclaim::Payer;

/// The lowest address that is mapped without being asked for by name (Linux's `vm.mmap_min_addr`).
pub const LOWEST: usize = 0x1_0000;

/// What a process can see of memory.
pub struct AddressSpace {
    pub(super) vm: VmSpace,
    pub(super) layout: SpinLock<Layout>,
    /// Who waits until the layout is not claimed any more.
    pub(super) released: WaitList,
    /// The program it was made for: `/proc/PID/exe`.
    pub(super) executable: SpinLock<Option<Executable>>,
    peak_pages: AtomicUsize,
    /// How many of the mapped pages others may have as well, at most: an object, a child, a parent. Changed with the layout locked.
    shared_pages: AtomicUsize,
    /// What is special about VMAs that come (MCL_FUTURE): the bits of [`VmaFlags`].
    later_flags: AtomicU16,
    /// Whether threads of several processes have it, or had it.
    is_lent: AtomicBool,
    registered: Registered,
}

/// Where execve(2) put what: for `/proc/PID/stat`, `cmdline`, `environ` and `auxv`.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The code of the program.
    pub code: Range<usize>,
    /// Its initialised data.
    pub data: Range<usize>,
    /// Where the stack pointer was at the start.
    pub stack: usize,
    /// The strings of `argv`.
    pub arguments: Range<usize>,
    /// The strings of `envp`.
    pub environment: Range<usize>,
    /// The auxiliary vector as the program found it, with its terminator: kinds and values in turn.
    pub auxiliary: Vec<u64>,
}

/// What a program runs from. The address spaces that run it own it; memory does not look inside.
pub type Executable = StrongRc<dyn Any + Send + Sync>;

/// Sizes in pages, for `/proc/PID/statm` and `status`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// All VMAs.
    pub total: usize,
    /// Pages in memory.
    pub resident: usize,
    /// The most pages that were ever in memory.
    pub peak_resident: usize,
    /// Private writable VMAs without the stack.
    pub data: usize,
    /// VMAs that grow downwards.
    pub stack: usize,
    /// The program's code.
    pub code: usize,
    /// VMAs that show a file.
    pub file: usize,
    /// VMAs that are locked.
    pub locked: usize,
}

/// One VMA, for `/proc/PID/maps`.
pub struct VmaReport {
    /// Its addresses.
    pub range: Range<usize>,
    /// What user code may do.
    pub prot: Prot,
    /// What is special about it.
    pub flags: VmaFlags,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// What it shows.
    pub name: VmaName,
}

/// What a VMA shows, for `/proc/PID/maps`.
pub enum VmaName {
    /// Anonymous memory.
    Anonymous,
    /// What brk(2) made.
    Heap,
    /// The first thread's stack.
    Stack,
    /// What the kernel has mapped.
    Special(&'static str, WeakRc<dyn BackingObject>),
    /// Something else.
    Object(WeakRc<dyn BackingObject>),
}

/// How many registers there are of address spaces.
const REGISTERS: usize = 16;

/// Address spaces, by a number that grows: a walk that pauses finds those that were made meanwhile, copies among them. All are in the registers together, each in that
/// of the core that made it. On lines of its own, so that cores on which programs fork and end do not meet there.
#[repr(align(64))]
struct Register(SpinLock<BTreeMap<u64, WeakRc<AddressSpace>>>);

static REGISTRY: [Register; REGISTERS] = [const { Register(SpinLock::new(BTreeMap::new())) }; REGISTERS];

/// The last number that was given. A walk may pass a number before it is registered: then nothing has been copied into that address space yet, and what will be is the
/// copy of one that the walk has been to.
static LAST_NUMBER: Line = Line(AtomicU64::new(0));

#[repr(align(64))]
struct Line(AtomicU64);

/// Where an address space is registered.
struct Registered {
    number: u64,
    register: usize,
}

impl AddressSpace {
    /// An empty address space.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> Result<StrongRc<AddressSpace>> {
        super::admit()?;
        let vm = VmSpace::new().ok_or(Errno::ENOMEM)?;
        Ok(StrongRc::new_cyclic(|weak| AddressSpace {
            vm,
            layout: SpinLock::new(Layout::default()),
            released: WaitList::new(),
            executable: SpinLock::new(None),
            peak_pages: AtomicUsize::new(0),
            shared_pages: AtomicUsize::new(0),
            later_flags: AtomicU16::new(0),
            is_lent: AtomicBool::new(false),
            registered: register(weak),
        }))
    }

    /// Charges somebody for the end of what is mapped, in an address space that is charged to nobody.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn begin_charge(&self, payer: &Payer, cx: &Cx) -> Result<()> {
        self.layout.lock(cx).begin_charge(payer)
    }

    /// Has somebody else charged, whatever the bound.
    pub fn charge_to(&self, payer: &Payer, cx: &impl NoSuspend) {
        self.layout.lock(cx).charge_to(payer);
    }

    /// Another process has it as well from now on (CLONE_VM).
    pub fn lend(&self) {
        self.is_lent.store(true, Ordering::Relaxed);
    }

    /// Whether threads of several processes have it, or had it.
    pub fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Relaxed)
    }

    /// Whether others may see what a program writes here: another process that has it, or one that maps the same object.
    pub fn is_seen_by_others(&self, cx: &Cx) -> bool {
        self.is_lent() || self.layout.lock(cx).totals().shared > 0
    }

    /// The page tables.
    #[inline(always)]
    pub fn vm(&self) -> &VmSpace {
        &self.vm
    }

    /// What is special about all VMAs that programs map from now on: how mlockall(2) has locked them.
    #[inline(always)]
    pub fn later_flags(&self) -> VmaFlags {
        VmaFlags::from_bits_truncate(self.later_flags.load(Ordering::Relaxed))
    }

    /// Says how VMAs that come are locked (MCL_FUTURE). A copy of the address space forgets it.
    pub fn lock_later(&self, lock: Lock) {
        self.later_flags.store(lock.flags().bits(), Ordering::Relaxed);
    }

    /// What is mapped at an address, if other address spaces may share it: the object's number, and the offset in it in bytes.
    ///
    /// # Errors
    /// Nothing is mapped there, the program may not read it, or it lies behind the end of the file.
    pub fn shared_object(&self, address: usize, cx: &Cx) -> core::result::Result<Option<(u64, u64)>, BadAccess> {
        let layout = self.layout.lock(cx);
        let vma = layout.vmas().find_again(address).ok_or(BadAccess::NotMapped)?;
        if vma.prot.is_empty() {
            return Err(BadAccess::NotAllowed);
        }
        let Backing::Object { object, first } = &vma.backing else { return Ok(None) };
        let page = address & !(PAGE_SIZE - 1);
        if self.vm.query(page, cx).is_none() {
            let index = first.saturating_add(((page - vma.range().start) / PAGE_SIZE) as u64);
            page_of(object, index, Access::Read, cx)?;
        }
        if !vma.flags.contains(VmaFlags::SHARED) {
            return Ok(None);
        }
        let number = with_pages(object, cx, |pages| pages.mapped().number());
        let offset = first.saturating_mul(PAGE_SIZE as u64).saturating_add((address - vma.range().start) as u64);
        Ok(number.map(|number| (number, offset)))
    }

    /// The program it was made for.
    pub fn executable(&self, cx: &Cx) -> Option<WeakRc<dyn Any + Send + Sync>> {
        self.executable.lock(cx).as_ref().map(StrongRc::downgrade)
    }

    /// Says which program it was made for, and where that has what.
    pub fn set_image(&self, executable: Executable, image: Image, cx: &Cx) {
        *self.executable.lock(cx) = Some(executable);
        self.layout.lock(cx).image = image;
    }

    /// Sets the auxiliary vector of the image: once the stack is written, of which it is a part.
    pub fn set_auxiliary(&self, auxiliary: Vec<u64>, cx: &Cx) {
        self.layout.lock(cx).image.auxiliary = auxiliary;
    }

    /// Where execve(2) put what.
    pub fn image(&self, cx: &Cx) -> Image {
        self.layout.lock(cx).image.clone()
    }

    /// The VMA of an address, or the next above.
    #[inline(always)]
    pub fn report(&self, address: usize, cx: &Cx) -> Option<VmaReport> {
        let layout = self.layout.lock(cx);
        Some(layout.describe(layout.vmas().at_or_above(address)?, cx))
    }

    /// Sizes in pages.
    pub fn sizes(&self, cx: &Cx) -> Sizes {
        let layout = self.layout.lock(cx);
        let resident = self.vm.mapped_pages();
        let totals = layout.totals();
        Sizes {
            total: totals.all,
            data: totals.data,
            stack: totals.stack,
            file: totals.objects,
            locked: totals.locked,
            resident,
            peak_resident: resident.max(self.peak_pages.load(Ordering::Relaxed)),
            code: layout.image.code.len().div_ceil(PAGE_SIZE),
        }
    }

    /// The most pages that were ever in memory.
    pub fn peak_resident_pages(&self) -> usize {
        self.peak_pages.load(Ordering::Relaxed).max(self.vm.mapped_pages())
    }

    /// So many pages were mapped that others have as well.
    #[inline(always)]
    pub(super) fn add_shared(&self, pages: usize) {
        self.shared_pages.store(self.shared_pages.load(Ordering::Relaxed) + pages, Ordering::Relaxed);
    }

    /// A page that others had as well is the process's own now.
    #[inline(always)]
    pub(super) fn remove_shared(&self) {
        self.shared_pages.store(self.shared_pages.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
    }

    /// Others may have all pages as well: it was copied, or is a copy.
    pub(super) fn share_all(&self) {
        self.shared_pages.store(self.vm.mapped_pages(), Ordering::Relaxed);
    }

    /// So many pages at least are nobody else's.
    pub(super) fn private_pages(&self) -> usize {
        self.vm.mapped_pages().saturating_sub(self.shared_pages.load(Ordering::Relaxed))
    }

    /// Unmaps pages; the VMAs are the caller's concern, who holds the layout's lock.
    pub(super) fn unmap_range(&self, range: Range<usize>, cx: &Cx) {
        self.note_peak();
        self.vm.unmap(range, cx);
    }

    /// As [`unmap_range`](Self::unmap_range), for a part that is a bounded piece of work and for which other cores are asked once; the range begins behind it then.
    pub(super) fn unmap_batch(&self, range: &mut Range<usize>, cx: &Cx) {
        self.note_peak();
        self.vm.unmap_batch(range, cx);
    }

    #[inline(always)]
    fn note_peak(&self) {
        let pages = self.vm.mapped_pages();
        if pages > self.peak_pages.load(Ordering::Relaxed) {
            self.peak_pages.store(pages, Ordering::Relaxed);
        }
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        let Registered { number, register } = self.registered;
        REGISTRY[register].0.with(|spaces| spaces.remove(&number));
    }
}

fn register(space: WeakRc<AddressSpace>) -> Registered {
    let number = LAST_NUMBER.0.fetch_add(1, Ordering::Relaxed) + 1;
    let register = frame::cpu::current_core() % REGISTERS;
    REGISTRY[register].0.with(|spaces| spaces.insert(number, space));
    Registered { number, register }
}

/// The first address space with that number or a higher one, and its number.
pub(super) fn registered_from(number: u64) -> Option<(u64, WeakRc<AddressSpace>)> {
    let first = |register: &Register| {
        register.0.with(|spaces| spaces.range(number..).next().map(|(number, space)| (*number, *space)))
    };
    REGISTRY.iter().take(frame::cpu::count()).filter_map(first).min_by_key(|(number, _)| *number)
}
