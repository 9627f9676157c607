#include "elf/cfi_entries.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr uint32_t kWideLength = 0xffffffff;
constexpr uint32_t kReservedLength = 0xfffffff0;
constexpr size_t kHeaderBytesMax = 20;

}  // namespace

std::optional<std::string_view> CfiEntries::Bytes(uint64_t offset, uint64_t size) {
  if (offset > section_.size || size > section_.size - offset) return std::nullopt;
  if (size > bytes_left_) {
    exhausted_ = true;
    return std::nullopt;
  }
  bytes_left_ -= size;
  const char* bytes = window_->View(section_.file_offset + offset, size);
  if (bytes == nullptr) return std::nullopt;
  return std::string_view(bytes, size);
}

std::optional<CfiEntries::Header> CfiEntries::ReadHeader(uint64_t offset) {
  if (offset >= section_.size) return std::nullopt;
  auto bytes = Bytes(offset, std::min<uint64_t>(kHeaderBytesMax, section_.size - offset));
  if (!bytes) return std::nullopt;
  bytes_left_ += bytes->size();  // the entry's own read counts them
  ByteReader reader(*bytes);
  Header header;
  uint64_t length = reader.Fixed<uint32_t>();
  if (length == kWideLength) {
    header.wide = true;
    length = reader.Fixed<uint64_t>();
  } else if (length >= kReservedLength) {
    return std::nullopt;
  }
  uint64_t start = offset + (bytes->size() - reader.left());
  if (reader.bad() || length > section_.size - start) return std::nullopt;
  header.end = start + length;
  if (length == 0) {  // the end mark of .eh_frame; linkers leave some in the middle
    header.body = header.end;
    header.common = true;
    return header;
  }
  header.reference_offset = start;
  // In .eh_frame the reference has 4 bytes in both formats.
  bool wide_reference = header.wide && !section_.eh_frame;
  header.reference = wide_reference ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>();
  header.body = offset + (bytes->size() - reader.left());
  if (reader.bad() || header.body > header.end) return std::nullopt;
  uint64_t common_mark = section_.eh_frame ? 0 : wide_reference ? UINT64_MAX : UINT32_MAX;
  header.common = header.reference == common_mark;
  return header;
}

bool CfiEntries::Peek(uint64_t offset, Kind* kind, uint64_t* next) {
  auto header = ReadHeader(offset);
  // Each step passes at least one header, so the steps are bounded even for a section full of end marks.
  if (!header || header->end <= offset) return false;
  *kind = header->body == header->end && header->common ? Kind::kEndMark
          : header->common                              ? Kind::kCommon
                                                        : Kind::kFunction;
  *next = header->end;
  return true;
}

bool CfiEntries::Read(uint64_t offset, CfiEntry* entry) {
  auto header = ReadHeader(offset);
  if (!header || header->common) return false;
  uint64_t common_offset = header->reference;
  if (section_.eh_frame) {
    if (header->reference > header->reference_offset) return false;
    common_offset = header->reference_offset - header->reference;
  }
  const CfiCommon* common = FindCommon(common_offset);
  if (common == nullptr || !common->usable) return false;
  if (header->end - header->body > kEntryBytesMax) return false;
  auto bytes = Bytes(header->body, header->end - header->body);
  if (!bytes) return false;
  ByteReader reader(*bytes);
  uint64_t address = section_.address + header->body;
  auto begin = ReadPointer(reader, common->pointer_encoding, address);
  auto size = ReadPointerNumber(reader, common->pointer_encoding & kPointerFormatMask);
  if (!begin || !size || *size > UINT64_MAX - *begin) return false;
  if (common->augmentation_size) reader.Bytes(reader.Uleb());
  if (reader.bad()) return false;
  *entry = {.common = common,
            .function = {*begin, *begin + *size},
            .instructions = reader.rest(),
            .instructions_address = section_.address + header->end - reader.left()};
  return true;
}

const CfiCommon* CfiEntries::FindCommon(uint64_t offset) {
  if (offset == last_common_offset_) return last_common_;
  auto found = commons_.find(offset);
  if (found == commons_.end()) {
    if (commons_.size() >= kCommonsMax) commons_.clear();
    found = commons_.try_emplace(offset).first;
    ReadCommon(offset, &found->second);
  }
  last_common_offset_ = offset;
  last_common_ = &found->second;
  return last_common_;
}

void CfiEntries::ReadCommon(uint64_t offset, CfiCommon* common) {
  auto header = ReadHeader(offset);
  if (!header || !header->common || header->end - header->body > kEntryBytesMax) return;
  auto bytes = Bytes(header->body, header->end - header->body);
  if (!bytes) return;
  ByteReader reader(*bytes);
  uint8_t version = reader.Byte();
  if (version != 1 && version != 3 && version != 4) return;
  std::string_view letters = reader.ZeroTerminated();
  if (letters == "eh") reader.Fixed<uint64_t>();                           // written by gcc 2
  if (version == 4 && (reader.Byte() != 8 || reader.Byte() != 0)) return;  // sizes of addresses and segments
  common->code_alignment = reader.Uleb();
  common->data_alignment = reader.Sleb();
  uint64_t return_address = version == 1 ? reader.Byte() : reader.Uleb();
  if (reader.bad() || return_address != machine_.return_address) return;
  if (!letters.empty() && letters != "eh") {
    if (!ReadAugmentation(letters, reader, section_.address + header->end, common)) return;
  }
  common->usable = CfiProgram::RunInitial(machine_, reader.rest(), common);
}

// Source: LSB, "Augmentation String". The letters B and G are arm64's.
bool CfiEntries::ReadAugmentation(std::string_view letters, ByteReader& reader, uint64_t end_address,
                                  CfiCommon* common) {
  if (letters[0] != 'z') {
    common->signal_frame = letters == "S";
    return common->signal_frame;
  }
  common->augmentation_size = true;
  uint64_t size = reader.Uleb();
  uint64_t data_address = end_address - reader.left();
  ByteReader data(reader.Bytes(size));
  for (char letter : letters.substr(1)) {
    switch (letter) {
      case 'R':
        common->pointer_encoding = data.Byte();
        break;
      case 'L':
        data.Byte();
        break;
      case 'P': {
        uint8_t encoding = data.Byte();
        if (encoding == kPointerAligned) {
          uint64_t position = data_address + (size - data.left());
          data.Bytes((8 - position % 8) % 8);
          encoding = kPointerAbsolute;
        }
        if (encoding != kPointerOmit && !ReadPointerNumber(data, encoding)) return false;
        break;
      }
      case 'S':
        common->signal_frame = true;
        break;
      case 'B':
      case 'G':
        break;
      default:  // unknown letter: its data cannot be skipped, but `size` gives the end of all data
        return !reader.bad() && !data.bad();
    }
  }
  return !reader.bad() && !data.bad();
}

}  // namespace tributary
