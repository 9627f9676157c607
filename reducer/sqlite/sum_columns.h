#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "reducer/store/store.h"

// Encodes and decodes the columns of a row of minute_sum (docs/store.md): the sums of one machine's samples of one type
// in one minute. The functions are pure. Decoders check everything: a corrupt file gives DataLoss, never an
// out-of-bounds read.

namespace tributary::store {

// The sum of one process's samples that have the same node of the trie.
struct StoredSum {
  uint32_t node = 0, process = 0;
  uint64_t value = 0, count = 0;
};
// The sum of the samples that have the same thread and process.
struct StoredThreadSum {
  uint32_t thread = 0, process = 0;
  uint64_t value = 0, count = 0;
};

// `sums`: sorted by node, then process. `threads`: sorted by process, then thread.
std::string EncodeSums(std::span<const StoredSum> sums, std::span<const StoredThreadSum> threads);
absl::Status DecodeSums(std::string_view bytes, SumColumns* out);
// Decodes the sums of threads, without checking the other columns. A row that a release before schema 16 wrote has
// none. Does not set `type` of `out`.
absl::Status DecodeThreadSums(std::string_view bytes, ThreadWeights* out);

}  // namespace tributary::store
