#include <gtest/gtest.h>

#include "reducer/symbolizer/symbol_store_testing.h"

// Which of two tables of one executable is kept.

namespace tributary {
namespace {

TEST_F(SymbolStoreTest, BetterSourceReplacesAndWorseChangesNothing) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 3));
  PutTable(*Table(1, SymbolSource::kDynsym, 9));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
  EXPECT_EQ(Uploads("kept_better"), 1u);
  PutTable(*Table(1, SymbolSource::kKallsyms, 2));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 2u);
  EXPECT_EQ(store_->Get(Id(1))->source(), SymbolSource::kKallsyms);
  ASSERT_EQ(List().size(), 1u);
  EXPECT_EQ(List()[0].header.functions, 2u);
}

// The first node that was asked sent invented names, and many of them.
TEST_F(SymbolStoreTest, AnUploadReplacesANodesTableWithMoreFunctions) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 200));
  const auto kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 3)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->stored);
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
}

TEST_F(SymbolStoreTest, NoNodeReplacesAnUpload) {
  Open();
  ASSERT_TRUE(
      store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDynsym, 3)), SymbolOrigin::kUpload)->stored);
  PutTable(*Table(1, SymbolSource::kDwarf, 200));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
}

TEST_F(SymbolStoreTest, RanksOriginsBeforeNumbersOfFunctions) {
  Open();
  constexpr auto kDwarf = SymbolSource::kDwarf;
  const SymbolOrigin ascending[] = {SymbolOrigin::kNode, SymbolOrigin::kNodes, SymbolOrigin::kDebuginfod,
                                    SymbolOrigin::kDebugDirectory, SymbolOrigin::kUpload};
  int functions = 200;
  for (const SymbolOrigin origin : ascending) {
    ASSERT_TRUE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, kDwarf, --functions)), origin)->stored);
    EXPECT_EQ(List()[0].origin(), origin);
  }
  for (const SymbolOrigin origin :
       {SymbolOrigin::kNode, SymbolOrigin::kNodes, SymbolOrigin::kDebuginfod, SymbolOrigin::kDebugDirectory}) {
    EXPECT_FALSE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, kDwarf, 300)), origin)->stored);
  }
  EXPECT_EQ(List()[0].header.functions, static_cast<uint64_t>(functions));
}

TEST_F(SymbolStoreTest, AStrippedFileInADirectoryDoesNotHideDebugInformation) {
  Open();
  auto put = [&](SymbolSource source, SymbolOrigin origin) {
    return store_->Put(Id(1), EncodeSymbolTable(*Table(1, source, 9)), origin)->stored;
  };
  EXPECT_TRUE(put(SymbolSource::kDynsym, SymbolOrigin::kDebugDirectory));
  EXPECT_TRUE(put(SymbolSource::kDwarf, SymbolOrigin::kDebuginfod));
  EXPECT_FALSE(put(SymbolSource::kDynsym, SymbolOrigin::kDebugDirectory));
}

TEST_F(SymbolStoreTest, TheNewerOfTwoEqualUploadsIsKept) {
  Open();
  auto put = [&](const char* name) {
    const auto table = BuildSymbolTable(Id(1), SymbolSource::kSymtab, {{0x1000, 0x80, name}});
    return store_->Put(Id(1), EncodeSymbolTable(*table), SymbolOrigin::kUpload)->stored;
  };
  EXPECT_TRUE(put("wrong"));
  EXPECT_TRUE(put("right"));
  EXPECT_FALSE(put("right"));
  EXPECT_EQ(store_->Get(Id(1))->Find(0x1000)->name, "right");
}

TEST_F(SymbolStoreTest, TwoNodesWithTheSameTableAgree) {
  Open();
  const std::string encoded = EncodeSymbolTable(*Table(1));
  auto put = [&](const char* node) {
    return store_->Put(Id(1), encoded, SymbolOrigin::kNode, {.node_id = node, .version = "1.0", .peer_id = node})
        ->stored;
  };
  EXPECT_TRUE(put("a"));
  EXPECT_FALSE(put("a"));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNode) << "a node cannot agree with itself";
  EXPECT_FALSE(put("b"));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNodes);
  store_.reset();
  Open();
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNodes);
  EXPECT_EQ(List()[0].notes().node_ids(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(List()[0].notes().version, "1.0");
  ASSERT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_FALSE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDwarf, 99)), SymbolOrigin::kNode)->stored);
}

TEST_F(SymbolStoreTest, ReportsTwoFilesWithOneId) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 20));
  std::vector<SymbolRange> elsewhere;
  for (uint64_t i = 0; i < 30; ++i) elsewhere.push_back({0x9000 + i * 0x30, 0x20, "other"});
  const auto other = BuildSymbolTable(Id(1), SymbolSource::kSymtab, elsewhere);
  auto kept = store_->Put(Id(1), EncodeSymbolTable(*other), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->contested);
  EXPECT_TRUE(kept->stored);  // it has more functions
  ASSERT_EQ(List().size(), 1u);
  EXPECT_TRUE(List()[0].header.contested);
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  // The worse table changes nothing except `contested`.
  kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 20)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->contested);
  EXPECT_FALSE(kept->stored);
  EXPECT_EQ(store_->Get(Id(1))->Find(0x9000)->name, "other");
  EXPECT_EQ(Uploads("contested"), 2u);
}

TEST_F(SymbolStoreTest, BetterNamesOfTheSameCodeAreNotAnotherFile) {
  Open();
  PutTable(*Table(1, SymbolSource::kDynsym, 20));
  auto kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDwarf, 200)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->stored);
  EXPECT_FALSE(kept->contested);
  EXPECT_FALSE(List()[0].header.contested);
}

}  // namespace
}  // namespace tributary
