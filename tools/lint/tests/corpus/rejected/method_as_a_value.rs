use context::*;

fn caller(disk: &Disk) {
    let flush = Disk::flush_async; //~ async_as_value
    let read = <Disk as File>::read_async; //~ async_as_value
    let _ = (disk, flush, read);
}
