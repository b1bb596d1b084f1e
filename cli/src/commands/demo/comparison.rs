//! The race in the memory of the host: dtc, memcpy, the hand-written loop and the MPIs move the same bytes in turns.

use super::findings::POISON;
use super::peers::DemoPeers;
use super::verdict::Race;
use dtc_measure::bench::hand_loop::Transfer;
use dtc_measure::bench::shared::Shared;
use dtc_measure::samples::PageAligned;
use dtc_measure::timing::{Rounds, sample};
use dtc_measure::verify::{Placement, Verifier};
use dtc_runtime::{Committed, Memory, MemoryMut, Range};
use std::hint::black_box;

/// The least nanoseconds of a sample: shorter than a time slice, so that some samples are not interrupted.
const SAMPLE: f64 = 5e5;

/// Nanoseconds of a call beyond which a peer is not measured: its rounds would be all that is waited for.
const SLOW: f64 = 1e8;

/// Why a peer leaves that does not do what it is asked.
const REFUSES: &str = "not for this type";

/// The largest buffers that are shared with other processes, in bytes: folders in memory may have no room for more.
const LARGEST_SHARED: usize = 256 << 20;

/// Memory and packed bytes.
pub enum Buffers {
    /// Of this process alone.
    Own(PageAligned, PageAligned),
    /// Of the MPIs, too.
    Shared(Shared),
}

impl Buffers {
    /// Buffers of these lengths, shared where `shared` says so and the system has room for it.
    pub fn new(memory: usize, packed: usize, shared: bool) -> Buffers {
        let fits = shared && memory.saturating_add(packed) <= LARGEST_SHARED;
        let found = fits.then(|| Shared::new(memory, packed).ok()).flatten();
        found.map_or_else(|| Buffers::Own(PageAligned::new(memory), PageAligned::new(packed)), Buffers::Shared)
    }

    /// Memory and packed bytes.
    pub fn sides(&mut self) -> (&mut [u8], &mut [u8]) {
        match self {
            Buffers::Own(memory, packed) => (memory.bytes_mut(), packed.bytes_mut()),
            Buffers::Shared(shared) => shared.sides(),
        }
    }
}

/// Who is measured, and the buffers of all.
pub struct Comparison<'a> {
    /// The tiers of dtc.
    pub tiers: &'a [(&'a str, Committed)],
    /// The others.
    pub peers: DemoPeers,
    /// Where the elements are.
    pub placement: Placement,
    /// Memory and packed bytes.
    pub buffers: Buffers,
    /// What memcpy copies to and from.
    pub other: PageAligned,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DemoPeer {
    Tier(usize),
    Memcpy,
    Loop(usize),
    Mpi(usize),
}

