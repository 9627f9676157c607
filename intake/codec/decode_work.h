#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/definitions.h"

namespace tributary::intake {

// The work of receiving data, in units. A unit is about the time to decode one sample, process event or definition:
// 0.15 µs. Received bytes do not show this time: a frame of 181 bytes can contain 131,071 definitions. Work is counted
// and not measured, so it is the same on every machine and in a simulation. For limits only.
constexpr uint64_t kWorkPerFrame = 32;  // a heartbeat needs about as long, because it is answered

// The decompressed payload of a frame: checksum, decompression and Cap'n Proto.
constexpr uint64_t WorkOfPayload(size_t bytes) { return kWorkPerFrame + bytes / 64; }
// The bytes of a symbol table that was decompressed. The table is decoded on another thread.
constexpr uint64_t WorkOfSymbolTable(uint64_t bytes) { return bytes / 64; }
// The bytes of columns that were unpacked: 0.075 µs a byte. Measured (-O2): columns of mostly equal numbers need 0.005
// to 0.06 µs a byte, and the most expensive columns, random numbers of one byte, 0.12 µs.
constexpr uint64_t WorkOfUnpacking(size_t bytes) { return bytes / 2; }
// The ids of a dictionary that is rebuilt, because an eviction drops some of them or because a message is undone.
constexpr uint64_t WorkOfRebuilding(uint64_t ids) { return ids / 8; }

inline uint64_t WorkOf(const Definitions& d) {
  return d.strings.size() + d.executables.size() + d.frames.size() + d.nodes.size() + d.processes.size() +
         d.threads.size();
}

}  // namespace tributary::intake
