//! Tests of the driver and NVRTC; those on a stub run in a process of their own.

mod device;
mod exercise;
mod missing;
mod privileges;
mod working;
