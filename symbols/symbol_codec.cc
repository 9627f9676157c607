#include "symbols/symbol_codec.h"

#include "base/status.h"
#include "base/varint.h"
#include "symbols/flat_writer.h"

namespace tributary {
namespace {

constexpr std::string_view kMagic = "TSYM";
// Versions of the column form. A table without code of other kinds is written in the earlier version.
constexpr uint64_t kVersion = 2, kCodeKindsVersion = 3;

absl::Status NotATable(std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, std::string("symbol table: ").append(why));
}

// Writes a column of ids as differences.
class DifferenceWriter {
 public:
  explicit DifferenceWriter(std::string& out) : out_(out) {}
  void Put(uint32_t value) { AppendSignedVarint(out_, int64_t{value} - int64_t{std::exchange(last_, value)}); }

 private:
  std::string& out_;
  uint32_t last_ = 0;
};

class DifferenceReader {
 public:
  explicit DifferenceReader(VarintReader& reader) : reader_(reader) {}
  // Returns false if no id is left, or if the id is not below `limit`.
  bool Get(uint64_t limit, uint32_t* value) {
    int64_t difference = 0, sum = 0;
    if (!reader_.ReadSigned(&difference) || __builtin_add_overflow(int64_t{last_}, difference, &sum)) return false;
    if (sum < 0 || static_cast<uint64_t>(sum) >= limit) return false;
    *value = last_ = static_cast<uint32_t>(sum);
    return true;
  }

 private:
  VarintReader& reader_;
  uint32_t last_ = 0;
};

}  // namespace

class SymbolTableEncoder {
 public:
  static std::string Encode(const SymbolTable& table) {
    std::string out;
    out.reserve(256 + table.row_addresses_.size() * 4 + table.nodes_.size() * 4 + table.string_bytes_.size());
    out += kMagic;
    AppendVarint(out, table.code_kinds_.empty() ? kVersion : kCodeKindsVersion);
    AppendVarint(out, static_cast<uint64_t>(table.source_));
    AppendVarint(out, static_cast<uint64_t>(table.id_.kind()));
    AppendVarint(out, table.id_.bytes().size());
    out += table.id_.view();
    for (size_t count : {table.segments_.size(), table.row_addresses_.size(), table.nodes_.size(), table.places_.size(),
                         table.string_offsets_.size() - 1}) {
      AppendVarint(out, count);
    }
    EncodeRows(table, out);
    EncodeNodes(table, out);
    const size_t strings = table.string_offsets_.size() - 1;
    for (uint32_t i = 1; i < strings; ++i) AppendVarint(out, table.String(i).size());
    for (uint32_t i = 1; i < strings; ++i) out += table.String(i);
    if (!table.code_kinds_.empty()) EncodeCodeKinds(table, out);
    return out;
  }

 private:
  static void EncodeCodeKinds(const SymbolTable& table, std::string& out) {
    AppendVarint(out, table.code_kinds_.size());
    for (const flat::CodeKind& code : table.code_kinds_) {
      AppendVarint(out, code.begin);
      AppendVarint(out, code.end - code.begin);
      AppendVarint(out, code.kind);
    }
  }

  static void EncodeRows(const SymbolTable& table, std::string& out) {
    uint64_t last_base = 0;
    for (const flat::Segment& segment : table.segments_) {
      AppendVarint(out, segment.base - std::exchange(last_base, segment.base));
      AppendVarint(out, segment.rows);
    }
    for (const flat::Segment& segment : table.segments_) {
      uint32_t last = 0;
      for (uint32_t address : table.row_addresses_.subspan(segment.first_row, segment.rows)) {
        AppendVarint(out, address - std::exchange(last, address));
      }
    }
    DifferenceWriter nodes(out);
    for (uint32_t node : table.row_nodes_) nodes.Put(node);
    DifferenceWriter places(out);
    for (uint32_t place : table.row_places_) places.Put(place);
  }

