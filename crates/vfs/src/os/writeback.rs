//! Starting to write a file back.
#![allow(unsafe_code, reason = "a system call that the safe layer does not have")]

use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::os::fd::AsRawFd;

/// `SYNC_FILE_RANGE_WRITE`: start, and wait for nothing.
const START: c_uint = 2;

unsafe extern "C" {
    fn sync_file_range(fd: c_int, offset: i64, count: i64, flags: c_uint) -> c_int;
}

/// Has the kernel start writing a range back, so that a later sync finds most of it done. What
/// fails is reported by that sync: starting takes no error away from it.
pub(crate) fn start(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // A length of 0 would mean all of the file.
    if len > 0 {
        // SAFETY: the call takes no memory, and the descriptor is open while `file` is borrowed.
        let _ = unsafe { sync_file_range(file.as_raw_fd(), offset, len, START) };
    }
}
