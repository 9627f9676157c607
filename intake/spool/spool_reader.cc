#include "intake/spool/spool_reader.h"

#include <string_view>
#include <utility>

#include "base/status.h"
#include "intake/wire/frame.h"

namespace tributary::intake {
namespace {

absl::Status Damaged(std::string_view what) { return Error(absl::StatusCode::kInvalidArgument, what); }

}  // namespace

SegmentReader::SegmentReader(std::string file, SegmentHeader header)
    : file_(std::move(file)), header_(std::move(header)), dictionary_(std::make_shared<Dictionary>()), decoder_(1) {}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Open(std::string file, SegmentId segment) {
  ASSIGN_OR_RETURN(SegmentHeader header, DecodeSegmentHeader(file));
  if (header.id != segment) return Damaged("the header belongs to another segment");
  return std::unique_ptr<SegmentReader>(new SegmentReader(std::move(file), std::move(header)));
}

absl::StatusOr<std::optional<Batch>> SegmentReader::Next() {
  const auto record = RecordAt(file_, offset_, header_.id);
  if (!record) return std::optional<Batch>();
  if (record->ordinal != read_.batches + 1) return Damaged("a batch is missing");
  if (record->end() > file_.size()) return std::optional<Batch>();
  ASSIGN_OR_RETURN(Batch batch, Decode(*record));
  read_ += record->totals;
  offset_ = record->end();
  return std::optional<Batch>(std::move(batch));
}

absl::StatusOr<Batch> SegmentReader::Decode(const SpoolRecord& record) {
  FrameDecoder frames;
  frames.Append(std::string_view(file_).substr(record.frames_offset, record.frames_bytes));
  while (true) {
    tributary::intake::Frame frame;
    ASSIGN_OR_RETURN(const bool whole, frames.Next(&frame));
    if (!whole) return Damaged("the last message of a batch is missing");
    const bool last = frame.type == MessageType::kBatch;
    if (last && frame.sequence != record.ordinal) return Damaged("a batch has a wrong sequence number");
    ASSIGN_OR_RETURN(IncomingBatch incoming, decoder_.Decode(frame.type, frame.sequence, frame.payload));
    if (incoming.derived) return Damaged("a dictionary continues the dictionary of another segment");
    if (!dictionary_->Append(incoming.definitions))
      return Damaged("the definitions of a batch do not fit into the dictionary");
    if (!last) continue;
    if (frames.buffered_bytes() != 0) return Damaged("unexpected bytes follow a batch");
    if (incoming.samples.size() != record.totals.samples.total())
      return Damaged("a batch has a wrong number of samples");
    if (CountRecords({}, incoming.events).events() != record.totals.samples.events())
      return Damaged("a batch has a wrong number of process events");
    Batch batch;
    batch.sequence = record.ordinal;
    batch.clock = incoming.clock;
    batch.samples = std::move(incoming.samples);
    batch.events = std::move(incoming.events);
    batch.accounting = record.totals.accounting;
    batch.closes = std::move(incoming.closes);
    batch.sample_types = std::move(incoming.sample_types);
    batch.dictionary = dictionary_;
    return batch;
  }
}

}  // namespace tributary::intake
