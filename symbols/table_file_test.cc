#include "symbols/table_file.h"

#include <gtest/gtest.h>

#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

const ExecutableId kId = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\xab", 2));

std::string Encoded() {
  return EncodeSymbolTable(*BuildSymbolTable(kId, SymbolSource::kSymtab, {{0x1000, 0x80, "f"}, {0x1080, 8, "g"}}));
}

TableFile Described() {
  const auto table = DecodeSymbolTable(Encoded());
  TableFile file = DescribeTable(**table, Encoded());
  file.origin = 2;
  file.contested = true;
  file.stored_at = UnixNs{123};
  return file;
}

TEST(TableFile, RoundTrips) {
  const std::string bytes = PackTableFile(Described(), Encoded(), 1);
  const auto file = ParseTableFileHeader(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->id, kId);
  EXPECT_EQ(file->source, SymbolSource::kSymtab);
  EXPECT_EQ(file->origin, 2);
  EXPECT_TRUE(file->contested);
  EXPECT_EQ(file->functions, 2u);
  EXPECT_EQ(file->stored_at, UnixNs{123});
  const auto encoded = ReadTableFile(bytes);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_EQ(*encoded, Encoded());
}

TEST(TableFile, DetectsChangedBytes) {
  const std::string bytes = PackTableFile(Described(), Encoded(), 1);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(ReadTableFile(std::string_view(bytes).substr(0, i)).ok()) << i;
    if (i >= 12 && i < 48) continue;  // id and source: the encoded table also contains them
    if (i >= 64 && i < 72) continue;  // time of storing
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto read = ReadTableFile(changed);
    // Another zstd frame may encode the same content.
    EXPECT_TRUE(!read.ok() || *read == Encoded()) << i;
    if (i < kTableFileHeaderBytes) {
      EXPECT_FALSE(read.ok()) << i;
    }
  }
}

TEST(TableFile, RefusesAHugeSizeBeforeItAllocates) {
  TableFile file = Described();
  file.raw_bytes = uint64_t{1} << 60;
  EXPECT_EQ(ReadTableFile(PackTableFile(file, Encoded(), 1)).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tributary
