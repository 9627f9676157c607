#include "intake/symbols/symbol_sender.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "intake/symbols/symbol_receiver.h"

namespace tributary::intake {

bool SymbolSender::Add(const ExecutableId& id, PackedTable table, const SymbolPart& part) {
  const uint64_t size = table.stored_bytes();
  if (queued_bytes_ + size > kQueuedBytesMax) return false;
  if (table.in_file() && queued_files_ == kQueuedFilesMax) return false;
  queued_bytes_ += size;
  queued_files_ += table.in_file() ? 1 : 0;
  Upload upload{.id = id, .table = std::move(table)};
  const bool same = part == SymbolPart{part.offset, size, upload.table->raw_bytes(), upload.table->key()};
  if (same && part.key != 0 && part.offset < size) upload.offset = part.offset;
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
  chunk.key = upload.table->key();
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

}  // namespace tributary::intake
