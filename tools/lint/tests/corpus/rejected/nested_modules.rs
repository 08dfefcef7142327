mod a {
    pub mod b {
        pub(crate) fn wait_async(cx: &mut context::Cx) {
            context::park_async(cx);
        }
        pub mod c {
            pub fn caller(cx: &mut context::Cx) { //~ cx_without_suffix
                super::wait_async(cx); //~ call_outside_async
            }
        }
    }
}
