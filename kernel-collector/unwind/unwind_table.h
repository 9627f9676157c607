#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/include/unwind.h"
#include "elf/unwind_source.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

// The range of 4 KiB pages with an executable's code: from the page with the lowest byte of its executable segments to
// the page with their highest byte.
struct TextPages {
  uint64_t first = 0;  // ELF address >> TRIB_PAGE_SHIFT
  uint32_t count = 0;
};
// Returns nullopt if the executable has no code, or if its segments are too far apart for a table.
std::optional<TextPages> TextPagesOf(const std::vector<ElfSegment>& segments);

// A unit: 4 MiB of an executable's code. The unwind rows of a unit are compiled, published and withdrawn together.
struct UnwindUnit {
  enum class State : uint8_t {
    kAbsent,  // page entries say "not loaded"
    kQueued,
    kCompiling,  // at the worker, or waiting for space
    kLoaded,
    kFailed,  // could not be loaded: walked by frame pointers until it is tried again
  };

  State state = State::kAbsent;
  uint32_t demand = 0;  // requests since it was queued
  uint32_t first_row = 0, rows = 0;
  uint64_t touched = 0;  // when eviction last saw the unit in use
};

// The state of one executable's unwind rows (see UnwindTables).
struct UnwindTable {
  static constexpr uint32_t kUnitPages = (4u << 20) >> TRIB_PAGE_SHIFT;
  static constexpr uint32_t kTouchPages = 1u << TRIB_TOUCH_SHIFT;

  ExecutableId id;
  std::weak_ptr<CodeFile> file;  // for which a unit was last requested; weak, so CodeFileTable can drop it
  TextPages text;
  uint32_t first_entry = 0;  // index of `text` in UnwindMaps::pages(); begins a touch word
  uint32_t references = 0;   // number of published mapping tables that use the entries
  uint32_t busy_units = 0;   // queued or compiling
  uint64_t last_used = 0;
  bool starts_known = false;
  std::vector<AddressRange> starts;
  std::vector<UnwindUnit> units;

  uint32_t first_page() const { return first_entry - static_cast<uint32_t>(text.first); }
  uint32_t touch_words() const { return (text.count + kTouchPages - 1) / kTouchPages; }
  // Returns the page of an ELF address, counted from text.first; nullopt if the address is outside `text`.
  std::optional<uint32_t> PageOf(uint64_t address) const {
    uint64_t page = address >> TRIB_PAGE_SHIFT;
    if (page < text.first || page - text.first >= text.count) return std::nullopt;
    return static_cast<uint32_t>(page - text.first);
  }
  uint32_t unit_first_page(uint32_t unit) const { return unit * kUnitPages; }
  uint32_t unit_page_count(uint32_t unit) const { return std::min(kUnitPages, text.count - unit * kUnitPages); }
};

}  // namespace tributary
