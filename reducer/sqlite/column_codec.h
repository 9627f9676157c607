#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "reducer/store/store.h"
#include "reducer/store/trie.h"

// Encodes and decodes the store's column chunks (docs/store.md). A chunk is a version byte, the number of rows, and
// columns of LEB128 numbers, most of which are differences. The functions are pure. Decoders check everything: a
// corrupt file gives DataLoss, never an out-of-bounds read.

namespace tributary::store {

// A sample as it is stored. All its ids are ids of the store.
struct StoredSample {
  int64_t time_ns = 0;  // unix
  uint32_t process = 0, thread = 0, node = 0;
  uint32_t count = 0;
  uint64_t value = 0;
  uint16_t cpu = 0;
  Ending ending = Ending::kUnknown;
  uint32_t attributes = 0;  // id of a string
};

std::string EncodeSamples(std::span<const StoredSample> samples);  // sorted by time
// Decodes a chunk of samples into the columns of `out`. Does not set `node_id`, `type` and `day` of `out`.
absl::Status DecodeSamples(std::string_view bytes, SampleColumns* out);
// Decodes the weights of the threads of a chunk of samples, in a tenth of the time. Does not set `type` of `out`. Skips
// the columns that it does not need, without checking them.
absl::Status DecodeThreadWeights(std::string_view bytes, ThreadWeights* out);

// Encodes a trie piece: all nodes of `trie` from `first_node` on, and all its frame rows from `first_frame` on.
std::string EncodeTriePiece(const Trie& trie, size_t first_node, size_t first_frame);
std::string EncodeTriePiece(const TrieTail& tail);
// Decodes a trie piece and appends its nodes and frame rows. The trie must already have node 0 and frame row 0.
absl::Status AppendTriePiece(std::string_view bytes, Trie* trie);
absl::Status AppendTriePiece(std::string_view bytes, TrieTail* tail);

// Encode and decode an array of counters, which is stored in one column of the session table. If `bytes` has fewer
// numbers than `out`, the rest of `out` becomes 0. If `bytes` has more numbers, the additional ones are ignored.
std::string EncodeCounters(std::span<const uint64_t> counters);
void DecodeCounters(std::string_view bytes, std::span<uint64_t> out);

}  // namespace tributary::store
