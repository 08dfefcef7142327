//! The crate that the programs of the corpus use: a context, and things that suspend.

pub struct Cx(());

#[cfg_attr(false, ebb_lint::leaf)]
pub fn park_async(cx: &mut Cx) {
    let _ = cx;
}

pub trait File {
    fn read_async(&self, cx: &mut Cx) -> usize;
    fn read_twice_async(&self, cx: &mut Cx) -> usize {
        self.read_async(cx) + self.read_async(cx)
    }
}

pub struct Disk;

impl File for Disk {
    fn read_async(&self, cx: &mut Cx) -> usize {
        park_async(cx);
        1
    }
}

impl Disk {
    pub fn flush_async(&self, cx: &mut Cx) {
        park_async(cx);
    }
}

#[cfg_attr(false, ebb_lint::root)]
pub fn start(job: impl FnOnce(&mut Cx)) {
    job(&mut Cx(()));
}

#[macro_export]
macro_rules! park {
    ($cx:expr) => {
        $crate::park_async($cx)
    };
}

pub async fn fetch_async() -> u8 {
    1
}
