pub struct Cx(u8);

impl Cx {
    fn set(&mut self, value: u8) {
        self.0 = value;
    }

    fn park_async(&mut self) {
        self.switch_async();
    }

    #[cfg_attr(false, ebb_lint::leaf)]
    fn switch_async(&mut self) {}
}

impl Drop for Cx {
    fn drop(&mut self) {
        self.set(0);
    }
}
