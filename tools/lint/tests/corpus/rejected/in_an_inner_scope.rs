use context::*;

fn caller() -> usize {
    struct Local;
    impl Local {
        fn flush(&self, cx: &mut Cx) { //~ cx_without_suffix
            Disk.flush_async(cx); //~ call_outside_async
        }
    }
    const SIZE: usize = {
        const fn one() -> usize {
            1
        }
        one()
    };
    SIZE
}
