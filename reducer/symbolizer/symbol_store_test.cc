#include "reducer/symbolizer/symbol_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "reducer/symbolizer/symbol_store_testing.h"

namespace tributary {
namespace {

TEST_F(SymbolStoreTest, KeepsATable) {
  Open();
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  PutTable(*Table(1));
  std::shared_ptr<const SymbolTable> table = store_->Get(Id(1));
  ASSERT_NE(table, nullptr);
  ASSERT_TRUE(table->Find(0x1110));
  EXPECT_EQ(table->Find(0x1110)->name, "function_1");
  EXPECT_EQ(store_->Get(Id(1)), table);  // from memory
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_EQ(Uploads("stored"), 1u);
}

TEST_F(SymbolStoreTest, RefusesTablesOfOtherExecutables) {
  Open();
  std::string encoded = EncodeSymbolTable(*Table(1));
  EXPECT_EQ(store_->Put(Id(2), encoded, SymbolOrigin::kNode).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(ExecutableId(), encoded, SymbolOrigin::kNode).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(Id(1), "", SymbolOrigin::kNode).status().code(), absl::StatusCode::kInvalidArgument);
  uint64_t refused = 3;
  for (size_t size = 0; size < encoded.size(); size += 3) {
    EXPECT_FALSE(store_->Put(Id(1), std::string_view(encoded).substr(0, size), SymbolOrigin::kNode).ok()) << size;
    ++refused;
  }
  EXPECT_EQ(Uploads("refused"), refused);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

// Two nodes were asked, because the first was silent for long. Both answer.
TEST_F(SymbolStoreTest, ASecondUploadOfATableIsNotStored) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_TRUE(store_->ShouldRequest(Id(1), SymbolAsker{1}));
  clock_.Advance(options.demand.timeout_ns);
  EXPECT_TRUE(store_->ShouldRequest(Id(1), SymbolAsker{2}));
  PutTable(*Table(1));
  PutTable(*Table(1));
  EXPECT_EQ(Uploads("stored"), 1u);
  EXPECT_EQ(Uploads("kept_better"), 1u);
  EXPECT_EQ(List().size(), 1u);
  store_->demand().Release(SymbolAsker{2});
  EXPECT_FALSE(store_->ShouldRequest(Id(1), SymbolAsker{3})) << "it is here";
}

TEST_F(SymbolStoreTest, AsksOnceUntilTheTimeout) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_FALSE(store_->ShouldRequest(ExecutableId()));
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(options.demand.timeout_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  PutTable(*Table(1));
  clock_.Advance(100 * options.demand.timeout_ns);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, AsksAgainLongAfterANodeHadNone) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  store_->PutUnavailable(Id(1), "no sections\x1b[2J");
  clock_.Advance(options.demand.unavailable_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, OpenRequestsAreBounded) {
  SymbolStore::Options options;
  Open(options);
  auto id = [](uint32_t n) {
    return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                               std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
  };
  for (uint32_t n = 0; n < 65'536; ++n) ASSERT_TRUE(store_->ShouldRequest(id(n)));
  EXPECT_FALSE(store_->ShouldRequest(id(70'000)));
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_requests_deferred_total", "").value(), 1u);
  clock_.Advance(options.demand.timeout_ns);
  EXPECT_TRUE(store_->ShouldRequest(id(70'000)));
}

TEST_F(SymbolStoreTest, LimitsMappedTables) {
  SymbolStore::Options options;
  options.mapped_max = 2;
  Open(options);
  for (uint8_t n = 1; n <= 3; ++n) PutTable(*Table(n));
  std::shared_ptr<const SymbolTable> first = store_->Get(Id(1));
  std::shared_ptr<const SymbolTable> second = store_->Get(Id(2));
  EXPECT_EQ(store_->Get(Id(1)), first);
  store_->Get(Id(3));  // evicts 2
  EXPECT_EQ(store_->Get(Id(1)), first);
  std::shared_ptr<const SymbolTable> second_again = store_->Get(Id(2));
  EXPECT_NE(second_again, second);
  EXPECT_EQ(second_again->function_count(), second->function_count());
}

TEST_F(SymbolStoreTest, ARemovedTableMayBeRequestedAgain) {
  Open();
  EXPECT_TRUE(absl::IsNotFound(store_->Remove(Id(1))));
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  PutTable(*Table(1));
  EXPECT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  EXPECT_TRUE(store_->Remove(Id(1)).ok());
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, AnyThreadMayCall) {
  SymbolStore::Options options;
  options.mapped_max = 3;
  options.disk_bytes_max = BytesForTables(3.5, 300);  // both limits are reached all the time
  Open(options);
  std::atomic<int> found = 0;
  auto work = [&](uint8_t first) {
    for (uint8_t i = 0; i < 40; ++i) {
      auto n = static_cast<uint8_t>(1 + (first + i) % 10);
      store_->ShouldRequest(Id(n));
      EXPECT_TRUE(store_->Put(Id(n), EncodeSymbolTable(*Table(n)), SymbolOrigin::kNode).ok());
      if (std::shared_ptr<const SymbolTable> table = store_->Get(Id(n))) {
        EXPECT_EQ(table->id(), Id(n));
        ++found;
      }
      store_->PutUnavailable(Id(n), "gone");
      EXPECT_TRUE(store_->List().ok());
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) threads.emplace_back(work, static_cast<uint8_t>(3 * t));
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  uint64_t bytes = 0;
  for (const SymbolFiles::Row& row : List()) bytes += row.stored_bytes + 4096;
  EXPECT_LE(bytes, options.disk_bytes_max / 2);
  EXPECT_GT(Evictions("disk"), 0u);
}

}  // namespace
}  // namespace tributary