  // Element 0 of nodes, places and strings is the same in every table.
  static void EncodeNodes(const SymbolTable& table, std::string& out) {
    DifferenceWriter names(out), calls(out), files(out), lines(out);
    for (const flat::Node& node : table.nodes_.subspan(1)) names.Put(node.name);
    for (uint32_t i = 1; i < table.nodes_.size(); ++i) {
      AppendVarint(out, table.nodes_[i].parent == 0 ? 0 : i - table.nodes_[i].parent);
    }
    for (const flat::Node& node : table.nodes_.subspan(1)) {
      if (node.parent != 0) calls.Put(node.place);
    }
    uint64_t last_start = 0;
    for (uint64_t start : table.starts_) {
      AppendSignedVarint(out, static_cast<int64_t>(start - std::exchange(last_start, start)));
    }
    for (const flat::Place& place : table.places_.subspan(1)) files.Put(place.file);
    for (const flat::Place& place : table.places_.subspan(1)) lines.Put(place.line);
  }
};

namespace {

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : reader_(bytes) {}

  absl::Status Read() {
    RETURN_IF_ERROR(ReadHeader());
    if (!ReadSegments()) return NotATable("bad segments");
    if (!ReadRows()) return NotATable("bad rows");
    if (!ReadNodes()) return NotATable("bad nodes");
    if (!ReadStrings()) return NotATable("bad strings");
    if (version_ >= kCodeKindsVersion && !ReadCodeKinds()) return NotATable("bad kinds of code");
    if (!reader_.AtEnd()) return NotATable("there are bytes after the end of the table");
    return absl::OkStatus();
  }
  const FlatContents& contents() const { return contents_; }

 private:
  absl::Status ReadHeader() {
    std::string_view magic, id;
    uint64_t source = 0, kind = 0, id_bytes = 0;
    if (!reader_.ReadBytes(kMagic.size(), &magic) || magic != kMagic) return NotATable("wrong magic bytes");
    if (!reader_.Read(&version_) || version_ == 0) return NotATable("no version");
    if (version_ > kCodeKindsVersion) {
      return Error(absl::StatusCode::kUnimplemented,
                   "symbol table: version " + std::to_string(version_) + " is newer than this program supports");
    }
    if (version_ < kVersion) return NotATable("version " + std::to_string(version_) + " is no longer supported");
    if (!reader_.Read(&source) || !reader_.Read(&kind) || !reader_.Read(&id_bytes) ||
        !reader_.ReadBytes(id_bytes, &id)) {
      return NotATable("the header is cut off");
    }
    if (source > UINT8_MAX || SymbolSourceRank(static_cast<SymbolSource>(source)) == 0)
      return NotATable("unknown source");
    if (kind > static_cast<uint64_t>(ExecutableIdKind::kContentHash)) return NotATable("unknown kind of id");
    const auto made = ExecutableId::Make(static_cast<ExecutableIdKind>(kind), id);
    if (!made || !made->known()) return NotATable("bad executable id");
    contents_.id = *made;
    contents_.source = static_cast<SymbolSource>(source);
    for (uint64_t* count : {&segments_, &rows_, &nodes_, &places_, &strings_}) {
      // Each element takes at least one byte, except element 0 of nodes, places and strings.
      if (!reader_.Read(count) || *count > reader_.remaining() + 1)
        return NotATable("a count is larger than the table's bytes allow");
    }
    if (rows_ > SymbolTable::kRowsMax || nodes_ == 0 || places_ == 0 || strings_ == 0 || strings_ > UINT32_MAX ||
        segments_ > rows_ || nodes_ > UINT32_MAX || places_ > UINT32_MAX) {
      return NotATable("a count is out of range");
    }
    return absl::OkStatus();
  }

  bool ReadSegments() {
    uint64_t base = 0, first = 0;
    for (uint64_t i = 0; i < segments_; ++i) {
      uint64_t difference = 0, rows = 0;
      if (!reader_.Read(&difference) || !reader_.Read(&rows) || rows == 0 || rows > rows_ - first) return false;
      if (__builtin_add_overflow(base, difference, &base) || (i > 0 && difference == 0)) return false;
      contents_.segments.push_back({base, static_cast<uint32_t>(first), static_cast<uint32_t>(rows)});
      first += rows;
    }
    return first == rows_;
  }

