#pragma once

#include <memory>
#include <span>
#include <string>

#include "reducer/metadata/rollout_store.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// Stores rollouts in rollouts.db. Methods return the errors of sqlite.h.
class SqliteRolloutStore final : public RolloutStore {
 public:
  static absl::StatusOr<std::unique_ptr<RolloutStore>> Open(const std::string& directory);

  absl::Status Load(absl::FunctionRef<void(const Row&)> visit) override;
  absl::StatusOr<int64_t> HighestNumber() override;
  absl::Status Save(std::span<const Row> added, std::span<const Row> removed) override;

 private:
  explicit SqliteRolloutStore(store::Database database) : database_(std::move(database)) {}

  store::Database database_;
  store::Statement insert_, remove_, raise_;  // of database_
};

}  // namespace tributary
