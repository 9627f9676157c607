#include "elf/unwind_source.h"

#include <utility>

#include "base/status.h"
#include "elf/cfi_table.h"
#include "elf/elf_format.h"
#include "elf/thread_starts.h"
#include "elf/unwind_rule.h"
#include "elf/unwind_sections.h"

namespace tributary {
namespace {

// A smaller gap between two functions is padding.
constexpr uint64_t kGapBytesMin = 16;
// Limit of unusable entries that are skipped on the way back to the entry that holds an address.
constexpr int kStepsBackMax = 64;
constexpr size_t kWindowBlocks = 64;  // 1 MiB while a range is compiled

class CfiSource : public UnwindSource {
 public:
  CfiSource(std::unique_ptr<ElfFile> file, const UnwindSections& sections)
      : file_(std::move(file)),
        sections_(sections),
        text_(TextOf(*file_)),
        machine_(file_->machine() == kElfMachineArm64 ? kCfiArm64 : kCfiX86_64),
        window_(file_.get(), kWindowBlocks),
        entries_(sections.section, machine_, &window_) {}

  absl::Status Prepare() {
    if (sections_.has_table) {
      uint64_t count = std::min(sections_.table_count, kEntriesMax);
      counts_.left_out_entries = sections_.table_count - count;
      table_ = CfiTable::OfFile(file_.get(), sections_.table_offset, sections_.table_base, count);
    } else if (sections_.kind != Kind::kNone) {
      RETURN_IF_ERROR(Load());
      table_ = CfiTable::OfScan(entries_, {.text = text_, .ends_at_mark = sections_.ends_at_mark}, &counts_.bad_entries,
                                &counts_.left_out_entries);
    }
    starts_ = FindThreadStarts(*file_, [this](uint64_t address) { return FunctionAt(address); });
    absl::Status status = Status();
    Release();
    return status;
  }

  Kind kind() const override { return sections_.kind; }
  AddressRange text() const override { return text_; }
  const std::vector<AddressRange>& starts() const override { return starts_; }
  const Counts& counts() const override { return counts_; }

  absl::Status Compile(AddressRange range, std::vector<UnwindRow>* rows) override {
    if (range.begin >= range.end || range.end - range.begin > kRangeBytesMax) {
      return Error(absl::StatusCode::kInvalidArgument, "compile unwind rows: the address range is empty or too long");
    }
    RowBuilder builder(range, rows);
    builder.Add(range.begin, TRIB_RULE_NONE);
    if (sections_.kind == Kind::kNone) return absl::OkStatus();
    absl::Status status = Load();
    if (status.ok()) {
      CompileEntries(&builder);
      status = Status();
    }
    if (status.ok() && (builder.overflowed() || entries_.exhausted())) {
      status = Error(absl::StatusCode::kInvalidArgument,
                     "compile unwind rows: there are more rows or bytes of unwind entries than this code can have");
    }
    Release();
    if (!status.ok()) rows->clear();
    return status;
  }

 private:
  absl::Status Load() {
    entries_.Refill();
    if (!sections_.compressed) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::string bytes, Decompress(*file_, *sections_.compressed, kDecompressedBytesMax));
    window_.UseMemory(std::move(bytes));
    return absl::OkStatus();
  }
  void Release() {
    window_.Release();
    table_.Release();
  }
  absl::Status Status() const { return window_.status().ok() ? table_.status() : window_.status(); }

  // Returns false if entry number i cannot be used.
  bool ReadEntry(uint64_t i, CfiEntry* entry) {
    auto item = table_.At(i, sections_.section);
    return item && item->offset != UINT64_MAX && entries_.Read(item->offset, entry) &&
           entry->function.begin == item->address && entry->function.begin < entry->function.end;
  }

  // Returns the index of the last usable entry that begins at or before `address`. If none is found, returns the index
  // of the first entry after `address`.
  uint64_t FirstEntry(uint64_t address) {
    uint64_t behind = table_.UpperBound(address, sections_.section);
    CfiEntry entry;
    for (uint64_t i = behind; i > 0 && behind - i < kStepsBackMax;) {
      if (ReadEntry(--i, &entry)) return i;
    }
    return behind;
  }

  void CompileEntries(RowBuilder* rows) {
    std::optional<uint64_t> previous_end;
    uint64_t next_begin = text_.end;
    for (uint64_t i = FirstEntry(rows->range().begin); i < table_.size(); ++i) {
      CfiEntry entry;
      if (!ReadEntry(i, &entry)) {
        if (!Status().ok() || entries_.exhausted()) return;
        ++counts_.bad_entries;
        continue;
      }
      if (entry.function.begin >= rows->range().end) {
        next_begin = entry.function.begin;
        break;
      }
      if (previous_end) CloseGap(*previous_end, entry.function.begin, rows);
      CfiProgram program(machine_, *entry.common);
      counts_.unsupported_rows += program.Run(entry.instructions, entry.instructions_address, entry.function, rows);
      ++counts_.entries;
      previous_end = entry.function.end;
    }
    if (previous_end) CloseGap(*previous_end, next_begin, rows);
  }

  static void CloseGap(uint64_t end, uint64_t begin, RowBuilder* rows) {
    if (begin > end && begin - end >= kGapBytesMin) rows->Add(end, TRIB_RULE_NONE);
  }

  std::optional<AddressRange> FunctionAt(uint64_t address) {
    CfiEntry entry;
    uint64_t i = FirstEntry(address);
    if (i >= table_.size() || !ReadEntry(i, &entry)) return std::nullopt;
    if (address < entry.function.begin || address >= entry.function.end) return std::nullopt;
    return entry.function;
  }

  std::unique_ptr<ElfFile> file_;
  const UnwindSections sections_;
  const AddressRange text_;
  const CfiMachine& machine_;
  FileWindow window_;
  CfiEntries entries_;
  CfiTable table_;
  std::vector<AddressRange> starts_;
  Counts counts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<UnwindSource>> UnwindSource::Open(std::unique_ptr<ElfFile> file) {
  ASSIGN_OR_RETURN(UnwindSections sections, FindUnwindSections(*file));
  auto source = std::make_unique<CfiSource>(std::move(file), sections);
  RETURN_IF_ERROR(source->Prepare());
  return source;
}

}  // namespace tributary
