#include "kernel-collector/runtimes/python/interpreter_loop.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "elf/function_bounds.h"
#include "kernel-collector/runtimes/python/direct_jumps.h"

namespace tributary {
namespace {

constexpr size_t kPartsMax = 16;
constexpr size_t kTargetsMax = 4096;  // of all parts; the Pythons of Debian have up to 660
constexpr size_t kCandidatesMax = 256;
constexpr size_t kLinkageSectionsMax = 16;
constexpr uint64_t kPartBytesMax = 1u << 20;
constexpr uint64_t kScanBytesMax = 2u << 20;

class PartFinder {
 public:
  PartFinder(ElfFile& file, const std::vector<ElfSection>& sections, std::vector<AddressRange> functions)
      : file_(file), functions_(std::move(functions)) {
    for (const ElfSection& section : sections) {
      if (linkage_.size() < kLinkageSectionsMax && section.name.substr(0, 4) == ".plt") linkage_.push_back(section);
    }
  }

  std::vector<RuntimeBinary::Range> Find(AddressRange first) {
    parts_.push_back(first);
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (uint64_t target : JumpsOf(parts_[i])) {
        if (targets_++ < kTargetsMax) Consider(target);
      }
    }
    std::sort(parts_.begin(), parts_.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
    std::vector<RuntimeBinary::Range> out;
    for (const AddressRange& part : parts_) out.push_back({part.begin, part.end});
    return out;
  }

  std::optional<AddressRange> FunctionAt(uint64_t address) const {
    auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                  [](uint64_t a, const AddressRange& range) { return a < range.begin; });
    if (after == functions_.begin() || address >= std::prev(after)->end) return std::nullopt;
    return *std::prev(after);
  }

 private:
  // True if the address is in a part, but not its first instruction, which every caller may use.
  bool IsInMiddle(uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const AddressRange& part) { return address > part.begin && address < part.end; });
  }

  void Consider(uint64_t target) {
    auto function = FunctionAt(target);
    if (!function || parts_.size() >= kPartsMax || IsKnown(function->begin) || IsLinkage(target)) return;
    // Each function that is called as the last action is a candidate. A check reads its code, so it is done once.
    bool is_part = target != function->begin;
    if (!is_part && rejected_.size() < kCandidatesMax && rejected_.insert(function->begin).second) {
      std::vector<uint64_t> jumps = JumpsOf(*function);
      is_part = std::any_of(jumps.begin(), jumps.end(), [&](uint64_t back) { return IsInMiddle(back); });
    }
    if (is_part) parts_.push_back(*function);
  }
  bool IsKnown(uint64_t begin) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const AddressRange& part) { return part.begin == begin; });
  }
  // True for the stubs of other files' functions (.plt): they share one entry of .eh_frame.
  bool IsLinkage(uint64_t address) const {
    return std::any_of(linkage_.begin(), linkage_.end(), [&](const ElfSection& section) {
      return address >= section.address && address - section.address < section.size;
    });
  }

  std::vector<uint64_t> JumpsOf(AddressRange range) {
    const uint64_t size = std::min(range.end - range.begin, kPartBytesMax);
    std::vector<uint64_t> out;
    if (size > kScanBytesMax - scanned_) return out;
    scanned_ += size;
    for (const ElfSegment& segment : file_.segments()) {
      if (range.begin < segment.address || range.begin - segment.address >= segment.file_size) continue;
      const uint64_t offset = range.begin - segment.address;
      std::string code(std::min(size, segment.file_size - offset), '\0');
      if (!file_.ReadAt(segment.file_offset + offset, code.size(), code.data()).ok()) return out;
      ForEachDirectJump(file_.machine(), code, range.begin, [&](uint64_t target) {
        if (target < range.begin || target >= range.end) out.push_back(target);
      });
      break;
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  ElfFile& file_;
  const std::vector<AddressRange> functions_;
  std::vector<ElfSection> linkage_;
  std::vector<AddressRange> parts_;
  absl::flat_hash_set<uint64_t> rejected_;
  uint64_t scanned_ = 0;
  size_t targets_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<RuntimeBinary::Range>> FindInterpreterLoop(ElfFile& file, const SymbolPlace& function) {
  ASSIGN_OR_RETURN(FunctionBounds bounds, FindFunctionBounds(file));
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  PartFinder finder(file, *sections, std::move(bounds.ranges));
  auto first = finder.FunctionAt(function.address);
  if (!first && function.size != 0 && function.size <= kPartBytesMax) {
    first = AddressRange{function.address, function.address + function.size};
  }
  if (!first) return Error(absl::StatusCode::kNotFound, "no code at the address of the interpreter's loop");
  return finder.Find(*first);
}

}  // namespace tributary
