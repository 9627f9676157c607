#include <fmt/format.h>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/codec/columns.h"
#include "intake/codec/decode_work.h"
#include "intake/codec/definition_reader.h"
#include "intake/codec/event_columns.h"
#include "intake/codec/sample_columns.h"
#include "intake/wire/accounting.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

GenerationInfo ReadGeneration(wire::Definitions::Reader from) { return {from.getGeneration(), from.getDerivedFrom()}; }

// Reads the columns of `from`, a message with definitions, samples or process events. Adds the work of unpacking them
// to `work`.
template <typename Columns, typename Packings, typename Reader>
bool ReadColumns(const Packings& packings, Reader from, Columns* columns, uint32_t* unknown, uint64_t* work) {
  if (!from.hasPackedColumns()) return columns->Parse(ViewOf(from.getColumns()), unknown);
  const bool unpacked = columns->Unpack(packings, ViewOf(from.getPackedColumns()), kPayloadBytesMax, unknown);
  *work += WorkOfUnpacking(columns->unpacked_bytes());
  return unpacked;
}

absl::Status ReadFamily(wire::Family::Reader from, const DictionaryCounts& after, IncomingBatch* out, uint64_t* work) {
  EventColumnSet columns;
  if (!ReadColumns(kEventPackings, from, &columns, &out->unknown_values, work))
    return Malformed("process event columns cannot be decoded");
  const absl::Status read = ReadEvents(columns, out->clock.monotonic, after, out);
  *work += out->events.size();
  return read;
}

absl::Status ReadFamilies(wire::Batch::Reader from, const DictionaryCounts& after, IncomingBatch* out, uint64_t* work) {
  const auto families = from.getFamilies();
  if (families.size() > kFamiliesMax) return Malformed("there are too many families of records");
  std::bitset<256> seen;
  for (const auto family : families) {
    const uint8_t number = family.getNumber();
    if (number == 0) return Malformed("a family of records has the number 0");
    if (seen.test(number)) return Malformed("a family of records is there twice");
    seen.set(number);
    if (number == kFamilyProcessEvents) {
      RETURN_IF_ERROR(ReadFamily(family, after, out, work));
    } else {
      ++out->unknown_values;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GenerationInfo> GenerationOf(MessageType type, std::string_view payload) {
  if (type == MessageType::kDefinitions) {
    return ReadPayload<wire::Definitions, GenerationInfo>(
        payload, [](wire::Definitions::Reader root, GenerationInfo* out) -> absl::Status {
          *out = ReadGeneration(root);
          return absl::OkStatus();
        });
  }
  return ReadPayload<wire::Batch, GenerationInfo>(payload,
                                                  [](wire::Batch::Reader root, GenerationInfo* out) -> absl::Status {
                                                    *out = ReadGeneration(root.getDefinitions());
                                                    return absl::OkStatus();
                                                  });
}

BatchDecoder::BatchDecoder(uint32_t generation, const DictionaryCounts& have, HeldNodes nodes, DictionaryLimits limits)
    : generation_(generation), have_(have), limits_(limits), nodes_(std::move(nodes)) {
  TRIBUTARY_CHECK(nodes_.count() == have.nodes && nodes_.frame_count() == have.frames);
}

// Moves to the message's generation, which must be the held one or continue it.
absl::Status BatchDecoder::Continue(const GenerationInfo& info, std::string_view evicted, IncomingBatch* out) {
  out->generation = info.generation;
  if (info.derived_from == 0) {
    if (!evicted.empty()) return Malformed("a message evicts definitions, but continues no dictionary generation");
    if (info.generation == generation_) return absl::OkStatus();
  } else if (info.derived_from == generation_ && info.generation > generation_) {
    DerivedFrom& derived = out->derived.emplace();
    derived.generation = info.derived_from;
    RETURN_IF_ERROR(ReadEviction(evicted, have_, &derived.eviction));
    work_ += WorkOfRebuilding(derived.eviction.ids_before());
    if (!nodes_.Evict(derived.eviction)) return Malformed("an eviction removes definitions that are still in use");
    generation_ = info.generation;
    have_ = derived.eviction.after();
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kFailedPrecondition,
               fmt::format("a message has dictionary generation {}, which continues generation {} (0: none), but the "
                           "receiver has generation {}",
                           info.generation, info.derived_from, generation_));
}

absl::StatusOr<IncomingBatch> BatchDecoder::Decode(MessageType type, uint64_t sequence, std::string_view payload) {
  before_ = Position{generation_, have_};
  nodes_.Begin();
  std::vector<uint32_t> leaves;
  auto read_definitions = [&](wire::Definitions::Reader from, IncomingBatch* out) -> absl::Status {
    DefinitionColumnSet columns;
    if (!ReadColumns(kDefinitionPackings, from, &columns, &out->unknown_values, &work_))
      return Malformed("definition columns cannot be decoded");
    RETURN_IF_ERROR(Continue(ReadGeneration(from), columns[DefinitionColumn::kEvicted], out));
    out->before = have_;
    DefinitionReader reader(columns, have_, limits_, nodes_, out);
    const absl::Status read = reader.Read();
    work_ += WorkOf(out->definitions);
    RETURN_IF_ERROR(read);
    have_ = reader.after();
    leaves = reader.TakeLeaves();
    return absl::OkStatus();
  };
  auto read_batch = [&](wire::Batch::Reader root, IncomingBatch* out) -> absl::Status {
    out->sequence = sequence;
    RETURN_IF_ERROR(read_definitions(root.getDefinitions(), out));
    out->clock = ReadClock(root.getClock());
    out->nodes_hash = root.getNodesHash();
    if (out->nodes_hash != nodes_.hash()) {
      return Error(absl::StatusCode::kFailedPrecondition, "sender and receiver have different stack nodes");
    }
    RETURN_IF_ERROR(ReadAccounting(root, out));
    RETURN_IF_ERROR(ReadCloses(root, out));
    RETURN_IF_ERROR(ReadSampleTypes(root, out));
    SampleColumnSet columns;
    if (!ReadColumns(kSamplePackings, root, &columns, &out->unknown_values, &work_))
      return Malformed("sample columns cannot be decoded");
    const absl::Status read =
        ReadSamples(columns, out->clock.monotonic, have_, std::move(leaves), BatchEncoder::kSamplesPerBatchMax, out);
    work_ += out->samples.size();
    RETURN_IF_ERROR(read);
    return ReadFamilies(root, have_, out, &work_);
  };

  absl::StatusOr<IncomingBatch> batch = Malformed("the message contains neither definitions nor a batch");
  if (type == MessageType::kDefinitions) {
    batch = ReadPayload<wire::Definitions, IncomingBatch>(payload, read_definitions);
  } else if (type == MessageType::kBatch) {
    batch = ReadPayload<wire::Batch, IncomingBatch>(payload, read_batch);
  }
  if (!batch.ok()) Undo();
  return batch;
}

void BatchDecoder::Undo() {
  if (!before_) return;
  work_ += WorkOfRebuilding(before_->have.nodes);
  nodes_.Rollback();
  generation_ = before_->generation;
  have_ = before_->have;
  before_.reset();
}

bool BatchDecoder::Truncate(const DictionaryCounts& have) {
  if (!have_.Covers(have)) return false;
  before_.reset();
  if (have != have_) {
    work_ += WorkOfRebuilding(have.nodes);
    nodes_.Truncate(have.nodes, have.frames);
  }
  have_ = have;
  return true;
}

}  // namespace tributary::intake
