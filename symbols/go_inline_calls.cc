#include "symbols/go_inline_calls.h"

#include "elf/elf_format.h"
#include "symbols/go_module.h"

namespace tributary {
namespace {

constexpr uint32_t kOpen = UINT32_MAX;  // in place of a depth: the search for its parent is not finished
constexpr size_t kWindowBlocks = 64;    // trees lie in the order of functions, but equal trees are stored once

// A record as stored in the file.
struct Record18 {  // Go 1.12 to 1.19
  int16_t parent;
  uint8_t function_id, pad;
  int32_t file, line;
  uint32_t name, place;
};
struct Record20 {
  uint8_t function_id, pad[3];
  uint32_t name, place;
  int32_t start_line;
};
static_assert(sizeof(Record18) == 20 && sizeof(Record20) == 16);

}  // namespace

GoInlineCalls::GoInlineCalls(ElfFile& file, GoTableBytes& table, SymbolTableBuilder& builder)
    : file_(file), table_(table), builder_(builder), window_(&file, kWindowBlocks) {}

void GoInlineCalls::Enter(const GoFunction& function) {
  function_ = &function;
  malformed_ = false;
  known_.clear();
}

bool GoInlineCalls::ReadRecord(int32_t record, Record* out) {
  if (record >= kRecordsMax) return false;
  const bool is_short = table_.header().form == GoTableForm::kGo20;
  const size_t size = is_short ? sizeof(Record20) : sizeof(Record18);
  const auto offset = AddressToFileOffset(file_.segments(), function_->tree + size * static_cast<uint64_t>(record));
  const char* bytes = offset ? window_.View(*offset, size) : nullptr;
  if (bytes == nullptr) return false;
  if (is_short) {
    const auto raw = ReadElfStruct<Record20>({bytes, size}, 0);
    *out = {raw.name, raw.place};
  } else {
    const auto raw = ReadElfStruct<Record18>({bytes, size}, 0);
    *out = {raw.name, raw.place};
  }
  return out->place < function_->size;
}

GoInlineCalls::Call GoInlineCalls::Resolve(int32_t record) {
  const Call own{function_->node, 0};
  Call call = own;
  open_.clear();
  for (int32_t at = record; at >= 0;) {
    const auto [it, added] = known_.try_emplace(at, Call{own.node, kOpen});
    if (!added) {
      malformed_ |= it->second.depth == kOpen;
      call = it->second.depth == kOpen ? own : it->second;
      break;
    }
    Record raw{};
    if (open_.size() == kNestingMax || !ReadRecord(at, &raw)) {
      malformed_ = true;
      it->second = own;
      break;
    }
    open_.emplace_back(at, raw);
    at = GoValueAt(function_->calls, raw.place);
  }
  for (; !open_.empty(); open_.pop_back()) {
    const auto& [number, raw] = open_.back();
    const uint32_t file = table_.FileName(function_->unit, GoValueAt(function_->files, raw.place));
    const int32_t line = GoValueAt(function_->lines, raw.place);
    const uint32_t node =
        builder_.AddNode(table_.FunctionName(raw.name), call.node, file, line < 0 ? 0 : static_cast<uint32_t>(line));
    if (node != 0) call = {node, call.depth + 1};
    known_[number] = call;
  }
  return call;
}

}  // namespace tributary
