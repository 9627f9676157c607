#include "reducer/symbolizer/table_notes.h"

#include <gtest/gtest.h>

#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

TEST(TableNotes, RoundTrip) {
  const TableNotes notes{
      .nodes = {{"a", "peer of a"}, {"b", ""}}, .disputed_by = {"c"}, .version = "1.2", .sha256 = Sha256("x")};
  EXPECT_EQ(ParseTableNotes(EncodeTableNotes(notes)), notes);
  EXPECT_EQ(EncodeTableNotes({}), "");
}

TEST(TableNotes, AreLimited) {
  const std::string longest(300, 'x');
  const TableNotes notes{.nodes = {10, SymbolWitness{longest, longest}},
                         .disputed_by = {10, longest},
                         .version = longest,
                         .sha256 = Sha256("x")};
  const std::string bytes = EncodeTableNotes(notes);
  EXPECT_LE(bytes.size(), kTableFileNotesMax);
  const TableNotes parsed = ParseTableNotes(bytes);
  const SymbolWitness cut{std::string(255, 'x'), std::string(TableNotes::kPeerBytesMax, 'x')};
  EXPECT_EQ(parsed.nodes, std::vector<SymbolWitness>(TableNotes::kNodesMax, cut));
  EXPECT_EQ(parsed.disputed_by.size(), TableNotes::kDisputersMax);
}

TEST(TableNotes, SkipUnknownKindsAndStopAtMalformedBytes) {
  const std::string known = EncodeTableNotes({.nodes = {{"a", ""}}, .disputed_by = {}, .version = "", .sha256 = {}});
  EXPECT_EQ(ParseTableNotes("\xf0\x02yz" + known).node_ids(), std::vector<std::string>{"a"});
  EXPECT_EQ(ParseTableNotes(known + "\x01\x09z").node_ids(), std::vector<std::string>{"a"});
  EXPECT_EQ(ParseTableNotes("\x01"), TableNotes());
  EXPECT_EQ(ParseTableNotes(std::string_view("\x05\x01p", 3)), TableNotes()) << "a peer of no node";
}

// An earlier release finds its table in a file with notes, because zstd skips them.
TEST(TableNotes, LeaveTheTableFileReadable) {
  const ExecutableId id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\xab", 2));
  const auto table = BuildSymbolTable(id, SymbolSource::kSymtab, {{0x1000, 0x80, "f"}});
  const std::string encoded = EncodeSymbolTable(*table);
  TableFile file = DescribeTable(*table, encoded);
  const std::string without = PackTableFile(file, encoded, 1);
  file.notes = std::string(kTableFileNotesMax, 'n');
  const std::string with = PackTableFile(file, encoded, 1);
  EXPECT_EQ(ParseTableFileHeader(with)->notes, file.notes);
  EXPECT_EQ(ParseTableFileHeader(std::string_view(with).substr(0, kTableFileBeginBytes))->notes, file.notes);
  EXPECT_EQ(ParseTableFileHeader(without)->notes, "");
  EXPECT_EQ(*ReadTableFile(with), encoded);
  EXPECT_EQ(TableFileBody(with), TableFileBody(without));
  EXPECT_EQ(TableFileHeader(file) + std::string(TableFileBody(with)), with);
  // Damaged notes are no notes. The table is still complete.
  std::string damaged = with;
  damaged[kTableFileHeaderBytes + 5] = '\x7f';
  EXPECT_EQ(ParseTableFileHeader(damaged)->notes, "");
}

}  // namespace
}  // namespace tributary
