#include <algorithm>
#include <span>
#include <utility>

#include "intake/codec/batch_encoder.h"
#include "intake/codec/columns.h"
#include "intake/codec/definition_columns.h"
#include "intake/codec/definition_reader.h"
#include "intake/codec/event_columns.h"
#include "intake/codec/sample_columns.h"
#include "intake/wire/accounting.h"
#include "intake/wire/frame.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

// Bytes of a message without its columns.
constexpr size_t kMessageBytesMax = 64u << 10;
static_assert(BatchEncoder::kSamplesPerBatchMax * kSampleBytesMax + kMessageBytesMax <= kPayloadBytesMax);
static_assert(BatchEncoder::kSamplesPerBatchMax / 2 * kSampleBytesMax + kProcessEventsPerBatchMax * kEventBytesMax +
                  kMessageBytesMax <=
              kPayloadBytesMax);

// Upper limit for the bytes of a message's samples and events.
constexpr size_t RecordBytesMax(size_t samples, size_t events) {
  return samples * kSampleBytesMax + events * kEventBytesMax;
}

// Packs the columns, unless they are larger than a reader is willing to unpack.
template <typename Builder>
void WriteColumns(ColumnWriter columns, std::span<const ColumnPacking> packings, size_t always, Builder to) {
  const std::string packed = columns.Packed(packings, always);
  if (columns.bytes().size() <= UnpackedBytesMax(packed.size())) {
    to.setPackedColumns(DataOf(packed));
  } else {
    to.setColumns(DataOf(columns.bytes()));
  }
}

void WriteDefinitions(uint32_t generation, const std::optional<DerivedFrom>& derived, DefinitionColumns& columns,
                      wire::Definitions::Builder to) {
  to.setGeneration(generation);
  if (derived) to.setDerivedFrom(derived->generation);
  ColumnWriter writer;
  columns.Write(writer);
  WriteColumns(std::move(writer), kDefinitionPackings, kDefinitionColumnsAlways, to);
}

unsigned WordsFor(size_t bytes) { return static_cast<unsigned>(bytes / sizeof(capnp::word)) + 128; }

// Calls write(span) with the records in order of time. Copies them only if they are not in this order.
template <typename Record, typename Write>
void WriteByTime(const std::vector<Record>& records, Write&& write) {
  auto by_time = [](const Record& a, const Record& b) { return a.time < b.time; };
  if (std::is_sorted(records.begin(), records.end(), by_time)) return write(std::span<const Record>(records));
  std::vector<Record> sorted = records;
  std::stable_sort(sorted.begin(), sorted.end(), by_time);
  write(std::span<const Record>(sorted));
}

void WriteSamples(const Batch& batch, const DefinitionColumns& columns, wire::Batch::Builder to) {
  SampleColumns samples(batch.clock.monotonic, columns.after(), columns.leaves());
  WriteByTime(batch.samples, [&](std::span<const Sample> sorted) {
    for (const Sample& sample : sorted) samples.Add(sample);
  });
  ColumnWriter writer;
  std::move(samples).Write(writer);
  WriteColumns(std::move(writer), kSamplePackings, kSampleColumnsAlways, to);
}

void WriteFamilies(const Batch& batch, wire::Batch::Builder to) {
  if (batch.events.empty()) return;
  wire::Family::Builder family = to.initFamilies(1)[0];
  family.setNumber(kFamilyProcessEvents);
  ColumnWriter writer;
  WriteByTime(batch.events,
              [&](std::span<const ProcessEvent> sorted) { WriteEvents(sorted, batch.clock.monotonic, writer); });
  WriteColumns(std::move(writer), kEventPackings, kEventColumnsAlways, family);
}

void RemoveEvents(SampleCounts& counts) {
  SampleCounts events;
  events.AddEvents(counts.events());
  counts -= events;
}

}  // namespace

MonotonicNs RoundToWire(MonotonicNs time) { return MonotonicNs{ToWireTime(time) * kWireTimeUnitNs}; }

Batch WithoutEvents(Batch batch) {
  batch.events.clear();
  RemoveEvents(batch.accounting.captured);
  for (SampleCounts& lost : batch.accounting.lost) RemoveEvents(lost);
  for (ClosedSession& closed : batch.closes) RemoveEvents(closed.captured);
  return batch;
}

