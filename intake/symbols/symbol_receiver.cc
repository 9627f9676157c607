#include "intake/symbols/symbol_receiver.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "base/zstd.h"
#include "symbols/packed_table.h"

namespace tributary::intake {
namespace {

Counter& Event(Metrics& metrics, std::string_view event) {
  return metrics.AddCounter("tributary_intake_symbol_uploads_total",
                            "Uploads of symbol tables by nodes, by event; begun: the first byte arrived; resumed: an "
                            "interrupted upload continued; whole: the table is complete; spoiled: its bytes are wrong; "
                            "lost: a node continued an upload whose earlier bytes the reducer had dropped",
                            {{"event", std::string(event)}});
}

}  // namespace

SymbolUploadMetrics::SymbolUploadMetrics(Metrics& metrics)
    : begun(Event(metrics, "begun")),
      resumed(Event(metrics, "resumed")),
      whole(Event(metrics, "whole")),
      spoiled(Event(metrics, "spoiled")),
      lost(Event(metrics, "lost")),
      bytes(metrics.AddCounter("tributary_intake_symbol_bytes_total", "Compressed bytes of received symbol tables")) {}

std::optional<SymbolRequest> SymbolReceiver::Expect(const ExecutableId& id) {
  if (expected_.size() >= kExpectedMax && !expected_.contains(id)) return std::nullopt;
  SymbolPart offer;
  if (options_.parts != nullptr && id != current_) offer = options_.parts->Offer(id);
  expected_.insert_or_assign(id, offer);
  return SymbolRequest{id, offer};
}

absl::StatusOr<std::optional<SymbolReceiver::Table>> SymbolReceiver::Take(SymbolChunk chunk) {
  if (!expected_.contains(chunk.id)) {
    return Error(absl::StatusCode::kNotFound, "symbols of " + chunk.id.ToString() + " were not requested");
  }
  if (!chunk.unavailable.empty()) {
    expected_.erase(chunk.id);
    return Table{chunk.id, Error(absl::StatusCode::kNotFound, chunk.unavailable)};
  }
  if (chunk.offset == 0) {
    if (std::optional<Table> refused = Begin(chunk)) return refused;
  } else if (chunk.id != current_) {
    ASSIGN_OR_RETURN(const bool here, GoOn(chunk));
    if (!here)
      return Table{chunk.id,
                   Error(absl::StatusCode::kDataLoss,
                         "the node continued an upload, but the reducer no longer has the earlier bytes of the table")};
  }
  if (!Continues(chunk)) {
    // Keeps the bytes that other connections brought: this error is not their fault.
    part_.bytes.resize(resumed_bytes_);
    Park();
    return Error(absl::StatusCode::kInvalidArgument, "a symbol chunk does not continue the chunk before it");
  }
  part_.bytes += chunk.bytes;
  metrics_.bytes.Add(chunk.bytes.size());
  if (part_.bytes.size() < part_.total_bytes) return std::nullopt;
  return Finish();
}

bool SymbolReceiver::Continues(const SymbolChunk& chunk) const {
  return chunk.id == current_ && chunk.offset == part_.bytes.size() && chunk.total_bytes == part_.total_bytes &&
         chunk.raw_bytes == part_.raw_bytes && chunk.key == part_.key;
}

// Starts from the first byte and ignores an offered part: the node may have another table.
std::optional<SymbolReceiver::Table> SymbolReceiver::Begin(const SymbolChunk& chunk) {
  Park();
  current_ = chunk.id;
  part_ = {.total_bytes = chunk.total_bytes, .raw_bytes = chunk.raw_bytes, .key = chunk.key, .bytes = {}};
  resumed_bytes_ = 0;
  if (chunk.total_bytes > options_.stored_bytes_max || chunk.raw_bytes > options_.raw_bytes_max) {
    expected_.erase(chunk.id);
    current_ = {};
    return Table{
        chunk.id,
        Error(absl::StatusCode::kResourceExhausted,
              fmt::format("the symbol table has {} bytes ({} compressed), but at most {} ({} compressed) are allowed",
                          chunk.raw_bytes, chunk.total_bytes, options_.raw_bytes_max, options_.stored_bytes_max))};
  }
  metrics_.begun.Add();
  return std::nullopt;
}

// Continues after the offered part. Returns false if that part is not here any more; then the rest is of no use.
absl::StatusOr<bool> SymbolReceiver::GoOn(const SymbolChunk& chunk) {
  const auto expected = expected_.find(chunk.id);
  const SymbolPart offer = expected->second;
  if (SymbolPart{chunk.offset, chunk.total_bytes, chunk.raw_bytes, chunk.key} != offer) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "a symbol chunk continues an upload that the reducer did not offer to continue");
  }
  std::optional<SymbolParts::Part> part = options_.parts->Take(chunk.id, offer);
  if (!part) {
    expected_.erase(expected);
    metrics_.lost.Add();
    return false;
  }
  Park();
  current_ = chunk.id;
  part_ = *std::move(part);
  resumed_bytes_ = part_.bytes.size();
  metrics_.resumed.Add();
  return true;
}

absl::StatusOr<std::optional<SymbolReceiver::Table>> SymbolReceiver::Finish() {
  const ExecutableId id = std::exchange(current_, {});
  const SymbolParts::Part part = std::exchange(part_, {});
  expected_.erase(id);
  absl::StatusOr<std::string> raw =
      Error(absl::StatusCode::kInvalidArgument, "the bytes of the symbol table do not match its key (a hash of them)");
  if (part.key == 0 || PackedTable::KeyOf(part.bytes) == part.key) {
    unpacked_bytes_ += part.raw_bytes;
    raw = ZstdDecompress(part.bytes, part.raw_bytes);
  }
  if (raw.ok()) {
    metrics_.whole.Add();
    if (options_.parts != nullptr) options_.parts->Drop(id);
    return Table{id, *std::move(raw)};
  }
  metrics_.spoiled.Add();
  const absl::Status why = WithContext(raw.status(), "symbols of " + id.ToString());
  if (resumed_bytes_ == 0) return why;
  return Table{id, Error(absl::StatusCode::kDataLoss, Message(why))};
}

void SymbolReceiver::Park() {
  const ExecutableId id = std::exchange(current_, {});
  SymbolParts::Part part = std::exchange(part_, {});
  if (id.known() && options_.parts != nullptr) options_.parts->Keep(id, std::move(part));
}

}  // namespace tributary::intake
