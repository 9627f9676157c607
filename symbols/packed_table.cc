#include "symbols/packed_table.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/zstd.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 64u << 10;

// Returns 0 if the file cannot be read back. Such a table is sent from its begin, or not at all.
uint64_t KeyOfFile(const MemoryFile& file) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  if (state == nullptr || XXH3_64bits_reset(state.get()) != XXH_OK) return 0;
  for (uint64_t at = 0; at < file.size(); at += kPieceBytes) {
    const auto piece = file.Read(at, std::min<uint64_t>(kPieceBytes, file.size() - at));
    if (!piece.ok()) return 0;
    XXH3_64bits_update(state.get(), piece->data(), piece->size());
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

PackedTable PackedTable::Of(std::string_view encoded) {
  return {ZstdCompress(encoded), encoded.size(), DigestOf(encoded)};
}

PackedTable::PackedTable(std::string zstd, uint64_t raw_bytes, const SymbolDigest& digest)
    : memory_(std::move(zstd)),
      stored_bytes_(memory_.size()),
      raw_bytes_(raw_bytes),
      key_(KeyOf(memory_)),
      digest_(digest) {}

PackedTable::PackedTable(MemoryFile zstd, uint64_t raw_bytes, const SymbolDigest& digest)
    : file_(std::make_shared<const MemoryFile>(std::move(zstd))),
      stored_bytes_(file_->size()),
      raw_bytes_(raw_bytes),
      key_(KeyOfFile(*file_)),
      digest_(digest) {}

uint64_t PackedTable::KeyOf(std::string_view zstd) { return XXH3_64bits(zstd.data(), zstd.size()); }

absl::StatusOr<std::string> PackedTable::Read(uint64_t offset, size_t size) const {
  if (file_ != nullptr) return file_->Read(offset, size);
  return memory_.substr(offset, size);
}

}  // namespace tributary
