#include "kernel-collector/runtimes/python/direct_jumps.h"

#include <optional>

#include "elf/byte_reader.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

// How the rest of an x86-64 instruction after its opcode is encoded. Source: Intel's manual, volume 2, appendix A.
struct Shape {
  bool known = true;
  bool modrm = false;
  uint8_t immediate = 0;       // bytes
  bool wide_operand = false;   // 4 bytes of immediate, but 2 after a prefix 0x66
  uint8_t relative_bytes = 0;  // of a direct jump or call
  bool is_jump = false;
};
constexpr Shape kPlain{};
constexpr Shape kUnknown{.known = false};
constexpr Shape kModrm{.modrm = true};
constexpr Shape kModrmByte{.modrm = true, .immediate = 1};
constexpr Shape kModrmWide{.modrm = true, .wide_operand = true};
constexpr Shape kByte{.immediate = 1};
constexpr Shape kWide{.wide_operand = true};

Shape OneByteShape(uint8_t op) {
  if (op < 0x40) {
    switch (op & 7) {
      case 4:
        return kByte;
      case 5:
        return kWide;
      case 6:
      case 7:
        return kUnknown;
      default:
        return kModrm;
    }
  }
  if (op >= 0x70 && op <= 0x7f) return {.relative_bytes = 1, .is_jump = true};
  if (op >= 0x84 && op <= 0x8f) return kModrm;
  if (op >= 0xa0 && op <= 0xa3) return {.immediate = 8};
  if (op >= 0xb0 && op <= 0xb7) return kByte;
  if (op >= 0xb8 && op <= 0xbf) return kWide;
  if (op >= 0xd8 && op <= 0xdf) return kModrm;
  if (op >= 0xe0 && op <= 0xe3) return {.relative_bytes = 1, .is_jump = true};
  switch (op) {
    case 0x63:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xfe:
    case 0xff:
      return kModrm;
    case 0x68:
    case 0xa9:
      return kWide;
    case 0x69:
    case 0x81:
    case 0xc7:
      return kModrmWide;
    case 0x6a:
    case 0xa8:
    case 0xcd:
    case 0xe4:
    case 0xe5:
    case 0xe6:
    case 0xe7:
      return kByte;
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
    case 0xc6:
      return kModrmByte;
    case 0xc2:
    case 0xca:
      return {.immediate = 2};
    case 0xc8:
      return {.immediate = 3};
    case 0xe8:
      return {.relative_bytes = 4};
    case 0xe9:
      return {.relative_bytes = 4, .is_jump = true};
    case 0xeb:
      return {.relative_bytes = 1, .is_jump = true};
    case 0x60:
    case 0x61:
    case 0x82:
    case 0x9a:
    case 0xce:
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xea:
      return kUnknown;
    default:
      return kPlain;
  }
}

// Instructions of the map 0F that have an immediate byte, also in their VEX and EVEX forms.
bool HasByteInMap1(uint8_t op) { return (op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6); }

Shape TwoByteShape(uint8_t op) {
  if (op >= 0x80 && op <= 0x8f) return {.relative_bytes = 4, .is_jump = true};
  if (HasByteInMap1(op) || op == 0x0f || op == 0xa4 || op == 0xac || op == 0xba) return kModrmByte;
  if ((op >= 0x05 && op <= 0x0c) || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
      (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf)) {
    return kPlain;
  }
  return kModrm;
}

// Reads x86-64 instructions one after the other.
class X86Reader {
 public:
  X86Reader(std::string_view code, uint64_t address) : reader_(code), end_(address + code.size()) {}

  bool at_end() const { return reader_.at_end(); }
  // Returns false if the instruction is not known, or is cut off. Sets `target` to 0 unless it is a direct jump.
  bool Next(uint64_t* target) {
    *target = 0;
    short_operand_ = false;
    wide_register_ = false;
    uint8_t op = AfterPrefixes();
    Shape shape;
    if (op == 0xc4 || op == 0xc5 || op == 0x62) {
      shape = VectorShape(op);
    } else if (op == 0x0f) {
      op = reader_.Byte();
      if (op == 0x38 || op == 0x3a) {
        reader_.Byte();
        shape = op == 0x38 ? kModrm : kModrmByte;
      } else {
        shape = TwoByteShape(op);
      }
    } else {
      shape = OneByteShape(op);
      if (op >= 0xb8 && op <= 0xbf && wide_register_) shape = {.immediate = 8};
      if ((op == 0xf6 || op == 0xf7)) shape = TestShape(op);
    }
    return shape.known && Finish(shape, target);
  }

