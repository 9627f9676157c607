#include "symbols/table_file.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "base/zstd.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint8_t kContested = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint8_t source;   // SymbolSource
  uint8_t origin;   // SymbolOrigin
  uint8_t id_kind;  // ExecutableIdKind
  uint8_t id_bytes;
  uint8_t id[20];
  uint8_t flags;
  uint8_t reserved[3];
  uint64_t functions;
  uint64_t raw_bytes;
  uint64_t checksum;
  int64_t stored_at;  // unix ns
};
static_assert(sizeof(Header) == kTableFileHeaderBytes);

// zstd ignores frames with this magic number (RFC 8878, section 3.1.2).
constexpr uint32_t kNotesMagic = 0x184D2A5E;

struct NotesHeader {
  uint32_t magic;
  uint32_t bytes;
};
static_assert(kTableFileBeginBytes == sizeof(Header) + sizeof(NotesHeader) + kTableFileNotesMax);

// Returns the notes of a file, or "" if it has none.
std::string_view NotesOf(std::string_view bytes) {
  NotesHeader header;
  if (bytes.size() < sizeof(Header) + sizeof(header)) return {};
  bytes.remove_prefix(sizeof(Header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (header.magic != kNotesMagic || header.bytes > kTableFileNotesMax || header.bytes > bytes.size()) return {};
  return bytes.substr(0, header.bytes);
}

absl::Status Bad(std::string_view why) {
  return Error(absl::StatusCode::kDataLoss, std::string("file of a symbol table: ").append(why));
}

}  // namespace

TableFile DescribeTable(const SymbolTable& table, std::string_view encoded) {
  return {.id = table.id(),
          .source = table.source(),
          .functions = table.function_count(),
          .raw_bytes = encoded.size(),
          .checksum = XXH3_64bits(encoded.data(), encoded.size())};
}

std::string TableFileHeader(const TableFile& file) {
  Header header{.version = kVersion,
                .source = static_cast<uint8_t>(file.source),
                .origin = file.origin,
                .id_kind = static_cast<uint8_t>(file.id.kind()),
                .id_bytes = static_cast<uint8_t>(file.id.bytes().size()),
                .flags = file.contested ? kContested : uint8_t{0},
                .functions = file.functions,
                .raw_bytes = file.raw_bytes,
                .checksum = file.checksum,
                .stored_at = file.stored_at.value};
  std::memcpy(header.magic, kTableFileMagic.data(), sizeof(header.magic));
  std::memcpy(header.id, file.id.bytes().data(), file.id.bytes().size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  if (file.notes.empty()) return bytes;
  TRIBUTARY_CHECK(file.notes.size() <= kTableFileNotesMax);
  const NotesHeader notes{.magic = kNotesMagic, .bytes = static_cast<uint32_t>(file.notes.size())};
  bytes.append(reinterpret_cast<const char*>(&notes), sizeof(notes));
  return bytes + file.notes;
}

absl::StatusOr<TableFile> ParseTableFileHeader(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof(header) || !bytes.starts_with(kTableFileMagic)) return Bad("the header is missing");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion) return Bad("unknown version");
  const std::span<const uint8_t> id_bytes(header.id, std::min<size_t>(header.id_bytes, sizeof(header.id)));
  const auto id = ExecutableId::Make(static_cast<ExecutableIdKind>(header.id_kind), id_bytes);
  if (!id || !id->known()) return Bad("the header contains no executable id");
  return TableFile{.id = *id,
                   .source = static_cast<SymbolSource>(header.source),
                   .origin = header.origin,
                   .contested = (header.flags & kContested) != 0,
                   .functions = header.functions,
                   .raw_bytes = header.raw_bytes,
                   .checksum = header.checksum,
                   .stored_at = UnixNs{header.stored_at},
                   .notes = std::string(NotesOf(bytes))};
}

absl::StatusOr<std::string> ReadTableFile(std::string_view bytes) {
  ASSIGN_OR_RETURN(const TableFile file, ParseTableFileHeader(bytes));
  if (file.raw_bytes > kEncodedSymbolsMax) {
    return Error(absl::StatusCode::kResourceExhausted, "file of a symbol table: the table is too large");
  }
  absl::StatusOr<std::string> encoded = ZstdDecompress(bytes.substr(kTableFileHeaderBytes), file.raw_bytes);
  if (!encoded.ok()) return Bad(Message(encoded.status()));
  if (XXH3_64bits(encoded->data(), encoded->size()) != file.checksum) return Bad("wrong checksum");
  return encoded;
}

std::string_view TableFileBody(std::string_view bytes) {
  const std::string_view notes = NotesOf(bytes);
  return bytes.substr(
      std::min(bytes.size(), sizeof(Header) + (notes.empty() ? 0 : sizeof(NotesHeader) + notes.size())));
}

std::string PackTableFile(const TableFile& file, std::string_view encoded, int zstd_level) {
  return TableFileHeader(file) + ZstdCompress(encoded, zstd_level);
}

}  // namespace tributary
