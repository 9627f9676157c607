#include "intake/codec/sample_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/varint.h"
#include "intake/wire/malformed.h"

namespace tributary::intake {
namespace {

// How a sample encodes its thread: the guess, a recent thread, or any thread by its distance from the newest.
constexpr uint64_t kThreadAsGuessed = 0;
constexpr uint64_t kThreadRecent = 1;
constexpr uint64_t kThreadByDistance = kThreadRecent + RecentThreads::kMax;

// Reads the samples of a batch one after the other.
class SampleReader {
 public:
  SampleReader(const SampleColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
               std::vector<uint32_t> leaves, IncomingBatch* out)
      : out_(*out),
        after_(after),
        leaves_(std::move(leaves)),
        base_(ToWireTime(clock)),
        times_(columns[SampleColumn::kTimes]),
        threads_(columns[SampleColumn::kThreads]),
        nodes_(columns[SampleColumn::kNodes]),
        cpus_(columns[SampleColumn::kCpus], 0),
        types_(columns[SampleColumn::kTypes], static_cast<uint64_t>(SampleType::kCpu)),
        endings_(columns[SampleColumn::kEndings], static_cast<uint64_t>(Ending::kComplete)),
        values_(columns[SampleColumn::kValues], 0),
        counts_(columns[SampleColumn::kCounts], 1),
        attributes_(columns[SampleColumn::kAttributes], 0) {}

  bool AtEnd() const { return times_.AtEnd(); }

  absl::Status ReadNext() {
    uint64_t cpu = 0, type = 0, ending = 0, value = 0, repeats = 0, attributes = 0;
    if (!cpus_.Read(&cpu)) return Truncated("cpus");
    if (!types_.Read(&type)) return Truncated("types");
    if (!endings_.Read(&ending)) return Truncated("endings");
    if (!values_.Read(&value)) return Truncated("values");
    if (!counts_.Read(&repeats)) return Truncated("counts");
    if (!attributes_.Read(&attributes)) return Truncated("attributes");
    if (cpu > UINT16_MAX || type > UINT8_MAX || repeats > UINT32_MAX)
      return Malformed("a field of a sample is out of range");
    if (static_cast<SampleType>(type) == SampleType::kProcessEvent)
      return Malformed("a sample has the type of process events");
    if (attributes >= after_.strings) return BadReference("string", attributes);
    int64_t time = 0;
    RETURN_IF_ERROR(ReadTime(static_cast<uint16_t>(cpu), &time));
    uint32_t thread = 0, node = 0;
    RETURN_IF_ERROR(ReadThread(static_cast<uint16_t>(cpu), &thread));
    RETURN_IF_ERROR(ReadNode(&node));
    if (!IsKnown(static_cast<SampleType>(type))) ++out_.unknown_values;
    if (ending >= kEndingCount) {
      ++out_.unknown_values;
      ending = static_cast<uint64_t>(Ending::kUnknown);
    }
    out_.samples.push_back(Sample{.time = MonotonicNs{time * kWireTimeUnitNs},
                                  .thread = ThreadRef{thread},
                                  .node = NodeRef{node},
                                  .type = static_cast<SampleType>(type),
                                  .ending = static_cast<Ending>(ending),
                                  .cpu = static_cast<uint16_t>(cpu),
                                  .count = static_cast<uint32_t>(repeats),
                                  .value = value,
                                  .attributes = StringRef{static_cast<uint32_t>(attributes)}});
    return absl::OkStatus();
  }

  absl::Status Finish() const {
    const bool ended = threads_.AtEnd() && nodes_.AtEnd() && cpus_.AtEnd() && types_.AtEnd() && endings_.AtEnd() &&
                       values_.AtEnd() && counts_.AtEnd() && attributes_.AtEnd();
    return ended ? absl::OkStatus() : Malformed("the columns of the samples differ in length");
  }

 private:
  bool IsKnown(SampleType type) const {
    return FindSampleType(type) != nullptr ||
           std::any_of(out_.sample_types.begin(), out_.sample_types.end(),
                       [type](const SampleTypeDefinition& definition) { return definition.type == type; });
  }

  absl::Status ReadTime(uint16_t cpu, int64_t* out) {
    int64_t difference = 0;
    uint64_t later = 0;
    const bool first = out_.samples.empty();
    if (first ? !times_.ReadSigned(&difference) : !times_.Read(&later)) return Truncated("times");
    // Up to 2⁶⁴ more than a time that is at most kWireTimeMax from 0.
    const __int128 time = __int128{base_.On(cpu)} + (first ? __int128{difference} : __int128{later});
    if (time < -kWireTimeMax || time > kWireTimeMax) return Malformed("the time of a sample is out of range");
    *out = static_cast<int64_t>(time);
    if (!first && *out < ToWireTime(out_.samples.back().time))
      return Malformed("the samples are not in the order of their times");
    base_.Saw(cpu, *out);
    return absl::OkStatus();
  }

