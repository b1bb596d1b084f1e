//! Tests against libraries that are missing, old, incomplete or failing, against a stub of the driver that works,
//! and on a device where there is one.

mod child;
mod device;
mod exercise;
mod missing;
mod privileges;
mod working;