  bool ReadRows() {
    contents_.row_addresses.reserve(rows_);
    uint64_t last = 0;  // last address of the earlier segments
    for (const flat::Segment& segment : contents_.segments) {
      if (&segment != contents_.segments.data() && segment.base <= last) return false;
      uint64_t address = 0;
      for (uint32_t i = 0; i < segment.rows; ++i) {
        uint64_t difference = 0;
        if (!reader_.Read(&difference) || difference > UINT32_MAX || (i > 0 && difference == 0)) return false;
        address += difference;
        if (address > UINT32_MAX || address > UINT64_MAX - segment.base) return false;
        contents_.row_addresses.push_back(static_cast<uint32_t>(address));
      }
      last = segment.base + address;
    }
    return ReadIds(rows_, nodes_, &contents_.row_nodes) && ReadIds(rows_, places_, &contents_.row_places);
  }

  bool ReadIds(uint64_t count, uint64_t limit, std::vector<uint32_t>* out) {
    DifferenceReader ids(reader_);
    out->resize(count);
    for (uint32_t& id : *out) {
      if (!ids.Get(limit, &id)) return false;
    }
    return true;
  }

  bool ReadNodes() {
    contents_.nodes.resize(nodes_);
    contents_.places.resize(places_);
    DifferenceReader names(reader_), calls(reader_), files(reader_), lines(reader_);
    for (uint64_t i = 1; i < nodes_; ++i) {
      if (!names.Get(strings_, &contents_.nodes[i].name)) return false;
    }
    for (uint64_t i = 1; i < nodes_; ++i) {
      uint64_t distance = 0;
      if (!reader_.Read(&distance) || distance >= i) return false;
      contents_.nodes[i].parent = distance == 0 ? 0 : static_cast<uint32_t>(i - distance);
    }
    uint32_t functions = 0;
    for (uint64_t i = 1; i < nodes_; ++i) {
      flat::Node& node = contents_.nodes[i];
      if (node.parent == 0) {
        node.place = functions++;
      } else if (!calls.Get(places_, &node.place)) {
        return false;
      }
    }
    contents_.starts.resize(functions);
    uint64_t start = 0;
    for (uint64_t& at : contents_.starts) {
      int64_t difference = 0;
      if (!reader_.ReadSigned(&difference)) return false;
      at = start += static_cast<uint64_t>(difference);
    }
    for (uint64_t i = 1; i < places_; ++i) {
      if (!files.Get(strings_, &contents_.places[i].file)) return false;
    }
    for (uint64_t i = 1; i < places_; ++i) {
      if (!lines.Get(uint64_t{1} << 32, &contents_.places[i].line)) return false;
    }
    return true;
  }

  bool ReadStrings() {
    contents_.string_offsets = {0, 0};
    uint64_t bytes = 0;
    for (uint64_t i = 1; i < strings_; ++i) {
      uint64_t length = 0;
      if (!reader_.Read(&length) || length > SymbolTable::kNameBytesMax) return false;
      bytes += length;
      if (bytes > SymbolTable::kStringBytesMax) return false;
      contents_.string_offsets.push_back(static_cast<uint32_t>(bytes));
    }
    std::string_view text;
    if (!reader_.ReadBytes(bytes, &text)) return false;
    contents_.string_bytes = text;
    return true;
  }

  bool ReadCodeKinds() {
    uint64_t count = 0, last_end = 0;
    if (!reader_.Read(&count) || count == 0 || count > SymbolTable::kCodeKindsMax) return false;
    for (; count > 0; --count) {
      uint64_t begin = 0, size = 0, end = 0, kind = 0;
      if (!reader_.Read(&begin) || !reader_.Read(&size) || !reader_.Read(&kind)) return false;
      if (begin < last_end || size == 0 || __builtin_add_overflow(begin, size, &end) || kind > UINT32_MAX) return false;
      contents_.code_kinds.push_back({begin, end, static_cast<uint32_t>(kind), 0});
      last_end = end;
    }
    return true;
  }

  VarintReader reader_;
  uint64_t version_ = 0;
  uint64_t segments_ = 0, rows_ = 0, nodes_ = 0, places_ = 0, strings_ = 0;
  FlatContents contents_;
};

}  // namespace

std::string EncodeSymbolTable(const SymbolTable& table) { return SymbolTableEncoder::Encode(table); }

absl::StatusOr<std::shared_ptr<const SymbolTable>> DecodeSymbolTable(std::string_view bytes) {
  if (bytes.size() > kEncodedSymbolsMax) return NotATable("too large");
  Decoder decoder(bytes);
  RETURN_IF_ERROR(decoder.Read());
  return SymbolTable::FromBytes(WriteFlat(decoder.contents()));
}

}  // namespace tributary
