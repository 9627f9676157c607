#include "symbols/go_pclntab.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "symbols/go_inline_calls.h"
#include "symbols/go_table_bytes.h"

namespace tributary {
namespace {

constexpr uint32_t kCallSteps = 2;  // PCDATA_InlTreeIndex, of all versions
constexpr uint32_t kNoTree = UINT32_MAX;

// Offsets of the fields in a function's data. The first field is its address. (`_func` of Go's runtime/runtime2.go.)
struct Fields {
  uint64_t name, files, lines, step_tables, unit, trees, size;
  uint32_t tree;  // index of the tree of inlined calls: FUNCDATA_InlTree

  static Fields Of(const GoTableHeader& header) {
    const uint64_t address = header.field_bytes();
    Fields out{.name = address,
               .files = address + 16,
               .lines = address + 20,
               .step_tables = address + 24,
               .unit = address + 28,
               .size = address + 36,
               .tree = 3};
    if (header.form == GoTableForm::kGo2) {
      out.size = address + 32;  // no unit
      out.tree = 4;
    } else if (header.form == GoTableForm::kGo20) {
      out.size = address + 40;
    }
    out.trees = out.size - 1;
    return out;
  }
};

// Adds the functions to a builder, one after the other.
class Reader {
 public:
  Reader(ElfFile& file, GoTableBytes& table, const GoModule& module, SymbolTableBuilder& builder)
      : table_(table),
        header_(table.header()),
        fields_(Fields::Of(header_)),
        module_(module),
        builder_(builder),
        calls_(file, table, builder) {
    counts_.trees_known = module.trees_known;
  }

  GoPclntab::Counts Read(const AddressRange& code) {
    const uint64_t field = header_.field_bytes();
    uint64_t at = header_.functions - header_.begin, begin = 0, next = 0, place = 0;
    for (uint64_t i = 0; i < header_.count; ++i, at += 2 * field) {
      if (!Field(at, &begin) || !Field(at + 2 * field, &next) || !ReadPlace(at + field, &place)) break;
      if (next < begin || begin < code.begin || next > code.end) break;  // addresses ascend
      if (next == begin || next - begin > UINT32_MAX) continue;
      function_.begin = begin;
      function_.size = static_cast<uint32_t>(next - begin);
      ReadFunction(header_.data - header_.begin + place);
    }
    return counts_;
  }

 private:
  bool Field(uint64_t at, uint64_t* address) const {
    if (header_.relative()) {
      uint32_t offset = 0;
      if (!table_.Read(at, &offset)) return false;
      *address = module_.text + offset;
      return true;
    }
    if (!table_.Read(at, address)) return false;
    *address = module_.words.At(module_.table + at, *address);
    return true;
  }

  bool ReadPlace(uint64_t at, uint64_t* place) const {
    if (!header_.relative()) return table_.Read(at, place);
    uint32_t narrow = 0;
    if (!table_.Read(at, &narrow)) return false;
    *place = narrow;
    return true;
  }

  // Returns 0 if there is no such field.
  uint32_t Number(uint64_t at) const {
    uint32_t number = 0;
    return table_.Read(at, &number) ? number : 0;
  }

  // `at`: offset of its data.
  void ReadFunction(uint64_t at) {
    ++counts_.functions;
    if (at > table_.size()) {
      ++counts_.malformed;
      return;
    }
    function_.node = builder_.AddNode(table_.FunctionName(Number(at + fields_.name)));
    bool good = ReadStepsOf(at + fields_.files, &function_.files);
    good = ReadStepsOf(at + fields_.lines, &function_.lines) && good;
    if (!function_.lines.empty()) function_.size = function_.lines.back().end;
    function_.unit = header_.form == GoTableForm::kGo2 ? 0 : Number(at + fields_.unit);
    good = ReadCalls(at) && good;
    builder_.AddCode(function_.begin, function_.begin + function_.size, 0, function_.node, kLayer);
    AddLines();
    good = AddCalls() && good;
    if (table_.steps_used_up()) {
      ++counts_.left_out;
    } else if (!good) {
      ++counts_.malformed;
    }
  }

  bool ReadStepsOf(uint64_t at, std::vector<GoStep>* out) { return table_.ReadSteps(Number(at), function_.size, out); }

  // After a function's fields come the places of its other tables of steps, then the places of its trees.
  bool ReadCalls(uint64_t at) {
    function_.calls.clear();
    function_.tree = 0;
    const uint32_t step_tables = Number(at + fields_.step_tables);
    uint8_t trees = 0;
    if (!module_.trees_known || step_tables <= kCallSteps || !table_.Read(at + fields_.trees, &trees)) return true;
    if (trees <= fields_.tree) return true;
    uint64_t tree = at + fields_.size + sizeof(uint32_t) * uint64_t{step_tables};
    if (header_.relative()) {
      uint32_t place = 0;
      if (!table_.Read(tree + sizeof(place) * fields_.tree, &place)) return false;
      if (place == kNoTree) return true;
      function_.tree = module_.trees + place;
    } else {
      tree = (tree + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t) + sizeof(uint64_t) * fields_.tree;
      if (!table_.Read(tree, &function_.tree)) return false;
      function_.tree = module_.words.At(module_.table + tree, function_.tree);
      if (function_.tree == 0) return true;
    }
    return ReadStepsOf(at + fields_.size + sizeof(uint32_t) * kCallSteps, &function_.calls);
  }

