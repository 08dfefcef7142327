use context::*;

fn caller(cx: &mut Cx, disks: &[Disk]) -> usize { //~ cx_without_suffix
    let mut sum = 0;
    for disk in disks {
        sum += disk.read_async(cx); //~ call_outside_async
        while disk.read_async(cx) > 1 { //~ call_outside_async
            sum -= 1;
        }
    }
    sum
}