impl Comparison<'_> {
    fn peers(&self) -> Vec<(String, DemoPeer)> {
        let tiers = self.tiers.iter().enumerate().map(|(index, (name, _))| ((*name).to_owned(), DemoPeer::Tier(index)));
        let loops = self.peers.hand_loops.iter().enumerate();
        let loops = loops.map(|(index, (name, _))| ((*name).to_owned(), DemoPeer::Loop(index)));
        let mpis = self.peers.mpis.iter().enumerate().map(|(index, (name, _))| (name.clone(), DemoPeer::Mpi(index)));
        tiers.chain(loops).chain(mpis).chain([("memcpy".to_owned(), DemoPeer::Memcpy)]).collect()
    }

    /// Nanoseconds of one call, over as many calls in a row.
    fn sample(&mut self, peer: DemoPeer, pack: bool, calls: u64) -> Result<f64, String> {
        let Placement { count, origin, .. } = self.placement;
        let (memory, packed) = self.buffers.sides();
        let other = self.other.bytes_mut();
        match peer {
            DemoPeer::Tier(index) => {
                let Some((_, committed)) = self.tiers.get(index) else { return Ok(0.0) };
                // These calls have succeeded before.
                Ok(sample(calls, || {
                    let _ = if pack {
                        black_box(committed.pack(
                            Memory::at(black_box(&*memory), origin),
                            Range::elements(count),
                            packed,
                        ))
                    } else {
                        let memory = MemoryMut::at(memory, origin);
                        black_box(committed.unpack(black_box(&*packed), Range::elements(count), memory))
                    };
                }))
            }
            DemoPeer::Memcpy if pack => Ok(sample(calls, || packed.copy_from_slice(black_box(&*other)))),
            DemoPeer::Memcpy => Ok(sample(calls, || other.copy_from_slice(black_box(&*packed)))),
            DemoPeer::Loop(index) => {
                let Some((_, hand_loop)) = self.peers.hand_loops.get(index) else { return Ok(0.0) };
                hand_loop.sample(Transfer { memory, origin, count, packed }, pack, calls)
            }
            DemoPeer::Mpi(index) => {
                let Some((_, peer)) = self.peers.mpis.get_mut(index) else { return Ok(0.0) };
                peer.time(if pack { "pack" } else { "unpack" }, calls)
            }
        }
    }

    /// Gives the MPIs the buffers, and compares what all peers do with the reference walker. Who does something else, or
    /// takes too long, leaves.
    pub fn check_peers(&mut self, verifier: &Verifier) {
        self.share();
        let peers = self.peers().into_iter().filter(|(_, who)| matches!(who, DemoPeer::Loop(_) | DemoPeer::Mpi(_)));
        let leaving: Vec<(String, &str)> =
            peers.filter_map(|(name, peer)| Some((name, self.check(peer, verifier)?))).collect();
        for (name, why) in leaving {
            self.peers.leave(&name, why);
        }
    }

    /// Gives the MPIs the buffers. Who has no use for them leaves.
    fn share(&mut self) {
        let Placement { count, origin, .. } = self.placement;
        let length = self.buffers.sides().0.len();
        let Buffers::Shared(shared) = &self.buffers else {
            let names: Vec<String> = self.peers.mpis.iter().map(|(name, _)| name.clone()).collect();
            names.iter().for_each(|name| self.peers.leave(name, "too large"));
            return;
        };
        let refused =
            self.peers.mpis.iter_mut().filter_map(|(name, peer)| {
                peer.setup(length, origin, count, shared.path()).is_err().then(|| name.clone())
            });
        let refused: Vec<String> = refused.collect();
        refused.iter().for_each(|name| self.peers.leave(name, REFUSES));
    }

    /// Has a peer pack and unpack once; why it leaves, if it does. The buffers hold what the type says again then.
    fn check(&mut self, peer: DemoPeer, verifier: &Verifier) -> Option<&'static str> {
        let Placement { count, origin, .. } = self.placement;
        let (_, committed) = self.tiers.first()?;
        self.buffers.sides().1.fill(POISON);
        let packs = self.sample(peer, true, 1);
        let (memory, packed) = self.buffers.sides();
        let packed_right = verifier.check_packed("peer", memory, packed).is_ok();
        if !packed_right {
            // These calls have succeeded before.
            let _ = committed.pack(Memory::at(&*memory, origin), Range::elements(count), packed);
        }
        // Every byte of larger ones is compared for dtc alone.
        let compared = memory.len() <= LARGEST_SHARED;
        if compared {
            memory.fill(POISON);
        }
        let unpacks = self.sample(peer, false, 1);
        let (memory, packed) = self.buffers.sides();
        let unpacked_right = !compared || verifier.check_memory("peer", memory, packed, POISON).is_ok();
        if !unpacked_right {
            let _ = committed.unpack(&*packed, Range::elements(count), MemoryMut::at(memory, origin));
        }
        match (packs, unpacks) {
            (Ok(_), Ok(_)) if !(packed_right && unpacked_right) => Some("other bytes"),
            (Ok(pack), Ok(unpack)) if pack.max(unpack) > SLOW => Some("slow"),
            (Ok(_), Ok(_)) => None,
            _ => Some(REFUSES),
        }
    }

    /// Interleaved rounds of one direction.
    pub fn race(&mut self, pack: bool) -> Race {
        let peers = self.peers();
        let mut calls = Vec::new();
        for (_, peer) in &peers {
            calls.push(self.calls(*peer, pack));
        }
        let mut samples: Vec<(String, Vec<f64>)> = peers.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        for _ in Rounds::start() {
            for (index, (_, peer)) in peers.iter().enumerate() {
                let time = calls[index].and_then(|calls| self.sample(*peer, pack, calls).ok());
                // Who fails once is not asked again.
                calls[index] = calls[index].filter(|_| time.is_some());
                samples[index].1.extend(time);
            }
        }
        // Who failed in between has no figure.
        let rounds = samples.first().map_or(0, |(_, samples)| samples.len());
        samples.retain(|(_, samples)| samples.len() == rounds);
        Race { direction: if pack { "pack" } else { "unpack" }, samples, tiers: self.tiers.len() }
    }

    /// How many calls take as long as a sample; nothing of who fails.
    fn calls(&mut self, peer: DemoPeer, pack: bool) -> Option<u64> {
        let mut calls = 1;
        loop {
            let nanoseconds = self.sample(peer, pack, calls).ok()? * calls as f64;
            if nanoseconds >= SAMPLE / 4.0 {
                return Some(((calls as f64 * SAMPLE / nanoseconds).ceil() as u64).max(1));
            }
            calls *= 4;
        }
    }
}
