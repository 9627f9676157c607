#include "elf/cfi_table.h"

#include <algorithm>
#include <cstring>

namespace tributary {
namespace {

constexpr size_t kItemBytes = 8;
constexpr size_t kWindowBlocks = 4;

}  // namespace

CfiTable CfiTable::OfFile(ElfFile* file, uint64_t file_offset, uint64_t base, uint64_t count) {
  CfiTable table;
  table.window_ = std::make_unique<FileWindow>(file, kWindowBlocks);
  table.file_offset_ = file_offset;
  table.base_ = base;
  table.count_ = count;
  return table;
}

CfiTable CfiTable::OfScan(CfiEntries& entries, const Scan& scan, uint64_t* bad, uint64_t* left_out) {
  CfiTable table;
  table.base_ = scan.text.begin;
  uint64_t next = 0;
  for (uint64_t offset = 0; offset < entries.section().size; offset = next) {
    CfiEntries::Kind kind;
    CfiEntry entry;
    if (!entries.Peek(offset, &kind, &next)) break;
    if (kind == CfiEntries::Kind::kEndMark && scan.ends_at_mark) break;
    if (kind != CfiEntries::Kind::kFunction) continue;
    if (!entries.Read(offset, &entry)) {
      ++*bad;
      continue;
    }
    const AddressRange& function = entry.function;
    if (function.begin < scan.text.begin || function.end > scan.text.end || function.begin >= function.end) continue;
    if (function.begin - scan.text.begin > UINT32_MAX || table.own_.size() >= UnwindSource::kEntriesMax) {
      ++*left_out;
      continue;
    }
    table.own_.push_back({static_cast<uint32_t>(function.begin - scan.text.begin), static_cast<uint32_t>(offset)});
  }
  std::sort(table.own_.begin(), table.own_.end(), [](const Own& a, const Own& b) {
    return a.address != b.address ? a.address < b.address : a.offset < b.offset;
  });
  table.own_.shrink_to_fit();
  return table;
}

std::optional<CfiTable::Item> CfiTable::At(uint64_t i, const CfiSection& section) {
  if (!window_) return Item{base_ + own_[i].address, own_[i].offset};
  const char* bytes = window_->View(file_offset_ + i * kItemBytes, kItemBytes);
  if (bytes == nullptr) return std::nullopt;
  int32_t pair[2];
  std::memcpy(pair, bytes, sizeof(pair));
  uint64_t entry = base_ + static_cast<uint64_t>(int64_t{pair[1]});
  bool within = entry >= section.address && entry - section.address < section.size;
  return Item{base_ + static_cast<uint64_t>(int64_t{pair[0]}), within ? entry - section.address : UINT64_MAX};
}

uint64_t CfiTable::UpperBound(uint64_t address, const CfiSection& section) {
  uint64_t low = 0, high = size();
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    auto item = At(middle, section);
    if (!item) return 0;
    if (item->address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace tributary
