#include "elf/cfi_expression.h"

#include "elf/byte_reader.h"

namespace tributary {
namespace {

// DWARF 5 §7.7.1.
enum : uint8_t {
  kOpDeref = 0x06,
  kOpAnd = 0x1a,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpGe = 0x2a,
  kOpLit0 = 0x30,
  kOpLit31 = 0x4f,
  kOpBreg0 = 0x70,
  kOpBreg31 = 0x8f,
  kOpBregx = 0x92,
};

constexpr uint8_t kX86StackPointer = 7, kX86ReturnAddress = 16;

bool IsLiteral(uint8_t op) { return op >= kOpLit0 && op <= kOpLit31; }

// Pattern: breg7 8, breg16 0, lit15, and, lit N, ge, lit3, shl, plus. A stub pushes one word at its byte N. N is 11 in
// the usual stubs, 9 or 10 in stubs for indirect-branch tracking, 5 in stubs for bounds registers.
std::optional<CfiExpression> ParsePlt(std::string_view bytes) {
  if (bytes.size() != 11) return std::nullopt;
  auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  bool matches = at(0) == kOpBreg0 + kX86StackPointer && at(1) == 8 && at(2) == kOpBreg0 + kX86ReturnAddress &&
                 at(3) == 0 && at(4) == kOpLit0 + 15 && at(5) == kOpAnd && IsLiteral(at(6)) && at(7) == kOpGe &&
                 at(8) == kOpLit0 + 3 && at(9) == kOpShl && at(10) == kOpPlus;
  if (!matches) return std::nullopt;
  return CfiExpression{.kind = CfiExpression::Kind::kPlt, .plt_threshold = static_cast<uint8_t>(at(6) - kOpLit0)};
}

}  // namespace

std::optional<CfiExpression> ParseCfiExpression(std::string_view bytes) {
  if (auto plt = ParsePlt(bytes)) return plt;
  ByteReader reader(bytes);
  CfiExpression out;
  uint8_t op = reader.Byte();
  if (op >= kOpBreg0 && op <= kOpBreg31) {
    out.base = op - kOpBreg0;
  } else if (op == kOpBregx) {
    uint64_t number = reader.Uleb();
    if (number > UINT16_MAX) return std::nullopt;
    out.base = static_cast<uint32_t>(number);
  } else {
    return std::nullopt;
  }
  out.offset = reader.Sleb();
  if (!reader.bad() && reader.at_end()) return out;
  if (reader.Byte() != kOpDeref) return std::nullopt;
  out.kind = CfiExpression::Kind::kDeref;
  if (!reader.bad() && reader.at_end()) return out;
  op = reader.Byte();
  if (op == kOpPlusUconst) {
    uint64_t add = reader.Uleb();
    if (add > INT32_MAX) return std::nullopt;
    out.add = static_cast<int64_t>(add);
  } else if (IsLiteral(op) && reader.Byte() == kOpPlus) {
    out.add = op - kOpLit0;
  } else {
    return std::nullopt;
  }
  if (reader.bad() || !reader.at_end()) return std::nullopt;
  return out;
}

}  // namespace tributary