 private:
  uint8_t AfterPrefixes() {
    for (;;) {
      uint8_t op = reader_.Byte();
      bool is_rex = op >= 0x40 && op <= 0x4f;
      if (is_rex) wide_register_ = (op & 8) != 0;
      if (op == 0x66) short_operand_ = true;
      bool is_prefix = is_rex || op == 0x66 || op == 0x67 || op == 0x64 || op == 0x65 || op == 0x2e || op == 0x36 ||
                       op == 0x3e || op == 0x26 || op == 0xf0 || op == 0xf2 || op == 0xf3;
      if (!is_prefix || reader_.bad()) return op;
    }
  }
  Shape VectorShape(uint8_t prefix) {
    unsigned map = 1;
    if (prefix != 0xc5) map = reader_.Byte() & (prefix == 0xc4 ? 0x1f : 7);
    reader_.Bytes(prefix == 0x62 ? 2 : 1);
    uint8_t op = reader_.Byte();
    if (map == 1 && op == 0x77 && prefix != 0x62) return kPlain;  // vzeroupper
    return map == 3 || (map == 1 && HasByteInMap1(op)) ? kModrmByte : kModrm;
  }
  // TEST has an immediate, the other instructions with this opcode have none.
  Shape TestShape(uint8_t op) {
    if (reader_.rest().empty()) return kUnknown;
    bool is_test = ((static_cast<uint8_t>(reader_.rest()[0]) >> 3) & 6) == 0;
    if (!is_test) return kModrm;
    return op == 0xf6 ? kModrmByte : kModrmWide;
  }
  bool Finish(const Shape& shape, uint64_t* target) {
    if (shape.modrm) SkipOperand();
    reader_.Bytes(shape.immediate);
    if (shape.wide_operand) reader_.Bytes(short_operand_ ? 2 : 4);
    int64_t distance = 0;
    if (shape.relative_bytes == 1) distance = reader_.Fixed<int8_t>();
    if (shape.relative_bytes == 4) distance = reader_.Fixed<int32_t>();
    if (reader_.bad()) return false;
    if (shape.is_jump) *target = end_ - reader_.left() + static_cast<uint64_t>(distance);
    return true;
  }
  void SkipOperand() {
    uint8_t modrm = reader_.Byte();
    unsigned mode = modrm >> 6, base = modrm & 7;
    if (mode == 3) return;
    if (base == 4) base = reader_.Byte() & 7;
    if (mode == 1) reader_.Bytes(1);
    if (mode == 2 || (mode == 0 && base == 5)) reader_.Bytes(4);
  }

  ByteReader reader_;
  const uint64_t end_;
  bool short_operand_ = false, wide_register_ = false;
};

int64_t SignExtend(uint32_t value, unsigned bits) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
}

// Source: Arm Architecture Reference Manual, C4.1.
std::optional<int64_t> Arm64JumpDistance(uint32_t code) {
  if ((code & 0xfc000000) == 0x14000000) return SignExtend(code & 0x3ffffff, 26) * 4;     // B
  if ((code & 0xff000010) == 0x54000000) return SignExtend(code >> 5 & 0x7ffff, 19) * 4;  // B.cond
  if ((code & 0x7e000000) == 0x34000000) return SignExtend(code >> 5 & 0x7ffff, 19) * 4;  // CBZ, CBNZ
  if ((code & 0x7e000000) == 0x36000000) return SignExtend(code >> 5 & 0x3fff, 14) * 4;   // TBZ, TBNZ
  return std::nullopt;
}

}  // namespace

void ForEachDirectJump(uint16_t machine, std::string_view code, uint64_t address,
                       const std::function<void(uint64_t target)>& jump) {
  if (machine == kElfMachineArm64) {
    for (size_t i = 0; i + 4 <= code.size(); i += 4) {
      if (auto distance = Arm64JumpDistance(ReadElfStruct<uint32_t>(code, i))) {
        jump(address + i + static_cast<uint64_t>(*distance));
      }
    }
    return;
  }
  X86Reader reader(code, address);
  uint64_t target = 0;
  while (!reader.at_end() && reader.Next(&target)) {
    if (target != 0) jump(target);
  }
}

}  // namespace tributary