  // Files and lines change independently. A row is added where either changes.
  void AddLines() {
    rows_.clear();
    size_t file = 0, line = 0;
    const auto &files = function_.files, &lines = function_.lines;
    for (uint32_t at = 0; at < function_.size && line < lines.size();) {
      while (file < files.size() && files[file].end <= at) ++file;
      uint32_t end = lines[line].end;
      SymbolLine row{.address = function_.begin + at};
      if (file < files.size()) {
        end = std::min(end, files[file].end);
        if (files[file].value >= 0 && lines[line].value >= 0) {
          row.file = table_.FileName(function_.unit, files[file].value);
          row.line = static_cast<uint32_t>(lines[line].value);
        }
      }
      if (rows_.empty() || rows_.back().file != row.file || rows_.back().line != row.line) rows_.push_back(row);
      at = end;
      while (line < lines.size() && lines[line].end <= at) ++line;
    }
    builder_.AddLines(rows_, function_.begin + function_.size);
  }

  bool AddCalls() {
    if (function_.calls.empty()) return true;
    calls_.Enter(function_);
    GoInlineCalls::Call open;
    uint32_t begin = 0, at = 0;
    auto close = [&](uint32_t end) {
      if (open.depth > 0) {
        builder_.AddCode(function_.begin + begin, function_.begin + end, open.depth, open.node, kLayer);
      }
    };
    for (const GoStep& step : function_.calls) {
      const GoInlineCalls::Call call = step.value < 0 ? GoInlineCalls::Call() : calls_.Resolve(step.value);
      if (call.node != open.node) {
        close(at);
        open = call;
        begin = at;
      }
      at = std::min(step.end, function_.size);
    }
    close(at);
    counts_.inlined += calls_.count();
    return !calls_.malformed();
  }

  static constexpr auto kLayer = SymbolTableBuilder::Layer::kDebugInfo;

  GoTableBytes& table_;
  const GoTableHeader& header_;
  const Fields fields_;
  const GoModule& module_;
  SymbolTableBuilder& builder_;
  GoInlineCalls calls_;
  GoFunction function_;
  std::vector<SymbolLine> rows_;
  GoPclntab::Counts counts_;
};

// Returns the file offset of a function's address in the table.
uint64_t AddressAt(const GoTableHeader& header, uint64_t function) {
  return header.functions + function * 2 * header.field_bytes();
}

}  // namespace

absl::StatusOr<GoPclntab> GoPclntab::Open(ElfFile& file) {
  GoPclntab out(file);
  bool found = false;
  FindGoTables(file, [&](const GoTableHeader& header) { return found = out.Take(header); });
  if (!found) return Error(absl::StatusCode::kNotFound, "the file has no table of Go functions");
  return out;
}

bool GoPclntab::Take(const GoTableHeader& header) {
  std::optional<GoModule> module = FindGoModule(*file_, header);
  if (!module) return false;
  auto address = [&](uint64_t function) {
    const uint64_t at = AddressAt(header, function);
    uint64_t value = 0;
    if (at > header.end - header.field_bytes() ||
        !file_->ReadAt(at, header.field_bytes(), reinterpret_cast<char*>(&value)).ok()) {
      return uint64_t{0};
    }
    return header.relative() ? module->text + value : module->words.At(module->table + (at - header.begin), value);
  };
  code_ = {address(0), address(header.count)};
  const bool is_code = std::any_of(file_->segments().begin(), file_->segments().end(), [&](const ElfSegment& segment) {
    return segment.executable && code_.begin >= segment.address && code_.begin < code_.end &&
           code_.end - segment.address <= segment.memory_size;
  });
  header_ = header;
  module_ = *std::move(module);
  return is_code;
}

absl::StatusOr<GoPclntab::Counts> GoPclntab::AddTo(SymbolTableBuilder& builder) const {
  std::string bytes(header_.end - header_.begin, '\0');
  RETURN_IF_ERROR(file_->ReadAt(header_.begin, bytes.size(), bytes.data()));
  GoTableBytes table(header_, std::move(bytes), builder, kStepsMax);
  const Counts counts = Reader(*file_, table, module_, builder).Read(code_);
  builder.AddLeftOut(counts.malformed + counts.left_out);
  builder.AddCodeKind(code_, FrameKind::kGo);
  return counts;
}

absl::StatusOr<GoPclntab::Counts> AddGoSymbols(ElfFile& file, SymbolTableBuilder& builder) {
  ASSIGN_OR_RETURN(const GoPclntab table, GoPclntab::Open(file));
  return table.AddTo(builder);
}

}  // namespace tributary