bool BatchEncoder::Fits(size_t samples, size_t events) {
  return samples <= kSamplesPerBatchMax && events <= kProcessEventsPerBatchMax &&
         RecordBytesMax(samples, events) + kMessageBytesMax <= kPayloadBytesMax;
}

BatchEncoder BatchEncoder::Following(uint32_t generation, const BatchEncoder* previous, const Dictionary& next) {
  BatchEncoder encoder(generation);
  std::optional<Eviction> eviction = previous != nullptr ? previous->EvictionFor(next) : std::nullopt;
  if (!eviction) return encoder;
  encoder.sent_ = eviction->after();
  encoder.derived_ = DerivedFrom{previous->generation_, *std::move(eviction)};
  return encoder;
}

bool BatchEncoder::CanContinue(const Dictionary& next) const { return EvictionFor(next).has_value(); }

std::optional<Eviction> BatchEncoder::EvictionFor(const Dictionary& next) const {
  if (next.derivation() == nullptr || derived_ || sent_ == DictionaryCounts()) return std::nullopt;
  const std::weak_ptr<const Dictionary>& from = next.derivation()->from;
  if (from.owner_before(dictionary_) || dictionary_.owner_before(from)) return std::nullopt;
  // Definitions that the peer does not have yet follow the eviction, like anything new.
  const Eviction& all = next.derivation()->eviction;
  Eviction eviction;
  ForEachTable([](KeptIds& kept, const KeptIds& whole, uint32_t sent) { kept = whole.Below(sent); }, eviction, all,
               sent_);
  if (!DropsEnough(eviction)) return std::nullopt;
  return eviction;
}

void BatchEncoder::set_sent(const DictionaryCounts& sent) {
  sent_ = sent;
  derived_.reset();
}

std::vector<std::string> BatchEncoder::Encode(const Batch& batch) {
  TRIBUTARY_CHECK(Fits(batch) && batch.closes.size() <= kClosedSessionsMax &&
                  batch.sample_types.size() <= kSampleTypesMax);
  const Dictionary& dictionary = *batch.dictionary;
  dictionary_ = batch.dictionary;
  std::vector<std::string> frames;
  while (true) {
    if (followed_nodes_ > sent_.nodes) {
      followers_ = {};
      followed_nodes_ = 1;
    }
    for (; followed_nodes_ < sent_.nodes; ++followed_nodes_) {
      const Node node = dictionary.node(NodeRef{followed_nodes_});
      followers_.Learn(dictionary.node(node.parent).frame, node.frame);
    }
    DefinitionColumns columns(dictionary, sent_, followers_, knows_interpreters_);
    const std::optional<DerivedFrom> derived = std::exchange(derived_, std::nullopt);
    if (derived) columns.PutEviction(derived->eviction);
    const bool complete = columns.Fill();
    sent_ = columns.after();
    followed_nodes_ = sent_.nodes;
    const size_t bytes = columns.bytes() + RecordBytesMax(batch.samples.size(), batch.events.size()) + kMessageBytesMax;
    if (complete && (columns.bytes() == 0 || bytes <= kPayloadBytesMax)) {
      capnp::MallocMessageBuilder message(
          WordsFor(columns.bytes() + 12 * (batch.samples.size() + batch.events.size())));
      auto root = message.initRoot<wire::Batch>();
      WriteDefinitions(generation_, derived, columns, root.initDefinitions());
      WriteClock(root.initClock(), batch.clock);
      WriteAccounting(batch.accounting, root);
      root.setNodesHash(dictionary.rolling_hash());
      WriteCloses(batch.closes, root);
      WriteSampleTypes(TypesOf(batch), root);
      WriteSamples(batch, columns, root);
      WriteFamilies(batch, root);
      frames.push_back(EncodeFrame(MessageType::kBatch, kChannelSamples, batch.sequence, ToPayload(message)));
      return frames;
    }
    capnp::MallocMessageBuilder message(WordsFor(columns.bytes()));
    WriteDefinitions(generation_, derived, columns, message.initRoot<wire::Definitions>());
    frames.push_back(EncodeFrame(MessageType::kDefinitions, kChannelSamples, 0, ToPayload(message)));
  }
}

}  // namespace tributary::intake
