#include "reducer/stores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/directory_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(Stores, AnErrorNamesTheValidForms) {
  EXPECT_TRUE(CheckStoreUrl("sqlite:/var/lib/tributary").ok());
  EXPECT_TRUE(CheckStoreUrl("sqlite:data").ok());
  for (const char* url : {"", "/var/lib/tributary", "postgres://host", "SQLite:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckStoreUrl(url))) << url;
    EXPECT_THAT(Message(CheckStoreUrl(url)), HasSubstr("is not the URL of a store: give sqlite:DIR"));
  }
  EXPECT_THAT(Message(CheckStoreUrl("sqlite:")), HasSubstr("needs a directory"));
  Metrics metrics;
  EXPECT_TRUE(absl::IsInvalidArgument(OpenStores("nowhere", {}, Clock::Real(), metrics).status()));
}

// The names of the files are the same in every release.
TEST(Stores, OneDirectoryHasAllStores) {
  TestDirectory directory;
  Metrics metrics;
  auto stores = OpenStores(DefaultStoreUrl(directory.path()), {.shards = 2}, Clock::Real(), metrics);
  ASSERT_TRUE(stores.ok()) << stores.status();
  ASSERT_TRUE(stores->entities.ok() && stores->rollouts.ok() && stores->service_states.ok());
  EXPECT_TRUE(stores->samples->OpenWriter(1).ok());
  for (const char* file : {"LOCK", "store.db", "shard-1.db", "metadata.db", "rollouts.db"}) {
    EXPECT_TRUE(std::filesystem::exists(directory.path() + "/" + file)) << file;
  }
}

TEST(Stores, KeepsSamplesIfMetadataCannotBeKept) {
  TestDirectory directory;
  std::filesystem::create_directory(directory.path() + "/rollouts.db");
  Metrics metrics;
  auto stores = OpenStores(DefaultStoreUrl(directory.path()), {}, Clock::Real(), metrics);
  ASSERT_TRUE(stores.ok()) << stores.status();
  EXPECT_FALSE(stores->rollouts.ok());
  EXPECT_TRUE(stores->entities.ok());
}

}  // namespace
}  // namespace tributary
