//! Tests against libraries that are missing, old, incomplete or failing, and against a stub of the driver that works.

mod child;
mod missing;
mod working;
