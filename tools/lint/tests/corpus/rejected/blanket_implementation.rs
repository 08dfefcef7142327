use context::*;

trait Length {
    fn length(&self, cx: &mut Cx) -> usize; //~ cx_without_suffix
}

impl<T: File + ?Sized> Length for T {
    fn length(&self, cx: &mut Cx) -> usize { //~ cx_without_suffix
        self.read_twice_async(cx) //~ call_outside_async
    }
}
