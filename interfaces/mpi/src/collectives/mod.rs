//! Collectives in which every pair of processes has datatypes of its own. (MPI 4.1, 6.8 and 8.6)

pub mod arguments;
pub mod block;
pub mod direct;
pub mod exchange;
pub mod flow;
pub mod neighbors;
pub mod side;
pub mod wrappers;
