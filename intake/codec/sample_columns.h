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

// A batch's samples as columns, in order of time.

// What a sample can take: nodes 5, threads 4, times 7, values 10, counts 5, cpus 3, attributes 3, types and endings 2
// each.
constexpr size_t kSampleBytesMax = 41;

int64_t ToWireTime(MonotonicNs time);

// The threads that samples named last, newest first: a sample's thread is mostly one of them. State of one message.
class RecentThreads {
 public:
  static constexpr uint32_t kMax = 64;

  uint32_t size() const { return static_cast<uint32_t>(threads_.size()); }
  uint32_t at(uint32_t rank) const { return threads_[threads_.size() - 1 - rank]; }
  // size() when it is not among them.
  uint32_t RankOf(uint32_t thread) const;
  void Name(uint32_t thread, uint32_t rank);  // rank as RankOf says

 private:
  std::vector<uint32_t> threads_;  // oldest first
};

class SampleColumns {
 public:
  // `after`: what is defined with this message; `leaves`: the last nodes of its chains, ascending.
  SampleColumns(MonotonicNs clock, const DictionaryCounts& after, std::vector<uint32_t> leaves)
      : after_(after), leaves_(std::move(leaves)), base_(ToWireTime(clock)) {}

  // In order of time.
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

// InvalidArgument: malformed, or more than `samples_max`.
absl::Status ReadSamples(const SampleColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
                         std::vector<uint32_t> leaves, size_t samples_max, IncomingBatch* out);

}  // namespace tributary::intake
