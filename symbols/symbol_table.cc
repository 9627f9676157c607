#include "symbols/symbol_table.h"

#include <algorithm>

#include "base/status.h"
#include "base/varint.h"

namespace tributary {
namespace {

constexpr std::string_view kMagic = "TSYM";
constexpr uint64_t kVersion = 1;
// Each range takes at least a byte in each of the three columns and one of its name.
constexpr size_t kRangeBytesMin = 4;

absl::Status NotATable(std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, std::string("symbol table: ").append(why));
}

// Cuts and drops until ranges are sorted, do not overlap and respect every cap.
void Normalize(std::vector<SymbolRange>& ranges) {
  std::erase_if(ranges, [](const SymbolRange& range) { return range.size == 0 || range.name.empty(); });
  auto by_address = [](const SymbolRange& a, const SymbolRange& b) { return a.address < b.address; };
  // Readers sort, to choose among several names of one address.
  if (!std::is_sorted(ranges.begin(), ranges.end(), by_address)) {
    std::stable_sort(ranges.begin(), ranges.end(), by_address);
  }
  ranges.erase(std::unique(ranges.begin(), ranges.end(),
                           [](const SymbolRange& a, const SymbolRange& b) { return a.address == b.address; }),
               ranges.end());
  if (ranges.size() > SymbolTable::kSymbolsMax) ranges.resize(SymbolTable::kSymbolsMax);
  size_t pool_bytes = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    SymbolRange& range = ranges[i];
    range.size = std::min(range.size, UINT64_MAX - range.address);
    if (i + 1 < ranges.size()) range.size = std::min(range.size, ranges[i + 1].address - range.address);
    range.name = range.name.substr(0, SymbolTable::kNameBytesMax);
    pool_bytes += range.name.size();
    if (pool_bytes > SymbolTable::kPoolBytesMax) {
      ranges.resize(i);
      break;
    }
  }
  // Only a range at the very last address can have been cut to nothing.
  if (!ranges.empty() && ranges.back().size == 0) ranges.pop_back();
}

}  // namespace

std::string_view SymbolSourceName(SymbolSource source) {
  switch (source) {
    case SymbolSource::kNone:
      return "none";
    case SymbolSource::kDynsym:
      return "dynsym";
    case SymbolSource::kSymtab:
      return "symtab";
    case SymbolSource::kKallsyms:
      return "kallsyms";
  }
  return "unknown";
}

std::shared_ptr<const SymbolTable> SymbolTable::Build(const ExecutableId& id, SymbolSource source,
                                                      std::vector<SymbolRange> ranges) {
  Normalize(ranges);
  std::shared_ptr<SymbolTable> table(new SymbolTable);
  table->id_ = id;
  table->source_ = source;
  table->Reserve(ranges.size());
  size_t pool_bytes = 0;
  for (const SymbolRange& range : ranges) pool_bytes += range.name.size();
  table->pool_.reserve(pool_bytes);
  for (const SymbolRange& range : ranges) {
    table->addresses_.push_back(range.address);
    table->sizes_.push_back(range.size);
    table->pool_ += range.name;
    table->name_offsets_.push_back(static_cast<uint32_t>(table->pool_.size()));
  }
  return table;
}

void SymbolTable::Reserve(size_t count) {
  addresses_.reserve(count);
  sizes_.reserve(count);
  name_offsets_.reserve(count + 1);
  name_offsets_.push_back(0);
}

