#pragma once

#include <cstdint>

// The constants of DWARF 2 to 5 that are needed for reading names, inlined calls and lines. Source: DWARF 5, section 7,
// and the GNU extensions that gcc and dwz write (split DWARF before version 5, and references into a file that several
// executables share).

namespace tributary {

constexpr uint16_t kDwTagCompileUnit = 0x11;
constexpr uint16_t kDwTagInlinedSubroutine = 0x1d;
constexpr uint16_t kDwTagSubprogram = 0x2e;
constexpr uint16_t kDwTagPartialUnit = 0x3c;
constexpr uint16_t kDwTagSkeletonUnit = 0x4a;

enum class DwAttribute : uint16_t {
  kName = 0x03,
  kStmtList = 0x10,
  kLowPc = 0x11,
  kHighPc = 0x12,
  kCompDir = 0x1b,
  kAbstractOrigin = 0x31,
  kSpecification = 0x47,
  kRanges = 0x55,
  kCallFile = 0x58,
  kCallLine = 0x59,
  kLinkageName = 0x6e,
  kStrOffsetsBase = 0x72,
  kAddrBase = 0x73,
  kRnglistsBase = 0x74,
  kDwoName = 0x76,
  kMipsLinkageName = 0x2007,
  kGnuDwoName = 0x2130,
  kGnuDwoId = 0x2131,
  kGnuRangesBase = 0x2132,
  kGnuAddrBase = 0x2133,
};

enum class DwForm : uint16_t {
  kAddr = 0x01,
  kBlock2 = 0x03,
  kBlock4 = 0x04,
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kBlock1 = 0x0a,
  kData1 = 0x0b,
  kFlag = 0x0c,
  kSdata = 0x0d,
  kStrp = 0x0e,
  kUdata = 0x0f,
  kRefAddr = 0x10,
  kRef1 = 0x11,
  kRef2 = 0x12,
  kRef4 = 0x13,
  kRef8 = 0x14,
  kRefUdata = 0x15,
  kIndirect = 0x16,
  kSecOffset = 0x17,
  kExprloc = 0x18,
  kFlagPresent = 0x19,
  kStrx = 0x1a,
  kAddrx = 0x1b,
  kRefSup4 = 0x1c,
  kStrpSup = 0x1d,
  kData16 = 0x1e,
  kLineStrp = 0x1f,
  kRefSig8 = 0x20,
  kImplicitConst = 0x21,
  kLoclistx = 0x22,
  kRnglistx = 0x23,
  kRefSup8 = 0x24,
  kStrx1 = 0x25,
  kStrx2 = 0x26,
  kStrx3 = 0x27,
  kStrx4 = 0x28,
  kAddrx1 = 0x29,
  kAddrx2 = 0x2a,
  kAddrx3 = 0x2b,
  kAddrx4 = 0x2c,
  kGnuAddrIndex = 0x1f01,
  kGnuStrIndex = 0x1f02,
  kGnuRefAlt = 0x1f20,
  kGnuStrpAlt = 0x1f21,
};

enum class DwUnitType : uint8_t {
  kCompile = 1,
  kType = 2,
  kPartial = 3,
  kSkeleton = 4,
  kSplitCompile = 5,
  kSplitType = 6,
};

enum class DwRangeEntry : uint8_t {
  kEndOfList = 0,
  kBaseAddressx = 1,
  kStartxEndx = 2,
  kStartxLength = 3,
  kOffsetPair = 4,
  kBaseAddress = 5,
  kStartEnd = 6,
  kStartLength = 7,
};

enum class DwLineOp : uint8_t {
  kExtended = 0,
  kCopy = 1,
  kAdvancePc = 2,
  kAdvanceLine = 3,
  kSetFile = 4,
  kConstAddPc = 8,
  kFixedAdvancePc = 9,
};
constexpr uint8_t kDwLineEndSequence = 1, kDwLineSetAddress = 2, kDwLineDefineFile = 3;
constexpr uint64_t kDwLineContentPath = 1, kDwLineContentDirectory = 2;

}  // namespace tributary
