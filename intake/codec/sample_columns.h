#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "intake/codec/columns.h"
#include "intake/wire/messages.h"
#include "profile/model.h"

namespace tributary::intake {

// Writes and reads the samples of a batch as columns. The samples are in order of time.

// Upper limits for the bytes that one sample needs in all columns together: nodes 5, threads 4, times 7, values 10,
// counts 5, cpus 3, attributes 3, types and endings 2 each.
constexpr size_t kSampleBytesMax = 41;

int64_t ToWireTime(MonotonicNs time);

// The most recent threads of the samples of one message. The next sample mostly has one of these threads. The most
// recent thread has rank 0.
class RecentThreads {
 public:
  static constexpr uint32_t kMax = 64;

  uint32_t size() const { return static_cast<uint32_t>(threads_.size()); }
  uint32_t at(uint32_t rank) const { return threads_[threads_.size() - 1 - rank]; }
  // Returns size() if `thread` is not one of the recent threads.
  uint32_t RankOf(uint32_t thread) const;
  void Name(uint32_t thread, uint32_t rank);  // `rank`: the result of RankOf

 private:
  std::vector<uint32_t> threads_;  // oldest first
};

class SampleColumns {
 public:
  // `after`: the counts of definitions after this message. `leaves`: the ids of the last nodes of this message's chains
  // (see LeafCursor), in ascending order.
  SampleColumns(MonotonicNs clock, const DictionaryCounts& after, std::vector<uint32_t> leaves)
      : after_(after), leaves_(std::move(leaves)), base_(ToWireTime(clock)) {}

  // The caller must add samples in order of time.
  void Add(const Sample& sample);
  void Write(ColumnWriter& to) &&;

 private:
  const DictionaryCounts after_;
  LeafCursor leaves_;
  ThreadGuess guess_;
  RecentThreads recent_;
  TimeBase base_;
  std::string times_, threads_, nodes_;
  ValueWriter cpus_{0}, types_{static_cast<uint64_t>(SampleType::kCpu)},
      endings_{static_cast<uint64_t>(Ending::kComplete)}, values_{0}, counts_{1}, attributes_{0};
};

// Reads the samples into `out`. InvalidArgument if the columns are malformed, or if they have more than `samples_max`
// samples.
absl::Status ReadSamples(const SampleColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
                         std::vector<uint32_t> leaves, size_t samples_max, IncomingBatch* out);

}  // namespace tributary::intake
