use other::deep::deeper::Disk;

fn caller(cx: &mut other::Cx) -> usize { //~ cx_without_suffix
    other::twice_async(cx); //~ call_outside_async
    other::read_all_async(cx, &Disk) //~ call_outside_async
}
