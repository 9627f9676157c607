#include "intake/symbol_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/zstd.h"

namespace tributary::intake {

bool SymbolSender::Add(const ExecutableId& id, PackedTable table) {
  Upload upload{.id = id, .stored = std::move(table.zstd), .raw_bytes = table.raw_bytes};
  if (queued_bytes_ + upload.stored.size() > kQueuedBytesMax) return false;
  queued_bytes_ += upload.stored.size();
  uploads_.push_back(std::move(upload));
  return true;
}

void SymbolSender::AddUnavailable(const ExecutableId& id, std::string why) {
  if (why.empty()) why = "no symbols";
  if (uploads_.size() >= SymbolReceiver::kExpectedMax) return;
  uploads_.push_back(Upload{.id = id, .unavailable = std::move(why)});
}

std::optional<SymbolChunk> SymbolSender::Next() {
  if (uploads_.empty()) return std::nullopt;
  Upload& upload = uploads_.front();
  SymbolChunk chunk;
  chunk.id = upload.id;
  if (!upload.unavailable.empty()) {
    chunk.unavailable = std::move(upload.unavailable);
    uploads_.pop_front();
    return chunk;
  }
  chunk.offset = upload.offset;
  chunk.total_bytes = upload.stored.size();
  chunk.raw_bytes = upload.raw_bytes;
  chunk.bytes = upload.stored.substr(upload.offset, kSymbolChunkBytes);
  upload.offset += chunk.bytes.size();
  if (upload.offset == upload.stored.size()) {
    queued_bytes_ -= upload.stored.size();
    uploads_.pop_front();
  }
  return chunk;
}

void SymbolSender::Clear() {
  uploads_.clear();
  queued_bytes_ = 0;
}

bool SymbolReceiver::Expect(const ExecutableId& id) {
  if (expected_.size() >= kExpectedMax && !expected_.contains(id)) return false;
  expected_.insert(id);
  return true;
}

absl::StatusOr<std::optional<SymbolReceiver::Table>> SymbolReceiver::Take(SymbolChunk chunk) {
  if (!expected_.contains(chunk.id)) {
    return Error(absl::StatusCode::kNotFound, "symbols of " + chunk.id.ToString() + " were not asked for");
  }
  if (!chunk.unavailable.empty()) {
    expected_.erase(chunk.id);
    return Table{chunk.id, Error(absl::StatusCode::kNotFound, chunk.unavailable)};
  }
  if (chunk.offset == 0) {
    current_ = chunk.id;
    total_bytes_ = chunk.total_bytes;
    raw_bytes_ = chunk.raw_bytes;
    stored_ = std::string();
    if (total_bytes_ > stored_bytes_max_ || raw_bytes_ > raw_bytes_max_) {
      expected_.erase(chunk.id);
      current_ = {};
      return Table{chunk.id, Error(absl::StatusCode::kResourceExhausted,
                                   fmt::format("symbol table of {} bytes ({} compressed) where {} ({}) are allowed",
                                               chunk.raw_bytes, chunk.total_bytes, raw_bytes_max_, stored_bytes_max_))};
    }
  }
  if (chunk.id != current_ || chunk.offset != stored_.size() || chunk.total_bytes != total_bytes_ ||
      chunk.raw_bytes != raw_bytes_) {
    return Error(absl::StatusCode::kInvalidArgument, "symbol chunk does not continue the one before");
  }
  stored_ += chunk.bytes;
  if (stored_.size() < total_bytes_) return std::nullopt;
  expected_.erase(chunk.id);
  current_ = {};
  absl::StatusOr<std::string> raw = ZstdDecompress(std::exchange(stored_, {}), raw_bytes_);
  if (!raw.ok()) return WithContext(raw.status(), "symbols of " + chunk.id.ToString());
  return Table{chunk.id, *std::move(raw)};
}

}  // namespace tributary::intake