std::string SymbolTable::Encode() const {
  std::string out;
  out.reserve(64 + size() * 6 + pool_.size());
  out += kMagic;
  AppendVarint(out, kVersion);
  AppendVarint(out, static_cast<uint64_t>(source_));
  AppendVarint(out, static_cast<uint64_t>(id_.kind()));
  AppendVarint(out, id_.bytes().size());
  out += id_.view();
  AppendVarint(out, size());
  uint64_t previous_end = 0;
  for (size_t i = 0; i < size(); ++i) {
    AppendVarint(out, addresses_[i] - previous_end);
    previous_end = addresses_[i] + sizes_[i];
  }
  for (uint64_t size : sizes_) AppendVarint(out, size);
  for (size_t i = 0; i < size(); ++i) AppendVarint(out, name_offsets_[i + 1] - name_offsets_[i]);
  out += pool_;
  return out;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolTable::Decode(std::string_view bytes) {
  if (bytes.size() > kEncodedBytesMax) return NotATable("too large");
  if (!bytes.starts_with(kMagic)) return NotATable("no magic");
  VarintReader reader(bytes.substr(kMagic.size()));
  uint64_t version = 0, source = 0, kind = 0, id_size = 0, count = 0;
  if (!reader.Read(&version) || version == 0) return NotATable("no version");
  if (version > kVersion) {
    return Error(absl::StatusCode::kUnimplemented, "symbol table: version " + std::to_string(version) + " is newer");
  }
  std::string_view id_bytes;
  if (!reader.Read(&source) || !reader.Read(&kind) || !reader.Read(&id_size) || !reader.ReadBytes(id_size, &id_bytes)) {
    return NotATable("header ends early");
  }
  if (source == 0 || source > static_cast<uint64_t>(SymbolSource::kKallsyms)) return NotATable("unknown source");
  if (kind > static_cast<uint64_t>(ExecutableIdKind::kContentHash)) return NotATable("unknown kind of id");
  auto id = ExecutableId::Make(static_cast<ExecutableIdKind>(kind), id_bytes);
  if (!id || !id->known()) return NotATable("bad executable id");
  if (!reader.Read(&count)) return NotATable("header ends early");
  if (count > kSymbolsMax || count > reader.remaining() / kRangeBytesMin) return NotATable("count is a lie");

  std::shared_ptr<SymbolTable> table(new SymbolTable);
  table->id_ = *id;
  table->source_ = static_cast<SymbolSource>(source);
  table->Reserve(count);
  RETURN_IF_ERROR(table->DecodeRanges(reader, count));
  return table;
}

absl::Status SymbolTable::DecodeRanges(VarintReader& reader, size_t count) {
  // The address column counts from the end of the range before: what decodes cannot overlap.
  for (size_t i = 0; i < count; ++i) {
    uint64_t gap = 0;
    if (!reader.Read(&gap)) return NotATable("addresses end early");
    addresses_.push_back(gap);
  }
  uint64_t previous_end = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (!reader.Read(&size)) return NotATable("sizes end early");
    if (size == 0) return NotATable("empty range");
    uint64_t address = 0, end = 0;
    if (__builtin_add_overflow(previous_end, addresses_[i], &address) || __builtin_add_overflow(address, size, &end)) {
      return NotATable("address past 64 bits");
    }
    addresses_[i] = address;
    sizes_.push_back(size);
    previous_end = end;
  }
  uint64_t pool_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t length = 0;
    if (!reader.Read(&length)) return NotATable("name lengths end early");
    if (length == 0 || length > kNameBytesMax) return NotATable("name of a bad length");
    pool_bytes += length;
    if (pool_bytes > kPoolBytesMax) return NotATable("names too large");
    name_offsets_.push_back(static_cast<uint32_t>(pool_bytes));
  }
  std::string_view pool;
  if (!reader.ReadBytes(pool_bytes, &pool) || !reader.AtEnd()) return NotATable("names of another size");
  pool_ = pool;
  return absl::OkStatus();
}

std::optional<SymbolTable::Match> SymbolTable::Find(uint64_t address) const {
  auto after = std::upper_bound(addresses_.begin(), addresses_.end(), address);
  if (after == addresses_.begin()) return std::nullopt;
  auto index = static_cast<uint32_t>(after - addresses_.begin() - 1);
  if (address - addresses_[index] >= sizes_[index]) return std::nullopt;
  return at(index);
}

SymbolTable::Match SymbolTable::at(uint32_t index) const {
  uint32_t begin = name_offsets_[index];
  return {.name = std::string_view(pool_).substr(begin, name_offsets_[index + 1] - begin),
          .address = addresses_[index],
          .index = index};
}

size_t SymbolTable::memory_bytes() const {
  return sizeof(*this) + addresses_.capacity() * sizeof(uint64_t) + sizes_.capacity() * sizeof(uint64_t) +
         name_offsets_.capacity() * sizeof(uint32_t) + pool_.capacity();
}

}  // namespace tributary
