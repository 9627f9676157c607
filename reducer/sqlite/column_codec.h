#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/store/store.h"
#include "reducer/store/trie.h"

// The bytes of the store's column chunks (docs/store.md): LEB128 delta columns behind a version byte. Pure. Decoders
// check everything: a corrupt file gives DataLoss, never a wild read.

namespace tributary::store {

// One sample in store ids.
struct StoredSample {
  int64_t time_ns = 0;  // unix
  uint32_t process = 0, thread = 0, node = 0;
  uint32_t count = 0;
  uint64_t value = 0;
  uint16_t cpu = 0;
  Ending ending = Ending::kUnknown;
  uint32_t attributes = 0;  // string
};

// One process's sum at one node.
struct StoredSum {
  uint32_t process = 0, node = 0;
  uint64_t value = 0, count = 0;
};

// Rows of one chunk at most: one batch's samples, or one minute of one machine.
constexpr uint64_t kChunkRowsMax = 1u << 28;

std::string EncodeSamples(std::span<const StoredSample> samples);  // sorted by time
// Fills the columns of `out`; its node_id, type and day are the caller's to set.
absl::Status DecodeSamples(std::string_view bytes, SampleColumns* out);

std::string EncodeSums(std::span<const StoredSum> sums);  // sorted by node, then process
absl::Status DecodeSums(std::string_view bytes, SumColumns* out);

// Nodes from `first_node` and frame rows from `first_frame` to their ends.
std::string EncodeTriePiece(const Trie& trie, size_t first_node, size_t first_frame);
// Appends a piece. Node 0 and frame row 0 must be there already.
absl::Status AppendTriePiece(std::string_view bytes, Trie* trie);
absl::Status AppendTriePiece(std::string_view bytes, TrieTail* tail);

// What one row keeps of a chunk: zstd when the chunk is at least 1 KiB (below, setting zstd up costs more than it
// saves) and shrinks by a tenth.
struct PackedColumns {
  std::string bytes;
  uint64_t raw_bytes = 0;  // 0: `bytes` is plain
};
PackedColumns PackColumns(std::string raw);
absl::StatusOr<std::string> UnpackColumns(std::string_view bytes, int64_t raw_bytes);

// Arrays of counters, as the session table keeps them: fewer numbers than `out` leave the rest 0, more are dropped.
std::string EncodeCounters(std::span<const uint64_t> counters);
void DecodeCounters(std::string_view bytes, std::span<uint64_t> out);

}  // namespace tributary::store
