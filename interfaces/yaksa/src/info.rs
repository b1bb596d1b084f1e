//! Hints of the caller: which driver, and what it knows of its pointers.

use crate::status::Status;
use dtc_runtime::cuda::MemoryKind;

/// What was appended to an info object. The default knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Info {
    /// The caller said that no device takes part.
    no_gpu: bool,
    /// What is known of the two buffers of a call.
    input: Option<Memory>,
    output: Option<Memory>,
}

/// What CUDA's runtime says of a pointer: the first two fields of `cudaPointerAttributes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Memory {
    kind: i32,
    device: i32,
}

impl Memory {
    /// `cudaMemoryTypeUnregistered` and `cudaMemoryTypeHost`.
    const HOST: std::ops::RangeInclusive<i32> = 0..=1;

    /// The kind of the memory, unless the driver has to be asked: registered memory may have another address on a device.
    fn kind(self) -> Option<MemoryKind> {
        match self.kind {
            0 => Some(MemoryKind::Pageable),
            2 => Some(MemoryKind::Device(u32::try_from(self.device).ok()?)),
            3 => Some(MemoryKind::Managed),
            _ => None,
        }
    }
}

impl Info {
    /// Whether a call with these hints moves bytes in host memory alone.
    #[inline]
    pub(crate) fn is_host_only(&self) -> bool {
        let host = |memory: &Option<Memory>| memory.is_some_and(|memory| Memory::HOST.contains(&memory.kind));
        self.no_gpu || (host(&self.input) && host(&self.output))
    }

    /// What the two buffers of a call are, as far as it was said: the one that is read, and the one that is written.
    pub(crate) fn kinds(&self) -> (Option<MemoryKind>, Option<MemoryKind>) {
        (self.input.and_then(Memory::kind), self.output.and_then(Memory::kind))
    }

    /// Appends a hint. Unknown ones are ignored.
    ///
    /// # Errors
    ///
    /// The hint is for a driver that this library does not have, or its value has a wrong length.
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), Status> {
        // Values that are text may come with their terminator.
        let text = value.strip_suffix(&[0]).unwrap_or(value);
        match key {
            b"yaksa_gpu_driver" => match text {
                b"nogpu" => self.no_gpu = true,
                b"cuda" => {}
                _ => return Err(Status::NotSupported),
            },
            b"yaksa_cuda_inbuf_ptr_attr" => self.input = Some(memory(value)?),
            b"yaksa_cuda_outbuf_ptr_attr" => self.output = Some(memory(value)?),
            _ if key.starts_with(b"yaksa_hip_") || key.starts_with(b"yaksa_ze_") => return Err(Status::NotSupported),
            _ => {}
        }
        Ok(())
    }
}

fn memory(value: &[u8]) -> Result<Memory, Status> {
    let number = |at: usize| Some(i32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let known = || Some(Memory { kind: number(0)?, device: number(4)? });
    known().ok_or(Status::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(kind: i32) -> Vec<u8> {
        [kind.to_ne_bytes().as_slice(), &1i32.to_ne_bytes(), &[0; 16]].concat()
    }

    #[test]
    fn hints_of_host_memory() {
        let mut info = Info::default();
        assert!(!info.is_host_only());
        info.append(b"yaksa_cuda_inbuf_ptr_attr", &attributes(0)).unwrap();
        assert!(!info.is_host_only());
        info.append(b"yaksa_cuda_outbuf_ptr_attr", &attributes(1)).unwrap();
        assert!(info.is_host_only());
        info.append(b"yaksa_cuda_outbuf_ptr_attr", &attributes(2)).unwrap();
        assert!(!info.is_host_only());
        assert_eq!(info.kinds(), (Some(MemoryKind::Pageable), Some(MemoryKind::Device(1))));
        info.append(b"yaksa_gpu_driver", b"nogpu").unwrap();
        assert!(info.is_host_only());
    }

    #[test]
    fn drivers_that_are_not_there_are_refused() {
        let mut info = Info::default();
        assert_eq!(info.append(b"yaksa_gpu_driver", b"ze\0"), Err(Status::NotSupported));
        assert_eq!(info.append(b"yaksa_gpu_driver", b"hip"), Err(Status::NotSupported));
        assert_eq!(info.append(b"yaksa_ze_use_copy_engine", b"1"), Err(Status::NotSupported));
        assert_eq!(info.append(b"yaksa_hip_inbuf_ptr_attr", &[0; 24]), Err(Status::NotSupported));
        assert_eq!(info.append(b"yaksa_cuda_inbuf_ptr_attr", &[0; 3]), Err(Status::Internal));
        assert_eq!(info.append(b"yaksa_gpu_driver", b"cuda\0"), Ok(()));
        assert_eq!(info.append(b"something_else", b"x"), Ok(()));
    }
}
