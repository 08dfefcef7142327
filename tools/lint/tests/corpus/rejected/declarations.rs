use context::*;

pub trait Job {
    fn run(&mut self, first: u8, cx: &'_ mut context::Cx); //~ cx_without_suffix
    fn wait_async(&self) -> u8; //~ suffix_without_cx
    fn start_async(); //~ suffix_without_cx

    #[cfg_attr(false, ebb_lint::leaf)]
    fn destroy<F: Fn(&Cx) -> u8>(self, f: F, cx: &mut Cx); //~ cx_without_suffix
}
