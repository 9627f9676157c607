#include "elf/relocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "elf/elf_format.h"
#include "elf/module_layout.h"

namespace tributary {
namespace {

constexpr size_t kPieceEntries = 16'384;

absl::Status Malformed(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("ELF file: {}", what));
}

// Number of bytes to write. kNothing is for values that are not needed here (places of thread-local variables).
enum class Write : uint8_t { kUnknown, kNothing, k4, k8, k4Relative, k8Relative };

// Numbers from the psABIs.
Write OnX86(uint32_t type) {
  switch (type) {
    case 0:   // R_X86_64_NONE
    case 17:  // R_X86_64_DTPOFF64
    case 21:  // R_X86_64_DTPOFF32
      return Write::kNothing;
    case 1:  // R_X86_64_64
      return Write::k8;
    case 2:  // R_X86_64_PC32
      return Write::k4Relative;
    case 10:  // R_X86_64_32
    case 11:  // R_X86_64_32S
      return Write::k4;
    case 24:  // R_X86_64_PC64
      return Write::k8Relative;
    default:
      return Write::kUnknown;
  }
}

Write OnArm64(uint32_t type) {
  switch (type) {
    case 0:     // R_AARCH64_NONE
    case 256:   // old number of R_AARCH64_NONE
    case 1028:  // R_AARCH64_TLS_DTPMOD
    case 1029:  // R_AARCH64_TLS_DTPREL
      return Write::kNothing;
    case 257:  // R_AARCH64_ABS64
      return Write::k8;
    case 258:  // R_AARCH64_ABS32
      return Write::k4;
    case 260:  // R_AARCH64_PREL64
      return Write::k8Relative;
    case 261:  // R_AARCH64_PREL32
      return Write::k4Relative;
    default:
      return Write::kUnknown;
  }
}

}  // namespace

absl::StatusOr<Relocations> Relocations::Open(ElfFile& file) {
  Relocations out(file);
  if (file.type() != kElfTypeRelocatable) return out;
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  auto table = std::find_if(sections->begin(), sections->end(),
                            [](const ElfSection& section) { return section.type == kElfSectionSymtab; });
  if (table == sections->end()) return out;  // a .dwo or a .dwp: it has no references
  RETURN_IF_ERROR(out.ReadSymbols(*sections, *table));
  out.symbol_table_ = static_cast<uint32_t>(table - sections->begin());
  out.sections_ = sections;
  return out;
}

absl::Status Relocations::ReadSymbols(const std::vector<ElfSection>& sections, const ElfSection& table) {
  if (table.entry_size != sizeof(ElfSymbol)) return Malformed("bad symbol table header");
  const ModuleLayout layout(sections);
  ASSIGN_OR_RETURN(const std::string bytes, file_->SectionBytes(table, kSymbolsMax * sizeof(ElfSymbol)));
  symbols_.reserve(bytes.size() / sizeof(ElfSymbol));
  for (size_t i = 0; i < bytes.size() / sizeof(ElfSymbol); ++i) {
    const auto symbol = ReadElfStruct<ElfSymbol>(bytes, i * sizeof(ElfSymbol));
    if (symbol.section == kElfIndexAbsolute) {
      symbols_.push_back(symbol.value);
    } else if (symbol.section == kElfIndexUndefined || symbol.section >= kElfIndexReserved) {
      symbols_.push_back(ModuleLayout::kNowhere);
    } else {
      symbols_.push_back(layout.AddressOf(symbol.section) + symbol.value);
    }
  }
  return absl::OkStatus();
}

absl::Status Relocations::Apply(size_t section, std::string* bytes) const {
  if (sections_ == nullptr) return absl::OkStatus();
  auto of = std::find_if(sections_->begin(), sections_->end(), [&](const ElfSection& each) {
    return each.type == kElfSectionRelocations && each.info == section;
  });
  if (of == sections_->end()) return absl::OkStatus();
  if (of->entry_size != sizeof(ElfRelocation) || of->link != symbol_table_)
    return Malformed("bad relocation section header");
  std::string piece;
  for (uint64_t done = 0, left = of->size / sizeof(ElfRelocation); left > 0;) {
    piece.resize(std::min<uint64_t>(left, kPieceEntries) * sizeof(ElfRelocation));
    RETURN_IF_ERROR(file_->ReadAt(of->offset + done, piece.size(), piece.data()));
    RETURN_IF_ERROR(ApplyPiece(piece, bytes));
    done += piece.size();
    left -= piece.size() / sizeof(ElfRelocation);
  }
  return absl::OkStatus();
}

absl::Status Relocations::ApplyPiece(std::string_view piece, std::string* bytes) const {
  const bool arm = file_->machine() == kElfMachineArm64;
  for (size_t at = 0; at < piece.size(); at += sizeof(ElfRelocation)) {
    const auto relocation = ReadElfStruct<ElfRelocation>(piece, at);
    const Write write = arm ? OnArm64(relocation.type) : OnX86(relocation.type);
    if (write == Write::kNothing) continue;
    if (write == Write::kUnknown) return Malformed(fmt::format("relocation of unknown kind {}", relocation.type));
    const size_t size = write == Write::k4 || write == Write::k4Relative ? 4 : 8;
    if (relocation.symbol >= symbols_.size() || relocation.offset > bytes->size() ||
        size > bytes->size() - relocation.offset) {
      return Malformed("a relocation is outside of its section, or its symbol does not exist");
    }
    uint64_t value = symbols_[relocation.symbol] + static_cast<uint64_t>(relocation.addend);
    // Debug sections begin at address 0.
    if (write == Write::k4Relative || write == Write::k8Relative) value -= relocation.offset;
    std::memcpy(bytes->data() + relocation.offset, &value, size);  // little-endian: the lower half first
  }
  return absl::OkStatus();
}

}  // namespace tributary
