#include "intake/symbol_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/zstd.h"

namespace tributary::intake {

bool SymbolSender::Add(const ExecutableId& id, PackedTable table) {
  if (queued_bytes_ + table.stored_bytes() > kQueuedBytesMax) return false;
  if (table.in_file() && queued_files_ == kQueuedFilesMax) return false;
  queued_bytes_ += table.stored_bytes();
  queued_files_ += table.in_file() ? 1 : 0;
  uploads_.push_back(Upload{.id = id, .table = std::move(table)});
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
  SymbolChunk chunk{.id = upload.id};
  if (!upload.table) {
    chunk.unavailable = std::move(upload.unavailable);
    Pop();
    return chunk;
  }
  const uint64_t total = upload.table->stored_bytes();
  absl::StatusOr<std::string> bytes =
      upload.table->Read(upload.offset, std::min<uint64_t>(kSymbolChunkBytes, total - upload.offset));
  if (!bytes.ok()) {
    chunk.unavailable = Message(bytes.status());
    Pop();
    return chunk;
  }
  chunk.offset = upload.offset;
  chunk.total_bytes = total;
  chunk.raw_bytes = upload.table->raw_bytes();
  chunk.bytes = *std::move(bytes);
  upload.offset += chunk.bytes.size();
  if (upload.offset == total) Pop();
  return chunk;
}

void SymbolSender::Pop() {
  if (const auto& table = uploads_.front().table) {
    queued_bytes_ -= table->stored_bytes();
    queued_files_ -= table->in_file() ? 1 : 0;
  }
  uploads_.pop_front();
}

void SymbolSender::Clear() {
  uploads_.clear();
  queued_bytes_ = 0;
  queued_files_ = 0;
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
