//! [`InputDevice`]: a keyboard, a mouse or a tablet that a machine has, at USB.

use std::ffi::OsString;
use std::str::FromStr;

/// Something that a machine's user has in front of him.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputDevice {
    /// A keyboard.
    Keyboard,
    /// A mouse.
    Mouse,
    /// A tablet, which tells where it is touched.
    Tablet,
}

impl FromStr for InputDevice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "keyboard" => Ok(Self::Keyboard),
            "mouse" => Ok(Self::Mouse),
            "tablet" => Ok(Self::Tablet),
            _ => Err("expected keyboard, mouse or tablet".into()),
        }
    }
}

impl InputDevice {
    /// What QEMU calls it.
    fn device(self) -> &'static str {
        match self {
            Self::Keyboard => "usb-kbd",
            Self::Mouse => "usb-mouse",
            Self::Tablet => "usb-tablet",
        }
    }
}

/// The arguments that give a machine these devices, and the controller that they are at, which is called `usb`. They are called `input0`, `input1` ...
pub(crate) fn arguments(devices: &[InputDevice]) -> Vec<OsString> {
    let controller = (!devices.is_empty()).then(|| "qemu-xhci,id=usb".to_owned());
    let devices = devices.iter().enumerate().map(|(at, it)| format!("{},id=input{at},bus=usb.0", it.device()));
    controller.into_iter().chain(devices).flat_map(|device| ["-device".into(), device.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_behind_one_controller() {
        assert!(arguments(&[]).is_empty());
        let all = arguments(&["keyboard".parse().unwrap(), "tablet".parse().unwrap()]);
        let expected = ["qemu-xhci,id=usb", "usb-kbd,id=input0,bus=usb.0", "usb-tablet,id=input1,bus=usb.0"];
        assert_eq!(all, expected.iter().flat_map(|&device| ["-device", device]).collect::<Vec<_>>());
        assert!("joystick".parse::<InputDevice>().is_err());
    }
}
