use context::*;

fn caller(cx: &mut Cx, disk: &Disk) { //~ cx_without_suffix
    println!("{}", disk.read_async(cx)); //~ call_outside_async
}
