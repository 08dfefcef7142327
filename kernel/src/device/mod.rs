//! Terminals and the memory devices.

use crate::fs::{DeviceNode, Driver};

/// Who opens which device nodes.
pub const DRIVERS: &[Driver] = &[];

/// What devtmpfs (`/dev`) holds at boot.
pub const NODES: &[DeviceNode] = &[];