  absl::Status ReadThread(uint16_t cpu, uint32_t* thread) {
    uint64_t code = 0;
    if (!threads_.Read(&code)) return Truncated("threads");
    if (code == kThreadAsGuessed) {
      *thread = guess_.On(cpu);
      return absl::OkStatus();
    }
    uint32_t rank = recent_.size();
    if (code >= kThreadByDistance) {
      const uint64_t distance = code - kThreadByDistance;
      if (distance >= after_.threads) return BadReference("thread at distance", distance);
      *thread = static_cast<uint32_t>(after_.threads - 1 - distance);
    } else {
      rank = static_cast<uint32_t>(code - kThreadRecent);
      if (rank >= recent_.size()) return BadReference("recent thread", rank);
      *thread = recent_.at(rank);
    }
    recent_.Name(*thread, rank);
    guess_.Saw(cpu, *thread);
    return absl::OkStatus();
  }

  absl::Status ReadNode(uint32_t* node) {
    uint64_t code = 0;
    if (!nodes_.Read(&code)) return Truncated("nodes");
    if (code == 0 ? leaves_.next() == 0 : code > after_.nodes) return BadReference("node", code);
    *node = code == 0 ? leaves_.next() : static_cast<uint32_t>(after_.nodes - code);
    leaves_.Name(*node);
    return absl::OkStatus();
  }

  IncomingBatch& out_;
  const DictionaryCounts after_;
  LeafCursor leaves_;
  ThreadGuess guess_;
  RecentThreads recent_;
  TimeBase base_;
  VarintReader times_, threads_, nodes_;
  ValueReader cpus_, types_, endings_, values_, counts_, attributes_;
};

}  // namespace

int64_t ToWireTime(MonotonicNs time) {
  int64_t units = time.value / kWireTimeUnitNs;
  const int64_t rest = time.value % kWireTimeUnitNs;
  if (rest >= kWireTimeUnitNs / 2) ++units;
  if (rest < -kWireTimeUnitNs / 2) --units;
  return std::clamp(units, -kWireTimeMax, kWireTimeMax);
}

uint32_t RecentThreads::RankOf(uint32_t thread) const {
  const auto it = std::find(threads_.rbegin(), threads_.rend(), thread);
  return static_cast<uint32_t>(it - threads_.rbegin());
}

void RecentThreads::Name(uint32_t thread, uint32_t rank) {
  if (rank < size()) {
    threads_.erase(threads_.end() - 1 - rank);
  } else if (size() == kMax) {
    threads_.erase(threads_.begin());
  }
  threads_.push_back(thread);
}

void SampleColumns::Add(const Sample& sample) {
  const int64_t time = ToWireTime(sample.time);
  const int64_t later = time - base_.On(sample.cpu);
  if (times_.empty()) {
    AppendSignedVarint(times_, later);
  } else {
    AppendVarint(times_, static_cast<uint64_t>(later));
  }
  base_.Saw(sample.cpu, time);
  const uint32_t thread = sample.thread.value;
  if (thread == guess_.On(sample.cpu)) {
    AppendVarint(threads_, kThreadAsGuessed);
  } else {
    const uint32_t rank = recent_.RankOf(thread);
    AppendVarint(threads_,
                 rank < recent_.size() ? kThreadRecent + rank : kThreadByDistance + (after_.threads - 1 - thread));
    recent_.Name(thread, rank);
    guess_.Saw(sample.cpu, thread);
  }
  const uint32_t node = sample.node.value;
  AppendVarint(nodes_, node != 0 && node == leaves_.next() ? 0 : uint64_t{after_.nodes} - node);
  leaves_.Name(node);
  cpus_.Add(sample.cpu);
  types_.Add(static_cast<uint64_t>(sample.type));
  endings_.Add(static_cast<uint64_t>(sample.ending));
  values_.Add(sample.value);
  counts_.Add(sample.count);
  attributes_.Add(sample.attributes.value);
}

void SampleColumns::Write(ColumnWriter& to) && {
  to.Put(SampleColumn::kTimes, times_);
  to.Put(SampleColumn::kThreads, threads_);
  to.Put(SampleColumn::kNodes, nodes_);
  to.Put(SampleColumn::kCpus, std::move(cpus_).Take());
  to.Put(SampleColumn::kTypes, std::move(types_).Take());
  to.Put(SampleColumn::kEndings, std::move(endings_).Take());
  to.Put(SampleColumn::kValues, std::move(values_).Take());
  to.Put(SampleColumn::kCounts, std::move(counts_).Take());
  to.Put(SampleColumn::kAttributes, std::move(attributes_).Take());
}

absl::Status ReadSamples(const SampleColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
                         std::vector<uint32_t> leaves, size_t samples_max, IncomingBatch* out) {
  SampleReader reader(columns, clock, after, std::move(leaves), out);
  while (!reader.AtEnd()) {
    if (out->samples.size() == samples_max) {
      return Malformed(fmt::format("the batch has more than {} samples", samples_max));
    }
    RETURN_IF_ERROR(reader.ReadNext());
  }
  return reader.Finish();
}

}  // namespace tributary::intake
