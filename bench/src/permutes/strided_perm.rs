//! The peer: the crate strided-perm, which has the algorithm of HPTT (Springer, Su, Bientinesi, 2017) in Rust.

use super::permute::Permute;
use bytemuck::Pod;
use dtc_compiler::plan::Direction;
use strided_perm::copy_into;
use strided_view::{StridedView, StridedViewMut};
use threadteam::Exec;

/// What moves the bytes of a permute once, or says why it cannot.
pub type Call<'a> = Box<dyn FnMut() -> Result<(), String> + 'a>;

/// The peer's copy between the array and the packed bytes on the calling thread. Views are made beforehand, as in a program.
pub fn call<'a>(
    permute: &Permute,
    memory: &'a mut [u8],
    packed: &'a mut [u8],
    direction: Direction,
) -> Result<Call<'a>, String> {
    match permute.element {
        1 => of_elements::<u8>(permute, memory, packed, direction),
        2 => of_elements::<u16>(permute, memory, packed, direction),
        4 => of_elements::<u32>(permute, memory, packed, direction),
        8 => of_elements::<u64>(permute, memory, packed, direction),
        _ => of_elements::<u128>(permute, memory, packed, direction),
    }
}

fn of_elements<'a, T: Pod + Send + Sync>(
    permute: &Permute,
    memory: &'a mut [u8],
    packed: &'a mut [u8],
    direction: Direction,
) -> Result<Call<'a>, String> {
    let refused = |error: strided_view::StridedError| error.to_string();
    // Both begin on a page, and elements have at most 16 bytes.
    let (memory, packed) = (bytemuck::cast_slice_mut::<u8, T>(memory), bytemuck::cast_slice_mut::<u8, T>(packed));
    // The fastest axis first, as the crate expects it: it joins only axes in this order.
    let (mut lengths, mut strides, mut dense, mut elements) = (Vec::new(), Vec::new(), Vec::new(), 1);
    for axis in permute.axes().into_iter().rev() {
        lengths.push(axis.length);
        strides.push(axis.stride as isize);
        dense.push(elements);
        elements *= axis.length as isize;
    }
    Ok(match direction {
        Direction::Pack => {
            let source = StridedView::<T>::new(memory, &lengths, &strides, 0).map_err(refused)?;
            let mut target = StridedViewMut::new(packed, &lengths, &dense, 0).map_err(refused)?;
            Box::new(move || copy_into(&mut target, &source, Exec::serial()).map_err(refused))
        }
        Direction::Unpack => {
            let source = StridedView::<T>::new(packed, &lengths, &dense, 0).map_err(refused)?;
            let mut target = StridedViewMut::new(memory, &lengths, &strides, 0).map_err(refused)?;
            Box::new(move || copy_into(&mut target, &source, Exec::serial()).map_err(refused))
        }
    })
}
